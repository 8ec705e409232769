//! Recount of noisy rows.

use super::series_rows::{PositionedRow, SeriesCheckInput};
use super::violation_log::ViolationLog;
use std::collections::BTreeMap;
use throng_core::series::{DAY_MS, DELTA, RowStatistic, SeriesTerms};

/// Probability of a larger deviation: 4 · 10⁻³³ per row.
const MAX_NOISE_DEVIATIONS: f64 = 12.0;

/// For a count, and for a sum in units of the range.
fn noise_deviations(epsilon: f64, series: &SeriesTerms) -> (f64, f64) {
    // Root of ρ + 2 √(ρ L) = ε.
    let log = -DELTA.ln();
    let week = 2.0 * log + epsilon - 2.0 * (log * (log + epsilon)).sqrt();
    let rho = week * series.every_ms as f64 / (7.0 * DAY_MS as f64 * series.signals.len() as f64);
    ((2.0 / (3.0 * rho)).sqrt() + 0.002, (0.5 / rho).sqrt() + 1e-6)
}

pub(super) fn check_noise(basis: &SeriesCheckInput<'_>, placed: &[PositionedRow<'_>], findings: &mut ViolationLog) {
    for at in placed {
        let (row, series) = (at.row, &basis.terms.series[at.row.series]);
        let (Some(noise), RowStatistic::Noisy(noisy)) = (series.noise, &row.statistic) else { continue };
        let (count_deviation, sum_deviation) = noise_deviations(noise.epsilon, series);
        let (low, high) = series.signals[row.signal].range;
        let n = row.n as f64;
        if row.cohort.is_some() || row.stratum.as_ref().is_some_and(|labels| !labels.is_empty()) {
            basis.add_row_violation(findings, "a row with noise covers all people", at, None);
        }
        if n + 0.01 < basis.terms.cohorts.crowd as f64 + 3.0 * (count_deviation - 0.002) {
            basis.add_row_violation(
                findings,
                "a noisy count is at least the required number plus three deviations",
                at,
                None,
            );
        }
        if !(low..=high).contains(&noisy.mean) {
            basis.add_row_violation(findings, "a mean is in the range of its signal", at, None);
        }
        let Some((_, contributions)) = basis.people else { continue };
        let people = contributions.get(&(row.series, row.bucket)).into_iter().flat_map(BTreeMap::values);
        let values: Vec<f64> = people.filter_map(|of| of.values[row.signal]).collect();
        if (n - values.len() as f64).abs() > MAX_NOISE_DEVIATIONS * count_deviation {
            basis.add_row_violation(
                findings,
                "a noisy count is within 12 deviations of the number of people",
                at,
                None,
            );
        }
        // Centered, in units of the range.
        let sum: f64 = values.iter().map(|value| (value - low) / (high - low) - 0.5).sum();
        let reach = MAX_NOISE_DEVIATIONS * sum_deviation + values.len() as f64 / 131_072.0;
        let mean = |sum: f64| low + (high - low) * (0.5 + sum / n).clamp(0.0, 1.0);
        let slack = (high - low) / 65_536.0;
        if noisy.mean < mean(sum - reach) - slack || noisy.mean > mean(sum + reach) + slack {
            basis.add_row_violation(
                findings,
                "a mean is within 12 noise deviations of that of the contributions",
                at,
                None,
            );
        }
    }
}
