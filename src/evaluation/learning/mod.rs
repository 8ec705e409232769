//! What can be learned from a release: a model of one attribute, trained on the records before and on the lines after, and tested on
//! records that neither has seen ([POD] §6.4, Tables 6.4 and 6.5; docs/methods.md §14.5).
//!
//! Lines are fragments: what predicts an attribute is what leaves with it in one group. A third model, of all attributes of the
//! original, says what the cut into groups costs by itself.
//!
//! | file | what it holds |
//! |---|---|
//! | `features` | values and cells as numbers |
//! | `model` | logistic regression |
//! | `scores` | accuracy, balanced accuracy, AUC |

mod features;
mod model;
mod scores;

pub use scores::Scores;

use super::facts::{AttributeFacts, is_present};
use super::original::Original;
use super::released::ReleasedGroup;
use crate::records::codebook::Code;
use features::Features;
use model::Model;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Share of the people who are held out.
const HELD_OUT: f64 = 0.3;
/// Records that a model is trained on, and tested on, at most.
const MOST_ROWS: usize = 10_000;
/// Values of a target that are told apart; the rarer ones are one class. Numbers with more are above their median or not.
const MOST_CLASSES: usize = 8;

/// What can be learned of one attribute.
#[derive(Clone, Debug, Serialize)]
pub struct Learning {
    /// The attribute.
    pub target: String,
    /// The group that it leaves in.
    pub group: String,
    /// What predicts it: the other attributes of the group.
    pub features: Vec<String>,
    /// How the target was made classes: `values` or `above the median`.
    pub classes_are: &'static str,
    /// Classes.
    pub classes: usize,
    /// Records that were held out and tested on.
    pub tested: u64,
    /// What the records were split by: `people` or `records`.
    pub split_by: &'static str,
    /// Without a lineage lines of people who are held out cannot be told, and are learned from too: what comes after looks
    /// better than it is.
    pub leaks: bool,
    /// Accuracy of always saying the most frequent class.
    pub majority: f64,
    /// Learned from the records before, all attributes that may leave.
    pub whole: Option<Scores>,
    /// Learned from the records before, by the same attributes as the lines.
    pub before: Option<Scores>,
    /// Learned from the lines; none where they show fewer than two classes, or nothing beside the target.
    pub after: Option<Scores>,
}

/// People (or records) who are held out, by row.
struct Split {
    held_out: Vec<bool>,
}

impl Split {
    /// By person, numbered by first sight: nothing depends on the key of the digests.
    fn of(original: &Original, seed: u64) -> Self {
        let mut number_of: BTreeMap<u64, usize> = BTreeMap::new();
        let subjects = &original.batch.subjects;
        let numbers: Vec<usize> = subjects
            .iter()
            .map(|subject| {
                let next = number_of.len();
                *number_of.entry(*subject).or_insert(next)
            })
            .collect();
        let mut order: Vec<usize> = (0..number_of.len()).collect();
        order.shuffle(&mut ChaCha8Rng::seed_from_u64(seed));
        let few = (order.len() as f64 * HELD_OUT).round() as usize;
        let mut out = vec![false; order.len()];
        order.into_iter().take(few).for_each(|person| out[person] = true);
        Self { held_out: numbers.into_iter().map(|person| out[person]).collect() }
    }
}

/// The classes of a target.
struct Classes {
    /// By code; none for a missing value.
    of_code: Vec<Option<u32>>,
    number: usize,
    are: &'static str,
}

impl Classes {
    fn of(original: &Original, facts: &AttributeFacts, attribute: usize) -> Self {
        let counts = &facts.counts;
        let mut codes: Vec<Code> =
            (0..counts.len() as Code).filter(|code| is_present(*code) && counts[*code as usize] > 0).collect();
        let mut of_code = vec![None; counts.len()];
        if codes.len() > MOST_CLASSES
            && let Some(numbers) = features::numbers(original, attribute)
        {
            let mut all: Vec<f64> = original.batch.columns[attribute]
                .iter()
                .filter_map(|code| numbers.get(*code as usize).copied().flatten())
                .collect();
            all.sort_by(f64::total_cmp);
            let median = all.get(all.len() / 2).copied().unwrap_or(0.0);
            for code in codes {
                of_code[code as usize] = numbers[code as usize].map(|number| u32::from(number >= median));
            }
            return Self { of_code, number: 2, are: "above the median" };
        }
        codes.sort_by_key(|code| (std::cmp::Reverse(counts[*code as usize]), *code));
        for (rank, code) in codes.iter().enumerate() {
            of_code[*code as usize] = Some(rank.min(MOST_CLASSES - 1) as u32);
        }
        Self { of_code, number: codes.len().min(MOST_CLASSES), are: "values" }
    }

