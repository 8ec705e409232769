//! Creates all Kafka clients: our settings, the properties that the operator passes through, and the credentials of the configuration.

use super::failure::is_denied;
use super::hearing::{Hearing, Quiet};
use super::keeper::{self, Kept};
use super::live::{Clients, Keyed, Live};
use super::native::{files_meant, properties};
use super::probe::closer;
use super::refusal::Refusal;
use super::reports::Reports;
use crate::config::Security;
use rdkafka::ClientConfig;
use rdkafka::admin::AdminClient;
use rdkafka::client::ClientContext;
use rdkafka::config::FromClientConfigAndContext;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::metadata::{Metadata, MetadataTopic};
use rdkafka::producer::BaseProducer;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use zeroize::Zeroizing;

pub use super::failure::KafkaFailure;

/// How long a question may wait before it is looked whether we are refused.
const LOOK: Duration = Duration::from_millis(250);

/// A client that asks, and hears nothing but refusals.
pub type Asking = Live<BaseConsumer<Quiet>>;

/// How to reach a cluster.
#[derive(Clone)]
pub struct Cluster(Arc<Access>);

/// Credentials of a cluster, and its clients that are alive.
struct Access {
    /// The brokers to begin with, as the client is told: `host:port`, separated by commas.
    brokers: String,
    security: Security,
    /// The table of the configuration that `security` stands in.
    table: &'static str,
    /// Those of librdkafka in the configuration; the ones that we own were refused there.
    properties: BTreeMap<String, String>,
    hearing: Arc<Hearing>,
    clients: Arc<Clients>,
    /// The password of the last client.
    known: Mutex<Option<Zeroizing<String>>>,
    #[allow(dead_code, reason = "the keeper ends with it")]
    kept: Option<Kept>,
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Cluster").field(&self.0.brokers).finish()
    }
}

/// How long a group waits for a member that does not answer.
const SESSION: &str = "10000";

impl Cluster {
    /// A cluster that asks nobody who they are.
    pub fn new(brokers: &str, properties: BTreeMap<String, String>) -> Self {
        Self::unkept(brokers, properties, &Security::default(), "source.security")
    }

    /// A cluster whose credentials are not renewed: for trying settings out.
    pub fn unkept(
        brokers: &str,
        properties: BTreeMap<String, String>,
        security: &Security,
        table: &'static str,
    ) -> Self {
        Self(Arc::new(Access::new(brokers, properties, security, table)))
    }

    /// A cluster to which we are who `security` says, the table `table` of the configuration.
    pub fn secured(
        brokers: &str,
        properties: BTreeMap<String, String>,
        security: &Security,
        table: &'static str,
    ) -> Result<Self, KafkaFailure> {
        let access = Access::new(brokers, properties, security, table);
        let kept = keeper::keep(security, &access.clients, &access.hearing).map_err(|_| {
            let told = "there is no thread to keep its keys".to_owned();
            KafkaFailure::Refused { brokers: brokers.to_owned(), refusal: Refusal::NoToken, told }
        })?;
        Ok(Self(Arc::new(Access { kept, ..access })))
    }

    /// The brokers to begin with.
    pub fn brokers(&self) -> String {
        self.0.brokers.clone()
    }

    /// What is heard of refusals.
    pub fn hearing(&self) -> &Hearing {
        &self.0.hearing
    }

    /// Whether the brokers keep the members of a group apart (KIP-848).
    pub fn has_consumer_protocol(&self) -> bool {
        self.0.properties.get("group.protocol").is_some_and(|protocol| protocol == "consumer")
    }

    /// Settings shared by all our clients: a name, and the properties passed through.
    fn base(&self) -> Settings {
        Settings::new(self, &[])
    }

    /// Settings of a member of `group`, which reads committed records and never commits by itself. The members are kept apart
    /// cooperatively: by one of them, or by the brokers where that is configured (KIP-848).
    pub fn member(&self, group: &str) -> Settings {
        let mut settings = self.reader(group);
        if !self.has_consumer_protocol() {
            settings.set("partition.assignment.strategy", "cooperative-sticky");
            // The client's own default is 45 s, in which nobody reads the partitions of a member that was killed.
            if !self.0.properties.contains_key("session.timeout.ms") {
                settings.set("session.timeout.ms", SESSION);
            }
        }
        settings
    }

