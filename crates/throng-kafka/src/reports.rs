//! Producer callbacks that record whether the running transaction has failed.

use super::refusal_log::RefusalLog;
use rdkafka::client::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{DeliveryResult, Message};
use rdkafka::producer::{NoCustomPartitioner, ProducerContext};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Failure state of a transaction, the only one of its client.
///
/// The client offers no query for this state. It reports the failure as the result of a commit, but only when no
/// message is in flight. Messages that it holds back in a failed transaction stay in flight for up to a minute.
pub struct ProducerReports {
    failed: AtomicBool,
    hearing: Arc<RefusalLog>,
    /// Topics that the client writes to.
    topics: Vec<String>,
    /// The topic of these that lacks the permission to write.
    denied: Mutex<Option<String>>,
}

impl ProducerReports {
    /// Creates the reports of a client that writes to `topics`.
    pub fn new(hearing: Arc<RefusalLog>, topics: &[String]) -> Self {
        Self { failed: AtomicBool::new(false), hearing, topics: topics.to_vec(), denied: Mutex::default() }
    }

    /// Returns the topic that lacks the permission to write, if that made the transaction fail.
    pub fn denied(&self) -> Option<String> {
        self.denied.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Records the topic that an error names, if it is one of `topics`.
    fn note_denied(&self, names: impl Fn(&str) -> bool) {
        if let Some(named) = self.topics.iter().find(|topic| names(topic)) {
            *self.denied.lock().unwrap_or_else(PoisonError::into_inner) = Some(named.clone());
        }
    }

    /// Returns true if the transaction can only be aborted.
    pub fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Acquire)
    }
}

impl ClientContext for ProducerReports {
    /// Detects denied topics and failed transactions. The lines may quote keys, hosts and settings and are not passed
    /// on.
    fn log(&self, _level: RDKafkaLogLevel, facility: &str, message: &str) {
        if message.contains("Topic authorization failed") {
            self.note_denied(|topic| message.contains(&format!("\"{topic}\"")));
        }
        if facility == "TXNERR" {
            self.failed.store(true, Ordering::Release);
        }
    }

    /// Records refusals only: failures of the transaction are reported by its steps.
    fn error(&self, error: KafkaError, reason: &str) {
        self.hearing.classify_error(&error, reason);
    }
}

impl ProducerContext<NoCustomPartitioner> for ProducerReports {
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
