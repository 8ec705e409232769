//! What a node of a lattice is worth to the rows of a sample.

use super::sample::{PlannerSettings, Sample};
use crate::anonymity::numbering::Numbering;
use throng_core::values::codebook::Codebook;
use throng_core::values::subject::NO_SUBJECT;

/// Each support that nodes are scored for is this many times the one before, up to an eighth of the rows.
const THRESHOLD_STEP: u32 = 2;

/// Rows of a sample, with what each of them adds to the key and to the loss of its class at every level of every
/// attribute. A node is then scored by sums over columns.
///
/// Time of a node: O(rows × attributes). Memory: 12 bytes for each row, attribute and level.
pub(super) struct Scorer {
    /// By attribute and level.
    columns: Vec<Vec<Column>>,
    /// By row; rows of one subject follow each other, so that counting a class's subjects needs only its last one.
    subjects: Vec<u64>,
    /// Subjects that a class is expected to need in the sample.
    least: u32,
    /// Those that nodes are scored for, ascending.
    thresholds: Vec<u32>,
    /// By threshold and row: the best that the nodes chosen so far make of it.
    worth: Vec<Vec<f32>>,
    classes: Classes,
    /// By row, at the node counted last.
    keys: Vec<u64>,
    values: Vec<f32>,
    of_row: Vec<u32>,
}

/// One attribute at one level, by row.
struct Column {
    keys: Vec<u64>,
    losses: Vec<f32>,
}

impl Scorer {
    /// A scorer over `most_rows` rows of `sample`, evenly taken.
    pub fn new(
        attributes: &[usize],
        sample: &Sample,
        books: &[Codebook],
        settings: &PlannerSettings,
        most_rows: usize,
    ) -> Self {
        let step = sample.rows().div_ceil(most_rows).max(1);
        let mut rows: Vec<usize> = (0..sample.rows()).step_by(step).collect();
        // By first sight and not by number: subjects are keyed digests, and a plan is not to depend on the key.
        let mut seen = hashbrown::HashMap::new();
        rows.sort_by_cached_key(|&row| {
            let next = seen.len();
            *seen.entry(sample.subjects()[row]).or_insert(next)
        });
        let most = rows.len() as u32 / 8;
        // Subjects of the sample that stand for the crowd of a class in its batch.
        let least = settings.k as f64 * rows.len() as f64 / settings.batch_records.max(1) as f64;
        let least = (least.ceil() as u32).clamp(2, most.max(2));
        // A class that is too rare on average has its crowd in some batches.
        let first = (least / 2).max(2);
        let next = |before: &u32| Some(before * THRESHOLD_STEP).filter(|threshold| *threshold <= most);
        let thresholds: Vec<u32> = std::iter::successors(Some(first), next).collect();
        let column = |attribute: usize, level: usize| {
            let (codes, digests) = (sample.column(attribute), books[attribute].digests(level));
            let losses = books[attribute].losses(level);
            Column {
                keys: rows.iter().map(|&row| digests[codes[row] as usize] as u64).collect(),
                losses: rows.iter().map(|&row| losses[codes[row] as usize]).collect(),
            }
        };
        Self {
            columns: attributes
                .iter()
                .map(|&a| (0..books[a].levels()).map(|level| column(a, level)).collect())
                .collect(),
            subjects: rows.iter().map(|&row| sample.subjects()[row]).collect(),
            worth: vec![vec![0.0; rows.len()]; thresholds.len()],
            least,
            thresholds,
            classes: Classes::new(rows.len()),
            keys: Vec::with_capacity(rows.len()),
            values: Vec::with_capacity(rows.len()),
            of_row: Vec::with_capacity(rows.len()),
        }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.subjects.len()
    }

    /// Takes all rows to the node `levels`, one level an attribute.
    pub fn count(&mut self, levels: &[u8]) {
        let rows = self.rows();
        self.keys.clear();
        self.keys.resize(rows, 0);
        for (column, &level) in self.columns.iter().zip(levels) {
            let added = &column[usize::from(level)].keys;
            self.keys.iter_mut().zip(added).for_each(|(key, more)| *key = key.wrapping_add(*more));
        }
        self.classes.restart();
        self.of_row.clear();
        for (&key, &subject) in self.keys.iter().zip(&self.subjects) {
            self.of_row.push(self.classes.add(key, subject));
        }
    }

