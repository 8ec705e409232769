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

/// The cluster that records come from.
///
/// # Errors
/// When there is no thread for the keys that are to be kept.
pub fn source_cluster(config: &Config) -> Result<Cluster, KafkaFailure> {
    let source = &config.source;
    Cluster::secured(&source.brokers, bounded(config, &source.librdkafka), &source.security, "source.security")
}

/// The cluster that they leave to.
///
/// # Errors
/// As [`source_cluster`].
pub fn sink_cluster(config: &Config) -> Result<Cluster, KafkaFailure> {
    let table = config.sink_security_key();
    Cluster::secured(config.sink_brokers(), bounded(config, &config.sink.librdkafka), config.sink_security(), table)
}

/// Whether both are reached alike.
fn is_alike(config: &Config) -> bool {
    let Config { source, sink, .. } = config;
    config.sink_brokers() == source.brokers
        && sink.librdkafka == source.librdkafka
        && *config.sink_security() == source.security
}

/// Both; they are one where they are reached alike, and keep one set of keys then.
///
/// # Errors
/// As [`source_cluster`].
pub fn clusters(config: &Config) -> Result<(Cluster, Cluster), KafkaFailure> {
    let from = source_cluster(config)?;
    let to = if is_alike(config) { from.clone() } else { sink_cluster(config)? };
    Ok((from, to))
}

/// What the client itself finds wrong with its settings: a property that it does not know, a file that is none. Nobody is asked.
#[must_use]
pub fn problems(config: &Config, file: &str) -> Vec<Problem> {
    let (source, sink) = (&config.source, &config.sink);
    let of = |section: &'static str, brokers: &str, properties: &Properties, security, table| {
        (section, Cluster::unkept(brokers, bounded(config, properties), security, table))
    };
    let read = (source.kind == SourceKind::Kafka)
        .then(|| of("source", &source.brokers, &source.librdkafka, &source.security, "source.security"));
    let alike = read.is_some() && is_alike(config);
    let written = (sink.kind == SinkKind::Kafka && !alike).then(|| {
        of("sink", config.sink_brokers(), &sink.librdkafka, config.sink_security(), config.sink_security_key())
    });
    let tried = |(section, cluster): (&str, Cluster)| {
        let failure = cluster.try_settings().err()?;
        let key = match &failure {
            KafkaFailure::Setting { name, .. } => format!("{section}.librdkafka.{name}"),
            _ => format!("{section}.security"),
        };
        Some(Problem::new(file, key, failure.to_string(), "correct it, in the file or in the environment"))
    };
    read.into_iter().chain(written).filter_map(tried).collect()
}
