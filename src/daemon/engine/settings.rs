//! The settings of an engine.

use super::model::ModelSettings;
use crate::anonymity::planner::PlannerSettings;
use crate::anonymity::treatment::treat::Policy;
use crate::codec::LineFormat;
use crate::config::Rows;
use crate::counting::Wanted;
use std::time::Duration;

/// Settings of the engine.
#[derive(Clone, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "they are independent of each other")]
pub struct EngineSettings {
    /// What treatment asks of a class, and which records it may hold.
    pub policy: Policy,
    /// Limits of a search for a plan, and the crowds that it plans for.
    pub planner: PlannerSettings,
    /// Time from the end of one search for a plan to the next, if records have come since.
    pub plan_interval_ms: i64,
    /// How plans and evidence are sought beside the release.
    pub search: SearchSettings,
    /// How much of the stream is remembered and counted.
    pub model: ModelSettings,
    /// How lines are written; verification reads the same bytes back.
    pub format: LineFormat,
    /// What a line carries.
    pub rows: Rows,
    /// Absent and missing cells are one: the output cannot tell them apart.
    pub absent_as_null: bool,
    /// Nothing is released: the risk is measured.
    pub monitor: bool,
    /// Offsets that the state has settled may come again; without it they are refused.
    pub accept_rewind: bool,
    /// At most so many values of one attribute have a code; a value that finds no room shows `*`.
    pub max_dictionary_values: usize,
    /// Bytes that all dictionaries together may take before they are rid of what no record needs; `None`: only their values are limited.
    pub dictionary_bytes: Option<u64>,
    /// The first plan is made from the first batch, which is all there is of a file, or most of it.
    pub plans_from_first_batch: bool,
    /// Values of one attribute that a record brings at most: its own, and the mean that may take its place.
    pub values_a_record: usize,
    /// Limits on what is said of one subject.
    pub repetition: RepetitionSettings,
    /// What joins bring, in the order of their names.
    pub joins: Vec<JoinSettings>,
}

impl EngineSettings {
    /// Values of one attribute that a batch of `rows` records brings at most.
    pub(super) fn values_of(&self, rows: usize) -> usize {
        self.values_a_record * rows
    }
}

/// What a join brings.
#[derive(Clone, Debug)]
pub struct JoinSettings {
    /// Its name.
    pub name: String,
    /// The attributes, in the order of the profiles' cells.
    pub attributes: Vec<usize>,
    /// People of whom a profile is kept, at most.
    pub max_people: usize,
    /// Profiles go on coming after the start.
    pub tails: bool,
}

/// When plans are sought beside the release, and how long that may take.
#[derive(Clone, Copy, Debug)]
pub struct SearchSettings {
    /// Batches from the one that a plan is asked for to the one that it is in force for; 0: it is made at once.
    pub handover_batches: u64,
    /// A plan that is late is waited for no longer than this, and evidence is sought no longer.
    pub budget: Duration,
    /// Jensen–Shannon divergence in bits from which the stream has drifted; 1: never.
    pub drift: f64,
    /// Who counts the groups of the window for the evidence.
    pub backend: Wanted,
}

/// Limits on repetition. Without a subject in the schema there are none: every record is its own.
#[derive(Clone, Copy, Debug, Default)]
pub struct RepetitionSettings {
    /// Lines of a subject in a batch, in a group that changes; 0: no limit.
    pub max_lines: usize,
    /// The longest delay of a line in a group that does not; 0: there are no such groups.
    pub max_delay_ms: i64,
    /// How long a line stands for the others of its subject in such a group, and may look for a class.
    pub window_ms: i64,
    /// Lines that wait at most.
    pub max_waiting: usize,
    /// People who may be one person's invention: what only they change does not change.
    pub colluders: usize,
}

/// How often in the longest delay a line that has found no class looks for one.
const CALLS: i64 = 24;

impl RepetitionSettings {
    /// When a line that found no class at `age_ms` comes again. These moments are the same for all lines, so that those who
    /// make a crowd together meet; they lie after `age_ms`, so that a quiet stream does not ask for ever.
    pub(super) fn next_call(&self, age_ms: i64) -> i64 {
        let step = (self.max_delay_ms / CALLS).max(1);
        (age_ms.div_euclid(step) + 1) * step
    }
}
