//! What attacks are run on, and how hard is tried.

use super::trials::Yield;
use crate::anonymity::plan::shared::in_several;
use crate::anonymity::planner::GroupShape;
use crate::config::Config;
use crate::evaluation::facts::AttributeFacts;
use crate::evaluation::original::Original;
use crate::evaluation::released::{Origin, ReleasedGroup};
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeMap;
use throng_core::values::codebook::{CellId, SUPPRESSED};
use throng_core::values::schema::{Role, Schema};
use throng_core::values::subject::NO_SUBJECT;

/// What is promised of a release.
#[derive(Clone, Copy, Debug, Default)]
pub struct Promises {
    /// People of a class in its own batch: k and the colluders.
    pub crowd: usize,
    /// Invented people that every count survives.
    pub colluders: usize,
    /// A person has one line of a group in a batch at most: a line stands for a person.
    pub one_line: bool,
    /// What a person says is limited and delayed: `max_lines_per_subject` and `max_delay` are set, and people are known.
    pub repetition: bool,
}

impl Promises {
    /// What a configuration promises of records that name `people`.
    pub fn of(config: &Config, people: bool) -> Self {
        let privacy = &config.privacy;
        Self {
            crowd: privacy.crowd(),
            colluders: privacy.colluders,
            one_line: !people || privacy.max_lines_per_subject == 1,
            repetition: people && privacy.max_lines_per_subject > 0 && !privacy.longest_delay().is_zero(),
        }
    }
}

/// What attacks are run on.
pub struct Release<'a> {
    /// The records before.
    pub original: &'a Original,
    /// What cells stand for, by attribute.
    pub facts: &'a [AttributeFacts],
    /// The groups of the configuration.
    pub shapes: &'a [GroupShape],
    /// The lines, each with its origin.
    pub groups: &'a [ReleasedGroup],
    /// What is promised.
    pub promises: Promises,
    /// By row: the number of its person, by first sight. A record of nobody is a person of its own.
    pub people: Vec<u32>,
    /// People.
    pub population: usize,
}

/// A group whose lines are known to be of which record.
pub struct Known<'a> {
    /// Its number.
    pub number: usize,
    /// Its attributes by role.
    pub shape: &'a GroupShape,
    /// Its lines.
    pub group: &'a ReleasedGroup,
    /// Where each came from.
    pub origins: &'a [Origin],
    /// Lines by batch.
    pub batches: BTreeMap<u64, Vec<usize>>,
    /// Attributes that stand in other groups too.
    pub shared: Vec<usize>,
}

impl<'a> Release<'a> {
    /// A release, with its people numbered: subjects are keyed digests, and nothing found may depend on the key.
    pub fn new(
        original: &'a Original,
        facts: &'a [AttributeFacts],
        shapes: &'a [GroupShape],
        groups: &'a [ReleasedGroup],
        promises: Promises,
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

    /// The groups with a lineage.
    pub fn known(&self) -> Vec<Known<'a>> {
        let shared = in_several(self.shapes.iter().map(|shape| shape.quasi.as_slice()));
        let all = self.groups.iter().zip(self.shapes).enumerate();
        all.filter_map(|(number, (group, shape))| {
            let origins = group.origin.as_deref()?;
            let mut batches: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
            origins.iter().enumerate().for_each(|(line, origin)| batches.entry(origin.batch).or_default().push(line));
            Some(Known { number, shape, group, origins, batches, shared: shared.clone() })
        })
        .collect()
    }

    /// May the cells of a line stand for the raw values of a record?
    pub fn fits(&self, columns: &[(usize, &[CellId])], line: usize, row: usize) -> bool {
        let records = &self.original.batch.columns;
        columns.iter().all(|(attribute, cells)| self.facts[*attribute].holds(cells[line], records[*attribute][row]))
    }

    /// What the guarantee says of a crowd inside one batch: 1 / crowd.
    pub fn in_batch(&self) -> f64 {
        1.0 / self.promises.crowd.max(1) as f64
    }

    /// What is found of single lines. Where a person may have several in a batch, most lines of a crowd may be of one, and no more is
    /// promised than that a rate is at most 1.
    pub fn of_lines(&self, found: Yield) -> Yield {
        if self.promises.one_line { found } else { Yield { bound: Some(1.0), share_above: 0.0, ..found } }
    }

    /// What is found of two lines. Where a person may have several in a batch, any two of a batch may be of one.
    pub fn of_pairs(&self, found: Yield) -> Yield {
        if self.promises.one_line { found } else { found.or_by_chance() }
    }

    /// What is promised of what repeats; none where nothing is limited.
    pub fn repeated(&self) -> Option<f64> {
        self.promises.repetition.then(|| self.in_batch())
    }

    /// By row of the original, the batch with which it came: records arrive in their order, so that a batch holds what lies
    /// between the last record that it shows and the last one that an earlier batch shows. None after the last line.
    pub fn arrivals(&self) -> Vec<Option<u64>> {
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

/// All lines of some groups, each as the place of its group and its own, in an order that is drawn: one of each group in turn, so that the
/// first ones are of all groups alike.
pub fn shuffled_lines(known: &[Known<'_>], dice: &mut ChaCha8Rng) -> Vec<(usize, usize)> {
    let mut turns: Vec<(usize, usize, usize)> = Vec::new();
    for (at, group) in known.iter().enumerate() {
        let mut lines: Vec<usize> = (0..group.group.lines).collect();
        lines.shuffle(dice);
        turns.extend(lines.into_iter().enumerate().map(|(turn, line)| (turn, at, line)));
    }
    turns.sort_unstable_by_key(|(turn, at, _)| (*turn, *at));
    turns.into_iter().map(|(_, at, line)| (at, line)).collect()
}

impl<'a> Known<'a> {
    /// The quasi attributes with their cells; none for a group without quasi attributes.
    pub fn quasi_columns(&self) -> Vec<(usize, &'a [CellId])> {
        self.shape.quasi.iter().filter_map(|&a| Some((a, self.group.column(a)?))).collect()
    }

    /// The quasi cells of a line.
    pub fn class(&self, line: usize) -> Vec<CellId> {
        self.shape.quasi.iter().filter_map(|&a| self.group.column(a)).map(|column| column[line]).collect()
    }

    /// By person, its first line in each batch.
    pub fn lines_by_person(&self, people: &[u32]) -> BTreeMap<u32, BTreeMap<u64, usize>> {
        let mut lines: BTreeMap<u32, BTreeMap<u64, usize>> = BTreeMap::new();
        for line in 0..self.group.lines {
            let of_person = lines.entry(self.person(people, line)).or_default();
            of_person.entry(self.origins[line].batch).or_insert(line);
        }
        lines
    }

    /// The person of a line.
    pub fn person(&self, people: &[u32], line: usize) -> u32 {
        people[self.origins[line].row as usize]
    }

    /// Labels: the classes that say anything but the time, numbered, and by line the number of its own. Whoever knows moments knows
    /// what an attribute of the role `time` says of them; and what stands in several groups is no news of any.
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

/// How hard is tried.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Targets of each attack.
    pub targets: usize,
    /// The most attributes that an outsider knows of a person.
    pub known: usize,
    /// Fixes every draw.
    pub seed: u64,
}
