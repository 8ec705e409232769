//! Readers and recount for the evaluation of a release; measures and attacks are in `throng_eval`. No code here takes
//! part in a release.

mod nested_reader;
pub mod original;
pub mod release_guarantees;
mod released_columns;
pub mod released_groups;
pub mod released_series_rows;
pub mod series_evidence;
pub mod verification;
