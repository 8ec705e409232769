//! Kafka cluster settings with credentials.

use crate::config::{Config, ConfigProblem, KafkaProperties, SinkKind, SourceKind};
use crate::start::memory_budget::client_queue_sizes;
use std::collections::BTreeMap;
use throng_kafka::connection::{KafkaCluster, KafkaFailure};

const DEFAULT_FETCH_LIMIT: u64 = 50 << 20;

fn property_map(properties: &KafkaProperties) -> BTreeMap<String, String> {
    properties.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// Queue limits from `process.memory_limit`, unless the operator has set them.
fn bounded_properties(config: &Config, properties: &KafkaProperties) -> BTreeMap<String, String> {
    let mut passed = property_map(properties);
    if let Some(queues) = client_queue_sizes(config) {
        let mut bound = |name: &str, value: u64| {
            passed.entry(name.to_owned()).or_insert(value.to_string());
        };
        bound("queued.max.messages.kbytes", queues.fetched_kib);
        bound("queue.buffering.max.kbytes", queues.sent_kib);
        // The client requires `fetch.max.bytes` of at least `message.max.bytes`, which the operator may set.
        if !passed.contains_key("message.max.bytes") {
            let fetch = (queues.fetched_kib << 10).min(DEFAULT_FETCH_LIMIT);
            passed.entry("fetch.max.bytes".to_owned()).or_insert(fetch.to_string());
        }
    }
    passed
}

fn cluster(config: &Config, properties: &KafkaProperties) -> Result<KafkaCluster, KafkaFailure> {
    let source = &config.source;
    KafkaCluster::with_security(
        &source.brokers,
        bounded_properties(config, properties),
        &source.security,
        "source.security",
    )
}

/// Returns the cluster of the source.
///
/// # Errors
/// Fails if the thread that renews credentials cannot start.
pub fn source_cluster(config: &Config) -> Result<KafkaCluster, KafkaFailure> {
    cluster(config, &config.source.librdkafka)
}

/// Returns the cluster of the sink.
pub fn sink_cluster(config: &Config) -> Result<KafkaCluster, KafkaFailure> {
    cluster(config, &config.sink.librdkafka)
}

/// Returns the clusters of source and sink, with shared credentials if their properties are equal.
pub fn clusters(config: &Config) -> Result<(KafkaCluster, KafkaCluster), KafkaFailure> {
    let from = source_cluster(config)?;
    let to = if config.sink.librdkafka == config.source.librdkafka { from.clone() } else { sink_cluster(config)? };
    Ok((from, to))
}

/// Returns problems that the client finds in its settings, without contacting a broker.
pub fn problems(config: &Config, file: &str) -> Vec<ConfigProblem> {
    let (source, sink) = (&config.source, &config.sink);
    let of = |section: &'static str, properties: &KafkaProperties| {
        (
            section,
            KafkaCluster::without_renewal(
                &source.brokers,
                bounded_properties(config, properties),
                &source.security,
                "source.security",
            ),
        )
    };
    let read = (source.kind == SourceKind::Kafka).then(|| of("source", &source.librdkafka));
    let alike = read.is_some() && sink.librdkafka == source.librdkafka;
    let written = (sink.kind == SinkKind::Kafka && !alike).then(|| of("sink", &sink.librdkafka));
    let tried = |(section, cluster): (&str, KafkaCluster)| {
        let failure = cluster.try_settings().err()?;
        let key = match &failure {
            KafkaFailure::Setting { name, .. } => format!("{section}.librdkafka.{name}"),
            _ => "source.security".to_owned(),
        };
        Some(ConfigProblem::new(file, key, failure.to_string(), "correct the value in the file or in the environment"))
    };
    read.into_iter().chain(written).filter_map(tried).collect()
}
