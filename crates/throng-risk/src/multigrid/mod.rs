//! Multigrid node aggregation (docs/internals/methods.md §5; \[POD] §5.2): counts and searches values that always occur together
//! only once.
//!
//! R(u) are the records with value u. u ⇒ v is *certain* if R(u) ⊆ R(v), that is n(u, v) = n(u). u ⇔ v means that
//! they are equal. Both are about records, never about subjects.
//!
//! | level | merged | used by |
//! |---|---|---|
//! | attributes | columns that split the records equally (A ⇔ B), columns that others determine (A → B) | [`AttributeAggregation`]: Find-QID on the kept columns; [`CoarseAdjacency`]: only pairs of roots are counted |
//! | values | u ⇔ v is one node; if u ⇒ v, v keeps only the records without u | [`ExactAggregation`]: fewer nodes and edges per level, all counts recoverable |
//!
//! **Losslessness.** If R(u) ⊆ R(v), a combination that contains u has the same records and subjects with v and
//! without. So no minimal infrequent combination contains both.
//!
//! The same holds for all values of two columns. If A → B, then X ∪ {A} and X ∪ {A, B} have the same classes. Hence
//! they have the same supports at every k, in records or in subjects. Missing and masked cells are values like
//! others.
//!
//! So the minimal QIDs of the table are those of the kept columns, with each column replaced by each of its twins in
//! turn. Its maximal non-QIDs are those of the kept columns with all columns that they imply.
//!
//! For counts: every fine node is a disjoint union of coarse nodes, given by P, and N = P·N_c·Pᵀ exactly
//! ([`exact`](ExactAggregation)).
//!
//! The proof and the measurements are in docs/internals/model.md.

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
