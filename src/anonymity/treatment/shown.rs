//! What is known of the sensitive values that have already been shown in a class (the tally, seen from below).

/// The sensitive values of earlier releases, inside the support window.
pub trait Shown: Sync {
    /// Appends the pairs (value, subject) of `attribute` that were shown in `class` and count now.
    fn pairs(&self, attribute: usize, class: u128, out: &mut Vec<(u64, u64)>);

    /// Whether values of `attribute` may be shown at all: everything that its models must know of the past is known, and
    /// what `rows` rows show would find room.
    fn is_open(&self, attribute: usize, rows: usize) -> bool;
}
