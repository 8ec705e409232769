//! Counting guard between disjoint groups (docs/internals/methods.md §10.3 and §12.7).
//!
//! A label of X is on more than half of the records, so one label of a chain decides a column of X. All X between a
//! heavy label and its intersection with heavier ones are judged together, and divided only on failure.
//!
//! Both searches are exact up to a step limit that depends on the batch alone. Uncleared fragments are withdrawn.

mod group_view;
mod lighter_side;
#[cfg(test)]
mod tests;

use group_view::{BatchRowSet, GroupView};
pub use group_view::{GroupCells, LabelsAbove};
use lighter_side::{LighterSideOutcome, LighterSideQuery, RowSubjects, SearchDepth};
use rayon::prelude::*;
use std::collections::BTreeSet;

/// Withdraws the cheaper sides until no pair is forced below `k`; returns the number of fragments.
///
/// Both sides are whole classes, so other classes keep their support. Time: usually one pass over the cells, and per
/// heavy label one over the classes of each other group.
pub fn withdraw_forced_pairs(
    groups: &mut [GroupCells],
    subjects: &[u64],
    k: usize,
    of: GuardRecordBound,
    steps: &mut StepBudget,
) -> u64 {
    let people = RowSubjects::new(subjects, k);
    let mut views: Vec<GroupView> = groups.par_iter().map(GroupView::of).collect();
    let mut withdrawn = 0;
    loop {
        let before = withdrawn;
        for a in 0..groups.len() {
            withdrawn += withdraw_pairs_of_group(groups, &mut views, a, &people, of, steps);
        }
        if withdrawn == before {
            return withdrawn;
        }
    }
}

/// Bound on the number of records, in addition to those of two groups together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuardRecordBound {
    /// Fragments of the largest group.
    LargestGroup,
    /// Given number, or the fragments of the largest group if more.
    KnownAtLeast(usize),
    /// No further bound: groups have different rows by design.
    UnionOfBoth,
}

/// All sets X between a set P and its intersection with all of `further_labels`.
struct HeavySets {
    base_rows: BatchRowSet,
    count: usize,
    /// Heaviest first; none contains all of P.
    further_labels: Vec<BatchRowSet>,
}

impl HeavySets {
    fn new(least: BatchRowSet, further: impl Iterator<Item = BatchRowSet>) -> Self {
        let further = further.filter(|label| !least.is_within(label)).collect();
        Self { count: least.count(), base_rows: least, further_labels: further }
    }

    fn common_rows(&self) -> BatchRowSet {
        self.further_labels.iter().fold(self.base_rows.clone(), |common, label| common.and(label))
    }

    /// Separates the sets without the lightest further label from those with it.
    fn split_off_lightest(mut self) -> Option<[Self; 2]> {
        let lightest = self.further_labels.pop()?;
        let with = Self::new(self.base_rows.and(&lightest), self.further_labels.iter().cloned());
        Some([self, with])
    }
}

const DIVISIONS_PER_LABEL: usize = 32;

/// A few seconds; restarts after the withdrawal of a group.
const GUARD_STEPS_PER_BATCH: usize = 1 << 30;

/// Remaining steps of the guard.
pub struct StepBudget {
    left: usize,
    batch_limit: usize,
}

impl StepBudget {
    fn with_limit(of_batch: usize) -> Self {
        Self { left: of_batch, batch_limit: of_batch }
    }

    /// Returns the steps of one of `parts` parts of a batch.
    pub fn for_part(parts: usize) -> Self {
        Self::with_limit(GUARD_STEPS_PER_BATCH / parts.max(1))
    }
}

impl Default for StepBudget {
    fn default() -> Self {
        Self::with_limit(GUARD_STEPS_PER_BATCH)
    }
}

fn withdraw_lighter_group(groups: &mut [GroupCells], views: &mut [GroupView], one: usize, other: usize) -> u64 {
    let worth = |group: usize| groups[group].worth_of(views[group].present.iter());
    let lighter = if worth(one) < worth(other) { one } else { other };
    let withdrawn = views[lighter].present_count as u64;
    for row in views[lighter].present.iter().collect::<Vec<_>>() {
        groups[lighter].suppress_row(row);
    }
    views[lighter] = GroupView::of(&groups[lighter]);
    withdrawn
}

/// Query for the rows of other groups that heavy rows of one group force into pairs.
struct HeavyRowsQuery<'a> {
    /// True for each group to query.
    against: &'a [bool],
    records: &'a [usize],
    /// Number of heavy rows.
    count: usize,
    rows: &'a BatchRowSet,
    people: &'a RowSubjects<'a>,
}

