//! Plain values of the state.

use crate::daemon::state::clock::ClockAnchor;
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
    /// Number of the last released batch (0: none).
    pub sequence: u64,
    /// Timestamp of the last batch, in ms since 1970; never decreases.
    pub clock_ms: i64,
    /// Age of the state at that batch, in ms; measures support.
    pub age_ms: i64,
    /// Anchor of later ages.
    pub anchor: ClockAnchor,
    /// Next offset by topic index and partition.
    pub positions: InputPositions,
    /// Totals of records by outcome.
    pub totals: RecordTotals,
    /// Version of the plan in force (0: none).
    pub plan_version: u64,
    /// Age of the state at the last search, in ms.
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
    /// Attribute pairs that the model no longer counts.
    pub left_out: Vec<(usize, usize)>,
    /// Attributes not counted, each with its determinant.
    pub derived: Vec<(usize, usize)>,
}

/// Requested plan, with the data to repeat its search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SearchRequest {
    /// Batch before which it was requested.
    pub batch: u64,
    /// Rows counted for the sample at that time.
    pub rows: u64,
    /// Reason, for the log only.
    pub why: PlanReason,
}

/// Reason for a new plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PlanReason {
    /// Start of the stream, or changed groups.
    Start,
    /// Fourfold growth of the window.
    Growth,
    /// End of `plan.interval`.
    Interval,
    /// Drift from the plan's baseline.
    Drift,
    /// Start with a plan from `plan.prime`.
    Prime,
}

impl BatchIntent {
    /// Returns a copy without the entries of the changelog.
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

    /// Returns the partitions with changed state.
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

/// Attribute group for which a row waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingGroup {
    /// Digest of the group.
    pub group: u128,
    /// Timestamp of its first batch, in ms.
    pub since_ms: i64,
    /// Earliest release of the fragment, in ms.
    pub due_ms: i64,
}

/// Held row, or row of the planner's sample.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredRow {
    /// Number of the row in the stream.
    pub ordinal: u64,
    /// Digest of the subject, or of the coordinate without a subject attribute; 0 for none.
    pub subject: u64,
    /// Source position.
    pub coordinate: RecordPosition,
    /// Number of batches waited (held rows).
    pub waited: u8,
    /// True if a fragment has been released.
    pub released: bool,
    /// Groups for which the row waits; `None`: all.
    pub parts: Option<Vec<PendingGroup>>,
    /// Canonical texts, one per attribute.
    pub cells: Vec<String>,
}

impl StoredRow {
    /// Returns the sort key of processing; ordinals may be equal.
    #[must_use]
    pub fn processing_order(&self) -> (u64, RecordPosition) {
        (self.ordinal, self.coordinate)
    }
}

/// Profile that is set or removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProfileChange {
    /// Number of its join.
    pub join: u16,
    /// Keyed digest of its subject.
    pub person: u64,
    /// Cells of the profile; `None` if removed.
    pub cells: Option<ProfileCells>,
}

/// Offset range of one partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OffsetRange {
    /// Index of the topic; 0 for a file.
    pub topic: u16,
    /// Partition; 0 for a file.
    pub partition: i32,
    /// First offset.
    pub from: i64,
    /// Offset after the last one.
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
    /// Random number of this attempt, repeated by the marker.
    pub attempt: u64,
    /// Consumed offsets; empty if it only settles.
    pub ranges: Vec<OffsetRange>,
    /// Held rows that the batch flushes.
    pub flush: Flush,
    /// Progress after the release.
    pub after: StreamProgress,
    /// Changes of the ledger, if a record is released.
    pub ledger: Option<LedgerDelta>,
    /// Rows that enter the planner's sample.
    pub sampled: Vec<StoredRow>,
    /// Rows that start or continue to wait.
    pub held: Vec<StoredRow>,
    /// Number and coordinate of settled rows.
    pub settled: Vec<(u64, RecordPosition)>,
    /// Plan first used by this batch.
    pub plan: Option<Plan>,
    /// Distribution of the window for that plan.
    pub baseline: Option<DriftBaseline>,
    /// Evidence received since the previous batch.
    pub evidence: Option<PlanEvidence>,
    /// Reference counts of that plan.
    pub references: Vec<ReferenceCounts>,
    /// Findings about the records up to this batch.
    pub met: Option<RunStatistics>,
    /// Version of the joined profiles.
    pub profiles: u64,
    /// New series state, if any.
    pub series: Option<SeriesChanges>,
    /// Partition of the contributions, if their state changes.
    pub series_place: Option<InputPartition>,
    /// Partitions without unread records from these offsets on.
    pub idle: Vec<(InputPartition, i64)>,
    /// All source partitions at that time.
    pub sources: Vec<InputPartition>,
}
