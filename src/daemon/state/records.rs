//! What is written to the state, as plain values.

use crate::anonymity::plan::Plan;
use crate::anonymity::planner::reference::ReferenceCounts;
use crate::records::raw::Coordinate;
use crate::release::sink::{Lengths, Positions};
use crate::release::witnesses::WitnessDelta;
use crate::telemetry::Totals;
use serde::{Deserialize, Serialize};

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
    pub totals: Totals,
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

/// A row kept for later: one that is held, or one of the planner's sample.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptRow {
    /// Number of the row in the stream.
    pub ordinal: u64,
    pub subject: u64,
    pub coordinate: Coordinate,
    /// Batches that it has waited for (held rows).
    pub waited: u8,
    /// Canonical texts, one an attribute: codes do not outlive the process.
    pub cells: Vec<String>,
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
    /// A number of this attempt alone, drawn at random: the marker repeats it, so that no other attempt at a batch of the
    /// same sequence (by a copy of the state directory) can be mistaken for it.
    pub attempt: u64,
    pub ranges: Vec<OffsetRange>,
    /// Whether the batch settles what is held (end of stream, shutdown, revocation).
    pub last: bool,
    /// Where the stream stands when the batch has left (its sequence and clock among it).
    pub after: Progress,
    /// [`crate::release::ledger::LedgerDelta`] as bytes.
    pub ledger: Vec<u8>,
    /// Empty where recoding is not strict.
    pub witnessed: WitnessDelta,
    pub sampled: Vec<KeptRow>,
    /// Rows that begin or go on waiting, and the ordinals of those that no longer do.
    pub held: Vec<KeptRow>,
    pub settled: Vec<u64>,
    /// A plan first used by this batch.
    pub plan: Option<Plan>,
    /// What that plan compares classes with; under a key of its own, so that the intent is read as it always was.
    #[serde(skip)]
    pub references: Vec<ReferenceCounts>,
}
