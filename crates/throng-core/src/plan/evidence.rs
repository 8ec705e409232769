//! Evidence for a plan, without data values.
//!
//! Computed concurrently with the release, without effect on it.

use serde::{Deserialize, Serialize};

/// Evidence for one plan.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PlanEvidence {
    /// Plan version.
    pub plan: u64,
    /// True if the plan is from `plan.prime`.
    pub primed: bool,
    /// Subjects below which a class is rare.
    pub k: u32,
    /// Examined records of the window.
    pub records: u64,
    /// Distinct subjects, or records without subjects.
    pub support: u64,
    /// Searched schema positions, ascending.
    pub attributes: Vec<usize>,
    /// False if the budget ended first: lists are incomplete, and other sets unsafe.
    pub complete: bool,
    /// Minimal quasi-identifiers by size from 1, rare single values masked (docs/internals/methods.md §3).
    pub qids_by_size: Vec<u64>,
    /// First minimal quasi-identifiers, in canonical order.
    pub minimal_qids: Vec<Vec<usize>>,
    /// Subjects (or records) below k for each; the last may be missing.
    pub people_below: Vec<u64>,
    /// Number of maximal non-quasi-identifiers.
    pub maximal_non_qids: u64,
    /// Largest of these.
    pub largest_non_qids: Vec<Vec<usize>>,
    /// Sets evaluated by counting groups.
    pub evaluated: u64,
    /// Sets decided without counting.
    pub pruned: u64,
    /// Accuracy of cycle inference, if compared.
    pub triage: Option<TriageEvidence>,
    /// Strongest mean inferences `M(A→B)` (docs/internals/methods.md §4), descending.
    pub inferences: Vec<AttributeInference>,
    /// Strongest inferences between values, one per ordered pair of attributes, descending.
    pub strongest: Vec<StrongestInference>,
    /// Model size after exact aggregation, if computed.
    pub aggregation: Option<AggregationSize>,
    /// Mean cell loss predicted for the plan's ladders, in [0, 1].
    pub expected_loss: f64,
    /// Backend that counted the groups.
    pub computed_by: String,
    /// Seconds.
    pub seconds: f64,
}

/// Accuracy of cycle inference for quasi-identifiers (\[POD] Def. 9, Fig. 5.6a).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TriageEvidence {
    /// Largest θ whose suspects cover all quasi-identifiers of two to four attributes.
    pub theta: Option<f64>,
    /// Accuracy by set size, ascending.
    pub sizes: Vec<TriageSize>,
}

/// Suspects and exact results for one set size.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TriageSize {
    /// Attributes per set.
    pub size: usize,
    /// Sets of this size.
    pub sets: u64,
    /// Suspects by inference.
    pub suspects: u64,
    /// Minimal quasi-identifiers.
    pub qids: u64,
    /// Share of suspects that are quasi-identifiers, in [0, 1].
    pub precision: Option<f64>,
    /// Share of quasi-identifiers that are suspects, in [0, 1].
    pub recall: Option<f64>,
    /// Evaluations until nine tenths of the quasi-identifiers, by deviation, inference, cardinality, and at random.
    pub nine_tenths: Option<[f64; 4]>,
}

/// Support-weighted mean inference between attributes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct AttributeInference {
    /// Source schema position.
    pub from: usize,
    /// Inferred schema position.
    pub to: usize,
    /// Mean, in (0, 1].
    pub mean: f64,
}

/// Inference between undisclosed values.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct StrongestInference {
    /// Schema position of the known value.
    pub from: usize,
    /// Schema position of the inferred value.
    pub to: usize,
    /// Records with both values.
    pub records: u64,
    /// Their subjects (or records), at least k.
    pub support: u64,
    /// P(v|u), in (0, 1].
    pub probability: f64,
}

/// Model size before and after exact aggregation (docs/internals/methods.md §5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AggregationSize {
    /// Values of the model.
    pub nodes: u64,
    /// Pairs of values.
    pub edges: u64,
    /// Values after aggregation.
    pub coarse_nodes: u64,
    /// Pairs after aggregation.
    pub coarse_edges: u64,
    /// Attributes determined by others.
    pub implied_attributes: u64,
}
