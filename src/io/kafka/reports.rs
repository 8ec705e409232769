//! What the client tells of its transaction while it runs.

use rdkafka::client::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::error::KafkaError;
use rdkafka::message::DeliveryResult;
use rdkafka::producer::{NoCustomPartitioner, ProducerContext};
use std::sync::atomic::{AtomicBool, Ordering};

/// Notes that the transaction, the only one of its client, can only be aborted.
///
/// The client has no question for this: it answers a commit with it, but only once every message is settled, and those that
/// it holds back in a failed transaction are not, for as long as a minute.
#[derive(Default)]
pub struct Reports {
    failed: AtomicBool,
}

impl Reports {
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Acquire)
    }
}

impl ClientContext for Reports {
    /// The lines themselves may quote keys, hosts and settings: none is passed on.
    fn log(&self, _level: RDKafkaLogLevel, facility: &str, _message: &str) {
        if facility == "TXNERR" {
            self.failed.store(true, Ordering::Release);
        }
    }

    fn error(&self, _error: KafkaError, _reason: &str) {
        // Connections come and go; what becomes of the transaction is told by its own steps.
    }
}

impl ProducerContext<NoCustomPartitioner> for Reports {
    type DeliveryOpaque = ();

    fn delivery(&self, result: &DeliveryResult<'_>, (): ()) {
        if result.is_err() {
            self.failed.store(true, Ordering::Release);
        }
    }
}
