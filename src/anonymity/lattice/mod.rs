//! Full-domain generalization and record suppression: the search for the policy of least cost (docs/methods.md §7).

mod anchors;
pub mod antichain;
mod bench;
pub mod check;
pub mod coding;
mod grouping;
pub mod nearest;
pub mod packing;
pub mod passes;
pub mod policy;
pub mod search;
pub mod settle;
pub mod strategies;
pub mod table;
pub mod until;