    /// Settings of a consumer that reads committed records, never commits by itself, and joins no group: it only names one.
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
        let mut settings = Settings::new(self, &defaults);
        settings.set("group.id", group);
        settings.set("enable.auto.commit", "false");
        settings.set("enable.auto.offset.store", "false");
        settings.set("isolation.level", "read_committed");
        settings.set("enable.partition.eof", "false");
        settings
    }

    /// A client that asks for settings.
    pub(super) fn administrator(&self, what: &'static str) -> Result<Live<AdminClient<Quiet>>, KafkaFailure> {
        let settings = self.base();
        settings.create(what, Quiet(settings.hearing()))
    }

    /// Settings of a transactional producer.
    pub fn producer(&self, transactional_id: &str) -> Settings {
        let defaults = [
            ("linger.ms", "5"),
            ("batch.num.messages", "10000"),
            ("queue.buffering.max.messages", "1000000"),
            ("queue.buffering.max.kbytes", "262144"),
            ("transaction.timeout.ms", "60000"),
        ];
        let mut settings = Settings::new(self, &defaults);
        settings.set("transactional.id", transactional_id);
        settings.set("enable.idempotence", "true");
        // We wait for the transaction, not for each message.
        settings.set("delivery.report.only.error", "true");
        settings
    }

    /// Tries every setting on a client of each kind, without a word to any broker.
    pub fn try_settings(&self) -> Result<(), KafkaFailure> {
        let (mut consumer, mut producer) = (self.member("throng"), self.producer("throng"));
        // A client that is told of no broker connects to none.
        drop(consumer.remove("bootstrap.servers").asking("cannot use the settings")?);
        let reports = Reports::new(producer.hearing(), &[]);
        let _producer: Live<BaseProducer<Reports>> =
            producer.remove("bootstrap.servers").create("cannot use the settings", reports)?;
        Ok(())
    }

    /// A refusal more closely, where the brokers say more when they are asked, and in words.
    pub fn told(&self, refusal: Refusal) -> (Refusal, String) {
        let refusal = closer(refusal, &self.0.brokers, &self.0.security);
        (refusal, refusal.told(self.0.table, &self.0.security))
    }

    /// A failure of the client while something was done.
    pub fn failure(&self, what: &'static str, source: KafkaError) -> KafkaFailure {
        let brokers = self.brokers();
        match source {
            // The client repeats the value, which may be a password.
            KafkaError::ClientConfig(_, _, name, _) => KafkaFailure::Setting { brokers, name },
            KafkaError::ClientCreation(words) if self.0.security.protocol.is_encrypted() => {
                KafkaFailure::Files { brokers, keys: files_meant(&words, self.0.table) }
            }
            source => match source.rdkafka_error_code().filter(|code| is_denied(*code)) {
                Some(code) => KafkaFailure::Denied { brokers, right: format!("what it {what} for ({code:?})") },
                None => KafkaFailure::Client { brokers, what, source },
            },
        }
    }

    /// The same, where a broker may say that we have no right to `right`.
    pub fn failure_of(&self, what: &'static str, right: impl Into<String>, source: KafkaError) -> KafkaFailure {
        match self.failure(what, source) {
            KafkaFailure::Denied { brokers, .. } => KafkaFailure::Denied { brokers, right: right.into() },
            failure => failure,
        }
    }

    /// What is refused now, as a failure.
    pub fn refused(&self) -> Option<KafkaFailure> {
        let (refusal, told) = self.told(self.0.hearing.refusal()?);
        Some(KafkaFailure::Refused { brokers: self.brokers(), refusal, told })
    }

    /// No answer came within `patience`: because we are refused, or because nobody is there.
    pub fn unanswered(&self, patience: Duration) -> KafkaFailure {
        let (brokers, seconds) = (self.brokers(), patience.as_secs());
        self.refused().unwrap_or(KafkaFailure::Unreachable { brokers, seconds })
    }

    /// What the cluster says of `topic`. A refusal is heard at once, and ends the wait.
    fn metadata(&self, client: &Asking, topic: &str, patience: Duration) -> Result<Metadata, KafkaFailure> {
        let deadline = Instant::now() + patience;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match client.fetch_metadata(Some(topic), left.min(LOOK).max(Duration::from_millis(1))) {
                Ok(metadata) => return Ok(metadata),
                Err(error) if error.rdkafka_error_code().is_some_and(is_denied) => {
                    return Err(self.failure_of("asks", describes(topic), error));
                }
                Err(_) => {}
            }
            // What it has to say waits in its queue.
            while client.poll(Duration::ZERO).is_some() {}
            let refused = self.refused();
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
            if found.and_then(MetadataTopic::error).is_some_and(|error| is_denied(error.into())) {
                return Err(KafkaFailure::Denied { brokers: self.brokers(), right: describes(name) });
            }
            let found = found.filter(|topic| topic.error().is_none());
            let partitions = found.map(|topic| i32::try_from(topic.partitions().len()).unwrap_or(i32::MAX));
            partitions
                .filter(|number| *number > 0)
                .ok_or_else(|| KafkaFailure::MissingTopic { brokers: self.brokers(), topic: (*name).to_owned() })
        };
        let partitions: Result<Vec<i32>, KafkaFailure> = topics.iter().map(of).collect();
        if partitions.is_ok() {
            self.0.hearing.clear();
        }
        partitions
    }
}

