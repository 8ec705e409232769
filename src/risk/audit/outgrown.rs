//! Columns of more different values than can be held.

use super::judged::Judged;
use std::collections::BTreeMap;

/// A column that was given up while it was read, judged by what had been read of it.
#[derive(Clone, Debug)]
pub(super) struct Outgrown {
    pub judged: Judged,
    /// How many values have so many records.
    pub sizes: BTreeMap<u64, u64>,
}
