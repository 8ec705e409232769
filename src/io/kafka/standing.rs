//! Whether the offsets that a transaction has committed stand.
//!
//! A commit that was answered is no proof of it: where a request for offsets comes late, under an older epoch, the
//! coordinator of the group (Kafka 3.9.1) refuses it and forgets with it what the open transaction of the same producer has
//! sent; the transaction is then committed without its offsets. So they are read after every commit, and what lies behind is
//! committed again, before a next transaction begins and before a partition is let go: whoever gets it begins there.

use super::connection::{Asking, Cluster, KafkaFailure};
use super::producer::{STEP, Writer, classify, retried};
use crate::release::sink::DeliveryError;
use rdkafka::consumer::{Consumer, ConsumerGroupMetadata};
use rdkafka::error::KafkaError;
use rdkafka::producer::Producer;
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// The group that consumed offsets are committed for, as the consumer sees it at the moment.
pub type GroupMetadata = Arc<dyn Fn() -> Option<ConsumerGroupMetadata> + Send + Sync>;

/// An offset that a transaction has sent.
#[derive(Clone, Debug)]
pub(super) struct Sent {
    pub topic: String,
    pub partition: i32,
    pub next: i64,
}

/// What is sent to the group's coordinator, or asked of it.
pub(super) fn listed(sent: &[Sent]) -> Result<TopicPartitionList, KafkaError> {
    let mut list = TopicPartitionList::new();
    for Sent { topic, partition, next } in sent {
        list.add_partition_offset(topic, *partition, Offset::Offset(*next))?;
    }
    Ok(list)
}

/// Reads the group's offsets, and commits those again that have been forgotten.
pub(super) struct Standing {
    cluster: Cluster,
    /// Asks for offsets, and never joins the group.
    asking: Asking,
    group: GroupMetadata,
}

impl Standing {
    pub fn open(cluster: &Cluster, name: &str, group: GroupMetadata) -> Result<Self, KafkaFailure> {
        // It reads committed records, which makes it ask for offsets that no open transaction may still change.
        let mut config = cluster.consumer(name);
        // Nobody takes them away.
        config.set("statistics.interval.ms", "0");
        // The group's coordinator hears of a commit a moment later than we do, and says so until then.
        config.set("retry.backoff.ms", "10");
        Ok(Self { cluster: cluster.clone(), asking: config.asking("cannot read the committed offsets")?, group })
    }

    /// Those of `sent` that lie behind what was sent. An offset beyond it has been committed by its next owner.
    pub fn behind(&self, sent: &[Sent], patience: Duration) -> Result<Vec<Sent>, KafkaFailure> {
        if sent.is_empty() {
            return Ok(Vec::new());
        }
        let failed = |e| self.cluster.failure("cannot read the committed offsets", e);
        let wanted = listed(sent).map_err(failed)?;
        let found = self.asking.committed_offsets(wanted, patience).map_err(failed)?;
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

    /// Commits `behind` in a transaction of its own, the only one of `writer`. It has no marker: the batch has left, and
    /// its marker stands. An attempt that is aborted leaves its end to the next epoch.
    ///
    /// The partitions are still ours: a callback that lets them go waits for us, and nobody is a member of the group after
    /// one that did not.
    ///
    /// # Errors
    /// [`DeliveryError::Aborted`] when it may be tried again; [`DeliveryError::Fatal`] when it may not.
    pub fn commit_again(&self, writer: &Writer, behind: &[Sent], over: &AtomicBool) -> Result<(), DeliveryError> {
        let list = listed(behind).map_err(|e| classify(&e))?;
        let group = (self.group)().ok_or_else(|| forgotten(behind, "the partition is not ours any more"))?;
        writer.begin_transaction().map_err(|e| classify(&e))?;
        retried(over, || writer.send_offsets_to_transaction(&list, &group, STEP))?;
        retried(over, || writer.commit_transaction(STEP))
    }
}

/// The end, where offsets could not be committed again.
pub(super) fn forgotten(behind: &[Sent], why: &str) -> DeliveryError {
    let place = |one: &Sent| format!("{} [{}] at {}", one.topic, one.partition, one.next);
    let places: Vec<String> = behind.iter().map(place).collect();
    DeliveryError::Fatal(format!(
        "the broker has forgotten the offsets of a committed batch ({}) and {why}: whoever reads on from the older offset releases its records again",
        places.join(", ")
    ))
}
