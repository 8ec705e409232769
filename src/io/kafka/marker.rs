//! The marker: proof, inside the batch's own transaction, that the batch left.
//!
//! Partition 0 of the changelog maps a transactional id to the number of its last committed batch. Offsets
//! cannot tell: another instance may have committed past a batch of ours that was aborted.

use super::changelog::{self, Isolation, MARKERS};
use super::connection::{Asking, Cluster, KafkaFailure};
use rdkafka::Message;
use rdkafka::consumer::Consumer;
use rdkafka::message::BorrowedMessage;
use rdkafka::topic_partition_list::Offset;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// What the last committed batch of a transactional id says of itself; zeros where none was committed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Marker {
    /// The number of the batch.
    pub sequence: u64,
    /// [`Envelope::attempt`](crate::release::sink::Envelope::attempt) of the attempt that was committed.
    pub attempt: u64,
}

impl Marker {
    /// The marker as it is written to its topic.
    pub fn body(self) -> String {
        let Self { sequence, attempt } = self;
        format!("{{\"sequence\":{sequence},\"attempt\":{attempt}}}")
    }

    fn of(body: &[u8]) -> Option<Self> {
        serde_json::from_slice(body).ok()
    }
}

/// How long another instance's open transaction may hide a marker of ours: the time-out of a transaction and some more.
const UNDECIDED: Duration = Duration::from_secs(90);

/// The marker of the last batch that `transactional_id` committed.
///
/// Call it after `init_transactions`, which settles whatever an older self had open. A reader of committed records is
/// shown nothing behind the first open transaction, whoever has it open; so the end that it sees may come before our last
/// marker. Where that marker is, a reader of everything tells, and the other one is waited for until it has seen it.
///
/// # Errors
/// When the topic cannot be read to its end within `patience`, or our last marker is not decided in time.
pub fn last_committed(
    cluster: &Cluster,
    topic: &str,
    transactional_id: &str,
    patience: Duration,
) -> Result<Marker, KafkaFailure> {
    let ours = |message: &BorrowedMessage<'_>| message.key() == Some(transactional_id.as_bytes());
    let whole = |isolation, visit: &mut dyn FnMut(&BorrowedMessage<'_>)| {
        let deadline = Instant::now() + patience;
        let is_read = changelog::read_all(cluster, topic, &[MARKERS], isolation, || Instant::now() > deadline, visit)?;
        if is_read { Ok(()) } else { Err(cluster.unanswered(patience)) }
    };
    let mut decided_at = None;
    whole(Isolation::Everything, &mut |message| {
        if ours(message) {
            decided_at = Some(message.offset());
        }
    })?;
    // To a client of committed records the end is the beginning of the first open transaction.
    let ends: BTreeMap<i32, i64> = decided_at.map(|offset| (MARKERS, offset + 1)).into_iter().collect();
    let deadline = Instant::now() + UNDECIDED;
    if !changelog::wait_until_decided(cluster, topic, &ends, || Instant::now() > deadline, || Ok(()))? {
        return Err(KafkaFailure::Undecided { topic: topic.to_owned(), seconds: UNDECIDED.as_secs() });
    }
    // Only now: a reader that was there before has met the earlier end already.
    let mut last = Marker::default();
    whole(Isolation::Committed, &mut |message| {
        if ours(message)
            && let Some(marker) = message.payload().and_then(Marker::of).filter(|m| m.sequence >= last.sequence)
        {
            last = marker;
        }
    })?;
    Ok(last)
}

/// Tells whether anybody else writes markers under our transactional id.
///
/// A new producer takes the id from whoever has it, also from a copy of this state that has been started since. What that
/// one has committed is decided, and in the topic, once `init_transactions` has returned; so a look at the markers between
/// that and the first record is what the check of a start is, without reading the whole topic.
pub struct Watch {
    cluster: Cluster,
    topic: String,
    transactional_id: String,
    reader: Asking,
    /// Where the next look begins.
    next: i64,
}

impl Watch {
    /// Begins at the end of the topic. Call it after `init_transactions`, and read [`last_committed`] after it.
    pub fn begin(cluster: &Cluster, topic: &str, transactional_id: &str) -> Result<Self, KafkaFailure> {
        let reader = changelog::settings(cluster, Isolation::Everything).asking(changelog::WHAT)?;
        let ends = changelog::ends(cluster, &reader, topic, &[MARKERS])?;
        let next = ends.get(&MARKERS).copied().unwrap_or(0);
        let (cluster, topic) = (cluster.clone(), topic.to_owned());
        Ok(Self { cluster, topic, transactional_id: transactional_id.to_owned(), reader, next })
    }

    /// The markers under our id that were written since the last look, those of aborted attempts among them.
    ///
    /// # Errors
    /// When the topic cannot be read to its end within `patience`; the next look shows the same markers again.
    pub fn look(&mut self, patience: Duration) -> Result<Vec<Marker>, KafkaFailure> {
        let from = std::iter::once((MARKERS, Offset::Offset(self.next)));
        changelog::assign(&self.cluster, &self.reader, &self.topic, from)?;
        let (mut found, mut next) = (Vec::new(), self.next);
        let deadline = Instant::now() + patience;
        let walked = changelog::walk(
            &self.cluster,
            &self.reader,
            1,
            || Instant::now() > deadline,
            |message| {
                next = message.offset() + 1;
                if message.key() == Some(self.transactional_id.as_bytes()) {
                    found.extend(message.payload().and_then(Marker::of));
                }
            },
        );
        // Nothing is fetched, and nothing piles up, until the next look.
        self.reader.unassign().map_err(|e| self.cluster.failure(changelog::WHAT, e))?;
        if !walked? {
            return Err(self.cluster.unanswered(patience));
        }
        self.next = next;
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marker_comes_back_as_it_was_written() {
        let marker = Marker { sequence: 42, attempt: u64::MAX };
        assert_eq!(Marker::of(marker.body().as_bytes()), Some(marker));
        assert_eq!(Marker::of(b"{}"), None);
        assert_eq!(Marker::of(b"\xff"), None);
    }
}