    /// One less the mean loss of each row's cells at `levels`.
    fn value(&mut self, levels: &[u8]) {
        self.values.clear();
        self.values.resize(self.subjects.len(), 0.0);
        for (column, &level) in self.columns.iter().zip(levels) {
            let losses = &column[usize::from(level)].losses;
            self.values.iter_mut().zip(losses).for_each(|(sum, loss)| *sum += loss);
        }
        let width = levels.len() as f32;
        self.values.iter_mut().for_each(|sum| *sum = 1.0 - *sum / width);
    }

    /// What the node adds to the worth of the rows, over all thresholds; at least 0.
    pub fn gain(&mut self, levels: &[u8]) -> f64 {
        self.count(levels);
        self.value(levels);
        let mut gain = 0.0;
        for (row, &class) in self.of_row.iter().enumerate() {
            let members = self.classes.subjects_of(class);
            let supported = self.thresholds.iter().zip(&self.worth).take_while(|(needed, _)| members >= **needed);
            gain += supported.map(|(_, worth)| f64::from((self.values[row] - worth[row]).max(0.0))).sum::<f64>();
        }
        gain
    }

    /// The node is chosen: rows are worth from now on what it makes of them, where that is more.
    pub fn choose(&mut self, levels: &[u8]) {
        self.count(levels);
        self.value(levels);
        for (row, &class) in self.of_row.iter().enumerate() {
            let members = self.classes.subjects_of(class);
            let supported = self.thresholds.iter().zip(&mut self.worth).take_while(|(needed, _)| members >= **needed);
            for (_, worth) in supported {
                worth[row] = worth[row].max(self.values[row]);
            }
        }
    }

    /// The rows of `open` whose class has the least support at `levels` are taken out; returns the sum of their losses.
    pub fn settle(&mut self, levels: &[u8], open: &mut Vec<u32>) -> f64 {
        self.count(levels);
        self.value(levels);
        let (of_row, classes, values, least) = (&self.of_row, &self.classes, &self.values, self.least);
        let mut loss = 0.0;
        open.retain(|&row| {
            let supported = classes.subjects_of(of_row[row as usize]) >= least;
            if supported {
                loss += 1.0 - f64::from(values[row as usize]);
            }
            !supported
        });
        loss
    }
}

/// Classes by key with the number of their subjects, for rows that come subject by subject.
struct Classes {
    rows: usize,
    numbers: Numbering<u64>,
    /// By class: its subjects so far, and the last of them.
    subjects: Vec<(u32, u64)>,
}

impl Classes {
    fn new(rows: usize) -> Self {
        Self { rows, numbers: Numbering::default(), subjects: Vec::new() }
    }

    fn restart(&mut self) {
        self.numbers.restart(self.rows);
        self.subjects.clear();
    }

    /// Adds a row, whose key is uniform; returns the number of its class.
    fn add(&mut self, key: u64, subject: u64) -> u32 {
        let (class, is_new) = self.numbers.number(key, key as usize);
        if is_new {
            self.subjects.push((0, NO_SUBJECT));
        }
        let (number, last) = &mut self.subjects[class as usize];
        if subject != *last {
            (*number, *last) = (*number + u32::from(subject != NO_SUBJECT), subject);
        }
        class
    }

    fn subjects_of(&self, class: u32) -> u32 {
        self.subjects[class as usize].0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::{BTreeMap, BTreeSet};

    proptest! {
        #[test]
        fn subjects_of_a_class_are_counted_as_sets_count_them(
            rounds in prop::collection::vec(prop::collection::vec((0_u64..6, 0_u64..8), 0..60), 1..4),
        ) {
            let mut classes = Classes::new(60);
            for mut rows in rounds {
                rows.sort_by_key(|(_, subject)| *subject);
                classes.restart();
                let mut sets: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
                let numbers: Vec<u32> = rows.iter().map(|(key, subject)| classes.add(*key, *subject)).collect();
                for (key, subject) in &rows {
                    let set = sets.entry(*key).or_default();
                    if *subject != NO_SUBJECT {
                        set.insert(*subject);
                    }
                }
                for ((key, _), class) in rows.iter().zip(&numbers) {
                    prop_assert_eq!(classes.subjects_of(*class) as usize, sets[key].len());
                }
                let distinct: BTreeSet<u32> = numbers.iter().copied().collect();
                prop_assert_eq!(distinct.len(), sets.len());
            }
        }
    }
}
