//! Verification that sensitive cells which are not exact say neither who nor what, from the encoded bytes of what is
//! about to leave and the rows' own values (docs/methods.md §12.2).
//!
//! Claim. If [`judge`] returns `Ok`, then for every class of equal quasi cells among the lines of a group, and every
//! text c of a sensitive attribute in it that covers more than one value: the lines of the class with c are of at least k
//! distinct subjects, and each value of those lines is either had by k subjects (counted over all lines of the group, and the
//! people of [`GroupTerms::holders_beside`]), or belongs to no more than half of those subjects. The same holds of lines that are equal in
//! which sensitive attributes they hide, and behind which texts; an attribute that all lines of the class show as `*`
//! distinguishes none of them. Not asked is an attribute that all lines of the group show as `*`, k subjects at least, unless lines
//! beside the batch show it ([`GroupTerms::shown_beside`]).
//!
//! Written from that definition, apart from the treatment: by runs of lines, sets of subjects, and each value by its
//! digest. Lines of nobody are of no subject; as holders of a value each is somebody of his own.

use super::given::{Basis, Given, GroupTerms};
use super::violation::Violation;
use std::collections::{BTreeMap, BTreeSet};
use throng_core::values::codebook::Codebook;
use throng_core::values::holders::Holders;
use throng_core::values::subject::NO_SUBJECT;

/// What the lines of one run show of the sensitive attributes of their group.
pub(super) struct Run<'a> {
    /// Key of their class.
    pub class: u128,
    /// By sensitive attribute: what a cell that is not exact covers.
    pub hidden: Vec<Option<u128>>,
    pub rows: &'a [u32],
}

/// The lines of a group, and what they are judged by.
struct Lines<'a> {
    given: &'a Given<'a>,
    books: &'a [Codebook],
    /// Sensitive attributes by position in the schema, each with the digest that names it beside a class.
    sensitive: Vec<(usize, u128)>,
    runs: &'a [Run<'a>],
    beside: &'a Holders,
    k: usize,
}

/// Judges the lines of one group.
pub(super) fn judge(runs: &[Run<'_>], terms: &GroupTerms, basis: Basis<'_>) -> Result<(), Violation> {
    let mut classes: BTreeMap<u128, Vec<&Run<'_>>> = BTreeMap::new();
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
    let Basis { given, books, k, .. } = basis;
    let lines = Lines { given, books, sensitive, runs, beside: &terms.holders_beside, k };
    let everybody: Vec<&Run<'_>> = runs.iter().collect();
    let crowded = lines.subjects(&everybody).len() >= k;
    let beside = |at: &usize| terms.shown_beside.contains(&lines.sensitive[*at].0);
    let asked = |at: &usize| beside(at) || !(crowded && lines.withheld(*at, &everybody));
    let asked: Vec<usize> = (0..lines.sensitive.len()).filter(asked).collect();
    let rare = asked.iter().map(|&at| (at, lines.rare(at, classes.values().flatten()))).collect();
    classes.values().try_for_each(|of_class| lines.judge_class(of_class, &asked, &rare))
}

impl Lines<'_> {
    fn subjects(&self, runs: &[&Run<'_>]) -> BTreeSet<u64> {
        let rows = runs.iter().flat_map(|run| run.rows);
        rows.map(|&row| self.given.subjects[row as usize]).filter(|subject| *subject != NO_SUBJECT).collect()
    }

    /// What `*` covers, of the sensitive attribute at `at`.
    fn star(&self, at: usize) -> Option<u128> {
        self.books[self.sensitive[at].0].coverage_of(r#""*""#)
    }

    /// Whether all of `runs` show `*`.
    fn withheld(&self, at: usize, runs: &[&Run<'_>]) -> bool {
        runs.iter().all(|run| run.hidden[at].is_some() && run.hidden[at] == self.star(at))
    }

    /// Digest of a row's own value.
    fn value(&self, at: usize, row: u32) -> u128 {
        let attribute = self.sensitive[at].0;
        self.books[attribute].digests(0)[self.given.columns[attribute][row as usize] as usize]
    }

    /// The values that `hiding` lines hide and fewer than k subjects have.
    fn rare<'r>(&self, at: usize, hiding: impl Iterator<Item = &'r &'r Run<'r>>) -> BTreeSet<u128> {
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
            people.extend(self.beside.of(self.sensitive[at].1.wrapping_add(*value)));
        }
        people.into_iter().filter(|(_, people)| people.len() < self.k).map(|(value, _)| value).collect()
    }

    fn judge_class(
        &self,
        of_class: &[&Run<'_>],
        asked: &[usize],
        rare: &BTreeMap<usize, BTreeSet<u128>>,
    ) -> Result<(), Violation> {
        // Lines that hide alike: in one attribute, and in all that distinguish lines of the class.
        let mut alike: BTreeMap<Vec<(usize, u128)>, Vec<&Run<'_>>> = BTreeMap::new();
        let distinguishing: Vec<usize> = asked.iter().copied().filter(|&at| !self.withheld(at, of_class)).collect();
        for run in of_class {
            let mark = |&at: &usize| run.hidden[at].map(|covers| (at, covers));
            let mut views: BTreeSet<Vec<(usize, u128)>> =
                asked.iter().filter_map(mark).map(|mark| vec![mark]).collect();
            let pattern: Vec<(usize, u128)> = distinguishing.iter().filter_map(mark).collect();
            // With one attribute a pattern is a text, whichever other lines show it too.
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
            if subjects >= self.k && marked.into_iter().all(half) { Ok(()) } else { Err(Violation::TellingCell) }
        })
    }

    /// Of the `rare` values, how many of those behind `runs` have the one that most of them have.
    fn most_holders(&self, at: usize, rare: &BTreeSet<u128>, runs: &[&Run<'_>]) -> usize {
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
