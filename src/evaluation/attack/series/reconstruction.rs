//! Values behind the rows of one bucket: by a linear programme over all people, by whole numbers, and by dominance.

use super::panel::{Channel, Panel, Sum};
use crate::evaluation::attack::trials::{Trials, Yield};
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeMap;

/// Buckets of a channel that are tried.
const MOST_BUCKETS: usize = 40;
const SWEEPS: usize = 300;
/// A value is hit within this share of the standard deviation of its bucket.
const HIT: f64 = 0.1;
/// A contributor learns the largest value when the upper bound is at most this much above it (the p % rule).
const DOMINANCE: f64 = 0.1;
/// Values are multiples of a power of ten down to this exponent, or of none.
const FINEST_GRID: i32 = -3;

/// All attacks on single buckets.
pub fn run(panel: &Panel, dice: &mut ChaCha8Rng) -> Vec<Yield> {
    let (mut values, mut sums, mut largest) = (Trials::default(), Trials::default(), Trials::default());
    for channel in &panel.channels {
        let mut buckets: BTreeMap<u32, Vec<&Sum>> = BTreeMap::new();
        for row in channel.rows.iter().filter(|row| !panel.members(row).is_empty()) {
            buckets.entry(row.bucket).or_default().push(row);
        }
        let mut buckets: Vec<(u32, Vec<&Sum>)> = buckets.into_iter().collect();
        buckets.shuffle(dice);
        let grid = grid(channel);
        for (bucket, rows) in buckets.into_iter().take(MOST_BUCKETS) {
            reconstruct(panel, channel, bucket, &rows, &mut values);
            for row in rows {
                tell_sum(panel, channel, row, grid, &mut sums);
                tell_largest(panel, channel, row, &mut largest);
            }
        }
    }
    vec![
        values.sum_up("series: linear programme", "all rows of a bucket".to_owned(), None).measured_only(),
        sums.sum_up("series: exact sum", "values are multiples of a known unit".to_owned(), None).measured_only(),
        largest.sum_up("series: largest value", "the second largest contributor".to_owned(), Some(0.0)).of_each_trial(),
    ]
}

/// Finds values within their range that give all rows up to rounding, from the mean of everybody by projections in turn; chance is that mean for everybody.
fn reconstruct(panel: &Panel, channel: &Channel, bucket: u32, rows: &[&Sum], trials: &mut Trials) {
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
    let is_near = |guess: f64, truth: f64| f64::from(u8::from((guess - truth).abs() <= HIT * variance.sqrt()));
    for (at, truth) in truths {
        trials.add_to(&channel.name, is_near(guess[at], truth), is_near(center, truth));
    }
}

/// The power of ten of which all values are multiples, from 1 downwards; none where they are not.
fn grid(channel: &Channel) -> Option<f64> {
    (FINEST_GRID..=0).rev().map(|exponent| 10_f64.powi(exponent)).find(|unit| {
        let is_whole = |value: f64| ((value / unit).round() * unit - value).abs() <= 1e-9 * value.abs().max(1.0);
        channel.values.iter().flatten().all(|(_, value)| is_whole(*value))
    })
}

/// How probably the exact sum is told: one over the sums that the rounded mean allows. Carried values are no multiples of a unit, so
/// a row with one is safe.
fn tell_sum(panel: &Panel, channel: &Channel, row: &Sum, grid: Option<f64>, trials: &mut Trials) {
    let members = panel.members(row);
    let is_present = |person: &u32| channel.value(*person, row.bucket).is_some();
    let right = match grid {
        Some(unit) if members.iter().all(is_present) => {
            let width = row.step * members.len() as f64 / unit;
            1.0 / (width.floor() + 1.0)
        }
        _ => 0.0,
    };
    trials.add_to(&channel.name, right, 0.0);
}

/// Whether the second largest contributor, who knows that nobody's value is below 0, bounds the largest closely from above.
fn tell_largest(panel: &Panel, channel: &Channel, row: &Sum, trials: &mut Trials) {
    let members = panel.members(row);
    let mut values: Vec<f64> = members.iter().map(|person| panel.contribution(channel, *person, row.bucket)).collect();
    values.sort_by(|a, b| b.total_cmp(a));
    let [largest, second, rest @ ..] = values.as_slice() else { return };
    if rest.last().is_none_or(|least| *least < 0.0) || *largest <= 0.0 {
        return;
    }
    let bound = members.len() as f64 * (row.mean + row.step / 2.0) - second;
    let is_close = bound < largest * (1.0 + DOMINANCE) * (1.0 - 1e-9);
    trials.add_to(&channel.name, f64::from(u8::from(is_close)), 0.0);
}
