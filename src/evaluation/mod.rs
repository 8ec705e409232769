//! Measures the utility and the disclosure risk of a release from outside: from the original records, the released
//! lines and the custodian's lineage. No code here takes part in a release.
//!
//! | module | content |
//! |---|---|
//! | [`original`], [`released`], [`lineage`] | readers of the inputs; `joined` splits rows that hold all groups |
//! | [`facts`] | values that a cell covers |
//! | [`quality`], [`information`], [`queries`] | utility measures |
//! | [`learning`] | accuracy of models trained on the release |
//! | [`series`] | released series compared with the original: contributions, cohorts, utility |
//! | [`risk`], [`singled`] | re-identification risk of lines; attribute combinations that single subjects out |
//! | [`attack`] | attacks of outsiders |
//! | [`verification`] | recount of the guarantees from the released bytes |
//! | [`error`] | reasons for which an evaluation fails |

pub mod attack;
pub mod error;
pub mod facts;
pub mod information;
mod joined_rows;
pub mod learning;
pub mod lineage;
mod nested_reader;
pub mod original;
pub mod quality;
pub mod queries;
pub mod released_groups;
pub mod risk;
pub mod series;
pub mod singling_out;
pub mod verification;
