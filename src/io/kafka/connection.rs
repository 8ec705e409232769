//! Client settings: ours, and whatever the operator passes through.

use super::access::{Access, Asking, Settings};
use super::hearing::Hearing;
use super::refusal::Refusal;
use crate::config::Security;
use rdkafka::consumer::Consumer;
use rdkafka::error::KafkaError;
use rdkafka::metadata::{Metadata, MetadataTopic};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub use super::failure::KafkaFailure;

/// How long a question may wait before it is looked whether we are refused.
const LOOK: Duration = Duration::from_millis(250);

/// How to reach a cluster.
#[derive(Clone, Debug)]
pub struct Cluster {
    /// The brokers to begin with, as the client is told: `host:port`, separated by commas.
    pub brokers: String,
    access: Arc<Access>,
}

impl Cluster {
    /// A cluster that asks nobody who they are. `properties` are those of librdkafka in the configuration; the ones that we own
    /// were refused there.
    #[must_use]
    pub fn new(brokers: &str, properties: BTreeMap<String, String>) -> Self {
        Self::unkept(brokers, properties, &Security::default(), "source.security")
    }

    /// A cluster whose settings are tried, and that nobody asks anything.
    #[must_use]
    pub fn unkept(
        brokers: &str,
        properties: BTreeMap<String, String>,
        security: &Security,
        table: &'static str,
    ) -> Self {
        let access = Access::unkept(brokers, properties, security, table);
        Self { brokers: brokers.to_owned(), access: Arc::new(access) }
    }

    /// A cluster to which we are who `security` says, the table `table` of the configuration.
    ///
    /// # Errors
    /// When there is no thread for the keys that are to be kept.
    pub fn secured(
        brokers: &str,
        properties: BTreeMap<String, String>,
        security: &Security,
        table: &'static str,
    ) -> Result<Self, KafkaFailure> {
        let access = Access::new(brokers, properties, security, table)?;
        Ok(Self { brokers: brokers.to_owned(), access: Arc::new(access) })
    }

    /// What is heard of refusals.
    #[must_use]
    pub fn hearing(&self) -> &Hearing {
        &self.access.hearing
    }

    /// What a refusal is and what to do about it; the brokers may be asked once more for that.
    #[must_use]
    pub fn told(&self, refusal: Refusal) -> String {
        self.access.told(refusal).1
    }

    /// Settings shared by all our clients: a name, and the properties passed through.
    fn base(&self) -> Settings {
        Settings::new(&self.access, &[])
    }

    /// Settings of a member of `group`, which reads committed records and never commits by itself. The members are kept apart
    /// cooperatively: by one of them, or by the brokers where that is configured (KIP-848).
    #[must_use]
    pub fn member(&self, group: &str) -> Settings {
        let mut settings = self.reader(group);
        if !self.access.has_consumer_protocol() {
            settings.set("partition.assignment.strategy", "cooperative-sticky");
        }
        settings
    }

    /// Whether the brokers keep the members of a group apart (KIP-848).
    #[must_use]
    pub fn has_consumer_protocol(&self) -> bool {
        self.access.has_consumer_protocol()
    }

    /// Settings of a consumer that reads committed records, never commits by itself, and joins no group: it only names one.
    #[must_use]
    pub fn consumer(&self, group: &str) -> Settings {
        let mut settings = self.reader(group);
        settings.remove("group.protocol").remove("group.remote.assignor");
        settings
    }

    fn reader(&self, group: &str) -> Settings {
        let defaults = [
            // Defaults that an operator may change: where to begin, and how much to fetch ahead (64 MB a partition is
            // librdkafka's own default, which many partitions turn into gigabytes).
            ("auto.offset.reset", "earliest"),
            ("queued.max.messages.kbytes", "16384"),
            ("queued.min.messages", "20000"),
            ("fetch.message.max.bytes", "2097152"),
            // Once that much waits, the client looks again after this time. Its own default is a second, in which a batch is
            // treated several times over and the reader starves.
            ("fetch.queue.backoff.ms", "10"),
            ("statistics.interval.ms", "1000"),
        ];
        let mut settings = Settings::new(&self.access, &defaults);
        settings.set("group.id", group);
        settings.set("enable.auto.commit", "false");
        settings.set("enable.auto.offset.store", "false");
        settings.set("isolation.level", "read_committed");
        settings.set("enable.partition.eof", "false");
        settings
    }

    /// Settings of a transactional producer.
    #[must_use]
    pub fn producer(&self, transactional_id: &str) -> Settings {
        let defaults = [
            ("linger.ms", "5"),
            ("batch.num.messages", "10000"),
            ("queue.buffering.max.messages", "1000000"),
            ("queue.buffering.max.kbytes", "262144"),
            ("transaction.timeout.ms", "60000"),
        ];
        let mut settings = Settings::new(&self.access, &defaults);
        settings.set("transactional.id", transactional_id);
        settings.set("enable.idempotence", "true");
        // We wait for the transaction, not for each message.
        settings.set("delivery.report.only.error", "true");
        settings
    }

