//! Multigrid node aggregation (docs/methods.md §5; [POD] §5.2): what always goes together is counted and searched once.
//!
//! Write R(u) for the records that have the value u. u ⇒ v is *certain* where R(u) ⊆ R(v), which the counts say by
//! n(u, v) = n(u); u ⇔ v where they are equal. Both are about records, never about subjects.
//!
//! | level | what goes together | what it serves |
//! |---|---|---|
//! | attributes | columns that split the records alike (A ⇔ B), columns that others determine (A → B) | [`Attributes`]: Find-QID on the kept columns; [`CoarseAdjacency`]: pairs are counted between the roots alone |
//! | values | u ⇔ v is one node; of v, where u ⇒ v, only the records without u stay | [`Exact`]: fewer nodes and edges, level after level, all counts kept |
//!
//! **What is lossless.** If R(u) ⊆ R(v), then the records of a combination that contains u are the same with v and without,
//! so are their subjects, and no minimal infrequent combination holds both. Taken over all values of two columns: if
//! A → B, then X ∪ {A} and X ∪ {A, B} have the same classes, hence the same supports, at every k, counted in records
//! or in subjects, missing and masked cells being values like others. So the minimal QIDs of the kept columns, each
//! kept column replaced by each of its twins in turn, are those of the table, and its maximal non-QIDs are those of the
//! kept columns with all that they imply. For counts: every fine node is a disjoint union of coarse ones, P says of which,
//! and N = P·N_c·Pᵀ to the last entry ([`exact`](Exact)).
//!
//! The whole argument, and what was measured, is in docs/model-multigrid.md.

mod attributes;
mod coarse_adjacency;
mod counts;
mod exact;
mod implications;
mod level;

pub use attributes::Attributes;
pub use coarse_adjacency::{CoarseAdjacency, CoarseError, Merging};
pub use counts::{Counts, InexactError, NodeNumber};
pub use exact::Exact;
pub use level::Level;

#[cfg(test)]
pub mod brute_force;
#[cfg(test)]
mod tests;
