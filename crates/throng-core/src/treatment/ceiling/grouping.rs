//! Groups the classes of a catalog (\[HCE] Alg. 2; docs/internals/methods.md §15.4).
//!
//! Stricter than Lemma 1, because a reader may know the filling: classes have the minimum size, and true lines of the
//! others could be all counterfeits of a class, one for one.

use std::collections::{BTreeMap, BTreeSet};

/// Number of lines by value.
pub type ValueCounts = BTreeMap<u32, u32>;

/// Class of a release.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CatalogClass {
    /// Identity, independent of the input order.
    pub identity: u128,
    /// True lines by value.
    pub true_counts: ValueCounts,
    /// Counterfeits by value.
    pub counterfeits: ValueCounts,
}

/// Returns the total number of lines.
pub fn total_lines(counts: &ValueCounts) -> u32 {
    counts.values().sum()
}

impl CatalogClass {
    /// Returns the number of true lines and counterfeits.
    pub fn line_count(&self) -> u32 {
        total_lines(&self.true_counts) + total_lines(&self.counterfeits)
    }
}

/// Result of grouping classes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClassGrouping {
    /// Ascending positions of classes, in disjoint groups of at least two classes and one counterfeit.
    pub groups: Vec<Vec<usize>>,
    /// Unconcealed classes with counterfeits; if any, the groups are not usable.
    pub unconcealed_classes: Vec<usize>,
}

/// Groups `classes` of equal size, each with at most `most` counterfeits.
///
/// Every result is safe; a failure does not exclude a safe grouping. Time: O(counterfeits · classes) look-ups.
pub fn group_classes(classes: &[CatalogClass], most: u32) -> ClassGrouping {
    let mut showing: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for (at, class) in classes.iter().enumerate() {
        for &value in class.true_counts.keys() {
            showing.entry(value).or_default().push(at);
        }
    }
    let mut order: Vec<usize> = (0..classes.len()).filter(|&at| !classes[at].counterfeits.is_empty()).collect();
    order.sort_by_key(|&at| (std::cmp::Reverse(total_lines(&classes[at].counterfeits)), classes[at].identity));
    let mut group_of: Vec<usize> = (0..classes.len()).collect();
    let mut groups: Vec<Vec<usize>> = (0..classes.len()).map(|at| vec![at]).collect();
    let mut open = Vec::new();
    for class in order {
        let mut left = classes[class].counterfeits.clone();
        subtract_concealed(classes, most, groups[group_of[class]].iter().filter(|&&other| other != class), &mut left);
        while !left.is_empty() {
            let own = group_of[class];
            let candidates = left.keys().filter_map(|value| showing.get(value)).flatten().map(|&other| group_of[other]);
            let candidates: BTreeSet<usize> = candidates.filter(|&other| other != own).collect();
            let worth = |&group: &usize| {
                let mut after = left.clone();
                subtract_concealed(classes, most, groups[group].iter(), &mut after);
                let matched = total_lines(&left) - total_lines(&after);
                let first = groups[group].iter().map(|&at| classes[at].identity).min().unwrap_or_default();
                (matched, std::cmp::Reverse(groups[group].len()), std::cmp::Reverse(first), group)
            };
            let Some((_, _, _, best)) = candidates.iter().map(worth).max().filter(|best| best.0 > 0) else {
                open.push(class);
                break;
            };
            let joined = std::mem::take(&mut groups[best]);
            subtract_concealed(classes, most, joined.iter(), &mut left);
            joined.iter().for_each(|&at| group_of[at] = own);
            groups[own].extend(joined);
        }
    }
    groups.retain(|group| group.len() > 1);
    groups.iter_mut().for_each(|group| group.sort_unstable());
    open.sort_unstable();
    ClassGrouping { groups, unconcealed_classes: open }
}

/// Subtracts the counterfeits that could be true lines of `others`.
fn subtract_concealed<'a>(
    classes: &[CatalogClass],
    most: u32,
    others: impl Iterator<Item = &'a usize>,
    left: &mut ValueCounts,
) {
    for &other in others {
        let class = &classes[other];
        let mut room = most.saturating_sub(total_lines(&class.counterfeits));
        left.retain(|value, count| {
            let taken = (*count).min(room).min(class.true_counts.get(value).copied().unwrap_or(0));
            room -= taken;
            *count -= taken;
            *count > 0
        });
        if left.is_empty() {
            return;
        }
    }
}

#[cfg(test)]
#[path = "grouping_tests.rs"]
mod tests;
