//! What can be learned from a release: a model of one attribute, trained on the records before and on the lines after, and tested on
//! records that neither has seen ([POD] §6.4, Tables 6.4 and 6.5; docs/methods.md §14.5).
//!
//! Lines are fragments: an attribute is predicted by those that leave with it in one group. A third model, of all attributes of the
//! original, says what the cut into groups costs by itself.
//!
//! | file | what it holds |
//! |---|---|
//! | `target` | a column or several, and their classes |
//! | `features` | values and cells as sparse numbers |
//! | `model` | logistic regression |
//! | `fitting` | models of records and of lines, tested on the same records |
//! | `scores` | accuracy, balanced accuracy, AUC, wrong positives and negatives |
//! | `coefficients` | the weight of each attribute |

mod coefficients;
mod features;
mod fitting;
mod model;
mod scores;
mod target;

pub use coefficients::Coefficient;
pub use scores::{Scores, auc};
pub use target::{Target, TargetError};

use super::facts::AttributeFacts;
use super::original::Original;
use super::released::ReleasedGroup;
use fitting::{MOST_ROWS, Records};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Share of the people who are held out.
const HELD_OUT: f64 = 0.3;

/// What can be learned of one attribute.
#[derive(Clone, Debug, Serialize)]
pub struct Learning {
    /// The attribute, or the question that was asked.
    pub target: String,
    /// The groups that it leaves in, separated by commas.
    pub group: String,
    /// The other attributes of those groups, which predict it.
    pub features: Vec<String>,
    /// How the target was made classes: `values`, `above the median` or `has the value or not`.
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
    /// The weight of each attribute in the three models.
    pub coefficients: Vec<Coefficient>,
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

/// Learns `target` before and after, by the attributes for which `is_feature` is true; none where it leaves in no group. Deterministic by
/// `seed`.
pub fn learn(
    original: &Original,
    facts: &[AttributeFacts],
    groups: &[ReleasedGroup],
    target: &Target,
    is_feature: impl Fn(usize) -> bool,
    seed: u64,
) -> Option<Learning> {
    let with_target = |group: &&ReleasedGroup| target.attributes.iter().any(|a| group.attributes.contains(a));
    let own_groups: Vec<&ReleasedGroup> = groups.iter().filter(with_target).collect();
    if own_groups.is_empty() {
        return None;
    }
    let split = Split::of(original, seed);
    let classes = target.classes(original, facts);
    let predict = |groups: &mut dyn Iterator<Item = &ReleasedGroup>| -> Vec<usize> {
        // What stands in several groups predicts once.
        let mut met: BTreeSet<usize> = target.attributes.iter().copied().collect();
        groups.flat_map(|group| group.attributes.clone()).filter(|a| is_feature(*a) && met.insert(*a)).collect()
    };
    let (own, every) = (predict(&mut own_groups.iter().copied()), predict(&mut groups.iter()));
    let mut dice = ChaCha8Rng::seed_from_u64(seed);
    let mut drawn = |held_out: bool| {
        let wanted = |row: &usize| split.held_out[*row] == held_out && classes.of_row(original, *row).is_some();
        let mut rows: Vec<usize> = (0..original.rows()).filter(wanted).collect();
        rows.shuffle(&mut dice);
        rows.truncate(MOST_ROWS);
        rows
    };
    let (tested, trained) = (drawn(true), drawn(false));
    let records = Records { original, facts, classes: &classes, tested, trained };
    // A line without any feature would only add to the share of its class.
    let has_feature = |group: &&&ReleasedGroup| own.iter().any(|a| group.attributes.contains(a));
    let teaching: Vec<&ReleasedGroup> = own_groups.iter().filter(has_feature).copied().collect();
    let lines = learnable(&teaching, &split, &mut dice);
    let (whole, before) = (records.fit(&every), records.fit(&own));
    let after = records.fit_lines(&own, lines.into_iter());
    let truth = records.truth();
    let most = (0..classes.number() as u32).map(|class| truth.iter().filter(|t| **t == class).count()).max();
    let name = |a: &usize| original.schema.attributes[*a].name.clone();
    Some(Learning {
        target: target.name().to_owned(),
        group: own_groups.iter().map(|group| group.name.as_str()).collect::<Vec<_>>().join(", "),
        features: own.iter().map(name).collect(),
        classes_are: classes.are(),
        classes: classes.number(),
        tested: records.tested.len() as u64,
        split_by: if original.schema.subject.is_some() { "people" } else { "records" },
        leaks: own_groups.iter().any(|group| group.origin.is_none()),
        majority: most.unwrap_or(0) as f64 / truth.len().max(1) as f64,
        whole: records.scores(&whole),
        before: records.scores(&before),
        after: records.scores(&after),
        coefficients: coefficients::of(&records, &every, &own, [&whole, &before, &after]),
    })
}

/// The lines to learn from, in an order that is drawn: where it is known, none of held-out people.
fn learnable<'a>(
    groups: &[&'a ReleasedGroup],
    split: &Split,
    dice: &mut ChaCha8Rng,
) -> Vec<(&'a ReleasedGroup, usize)> {
    let is_held_out = |(group, line): &(&ReleasedGroup, usize)| {
        group.origin.as_ref().is_some_and(|origins| split.held_out[origins[*line].row as usize])
    };
    let all = groups.iter().flat_map(|group| (0..group.lines).map(move |line| (*group, line)));
    let mut lines: Vec<(&ReleasedGroup, usize)> = all.filter(|line| !is_held_out(line)).collect();
    lines.shuffle(dice);
    lines
}

#[cfg(test)]
mod tests;
