//! The planner: from a sample of the stream to a [`Plan`]. It decides what is worth trying, never what is safe.
//!
//! Planning is a function of the sample, the schema and the settings, bounded by a count of evaluations and not by
//! time, so that the same stream gets the same plans on every machine.

pub mod drift;
pub mod evidence;
pub mod identifiers;
mod judge;
pub mod ladder;
pub mod pace;
pub mod reference;
pub mod sample;

use crate::anonymity::plan::{Group, Plan};
use crate::records::codebook::Codebook;
use ladder::{LadderLimits, build_ladder};
use rayon::prelude::*;
use sample::Sample;

/// The attributes of one group, before any ladder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupShape {
    pub name: String,
    pub quasi: Vec<usize>,
    pub sensitive: Vec<usize>,
    pub insensitive: Vec<usize>,
}

impl GroupShape {
    /// The group as a plan names it, before any ladder.
    #[must_use]
    pub fn without_ladder(&self) -> Group {
        Group {
            name: self.name.clone(),
            quasi: self.quasi.clone(),
            sensitive: self.sensitive.clone(),
            insensitive: self.insensitive.clone(),
            ladder: Vec::new(),
        }
    }
}

/// Settings of the planner.
#[derive(Clone, Copy, Debug)]
pub struct PlannerSettings {
    pub k: usize,
    pub ladder: LadderLimits,
    /// Distinct values over rows from which a flat attribute is an identifier (docs/methods.md §2).
    pub identifier_cardinality: f64,
    /// Rows that a support count in the sample stands for: the stream's window.
    pub window_records: usize,
    /// Where a class needs a crowd in its own batch.
    pub batch: Option<InBatch>,
}

/// A crowd that every batch must have by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InBatch {
    /// Subjects of a class.
    pub crowd: usize,
    /// Rows of a batch.
    pub records: usize,
}

impl PlannerSettings {
    /// The same for a stream of which `rows` have come in `batches`: a batch is as large as they were on average.
    #[must_use]
    pub fn for_batches(self, rows: u64, batches: u64) -> Self {
        let records = rows.checked_div(batches).and_then(|records| usize::try_from(records).ok());
        let of =
            |batch: InBatch| InBatch { records: records.unwrap_or(batch.records).clamp(1, batch.records), ..batch };
        Self { batch: self.batch.map(of), ..self }
    }
}

/// Makes plan number `version` from what `sample` shows; an empty sample gives a plan from schema and hierarchies alone.
#[must_use]
pub fn make_plan(
    version: u64,
    shapes: &[GroupShape],
    sample: &Sample,
    books: &[Codebook],
    settings: &PlannerSettings,
) -> Plan {
    let attributes: Vec<usize> = shapes.iter().flat_map(|s| s.quasi.iter().chain(&s.sensitive)).copied().collect();
    let identifiers = identifiers::found_in(sample, &attributes, books, settings.identifier_cardinality);
    let groups = shapes
        .par_iter()
        .map(|shape| Group {
            ladder: build_ladder(&shape.quasi, &identifiers, sample, books, settings),
            ..shape.without_ladder()
        })
        .collect();
    Plan { version, identifiers, groups, rows: sample.rows() as u64, primed: false, paces: Vec::new() }
}
