//! Client settings: ours, and whatever the operator passes through.

use rdkafka::ClientConfig;
use rdkafka::admin::{AdminClient, AdminOptions, ResourceSpecifier};
use rdkafka::client::DefaultClientContext;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use std::collections::BTreeMap;
use std::time::Duration;

/// How to reach a cluster.
#[derive(Clone, Debug)]
pub struct Cluster {
    /// The brokers to begin with, as the client is told: `host:port`, separated by commas.
    pub brokers: String,
    /// librdkafka properties from the configuration; the ones that we own were refused there.
    pub properties: BTreeMap<String, String>,
}

/// What can go wrong between us and a cluster, without any content of a message.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the message of each case says it")]
pub enum KafkaFailure {
    #[error("kafka at {brokers}: {what}: {source}")]
    Client { brokers: String, what: &'static str, source: rdkafka::error::KafkaError },
    #[error(
        "kafka at {brokers}: the client knows no librdkafka property {name:?}, or does not take its value: correct it in the configuration or the environment"
    )]
    Setting { brokers: String, name: String },
    #[error("kafka at {brokers}: topic {topic:?} does not exist (create it, or correct the configuration)")]
    MissingTopic { brokers: String, topic: String },
    #[error(
        "kafka at {brokers}: topic {topic:?} keeps records for {retention}, shorter than privacy.support_window = {window}: released records must stay visible as long as they support others (shorten the window, or lengthen retention.ms)"
    )]
    ShortRetention { brokers: String, topic: String, retention: String, window: String },
    #[error(
        "topic {topic:?}: another instance's open transaction has hidden our last commit marker for {seconds} s (start again when that instance has, or when its transaction.timeout.ms has passed)"
    )]
    Undecided { topic: String, seconds: u64 },
    #[error(
        "kafka at {brokers}: no answer within {seconds} s (is the broker up, and are `brokers` and the security properties right?)"
    )]
    Unreachable { brokers: String, seconds: u64 },
    #[error("a part of the daemon panicked while it read a message; nothing of it was released")]
    ReaderPanicked,
    #[error(
        "source.brokers ({from}) and sink.brokers ({to}) are not the same cluster: consumed offsets and released records must commit in one transaction, which no two clusters share (mirror the topic first, or release beside the source)"
    )]
    TwoClusters { from: String, to: String },
}

/// Whether the client cannot recover from an error by itself: what it asks for is not allowed, or it has failed for good.
pub(super) fn is_final(error: &KafkaError) -> bool {
    matches!(
        error.rdkafka_error_code(),
        Some(
            RDKafkaErrorCode::Fatal
                | RDKafkaErrorCode::TopicAuthorizationFailed
                | RDKafkaErrorCode::GroupAuthorizationFailed
                | RDKafkaErrorCode::SaslAuthenticationFailed
        )
    )
}

impl Cluster {
    /// Settings shared by all our clients: a name, and the properties passed through.
    fn base(&self) -> ClientConfig {
        let mut config = ClientConfig::new();
        self.share(&mut config);
        config
    }

    /// Sets them over what stands there already. Never by way of `config_map`, which has a placeholder where a password is.
    fn share(&self, config: &mut ClientConfig) {
        config.set("client.id", "throng");
        for (key, value) in &self.properties {
            config.set(key, value);
        }
        config.set("bootstrap.servers", &self.brokers);
    }

    /// Settings of a consumer that reads committed records and never commits by itself.
    #[must_use]
    pub fn consumer(&self, group: &str) -> ClientConfig {
        let mut config = ClientConfig::new();
        // Defaults that an operator may change: where to begin, and how much to fetch ahead (64 MB a partition is
        // librdkafka's own default, which many partitions turn into gigabytes).
        config.set("auto.offset.reset", "earliest");
        config.set("queued.max.messages.kbytes", "16384");
        config.set("queued.min.messages", "20000");
        config.set("fetch.message.max.bytes", "2097152");
        // Once that much waits, the client looks again after this time. Its own default is a second, in which a batch is
        // treated several times over and the reader starves.
        config.set("fetch.queue.backoff.ms", "10");
        config.set("statistics.interval.ms", "1000");
        self.share(&mut config);
        config.set("group.id", group);
        config.set("enable.auto.commit", "false");
        config.set("enable.auto.offset.store", "false");
        config.set("isolation.level", "read_committed");
        config.set("partition.assignment.strategy", "cooperative-sticky");
        config.set("enable.partition.eof", "false");
        config
    }

    /// Settings of a transactional producer.
    #[must_use]
    pub fn producer(&self, transactional_id: &str) -> ClientConfig {
        let mut config = ClientConfig::new();
        config.set("linger.ms", "5");
        config.set("batch.num.messages", "10000");
        config.set("queue.buffering.max.messages", "1000000");
        config.set("queue.buffering.max.kbytes", "262144");
        config.set("transaction.timeout.ms", "60000");
        self.share(&mut config);
        config.set("transactional.id", transactional_id);
        config.set("enable.idempotence", "true");
        // We wait for the transaction, not for each message.
        config.set("delivery.report.only.error", "true");
        config
    }

