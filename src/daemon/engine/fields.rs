//! All that an engine knows and remembers.

use super::audit::Auditor;
use super::draws::Draws;
use super::held::Held;
use super::joins::Joins;
use super::model::{Model, ModelSize};
use super::parts::Blank;
use super::prime::Primed;
use super::recheck::Recheck;
use super::search::Search;
use super::settings::EngineSettings;
use crate::anonymity::plan::Plan;
use crate::anonymity::plan::evidence::Evidence;
use crate::anonymity::planner::GroupShape;
use crate::anonymity::planner::drift::Baseline;
use crate::anonymity::planner::reference::ReferenceCounts;
use crate::anonymity::planner::sample::Sample;
use crate::anonymity::privacy::protection::Protection;
use crate::anonymity::treatment::treat::{GroupNames, Protected};
use crate::daemon::state::records::Progress;
use crate::daemon::state::rows::RowPacker;
use crate::daemon::state::store::Store;
use crate::io::input::Origin;
use crate::ledger::per_subject::Ledger;
use crate::records::codebook::Codebook;
use crate::records::schema::Schema;
use crate::records::subject::Subjects;
use crate::release::given::GroupTerms;
use crate::start::findings::Met;
use crate::telemetry::Telemetry;
use std::sync::Arc;

/// What is in force for a batch: the plan, and all that follows from it.
pub(super) struct InForce {
    pub(super) plan: Plan,
    pub(super) names: GroupNames,
    /// Names of the plan's groups among what waits and what has been said.
    pub(super) turn_names: Vec<u128>,
    pub(super) terms: Vec<GroupTerms>,
    pub(super) protections: Vec<Protection>,
    pub(super) protected: Vec<Protected>,
    /// What the plan compares classes with.
    pub(super) references: Vec<ReferenceCounts>,
}

/// What has been learned of the stream.
pub(super) struct Learning {
    pub(super) model: Model,
    /// As it was when its pairs were last settled: behind the stream by a batch at most.
    pub(super) model_size: ModelSize,
    pub(super) sample: Sample,
    /// What the plan in force was made for.
    pub(super) baseline: Baseline,
    /// Since the start of the process.
    pub(super) met: Met,
    /// Records from which the values are asked again what the schema leaves unprotected.
    pub(super) doubt_at: u64,
}

/// The next plan.
pub(super) struct Planning {
    /// The first plan, where one was made before the stream.
    pub(super) primed: Option<Primed>,
    pub(super) search: Option<Search>,
    pub(super) recheck: Option<Recheck>,
    /// What was found out last.
    pub(super) evidence: Option<Evidence>,
    /// Who chose the groups and why, for the pages; null where the configuration gives them.
    pub(super) chosen: serde_json::Value,
    /// Which treatments the rules have come to, as pages show it.
    pub(super) treatments: serde_json::Value,
}

/// What survives the process.
pub(super) struct Durable {
    pub(super) store: Store,
    pub(super) packer: RowPacker,
    pub(super) progress: Progress,
}

/// From values to codes.
pub(super) struct Coding {
    pub(super) books: Vec<Codebook>,
    pub(super) subjects: Option<Subjects>,
    /// Rises when dictionaries number their values anew.
    pub(super) numbering: u64,
    /// Bytes that were left of the dictionaries when they were last rid of what no record needs for want of room; 0: never.
    pub(super) compacted_bytes: u64,
}

/// The engine.
pub struct Engine {
    pub(super) schema: Arc<Schema>,
    pub(super) settings: EngineSettings,
    pub(super) shapes: Vec<GroupShape>,
    pub(super) quasi: Vec<usize>,
    pub(super) in_force: InForce,
    pub(super) learning: Learning,
    pub(super) planning: Planning,
    pub(super) durable: Durable,
    pub(super) coding: Coding,
    pub(super) ledger: Ledger,
    pub(super) held: Held,
    pub(super) joins: Joins,
    pub(super) telemetry: Telemetry,
    pub(super) digest: Box<dyn Fn(&str) -> u128 + Send + Sync>,
    pub(super) draws: Draws,
    pub(super) blank: Blank,
    /// Makes audit records; none where none are configured.
    pub(super) auditor: Option<Auditor>,
    /// How what leaves may be untrue.
    pub(super) untruthful: Option<String>,
    /// Where the records come from.
    pub(super) origin: Arc<dyn Origin>,
}
