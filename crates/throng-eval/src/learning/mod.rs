//! Measures the prediction of an attribute from a release. Models are trained on the original records and on the
//! released lines, and tested on other records (\[POD] §6.4, Tables 6.4 and 6.5; docs/internals/methods.md §14.5).
//!
//! An attribute is predicted by the attributes released with it in one group. A third model, of all attributes of the
//! original, shows the loss from the division into groups alone.
//!
//! | file | content |
//! |---|---|
//! | `target` | one column or several, and their classes |
//! | `features` | values and cells as sparse numbers |
//! | `model` | logistic regression |
//! | `fitting` | models of records and of lines, tested on the same records |
//! | `test_scores` | accuracy, balanced accuracy, AUC, false positives and negatives |
//! | `coefficients` | weight of each attribute |

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

/// Share of the subjects in the test set.
const HOLDOUT_SHARE: f64 = 0.3;

/// Results for one target.
#[derive(Clone, Debug, Serialize)]
pub struct LearningScores {
    /// Attribute, or target expression as given.
    pub target: String,
    /// Groups that release the target, separated by commas.
    pub group: String,
    /// Other attributes of those groups, used as predictors.
    pub features: Vec<String>,
    /// Kind of the classes: `values`, `above the median` or `has the value or not`.
    pub classes_are: &'static str,
    /// Number of classes.
    pub classes: usize,
    /// Number of test records.
    pub tested: u64,
    /// Unit of the split into training and test set: `subjects` or `records`.
    pub split_by: &'static str,
    /// Without a lineage, lines of test subjects cannot be identified and are used for training too. The scores after
    /// the release are then too high.
    pub leaks: bool,
    /// Accuracy of always predicting the most frequent class.
    pub majority: f64,
    /// Scores of the model of the original with all released attributes.
    pub whole: Option<PredictionScores>,
    /// Scores of the model of the original with the attributes of the lines.
    pub before: Option<PredictionScores>,
    /// Scores of the model of the lines. None if the lines show fewer than two classes, or no other attribute than
    /// the target.
    pub after: Option<PredictionScores>,
    /// Weight of each attribute in the three models.
    pub coefficients: Vec<LearnedWeight>,
}

/// Split into training and test set by subject (or record).
struct HoldoutSplit {
    held_out: Vec<bool>,
}

impl HoldoutSplit {
    /// Splits by subject. Subjects are numbered by first occurrence, so that the split does not depend on the key of
    /// the digests.
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

/// Trains models of `target` on the original and on the lines, with the attributes accepted by `is_feature`. None if
/// no group releases the target. Deterministic for a `seed`.
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
        // An attribute in several groups is used once.
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
    // A line without any feature would only change the share of its class.
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

/// Training lines in random order. Excludes lines of test subjects if the origin is known.
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
