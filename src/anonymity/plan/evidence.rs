//! What speaks for a plan: the quasi-identifiers of the window that it was made for, how well the model points at them,
//! what aggregation saves, and what the plan is expected to cost.
//!
//! Evidence is gathered beside the release, within the budget of a search, and changes no byte of it. It holds no value of the
//! data: attribute positions, counts and shares only.

use serde::{Deserialize, Serialize};

/// The evidence for one plan.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// Version of the plan.
    pub plan: u64,
    /// That plan was made from the records of `plan.prime`; the evidence is the stream's.
    pub primed: bool,
    /// Distinct subjects below which a class is rare.
    pub k: u32,
    /// Records of the window that were looked at, and what they support: distinct subjects, or themselves.
    pub records: u64,
    /// Distinct subjects of these records, or the records where the stream names no subjects.
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
    /// Number of maximal sets that are no quasi-identifiers.
    pub maximal_non_qids: u64,
    /// The largest sets that are none, at most a few.
    pub largest_non_qids: Vec<Vec<usize>>,
    /// Sets whose groups were counted, and sets decided without.
    pub evaluated: u64,
    /// Sets that were decided without counting.
    pub pruned: u64,
    /// How well inference points at the quasi-identifiers; none where it was not compared.
    pub triage: Option<TriageEvidence>,
    /// The attributes that give others away most: `M(A→B)` of docs/methods.md §4, highest first.
    pub inferences: Vec<AttributeInference>,
    /// The strongest inferences from one value to another, one at most for each ordered pair of attributes, strongest first.
    pub strongest: Vec<StrongestInference>,
    /// What exact aggregation leaves of the model; none where it was not looked at.
    pub aggregation: Option<Aggregation>,
    /// Mean loss of a cell, in [0, 1], that the sample expects of the plan's ladders.
    pub expected_loss: f64,
    /// Who counted the groups.
    pub computed_by: String,
    /// Seconds that gathering took.
    pub seconds: f64,
}

/// How well cycle inference points at the quasi-identifiers ([POD] Def. 9, Fig. 5.6a).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TriageEvidence {
    /// The largest θ at which the suspects cover every minimal quasi-identifier of two to four attributes.
    pub theta: Option<f64>,
    /// By size of the sets, ascending.
    pub sizes: Vec<TriageSize>,
}

/// Suspects against the exact answer, among the sets of one size.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TriageSize {
    /// Attributes of each set.
    pub size: usize,
    /// Sets of this size.
    pub sets: u64,
    /// Those that inference points at.
    pub suspects: u64,
    /// Those that are minimal quasi-identifiers.
    pub qids: u64,
    /// Share of the suspects that are, in [0, 1]; none without suspects.
    pub precision: Option<f64>,
    /// Share of the quasi-identifiers that are suspects, in [0, 1]; none without quasi-identifiers.
    pub recall: Option<f64>,
    /// Exact evaluations until nine tenths of the minimal quasi-identifiers are met: by deviation, by inference, by
    /// cardinality, by chance.
    pub nine_tenths: Option<[f64; 4]>,
}

/// The support-weighted mean of what the values of one attribute tell of another.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct AttributeInference {
    /// The attribute that gives away: position in the schema.
    pub from: usize,
    /// The attribute that is given away: position in the schema.
    pub to: usize,
    /// In (0, 1].
    pub mean: f64,
}

/// A value of one attribute gives away one of another. Which values these are is not said.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct StrongestInference {
    /// The attribute of the known value: position in the schema.
    pub from: usize,
    /// The attribute of the inferred value: position in the schema.
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
    /// Values of the model.
    pub nodes: u64,
    /// Pairs of values of the model.
    pub edges: u64,
    /// Values after aggregation.
    pub coarse_nodes: u64,
    /// Pairs of values after aggregation.
    pub coarse_edges: u64,
    /// Attributes that others determine, so that no search has to look at them.
    pub implied_attributes: u64,
}
