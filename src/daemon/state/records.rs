//! What is written to the state, as plain values.

use crate::anonymity::plan::Plan;
use crate::anonymity::plan::evidence::Evidence;
use crate::anonymity::planner::drift::Baseline;
use crate::anonymity::planner::reference::ReferenceCounts;
use crate::anonymity::series::SeriesChanges;
use crate::daemon::engine::clock::Anchor;
use crate::io::input::Place;
use crate::io::profiles::Cells;
use crate::release::sink::Positions;
use crate::start::findings::Met;
use crate::telemetry::Totals;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use throng_core::ledger::delta::LedgerDelta;
use throng_core::values::raw::Coordinate;

/// Where the stream stands after a batch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// Number of the last batch that left (0: none yet).
    pub sequence: u64,
    /// Its stamp, milliseconds since 1970, never falling.
    pub clock_ms: i64,
    /// Age of the state with it, by which support grows old.
    pub age_ms: i64,
    /// By which the age is told from then on.
    pub anchor: Anchor,
    /// Next offset by topic index and partition.
    pub positions: Positions,
    /// Records since the state was made, by what became of them.
    pub totals: Totals,
    /// Version of the plan in force (0: none yet).
    pub plan_version: u64,
    /// Age of the state when a search for a plan last ended, with a plan or without.
    pub planned_ms: i64,
    /// `rows` by then.
    pub planned_rows: u64,
    /// Rows that entered the sample's count.
    pub rows: u64,
    /// Those of the last batch.
    pub last_rows: u64,
    /// Batches with any.
    pub batches: u64,
    /// Stride of the planner's sample.
    pub stride: u64,
    /// A plan that is being sought.
    pub asked: Option<SearchRequest>,
    /// Pairs of attributes that the model no longer counts.
    pub left_out: Vec<(usize, usize)>,
    /// Attributes that it does not count, each with the one that determines it.
    pub derived: Vec<(usize, usize)>,
}

/// A plan that was asked for and is not in force: enough to seek it again, from the same records, after a restart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SearchRequest {
    /// The batch before which it was asked for, among those with records.
    pub batch: u64,
    /// Rows that had entered the sample's count by then.
    pub rows: u64,
    /// For the log: the plan does not depend on it.
    pub why: Occasion,
}

/// Why a plan is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Occasion {
    /// The stream begins, or its groups are others than before.
    Start,
    /// The window has grown fourfold.
    Growth,
    /// `plan.interval` has passed.
    Interval,
    /// The values are distributed otherwise than the plan in force was made for.
    Drift,
    /// The stream begins, with a plan from `plan.prime`.
    Prime,
}

impl Intent {
    /// The same without the entries that the changelog keeps.
    #[must_use]
    pub fn without_entries(&self) -> Self {
        Self {
            attempt: self.attempt,
            ranges: self.ranges.clone(),
            last: self.last,
            all: self.all,
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

    /// Partitions whose state it changes: those that it reads, those of the rows that come along, and that of the series.
    #[must_use]
    pub fn places(&self) -> BTreeSet<Place> {
        let read = self.ranges.iter().map(|range| (range.topic, range.partition));
        read.chain(self.settled.iter().map(|(_, at)| at.place())).chain(self.series_place).collect()
    }
}

impl Occasion {
    /// The name in the log.
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

/// A group that a row waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// Digest that names the group.
    pub group: u128,
    /// Clock of the batch that it waits since.
    pub since_ms: i64,
    /// It leaves with the first batch at or after this.
    pub due_ms: i64,
}

/// A row kept for later: one that is held, or one of the planner's sample.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptRow {
    /// Number of the row in the stream.
    pub ordinal: u64,
    /// Whom the record counts for: a keyed digest, or a hash of the coordinate where the schema names no subject; 0: nobody.
    pub subject: u64,
    /// Where the record came from: it settles when its partition is taken away.
    pub coordinate: Coordinate,
    /// Batches that it has waited for (held rows).
    pub waited: u8,
    /// It counts as released: a fragment of it has left.
    pub released: bool,
    /// The groups that it waits for; `None`: all of them, from the next batch on.
    pub parts: Option<Vec<Part>>,
    /// Canonical texts, one an attribute: codes do not outlive the process.
    pub cells: Vec<String>,
}

impl KeptRow {
    /// Order in which a batch takes rows: their numbers may be equal where two instances have given them.
    #[must_use]
    pub fn rank(&self) -> (u64, Coordinate) {
        (self.ordinal, self.coordinate)
    }
}

/// A profile that is set, or goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProfileChange {
    /// The number of its join.
    pub join: u16,
    /// Whose it is, as a keyed digest.
    pub person: u64,
    /// What it says; none where it goes.
    pub cells: Option<Cells>,
}

/// Offsets of one partition that a batch consumes: `from` inclusive, `to` exclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OffsetRange {
    /// Index into the topics of the source; 0 for a file.
    pub topic: u16,
    /// 0 for a file.
    pub partition: i32,
    /// The first offset of the batch.
    pub from: i64,
    /// The offset behind its last one.
    pub to: i64,
}

/// Everything about a batch that is about to leave, fixed before it does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Intent {
    /// A number of this attempt alone, drawn at random: the marker repeats it, so that no other attempt at a batch of the
    /// same sequence (by a copy of the state directory) can be mistaken for it.
    pub attempt: u64,
    /// What it consumes; empty where it only settles what was held.
    pub ranges: Vec<OffsetRange>,
    /// Whether the batch settles what is held (end of stream, shutdown, revocation).
    pub last: bool,
    /// Whether it settles as well what waits for a delay.
    pub all: bool,
    /// Where the stream stands when the batch has left (its sequence and clock among it).
    pub after: Progress,
    /// What it adds to the ledger; none where nothing is released.
    pub ledger: Option<LedgerDelta>,
    /// Its rows that enter the planner's sample.
    pub sampled: Vec<KeptRow>,
    /// Rows that begin or go on waiting.
    pub held: Vec<KeptRow>,
    /// Rows that waited before it and come along: number and coordinate.
    pub settled: Vec<(u64, Coordinate)>,
    /// A plan first used by this batch.
    pub plan: Option<Plan>,
    /// What the window looked like then.
    pub baseline: Option<Baseline>,
    /// Evidence that came in since the batch before.
    pub evidence: Option<Evidence>,
    /// What that plan compares classes with.
    pub references: Vec<ReferenceCounts>,
    /// What has been met with this batch.
    pub met: Option<Met>,
    /// The version of the profiles that its records were joined to.
    pub profiles: u64,
    /// New values of the state of the series; none where there are no series.
    pub series: Option<SeriesChanges>,
    /// The partition of contributions, where their state changes.
    pub series_place: Option<Place>,
    /// Source partitions without an unread record, each with the offset at which it was found so: buckets have not waited for them.
    pub idle: Vec<(Place, i64)>,
    /// All source partitions, as they were then.
    pub sources: Vec<Place>,
}
