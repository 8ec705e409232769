//! Kafka clients from throng's settings, configured librdkafka properties, and credentials.

use super::credential_renewal::{self, RenewalGuard};
use super::failure::is_denied;
use super::managed_client::{CredentialDistributor, CredentialReceiver, ManagedClient};
use super::probe::refine_refusal;
use super::refusal::ConnectionRefusal;
use super::refusal_log::{QueryContext, RefusalLog};
use super::reports::ProducerReports;
use super::security_properties::{affected_file_keys, librdkafka_properties};
use crate::security::SecurityConfig;
use rdkafka::ClientConfig;
use rdkafka::admin::AdminClient;
use rdkafka::client::ClientContext;
use rdkafka::config::FromClientConfigAndContext;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::metadata::{Metadata, MetadataTopic};
use rdkafka::producer::BaseProducer;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use zeroize::Zeroizing;

pub use super::failure::KafkaFailure;

const REFUSAL_CHECK_INTERVAL: Duration = Duration::from_millis(250);
const DESCRIBE_RETRY_DELAY: Duration = Duration::from_millis(100);

/// Number of partitions of a topic, `None` if it does not exist, or the reason why it cannot be described.
pub type TopicPartitions = Result<Option<i32>, KafkaFailure>;

/// Client for queries, which only records refusals.
pub type QueryClient = ManagedClient<BaseConsumer<QueryContext>>;

/// Connection settings of a cluster, shared with its clients.
#[derive(Clone)]
pub struct KafkaCluster(Arc<ClusterAccess>);

struct ClusterAccess {
    /// `host:port`, separated by commas.
    brokers: String,
    security: SecurityConfig,
    /// Configuration table of `security`.
    table: &'static str,
    properties: BTreeMap<String, String>,
    recent_refusals: Arc<RefusalLog>,
    clients: Arc<CredentialDistributor>,
    last_password: Mutex<Option<Zeroizing<String>>>,
    #[allow(dead_code, reason = "dropping it ends the renewal thread")]
    renewal_guard: Option<RenewalGuard>,
}

impl fmt::Debug for KafkaCluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Cluster").field(&self.0.brokers).finish()
    }
}

/// Session timeout in milliseconds.
const SESSION_TIMEOUT_MS: &str = "10000";

impl KafkaCluster {
    /// Creates a cluster without authentication.
    pub fn new(brokers: &str, properties: BTreeMap<String, String>) -> Self {
        Self::without_renewal(brokers, properties, &SecurityConfig::default(), "source.security")
    }

    /// Creates a cluster without renewal of credentials, to check settings.
    pub fn without_renewal(
        brokers: &str,
        properties: BTreeMap<String, String>,
        security: &SecurityConfig,
        table: &'static str,
    ) -> Self {
        Self(Arc::new(ClusterAccess::new(brokers, properties, security, table)))
    }

    /// Creates a cluster with credentials from the configuration table `table`.
    pub fn with_security(
        brokers: &str,
        properties: BTreeMap<String, String>,
        security: &SecurityConfig,
        table: &'static str,
    ) -> Result<Self, KafkaFailure> {
        let access = ClusterAccess::new(brokers, properties, security, table);
        let kept =
            credential_renewal::start_renewal(security, &access.clients, &access.recent_refusals).map_err(|_| {
                let told = "cannot start the thread that renews credentials".to_owned();
                KafkaFailure::Refused { brokers: brokers.to_owned(), refusal: ConnectionRefusal::NoToken, told }
            })?;
        Ok(Self(Arc::new(ClusterAccess { renewal_guard: kept, ..access })))
    }

    /// Returns the bootstrap brokers.
    pub fn brokers(&self) -> String {
        self.0.brokers.clone()
    }

    /// Returns the reported refusals.
    pub fn cluster_refusals(&self) -> &RefusalLog {
        &self.0.recent_refusals
    }

    /// Returns true if the brokers assign partitions (KIP-848).
    pub fn has_consumer_protocol(&self) -> bool {
        self.0.properties.get("group.protocol").is_some_and(|protocol| protocol == "consumer")
    }

