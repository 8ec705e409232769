//! How far a file has been read, and what comes next in it.

use crate::telemetry::RejectionReason;
use serde::{Deserialize, Serialize};

/// How far a file has been read. The position after a batch, kept with that batch, makes a restart continue there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourcePosition {
    /// Lines or rows before this place: records, what was rejected and tombstones alike. A line may be several records, and no place
    /// is inside of one.
    pub records: u64,
    /// NDJSON and CSV: bytes before this place, so that nothing is read twice. Parquet: the length of the file.
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
