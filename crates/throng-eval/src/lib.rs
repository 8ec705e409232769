//! Utility and disclosure risk of a release, measured from outside: from the original records, the released lines and
//! the custodian's lineage. No code here takes part in a release.
//!
//! | module | content |
//! |---|---|
//! | [`original`], [`released_lines`], [`lineage`] | original records, released lines, source of each line |
//! | [`joined_rows`] | group of a row that has columns for all groups |
//! | [`facts`] | values that a cell covers |
//! | [`quality`], [`information`], [`queries`] | utility measures |
//! | [`learning`] | accuracy of models trained on the release |
//! | [`series`] | released series compared with the original: contributions, cohorts, utility |
//! | [`risk`], [`singling_out`] | re-identification risk of lines; attribute combinations that single subjects out |
//! | [`attack`] | attacks of outsiders |
//! | [`error`] | reasons for which an evaluation fails |

pub mod attack;
pub mod error;
pub mod facts;
pub mod information;
pub mod joined_rows;
pub mod learning;
pub mod lineage;
pub mod original;
pub mod quality;
pub mod queries;
pub mod released_lines;
pub mod risk;
pub mod series;
pub mod singling_out;