impl HeavyRowsQuery<'_> {
    /// Returns the doomed rows by group.
    ///
    /// # Errors
    /// A group without enough steps.
    fn find_doomed(
        &self,
        groups: &[GroupCells],
        views: &mut [GroupView],
        depth: SearchDepth,
        steps: &mut StepBudget,
    ) -> Result<Vec<(usize, BTreeSet<u32>)>, usize> {
        let may = steps.left;
        let others = views.par_iter_mut().zip(groups.par_iter()).enumerate().filter(|(b, _)| self.against[*b]);
        let judged = others.map(|(b, (view, group))| {
            let question = LighterSideQuery {
                min_records: self.records[b] + 1 - self.count,
                heavy_rows: self.rows,
                row_subjects: self.people,
                step_limit: may,
            };
            (b, question.find_doomed(view, group, depth))
        });
        let judged: Vec<(usize, LighterSideOutcome)> = judged.collect();
        steps.left = judged.iter().fold(may, |left, (_, answer)| left.saturating_sub(answer.steps));
        if let Some((b, _)) = judged.iter().find(|(_, answer)| answer.out_of_steps) {
            return Err(*b);
        }
        let doomed = judged.into_iter().map(|(b, answer)| (b, answer.doomed));
        Ok(doomed.filter(|(_, rows)| !rows.is_empty()).collect())
    }
}

fn withdraw_pairs_of_group(
    groups: &mut [GroupCells],
    views: &mut [GroupView],
    a: usize,
    people: &RowSubjects,
    of: GuardRecordBound,
    steps: &mut StepBudget,
) -> u64 {
    let largest = views.iter().map(|view| view.present_count).max().unwrap_or(0);
    let most = match of {
        GuardRecordBound::LargestGroup => largest,
        GuardRecordBound::KnownAtLeast(known) => known.max(largest),
        GuardRecordBound::UnionOfBoth => usize::MAX,
    };
    let records: Vec<usize> = views.iter().map(|view| view.present.or_count(&views[a].present).min(most)).collect();
    let forces = |views: &[GroupView], b: usize, count: usize| {
        b != a && 2 * count > records[b] && count + views[b].max_label_rows > records[b]
    };
    let cells: usize = groups.iter().map(|group| group.columns.len() * group.worth.len()).sum();
    steps.left = steps.left.saturating_sub(cells);
    let labels = views[a].heavy_labels(&groups[a], |count| (0..groups.len()).any(|b| forces(views, b, count)));
    let mut withdrawn = 0;
    let mut divisions = DIVISIONS_PER_LABEL * labels.len();
    for lightest in 0..labels.len() {
        let mut open = vec![HeavySets::new(labels[lightest].clone(), labels[..lightest].iter().cloned())];
        while let Some(heavy) = open.pop() {
            let against: Vec<bool> = (0..groups.len()).map(|b| forces(views, b, heavy.count)).collect();
            if !against.contains(&true) {
                continue;
            }
            let alone = heavy.further_labels.is_empty();
            let common = heavy.common_rows();
            let query =
                HeavyRowsQuery { against: &against, records: &records, count: heavy.count, rows: &common, people };
            let depth = if alone { SearchDepth::All } else { SearchDepth::Any };
            let mut judged = query.find_doomed(groups, views, depth, steps);
            if judged.as_ref().is_ok_and(|doomed| !alone && !doomed.is_empty() && divisions == 0) {
                judged = query.find_doomed(groups, views, SearchDepth::All, steps);
            }
            let mut doomed = match judged {
                Ok(doomed) => doomed,
                Err(b) => {
                    steps.left = steps.batch_limit;
                    return withdrawn + withdraw_lighter_group(groups, views, a, b);
                }
            };
            if doomed.is_empty() {
                continue;
            }
            if !alone && divisions > 0 {
                divisions -= 1;
                open.extend(heavy.split_off_lightest().into_iter().flatten());
                continue;
            }
            for (b, rows) in &mut doomed {
                *rows = groups[*b].complete_classes(std::mem::take(rows));
            }
            let worth: f64 = doomed.iter().map(|(b, rows)| groups[*b].worth_of(rows.iter().copied())).sum();
            let carriers = groups[a].complete_classes(heavy.base_rows.iter().collect());
            if groups[a].worth_of(carriers.iter().copied()) < worth {
                doomed = vec![(a, carriers)];
            }
            for (group, rows) in doomed {
                withdrawn += rows.len() as u64;
                for row in rows {
                    groups[group].suppress_row(row);
                }
                views[group] = GroupView::of(&groups[group]);
                if group == a {
                    // The other heavy labels include withdrawn rows.
                    return withdrawn;
                }
            }
        }
    }
    withdrawn
}
