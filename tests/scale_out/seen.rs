//! A line of a release as readers of committed records have seen it, and what markers say of its batch.

use std::collections::BTreeMap;

/// A line as it was seen.
#[derive(Clone, Debug)]
pub struct Seen {
    pub offset: i64,
    /// The time of its batch, milliseconds.
    pub stamp: i64,
    pub text: String,
}

/// Who has committed how many batches, by stamp.
pub type Batches = BTreeMap<i64, Vec<String>>;
