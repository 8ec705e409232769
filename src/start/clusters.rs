//! The clusters that a configuration names, and who we are to them.

use crate::config::{Config, Problem, Properties, SinkKind, SourceKind};
use crate::io::kafka::connection::{Cluster, KafkaFailure};
use crate::start::memory::queues;
use std::collections::BTreeMap;

/// The client's own limit of a fetch, in bytes.
const MOST_OF_A_FETCH: u64 = 50 << 20;

fn passed(properties: &Properties) -> BTreeMap<String, String> {
    properties.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// The same, and what `process.memory_limit` leaves for queues, where the operator has not named it.
fn bounded(config: &Config, properties: &Properties) -> BTreeMap<String, String> {
    let mut passed = passed(properties);
    if let Some(queues) = queues(config) {
        let mut bound = |name: &str, value: u64| {
            passed.entry(name.to_owned()).or_insert(value.to_string());
        };
        bound("queued.max.messages.kbytes", queues.fetched_kib);
        bound("queue.buffering.max.kbytes", queues.sent_kib);
        // The client wants a fetch to have room for the largest message: whoever names that one names this one.
        if !passed.contains_key("message.max.bytes") {
            let fetch = (queues.fetched_kib << 10).min(MOST_OF_A_FETCH);
            passed.entry("fetch.max.bytes".to_owned()).or_insert(fetch.to_string());
        }
    }
    passed
}

fn cluster(config: &Config, properties: &Properties) -> Result<Cluster, KafkaFailure> {
    let source = &config.source;
    Cluster::secured(&source.brokers, bounded(config, properties), &source.security, "source.security")
}

/// The cluster with the properties of the source's consumer.
///
/// # Errors
/// When there is no thread for the keys that are to be kept.
pub fn source_cluster(config: &Config) -> Result<Cluster, KafkaFailure> {
    cluster(config, &config.source.librdkafka)
}

/// The cluster with the properties of the sink's producer.
pub fn sink_cluster(config: &Config) -> Result<Cluster, KafkaFailure> {
    cluster(config, &config.sink.librdkafka)
}

/// The clusters for source and sink: clones that share one set of keys where their properties are equal.
pub fn clusters(config: &Config) -> Result<(Cluster, Cluster), KafkaFailure> {
    let from = source_cluster(config)?;
    let to = if config.sink.librdkafka == config.source.librdkafka { from.clone() } else { sink_cluster(config)? };
    Ok((from, to))
}

/// What the client itself finds wrong with its settings: a property that it does not know, a file that is none. Nobody is asked.
pub fn problems(config: &Config, file: &str) -> Vec<Problem> {
    let (source, sink) = (&config.source, &config.sink);
    let of = |section: &'static str, properties: &Properties| {
        (section, Cluster::unkept(&source.brokers, bounded(config, properties), &source.security, "source.security"))
    };
    let read = (source.kind == SourceKind::Kafka).then(|| of("source", &source.librdkafka));
    let alike = read.is_some() && sink.librdkafka == source.librdkafka;
    let written = (sink.kind == SinkKind::Kafka && !alike).then(|| of("sink", &sink.librdkafka));
    let tried = |(section, cluster): (&str, Cluster)| {
        let failure = cluster.try_settings().err()?;
        let key = match &failure {
            KafkaFailure::Setting { name, .. } => format!("{section}.librdkafka.{name}"),
            _ => "source.security".to_owned(),
        };
        Some(Problem::new(file, key, failure.to_string(), "correct it, in the file or in the environment"))
    };
    read.into_iter().chain(written).filter_map(tried).collect()
}
