//! The end of a transaction that an instance has left open.

use super::connection::{Cluster, KafkaFailure};
use super::live::Live;
use super::reports::Reports;
use rdkafka::error::KafkaError;
use rdkafka::producer::{BaseProducer, Producer};
use std::time::Duration;

/// How long one turn may take; it goes on by itself between two turns.
const TURN: Duration = Duration::from_secs(1);

/// Takes the transactional id of an instance that is gone: its open transaction is aborted, and should it live after all, it is refused
/// from now on and ends. False where `is_over` ended the wait.
///
/// # Errors
/// When the brokers refuse.
pub fn end_transaction_of(
    cluster: &Cluster,
    transactional_id: &str,
    is_over: &dyn Fn() -> bool,
) -> Result<bool, KafkaFailure> {
    const WHAT: &str = "cannot end the open transaction of another instance";
    let settings = cluster.producer(transactional_id);
    let producer: Live<BaseProducer<Reports>> = settings.create(WHAT, Reports::new(settings.hearing(), &[]))?;
    loop {
        match producer.init_transactions(TURN) {
            Ok(()) => return Ok(true),
            Err(KafkaError::Transaction(error)) if error.is_retriable() => {}
            Err(error) => {
                let right = format!("use the transactional id {transactional_id:?} (Write and Describe)");
                return Err(cluster.failure_of(WHAT, right, error));
            }
        }
        if is_over() {
            return Ok(false);
        }
        producer.poll(Duration::ZERO);
    }
}
