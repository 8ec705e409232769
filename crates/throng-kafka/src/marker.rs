//! Marker: proof of a batch's release inside its transaction (`docs/internals/exactly-once.md`).

use super::changelog::{self, IsolationLevel, MARKER_PARTITION};
use super::connection::{KafkaCluster, KafkaFailure, QueryClient};
use rdkafka::Message;
use rdkafka::consumer::Consumer;
use rdkafka::message::BorrowedMessage;
use rdkafka::topic_partition_list::Offset;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Last committed batch; zeros if there is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BatchMarker {
    /// Number of the batch.
    pub sequence: u64,
    /// [`BatchEnvelope::attempt`](throng_core::stream::release_sink::BatchEnvelope::attempt) of the committed attempt.
    pub attempt: u64,
}

impl BatchMarker {
    /// Returns the marker as stored.
    pub fn body(self) -> String {
        let Self { sequence, attempt } = self;
        format!("{{\"sequence\":{sequence},\"attempt\":{attempt}}}")
    }

    fn of(body: &[u8]) -> Option<Self> {
        serde_json::from_slice(body).ok()
    }
}

/// Transaction timeout and a margin.
const MARKER_HIDDEN_TIMEOUT: Duration = Duration::from_secs(90);

/// Returns the last committed marker of `transactional_id`, once decided. Call it after `init_transactions`.
///
/// # Errors
/// If the topic is not read within `patience`, or the marker is not decided in time.
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
    // Committed records end at the first open transaction.
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

/// Detects markers of another instance under the same id, such as a copy of this state. Its transactions are decided
/// after `init_transactions`.
pub struct MarkerWatch {
    cluster: KafkaCluster,
    topic: String,
    transactional_id: String,
    reader: QueryClient,
    next: i64,
}

impl MarkerWatch {
    /// Starts at the end of the topic, after `init_transactions` and before [`last_committed`].
    pub fn start_at_end(cluster: &KafkaCluster, topic: &str, transactional_id: &str) -> Result<Self, KafkaFailure> {
        let reader = changelog::reader_settings(cluster, IsolationLevel::Uncommitted)
            .query_client(changelog::CHANGELOG_ACTION)?;
        let ends = changelog::end_offsets(cluster, &reader, topic, &[MARKER_PARTITION])?;
        let next = ends.get(&MARKER_PARTITION).copied().unwrap_or(0);
        let (cluster, topic) = (cluster.clone(), topic.to_owned());
        Ok(Self { cluster, topic, transactional_id: transactional_id.to_owned(), reader, next })
    }

    /// Returns the new markers under the id, including aborted ones.
    ///
    /// # Errors
    /// If the topic is not read within `patience`; the next call repeats the read.
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
