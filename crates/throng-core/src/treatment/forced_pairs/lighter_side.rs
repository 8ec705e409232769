//! Searches the lighter side: a set Y of at least t records with fewer than k subjects in X.
//!
//! Adds labels to Y one by one and keeps the *thin* classes, which a further Y could contain. Classes that the
//! remaining labels do not distinguish are counted together; with k subjects in X they are not thin.

use super::group_view::{BatchRowSet, GroupCells, GroupView, LabelClasses};
use crate::treatment::subject_counting::NO_SUBJECT;
use hashbrown::HashMap;
use std::collections::BTreeSet;

pub(super) struct RowSubjects<'a> {
    subjects: &'a [u64],
    k: usize,
    /// Rows of the k − 1 most frequent subjects, and the rows without a subject.
    max_rows_below_k: usize,
}

impl<'a> RowSubjects<'a> {
    pub(super) fn new(subjects: &'a [u64], k: usize) -> Self {
        let mut sorted: Vec<u64> = subjects.to_vec();
        sorted.sort_unstable();
        let nobody = sorted.partition_point(|subject| *subject == NO_SUBJECT);
        let mut rows: Vec<usize> = sorted[nobody..].chunk_by(|a, b| a == b).map(<[u64]>::len).collect();
        rows.sort_unstable_by_key(|rows| std::cmp::Reverse(*rows));
        Self { subjects, k, max_rows_below_k: nobody + rows.iter().take(k.saturating_sub(1)).sum::<usize>() }
    }
}

/// Extent of the answer: any doomed rows, or all.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum SearchDepth {
    Any,
    All,
}

/// Uncleared classes are then doomed.
const STEPS_PER_CLASS: usize = 256;

#[derive(Default)]
pub(super) struct LighterSideOutcome {
    pub(super) doomed: BTreeSet<u32>,
    /// One step checks one label of one class.
    pub(super) steps: usize,
    pub(super) out_of_steps: bool,
}

pub(super) struct LighterSideQuery<'a> {
    /// The minimum t.
    pub(super) min_records: usize,
    pub(super) heavy_rows: &'a BatchRowSet,
    pub(super) row_subjects: &'a RowSubjects<'a>,
    pub(super) step_limit: usize,
}

impl LighterSideQuery<'_> {
    /// Returns the rows of every such Y, or of some for [`SearchDepth::Any`].
    pub(super) fn find_doomed(
        &self,
        view: &mut GroupView,
        group: &GroupCells,
        depth: SearchDepth,
    ) -> LighterSideOutcome {
        let classes = view.cached_classes(group, self.min_records);
        let items: Vec<ClassItem> = classes.rows.iter().map(|rows| self.count_class(rows)).collect();
        let budget = STEPS_PER_CLASS * items.len().max(64);
        let all: Vec<u32> = (0..).zip(&items).map(|(item, _)| item).collect();
        let mut search = LighterSideSearch {
            question: self,
            classes,
            items,
            depth,
            budget,
            steps: 0,
            tally: vec![ThinRows::default(); classes.labels],
            tried_labels: vec![false; classes.labels],
            doomed: BTreeSet::new(),
        };
        search.extend_labels(&all, 0);
        LighterSideOutcome { out_of_steps: search.is_out_of_steps(), steps: search.steps, doomed: search.doomed }
    }

    fn count_class(&self, rows: &[u32]) -> ClassItem {
        let mut item = ClassItem { rows: rows.len(), outside: 0, subjects_inside: Vec::new(), is_thick: false };
        for &row in rows {
            if !self.heavy_rows.has(row) {
                item.outside += 1;
                continue;
            }
            self.insert_subject(&mut item.subjects_inside, self.row_subjects.subjects[row as usize]);
            if item.subjects_inside.len() >= self.row_subjects.k {
                item.is_thick = true;
                break;
            }
        }
        item
    }

    fn insert_subject(&self, people: &mut Vec<u64>, subject: u64) {
        if subject != NO_SUBJECT && people.len() < self.row_subjects.k && !people.contains(&subject) {
            people.push(subject);
        }
    }
}

struct ClassItem {
    rows: usize,
    outside: usize,
    /// Distinct, up to k.
    subjects_inside: Vec<u64>,
    is_thick: bool,
}

/// Thin rows below a label; zero between uses.
#[derive(Clone, Copy, Default)]
struct ThinRows {
    rows: usize,
    outside: usize,
}

struct LighterSideSearch<'a> {
    question: &'a LighterSideQuery<'a>,
    classes: &'a LabelClasses,
    items: Vec<ClassItem>,
    depth: SearchDepth,
    budget: usize,
    steps: usize,
    tally: Vec<ThinRows>,
    tried_labels: Vec<bool>,
    doomed: BTreeSet<u32>,
}

