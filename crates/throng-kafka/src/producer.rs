//! Producer of one transaction: type, timeouts and errors.

use super::failure::is_denied;
use super::managed_client::ManagedClient;
use super::reports::ProducerReports;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::producer::BaseProducer;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use throng_core::stream::release_sink::DeliveryError;

/// Producer for one transaction.
pub type TransactionProducer = ManagedClient<BaseProducer<ProducerReports>>;

pub(super) const STEP_TIMEOUT: Duration = Duration::from_secs(10);

pub(super) const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(15);

/// Repeats a step. A commit after a timeout is never aborted: it may have succeeded. At a stop the next start reads the
/// marker.
pub(super) fn retry_step(
    stop: &AtomicBool,
    mut step: impl FnMut() -> Result<(), KafkaError>,
) -> Result<(), DeliveryError> {
    let since = Instant::now();
    loop {
        match step() {
            Err(KafkaError::Transaction(_) | KafkaError::Flush(_))
                if stop.load(Ordering::Acquire) && since.elapsed() >= SHUTDOWN_TIMEOUT =>
            {
                return Err(DeliveryError::Fatal("stopped while waiting for an answer of the broker".to_owned()));
            }
            Ok(()) => return Ok(()),
            Err(KafkaError::Transaction(e)) if e.is_retriable() && !e.is_fatal() && !e.txn_requires_abort() => {}
            // Messages are still in flight.
            Err(KafkaError::Flush(RDKafkaErrorCode::OperationTimedOut)) => {}
            Err(e) => return Err(delivery_error_of(&e)),
        }
    }
}

pub(super) fn delivery_error_of(error: &KafkaError) -> DeliveryError {
    match error {
        error if error.rdkafka_error_code().is_some_and(is_denied) => {
            let code = error.rdkafka_error_code().map_or(String::new(), |code| format!("{code:?}"));
            let said = format!("our user lacks a right that transactions require ({code}): docs/deploy.md lists them");
            match error {
                KafkaError::Transaction(e) if e.is_fatal() => DeliveryError::Fatal(said),
                // New permissions may not have reached every broker.
                _ => DeliveryError::Aborted(said),
            }
        }
        KafkaError::Transaction(e) if e.is_fatal() => DeliveryError::Fatal(permanent_failure_text(e.code())),
        KafkaError::Transaction(e) => DeliveryError::Aborted(format!("{:?}", e.code())),
        KafkaError::MessageProduction(code @ (RDKafkaErrorCode::Fatal | RDKafkaErrorCode::Fenced)) => {
            DeliveryError::Fatal(permanent_failure_text(*code))
        }
        other => match other.rdkafka_error_code() {
            Some(code @ (RDKafkaErrorCode::Fatal | RDKafkaErrorCode::Fenced)) => {
                DeliveryError::Fatal(permanent_failure_text(code))
            }
            Some(code) => DeliveryError::Aborted(format!("{code:?}")),
            None => DeliveryError::Fatal("the client failed".to_owned()),
        },
    }
}

pub(super) fn permanent_failure_text(code: RDKafkaErrorCode) -> String {
    match code {
        // Brokers also return these codes after a transaction timeout.
        RDKafkaErrorCode::Fatal
        | RDKafkaErrorCode::Fenced
        | RDKafkaErrorCode::ProducerFenced
        | RDKafkaErrorCode::InvalidProducerEpoch => {
            "another process has taken over our transactional id, or a transaction exceeded the brokers' timeout (if two processes have the same state.path, stop one or set a different path for each; otherwise start again)".to_owned()
        }
        other => format!("the producer failed permanently: {other:?} (start again)"),
    }
}
