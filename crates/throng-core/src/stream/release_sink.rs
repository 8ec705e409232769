//! Interface of the sinks that receive verified batches.

use crate::release::verified_batch::ReleasableBatch;
use crate::series::{AllSeriesTerms, SeriesChanges, SeriesState};
use crate::values::raw_batch::RecordPosition;
use crate::values::rejection::RejectionReason;
use std::time::Duration;

/// A record that could not be treated: coordinates and a reason, without content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RejectedRecord {
    /// Position of the record in the source.
    pub coordinate: RecordPosition,
    /// Reason for the rejection.
    pub reason: RejectionReason,
    /// Position in the schema of the attribute at fault, if known.
    pub attribute: Option<usize>,
}

/// Consumed input: the next offset by topic index and partition.
pub type InputPositions = std::collections::BTreeMap<(u16, i32), i64>;

/// Data that is released or becomes durable together with a batch.
#[derive(Debug)]
pub struct BatchEnvelope<'a> {
    /// Number of the batch, increasing by one.
    pub sequence: u64,
    /// Number of this attempt at the batch, for the marker.
    pub attempt: u64,
    /// Timestamp of the batch: milliseconds since 1970, never decreasing.
    pub clock_ms: i64,
    /// Next offset of each partition with records of the batch, withheld records included.
    pub positions: &'a InputPositions,
    /// Records of the batch that become dead letters.
    pub rejected: &'a [RejectedRecord],
    /// Subject digests by row, for a lineage file.
    pub subjects: &'a [u64],
    /// Source position of each row, for a lineage file.
    pub coordinates: &'a [RecordPosition],
    /// Description of untrue content in the output; none if all of it is true. Equal for all lines, so it
    /// distinguishes none.
    pub untruthful: Option<&'a str>,
    /// Audit record of the batch, if audit records are configured.
    pub audit: Option<&'a AuditLine>,
    /// Series of the batch, for a lineage file; none if the configuration has no series.
    pub series: Option<SeriesLineage<'a>>,
    /// Changed entries of the state; empty if the state is kept only in a directory.
    pub changelog: &'a [ChangelogRecord],
    /// Sealed contributions to series, for the instance that holds their cohorts.
    pub contributions: &'a [Vec<u8>],
}

/// A changed entry of the state of a source partition, as written to the changelog.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangelogRecord {
    /// Partition of the source.
    pub source_partition: i32,
    /// The consumer group, a zero byte, and the keyed digest that names the entry.
    pub key: Vec<u8>,
    /// The sealed entry; none if it is removed.
    pub value: Option<Vec<u8>>,
}

/// Changes that a batch makes to the series.
#[derive(Clone, Copy, Debug)]
pub struct SeriesLineage<'a> {
    /// Terms of all series.
    pub terms: &'a AllSeriesTerms,
    /// State before the batch.
    pub before: &'a SeriesState,
    /// Entries that the batch changes.
    pub changes: &'a SeriesChanges,
    /// Records that contribute nothing although they have a subject and a time, each with the position of the series.
    pub dropped: &'a [(RecordPosition, usize)],
}

/// The audit record of a batch, as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditLine {
    /// Record key in a topic.
    pub key: String,
    /// JSON, without a line break.
    pub line: Vec<u8>,
}

/// Reason for which a batch was not delivered.
#[derive(Debug, thiserror::Error)]
pub enum DeliveryError {
    /// The attempt was undone. The same batch may be delivered again.
    #[error("the batch was aborted: {0}")]
    Aborted(String),
    /// Another instance has taken over, or the sink is broken. The caller stops without committing.
    #[error("the sink failed permanently: {0}")]
    Fatal(String),
}

/// Accepts only verified batches. After `Ok` the batch is released permanently. After [`DeliveryError::Aborted`] no
/// reader of committed data ever sees any part of it.
pub trait BatchSink: Send {
    /// Delivers one batch with its envelope.
    ///
    /// # Errors
    /// See [`DeliveryError`].
    fn deliver(&mut self, batch: &ReleasableBatch, envelope: &BatchEnvelope<'_>) -> Result<(), DeliveryError>;

    /// Waits until the released records and the consumed offsets of all delivered batches are visible to other
    /// instances.
    ///
    /// # Errors
    /// [`DeliveryError::Fatal`] if this takes longer than `patience` or cannot happen any more.
    fn wait_until_visible(&mut self, _patience: Duration) -> Result<(), DeliveryError> {
        Ok(())
    }

    /// Returns the number of bytes delivered so far, for the metrics.
    fn bytes_out(&self) -> u64;
}