    fn base(&self) -> ClientSettings {
        ClientSettings::new(self, &[])
    }

    /// Returns the settings of a member of `group` with cooperative or broker-side (KIP-848) assignment.
    pub fn member(&self, group: &str) -> ClientSettings {
        let mut settings = self.reader(group);
        if !self.has_consumer_protocol() {
            settings.set("partition.assignment.strategy", "cooperative-sticky");
            // The default is 45 s.
            if !self.0.properties.contains_key("session.timeout.ms") {
                settings.set("session.timeout.ms", SESSION_TIMEOUT_MS);
            }
        }
        settings
    }

    /// Returns the settings of a consumer that only names `group`.
    pub fn consumer(&self, group: &str) -> ClientSettings {
        let mut settings = self.reader(group);
        settings.remove("group.protocol").remove("group.remote.assignor");
        settings
    }

    fn reader(&self, group: &str) -> ClientSettings {
        let defaults = [
            // librdkafka prefetches 64 MB per partition by default.
            ("auto.offset.reset", "earliest"),
            ("queued.max.messages.kbytes", "16384"),
            ("queued.min.messages", "20000"),
            ("fetch.message.max.bytes", "2097152"),
            // The default of one second lets the reader starve.
            ("fetch.queue.backoff.ms", "10"),
            ("statistics.interval.ms", "1000"),
        ];
        let mut settings = ClientSettings::new(self, &defaults);
        settings.set("group.id", group);
        settings.set("enable.auto.commit", "false");
        settings.set("enable.auto.offset.store", "false");
        settings.set("isolation.level", "read_committed");
        settings.set("enable.partition.eof", "false");
        settings
    }

    pub(super) fn administrator(
        &self,
        what: &'static str,
    ) -> Result<ManagedClient<AdminClient<QueryContext>>, KafkaFailure> {
        let settings = self.base();
        settings.create(what, QueryContext(settings.shared_refusals()))
    }

    /// Returns the settings of a transactional producer.
    pub fn producer(&self, transactional_id: &str) -> ClientSettings {
        let defaults = [
            ("linger.ms", "5"),
            ("batch.num.messages", "10000"),
            ("queue.buffering.max.messages", "1000000"),
            ("queue.buffering.max.kbytes", "262144"),
            ("transaction.timeout.ms", "60000"),
        ];
        let mut settings = ClientSettings::new(self, &defaults);
        settings.set("transactional.id", transactional_id);
        settings.set("enable.idempotence", "true");
        // The daemon waits for the transaction only.
        settings.set("delivery.report.only.error", "true");
        settings
    }

    /// Checks every setting by creating clients without a connection.
    pub fn try_settings(&self) -> Result<(), KafkaFailure> {
        let (mut consumer, mut producer) = (self.member("throng"), self.producer("throng"));
        drop(consumer.remove("bootstrap.servers").query_client("cannot use the settings")?);
        let reports = ProducerReports::new(producer.shared_refusals(), &[]);
        let _producer: ManagedClient<BaseProducer<ProducerReports>> =
            producer.remove("bootstrap.servers").create("cannot use the settings", reports)?;
        Ok(())
    }

    /// Returns the most specific reason, and its description.
    pub fn describe_refusal(&self, refusal: ConnectionRefusal) -> (ConnectionRefusal, String) {
        let refusal = refine_refusal(refusal, &self.0.brokers, &self.0.security);
        (refusal, refusal.remedy_message(self.0.table, &self.0.security))
    }

    /// Converts a client error of an action.
    pub fn failure(&self, what: &'static str, source: KafkaError) -> KafkaFailure {
        let brokers = self.brokers();
        match source {
            // The client's error contains the value, perhaps a password.
            KafkaError::ClientConfig(_, _, name, _) => KafkaFailure::Setting { brokers, name },
            KafkaError::ClientCreation(words) if self.0.security.protocol.is_encrypted() => {
                KafkaFailure::Files { brokers, keys: affected_file_keys(&words, self.0.table) }
            }
            source => match source.rdkafka_error_code().filter(|code| is_denied(*code)) {
                Some(code) => {
                    KafkaFailure::Denied { brokers, right: format!("perform this request ({what}, {code:?})") }
                }
                None => KafkaFailure::Client { brokers, what, source },
            },
        }
    }

