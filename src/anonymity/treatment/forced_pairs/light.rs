//! The lighter side: is there a set Y of at least t records, of whose people fewer than k are in X?
//!
//! The search adds labels to Y one by one. At every step the classes in Y are left that can still be *thin*: those that a
//! further Y could hold. All records of an answer are in thin classes, so a label that an answer is below has t of their
//! rows, and all but few of the rows outside X: fewer than k people have at most `few` rows inside. Classes that the labels
//! left do not tell apart are counted together, and are thin no more once they have k people in X. That is repeated until
//! nothing changes; mostly nothing is left then, and else Y is tried with each label left.

use super::view::{Classes, GroupCells, Rows, View};
use crate::anonymity::treatment::crowd::NO_SUBJECT;
use hashbrown::HashMap;
use std::collections::BTreeSet;

/// Who the rows of the batch are.
pub(super) struct People<'a> {
    subjects: &'a [u64],
    k: usize,
    /// The most rows that fewer than k people have, with those that name nobody.
    few: usize,
}

impl<'a> People<'a> {
    pub(super) fn new(subjects: &'a [u64], k: usize) -> Self {
        let mut sorted: Vec<u64> = subjects.to_vec();
        sorted.sort_unstable();
        let nobody = sorted.partition_point(|subject| *subject == NO_SUBJECT);
        let mut rows: Vec<usize> = sorted[nobody..].chunk_by(|a, b| a == b).map(<[u64]>::len).collect();
        rows.sort_unstable_by_key(|rows| std::cmp::Reverse(*rows));
        Self { subjects, k, few: nobody + rows.iter().take(k.saturating_sub(1)).sum::<usize>() }
    }
}

/// How much is asked: whether anything is doomed, or everything that is.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Depth {
    Any,
    All,
}

/// Steps that a question may take for each class and label; what is not cleared by then is doomed.
const PATIENCE: usize = 256;

/// What a question found.
#[derive(Default)]
pub(super) struct Answer {
    pub(super) doomed: BTreeSet<u32>,
    /// Steps that it took: a label of a class that is looked at.
    pub(super) steps: usize,
    /// There were too few of them: nothing is known.
    pub(super) unknown: bool,
}

pub(super) struct Question<'a> {
    /// t.
    pub(super) least: usize,
    /// The records in X.
    pub(super) inside: &'a Rows,
    pub(super) people: &'a People<'a>,
    /// Steps that it may take.
    pub(super) steps: usize,
}

impl Question<'_> {
    /// The rows of every such Y, or of some of them if only [`Depth::Any`] is asked for.
    pub(super) fn doomed(&self, view: &mut View, group: &GroupCells, depth: Depth) -> Answer {
        let classes = view.classes(group, self.least);
        let items: Vec<Item> = classes.rows.iter().map(|rows| self.item(rows)).collect();
        let budget = PATIENCE * items.len().max(64);
        let all: Vec<u32> = (0..).zip(&items).map(|(item, _)| item).collect();
        let mut search = Search {
            question: self,
            classes,
            items,
            depth,
            budget,
            steps: 0,
            tally: vec![ThinRows::default(); classes.labels],
            spent: vec![false; classes.labels],
            doomed: BTreeSet::new(),
        };
        search.descend(&all, 0);
        Answer { unknown: search.is_out_of_steps(), steps: search.steps, doomed: search.doomed }
    }

    fn item(&self, rows: &[u32]) -> Item {
        let mut item = Item { rows: rows.len(), outside: 0, people: Vec::new(), thick: false };
        for &row in rows {
            if !self.inside.has(row) {
                item.outside += 1;
                continue;
            }
            self.meet(&mut item.people, self.people.subjects[row as usize]);
            if item.people.len() >= self.people.k {
                // Nothing else is asked of a thick class.
                item.thick = true;
                break;
            }
        }
        item
    }

    fn meet(&self, people: &mut Vec<u64>, subject: u64) {
        if subject != NO_SUBJECT && people.len() < self.people.k && !people.contains(&subject) {
            people.push(subject);
        }
    }
}

