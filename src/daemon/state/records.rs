//! Plain values that are written to the state.

use crate::daemon::engine::durable::clock::ClockAnchor;
use crate::io::profiles::ProfileCells;
use crate::planner::closeness_counts::ReferenceCounts;
use crate::planner::drift::DriftBaseline;
use crate::start::run_findings::RunStatistics;
use crate::telemetry::RecordTotals;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use throng_core::ledger::ledger_delta::LedgerDelta;
use throng_core::plan::Plan;
use throng_core::plan::evidence::PlanEvidence;
use throng_core::series::SeriesChanges;
use throng_core::stream::input_batch::InputPartition;
use throng_core::stream::release_sink::InputPositions;
use throng_core::values::raw_batch::RecordPosition;

/// Position and totals of the stream after a batch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamProgress {
    /// Number of the last released batch (0: none yet).
    pub sequence: u64,
    /// Timestamp of the last batch, in milliseconds since 1970. It never decreases.
    pub clock_ms: i64,
    /// Age of the state at that batch. The age of support is measured by it.
    pub age_ms: i64,
    /// Clock anchor from which later ages are computed.
    pub anchor: ClockAnchor,
    /// Next offset by topic index and partition.
    pub positions: InputPositions,
    /// Totals of records since the creation of the state, by outcome.
    pub totals: RecordTotals,
    /// Version of the plan in force (0: none yet).
    pub plan_version: u64,
    /// Age of the state when the last search for a plan ended, with or without a plan.
    pub planned_ms: i64,
    /// Value of `rows` at that time.
    pub planned_rows: u64,
    /// Rows counted for the sample.
    pub rows: u64,
    /// Rows of the last batch.
    pub last_rows: u64,
    /// Number of batches with rows.
    pub batches: u64,
    /// Stride of the planner's sample.
    pub stride: u64,
    /// Plan request with an unfinished search.
    pub asked: Option<SearchRequest>,
    /// Pairs of attributes that the model no longer counts.
    pub left_out: Vec<(usize, usize)>,
    /// Attributes that the model does not count, each with the attribute that determines it.
    pub derived: Vec<(usize, usize)>,
}

/// A requested plan that is not in force. It contains enough to repeat the search on the same records after a
/// restart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SearchRequest {
    /// Number of the batch before which the plan was requested, among batches with records.
    pub batch: u64,
    /// Rows counted for the sample at that time.
    pub rows: u64,
    /// For the log; the plan does not depend on it.
    pub why: PlanReason,
}

/// Reason for a new plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PlanReason {
    /// The stream begins, or its groups have changed.
    Start,
    /// The window has grown fourfold.
    Growth,
    /// `plan.interval` has passed.
    Interval,
    /// The distribution of values has drifted from the baseline of the plan in force.
    Drift,
    /// The stream begins with a plan from `plan.prime`.
    Prime,
}

impl BatchIntent {
    /// Returns a copy without the entries that the changelog stores.
    #[must_use]
    pub fn without_changelog_entries(&self) -> Self {
        Self {
            attempt: self.attempt,
            ranges: self.ranges.clone(),
            flush: self.flush,
            after: self.after.clone(),
            ledger: None,
            sampled: self.sampled.clone(),
            held: Vec::new(),
            settled: self.settled.clone(),
            plan: self.plan.clone(),
            baseline: self.baseline.clone(),
            evidence: self.evidence.clone(),
            references: self.references.clone(),
            met: self.met.clone(),
            profiles: self.profiles,
            series: None,
            series_place: self.series_place,
            idle: self.idle.clone(),
            sources: self.sources.clone(),
        }
    }

    /// Returns the partitions with changed state: those that it reads, those of the waiting rows that it settles, and
    /// that of the series.
    #[must_use]
    pub fn affected_partitions(&self) -> BTreeSet<InputPartition> {
        let read = self.ranges.iter().map(|range| (range.topic, range.partition));
        read.chain(self.settled.iter().map(|(_, at)| at.topic_partition())).chain(self.series_place).collect()
    }
}

impl PlanReason {
    /// Returns the name for the log.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Growth => "growth",
            Self::Interval => "interval",
            Self::Drift => "drift",
            Self::Prime => "prime",
        }
    }
}

/// An attribute group for which a row waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingGroup {
    /// Digest that identifies the group.
    pub group: u128,
    /// Timestamp of the batch since which it waits.
    pub since_ms: i64,
    /// The fragment is released with the first batch at or after this time.
    pub due_ms: i64,
}

