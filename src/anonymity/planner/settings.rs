//! What the planner is told.

use crate::config::Config;

/// Sizes of ladders.
#[derive(Clone, Copy, Debug)]
pub struct LadderLimits {
    /// Lattices up to this many nodes are used whole.
    pub complete: usize,
    /// Nodes chosen from larger ones.
    pub chosen: usize,
}

impl Default for LadderLimits {
    fn default() -> Self {
        Self { complete: 5_000, chosen: 400 }
    }
}

/// Settings of the planner.
#[derive(Clone, Copy, Debug)]
pub struct PlannerSettings {
    /// Distinct subjects that a class needs.
    pub k: usize,
    /// How many nodes a lattice and a ladder may have.
    pub ladder: LadderLimits,
    /// Distinct values over rows from which a flat attribute is an identifier (docs/methods.md §2).
    pub identifier_cardinality: f64,
    /// Records of the stream's window.
    pub window_records: usize,
    /// Rows of a batch, in which a class needs its crowd.
    pub batch_records: usize,
}

impl PlannerSettings {
    /// The settings of a configuration.
    #[must_use]
    pub fn of(config: &Config) -> Self {
        Self {
            k: config.privacy.crowd(),
            ladder: LadderLimits::default(),
            identifier_cardinality: config.tuning.identifier_cardinality,
            window_records: config.plan.window_records,
            batch_records: config.batch.max_records,
        }
    }

    /// The same for a stream of which `rows` have come in `batches`: a batch is as large as they were on average.
    #[must_use]
    pub fn for_batches(self, rows: u64, batches: u64) -> Self {
        let records = rows.checked_div(batches).and_then(|records| usize::try_from(records).ok());
        let most = self.batch_records;
        Self { batch_records: records.unwrap_or(most).clamp(1, most), ..self }
    }
}
