//! Reconstruction of values in one bucket: linear program, exact sums and dominance.

use super::panel::{Panel, PublishedSetMean, SignalChannel};
use crate::attack::trials::{AttackTrials, AttackYield};
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeMap;

const MOST_BUCKETS: usize = 40;
const SWEEPS: usize = 300;
/// Tolerance relative to the deviation of the bucket.
const VALUE_TOLERANCE: f64 = 0.1;
/// A bound within this share discloses the largest value (p % rule).
const DOMINANCE_SHARE: f64 = 0.1;
const FINEST_GRID: i32 = -3;

/// Runs all single-bucket attacks.
pub fn run(panel: &Panel, dice: &mut ChaCha8Rng) -> Vec<AttackYield> {
    let (mut values, mut sums, mut largest) =
        (AttackTrials::default(), AttackTrials::default(), AttackTrials::default());
    for channel in &panel.channels {
        let mut buckets: BTreeMap<u32, Vec<&PublishedSetMean>> = BTreeMap::new();
        for row in channel.rows.iter().filter(|row| !panel.members(row).is_empty()) {
            buckets.entry(row.bucket).or_default().push(row);
        }
        let mut buckets: Vec<(u32, Vec<&PublishedSetMean>)> = buckets.into_iter().collect();
        buckets.shuffle(dice);
        let grid = value_unit(channel);
        for (bucket, rows) in buckets.into_iter().take(MOST_BUCKETS) {
            reconstruct(panel, channel, bucket, &rows, &mut values);
            for row in rows {
                try_exact_sum(panel, channel, row, grid, &mut sums);
                try_largest_value(panel, channel, row, &mut largest);
            }
        }
    }
    vec![
        values.into_yield("series: linear programme", "all rows of a bucket".to_owned(), None).measured_only(),
        sums.into_yield("series: exact sum", "values are multiples of a known unit".to_owned(), None).measured_only(),
        largest
            .into_yield("series: largest value", "the second largest contributor".to_owned(), Some(0.0))
            .judge_each_trial(),
    ]
}

/// Alternating projections from the overall mean, the chance guess.
fn reconstruct(
    panel: &Panel,
    channel: &SignalChannel,
    bucket: u32,
    rows: &[&PublishedSetMean],
    trials: &mut AttackTrials,
) {
    let mut people: Vec<u32> = rows.iter().flat_map(|row| panel.members(row)).copied().collect();
    people.sort_unstable();
    people.dedup();
    let at = |person: &u32| people.binary_search(person).unwrap_or(0);
    let sets: Vec<Vec<usize>> = rows.iter().map(|row| panel.members(row).iter().map(at).collect()).collect();
    let total: f64 = sets.iter().map(|set| set.len() as f64).sum();
    let center = rows.iter().zip(&sets).map(|(row, set)| row.mean * set.len() as f64).sum::<f64>() / total;
    let mut guess = vec![center; people.len()];
    for _ in 0..SWEEPS {
        for (row, set) in rows.iter().zip(&sets) {
            let mean = set.iter().map(|at| guess[*at]).sum::<f64>() / set.len() as f64;
            let (low, high) = (row.mean - row.step / 2.0, row.mean + row.step / 2.0);
            let move_by = mean.clamp(low, high) - mean;
            set.iter().for_each(|at| guess[*at] += move_by);
        }
        guess.iter_mut().for_each(|value| *value = value.max(channel.range.0).min(channel.range.1));
    }
    let truths: Vec<(usize, f64)> =
        (0..people.len()).filter_map(|at| Some((at, channel.value(people[at], bucket)?))).collect();
    let mean = truths.iter().map(|(_, truth)| truth).sum::<f64>() / truths.len().max(1) as f64;
    let variance = truths.iter().map(|(_, truth)| (truth - mean).powi(2)).sum::<f64>() / truths.len().max(1) as f64;
    let is_near =
        |guess: f64, truth: f64| f64::from(u8::from((guess - truth).abs() <= VALUE_TOLERANCE * variance.sqrt()));
    for (at, truth) in truths {
        trials.add_to_group(&channel.name, is_near(guess[at], truth), is_near(center, truth));
    }
}

/// Largest power of ten, at most 1, that divides all values.
fn value_unit(channel: &SignalChannel) -> Option<f64> {
    (FINEST_GRID..=0).rev().map(|exponent| 10_f64.powi(exponent)).find(|unit| {
        let is_whole = |value: f64| ((value / unit).round() * unit - value).abs() <= 1e-9 * value.abs().max(1.0);
        channel.values.iter().flatten().all(|(_, value)| is_whole(*value))
    })
}

/// One over the number of sums that the rounded mean allows; carried values have no unit.
fn try_exact_sum(
    panel: &Panel,
    channel: &SignalChannel,
    row: &PublishedSetMean,
    grid: Option<f64>,
    trials: &mut AttackTrials,
) {
    let members = panel.members(row);
    let is_present = |person: &u32| channel.value(*person, row.bucket).is_some();
    let right = match grid {
        Some(unit) if members.iter().all(is_present) => {
            let width = row.step * members.len() as f64 / unit;
            1.0 / (width.floor() + 1.0)
        }
        _ => 0.0,
    };
    trials.add_to_group(&channel.name, right, 0.0);
}

/// Hits if the second largest contributor bounds the largest closely.
fn try_largest_value(panel: &Panel, channel: &SignalChannel, row: &PublishedSetMean, trials: &mut AttackTrials) {
    let members = panel.members(row);
    let mut values: Vec<f64> = members.iter().map(|person| panel.contribution(channel, *person, row.bucket)).collect();
    values.sort_by(|a, b| b.total_cmp(a));
    let [largest, second, rest @ ..] = values.as_slice() else { return };
    if rest.last().is_none_or(|least| *least < 0.0) || *largest <= 0.0 {
        return;
    }
    let bound = members.len() as f64 * (row.mean + row.step / 2.0) - second;
    let is_close = bound < largest * (1.0 + DOMINANCE_SHARE) * (1.0 - 1e-9);
    trials.add_to_group(&channel.name, f64::from(u8::from(is_close)), 0.0);
}
