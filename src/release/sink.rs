//! Where verified batches go.

use super::verified::Verified;
use crate::anonymity::series::{SeriesChanges, SeriesState, Terms};
use crate::telemetry::RejectionReason;
use std::time::Duration;
use throng_core::values::raw::Coordinate;

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
    /// How far the input is consumed once the batch has left: for each partition with records of the batch, those that waited included.
    pub positions: &'a Positions,
    /// Records of the batch that become dead letters.
    pub rejected: &'a [Rejected],
    /// Subject digests by row, for a lineage file; coordinates likewise.
    pub subjects: &'a [u64],
    /// Where each row comes from.
    pub coordinates: &'a [Coordinate],
    /// How what leaves may be untrue; none where it is all true. The same for all lines, so it tells none from another.
    pub untruthful: Option<&'a str>,
    /// Audit record of the batch, where audit records are configured.
    pub audit: Option<&'a AuditLine>,
    /// Series of the batch, for a lineage file; none where the configuration has no series.
    pub series: Option<SeriesLineage<'a>>,
    /// Changed entries of the state; none where the state is kept in a directory alone.
    pub changelog: &'a [ChangelogRecord],
    /// Sealed contributions to series, for the instance that has their cohorts.
    pub contributions: &'a [Vec<u8>],
}

/// A changed entry of the state of a source partition, as it is written to the changelog.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangelogRecord {
    /// Partition of the source.
    pub source_partition: i32,
    /// The consumer group, a zero byte, and the keyed digest that names the entry.
    pub key: Vec<u8>,
    /// The sealed entry; none where it is removed.
    pub value: Option<Vec<u8>>,
}

/// How a batch changes the series.
#[derive(Clone, Copy, Debug)]
pub struct SeriesLineage<'a> {
    /// Terms of all series.
    pub terms: &'a Terms,
    /// State before the batch.
    pub before: &'a SeriesState,
    /// Entries that the batch changes.
    pub changes: &'a SeriesChanges,
    /// Records of the batch that contribute nothing although they have a subject and a time, each with the position of the series.
    pub dropped: &'a [(Coordinate, usize)],
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

    /// Bytes delivered so far, for the metrics.
    fn bytes_out(&self) -> u64;
}
