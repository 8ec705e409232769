//! The one door: every client of a cluster is made here, says who it is as the configuration does, and hears what is refused.

use super::failure::{KafkaFailure, is_denied};
use super::hearing::{Hearing, Quiet};
use super::keeper::{self, Kept};
use super::live::{Clients, Live};
use super::native::{files_meant, properties};
use super::probe::closer;
use super::refusal::Refusal;
use super::reports::Reports;
use crate::config::Security;
use rdkafka::ClientConfig;
use rdkafka::admin::AdminClient;
use rdkafka::consumer::{BaseConsumer, ConsumerContext};
use rdkafka::error::KafkaError;
use rdkafka::producer::{BaseProducer, ProducerContext};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use zeroize::Zeroizing;

/// A client that asks, and hears nothing but refusals.
pub type Asking = Live<BaseConsumer<Quiet>>;

/// How a cluster lets us in.
pub(super) struct Access {
    pub brokers: String,
    pub security: Security,
    /// The table of the configuration that `security` stands in.
    pub table: &'static str,
    properties: BTreeMap<String, String>,
    pub hearing: Arc<Hearing>,
    clients: Arc<Clients>,
    /// The password of the last client.
    known: Mutex<Option<Zeroizing<String>>>,
    #[allow(dead_code, reason = "the keeper ends with it")]
    kept: Option<Kept>,
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Access").field("brokers", &self.brokers).finish_non_exhaustive()
    }
}

impl Access {
    /// How `brokers` let us in, with keys that nobody renews: for trying settings out, and for clusters that ask for none.
    #[must_use]
    pub fn unkept(
        brokers: &str,
        properties: BTreeMap<String, String>,
        security: &Security,
        table: &'static str,
    ) -> Self {
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

    /// How `brokers` let us in: as `security` says, the table `table` of the configuration, and `properties` besides.
    ///
    /// # Errors
    /// When there is no thread for the keys that are to be kept.
    pub fn new(
        brokers: &str,
        properties: BTreeMap<String, String>,
        security: &Security,
        table: &'static str,
    ) -> Result<Self, KafkaFailure> {
        let access = Self::unkept(brokers, properties, security, table);
        let kept = keeper::keep(security, &access.clients, &access.hearing).map_err(|_| {
            let told = "there is no thread to keep its keys".to_owned();
            KafkaFailure::Refused { brokers: brokers.to_owned(), refusal: Refusal::NoToken, told }
        })?;
        Ok(Self { kept, ..access })
    }

    /// Tries settings on the client's own checks, without a word to any broker.
    ///
    /// # Errors
    /// When one is refused, or a file of theirs cannot be read.
    pub fn try_out(mut consumer: Settings, mut producer: Settings) -> Result<(), KafkaFailure> {
        // A client that is told of no broker connects to none.
        consumer.config.remove("bootstrap.servers");
        producer.config.remove("bootstrap.servers");
        drop(consumer.asking("cannot use the settings")?);
        drop(producer.producer("cannot use the settings", Reports::new(producer.hearing(), &[]))?);
        Ok(())
    }

    /// Whether the brokers keep the members of a group apart.
    pub fn has_consumer_protocol(&self) -> bool {
        self.properties.get("group.protocol").is_some_and(|protocol| protocol == "consumer")
    }

    /// What is refused now, as a failure.
    pub fn refused(&self) -> Option<KafkaFailure> {
        let (refusal, told) = self.told(self.hearing.refusal()?);
        Some(KafkaFailure::Refused { brokers: self.brokers.clone(), refusal, told })
    }

    /// A refusal more closely, where the brokers say more when they are asked, and in words.
    pub fn told(&self, refusal: Refusal) -> (Refusal, String) {
        let refusal = closer(refusal, &self.brokers, &self.security);
        (refusal, refusal.told(self.table, &self.security))
    }

    /// A failure of the client while something was done.
    pub fn failure(&self, what: &'static str, source: KafkaError) -> KafkaFailure {
        let brokers = self.brokers.clone();
        match source {
            // The client repeats the value, which may be a password.
            KafkaError::ClientConfig(_, _, name, _) => KafkaFailure::Setting { brokers, name },
            KafkaError::ClientCreation(words) if self.security.protocol.is_encrypted() => {
                KafkaFailure::Files { brokers, keys: files_meant(&words, self.table) }
            }
            source => match source.rdkafka_error_code().filter(|code| is_denied(*code)) {
                Some(code) => KafkaFailure::Denied { brokers, right: format!("what it {what} for ({code:?})") },
                None => KafkaFailure::Client { brokers, what, source },
            },
        }
    }
}

/// The settings of one client.
pub struct Settings {
    config: ClientConfig,
    access: Arc<Access>,
}

impl Settings {
    /// Settings with these defaults, which the operator's properties override, and which the table of security overrides.
    pub(super) fn new(access: &Arc<Access>, defaults: &[(&str, &str)]) -> Self {
        let mut config = ClientConfig::new();
        for (name, value) in defaults {
            config.set(*name, *value);
        }
        config.set("client.id", "throng");
        for (name, value) in &access.properties {
            config.set(name, value);
        }
        config.set("bootstrap.servers", &access.brokers);
        Self { config, access: Arc::clone(access) }
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
        let Access { security, table, brokers, known, .. } = &*self.access;
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
        Arc::clone(&self.access.hearing)
    }

    /// A consumer that asks, and has no more to say.
    ///
    /// # Errors
    /// When the client refuses the settings, or a file of theirs cannot be read.
    pub fn asking(&self, what: &'static str) -> Result<Asking, KafkaFailure> {
        self.consumer(what, Quiet(self.hearing()))
    }

    /// A consumer with callbacks of its own.
    ///
    /// # Errors
    /// As [`asking`](Self::asking).
    pub fn consumer<C: ConsumerContext + 'static>(
        &self,
        what: &'static str,
        context: C,
    ) -> Result<Live<BaseConsumer<C>>, KafkaFailure> {
        let made = self.known()?.create_with_context(context);
        Ok(self.access.clients.admit(made.map_err(|source| self.access.failure(what, source))?))
    }

    /// A producer with callbacks of its own.
    ///
    /// # Errors
    /// As [`asking`](Self::asking).
    pub fn producer<C: ProducerContext + 'static>(
        &self,
        what: &'static str,
        context: C,
    ) -> Result<Live<BaseProducer<C>>, KafkaFailure> {
        let made = self.known()?.create_with_context(context);
        Ok(self.access.clients.admit(made.map_err(|source| self.access.failure(what, source))?))
    }

    /// A client for topics and groups.
    ///
    /// # Errors
    /// As [`asking`](Self::asking).
    pub fn admin(&self, what: &'static str) -> Result<Live<AdminClient<Quiet>>, KafkaFailure> {
        let made = self.known()?.create_with_context(Quiet(self.hearing()));
        Ok(self.access.clients.admit(made.map_err(|source| self.access.failure(what, source))?))
    }

    #[cfg(test)]
    pub(super) fn get(&self, name: &str) -> Option<String> {
        self.known().ok()?.get(name).map(str::to_owned)
    }
}
