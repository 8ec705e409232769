//! Input and effort of the attacks.

use super::trials::AttackYield;
use crate::facts::AttributeFacts;
use crate::original::OriginalData;
use crate::released_lines::{LineOrigin, ReleasedGroup};
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeMap;
use throng_core::plan::GroupShape;
use throng_core::plan::plan_shared_attributes::find_shared_attributes;
use throng_core::values::codebook::{CellId, SUPPRESSED};
use throng_core::values::schema::{Role, Schema};
use throng_core::values::subject_digest::NO_SUBJECT;

/// Guarantees of a release.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReleaseGuarantees {
    /// Minimum class size in a batch: k plus colluders.
    pub crowd: usize,
    /// Invented subjects that every count tolerates.
    pub colluders: usize,
    /// True with at most one line per subject, group and batch.
    pub has_one_line: bool,
    /// True if contributions are limited and delayed (`max_lines_per_subject`, `max_delay`).
    pub limits_repetition: bool,
}

/// Input of the attacks.
pub struct AttackInput<'a> {
    /// Original records.
    pub original: &'a OriginalData,
    /// Cell facts by attribute.
    pub facts: &'a [AttributeFacts],
    /// Configured groups.
    pub shapes: &'a [GroupShape],
    /// Released lines with their origins.
    pub groups: &'a [ReleasedGroup],
    /// Guarantees of the release.
    pub promises: ReleaseGuarantees,
    /// Subject number by row; a record without a subject has a separate one.
    pub people: Vec<u32>,
    /// Number of subjects.
    pub population: usize,
}

/// Group with known line origins.
pub struct LinkedGroup<'a> {
    /// Group index.
    pub number: usize,
    /// Attributes by role.
    pub shape: &'a GroupShape,
    /// Lines.
    pub group: &'a ReleasedGroup,
    /// Origin of each line.
    pub origins: &'a [LineOrigin],
    /// Lines by batch.
    pub batches: BTreeMap<u64, Vec<usize>>,
    /// Attributes shared with other groups.
    pub shared: Vec<usize>,
}

impl<'a> AttackInput<'a> {
    /// Numbers subjects by appearance: no result may depend on the digest key.
    pub fn new(
        original: &'a OriginalData,
        facts: &'a [AttributeFacts],
        shapes: &'a [GroupShape],
        groups: &'a [ReleasedGroup],
        promises: ReleaseGuarantees,
    ) -> Self {
        let mut number_of: BTreeMap<u64, u32> = BTreeMap::new();
        let mut next = 0;
        let mut number = |subject: &u64| {
            let mut new = || {
                next += 1;
                next - 1
            };
            if *subject == NO_SUBJECT { new() } else { *number_of.entry(*subject).or_insert_with(new) }
        };
        let people = original.batch.subjects.iter().map(&mut number).collect();
        Self { original, facts, shapes, groups, promises, people, population: next as usize }
    }

    /// Returns the groups with a lineage.
    pub fn linked_groups(&self) -> Vec<LinkedGroup<'a>> {
        let shared = find_shared_attributes(self.shapes.iter().map(|shape| shape.quasi.as_slice()));
        let all = self.groups.iter().zip(self.shapes).enumerate();
        all.filter_map(|(number, (group, shape))| {
            let origins = group.origin.as_deref()?;
            let mut batches: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
            origins.iter().enumerate().for_each(|(line, origin)| batches.entry(origin.batch).or_default().push(line));
            Some(LinkedGroup { number, shape, group, origins, batches, shared: shared.clone() })
        })
        .collect()
    }

    /// Returns true if a line's cells cover a record's raw values.
    pub fn fits(&self, columns: &[(usize, &[CellId])], line: usize, row: usize) -> bool {
        let records = &self.original.batch.columns;
        columns.iter().all(|(attribute, cells)| self.facts[*attribute].holds(cells[line], records[*attribute][row]))
    }

    /// Returns the bound inside one batch: 1 / crowd.
    pub fn batch_bound(&self) -> f64 {
        1.0 / self.promises.crowd.max(1) as f64
    }

    /// Adjusts a yield of lines: without the line limit, its bound is 1.
    pub fn adjust_line_yield(&self, found: AttackYield) -> AttackYield {
        if self.promises.has_one_line { found } else { AttackYield { bound: Some(1.0), share_above: 0.0, ..found } }
    }

    /// Adjusts a yield of line pairs, which may share a subject without the line limit.
    pub fn adjust_pair_yield(&self, found: AttackYield) -> AttackYield {
        if self.promises.has_one_line { found } else { found.allow_chance() }
    }

    /// Returns the bound for repeated contributions, if limited.
    pub fn repetition_bound(&self) -> Option<f64> {
        self.promises.limits_repetition.then(|| self.batch_bound())
    }

    /// Returns each row's arrival batch, which ends at its last released row.
    pub fn arrival_batches(&self) -> Vec<Option<u64>> {
        let mut last: BTreeMap<u64, u32> = BTreeMap::new();
        for origin in self.groups.iter().filter_map(|group| group.origin.as_deref()).flatten() {
            let row = last.entry(origin.batch).or_default();
            *row = (*row).max(origin.row);
        }
        let mut arrivals = Vec::with_capacity(self.original.rows());
        for (batch, last) in last {
            let up_to = last as usize + 1;
            if up_to > arrivals.len() {
                arrivals.resize(up_to, Some(batch));
            }
        }
        arrivals.resize(self.original.rows(), None);
        arrivals
    }
}

