//! Multigrid node aggregation (docs/internals/methods.md §5; \[POD] §5.2): counts and searches values that always occur
//! together only once.
//!
//! R(u) are the records with value u. u ⇒ v is *certain* if R(u) ⊆ R(v), that is n(u, v) = n(u); u ⇔ v if they are
//! equal. Both are about records, never about subjects.
//!
//! | level | merged | used by |
//! |---|---|---|
//! | attributes | A ⇔ B (equal splits), A → B (A determines B) | [`AttributeAggregation`]: Find-QID on kept columns; [`CoarseAdjacency`]: only pairs of roots are counted |
//! | values | u ⇔ v is one node; if u ⇒ v, v keeps only the records without u | [`ExactAggregation`]: fewer nodes and edges per level, all counts recoverable |
//!
//! **Losslessness.** If A → B, X ∪ {A} and X ∪ {A, B} have the same classes, hence equal supports at every k, in
//! records or subjects. So no minimal QID contains both, and a maximal non-QID with A contains B.
//!
//! For counts: every fine node is a disjoint union of coarse nodes, given by P, and N = P·N_c·Pᵀ exactly
//! ([`exact`](ExactAggregation)).
//!
//! Proof and measurements: docs/internals/model.md.

mod aggregation_level;
mod attribute_aggregation;
mod coarse_adjacency;
mod exact_aggregation;
mod implications;
mod node_counts;

pub use aggregation_level::AggregationLevel;
pub use attribute_aggregation::AttributeAggregation;
pub use coarse_adjacency::{CoarseAdjacency, CoarseError, MergePolicy};
pub use exact_aggregation::ExactAggregation;
pub use node_counts::{InexactError, NodeCounts, NodeNumber};

#[cfg(test)]
pub mod brute_force;
#[cfg(test)]
mod tests;
