//! Refusals reported by a cluster's clients. Error texts are classified, not stored.

use super::refusal::ConnectionRefusal;
use crate::security::SecurityConfig;
use rdkafka::client::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::ConsumerContext;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use throng_core::printable::printable;

/// A client repeats its errors after 30 s.
const REFUSAL_LIFETIME: Duration = Duration::from_secs(60);

/// More connections closed before an answer mean another protocol; a stopping broker closes fewer.
const MAX_EARLY_DISCONNECTS: u32 = 2;

/// Last refusal of any client of a cluster.
#[derive(Debug, Default)]
pub struct RefusalLog {
    security: SecurityConfig,
    last: Mutex<Option<(ConnectionRefusal, Instant)>>,
    early_disconnects: AtomicU32,
    answered: AtomicBool,
    unreached: AtomicBool,
}

impl RefusalLog {
    /// Creates the log of clients with these settings.
    pub fn new(security: SecurityConfig) -> Self {
        Self { security, ..Self::default() }
    }

    /// Records an error of a client if it is a refusal.
    pub fn classify_error(&self, error: &KafkaError, words: &str) {
        if let Some(refusal) = ConnectionRefusal::of(error, words, &self.security) {
            // Closed connections no longer count.
            self.unreached.store(true, Ordering::Release);
            self.note(refusal);
            return;
        }
        match error.rdkafka_error_code() {
            // The client reports only that all brokers are down.
            Some(RDKafkaErrorCode::AllBrokersDown) => {
                let silent = !self.answered.load(Ordering::Acquire) && !self.unreached.load(Ordering::Acquire);
                if silent && self.early_disconnects.fetch_add(1, Ordering::AcqRel) >= MAX_EARLY_DISCONNECTS {
                    self.note(ConnectionRefusal::Protocol);
                }
            }
            Some(
                RDKafkaErrorCode::BrokerTransportFailure
                | RDKafkaErrorCode::Resolve
                | RDKafkaErrorCode::OperationTimedOut,
            ) => self.unreached.store(true, Ordering::Release),
            _ => {}
        }
    }

    /// Records a refusal.
    pub fn note(&self, refusal: ConnectionRefusal) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some((refusal, Instant::now()));
    }

    /// Clears a refusal for a missing token.
    pub fn clear_token_refusal(&self) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.take_if(|(refusal, _)| matches!(refusal, ConnectionRefusal::NoToken | ConnectionRefusal::Provider));
    }

    /// Clears the refusal after an answer.
    pub fn clear(&self) {
        self.answered.store(true, Ordering::Release);
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Returns the current refusal.
    pub fn refusal(&self) -> Option<ConnectionRefusal> {
        let last = *self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.filter(|(_, since)| since.elapsed() < REFUSAL_LIFETIME).map(|(refusal, _)| refusal)
    }
}

/// Passes a line of librdkafka to the log target `librdkafka`, which is off by default: the lines may quote keys, host
/// names and settings.
pub(super) fn pass_log_line(level: RDKafkaLogLevel, facility: &str, message: &str) {
    let line = printable(&format!("{facility}: {message}"));
    match level {
        RDKafkaLogLevel::Emerg | RDKafkaLogLevel::Alert | RDKafkaLogLevel::Critical | RDKafkaLogLevel::Error => {
            tracing::error!(target: "librdkafka", "{line}");
        }
        RDKafkaLogLevel::Warning => tracing::warn!(target: "librdkafka", "{line}"),
        RDKafkaLogLevel::Notice | RDKafkaLogLevel::Info => tracing::info!(target: "librdkafka", "{line}"),
        RDKafkaLogLevel::Debug => tracing::debug!(target: "librdkafka", "{line}"),
    }
}

/// Client context that only records refusals.
#[derive(Clone, Debug)]
pub struct QueryContext(pub Arc<RefusalLog>);

impl ClientContext for QueryContext {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        pass_log_line(level, facility, message);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        self.0.classify_error(&error, reason);
    }
}

impl ConsumerContext for QueryContext {}
