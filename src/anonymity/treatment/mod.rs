//! Treatment: from the codes of a batch to a proposal of what may leave. Everything here is checked again by
//! `release::verify`, which shares none of this code.
//!
//! | file | what it holds |
//! |---|---|
//! | [`treat`] | the steps over one batch, in their order; [`proposal`] is what comes out |
//! | [`crowd`], [`recode`] | support of equivalence classes; the first node of a ladder that has it |
//! | [`budget`] | whom a class may count: settled subjects within their budgets |
//! | `sensitive`, [`hide`] | sensitive cells: models, support, cells that hide |
//! | [`hold`], [`mask`] | which records wait, and which take part in a group |
//! | `shared` | attributes that stand in several groups |
//! | [`forced_pairs`] | the counting guard between groups |
//! | [`alter`] | perturbation and micro-aggregation; off by default |
//! | [`ceiling`] | h-ceiling with counterfeits, for data sets; off by default |
//! | `names` | line layouts and digests of the groups of a plan |

pub mod alter;
pub mod budget;
pub mod ceiling;
pub mod crowd;
pub mod forced_pairs;
pub mod hide;
pub mod hold;
pub mod mask;
pub mod names;
pub mod proposal;
pub mod recode;
mod sensitive;
mod shared;
pub mod treat;