    /// A plain client for topics and groups.
    ///
    /// # Errors
    /// When the settings are refused.
    pub fn admin(&self) -> Result<AdminClient<DefaultClientContext>, KafkaFailure> {
        self.base().create().map_err(|source| self.failure("cannot create an admin client", source))
    }

    /// A failure of the client while something was done.
    #[must_use]
    pub fn failure(&self, what: &'static str, source: rdkafka::error::KafkaError) -> KafkaFailure {
        match source {
            // The client repeats the value, which may be a password.
            KafkaError::ClientConfig(_, _, name, _) => KafkaFailure::Setting { brokers: self.brokers.clone(), name },
            source => KafkaFailure::Client { brokers: self.brokers.clone(), what, source },
        }
    }

    /// The name that the cluster gives itself; `None` when it does not tell.
    ///
    /// # Errors
    /// When the settings are refused.
    pub fn id(&self, patience: Duration) -> Result<Option<String>, KafkaFailure> {
        let client: BaseConsumer =
            self.base().create().map_err(|source| self.failure("cannot create a client", source))?;
        Ok(client.client().fetch_cluster_id(patience))
    }

    /// Number of partitions of each topic, in order.
    ///
    /// # Errors
    /// When the cluster does not answer within `patience`, or a topic does not exist.
    pub fn partitions(&self, topics: &[&str], patience: Duration) -> Result<Vec<i32>, KafkaFailure> {
        let mut config = self.base();
        config.set("allow.auto.create.topics", "false");
        let client: BaseConsumer = config.create().map_err(|source| self.failure("cannot create a client", source))?;
        let metadata = client
            .fetch_metadata(None, patience)
            .map_err(|_| KafkaFailure::Unreachable { brokers: self.brokers.clone(), seconds: patience.as_secs() })?;
        topics
            .iter()
            .map(|name| {
                let found = metadata.topics().iter().find(|t| t.name() == *name && t.error().is_none());
                found.map(|t| i32::try_from(t.partitions().len()).unwrap_or(i32::MAX)).filter(|n| *n > 0).ok_or_else(
                    || KafkaFailure::MissingTopic { brokers: self.brokers.clone(), topic: (*name).to_owned() },
                )
            })
            .collect()
    }

    /// Checks that what is released into `topic` stays there for `window`. A cluster that does not tell is believed.
    ///
    /// # Errors
    /// [`KafkaFailure::ShortRetention`].
    pub fn check_retention(&self, topic: &str, window: Duration, patience: Duration) -> Result<(), KafkaFailure> {
        let admin = self.admin()?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|_| KafkaFailure::Unreachable { brokers: self.brokers.clone(), seconds: 0 })?;
        let resource = ResourceSpecifier::Topic(topic);
        let options = AdminOptions::new().request_timeout(Some(patience));
        let Ok(described) = runtime.block_on(admin.describe_configs(&[resource], &options)) else { return Ok(()) };
        let retention = described
            .into_iter()
            .flatten()
            .flat_map(|r| r.entries)
            .find(|e| e.name == "retention.ms")
            .and_then(|e| e.value?.parse::<i64>().ok())
            .and_then(|ms| u64::try_from(ms).ok());
        match retention.map(Duration::from_millis) {
            Some(kept) if kept < window => Err(KafkaFailure::ShortRetention {
                brokers: self.brokers.clone(),
                topic: topic.to_owned(),
                retention: humantime::format_duration(kept).to_string(),
                window: humantime::format_duration(window).to_string(),
            }),
            // -1 keeps for ever.
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Cluster;
    use std::time::Duration;

    #[test]
    fn passwords_reach_every_client() {
        let secrets = [("sasl.password", "canary-5271"), ("ssl.key.password", "canary-5272")];
        let properties = secrets.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let cluster = Cluster { brokers: "localhost:9092".to_owned(), properties };
        for client in [cluster.base(), cluster.consumer("readers"), cluster.producer("writer")] {
            for (name, value) in secrets {
                assert_eq!(client.get(name), Some(value), "{name}");
            }
        }
    }

    /// A password that stands at a wrong name, or is of no use, is in no error.
    #[test]
    fn what_a_property_is_set_to_is_never_repeated() {
        for name in ["sasl.pasword", "security.protocol", "sasl.oauthbearer.client.secret"] {
            let properties = [(name.to_owned(), "canary-6613".to_owned())].into();
            let cluster = Cluster { brokers: "localhost:9".to_owned(), properties };
            let Err(failure) = cluster.id(Duration::ZERO) else { panic!("{name} is taken") };
            let said = format!("{failure} {failure:?}");
            assert!(said.contains(name) && !said.contains("canary-6613"), "{said}");
        }
    }
}
