//! The ledger: what is remembered of each subject across batches.
//!
//! | file | what it holds |
//! |---|---|
//! | [`per_subject`] | the ledger, and what of it counts at one moment |
//! | [`said`] | the release log: one line per subject, group and window |
//! | [`supporters`] | tenure, and how many classes each subject supports |
//! | [`delta`] | what one batch adds |
//! | [`shared`] | what of that other instances are told, and what time it is for them |
//! | [`erasure`] | all of these without somebody |

mod bytes;
pub mod delta;
pub mod erasure;
pub mod per_subject;
pub mod said;
pub mod supporters;

pub use bytes::SHARDS;
