//! How far a file has been read, and what comes next in it.

use crate::telemetry::RejectionReason;

/// How far a source has been read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SourcePosition {
    /// Lines or rows: records, what was rejected and tombstones alike. A line may be several records.
    pub records: u64,
    /// NDJSON and CSV: bytes of the text. Parquet: the lengths of the files.
    pub bytes: u64,
}

/// The next record of a file, as the readers of the formats give it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Added to the batch: a row, or one for each of its elements but those refused.
    Record,
    Rejected(RejectionReason),
    Tombstone,
    /// The input is something else: what, and the remedy.
    Foreign(&'static str),
    /// More columns than were allowed; only where nobody announced them.
    TooManyColumns,
    End,
}
