//! A class as the values that its lines show.

use std::collections::BTreeMap;

/// Values with how many lines show them.
pub type Counts = BTreeMap<u32, u32>;

/// A class of a release, its counterfeits beside its true lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Class {
    /// Names it whatever the order of the input.
    pub identity: u128,
    /// True lines by value.
    pub shown: Counts,
    /// Counterfeits by value.
    pub counterfeits: Counts,
}

/// How many lines counts add up to.
#[must_use]
pub fn total(counts: &Counts) -> u32 {
    counts.values().sum()
}

impl Class {
    /// True lines and counterfeits.
    #[must_use]
    pub fn lines(&self) -> u32 {
        total(&self.shown) + total(&self.counterfeits)
    }
}
