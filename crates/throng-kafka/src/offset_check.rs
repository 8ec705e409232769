//! Checks that the offsets committed by a transaction are visible, and commits lost ones again.
//!
//! A successful commit is no proof. The group coordinator (Kafka 3.9.1) refuses a late offset request under an older
//! epoch. It then also drops the offsets of the producer's open transaction, which is committed without them.
//!
//! The check is done before the next transaction begins and before a partition is given up, because its next owner
//! starts at these offsets.

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

/// Function that returns the current metadata of the group for which offsets are committed.
pub type GroupMetadata = Arc<dyn Fn() -> Option<ConsumerGroupMetadata> + Send + Sync>;

#[derive(Clone, Debug)]
pub(super) struct SentOffset {
    pub topic: String,
    pub partition: i32,
    pub next: i64,
}

/// Builds the partition list for an offset commit or query.
pub(super) fn partition_list(sent: &[SentOffset]) -> Result<TopicPartitionList, KafkaError> {
    let mut list = TopicPartitionList::new();
    for SentOffset { topic, partition, next } in sent {
        list.add_partition_offset(topic, *partition, Offset::Offset(*next))?;
    }
    Ok(list)
}

/// Reads the committed offsets of the group, and commits lost ones again.
pub(super) struct OffsetCheck {
    cluster: KafkaCluster,
    /// Client that reads offsets and never joins the group.
    offset_client: QueryClient,
    group: GroupMetadata,
}

impl OffsetCheck {
    pub fn open(cluster: &KafkaCluster, name: &str, group: GroupMetadata) -> Result<Self, KafkaFailure> {
        // Its isolation level, read committed, makes the coordinator refuse offsets that an open transaction may
        // still change.
        let mut config = cluster.consumer(name);
        // The statistics of this client are not used.
        config.set("statistics.interval.ms", "0");
        // The group coordinator learns of a commit with a short delay, and refuses the query until then.
        config.set("retry.backoff.ms", "10");
        Ok(Self {
            cluster: cluster.clone(),
            offset_client: config.query_client("cannot read the committed offsets")?,
            group,
        })
    }

    /// Returns the offsets of `sent` that are not committed. A later committed offset is from the next owner of the
    /// partition.
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

    /// Commits `uncommitted_offsets` in a separate transaction, the only one of `writer`. It writes no marker: the marker of the
    /// batch is already committed. An unfinished abort is completed by the next epoch.
    ///
    /// The partitions are still assigned: a revocation callback waits for this commit. After a callback that timed
    /// out, the group metadata is no longer available.
    ///
    /// # Errors
    /// [`DeliveryError::Aborted`] when it may be tried again; [`DeliveryError::Fatal`] when it may not.
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

/// Returns the fatal error for offsets that could not be committed again.
pub(super) fn lost_offsets_error(behind: &[SentOffset], why: &str) -> DeliveryError {
    let place = |one: &SentOffset| format!("{} [{}] at {}", one.topic, one.partition, one.next);
    let places: Vec<String> = behind.iter().map(place).collect();
    DeliveryError::Fatal(format!(
        "the broker lost the offsets of a committed batch ({}), and {why}: a consumer that resumes at the older offsets releases its records again",
        places.join(", ")
    ))
}
