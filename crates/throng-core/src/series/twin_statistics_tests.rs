//! Reference statistics.

use super::WIDTHS;
use crate::series::CohortTerms;
use std::collections::BTreeMap;

/// Finest intervals that all hold a crowd, at least two.
pub(super) fn reference_shares(values: &[(f64, bool)], (low, high): (f64, f64), crowd: usize) -> Vec<(String, f64)> {
    for width in WIDTHS.map(i64::from) {
        let mut people: BTreeMap<i64, usize> = BTreeMap::new();
        for (value, is_present) in values {
            // Carried values must not cross a boundary by floating-point error.
            let value = if *is_present { *value } else { format!("{value:.11e}").parse().unwrap_or(*value) };
            let start = (value / width as f64).floor() as i64 * width;
            let last = high as i64 - (high as i64 - 1).rem_euclid(width) - 1;
            *people.entry(start.min(last)).or_default() += 1;
        }
        if people.len() > 1 && people.values().all(|people| *people >= crowd) {
            let label = |start: i64| {
                let end = if start + width >= high as i64 { high as i64 } else { start + width - 1 };
                let start = start.max(low as i64);
                if start == end { start.to_string() } else { format!("{start}-{end}") }
            };
            let share = |people: usize| people as f64 / values.len() as f64;
            return people.into_iter().map(|(start, people)| (label(start), share(people))).collect();
        }
    }
    Vec::new()
}

pub(super) fn reference_step(target: f64) -> Option<f64> {
    if target.is_nan() || target <= 0.0 {
        return None;
    }
    let candidates = (-12..12).flat_map(|i| [1.0, 2.0, 5.0].map(|digit| format!("{digit}e{i}")));
    let steps = candidates.filter_map(|text| text.parse::<f64>().ok());
    steps
        .filter(|step| *step <= target * (1.0 + 1e-12))
        .fold(None, |largest, step| Some(f64::max(step, largest.unwrap_or(0.0))))
}

/// A majority has one ratio; the others are no crowd or dominated.
pub(super) fn is_small_rest(one: &[f64], other: &[f64], cohorts: &CohortTerms) -> bool {
    let is_same = |a: f64, b: f64, error: f64| (a - b).abs() <= error * a.abs().max(b.abs());
    let ratios: Vec<f64> = one.iter().zip(other).map(|(a, b)| a / b).filter(|r| r.is_finite() && *r != 0.0).collect();
    let sharing = |ratio: f64| ratios.iter().filter(|other| is_same(ratio, **other, 1e-9)).count();
    let Some(most) = ratios.iter().map(|ratio| sharing(*ratio)).max().filter(|most| *most > 1) else { return false };
    let ratio = ratios.iter().copied().filter(|ratio| sharing(*ratio) == most).fold(f64::INFINITY, f64::min);
    let rest = |(a, b): (&f64, &f64)| if is_same(*a, ratio * b, 1e-6) { 0.0 } else { (a - ratio * b).abs() };
    let mut rests: Vec<f64> = one.iter().zip(other).map(rest).collect();
    rests.sort_by(|a, b| b.total_cmp(a));
    let different = rests.iter().filter(|rest| **rest > 0.0).count();
    let shielding = rests.get(1 + usize::max(cohorts.colluders, 1)..).unwrap_or(&[]);
    let dominates = shielding.iter().sum::<f64>() < rests[0] / 10.0 || 2.0 * rests[0] > rests.iter().sum::<f64>();
    different > 0 && 2 * different < rests.len() && (different < cohorts.crowd || dominates)
}

pub(super) fn is_dominated(values: &[f64], (low, high): (f64, f64), colluders: usize) -> bool {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let median = f64::midpoint(sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2]);
    [low, high, median].iter().any(|point| {
        let mut sizes: Vec<f64> = values.iter().map(|value| (value - point).abs()).collect();
        sizes.sort_by(|a, b| b.total_cmp(a));
        let shielding = sizes.get(1 + usize::max(colluders, 1)..).unwrap_or(&[]);
        shielding.iter().sum::<f64>() < sizes[0] / 10.0 || 2.0 * sizes[0] > sizes.iter().sum::<f64>()
    })
}

/// Mean of the crowd nearest in rank, and of ties.
pub(super) fn reference_quantile(values: &[f64], share: f64, crowd: usize) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = share * (values.len() - 1) as f64;
    let mut near: Vec<(f64, f64)> = sorted.iter().enumerate().map(|(i, x)| ((i as f64 - at).abs(), *x)).collect();
    near.sort_by(|a, b| a.0.total_cmp(&b.0));
    let farthest = near[crowd - 1].0;
    near.retain(|(distance, _)| *distance <= farthest);
    near.iter().map(|(_, value)| value).sum::<f64>() / near.len() as f64
}