/// Returns all (group index, line) in random order; prefixes cover all groups.
pub fn shuffled_lines(known: &[LinkedGroup<'_>], dice: &mut ChaCha8Rng) -> Vec<(usize, usize)> {
    let mut turns: Vec<(usize, usize, usize)> = Vec::new();
    for (at, group) in known.iter().enumerate() {
        let mut lines: Vec<usize> = (0..group.group.lines).collect();
        lines.shuffle(dice);
        turns.extend(lines.into_iter().enumerate().map(|(turn, line)| (turn, at, line)));
    }
    turns.sort_unstable_by_key(|(turn, at, _)| (*turn, *at));
    turns.into_iter().map(|(_, at, line)| (at, line)).collect()
}

impl<'a> LinkedGroup<'a> {
    /// Returns the quasi-identifiers with their cells.
    pub fn quasi_columns(&self) -> Vec<(usize, &'a [CellId])> {
        self.shape.quasi.iter().filter_map(|&a| Some((a, self.group.column(a)?))).collect()
    }

    /// Returns the quasi-identifier cells of a line.
    pub fn class(&self, line: usize) -> Vec<CellId> {
        self.shape.quasi.iter().filter_map(|&a| self.group.column(a)).map(|column| column[line]).collect()
    }

    /// Returns each subject's first line per batch.
    pub fn lines_by_person(&self, people: &[u32]) -> BTreeMap<u32, BTreeMap<u64, usize>> {
        let mut lines: BTreeMap<u32, BTreeMap<u64, usize>> = BTreeMap::new();
        for line in 0..self.group.lines {
            let of_person = lines.entry(self.person(people, line)).or_default();
            of_person.entry(self.origins[line].batch).or_insert(line);
        }
        lines
    }

    /// Returns the subject of a line.
    pub fn person(&self, people: &[u32], line: usize) -> u32 {
        people[self.origins[line].row as usize]
    }

    /// Returns the label count and each line's label: its class without time and shared attributes; none if all
    /// suppressed.
    pub fn labels(&self, schema: &Schema) -> (usize, Vec<Option<u32>>) {
        let timeless = |a: &&usize| schema.attributes[**a].role != Role::Time && !self.shared.contains(*a);
        let columns: Vec<&[CellId]> =
            self.shape.quasi.iter().filter(timeless).filter_map(|&a| self.group.column(a)).collect();
        let mut numbers: BTreeMap<Vec<CellId>, u32> = BTreeMap::new();
        let mut label = |line: usize| {
            let class: Vec<CellId> = columns.iter().map(|column| column[line]).collect();
            if class.iter().all(|cell| *cell == SUPPRESSED) {
                return None;
            }
            let next = numbers.len() as u32;
            Some(*numbers.entry(class).or_insert(next))
        };
        let labels = (0..self.group.lines).map(&mut label).collect();
        (numbers.len(), labels)
    }
}

/// Effort of the attacks.
#[derive(Clone, Copy, Debug)]
pub struct AttackEffort {
    /// Targets per attack.
    pub targets: usize,
    /// Maximum number of known attributes.
    pub known_attributes: usize,
    /// Seed of all random draws.
    pub seed: u64,
}
