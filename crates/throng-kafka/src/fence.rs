//! End of a transaction that another instance has left open.

use super::connection::{KafkaCluster, KafkaFailure};
use super::managed_client::ManagedClient;
use super::reports::ProducerReports;
use rdkafka::error::KafkaError;
use rdkafka::producer::{BaseProducer, Producer};
use std::time::Duration;

/// The client continues the operation between calls.
const FENCE_STEP_TIMEOUT: Duration = Duration::from_secs(1);

/// Ends the open transaction of another instance, and fences it. Returns false if `is_over` ended the wait.
///
/// # Errors
/// If the brokers refuse.
pub fn end_transaction_of(
    cluster: &KafkaCluster,
    transactional_id: &str,
    is_over: &dyn Fn() -> bool,
) -> Result<bool, KafkaFailure> {
    const WHAT: &str = "cannot end the open transaction of another instance";
    let settings = cluster.producer(transactional_id);
    let producer: ManagedClient<BaseProducer<ProducerReports>> =
        settings.create(WHAT, ProducerReports::new(settings.shared_refusals(), &[]))?;
    loop {
        match producer.init_transactions(FENCE_STEP_TIMEOUT) {
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
