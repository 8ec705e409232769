//! Where verified batches go.

use super::kept_sum::{KeptSum, StateChange};
use super::verified::Verified;
use crate::records::raw::Coordinate;
use crate::telemetry::RejectionReason;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A record that could not be treated: coordinates and a reason, nothing of its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejected {
    /// Where the record is in the source.
    pub coordinate: Coordinate,
    /// Why it could not be treated.
    pub reason: RejectionReason,
    /// Position in the schema of the attribute at fault, where one is known.
    pub attribute: Option<usize>,
}

/// How far the input has been consumed: the next offset by topic index and partition.
pub type Positions = std::collections::BTreeMap<(u16, i32), i64>;

/// Everything that leaves, or becomes durable, together with a batch.
#[derive(Debug)]
pub struct Envelope<'a> {
    /// Number of the batch, rising by one.
    pub sequence: u64,
    /// Number of this attempt at the batch, for the marker.
    pub attempt: u64,
    /// Stamp of the batch: milliseconds since 1970, never falling.
    pub clock_ms: i64,
    /// How far the input is consumed once the batch has left.
    pub positions: &'a Positions,
    /// Records of the batch that become dead letters.
    pub rejected: &'a [Rejected],
    /// Subject digests by row, for a lineage file; coordinates likewise.
    pub subjects: &'a [u64],
    /// Where each row comes from.
    pub coordinates: &'a [Coordinate],
    /// How what leaves may be untrue; none where it is all true. The same for all lines, so it tells none from another.
    pub untruthful: Option<&'a str>,
    /// Records of the batch that are handed to other instances, sealed, and the partition of their topic.
    pub residue: &'a [Vec<u8>],
    /// See `residue`.
    pub residue_partition: i32,
    /// Words that are committed with the offsets of these partitions.
    pub words: &'a std::collections::BTreeMap<(u16, i32), String>,
    /// Audit record of the batch, where audit records are configured.
    pub audit: Option<&'a AuditLine>,
    /// What the state has written that its topic does not have yet; empty where it has none.
    pub state: &'a [StateChange],
}

/// Most bytes of a value in one record: well below what brokers take by default.
pub const STATE_PART: usize = 512 * 1024;

/// How many records a value of `bytes` bytes takes in a topic.
#[must_use]
pub fn parts_of(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(STATE_PART).max(1)).unwrap_or(u32::MAX)
}

/// A step of keeping a whole state in its topic, under a number of its own: its generation.
#[derive(Clone, Copy, Debug)]
pub enum Keeping<'a> {
    /// These values are part of the generation.
    Part(u64, &'a [StateChange]),
    /// All of it has been given, and this is its sum: it takes the place of the one before.
    InForce(u64, KeptSum),
    /// Nothing of any other is to stay.
    Clear(u64),
}

/// Where a whole state is kept, and how far that place is written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptIn {
    /// The name of the topic.
    pub topic: String,
    /// The partition of the instance.
    pub partition: i32,
    /// The first offset of it that is still there.
    pub begin: i64,
    /// The offset behind its last one.
    pub end: i64,
}

impl KeptIn {
    /// Whether what was kept when it was `before` is still there, as far as that is seen without reading it. Compaction moves
    /// neither end, so whoever has deleted records, or made the topic anew, has moved one.
    #[must_use]
    pub fn still_has(&self, before: &Self) -> bool {
        let is_there = self.topic == before.topic && self.partition == before.partition;
        is_there && self.begin == before.begin && self.end >= before.end && self.end > self.begin
    }
}

/// The audit record of a batch, as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditLine {
    /// Its key in a topic.
    pub key: String,
    /// JSON, without a line break.
    pub line: Vec<u8>,
}

/// Why a batch was not delivered.
#[derive(Debug, thiserror::Error)]
pub enum DeliveryError {
    /// The attempt was undone; the same batch may be delivered again.
    #[error("the batch was aborted: {0}")]
    Aborted(String),
    /// Another instance has taken over, or the sink is broken: stop without committing.
    #[error("the sink can take no more: {0}")]
    Fatal(String),
}

/// Takes verified batches and nothing else. After `Ok` the batch has left for good; after
/// [`DeliveryError::Aborted`] no reader of committed data will ever see any of it.
pub trait Sink: Send {
    /// # Errors
    /// See [`DeliveryError`].
    fn deliver(&mut self, batch: &Verified, envelope: &Envelope<'_>) -> Result<(), DeliveryError>;

    /// Waits until everything delivered stands, so that another may go on behind it: what it has consumed as well as what it
    /// has released.
    ///
    /// # Errors
    /// [`DeliveryError::Fatal`] when it does not within `patience`, or never will.
    fn stand(&mut self, _patience: Duration) -> Result<(), DeliveryError> {
        Ok(())
    }

    /// Keeps a whole state. After `Ok` it stays.
    ///
    /// # Errors
    /// See [`DeliveryError`]; none of the step is kept then.
    fn keep(&mut self, _step: Keeping<'_>) -> Result<(), DeliveryError> {
        Err(DeliveryError::Fatal("this sink keeps no state".to_owned()))
    }

    /// Where a whole state is kept.
    ///
    /// # Errors
    /// [`DeliveryError::Fatal`] when that cannot be learnt.
    fn keeps_in(&mut self) -> Result<KeptIn, DeliveryError> {
        Err(DeliveryError::Fatal("this sink keeps no state".to_owned()))
    }

    /// Bytes delivered so far, for the metrics.
    fn bytes_out(&self) -> u64;
}
