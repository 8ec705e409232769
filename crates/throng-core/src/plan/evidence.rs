//! Evidence for a plan: quasi-identifiers, accuracy of the model, benefit of aggregation, expected loss.
//!
//! Gathered concurrently with the release, within the search budget, without effect on the output. Contains no data
//! values, only attribute positions, counts and shares.

use serde::{Deserialize, Serialize};

/// Evidence for one plan.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PlanEvidence {
    /// Version of the plan.
    pub plan: u64,
    /// True if the plan was made from the records of `plan.prime`; the evidence is always from the stream.
    pub primed: bool,
    /// Distinct subjects below which a class is rare.
    pub k: u32,
    /// Examined records of the window.
    pub records: u64,
    /// Distinct subjects of these records, or the records if the stream has no subjects.
    pub support: u64,
    /// Searched attributes (positions in the schema, ascending).
    pub attributes: Vec<usize>,
    /// False if the budget ended first: the lists are then proved but incomplete, and other sets count as unsafe.
    pub complete: bool,
    /// Minimal quasi-identifiers of 1, 2, … attributes, rare single values masked (docs/internals/methods.md §3).
    pub qids_by_size: Vec<u64>,
    /// The first minimal quasi-identifiers, in canonical order.
    pub minimal_qids: Vec<Vec<usize>>,
    /// Subjects below k for each of them, or records if the stream has no subjects. The last entries may be missing.
    pub people_below: Vec<u64>,
    /// Number of maximal sets that are no quasi-identifiers.
    pub maximal_non_qids: u64,
    /// The largest of these sets, at most a few.
    pub largest_non_qids: Vec<Vec<usize>>,
    /// Sets evaluated by counting their groups.
    pub evaluated: u64,
    /// Sets decided without counting.
    pub pruned: u64,
    /// Accuracy of cycle inference; none if not compared.
    pub triage: Option<TriageEvidence>,
    /// Attribute pairs with the strongest mean inference `M(A→B)` of docs/internals/methods.md §4, highest first.
    pub inferences: Vec<AttributeInference>,
    /// Strongest inferences between values, at most one per ordered pair of attributes, strongest first.
    pub strongest: Vec<StrongestInference>,
    /// Size of the model after exact aggregation; none if not computed.
    pub aggregation: Option<AggregationSize>,
    /// Mean loss of a cell, in [0, 1], that the sample predicts for the plan's ladders.
    pub expected_loss: f64,
    /// Backend that counted the groups.
    pub computed_by: String,
    /// Duration in seconds.
    pub seconds: f64,
}

/// Accuracy of cycle inference for quasi-identifiers (\[POD] Def. 9, Fig. 5.6a).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TriageEvidence {
    /// Largest θ at which the suspects cover every minimal quasi-identifier of two to four attributes.
    pub theta: Option<f64>,
    /// Accuracy by set size, ascending.
    pub sizes: Vec<TriageSize>,
}

/// Suspects compared with the exact result, for sets of one size.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TriageSize {
    /// Attributes per set.
    pub size: usize,
    /// Sets of this size.
    pub sets: u64,
    /// Sets suspected by inference.
    pub suspects: u64,
    /// Sets that are minimal quasi-identifiers.
    pub qids: u64,
    /// Share of the suspects that are quasi-identifiers, in [0, 1]; none without suspects.
    pub precision: Option<f64>,
    /// Share of the quasi-identifiers that are suspects, in [0, 1]; none without quasi-identifiers.
    pub recall: Option<f64>,
    /// Exact evaluations until nine tenths of the minimal quasi-identifiers are found, in the order of deviation,
    /// inference, cardinality, and at random.
    pub nine_tenths: Option<[f64; 4]>,
}

/// Support-weighted mean inference from the values of one attribute to another.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct AttributeInference {
    /// Source attribute: position in the schema.
    pub from: usize,
    /// Inferred attribute: position in the schema.
    pub to: usize,
    /// In (0, 1].
    pub mean: f64,
}

/// Inference from a value of one attribute to a value of another. The values are not disclosed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct StrongestInference {
    /// Attribute of the known value: position in the schema.
    pub from: usize,
    /// Attribute of the inferred value: position in the schema.
    pub to: usize,
    /// Records of the window with both values.
    pub records: u64,
    /// Their distinct subjects, or the records if the stream has no subjects; at least k.
    pub support: u64,
    /// P(v|u), in (0, 1].
    pub probability: f64,
}

/// Size of the model before and after exact aggregation (docs/internals/methods.md §5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AggregationSize {
    /// Values of the model.
    pub nodes: u64,
    /// Pairs of values of the model.
    pub edges: u64,
    /// Values after aggregation.
    pub coarse_nodes: u64,
    /// Pairs of values after aggregation.
    pub coarse_edges: u64,
    /// Attributes determined by others, which a search can skip.
    pub implied_attributes: u64,
}
