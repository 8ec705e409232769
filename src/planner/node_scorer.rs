use super::planner_sample::{PlannerSample, PlannerSettings};
use throng_core::numbering::KeyNumbering;
use throng_core::values::codebook::Codebook;
use throng_core::values::subject_digest::NO_SUBJECT;

/// Up to an eighth of the rows.
const THRESHOLD_STEP: u32 = 2;

/// Keys and losses of sample rows. Time per node: O(rows × attributes). Memory: 12 bytes per row, attribute and level.
pub(super) struct NodeScorer {
    /// By attribute and level.
    columns: Vec<Vec<ScorerColumn>>,
    /// Adjacent per subject, so counting needs only the last one.
    subjects: Vec<u64>,
    /// In the sample.
    min_class_subjects: u32,
    thresholds: Vec<u32>,
    best_row_values: Vec<Vec<f32>>,
    classes: SubjectClassCounts,
    keys: Vec<u64>,
    values: Vec<f32>,
    of_row: Vec<u32>,
}

struct ScorerColumn {
    keys: Vec<u64>,
    losses: Vec<f32>,
}

impl NodeScorer {
    /// Creates a scorer over at most `most_rows` rows.
    pub fn new(
        attributes: &[usize],
        sample: &PlannerSample,
        books: &[Codebook],
        settings: &PlannerSettings,
        most_rows: usize,
    ) -> Self {
        let step = sample.rows().div_ceil(most_rows).max(1);
        let mut rows: Vec<usize> = (0..sample.rows()).step_by(step).collect();
        // First occurrence: plans must not depend on the digest key.
        let mut seen = hashbrown::HashMap::new();
        rows.sort_by_cached_key(|&row| {
            let next = seen.len();
            *seen.entry(sample.subjects()[row]).or_insert(next)
        });
        let most = rows.len() as u32 / 8;
        // Share of k that the sample represents.
        let least = settings.k as f64 * rows.len() as f64 / settings.batch_records.max(1) as f64;
        let least = (least.ceil() as u32).clamp(2, most.max(2));
        // A rare class is large enough in some batches.
        let first = (least / 2).max(2);
        let next = |before: &u32| Some(before * THRESHOLD_STEP).filter(|threshold| *threshold <= most);
        let thresholds: Vec<u32> = std::iter::successors(Some(first), next).collect();
        let column = |attribute: usize, level: usize| {
            let (codes, digests) = (sample.column(attribute), books[attribute].digests(level));
            let losses = books[attribute].losses(level);
            ScorerColumn {
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
            best_row_values: vec![vec![0.0; rows.len()]; thresholds.len()],
            min_class_subjects: least,
            thresholds,
            classes: SubjectClassCounts::new(rows.len()),
            keys: Vec::with_capacity(rows.len()),
            values: Vec::with_capacity(rows.len()),
            of_row: Vec::with_capacity(rows.len()),
        }
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.subjects.len()
    }

    /// Groups all rows at node `levels`.
    pub fn group_sample_rows(&mut self, levels: &[u8]) {
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

    fn compute_row_values(&mut self, levels: &[u8]) {
        self.values.clear();
        self.values.resize(self.subjects.len(), 0.0);
        for (column, &level) in self.columns.iter().zip(levels) {
            let losses = &column[usize::from(level)].losses;
            self.values.iter_mut().zip(losses).for_each(|(sum, loss)| *sum += loss);
        }
        let width = levels.len() as f32;
        self.values.iter_mut().for_each(|sum| *sum = 1.0 - *sum / width);
    }

    /// Returns the node's added worth over thresholds.
    pub fn score_gain(&mut self, levels: &[u8]) -> f64 {
        self.group_sample_rows(levels);
        self.compute_row_values(levels);
        let mut gain = 0.0;
        for (row, &class) in self.of_row.iter().enumerate() {
            let members = self.classes.subjects_of(class);
            let supported =
                self.thresholds.iter().zip(&self.best_row_values).take_while(|(needed, _)| members >= **needed);
            gain += supported.map(|(_, worth)| f64::from((self.values[row] - worth[row]).max(0.0))).sum::<f64>();
        }
        gain
    }

    /// Selects the node.
    pub fn select_scored_node(&mut self, levels: &[u8]) {
        self.group_sample_rows(levels);
        self.compute_row_values(levels);
        for (row, &class) in self.of_row.iter().enumerate() {
            let members = self.classes.subjects_of(class);
            let supported =
                self.thresholds.iter().zip(&mut self.best_row_values).take_while(|(needed, _)| members >= **needed);
            for (_, worth) in supported {
                worth[row] = worth[row].max(self.values[row]);
            }
        }
    }

    /// Removes supported rows and returns their loss.
    pub fn remove_supported_rows(&mut self, levels: &[u8], open: &mut Vec<u32>) -> f64 {
        self.group_sample_rows(levels);
        self.compute_row_values(levels);
        let (of_row, classes, values, least) = (&self.of_row, &self.classes, &self.values, self.min_class_subjects);
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

/// For rows sorted by subject.
struct SubjectClassCounts {
    rows: usize,
    numbers: KeyNumbering<u64>,
    /// Count and last subject.
    subjects: Vec<(u32, u64)>,
}

impl SubjectClassCounts {
    fn new(rows: usize) -> Self {
        Self { rows, numbers: KeyNumbering::default(), subjects: Vec::new() }
    }

    fn restart(&mut self) {
        self.numbers.restart(self.rows);
        self.subjects.clear();
    }

    /// Keys are uniform.
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
        fn class_subject_counts_match_sets(
            rounds in prop::collection::vec(prop::collection::vec((0_u64..6, 0_u64..8), 0..60), 1..4),
        ) {
            let mut classes = SubjectClassCounts::new(60);
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
