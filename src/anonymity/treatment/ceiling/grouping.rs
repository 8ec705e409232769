//! Which classes stand together in a catalog ([HCE] Alg. 2; docs/methods.md §15.4).
//!
//! Lemma 1 of the paper asks of every class and value that the true lines of the *other* classes of its group be at least as many as its
//! counterfeits. A reader who knows how classes are filled knows more than the lemma lets him: that a class larger than the least
//! size has no counterfeit, and that none has more of them than leaves k true lines. So here all classes of a group have the
//! least size, and what is asked of a class is asked of all its values together: true lines of the others could be its
//! counterfeits, one for one, with no class having more of them than it may. Then no class can be shown to have any.
//! Lemma 1 follows.

use std::collections::{BTreeMap, BTreeSet};

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
pub fn total(counts: &Counts) -> u32 {
    counts.values().sum()
}

impl Class {
    /// True lines and counterfeits.
    pub fn lines(&self) -> u32 {
        total(&self.shown) + total(&self.counterfeits)
    }
}

/// What became of classes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grouped {
    /// Positions of classes, ascending in each group; at least two, one of which has a counterfeit. No class is in two.
    pub groups: Vec<Vec<usize>>,
    /// Classes whose counterfeits nobody conceals; the groups are worth nothing then.
    pub open: Vec<usize>,
}

/// Groups `classes`, all of one size, none of which may have more than `most` counterfeits.
///
/// The class with the most counterfeits goes first. It is joined with the group that conceals most of what is left of them, the smallest of
/// several, until nothing is left.
///
/// Time: O(counterfeits · classes) look-ups in the worst case. What is found is safe; where nothing is found, a safe grouping may exist.
pub fn group(classes: &[Class], most: u32) -> Grouped {
    let mut showing: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for (at, class) in classes.iter().enumerate() {
        for &value in class.shown.keys() {
            showing.entry(value).or_default().push(at);
        }
    }
    let mut order: Vec<usize> = (0..classes.len()).filter(|&at| !classes[at].counterfeits.is_empty()).collect();
    order.sort_by_key(|&at| (std::cmp::Reverse(total(&classes[at].counterfeits)), classes[at].identity));
    let mut group_of: Vec<usize> = (0..classes.len()).collect();
    let mut groups: Vec<Vec<usize>> = (0..classes.len()).map(|at| vec![at]).collect();
    let mut open = Vec::new();
    for class in order {
        let mut left = classes[class].counterfeits.clone();
        conceal(classes, most, groups[group_of[class]].iter().filter(|&&other| other != class), &mut left);
        while !left.is_empty() {
            let own = group_of[class];
            let candidates = left.keys().filter_map(|value| showing.get(value)).flatten().map(|&other| group_of[other]);
            let candidates: BTreeSet<usize> = candidates.filter(|&other| other != own).collect();
            let worth = |&group: &usize| {
                let mut after = left.clone();
                conceal(classes, most, groups[group].iter(), &mut after);
                let matched = total(&left) - total(&after);
                let first = groups[group].iter().map(|&at| classes[at].identity).min().unwrap_or_default();
                (matched, std::cmp::Reverse(groups[group].len()), std::cmp::Reverse(first), group)
            };
            let Some((_, _, _, best)) = candidates.iter().map(worth).max().filter(|best| best.0 > 0) else {
                open.push(class);
                break;
            };
            let joined = std::mem::take(&mut groups[best]);
            conceal(classes, most, joined.iter(), &mut left);
            joined.iter().for_each(|&at| group_of[at] = own);
            groups[own].extend(joined);
        }
    }
    groups.retain(|group| group.len() > 1);
    groups.iter_mut().for_each(|group| group.sort_unstable());
    open.sort_unstable();
    Grouped { groups, open }
}

/// Takes from `left` what true lines of `others` could be.
fn conceal<'a>(classes: &[Class], most: u32, others: impl Iterator<Item = &'a usize>, left: &mut Counts) {
    for &other in others {
        let class = &classes[other];
        let mut room = most.saturating_sub(total(&class.counterfeits));
        left.retain(|value, count| {
            let taken = (*count).min(room).min(class.shown.get(value).copied().unwrap_or(0));
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