impl Access {
    fn new(brokers: &str, properties: BTreeMap<String, String>, security: &Security, table: &'static str) -> Self {
        Self {
            brokers: brokers.to_owned(),
            security: security.clone(),
            table,
            properties,
            hearing: Arc::new(Hearing::new(security.clone())),
            clients: Arc::default(),
            known: Mutex::default(),
            kept: None,
        }
    }
}

/// The settings of one client.
pub struct Settings {
    config: ClientConfig,
    cluster: Cluster,
}

impl Settings {
    /// Settings with these defaults, which the operator's properties override, and which the table of security overrides.
    fn new(cluster: &Cluster, defaults: &[(&str, &str)]) -> Self {
        let mut config = ClientConfig::new();
        for (name, value) in defaults {
            config.set(*name, *value);
        }
        config.set("client.id", "throng");
        for (name, value) in &cluster.0.properties {
            config.set(name, value);
        }
        config.set("bootstrap.servers", &cluster.0.brokers);
        Self { config, cluster: cluster.clone() }
    }

    /// Sets a property, whatever the operator has set.
    pub fn set(&mut self, name: &str, value: &str) -> &mut Self {
        self.config.set(name, value);
        self
    }

    /// Leaves a property to the client's own default.
    pub fn remove(&mut self, name: &str) -> &mut Self {
        self.config.remove(name);
        self
    }

    /// The settings with who we are, as the files say at the moment.
    fn known(&self) -> Result<ClientConfig, KafkaFailure> {
        let Access { security, table, brokers, known, .. } = &*self.cluster.0;
        let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
        let mut config = self.config.clone();
        for (name, value) in properties(security, table, brokers, known.as_ref())? {
            config.set(name, value.as_str());
            if name == "sasl.password" {
                *known = Some(value);
            }
        }
        Ok(config)
    }

    /// What is heard of refusals.
    pub fn hearing(&self) -> Arc<Hearing> {
        Arc::clone(&self.cluster.0.hearing)
    }

    /// A client with callbacks of its own.
    pub fn create<C, T>(&self, what: &'static str, context: C) -> Result<Live<T>, KafkaFailure>
    where
        C: ClientContext,
        T: FromClientConfigAndContext<C> + Keyed + 'static,
    {
        let made = self.known()?.create_with_context(context);
        Ok(self.cluster.0.clients.admit(made.map_err(|source| self.cluster.failure(what, source))?))
    }

    /// A consumer that asks, and has no more to say.
    pub fn asking(&self, what: &'static str) -> Result<Asking, KafkaFailure> {
        self.create(what, Quiet(self.hearing()))
    }

    #[cfg(test)]
    fn get(&self, name: &str) -> Option<String> {
        self.known().ok()?.get(name).map(str::to_owned)
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
