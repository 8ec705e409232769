//! Full-domain generalization and record suppression (docs/internals/methods.md §7).

mod anchors;
pub mod antichain;
pub mod attribute_coding;
mod class_scratch;
pub mod nearest_policy;
pub mod policy;
pub mod policy_check;
pub mod recoding_passes;
pub mod row_decisions;
mod row_grouping;
pub mod search;
pub mod search_deadline;
pub mod strategies;
pub mod table;
pub mod table_packing;