    /// Converts an error like [`failure`](Self::failure), with the denied permission.
    pub fn failure_of(&self, what: &'static str, right: impl Into<String>, source: KafkaError) -> KafkaFailure {
        match self.failure(what, source) {
            KafkaFailure::Denied { brokers, .. } => KafkaFailure::Denied { brokers, right: right.into() },
            failure => failure,
        }
    }

    /// Returns the current refusal as a failure.
    pub fn current_refusal(&self) -> Option<KafkaFailure> {
        let (refusal, told) = self.describe_refusal(self.0.recent_refusals.refusal()?);
        Some(KafkaFailure::Refused { brokers: self.brokers(), refusal, told })
    }

    /// Returns the current refusal, or an unreachable cluster after `patience`.
    pub fn no_answer_failure(&self, patience: Duration) -> KafkaFailure {
        let (brokers, seconds) = (self.brokers(), patience.as_secs());
        self.current_refusal().unwrap_or(KafkaFailure::Unreachable { brokers, seconds })
    }

    fn metadata(&self, client: &QueryClient, topic: &str, patience: Duration) -> Result<Metadata, KafkaFailure> {
        let deadline = Instant::now() + patience;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match client.fetch_metadata(Some(topic), left.min(REFUSAL_CHECK_INTERVAL).max(Duration::from_millis(1))) {
                Ok(metadata) => return Ok(metadata),
                Err(error) if error.rdkafka_error_code().is_some_and(is_denied) => {
                    return Err(self.failure_of("asks", describe_permission(topic), error));
                }
                Err(_) => {}
            }
            // Serves queued error callbacks.
            while client.poll(Duration::ZERO).is_some() {}
            let refused = self.current_refusal();
            let is_final = |refused: &KafkaFailure| !matches!(refused, KafkaFailure::Refused { refusal, .. } if refusal.is_temporary());
            match refused {
                Some(refused) if is_final(&refused) || left.is_zero() => return Err(refused),
                _ if left.is_zero() => return Err(self.no_answer_failure(patience)),
                _ => {}
            }
        }
    }

    /// Returns the number of partitions of each topic, `None` for a topic that does not exist. Waits for topics with a
    /// temporary error, such as a missing leader, until `patience` is over. A topic that cannot be described has its
    /// own failure: [`KafkaFailure::Denied`] or [`KafkaFailure::TopicUnavailable`].
    ///
    /// # Errors
    /// Without an answer.
    pub fn describe_topics(&self, topics: &[&str], patience: Duration) -> Result<Vec<TopicPartitions>, KafkaFailure> {
        let client = self.base().set("allow.auto.create.topics", "false").query_client("cannot create a client")?;
        let deadline = Instant::now() + patience;
        let describe = |name: &&str| match self.describe_topic(&client, name, deadline) {
            Err(failure @ (KafkaFailure::Denied { .. } | KafkaFailure::TopicUnavailable { .. })) => Ok(Err(failure)),
            answer => answer.map(Ok),
        };
        let mut answers = topics.iter().map(describe).collect::<Result<Vec<TopicPartitions>, KafkaFailure>>()?;
        while answers.iter().any(is_temporary) && Instant::now() < deadline {
            std::thread::sleep(DESCRIBE_RETRY_DELAY);
            for (name, answer) in topics.iter().zip(&mut answers) {
                if is_temporary(answer) {
                    *answer = describe(name)?;
                }
            }
        }
        self.0.recent_refusals.clear();
        Ok(answers)
    }

    fn describe_topic(&self, client: &QueryClient, name: &str, deadline: Instant) -> Result<Option<i32>, KafkaFailure> {
        // A topic is queried at least once, even if others took all of the time.
        let left = deadline.saturating_duration_since(Instant::now()).max(REFUSAL_CHECK_INTERVAL);
        let metadata = self.metadata(client, name, left)?;
        let found = metadata.topics().iter().find(|topic| topic.name() == name);
        match found.and_then(MetadataTopic::error).map(RDKafkaErrorCode::from) {
            None => {
                let partitions = found.map(|topic| i32::try_from(topic.partitions().len()).unwrap_or(i32::MAX));
                Ok(partitions.filter(|number| *number > 0))
            }
            Some(RDKafkaErrorCode::UnknownTopicOrPartition) => Ok(None),
            Some(code) if is_denied(code) => {
                Err(KafkaFailure::Denied { brokers: self.brokers(), right: describe_permission(name) })
            }
            Some(code) => Err(KafkaFailure::TopicUnavailable { brokers: self.brokers(), topic: name.to_owned(), code }),
        }
    }

    /// Returns the number of partitions of each topic, `None` for a topic that does not exist.
    ///
    /// # Errors
    /// Without an answer, or if a topic cannot be described.
    pub fn existing_partitions(&self, topics: &[&str], patience: Duration) -> Result<Vec<Option<i32>>, KafkaFailure> {
        self.describe_topics(topics, patience)?.into_iter().collect()
    }

    /// Returns the number of partitions of each topic.
    ///
    /// # Errors
    /// Without an answer, or if topics do not exist: the error names all of them.
    pub fn partitions(&self, topics: &[&str], patience: Duration) -> Result<Vec<i32>, KafkaFailure> {
        let found = self.existing_partitions(topics, patience)?;
        let absent = topics.iter().zip(&found).filter(|(_, partitions)| partitions.is_none());
        let missing: Vec<String> = absent.map(|(name, _)| (*name).to_owned()).collect();
        if missing.is_empty() {
            return Ok(found.into_iter().flatten().collect());
        }
        Err(KafkaFailure::MissingTopics { brokers: self.brokers(), topics: missing })
    }
}

