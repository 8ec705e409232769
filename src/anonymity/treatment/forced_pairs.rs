//! The counting guard between disjoint groups (docs/methods.md §10.3 and §12.7).
//!
//! Fragments of one batch can be joined by counting alone: if `n` of `N` records are in the set X in one group and `m` are
//! in the set Y in another, at least `n + m − N` records are in both. Where that number is positive the pair (X, Y) is
//! public, so it must be true of at least k subjects; otherwise the cheaper side is withdrawn.
//!
//! *Which sets.* A label is a printed cell by itself, or what the hierarchy has above printed cells, short of the root, the
//! printed cell's own name among it; a record is below it if its printed cell is. X and Y are what some labels of different columns have in common: every conjunction is
//! judged, on both sides. A suppressed cell is below no label. Unions of cells that are no label are not judged.
//!
//! *Which N.* For two groups it is the number of records that have a fragment in one of them: the truth for this pair. A
//! conclusion needs an upper bound of it, so a reader who knows all senders concludes no more than is judged here. Where
//! the groups leave with the same records by design it is never more than the largest number of fragments of any group,
//! which a reader takes for the number of records. Where some group leaves once a window, the groups leave with different
//! people by design ([`Records::OfBoth`]), and no reader has a smaller bound than the people of both.
//!
//! *How.* At most one label of a chain decides a column of X, as each is on more than half of the records. All X between a
//! heavy label and what it has in common with all heavier ones are judged at once, by the lowest threshold and the fewest
//! records; only where that fails the X are divided ([`Heavy`]). [`light`] looks for the Y. Both searches are exact, and both
//! give up after a number of steps that depends on the batch alone: what could not be cleared by then is withdrawn. Where all
//! questions together take more than [`STEPS_IN_ALL`], the lighter of the two groups is withdrawn as a whole.

mod light;
#[cfg(test)]
mod tests;
mod view;

use light::{Answer, Depth, People, Question};
use rayon::prelude::*;
pub use view::{Above, GroupCells};
use view::{Rows, View};

/// Withdraws fragments until no pair of label sets of two groups is forced below `k`; returns how many.
///
/// Either every fragment of the lighter set is withdrawn, or every fragment of the heavier one, whichever loses less. Both
/// remove whole classes of a group, so that the support of those that stay is unchanged.
///
/// Time: one pass over the cells, and one over the classes of each other group for every heavy label that can force
/// anything, in the usual case.
pub fn withdraw_forced_pairs(
    groups: &mut [GroupCells],
    subjects: &[u64],
    k: usize,
    of: Records,
    steps: &mut Steps,
) -> u64 {
    let people = People::new(subjects, k);
    let mut views: Vec<View> = groups.par_iter().map(View::of).collect();
    let mut withdrawn = 0;
    loop {
        let before = withdrawn;
        for a in 0..groups.len() {
            withdrawn += withdraw_against(groups, &mut views, a, &people, of, steps);
        }
        if withdrawn == before {
            return withdrawn;
        }
    }
}

/// How many records a reader can count at least, beside those of two groups together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Records {
    /// As many as the largest group has fragments.
    OfLargest,
    /// So many, and as many as the largest group has.
    Known(usize),
    /// The groups have different rows by design: of two groups no more is known than the rows of both.
    OfBoth,
}

/// All sets X of one group from P up to P with all of `further`.
struct Heavy {
    /// The records in P.
    least: Rows,
    /// How many there are: n of P.
    count: usize,
    /// Records below heavier labels, heaviest first, none of which has all of P.
    further: Vec<Rows>,
}

impl Heavy {
    fn new(least: Rows, further: impl Iterator<Item = Rows>) -> Self {
        let further = further.filter(|label| !least.is_within(label)).collect();
        Self { count: least.count(), least, further }
    }

    /// The records in P and in all that is further.
    fn common(&self) -> Rows {
        self.further.iter().fold(self.least.clone(), |common, label| common.and(label))
    }

    /// The sets with the lightest further label, and those without it.
    fn divided(mut self) -> Option<[Self; 2]> {
        let lightest = self.further.pop()?;
        let with = Self::new(self.least.and(&lightest), self.further.iter().cloned());
        Some([self, with])
    }
}

/// How often the X of one group may be divided, for each heavy label that it has, before a part of them is given up.
const DIVISIONS: usize = 32;

/// Steps for one batch, or for what is left of it after a group was withdrawn: a few seconds.
const STEPS_IN_ALL: usize = 1 << 30;

/// What all questions may still take.
pub struct Steps {
    left: usize,
    of_batch: usize,
}

impl Steps {
    fn of_batch(of_batch: usize) -> Self {
        Self { left: of_batch, of_batch }
    }

    /// Those of one of so many `parts` of a batch.
    pub fn of_part(parts: usize) -> Self {
        Self::of_batch(STEPS_IN_ALL / parts.max(1))
    }
}

