//! Quartile attack on levels: a stopped member's carried value makes a quartile repeat.

use super::panel::{Panel, PublishedSetMean};
use crate::attack::trials::{AttackTrials, AttackYield};
use std::collections::BTreeMap;

/// Silent buckets before a carried value counts as constant, and minimum later rows.
const STABLE_AFTER_BUCKETS: u32 = 7;
const LEAST_ROWS: usize = 8;
/// Tolerance relative to the deviation of levels; at least half a rounding step.
const LEVEL_TOLERANCE: f64 = 0.1;

/// Guesses a stopped member's level as the most repeated quartile, minus its neighbors' counts.
pub fn run(panel: &Panel) -> AttackYield {
    let mut trials = AttackTrials::default();
    for channel in &panel.channels {
        let levels: Vec<Option<f64>> = (0..panel.people as u32).map(|person| channel.level(person)).collect();
        let known: Vec<f64> = levels.iter().flatten().copied().collect();
        let mean = known.iter().sum::<f64>() / known.len().max(1) as f64;
        let variance = known.iter().map(|level| (level - mean).powi(2)).sum::<f64>() / known.len().max(1) as f64;
        let mut streams: BTreeMap<u32, Vec<&PublishedSetMean>> = BTreeMap::new();
        for row in &channel.rows {
            streams.entry(row.stream).or_default().push(row);
        }
        for rows in streams.values() {
            let members = panel.members(rows[0]);
            for &person in members {
                let Some(&(last, _)) = channel.values[person as usize].last() else { continue };
                let is_later = |row: &&&PublishedSetMean| row.bucket > last.saturating_add(STABLE_AFTER_BUCKETS);
                let mut steps: Vec<f64> = rows.iter().filter(is_later).map(|row| row.step).collect();
                let step = median_step(&mut steps);
                let tolerance = (LEVEL_TOLERANCE * variance.sqrt()).max(step / 2.0);
                let later: Vec<[f64; 3]> = rows.iter().filter(is_later).filter_map(|row| row.quartiles).collect();
                let (Some(truth), Some(guess)) = (levels[person as usize], most_repeated(&later, step)) else {
                    continue;
                };
                let is_hit = |level: f64| f64::from(u8::from((level - guess).abs() <= tolerance));
                let others: Vec<f64> = members
                    .iter()
                    .filter(|other| **other != person)
                    .filter_map(|other| levels[*other as usize])
                    .collect();
                let chance = others.iter().map(|level| is_hit(*level)).sum::<f64>() / others.len().max(1) as f64;
                trials.add_to_group(&channel.name, is_hit(truth), chance);
            }
        }
    }
    let given = "the level of people who stopped sending".to_owned();
    trials.into_yield("series: quartiles", given, None).measured_only()
}

fn median_step(steps: &mut [f64]) -> f64 {
    steps.sort_by(f64::total_cmp);
    steps.get(steps.len() / 2).copied().unwrap_or(0.0)
}

fn most_repeated(quartiles: &[[f64; 3]], step: f64) -> Option<f64> {
    if quartiles.len() < LEAST_ROWS {
        return None;
    }
    let unit = if step > 0.0 { step } else { 1e-6 };
    let mut counts: BTreeMap<i64, f64> = BTreeMap::new();
    for value in quartiles.iter().flatten() {
        *counts.entry((value / unit).round() as i64).or_default() += 1.0;
    }
    let count = |at: i64| counts.get(&at).copied().unwrap_or(0.0);
    let excess = |at: i64| count(at) - f64::midpoint(count(at - 1), count(at + 1));
    let best = counts.keys().copied().max_by(|a, b| excess(*a).total_cmp(&excess(*b)))?;
    Some(best as f64 * unit)
}