impl ClusterAccess {
    fn new(
        brokers: &str,
        properties: BTreeMap<String, String>,
        security: &SecurityConfig,
        table: &'static str,
    ) -> Self {
        Self {
            brokers: brokers.to_owned(),
            security: security.clone(),
            table,
            properties,
            recent_refusals: Arc::new(RefusalLog::new(security.clone())),
            clients: Arc::default(),
            last_password: Mutex::default(),
            renewal_guard: None,
        }
    }
}

/// Settings of one client.
pub struct ClientSettings {
    config: ClientConfig,
    cluster: KafkaCluster,
}

impl ClientSettings {
    /// The security table overrides the operator's properties.
    fn new(cluster: &KafkaCluster, defaults: &[(&str, &str)]) -> Self {
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

    /// Sets a property over the operator's value.
    pub fn set(&mut self, name: &str, value: &str) -> &mut Self {
        self.config.set(name, value);
        self
    }

    /// Removes a property: the client's default applies.
    pub fn remove(&mut self, name: &str) -> &mut Self {
        self.config.remove(name);
        self
    }

    /// Reads the files again.
    fn with_credentials(&self) -> Result<ClientConfig, KafkaFailure> {
        let ClusterAccess { security, table, brokers, last_password: known, .. } = &*self.cluster.0;
        let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
        let mut config = self.config.clone();
        for (name, value) in librdkafka_properties(security, table, brokers, known.as_ref())? {
            config.set(name, value.as_str());
            if name == "sasl.password" {
                *known = Some(value);
            }
        }
        Ok(config)
    }

    /// Returns the reported refusals.
    pub fn shared_refusals(&self) -> Arc<RefusalLog> {
        Arc::clone(&self.cluster.0.recent_refusals)
    }

    /// Creates a client with the callbacks of `context`.
    pub fn create<C, T>(&self, what: &'static str, context: C) -> Result<ManagedClient<T>, KafkaFailure>
    where
        C: ClientContext,
        T: FromClientConfigAndContext<C> + CredentialReceiver + 'static,
    {
        let made = self.with_credentials()?.create_with_context(context);
        Ok(self.cluster.0.clients.register_client(made.map_err(|source| self.cluster.failure(what, source))?))
    }

    /// Creates a consumer for queries.
    pub fn query_client(&self, what: &'static str) -> Result<QueryClient, KafkaFailure> {
        self.create(what, QueryContext(self.shared_refusals()))
    }

    #[cfg(test)]
    fn get(&self, name: &str) -> Option<String> {
        self.with_credentials().ok()?.get(name).map(str::to_owned)
    }
}

fn is_temporary(answer: &TopicPartitions) -> bool {
    answer.as_ref().is_err_and(KafkaFailure::may_pass_later)
}

fn describe_permission(topic: &str) -> String {
    format!("describe topic {topic:?} (Describe, included in Read and Write)")
}

#[cfg(test)]
mod tests {
    use super::{KafkaCluster, KafkaFailure};
    use rdkafka::bindings::rd_kafka_resp_err_t as Refusal;
    use rdkafka::mocking::MockCluster;
    use std::collections::BTreeMap;
    use std::time::Duration;

    #[test]
    fn topic_error_is_reported_for_its_topic_only() {
        let broker = MockCluster::new(1).expect("librdkafka's mock cluster");
        broker.create_topic("present", 3, 1).expect("a topic");
        for (topic, error) in [
            ("unknown", Refusal::RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART),
            ("denied", Refusal::RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED),
            ("leaderless", Refusal::RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE),
        ] {
            broker.create_topic(topic, 1, 1).expect("a topic");
            broker.topic_error(topic, error).expect("a valid name");
        }
        let cluster = KafkaCluster::new(&broker.bootstrap_servers(), BTreeMap::new());
        let names = ["leaderless", "denied", "unknown", "present"];
        let answers = cluster.describe_topics(&names, Duration::from_secs(3)).expect("the broker answers");
        let [leaderless, denied, unknown, present]: [_; 4] = answers.try_into().expect("four answers");
        let failure = leaderless.expect_err("no leader").to_string();
        assert!(failure.contains("\"leaderless\"") && failure.contains("LeaderNotAvailable"), "{failure}");
        assert!(matches!(denied, Err(KafkaFailure::Denied { .. })), "{denied:?}");
        assert!(matches!((&unknown, &present), (Ok(None), Ok(Some(3)))), "{unknown:?} {present:?}");
        let failure = cluster.existing_partitions(&["present", "denied"], Duration::from_secs(3));
        assert!(matches!(failure, Err(KafkaFailure::Denied { .. })), "{failure:?}");
        let found = std::thread::scope(|threads| {
            let asked = threads.spawn(|| cluster.existing_partitions(&["leaderless"], Duration::from_secs(60)));
            std::thread::sleep(Duration::from_millis(500));
            broker.topic_error("leaderless", Refusal::RD_KAFKA_RESP_ERR_NO_ERROR).expect("a valid name");
            asked.join().expect("no panic")
        });
        assert!(matches!(found.as_deref(), Ok([Some(1)])), "a leader is waited for: {found:?}");
    }

    #[test]
    fn secret_properties_reach_every_client() {
        let secrets = [("sasl.password", "canary-5271"), ("ssl.key.password", "canary-5272")];
        let properties = secrets.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let cluster = KafkaCluster::new("localhost:9092", properties);
        for client in [cluster.base(), cluster.consumer("readers"), cluster.producer("writer")] {
            for (name, value) in secrets {
                assert_eq!(client.get(name).as_deref(), Some(value), "{name}");
            }
        }
    }

    #[test]
    fn rejected_property_value_is_not_in_error() {
        for name in ["sasl.pasword", "security.protocol", "sasl.oauthbearer.client.secret"] {
            let properties = [(name.to_owned(), "canary-6613".to_owned())].into();
            let cluster = KafkaCluster::new("localhost:9", properties);
            let Err(failure) = cluster.try_settings() else { panic!("{name} is taken") };
            let said = format!("{failure} {failure:?}");
            assert!(said.contains(name) && !said.contains("canary-6613"), "{said}");
        }
    }
}
