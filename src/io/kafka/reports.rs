//! What the client tells of its transaction while it runs.

use super::hearing::Hearing;
use rdkafka::client::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{DeliveryResult, Message};
use rdkafka::producer::{NoCustomPartitioner, ProducerContext};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Notes that the transaction, the only one of its client, can only be aborted.
///
/// The client has no question for this: it answers a commit with it, but only once every message is settled, and those that
/// it holds back in a failed transaction are not, for as long as a minute.
pub struct Reports {
    failed: AtomicBool,
    hearing: Arc<Hearing>,
    /// The topics that may be written to.
    topics: Vec<String>,
    /// The one of them that we have no right to.
    denied: Mutex<Option<String>>,
}

impl Reports {
    /// Reports of a client that writes to `topics`.
    pub fn new(hearing: Arc<Hearing>, topics: &[String]) -> Self {
        Self { failed: AtomicBool::new(false), hearing, topics: topics.to_vec(), denied: Mutex::default() }
    }

    /// The topic that we have no right to write to, where that is why the transaction has failed.
    pub fn denied(&self) -> Option<String> {
        self.denied.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Notes the topic that the words name, among those that we know.
    fn note_denied(&self, names: impl Fn(&str) -> bool) {
        if let Some(named) = self.topics.iter().find(|topic| names(topic)) {
            *self.denied.lock().unwrap_or_else(PoisonError::into_inner) = Some(named.clone());
        }
    }

    /// Whether the transaction can only be aborted.
    pub fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Acquire)
    }
}

impl ClientContext for Reports {
    /// The lines themselves may quote keys, hosts and settings: none is passed on.
    fn log(&self, _level: RDKafkaLogLevel, facility: &str, message: &str) {
        if message.contains("Topic authorization failed") {
            self.note_denied(|topic| message.contains(&format!("\"{topic}\"")));
        }
        if facility == "TXNERR" {
            self.failed.store(true, Ordering::Release);
        }
    }

    /// Connections come and go; what becomes of the transaction is told by its own steps.
    fn error(&self, error: KafkaError, reason: &str) {
        self.hearing.hear(&error, reason);
    }
}

impl ProducerContext<NoCustomPartitioner> for Reports {
    type DeliveryOpaque = ();

    fn delivery(&self, result: &DeliveryResult<'_>, (): ()) {
        if let Err((error, message)) = result {
            if error.rdkafka_error_code() == Some(RDKafkaErrorCode::TopicAuthorizationFailed) {
                self.note_denied(|topic| topic == message.topic());
            }
            self.failed.store(true, Ordering::Release);
        }
    }
}
