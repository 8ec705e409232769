//! The ledger: what has left, as far as it still counts.
//!
//! | room | what it holds |
//! |---|---|
//! | [`classes`] | the subjects of each class, and what is kept beside them |
//! | [`delta`] | what one batch adds |
//! | [`shared`] | what of that other instances are told, and what time it is for them |
//! | [`at`] | what of all this counts at one moment |
//! | [`occurrences`] | which class each fragment of a batch left in |
//! | [`tally`] | sensitive values that were shown |
//! | [`witnesses`] | raw tuples of what has left, for strict recoding |
//! | [`supporters`] | how many classes each subject supports, and since when it is known |
//! | [`said`] | subjects of which a group that does not change has been said |
//! | [`erasure`] | all of these without somebody |

pub mod at;
mod bytes;
pub mod classes;
pub mod delta;
pub mod erasure;
pub mod occurrences;
pub mod said;
pub mod supporters;
pub mod tally;
pub mod witnesses;

pub use bytes::SHARDS;