/// A class and its rows.
struct Item {
    rows: usize,
    /// Of them, those outside X.
    outside: usize,
    /// Who has a row inside X, up to k.
    people: Vec<u64>,
    thick: bool,
}

/// Thin rows below a label. Zero between uses.
#[derive(Clone, Copy, Default)]
struct ThinRows {
    rows: usize,
    outside: usize,
}

struct Search<'a> {
    question: &'a Question<'a>,
    classes: &'a Classes,
    items: Vec<Item>,
    depth: Depth,
    budget: usize,
    /// Taken so far.
    steps: usize,
    tally: Vec<ThinRows>,
    /// Labels that Y has, or with which it has been tried.
    spent: Vec<bool>,
    doomed: BTreeSet<u32>,
}

impl Search<'_> {
    /// Y has `chosen` labels and the classes `within`.
    fn descend(&mut self, within: &[u32], chosen: usize) {
        if self.depth == Depth::Any && !self.doomed.is_empty() || self.is_out_of_steps() {
            return;
        }
        if chosen > 0 && self.has_few_people(within) {
            self.doom(within);
            return;
        }
        let mut thin: Vec<u32> = within.iter().copied().filter(|&i| !self.items[i as usize].thick).collect();
        let labels = loop {
            let labels = self.labels(&thin);
            let still = if labels.is_empty() { Vec::new() } else { self.thin(within, &thin, &labels) };
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
            self.doom(&thin);
            return;
        }
        let mut tried = Vec::with_capacity(labels.len());
        for label in labels {
            let part: Vec<u32> = within.iter().copied().filter(|&i| self.is_below(i, label)).collect();
            self.steps += within.len();
            self.spent[label as usize] = true;
            tried.push(label);
            if part.len() < within.len() || chosen == 0 {
                self.descend(&part, chosen + 1);
            }
        }
        for label in tried {
            self.spent[label as usize] = false;
        }
    }

    fn is_out_of_steps(&self) -> bool {
        self.steps > self.question.steps
    }

    fn is_below(&self, item: u32, label: u32) -> bool {
        self.classes.below[item as usize].binary_search(&label).is_ok()
    }

    /// Whether all classes together have fewer than k people in X.
    fn has_few_people(&self, within: &[u32]) -> bool {
        let mut people = Vec::new();
        for &i in within {
            let item = &self.items[i as usize];
            for &subject in &item.people {
                self.question.meet(&mut people, subject);
            }
            if item.thick || people.len() >= self.question.people.k {
                return false;
            }
        }
        people.len() < self.question.people.k
    }

    fn doom(&mut self, items: &[u32]) {
        for &i in items {
            self.doomed.extend(&self.classes.rows[i as usize]);
        }
    }

    /// The labels that can still be of an answer, rarest first.
    fn labels(&mut self, thin: &[u32]) -> Vec<u32> {
        let Self { tally, items, classes, question, spent, .. } = self;
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
            if rows >= question.least && outside + question.people.few >= question.least {
                labels.push((rows, label));
            }
        }
        labels.sort_unstable();
        labels.into_iter().map(|(_, label)| label).collect()
    }

    /// Those of `thin` that stay so when classes `within` Y are told apart by `labels` only.
    fn thin(&self, within: &[u32], thin: &[u32], labels: &[u32]) -> Vec<u32> {
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
                // What no label is left of is no part of a further Y.
                together.push((Vec::new(), start(member) == ends[member]));
            }
            of_member.push(number);
            let (people, thick) = &mut together[number];
            let item = &self.items[i as usize];
            if !*thick {
                for &subject in &item.people {
                    self.question.meet(people, subject);
                }
                *thick = item.thick || people.len() >= self.question.people.k;
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
