//! What speaks for a plan: the quasi-identifiers of the window that it was made for, how well the model points at them,
//! what aggregation saves, and what the plan is expected to cost.
//!
//! Evidence is gathered beside the release, within `plan.search_budget`, and changes no byte of it. It holds no value of the
//! data: attribute positions, counts and shares only.

use serde::{Deserialize, Serialize};

/// The evidence for one plan.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// Version of the plan.
    pub plan: u64,
    /// That plan was made from the records of `plan.prime`; the evidence is the stream's.
    pub primed: bool,
    pub k: u32,
    /// Records of the window that were looked at, and what they support: distinct subjects, or themselves.
    pub records: u64,
    pub support: u64,
    /// Attributes that were searched (positions in the schema, ascending).
    pub attributes: Vec<usize>,
    /// False where the budget ended first: then the lists hold what is proved, and the rest is unsafe.
    pub complete: bool,
    /// Minimal quasi-identifiers of 1, 2, … attributes, rare single values masked (docs/methods.md §3).
    pub qids_by_size: Vec<u64>,
    /// The first of them, in canonical order.
    pub minimal_qids: Vec<Vec<usize>>,
    /// People whom each of them leaves below k (records, where the stream names no people); of the last ones it may be
    /// missing.
    pub people_below: Vec<u64>,
    pub maximal_non_qids: u64,
    /// The largest sets that are none, at most a few.
    pub largest_non_qids: Vec<Vec<usize>>,
    /// Sets whose groups were counted, and sets decided without.
    pub evaluated: u64,
    pub pruned: u64,
    pub triage: Option<TriageEvidence>,
    /// The attributes that give others away most: `M(A→B)` of docs/methods.md §4, highest first.
    pub inferences: Vec<AttributeInference>,
    /// The strongest inferences from one value to another, one at most for each ordered pair of attributes, strongest first.
    pub strongest: Vec<StrongestInference>,
    pub aggregation: Option<Aggregation>,
    /// Mean loss of a cell, in [0, 1], that the sample expects of the plan's ladders.
    pub expected_loss: f64,
    /// Who counted the groups.
    pub computed_by: String,
    pub seconds: f64,
}

/// How well cycle inference points at the quasi-identifiers ([POD] Def. 9, Fig. 5.6a).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TriageEvidence {
    /// The largest θ at which the suspects cover every minimal quasi-identifier of two to four attributes.
    pub theta: Option<f64>,
    pub sizes: Vec<TriageSize>,
}

/// Suspects against the exact answer, among the sets of one size.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TriageSize {
    pub size: usize,
    pub sets: u64,
    pub suspects: u64,
    pub qids: u64,
    pub precision: Option<f64>,
    pub recall: Option<f64>,
    /// Exact evaluations until nine tenths of the minimal quasi-identifiers are met: by deviation, by inference, by
    /// cardinality, by chance.
    pub nine_tenths: Option<[f64; 4]>,
}

/// The support-weighted mean of what the values of one attribute tell of another.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct AttributeInference {
    pub from: usize,
    pub to: usize,
    /// In (0, 1].
    pub mean: f64,
}

/// A value of one attribute gives away one of another. Which values these are is not said.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct StrongestInference {
    pub from: usize,
    pub to: usize,
    /// Records of the window with both values.
    pub records: u64,
    /// Distinct subjects behind them, or the records where the stream names no subjects; at least k.
    pub support: u64,
    /// P(v|u), in (0, 1].
    pub probability: f64,
}

/// What exact aggregation (docs/methods.md §5) leaves of the model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Aggregation {
    pub nodes: u64,
    pub edges: u64,
    pub coarse_nodes: u64,
    pub coarse_edges: u64,
    /// Attributes that others determine, so that no search has to look at them.
    pub implied_attributes: u64,
}