    /// The class of a cell that stands for `codes`; none where they are of several.
    fn of_cell(&self, codes: &[Code]) -> Option<u32> {
        let mut classes = codes.iter().map(|code| self.of_code.get(*code as usize).copied().flatten());
        let first = classes.next()??;
        classes.all(|class| class == Some(first)).then_some(first)
    }
}

/// Learns the attribute `target` before and after; none where it leaves in no group. Deterministic by `seed`.
pub fn learn(
    original: &Original,
    facts: &[AttributeFacts],
    groups: &[ReleasedGroup],
    target: usize,
    seed: u64,
) -> Option<Learning> {
    let group = groups.iter().find(|group| group.attributes.contains(&target))?;
    let split = Split::of(original, seed);
    let classes = Classes::of(original, &facts[target], target);
    let name = |a: &usize| original.schema.attributes[*a].name.clone();
    let own: Vec<usize> = group.attributes.iter().copied().filter(|a| *a != target).collect();
    // What stands in several groups predicts once.
    let mut met = BTreeSet::from([target]);
    let every: Vec<usize> =
        groups.iter().flat_map(|group| group.attributes.iter().copied()).filter(|a| met.insert(*a)).collect();
    let column = &original.batch.columns[target];
    let class_of_row = |row: usize| classes.of_code[column[row] as usize];
    let mut dice = ChaCha8Rng::seed_from_u64(seed);
    let mut drawn = |held_out: bool| {
        let wanted = |row: &usize| split.held_out[*row] == held_out && class_of_row(*row).is_some();
        let mut rows: Vec<usize> = (0..original.rows()).filter(wanted).collect();
        rows.shuffle(&mut dice);
        rows.truncate(MOST_ROWS);
        rows
    };
    let (tested, trained) = (drawn(true), drawn(false));
    let truth: Vec<u32> = tested.iter().filter_map(|row| class_of_row(*row)).collect();
    let scored = |features: &Features, model: Option<Model>, rows: usize| {
        let model = model?;
        let scores: Vec<Vec<f64>> =
            tested.iter().map(|row| model.scores(&features.of_row(original, *row), classes.number)).collect();
        Scores::of(&truth, &scores, rows as u64)
    };
    let before = |attributes: &[usize]| {
        let features = Features::new(original, facts, attributes);
        let x: Vec<Vec<f64>> = trained.iter().map(|row| features.of_row(original, *row)).collect();
        let y: Vec<u32> = trained.iter().filter_map(|row| class_of_row(*row)).collect();
        scored(&features, Model::fit(&x, &y), trained.len())
    };
    let lines = learnable(group, &split, &mut dice);
    let features = Features::new(original, facts, &own);
    let (mut x, mut y) = (Vec::new(), Vec::new());
    for line in lines {
        let cell = group.column(target).map(|column| facts[target].get(column[line]));
        if let Some(class) = cell.and_then(|cell| classes.of_cell(&cell.codes)) {
            x.push(features.of_line(facts, group, line));
            y.push(class);
            if x.len() == MOST_ROWS {
                break;
            }
        }
    }
    let rows = x.len();
    let most = (0..classes.number as u32).map(|class| truth.iter().filter(|t| **t == class).count()).max();
    Some(Learning {
        target: name(&target),
        group: group.name.clone(),
        features: own.iter().map(name).collect(),
        classes_are: classes.are,
        classes: classes.number,
        tested: tested.len() as u64,
        split_by: if original.schema.subject.is_some() { "people" } else { "records" },
        leaks: group.origin.is_none(),
        majority: most.unwrap_or(0) as f64 / truth.len().max(1) as f64,
        whole: before(&every),
        before: before(&own),
        after: scored(&features, Model::fit(&x, &y), rows),
    })
}

/// The lines to learn from, in an order that is drawn: where it is known, none of who is held out.
fn learnable(group: &ReleasedGroup, split: &Split, dice: &mut ChaCha8Rng) -> Vec<usize> {
    let is_held_out =
        |line: usize| group.origin.as_ref().is_some_and(|origins| split.held_out[origins[line].row as usize]);
    let mut lines: Vec<usize> = (0..group.lines).filter(|&line| !is_held_out(line)).collect();
    lines.shuffle(dice);
    lines
}

#[cfg(test)]
mod tests;
