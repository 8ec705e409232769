//! What is written to the state, as plain values.

use crate::anonymity::plan::Plan;
use crate::records::raw::Coordinate;
use crate::release::sink::{Lengths, Positions};
use serde::{Deserialize, Serialize};

/// Records by what became of them, since the state began. Conservation: `consumed` is the sum of the others and of what
/// is held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcomes {
    pub consumed: u64,
    pub released: u64,
    pub suppressed: u64,
    pub dead_lettered: u64,
    pub dropped: u64,
}

impl Outcomes {
    /// Records consumed that have no outcome yet: those held.
    #[must_use]
    pub fn unsettled(&self) -> u64 {
        self.consumed - self.released - self.suppressed - self.dead_lettered - self.dropped
    }
}

/// Where the stream stands after a batch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// Number of the last batch that left (0: none yet).
    pub sequence: u64,
    /// Its clock, milliseconds since 1970.
    pub clock_ms: i64,
    /// Next offset by topic index and partition.
    pub positions: Positions,
    /// Byte position beside record 0's partition, for file sources.
    pub source_bytes: u64,
    pub outcomes: Outcomes,
    /// Durable lengths of output files.
    pub lengths: Lengths,
    pub plan_version: u64,
    /// Batch clock and row count when the plan was made.
    pub planned_ms: i64,
    pub planned_rows: u64,
    /// Rows that entered the sample's count.
    pub rows: u64,
    /// Stride of the planner's sample.
    pub stride: u64,
}

/// The cell of a row kept for later, by canonical value: codes do not outlive the process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum KeptCell {
    Absent,
    Missing,
    Uncovered,
    Value(String),
}

/// A row kept for later: one that is held, or one of the planner's sample.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptRow {
    /// Number of the row in the stream.
    pub ordinal: u64,
    pub subject: u64,
    pub coordinate: Coordinate,
    /// Batches that it has waited for (held rows).
    pub waited: u8,
    pub cells: Vec<KeptCell>,
}

/// Offsets of one partition that a batch consumes: `from` inclusive, `to` exclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OffsetRange {
    pub topic: u16,
    pub partition: i32,
    pub from: i64,
    pub to: i64,
}

/// Everything about a batch that is about to leave, fixed before it does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Intent {
    pub ranges: Vec<OffsetRange>,
    /// Whether the batch settles what is held (end of stream, shutdown, revocation).
    pub last: bool,
    /// Where the stream stands when the batch has left (its sequence and clock among it).
    pub after: Progress,
    /// [`crate::release::ledger::LedgerDelta`] as bytes.
    pub ledger: Vec<u8>,
    pub sampled: Vec<KeptRow>,
    /// Rows that begin or go on waiting, and the ordinals of those that no longer do.
    pub held: Vec<KeptRow>,
    pub settled: Vec<u64>,
    /// A plan first used by this batch.
    pub plan: Option<Plan>,
}