impl LighterSideSearch<'_> {
    fn extend_labels(&mut self, within: &[u32], chosen: usize) {
        if self.depth == SearchDepth::Any && !self.doomed.is_empty() || self.is_out_of_steps() {
            return;
        }
        if chosen > 0 && self.has_too_few_subjects(within) {
            self.mark_doomed(within);
            return;
        }
        let mut thin: Vec<u32> = within.iter().copied().filter(|&i| !self.items[i as usize].is_thick).collect();
        let labels = loop {
            let labels = self.candidate_labels(&thin);
            let still = if labels.is_empty() { Vec::new() } else { self.still_thin(within, &thin, &labels) };
            self.budget = self.budget.saturating_sub(within.len());
            self.steps += 2 * within.iter().map(|&i| self.classes.below[i as usize].len() + 1).sum::<usize>();
            let settled = still.len() == thin.len();
            thin = still;
            if settled || thin.is_empty() {
                break labels;
            }
        };
        if thin.is_empty() {
            return;
        }
        if self.budget == 0 {
            self.mark_doomed(&thin);
            return;
        }
        let mut tried = Vec::with_capacity(labels.len());
        for label in labels {
            let part: Vec<u32> = within.iter().copied().filter(|&i| self.is_below(i, label)).collect();
            self.steps += within.len();
            self.tried_labels[label as usize] = true;
            tried.push(label);
            if part.len() < within.len() || chosen == 0 {
                self.extend_labels(&part, chosen + 1);
            }
        }
        for label in tried {
            self.tried_labels[label as usize] = false;
        }
    }

    fn is_out_of_steps(&self) -> bool {
        self.steps > self.question.step_limit
    }

    fn is_below(&self, item: u32, label: u32) -> bool {
        self.classes.below[item as usize].binary_search(&label).is_ok()
    }

    fn has_too_few_subjects(&self, within: &[u32]) -> bool {
        let mut people = Vec::new();
        for &i in within {
            let item = &self.items[i as usize];
            for &subject in &item.subjects_inside {
                self.question.insert_subject(&mut people, subject);
            }
            if item.is_thick || people.len() >= self.question.row_subjects.k {
                return false;
            }
        }
        people.len() < self.question.row_subjects.k
    }

    fn mark_doomed(&mut self, items: &[u32]) {
        for &i in items {
            self.doomed.extend(&self.classes.rows[i as usize]);
        }
    }

    /// Returns the labels that an answer can still have, rarest first: at least t thin rows, enough of them outside X.
    fn candidate_labels(&mut self, thin: &[u32]) -> Vec<u32> {
        let Self { tally, items, classes, question, tried_labels: spent, .. } = self;
        let mut met = Vec::new();
        for &i in thin {
            let item = &items[i as usize];
            for &label in classes.below[i as usize].iter().filter(|&&label| !spent[label as usize]) {
                let tally = &mut tally[label as usize];
                if tally.rows == 0 {
                    met.push(label);
                }
                tally.rows += item.rows;
                tally.outside += item.outside;
            }
        }
        let mut labels: Vec<(usize, u32)> = Vec::new();
        for label in met {
            let ThinRows { rows, outside } = std::mem::take(&mut tally[label as usize]);
            if rows >= question.min_records && outside + question.row_subjects.max_rows_below_k >= question.min_records
            {
                labels.push((rows, label));
            }
        }
        labels.sort_unstable();
        labels.into_iter().map(|(_, label)| label).collect()
    }

    /// Returns the classes that remain thin if only `labels` distinguish the classes `within` Y.
    fn still_thin(&self, within: &[u32], thin: &[u32], labels: &[u32]) -> Vec<u32> {
        let mut kept = vec![false; self.classes.labels];
        for &label in labels {
            kept[label as usize] = true;
        }
        let mut keys: Vec<u32> = Vec::new();
        let mut ends: Vec<usize> = Vec::with_capacity(within.len());
        for &i in within {
            keys.extend(self.classes.below[i as usize].iter().filter(|&&label| kept[label as usize]));
            ends.push(keys.len());
        }
        let start = |member: usize| if member == 0 { 0 } else { ends[member - 1] };
        let mut numbers: HashMap<&[u32], usize> = HashMap::new();
        let mut together: Vec<(Vec<u64>, bool)> = Vec::new();
        let mut of_member: Vec<usize> = Vec::with_capacity(within.len());
        for (member, &i) in within.iter().enumerate() {
            let next = together.len();
            let number = *numbers.entry(&keys[start(member)..ends[member]]).or_insert(next);
            if number == next {
                // Without a remaining label, no further Y contains the class.
                together.push((Vec::new(), start(member) == ends[member]));
            }
            of_member.push(number);
            let (people, thick) = &mut together[number];
            let item = &self.items[i as usize];
            if !*thick {
                for &subject in &item.subjects_inside {
                    self.question.insert_subject(people, subject);
                }
                *thick = item.is_thick || people.len() >= self.question.row_subjects.k;
            }
        }
        let mut still = Vec::with_capacity(thin.len());
        let mut thin = thin.iter().copied().peekable();
        for (&i, &number) in within.iter().zip(&of_member) {
            if thin.next_if_eq(&i).is_some() && !together[number].1 {
                still.push(i);
            }
        }
        still
    }
}