    /// Tries every setting on a client of each kind, without a word to any broker.
    ///
    /// # Errors
    /// When the settings are refused, or a file of theirs cannot be read.
    pub fn try_settings(&self) -> Result<(), KafkaFailure> {
        Access::try_out(self.member("throng"), self.producer("throng"))
    }

    /// A failure of the client while something was done.
    #[must_use]
    pub fn failure(&self, what: &'static str, source: KafkaError) -> KafkaFailure {
        self.access.failure(what, source)
    }

    /// The same, where a broker may say that we have no right to `right`.
    #[must_use]
    pub fn failure_of(&self, what: &'static str, right: impl Into<String>, source: KafkaError) -> KafkaFailure {
        match self.access.failure(what, source) {
            KafkaFailure::Denied { brokers, .. } => KafkaFailure::Denied { brokers, right: right.into() },
            failure => failure,
        }
    }

    /// What is refused now, where it is.
    #[must_use]
    pub fn refused(&self) -> Option<KafkaFailure> {
        self.access.refused()
    }

    /// No answer came within `patience`: because we are refused, or because nobody is there.
    #[must_use]
    pub fn unanswered(&self, patience: Duration) -> KafkaFailure {
        let (brokers, seconds) = (self.brokers.clone(), patience.as_secs());
        self.access.refused().unwrap_or(KafkaFailure::Unreachable { brokers, seconds })
    }

    /// What the cluster says of `topic`. A refusal is heard at once, and ends the wait.
    fn metadata(&self, client: &Asking, topic: &str, patience: Duration) -> Result<Metadata, KafkaFailure> {
        let deadline = Instant::now() + patience;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match client.fetch_metadata(Some(topic), left.min(LOOK).max(Duration::from_millis(1))) {
                Ok(metadata) => return Ok(metadata),
                Err(error) if error.rdkafka_error_code().is_some_and(super::failure::is_denied) => {
                    return Err(self.failure_of("asks", describes(topic), error));
                }
                Err(_) => {}
            }
            // What it has to say waits in its queue.
            while client.poll(Duration::ZERO).is_some() {}
            let refused = self.access.refused();
            let is_final =
                |refused: &KafkaFailure| !matches!(refused, KafkaFailure::Refused { refusal, .. } if refusal.passes());
            match refused {
                Some(refused) if is_final(&refused) || left.is_zero() => return Err(refused),
                _ if left.is_zero() => return Err(self.unanswered(patience)),
                _ => {}
            }
        }
    }

    /// Number of partitions of each topic, in order.
    ///
    /// # Errors
    /// When the cluster does not answer within `patience`, or a topic does not exist.
    pub fn partitions(&self, topics: &[&str], patience: Duration) -> Result<Vec<i32>, KafkaFailure> {
        let client = self.base().set("allow.auto.create.topics", "false").asking("cannot create a client")?;
        let deadline = Instant::now() + patience;
        let of = |name: &&str| {
            let metadata = self.metadata(&client, name, deadline.saturating_duration_since(Instant::now()))?;
            let found = metadata.topics().iter().find(|topic| topic.name() == *name);
            if found.and_then(MetadataTopic::error).is_some_and(|error| super::failure::is_denied(error.into())) {
                return Err(KafkaFailure::Denied { brokers: self.brokers.clone(), right: describes(name) });
            }
            let found = found.filter(|topic| topic.error().is_none());
            let partitions = found.map(|topic| i32::try_from(topic.partitions().len()).unwrap_or(i32::MAX));
            partitions
                .filter(|number| *number > 0)
                .ok_or_else(|| KafkaFailure::MissingTopic { brokers: self.brokers.clone(), topic: (*name).to_owned() })
        };
        let partitions: Result<Vec<i32>, KafkaFailure> = topics.iter().map(of).collect();
        if partitions.is_ok() {
            self.access.hearing.clear();
        }
        partitions
    }
}

/// The right to see a topic.
fn describes(topic: &str) -> String {
    format!("see topic {topic:?} (Describe, which Read and Write include)")
}

#[cfg(test)]
mod tests {
    use super::Cluster;

    #[test]
    fn passwords_reach_every_client() {
        let secrets = [("sasl.password", "canary-5271"), ("ssl.key.password", "canary-5272")];
        let properties = secrets.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let cluster = Cluster::new("localhost:9092", properties);
        for client in [cluster.base(), cluster.consumer("readers"), cluster.producer("writer")] {
            for (name, value) in secrets {
                assert_eq!(client.get(name).as_deref(), Some(value), "{name}");
            }
        }
    }

    /// A password that stands at a wrong name, or is of no use, is in no error.
    #[test]
    fn what_a_property_is_set_to_is_never_repeated() {
        for name in ["sasl.pasword", "security.protocol", "sasl.oauthbearer.client.secret"] {
            let properties = [(name.to_owned(), "canary-6613".to_owned())].into();
            let cluster = Cluster::new("localhost:9", properties);
            let Err(failure) = cluster.try_settings() else { panic!("{name} is taken") };
            let said = format!("{failure} {failure:?}");
            assert!(said.contains(name) && !said.contains("canary-6613"), "{said}");
        }
    }
}