/// A stored row: a held row, or a row of the planner's sample.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredRow {
    /// Number of the row in the stream.
    pub ordinal: u64,
    /// Subject of the record: a keyed digest, or a hash of the coordinate if the schema names no subject; 0 for no
    /// subject.
    pub subject: u64,
    /// Source position of the record. The row is settled when its partition is revoked.
    pub coordinate: RecordPosition,
    /// Number of batches that the row has waited for (held rows).
    pub waited: u8,
    /// True if the record counts as released: a fragment of it has been released.
    pub released: bool,
    /// The groups for which the row waits; `None`: all groups, from the next batch on.
    pub parts: Option<Vec<PendingGroup>>,
    /// Canonical texts, one per attribute. Codes are valid only within one process.
    pub cells: Vec<String>,
}

impl StoredRow {
    /// Sort key for the order in which a batch processes rows. Ordinals may be equal if two instances have assigned
    /// them.
    #[must_use]
    pub fn processing_order(&self) -> (u64, RecordPosition) {
        (self.ordinal, self.coordinate)
    }
}

/// A profile that is set or removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProfileChange {
    /// The number of its join.
    pub join: u16,
    /// Keyed digest of its subject.
    pub person: u64,
    /// Cells of the profile; `None` if it is removed.
    pub cells: Option<ProfileCells>,
}

/// Offset range of one partition in a batch: `from` inclusive, `to` exclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OffsetRange {
    /// Index into the topics of the source; 0 for a file.
    pub topic: u16,
    /// 0 for a file.
    pub partition: i32,
    /// The first offset of the batch.
    pub from: i64,
    /// The offset after the last one.
    pub to: i64,
}

/// Held rows that a batch flushes, and why. Flushed rows are released or suppressed; the others may stay held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Flush {
    /// No rows.
    No,
    /// Rows of a batch that was closed by `batch.max_age`.
    Age,
    /// All rows except delayed ones: too few records or subjects came within `batch.max_age`.
    Quiet,
    /// All rows: no further record can complete a class.
    EndOfStream,
    /// All rows: the daemon stops.
    Shutdown,
}

impl Flush {
    /// Returns true if the batch ends the holding of its rows.
    pub fn ends_holding(self) -> bool {
        self != Self::No
    }

    /// Returns true if rows that wait for a delay are flushed as well.
    pub fn includes_delayed(self) -> bool {
        matches!(self, Self::EndOfStream | Self::Shutdown)
    }
}

/// All data of a batch, fixed before its release.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BatchIntent {
    /// Random number of this attempt. The marker repeats it. Another attempt at a batch of the same sequence, by a
    /// copy of the state directory, is therefore not mistaken for this one.
    pub attempt: u64,
    /// Consumed offsets; empty if the batch only settles held rows.
    pub ranges: Vec<OffsetRange>,
    /// Held rows that the batch flushes.
    pub flush: Flush,
    /// Progress after the release of the batch, with its sequence and clock.
    pub after: StreamProgress,
    /// Changes of the ledger; `None` if no record is released.
    pub ledger: Option<LedgerDelta>,
    /// Rows of the batch that enter the planner's sample.
    pub sampled: Vec<StoredRow>,
    /// Rows that start or continue to wait.
    pub held: Vec<StoredRow>,
    /// Rows from earlier batches that this batch processes: number and coordinate.
    pub settled: Vec<(u64, RecordPosition)>,
    /// A plan first used by this batch.
    pub plan: Option<Plan>,
    /// Distribution of the window when that plan was made.
    pub baseline: Option<DriftBaseline>,
    /// Evidence received since the previous batch.
    pub evidence: Option<PlanEvidence>,
    /// Reference counts that this plan compares classes with.
    pub references: Vec<ReferenceCounts>,
    /// Findings about the records, up to and including this batch.
    pub met: Option<RunStatistics>,
    /// Version of the profiles joined to its records.
    pub profiles: u64,
    /// New values of the series state; `None` if there are no series.
    pub series: Option<SeriesChanges>,
    /// The partition of the contributions, if their state changes.
    pub series_place: Option<InputPartition>,
    /// Source partitions without unread records, each with the offset at which this was observed. Buckets did not
    /// wait for them.
    pub idle: Vec<(InputPartition, i64)>,
    /// All source partitions at that time.
    pub sources: Vec<InputPartition>,
}
