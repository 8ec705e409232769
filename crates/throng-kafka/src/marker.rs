//! Marker: proof, inside the transaction of a batch, that the batch was released.
//!
//! Partition 0 of the changelog maps a transactional id to the number of its last committed batch. Offsets are no
//! proof, because another instance may have committed past an aborted batch.

use super::changelog::{self, IsolationLevel, MARKER_PARTITION};
use super::connection::{KafkaCluster, KafkaFailure, QueryClient};
use rdkafka::Message;
use rdkafka::consumer::Consumer;
use rdkafka::message::BorrowedMessage;
use rdkafka::topic_partition_list::Offset;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Last committed batch of a transactional id; zeros if there is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BatchMarker {
    /// Number of the batch.
    pub sequence: u64,
    /// [`BatchEnvelope::attempt`](throng_core::stream::release_sink::BatchEnvelope::attempt) of the committed attempt.
    pub attempt: u64,
}

impl BatchMarker {
    /// Returns the marker as it is written to its topic.
    pub fn body(self) -> String {
        let Self { sequence, attempt } = self;
        format!("{{\"sequence\":{sequence},\"attempt\":{attempt}}}")
    }

    fn of(body: &[u8]) -> Option<Self> {
        serde_json::from_slice(body).ok()
    }
}

/// Longest time for which an open transaction of another instance may hide a marker: the transaction timeout and a
/// margin.
const MARKER_HIDDEN_TIMEOUT: Duration = Duration::from_secs(90);

/// Returns the marker of the last batch that `transactional_id` committed.
///
/// Call it after `init_transactions`, which decides the open transaction of an older instance. A reader of committed
/// records stops at the first open transaction of any instance. A reader of all records therefore finds the last
/// marker, and the function waits until it is decided.
///
/// # Errors
/// When the topic cannot be read to its end within `patience`, or the last marker is not decided in time.
pub fn last_committed(
    cluster: &KafkaCluster,
    topic: &str,
    transactional_id: &str,
    patience: Duration,
) -> Result<BatchMarker, KafkaFailure> {
    let ours = |message: &BorrowedMessage<'_>| message.key() == Some(transactional_id.as_bytes());
    let whole = |isolation, visit: &mut dyn FnMut(&BorrowedMessage<'_>)| {
        let deadline = Instant::now() + patience;
        let is_read =
            changelog::read_all(cluster, topic, &[MARKER_PARTITION], isolation, || Instant::now() > deadline, visit)?;
        if is_read { Ok(()) } else { Err(cluster.no_answer_failure(patience)) }
    };
    let mut decided_at = None;
    whole(IsolationLevel::Uncommitted, &mut |message| {
        if ours(message) {
            decided_at = Some(message.offset());
        }
    })?;
    // For a reader of committed records, the end is the start of the first open transaction.
    let ends: BTreeMap<i32, i64> = decided_at.map(|offset| (MARKER_PARTITION, offset + 1)).into_iter().collect();
    let deadline = Instant::now() + MARKER_HIDDEN_TIMEOUT;
    if !changelog::wait_until_decided(cluster, topic, &ends, || Instant::now() > deadline, || Ok(()))? {
        return Err(KafkaFailure::Undecided { topic: topic.to_owned(), seconds: MARKER_HIDDEN_TIMEOUT.as_secs() });
    }
    // Read only now: an earlier reader would have met the earlier end.
    let mut last = BatchMarker::default();
    whole(IsolationLevel::Committed, &mut |message| {
        if ours(message)
            && let Some(marker) = message.payload().and_then(BatchMarker::of).filter(|m| m.sequence >= last.sequence)
        {
            last = marker;
        }
    })?;
    Ok(last)
}

/// Detects markers that another instance writes under the same transactional id.
///
/// A new producer takes over the id from any holder, also from a copy of this state. The transactions of that copy
/// are decided and visible once `init_transactions` has returned. A read of the new markers before the first record
/// therefore replaces the check at startup.
pub struct MarkerWatch {
    cluster: KafkaCluster,
    topic: String,
    transactional_id: String,
    reader: QueryClient,
    next: i64,
}

impl MarkerWatch {
    /// Starts at the end of the topic. Call it after `init_transactions`, and read [`last_committed`] after it.
    pub fn start_at_end(cluster: &KafkaCluster, topic: &str, transactional_id: &str) -> Result<Self, KafkaFailure> {
        let reader = changelog::reader_settings(cluster, IsolationLevel::Uncommitted)
            .query_client(changelog::CHANGELOG_ACTION)?;
        let ends = changelog::end_offsets(cluster, &reader, topic, &[MARKER_PARTITION])?;
        let next = ends.get(&MARKER_PARTITION).copied().unwrap_or(0);
        let (cluster, topic) = (cluster.clone(), topic.to_owned());
        Ok(Self { cluster, topic, transactional_id: transactional_id.to_owned(), reader, next })
    }

    /// Returns the markers written under the id since the last call, including those of aborted attempts.
    ///
    /// # Errors
    /// When the topic cannot be read to its end within `patience`. The next call then returns the same markers.
    pub fn read_new_markers(&mut self, patience: Duration) -> Result<Vec<BatchMarker>, KafkaFailure> {
        let from = std::iter::once((MARKER_PARTITION, Offset::Offset(self.next)));
        changelog::assign(&self.cluster, &self.reader, &self.topic, from)?;
        let (mut found, mut next) = (Vec::new(), self.next);
        let deadline = Instant::now() + patience;
        let walked = changelog::visit_to_ends(
            &self.cluster,
            &self.reader,
            1,
            || Instant::now() > deadline,
            |message| {
                next = message.offset() + 1;
                if message.key() == Some(self.transactional_id.as_bytes()) {
                    found.extend(message.payload().and_then(BatchMarker::of));
                }
            },
        );
        // Nothing is fetched or buffered until the next call.
        self.reader.unassign().map_err(|e| self.cluster.failure(changelog::CHANGELOG_ACTION, e))?;
        if !walked? {
            return Err(self.cluster.no_answer_failure(patience));
        }
        self.next = next;
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marker_round_trip_preserves_values() {
        let marker = BatchMarker { sequence: 42, attempt: u64::MAX };
        assert_eq!(BatchMarker::of(marker.body().as_bytes()), Some(marker));
        assert_eq!(BatchMarker::of(b"{}"), None);
        assert_eq!(BatchMarker::of(b"\xff"), None);
    }
}