impl Default for Steps {
    fn default() -> Self {
        Self::of_batch(STEPS_IN_ALL)
    }
}

/// Withdraws all of the group that is worth less; returns how many fragments.
fn withdraw_lighter(groups: &mut [GroupCells], views: &mut [View], one: usize, other: usize) -> u64 {
    let worth = |group: usize| groups[group].worth_of(views[group].present.iter());
    let lighter = if worth(one) < worth(other) { one } else { other };
    let withdrawn = views[lighter].rows as u64;
    for row in views[lighter].present.iter().collect::<Vec<_>>() {
        groups[lighter].withdraw(row);
    }
    views[lighter] = View::of(&groups[lighter]);
    withdrawn
}

/// One pass over the pairs whose heavier side lies in group `a`.
fn withdraw_against(
    groups: &mut [GroupCells],
    views: &mut [View],
    a: usize,
    people: &People,
    of: Records,
    steps: &mut Steps,
) -> u64 {
    let largest = views.iter().map(|view| view.rows).max().unwrap_or(0);
    let most = match of {
        Records::OfLargest => largest,
        Records::Known(known) => known.max(largest),
        Records::OfBoth => usize::MAX,
    };
    let records: Vec<usize> = views.iter().map(|view| view.present.or_count(&views[a].present).min(most)).collect();
    // Whether so many records of this group can force anything in group `b`.
    let forces = |views: &[View], b: usize, count: usize| {
        b != a && 2 * count > records[b] && count + views[b].reach > records[b]
    };
    // What is counted anew with every pass.
    let cells: usize = groups.iter().map(|group| group.columns.len() * group.worth.len()).sum();
    steps.left = steps.left.saturating_sub(cells);
    let labels = views[a].heavy(&groups[a], |count| (0..groups.len()).any(|b| forces(views, b, count)));
    let mut withdrawn = 0;
    let mut divisions = DIVISIONS * labels.len();
    for lightest in 0..labels.len() {
        let mut open = vec![Heavy::new(labels[lightest].clone(), labels[..lightest].iter().cloned())];
        while let Some(heavy) = open.pop() {
            let against: Vec<bool> = (0..groups.len()).map(|b| forces(views, b, heavy.count)).collect();
            if !against.contains(&true) {
                continue;
            }
            let alone = heavy.further.is_empty();
            let common = heavy.common();
            // What is doomed, by group; or a group that nothing is known of.
            let judge = |depth: Depth, views: &mut [View], steps: &mut Steps| -> Result<Vec<_>, usize> {
                let may = steps.left;
                let others = views.par_iter_mut().zip(groups.par_iter()).enumerate().filter(|(b, _)| against[*b]);
                let judged = others.map(|(b, (view, group))| {
                    let question =
                        Question { least: records[b] + 1 - heavy.count, inside: &common, people, steps: may };
                    (b, question.doomed(view, group, depth))
                });
                let judged: Vec<(usize, Answer)> = judged.collect();
                steps.left = judged.iter().fold(may, |left, (_, answer)| left.saturating_sub(answer.steps));
                match judged.iter().find(|(_, answer)| answer.unknown) {
                    Some((b, _)) => Err(*b),
                    None => Ok(judged
                        .into_iter()
                        .map(|(b, answer)| (b, answer.doomed))
                        .filter(|(_, rows)| !rows.is_empty())
                        .collect()),
                }
            };
            let mut judged = judge(if alone { Depth::All } else { Depth::Any }, views, steps);
            if judged.as_ref().is_ok_and(|doomed| !alone && !doomed.is_empty() && divisions == 0) {
                judged = judge(Depth::All, views, steps);
            }
            let mut doomed = match judged {
                Ok(doomed) => doomed,
                Err(b) => {
                    steps.left = steps.of_batch;
                    return withdrawn + withdraw_lighter(groups, views, a, b);
                }
            };
            if doomed.is_empty() {
                continue;
            }
            if !alone && divisions > 0 {
                divisions -= 1;
                open.extend(heavy.divided().into_iter().flatten());
                continue;
            }
            for (b, rows) in &mut doomed {
                *rows = groups[*b].with_classes(std::mem::take(rows));
            }
            let worth: f64 = doomed.iter().map(|(b, rows)| groups[*b].worth_of(rows.iter().copied())).sum();
            let carriers = groups[a].with_classes(heavy.least.iter().collect());
            if groups[a].worth_of(carriers.iter().copied()) < worth {
                doomed = vec![(a, carriers)];
            }
            for (group, rows) in doomed {
                withdrawn += rows.len() as u64;
                for row in rows {
                    groups[group].withdraw(row);
                }
                views[group] = View::of(&groups[group]);
                if group == a {
                    // The other heavy labels of this group were found on what is no longer there.
                    return withdrawn;
                }
            }
        }
    }
    withdrawn
}
