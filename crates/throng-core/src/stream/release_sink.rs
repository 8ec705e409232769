//! Interface of sinks for verified batches.

use crate::release::verified_batch::ReleasableBatch;
use crate::series::{AllSeriesTerms, SeriesChanges, SeriesState};
use crate::values::raw_batch::RecordPosition;
use crate::values::rejection::RejectionReason;
use std::time::Duration;

/// Coordinates and reason of an untreatable record, without content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RejectedRecord {
    /// Source position.
    pub coordinate: RecordPosition,
    /// Reason.
    pub reason: RejectionReason,
    /// Schema position of the faulty attribute, if known.
    pub attribute: Option<usize>,
}

/// Next offset by topic index and partition.
pub type InputPositions = std::collections::BTreeMap<(u16, i32), i64>;

/// Data released or persisted with a batch.
#[derive(Debug)]
pub struct BatchEnvelope<'a> {
    /// Batch number, increasing by one.
    pub sequence: u64,
    /// Attempt number, for the marker.
    pub attempt: u64,
    /// Batch time in ms since 1970, never decreasing.
    pub clock_ms: i64,
    /// Next offsets, including withheld records.
    pub positions: &'a InputPositions,
    /// Records for dead letters.
    pub rejected: &'a [RejectedRecord],
    /// Subject digests by row, for lineage.
    pub subjects: &'a [u64],
    /// Source positions by row, for lineage.
    pub coordinates: &'a [RecordPosition],
    /// Description of untrue output, equal for all lines.
    pub untruthful: Option<&'a str>,
    /// Audit record, if configured.
    pub audit: Option<&'a AuditLine>,
    /// Series, for lineage; none without series.
    pub series: Option<SeriesLineage<'a>>,
    /// Changed state entries for a changelog.
    pub changelog: &'a [ChangelogRecord],
    /// Sealed contributions for the instance that owns the cohorts.
    pub contributions: &'a [Vec<u8>],
}

/// Changelog entry of a source partition's state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangelogRecord {
    /// Source partition.
    pub source_partition: i32,
    /// Consumer group, zero byte, keyed digest of the entry.
    pub key: Vec<u8>,
    /// Sealed entry; none if removed.
    pub value: Option<Vec<u8>>,
}

/// Changes of a batch to the series.
#[derive(Clone, Copy, Debug)]
pub struct SeriesLineage<'a> {
    /// Terms of all series.
    pub terms: &'a AllSeriesTerms,
    /// State before the batch.
    pub before: &'a SeriesState,
    /// Changed entries.
    pub changes: &'a SeriesChanges,
    /// Dropped records with subject and time, and series index.
    pub dropped: &'a [(RecordPosition, usize)],
}

/// Audit record of a batch, as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditLine {
    /// Record key.
    pub key: String,
    /// JSON without line break.
    pub line: Vec<u8>,
}

/// Reason for failed delivery.
#[derive(Debug, thiserror::Error)]
pub enum DeliveryError {
    /// Undone attempt; the batch may be retried.
    #[error("the batch was aborted: {0}")]
    Aborted(String),
    /// Fenced or broken sink: the caller stops without commit.
    #[error("the sink failed permanently: {0}")]
    Fatal(String),
}

/// Sink of verified batches. `Ok` releases permanently; after [`DeliveryError::Aborted`], readers of committed data
/// never see any part.
pub trait BatchSink: Send {
    /// Delivers one batch.
    ///
    /// # Errors
    /// See [`DeliveryError`].
    fn deliver(&mut self, batch: &ReleasableBatch, envelope: &BatchEnvelope<'_>) -> Result<(), DeliveryError>;

    /// Waits until all delivered records and offsets are visible to other instances.
    ///
    /// # Errors
    /// [`DeliveryError::Fatal`] if this is impossible or exceeds `patience`.
    fn wait_until_visible(&mut self, _patience: Duration) -> Result<(), DeliveryError> {
        Ok(())
    }

    /// Returns delivered bytes, for metrics.
    fn bytes_out(&self) -> u64;
}
