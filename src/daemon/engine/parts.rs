//! What an engine is made of, and what it goes on from.

use super::audit::Auditor;
use super::draws::Draws;
use super::settings::EngineSettings;
use crate::anonymity::plan::Plan;
use crate::anonymity::plan::evidence::Evidence;
use crate::anonymity::planner::drift::Baseline;
use crate::anonymity::planner::reference::ReferenceCounts;
use crate::anonymity::planner::sample::Sample;
use crate::anonymity::planner::{GroupShape, guarded};
use crate::anonymity::privacy::protection::Protection;
use crate::daemon::engine::model::{Model, Resumed};
use crate::daemon::engine::prime::Primed;
use crate::daemon::state::records::{KeptRow, ProfileChange, Progress};
use crate::daemon::state::rows::RowBlock;
use crate::daemon::state::store::{Recovered, Store};
use crate::ledger::per_subject::Ledger;
use crate::records::codebook::{Codebook, CodebookError};
use crate::records::schema::Schema;
use crate::records::subject::Subjects;
use crate::risk::adjacency::AdjacencyError;
use crate::start::findings::Met;
use crate::telemetry::Telemetry;
use std::sync::Arc;

/// Everything that an engine is made of.
pub struct Parts {
    /// Positions of attributes in all other parts are positions in this schema.
    pub schema: Arc<Schema>,
    /// What the configuration asks for; fixed while the process runs.
    pub settings: EngineSettings,
    /// The groups, in the order in which their fragments leave.
    pub shapes: Vec<GroupShape>,
    /// Who chose them and why, for the pages; null where the configuration gives them.
    pub chosen: serde_json::Value,
    /// Which treatments the rules have come to, as pages show it.
    pub treatments: serde_json::Value,
    /// How what leaves, or has left before, may be untrue.
    pub untruthful: Option<String>,
    /// The attributes that privacy models beside k protect, in the order of the schema.
    pub protections: Vec<Protection>,
    /// One codebook an attribute, still without values: what the past holds is encoded anew.
    pub books: Vec<Codebook>,
    /// `None` where the schema names no subject: then each record counts as a subject of its own.
    pub subjects: Option<Subjects>,
    /// Already holds what was recovered from the state.
    pub ledger: Ledger,
    /// Still empty; [`Past::sample`] fills it.
    pub sample: Sample,
    /// The open state: no other process has it.
    pub store: Store,
    /// Where events, metrics and pages get their figures.
    pub telemetry: Telemetry,
    /// Keyed digest of a name.
    pub digest: Box<dyn Fn(&str) -> u128 + Send + Sync>,
    /// Makes audit records; none where none are configured.
    pub auditor: Option<Auditor>,
    /// Delays of lines, and which of a subject's lines stands for the others.
    pub draws: Draws,
    /// What an erasure begins anew with.
    pub blank: Blank,
}

/// A memory without a past, as the configuration asks for it.
pub struct Blank {
    /// A ledger in which nothing has left.
    pub ledger: Box<dyn Fn() -> Ledger + Send + Sync>,
    /// Codebooks without values, one an attribute.
    pub books: Box<dyn Fn() -> Result<Vec<Codebook>, CodebookError> + Send + Sync>,
}

/// What was recovered and belongs into the engine.
#[derive(Default)]
pub struct Past {
    /// Where the stream stood after its last batch; the default for a new state.
    pub progress: Progress,
    /// The plan in force; `None` before the first.
    pub plan: Option<Plan>,
    /// Only for a stream that has not begun.
    pub primed: Option<Primed>,
    /// The distributions that drift is measured from; empty before the first plan.
    pub baseline: Baseline,
    /// What was found out last about a plan; `None` where nothing was.
    pub evidence: Option<Evidence>,
    /// What that plan compares classes with.
    pub references: Vec<ReferenceCounts>,
    /// Rows of the planner's sample, in the order of the stream.
    pub sample: Vec<KeptRow>,
    /// Rows of the window, oldest first.
    pub rows: Vec<RowBlock>,
    /// Rows that wait, in any order.
    pub held: Vec<KeptRow>,
    /// Profiles that joins have kept.
    pub profiles: Vec<ProfileChange>,
    /// What its records had; none where nobody has noted it.
    pub met: Option<Met>,
}

impl From<Recovered> for Past {
    fn from(recovered: Recovered) -> Self {
        Self {
            progress: recovered.progress,
            plan: recovered.plan,
            primed: None,
            baseline: recovered.baseline,
            evidence: recovered.evidence,
            references: recovered.references,
            sample: recovered.sample,
            rows: recovered.rows.into_iter().map(|(_, block)| block).collect(),
            held: recovered.held,
            profiles: recovered.profiles,
            met: recovered.met,
        }
    }
}

/// The model that goes on where `past` ended, before its rows are counted.
pub(super) fn new_model(
    schema: &Schema,
    shapes: &[GroupShape],
    settings: &EngineSettings,
    past: &Past,
) -> Result<Model, AdjacencyError> {
    let attributes = guarded(shapes);
    let Progress { rows, derived, left_out, .. } = &past.progress;
    Model::new(schema.attributes.len(), attributes, settings.model, &Resumed { rows: *rows, derived, left_out })
}
