//! Producer callbacks that detect a failed transaction.

use super::refusal_log::{RefusalLog, pass_log_line};
use rdkafka::client::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{DeliveryResult, Message};
use rdkafka::producer::{NoCustomPartitioner, ProducerContext};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Failure state of the client's only transaction. librdkafka reports it only at a commit without messages in flight,
/// up to a minute later.
pub struct ProducerReports {
    failed: AtomicBool,
    hearing: Arc<RefusalLog>,
    topics: Vec<String>,
    denied: Mutex<Option<String>>,
}

impl ProducerReports {
    /// Creates the reports of a client that writes to `topics`.
    pub fn new(hearing: Arc<RefusalLog>, topics: &[String]) -> Self {
        Self { failed: AtomicBool::new(false), hearing, topics: topics.to_vec(), denied: Mutex::default() }
    }

    /// Returns the topic whose missing write permission failed the transaction.
    pub fn denied(&self) -> Option<String> {
        self.denied.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

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
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        pass_log_line(level, facility, message);
        if message.contains("Topic authorization failed") {
            self.note_denied(|topic| message.contains(&format!("\"{topic}\"")));
        }
        if facility == "TXNERR" {
            self.failed.store(true, Ordering::Release);
        }
    }

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
