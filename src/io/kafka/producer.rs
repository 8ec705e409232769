//! The producer of one transaction: its type, the time that its steps may take, and what its errors mean.

use super::failure::is_denied;
use super::live::Live;
use super::reports::Reports;
use crate::release::sink::DeliveryError;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::producer::BaseProducer;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// A producer that may begin one transaction.
pub type Writer = Live<BaseProducer<Reports>>;

/// How long one step of a transaction is waited for before it is tried again.
pub(super) const STEP: Duration = Duration::from_secs(10);

/// How long a daemon that is told to stop still waits for the end of a transaction.
pub(super) const PARTING: Duration = Duration::from_secs(15);

/// Repeats a step while the client says that it may be repeated: a commit that timed out is asked again, never aborted,
/// since it may have happened. A daemon that is told to stop leaves it at that: the next start reads the marker.
pub(super) fn retried(
    stop: &AtomicBool,
    mut step: impl FnMut() -> Result<(), KafkaError>,
) -> Result<(), DeliveryError> {
    let since = Instant::now();
    loop {
        match step() {
            Err(KafkaError::Transaction(_) | KafkaError::Flush(_))
                if stop.load(Ordering::Acquire) && since.elapsed() >= PARTING =>
            {
                return Err(DeliveryError::Fatal("told to stop while the broker does not answer".to_owned()));
            }
            Ok(()) => return Ok(()),
            Err(KafkaError::Transaction(e)) if e.is_retriable() && !e.is_fatal() && !e.txn_requires_abort() => {}
            // The wait for acknowledgements ran out: they are still under way.
            Err(KafkaError::Flush(RDKafkaErrorCode::OperationTimedOut)) => {}
            Err(e) => return Err(classify(&e)),
        }
    }
}

/// What an error means for the transaction. Texts are the client's own codes; they hold nothing of a message.
pub(super) fn classify(error: &KafkaError) -> DeliveryError {
    match error {
        error if error.rdkafka_error_code().is_some_and(is_denied) => {
            let code = error.rdkafka_error_code().map_or(String::new(), |code| format!("{code:?}"));
            let said =
                format!("our user has not every right that a transaction takes ({code}): docs/security.md lists them");
            match error {
                KafkaError::Transaction(e) if e.is_fatal() => DeliveryError::Fatal(said),
                // Rights may be on their way to every broker: it is tried again, some times.
                _ => DeliveryError::Aborted(said),
            }
        }
        KafkaError::Transaction(e) if e.is_fatal() => DeliveryError::Fatal(ended(e.code())),
        KafkaError::Transaction(e) => DeliveryError::Aborted(format!("{:?}", e.code())),
        KafkaError::MessageProduction(code @ (RDKafkaErrorCode::Fatal | RDKafkaErrorCode::Fenced)) => {
            DeliveryError::Fatal(ended(*code))
        }
        other => match other.rdkafka_error_code() {
            Some(code @ (RDKafkaErrorCode::Fatal | RDKafkaErrorCode::Fenced)) => DeliveryError::Fatal(ended(code)),
            Some(code) => DeliveryError::Aborted(format!("{code:?}")),
            None => DeliveryError::Fatal("the client failed".to_owned()),
        },
    }
}

/// What has ended the producer for good, and what helps.
pub(super) fn ended(code: RDKafkaErrorCode) -> String {
    match code {
        // Also what a transaction is answered that the brokers have given up.
        RDKafkaErrorCode::Fatal
        | RDKafkaErrorCode::Fenced
        | RDKafkaErrorCode::ProducerFenced
        | RDKafkaErrorCode::InvalidProducerEpoch => {
            "another process has taken over our transactional id and goes on in our place, or a transaction took longer than the brokers wait (where two processes have one state.path, end one of them or give each its own; else start again)".to_owned()
        }
        other => format!("the producer has failed for good: {other:?} (start again)"),
    }
}
