//! Levels by quartiles: the carried value of a member who has stopped sending is constant, so a quartile that shows it repeats.

use super::panel::{Panel, Sum};
use crate::evaluation::attack::trials::{Trials, Yield};
use std::collections::BTreeMap;

/// Buckets without a value after which a carried value is taken as constant, and at least so many rows with quartiles after that.
const SETTLED: u32 = 7;
const LEAST_ROWS: usize = 8;
/// A level is hit within this share of the standard deviation of all levels, or half a rounding step where that is more.
const HIT: f64 = 0.1;

/// Guesses the level of each member who has stopped as the quartile that repeats most, less how often its neighbours do. Chance is the
/// same guess judged for the other members.
pub fn run(panel: &Panel) -> Yield {
    let mut trials = Trials::default();
    for channel in &panel.channels {
        let levels: Vec<Option<f64>> = (0..panel.people as u32).map(|person| channel.level(person)).collect();
        let known: Vec<f64> = levels.iter().flatten().copied().collect();
        let mean = known.iter().sum::<f64>() / known.len().max(1) as f64;
        let variance = known.iter().map(|level| (level - mean).powi(2)).sum::<f64>() / known.len().max(1) as f64;
        let mut streams: BTreeMap<u32, Vec<&Sum>> = BTreeMap::new();
        for row in &channel.rows {
            streams.entry(row.stream).or_default().push(row);
        }
        for rows in streams.values() {
            let members = panel.members(rows[0]);
            for &person in members {
                let Some(&(last, _)) = channel.values[person as usize].last() else { continue };
                let is_later = |row: &&&Sum| row.bucket > last.saturating_add(SETTLED);
                let mut steps: Vec<f64> = rows.iter().filter(is_later).map(|row| row.step).collect();
                let step = middle(&mut steps);
                let tolerance = (HIT * variance.sqrt()).max(step / 2.0);
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
                trials.add_to(&channel.name, is_hit(truth), chance);
            }
        }
    }
    let given = "the level of people who stopped sending".to_owned();
    trials.sum_up("series: quartiles", given, None).measured_only()
}

fn middle(steps: &mut [f64]) -> f64 {
    steps.sort_by(f64::total_cmp);
    steps.get(steps.len() / 2).copied().unwrap_or(0.0)
}

/// The value that stands out most from the two beside it; none of few rows.
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
