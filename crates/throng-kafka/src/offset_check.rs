//! Check of committed offsets, which Kafka 3.9.1 may drop from a successful transaction
//! (`docs/internals/exactly-once.md`, Late requests).

use super::connection::{KafkaCluster, KafkaFailure, QueryClient};
use super::producer::{STEP_TIMEOUT, TransactionProducer, delivery_error_of, retry_step};
use rdkafka::consumer::{Consumer, ConsumerGroupMetadata};
use rdkafka::error::KafkaError;
use rdkafka::producer::Producer;
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use throng_core::stream::release_sink::DeliveryError;

/// Function that returns the metadata of the committing group.
pub type GroupMetadata = Arc<dyn Fn() -> Option<ConsumerGroupMetadata> + Send + Sync>;

#[derive(Clone, Debug)]
pub(super) struct SentOffset {
    pub topic: String,
    pub partition: i32,
    pub next: i64,
}

pub(super) fn partition_list(sent: &[SentOffset]) -> Result<TopicPartitionList, KafkaError> {
    let mut list = TopicPartitionList::new();
    for SentOffset { topic, partition, next } in sent {
        list.add_partition_offset(topic, *partition, Offset::Offset(*next))?;
    }
    Ok(list)
}

pub(super) struct OffsetCheck {
    cluster: KafkaCluster,
    offset_client: QueryClient,
    group: GroupMetadata,
}

impl OffsetCheck {
    pub fn open(cluster: &KafkaCluster, name: &str, group: GroupMetadata) -> Result<Self, KafkaFailure> {
        // The coordinator then refuses offsets that an open transaction may change.
        let mut config = cluster.consumer(name);
        config.set("statistics.interval.ms", "0");
        // The coordinator learns of a commit with a short delay.
        config.set("retry.backoff.ms", "10");
        Ok(Self {
            cluster: cluster.clone(),
            offset_client: config.query_client("cannot read the committed offsets")?,
            group,
        })
    }

    /// A later committed offset is from the next owner.
    pub fn uncommitted_offsets(
        &self,
        sent: &[SentOffset],
        patience: Duration,
    ) -> Result<Vec<SentOffset>, KafkaFailure> {
        if sent.is_empty() {
            return Ok(Vec::new());
        }
        let failed = |e| self.cluster.failure("cannot read the committed offsets", e);
        let wanted = partition_list(sent).map_err(failed)?;
        let found = self.offset_client.committed_offsets(wanted, patience).map_err(failed)?;
        let mut behind = Vec::new();
        for one in sent {
            let stands = found.find_partition(&one.topic, one.partition);
            if let Some(error) = stands.as_ref().and_then(|e| e.error().err()) {
                return Err(failed(error));
            }
            if !matches!(stands.map(|e| e.offset()), Some(Offset::Offset(offset)) if offset >= one.next) {
                behind.push(one.clone());
            }
        }
        Ok(behind)
    }

    /// Commits `uncommitted_offsets` in a transaction without a marker, the only one of `writer`. An unfinished abort
    /// is completed by the next epoch. The partitions are still assigned: a revocation waits for this commit.
    ///
    /// # Errors
    /// [`DeliveryError::Aborted`] if a retry is allowed, otherwise [`DeliveryError::Fatal`].
    pub fn commit_again(
        &self,
        writer: &TransactionProducer,
        behind: &[SentOffset],
        over: &AtomicBool,
    ) -> Result<(), DeliveryError> {
        let list = partition_list(behind).map_err(|e| delivery_error_of(&e))?;
        let group = (self.group)()
            .ok_or_else(|| lost_offsets_error(behind, "the partition is no longer assigned to this instance"))?;
        writer.begin_transaction().map_err(|e| delivery_error_of(&e))?;
        retry_step(over, || writer.send_offsets_to_transaction(&list, &group, STEP_TIMEOUT))?;
        retry_step(over, || writer.commit_transaction(STEP_TIMEOUT))
    }
}

pub(super) fn lost_offsets_error(behind: &[SentOffset], why: &str) -> DeliveryError {
    let place = |one: &SentOffset| format!("{} [{}] at {}", one.topic, one.partition, one.next);
    let places: Vec<String> = behind.iter().map(place).collect();
    DeliveryError::Fatal(format!(
        "the broker lost the offsets of a committed batch ({}), and {why}: a consumer that resumes at the older offsets releases its records again",
        places.join(", ")
    ))
}
