//! Prediction of an attribute: models of original records and of released lines, tested on other records (\[POD] §6.4,
//! Tables 6.4 and 6.5; docs/internals/methods.md §14.5).

mod features;
mod learned_weights;
mod learning_target;
mod logistic_model;
mod model_fitting;
mod prediction_scores;

pub use learned_weights::LearnedWeight;
pub use learning_target::{LearningTarget, TargetError};
pub use prediction_scores::{PredictionScores, area_under_curve};

use super::facts::AttributeFacts;
use super::original::OriginalData;
use crate::released_lines::ReleasedGroup;
use model_fitting::{LearningRecords, MAX_MODEL_ROWS};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

const HOLDOUT_SHARE: f64 = 0.3;

/// Results for one target.
#[derive(Clone, Debug, Serialize)]
pub struct LearningScores {
    /// Attribute, or target expression.
    pub target: String,
    /// Groups that release the target, comma-separated.
    pub group: String,
    /// Predictors: the other attributes of those groups.
    pub features: Vec<String>,
    /// Class kind: `values`, `above the median` or `has the value or not`.
    pub classes_are: &'static str,
    /// Number of classes.
    pub classes: usize,
    /// Number of test records.
    pub tested: u64,
    /// Split unit: `people` or `records`.
    pub split_by: &'static str,
    /// True if lines of test subjects are trained on (no lineage): scores are too high.
    pub leaks: bool,
    /// Accuracy of the most frequent class.
    pub majority: f64,
    /// Scores of the original with all released attributes.
    pub whole: Option<PredictionScores>,
    /// Scores of the original with the lines' attributes.
    pub before: Option<PredictionScores>,
    /// Scores of the lines; none without classes or predictors.
    pub after: Option<PredictionScores>,
    /// Attribute weights in the three models.
    pub coefficients: Vec<LearnedWeight>,
}

struct HoldoutSplit {
    held_out: Vec<bool>,
}

impl HoldoutSplit {
    /// Numbers subjects by occurrence: the split must not depend on the digest key.
    fn split_by_subject(original: &OriginalData, seed: u64) -> Self {
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
        let few = (order.len() as f64 * HOLDOUT_SHARE).round() as usize;
        let mut out = vec![false; order.len()];
        order.into_iter().take(few).for_each(|person| out[person] = true);
        Self { held_out: numbers.into_iter().map(|person| out[person]).collect() }
    }
}

/// Trains models of a released `target` with the attributes of `is_feature`; deterministic for a `seed`.
pub fn learn_target(
    original: &OriginalData,
    facts: &[AttributeFacts],
    groups: &[ReleasedGroup],
    target: &LearningTarget,
    is_feature: impl Fn(usize) -> bool,
    seed: u64,
) -> Option<LearningScores> {
    let with_target = |group: &&ReleasedGroup| target.attributes.iter().any(|a| group.attributes.contains(a));
    let own_groups: Vec<&ReleasedGroup> = groups.iter().filter(with_target).collect();
    if own_groups.is_empty() {
        return None;
    }
    let split = HoldoutSplit::split_by_subject(original, seed);
    let classes = target.classes(original, facts);
    let predict = |groups: &mut dyn Iterator<Item = &ReleasedGroup>| -> Vec<usize> {
        // Use an attribute of several groups once.
        let mut met: BTreeSet<usize> = target.attributes.iter().copied().collect();
        groups.flat_map(|group| group.attributes.clone()).filter(|a| is_feature(*a) && met.insert(*a)).collect()
    };
    let (own, every) = (predict(&mut own_groups.iter().copied()), predict(&mut groups.iter()));
    let mut dice = ChaCha8Rng::seed_from_u64(seed);
    let mut drawn = |held_out: bool| {
        let wanted =
            |row: &usize| split.held_out[*row] == held_out && classes.class_of_record(original, *row).is_some();
        let mut rows: Vec<usize> = (0..original.rows()).filter(wanted).collect();
        rows.shuffle(&mut dice);
        rows.truncate(MAX_MODEL_ROWS);
        rows
    };
    let (tested, trained) = (drawn(true), drawn(false));
    let records = LearningRecords { original, facts, classes: &classes, tested, trained };
    // A line without features would only change its class's share.
    let has_feature = |group: &&&ReleasedGroup| own.iter().any(|a| group.attributes.contains(a));
    let teaching: Vec<&ReleasedGroup> = own_groups.iter().filter(has_feature).copied().collect();
    let lines = training_lines(&teaching, &split, &mut dice);
    let (whole, before) = (records.fit_records(&every), records.fit_records(&own));
    let after = records.fit_lines(&own, lines.into_iter());
    let truth = records.true_classes();
    let most = (0..classes.number() as u32).map(|class| truth.iter().filter(|t| **t == class).count()).max();
    let name = |a: &usize| original.schema.attributes[*a].name.clone();
    Some(LearningScores {
        target: target.name().to_owned(),
        group: own_groups.iter().map(|group| group.name.as_str()).collect::<Vec<_>>().join(", "),
        features: own.iter().map(name).collect(),
        classes_are: classes.class_kind(),
        classes: classes.number(),
        tested: records.tested.len() as u64,
        split_by: if original.schema.subject.is_some() { "people" } else { "records" },
        leaks: own_groups.iter().any(|group| group.origin.is_none()),
        majority: most.unwrap_or(0) as f64 / truth.len().max(1) as f64,
        whole: records.test_scores(&whole),
        before: records.test_scores(&before),
        after: records.test_scores(&after),
        coefficients: learned_weights::weights_of_attributes(&records, &every, &own, [&whole, &before, &after]),
    })
}

/// Without lines of test subjects, if known.
fn training_lines<'a>(
    groups: &[&'a ReleasedGroup],
    split: &HoldoutSplit,
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
