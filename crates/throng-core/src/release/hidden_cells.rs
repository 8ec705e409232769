//! Verification of hidden sensitive cells (docs/internals/methods.md §12.2).
//!
//! Claim. If [`check_hidden_cells`] returns `Ok`, for every inexact sensitive text of a class: its lines have k
//! distinct subjects. Each of their values has k subjects in the group and [`GroupTerms::holders_elsewhere`], or at
//! most half of these subjects. The same holds for lines that hide the same attributes behind the same texts.
//!
//! An attribute that is `*` in all lines of k subjects is exempt unless in [`GroupTerms::shown_elsewhere`]. A row
//! without a subject adds no subject, but one holder of its value.

use super::verifier_input::{GroupTerms, RecountContext, VerifierInput};
use super::violation::Violation;
use crate::values::codebook::Codebook;
use crate::values::subject_digest::NO_SUBJECT;
use crate::values::subjects_by_value::SubjectsByValue;
use std::collections::{BTreeMap, BTreeSet};

pub(super) struct HiddenRun<'a> {
    pub class: u128,
    /// By sensitive attribute; none for exact cells.
    pub hidden: Vec<Option<u128>>,
    pub rows: &'a [u32],
}

struct HiddenCellCheck<'a> {
    given: &'a VerifierInput<'a>,
    books: &'a [Codebook],
    /// Schema position, and digest outside the class.
    sensitive: Vec<(usize, u128)>,
    runs: &'a [HiddenRun<'a>],
    outside_holders: &'a SubjectsByValue,
    k: usize,
}

pub(super) fn check_hidden_cells(
    runs: &[HiddenRun<'_>],
    terms: &GroupTerms,
    basis: RecountContext<'_>,
) -> Result<(), Violation> {
    let mut classes: BTreeMap<u128, Vec<&HiddenRun<'_>>> = BTreeMap::new();
    for run in runs.iter().filter(|run| run.hidden.iter().any(Option::is_some)) {
        classes.insert(run.class, Vec::new());
    }
    if classes.is_empty() {
        return Ok(());
    }
    for run in runs {
        if let Some(of_class) = classes.get_mut(&run.class) {
            of_class.push(run);
        }
    }
    let sensitive = terms.attributes.iter().zip(&terms.sensitive).filter(|(_, sensitive)| **sensitive);
    let sensitive: Vec<(usize, u128)> = sensitive.map(|(&a, _)| (a, terms.sensitive_bases[a])).collect();
    let RecountContext { given, books, k, .. } = basis;
    let lines = HiddenCellCheck { given, books, sensitive, runs, outside_holders: &terms.holders_elsewhere, k };
    let everybody: Vec<&HiddenRun<'_>> = runs.iter().collect();
    let crowded = lines.subjects(&everybody).len() >= k;
    let beside = |at: &usize| terms.shown_elsewhere.contains(&lines.sensitive[*at].0);
    let asked = |at: &usize| beside(at) || !(crowded && lines.withheld(*at, &everybody));
    let asked: Vec<usize> = (0..lines.sensitive.len()).filter(asked).collect();
    let rare = asked.iter().map(|&at| (at, lines.rare(at, classes.values().flatten()))).collect();
    classes.values().try_for_each(|of_class| lines.judge_class(of_class, &asked, &rare))
}

impl HiddenCellCheck<'_> {
    fn subjects(&self, runs: &[&HiddenRun<'_>]) -> BTreeSet<u64> {
        let rows = runs.iter().flat_map(|run| run.rows);
        rows.map(|&row| self.given.subjects[row as usize]).filter(|subject| *subject != NO_SUBJECT).collect()
    }

    fn star(&self, at: usize) -> Option<u128> {
        self.books[self.sensitive[at].0].coverage_of(r#""*""#)
    }

    fn withheld(&self, at: usize, runs: &[&HiddenRun<'_>]) -> bool {
        runs.iter().all(|run| run.hidden[at].is_some() && run.hidden[at] == self.star(at))
    }

    fn value(&self, at: usize, row: u32) -> u128 {
        let attribute = self.sensitive[at].0;
        self.books[attribute].digests(0)[self.given.columns[attribute][row as usize] as usize]
    }

    /// Values of fewer than k subjects.
    fn rare<'r>(&self, at: usize, hiding: impl Iterator<Item = &'r &'r HiddenRun<'r>>) -> BTreeSet<u128> {
        let hidden = hiding.filter(|run| run.hidden[at].is_some()).flat_map(|run| run.rows);
        let mut people: BTreeMap<u128, BTreeSet<u64>> =
            hidden.map(|&row| (self.value(at, row), BTreeSet::new())).collect();
        for &row in self.runs.iter().flat_map(|run| run.rows) {
            let subject = self.given.subjects[row as usize];
            if let Some(people) = people.get_mut(&self.value(at, row)).filter(|_| subject != NO_SUBJECT) {
                people.insert(subject);
            }
        }
        for (value, people) in &mut people {
            people.extend(self.outside_holders.subjects_with(self.sensitive[at].1.wrapping_add(*value)));
        }
        people.into_iter().filter(|(_, people)| people.len() < self.k).map(|(value, _)| value).collect()
    }

    fn judge_class(
        &self,
        of_class: &[&HiddenRun<'_>],
        asked: &[usize],
        rare: &BTreeMap<usize, BTreeSet<u128>>,
    ) -> Result<(), Violation> {
        // Lines that hide alike, by one attribute and by all that differ in the class.
        let mut alike: BTreeMap<Vec<(usize, u128)>, Vec<&HiddenRun<'_>>> = BTreeMap::new();
        let distinguishing: Vec<usize> = asked.iter().copied().filter(|&at| !self.withheld(at, of_class)).collect();
        for run in of_class {
            let mark = |&at: &usize| run.hidden[at].map(|covers| (at, covers));
            let mut views: BTreeSet<Vec<(usize, u128)>> =
                asked.iter().filter_map(mark).map(|mark| vec![mark]).collect();
            let pattern: Vec<(usize, u128)> = distinguishing.iter().filter_map(mark).collect();
            if distinguishing.len() > 1 && !pattern.is_empty() {
                views.insert(std::iter::once((usize::MAX, 0)).chain(pattern).collect());
            }
            for view in views {
                alike.entry(view).or_default().push(run);
            }
        }
        alike.iter().try_for_each(|(view, runs)| {
            let subjects = self.subjects(runs).len();
            let marked = view.iter().map(|(at, _)| *at).filter(|at| *at != usize::MAX);
            let half = |at: usize| self.most_holders(at, &rare[&at], runs) * 2 <= subjects;
            if subjects >= self.k && marked.into_iter().all(half) { Ok(()) } else { Err(Violation::RevealingCell) }
        })
    }

    fn most_holders(&self, at: usize, rare: &BTreeSet<u128>, runs: &[&HiddenRun<'_>]) -> usize {
        let mut holders: BTreeMap<u128, (BTreeSet<u64>, usize)> = BTreeMap::new();
        for &row in runs.iter().flat_map(|run| run.rows) {
            let value = self.value(at, row);
            if rare.contains(&value) {
                let (named, nobody) = holders.entry(value).or_default();
                match self.given.subjects[row as usize] {
                    NO_SUBJECT => *nobody += 1,
                    subject => drop(named.insert(subject)),
                }
            }
        }
        holders.values().map(|(named, nobody)| named.len() + nobody).max().unwrap_or(0)
    }
}
