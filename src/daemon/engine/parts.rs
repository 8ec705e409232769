//! What an engine is made of, and what it goes on from.

use super::draws::Draws;
use super::settings::EngineSettings;
use crate::anonymity::plan::Plan;
use crate::anonymity::plan::evidence::Evidence;
use crate::anonymity::planner::GroupShape;
use crate::anonymity::planner::drift::Baseline;
use crate::anonymity::planner::reference::ReferenceCounts;
use crate::anonymity::planner::sample::Sample;
use crate::anonymity::privacy::protection::Protection;
use crate::daemon::engine::model::{Model, Resumed};
use crate::daemon::engine::prime::Primed;
use crate::daemon::state::records::{KeptRow, Progress};
use crate::daemon::state::rows::RowBlock;
use crate::daemon::state::store::Store;
use crate::ledger::classes::Ledger;
use crate::ledger::witnesses::WitnessDelta;
use crate::records::codebook::Codebook;
use crate::records::schema::Schema;
use crate::records::subject::Subjects;
use crate::risk::adjacency::AdjacencyError;
use crate::start::findings::Met;
use crate::start::population::Populations;
use crate::telemetry::Telemetry;
use std::sync::Arc;

/// Everything that an engine is made of.
pub struct Parts {
    pub schema: Arc<Schema>,
    pub settings: EngineSettings,
    pub shapes: Vec<GroupShape>,
    pub protections: Vec<Protection>,
    pub populations: Populations,
    pub books: Vec<Codebook>,
    pub subjects: Option<Subjects>,
    pub ledger: Ledger,
    pub sample: Sample,
    pub store: Store,
    pub telemetry: Telemetry,
    /// Keyed digest of a name.
    pub digest: Box<dyn Fn(&str) -> u128 + Send + Sync>,
    pub draws: Draws,
}

/// What was recovered and belongs into the engine.
#[derive(Default)]
pub struct Past {
    pub progress: Progress,
    pub plan: Option<Plan>,
    /// Only for a stream that has not begun.
    pub primed: Option<Primed>,
    pub baseline: Baseline,
    pub evidence: Option<Evidence>,
    /// What that plan compares classes with.
    pub references: Vec<ReferenceCounts>,
    pub sample: Vec<KeptRow>,
    /// Rows of the window, oldest first.
    pub rows: Vec<RowBlock>,
    pub held: Vec<KeptRow>,
    pub witnessed: WitnessDelta,
    /// What its records had; none where nobody has noted it.
    pub met: Option<Met>,
}

/// The model that goes on where `past` ended, before its rows are counted.
pub(super) fn new_model(
    schema: &Schema,
    shapes: &[GroupShape],
    settings: &EngineSettings,
    past: &Past,
) -> Result<Model, AdjacencyError> {
    let mut attributes: Vec<usize> = shapes.iter().flat_map(|s| s.quasi.iter().chain(&s.sensitive)).copied().collect();
    attributes.sort_unstable();
    let Progress { rows, derived, left_out, .. } = &past.progress;
    Model::new(schema.attributes.len(), attributes, settings.model, &Resumed { rows: *rows, derived, left_out })
}
