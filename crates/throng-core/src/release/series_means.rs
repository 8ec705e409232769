//! Recount of means, deviations and quartiles (docs/internals/methods.md §13).

use crate::series::{CohortTerms, MeanStatistic, SeriesRow};

/// Also refuses dominant values.
pub(super) fn verify_mean(
    shown: &MeanStatistic,
    values: &[f64],
    range: (f64, f64),
    cohorts: &CohortTerms,
) -> Result<(), &'static str> {
    let crowd = cohorts.crowd;
    let n = values.len() as f64;
    let center = values.iter().sum::<f64>() / n;
    let deviation = (values.iter().map(|x| (x - center) * (x - center)).sum::<f64>() / (n - 1.0)).sqrt();
    let largest = values.iter().map(|value| value.abs()).fold(0.0, f64::max);
    if shown.sd.is_nan() || shown.sd <= 0.0 || deviation < largest * 1e-13 {
        return Err("all members have the same value");
    }
    let grid = RoundingGrid::of(shown.sd, deviation, n)?;
    if !grid.is_rounded(shown.mean, center) {
        return Err("a mean or a deviation does not match the contributions");
    }
    if is_any_dominant(values, range, cohorts.colluders) {
        return Err("one or two members dominate a sum");
    }
    if shown.quartiles.is_some() != (values.len() >= 2 * crowd) {
        return Err("quartiles of a small set are published, or those of a large one are missing");
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    for (share, shown) in [0.25, 0.5, 0.75].into_iter().zip(shown.quartiles.into_iter().flatten()) {
        let members = nearest(&sorted, share * (n - 1.0), crowd);
        if !grid.is_rounded(shown, members.iter().sum::<f64>() / members.len() as f64) {
            return Err("a quartile does not match the contributions");
        }
    }
    Ok(())
}

struct RoundingGrid {
    step: f64,
}

impl RoundingGrid {
    /// The shown deviation must be on the grid of the exact one.
    fn of(shown: f64, exact: f64, n: f64) -> Result<Self, &'static str> {
        // The proposal sums in another order.
        let is_rounded = [1.0 - 1e-9, 1.0 + 1e-9].into_iter().any(|error| {
            let step = round_number_below(exact * error / (4.0 * n).sqrt());
            Self { step }.is_rounded(shown, exact)
        });
        let step = round_number_below(shown / (4.0 * n).sqrt());
        if is_rounded { Ok(Self { step }) } else { Err("a mean or a deviation does not match the contributions") }
    }

    fn is_rounded(&self, shown: f64, exact: f64) -> bool {
        (shown - exact).abs() <= self.step * 0.500_001 + exact.abs() * 1e-12 && is_multiple(shown, self.step)
    }
}

/// Rounds down to 1, 2 or 5 times a power of ten.
fn round_number_below(number: f64) -> f64 {
    let power = 10f64.powf(number.log10().floor() - 1.0);
    let fits = |digit: &&f64| **digit * power <= number * (1.0 + 1e-9);
    [100.0, 50.0, 20.0, 10.0, 5.0].iter().find(fits).map_or(f64::NAN, |digit| digit * power)
}

/// Distances are from a range end or the median; the rest excludes colluders.
pub(super) fn is_any_dominant(values: &[f64], (low, high): (f64, f64), colluders: usize) -> bool {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let has_range = low > f64::NEG_INFINITY && high < f64::INFINITY;
    let median = f64::midpoint(sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2]);
    let points = if has_range { vec![low, high, median] } else { vec![0.0, median] };
    let error = 1e-13 * sorted.iter().map(|value| value.abs()).fold(0.0, f64::max);
    points.iter().any(|point| {
        let mut sizes: Vec<f64> = sorted.iter().map(|value| (value - point).abs()).collect();
        sizes.sort_by(f64::total_cmp);
        let total: f64 = sizes.iter().sum();
        let largest = sizes[sizes.len() - 1];
        let others = sizes.len().saturating_sub(1 + colluders.max(1));
        let rest: f64 = sizes[..others].iter().sum();
        rest < largest / 10.0 * (1.0 - 1e-9) - error || largest > total / 2.0 * (1.0 + 1e-9) + error
    })
}

fn nearest(sorted: &[f64], position: f64, crowd: usize) -> &[f64] {
    let (mut reach, last) = (0.0, (sorted.len() - 1) as f64);
    loop {
        let (low, high) = ((position - reach).ceil().max(0.0), (position + reach).floor().min(last));
        if high - low + 1.0 >= (crowd as f64).min(last + 1.0) {
            return &sorted[low as usize..=high as usize];
        }
        reach += 0.25;
    }
}

pub(super) fn verify_population(
    row: &SeriesRow,
    shown: MeanStatistic,
    rows: &[&SeriesRow],
) -> Result<(), &'static str> {
    let is_part = |part: &SeriesRow| {
        !part.sets.is_empty() && part.signal == row.signal && (row.stratum.is_none() || part.stratum == row.stratum)
    };
    let parts: Vec<(&SeriesRow, MeanStatistic)> = rows
        .iter()
        .filter(|part| is_part(part))
        .filter_map(|part| part.mean_statistic().map(|of| (*part, of)))
        .collect();
    let people: f64 = parts.iter().map(|(part, _)| part.n as f64).sum();
    if parts.is_empty() || shown.quartiles.is_some() || (people - row.n as f64).abs() > 0.5 {
        return Err("a row of several cohorts does not cover the people of their rows");
    }
    let present = |part: &SeriesRow| f64::max(1.0 - part.filled, 0.1) * part.n as f64;
    let total: f64 = parts.iter().map(|(part, _)| present(part)).sum();
    let center = parts.iter().map(|(part, of)| present(part) / total * of.mean).sum::<f64>();
    let square = |of: &MeanStatistic| of.sd * of.sd + (of.mean - center) * (of.mean - center);
    let deviation = parts.iter().map(|(part, of)| present(part) / total * square(of)).sum::<f64>().sqrt();
    let missing = parts.iter().map(|(part, _)| part.filled * part.n as f64).sum::<f64>() / people;
    let filled = (row.filled - missing).abs() <= 0.050_001;
    match RoundingGrid::of(shown.sd, deviation, people) {
        Ok(grid) if grid.is_rounded(shown.mean, center) && filled => Ok(()),
        _ => Err("a row of several cohorts does not follow from their rows"),
    }
}

pub(super) fn is_multiple(value: f64, step: f64) -> bool {
    let multiple = value / step;
    (multiple - multiple.round()).abs() <= 1e-6 * multiple.abs().max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CROWD: usize = 5;

    fn cohorts() -> CohortTerms {
        CohortTerms {
            crowd: CROWD,
            colluders: 0,
            size: 2 * CROWD,
            warm_up_days: 0,
            idle_ms: 1,
            strata: Vec::new(),
            strata_names: Vec::new(),
            time: 0,
            max_histories: 1,
            is_batch: true,
        }
    }

    fn verified(values: &[f64], range: (f64, f64), mean: f64, sd: f64) -> Result<(), &'static str> {
        verify_mean(&MeanStatistic { mean, sd, quartiles: None }, values, range, &cohorts())
    }

    #[test]
    fn outlier_is_dominant_at_every_level() {
        let refused = Err("one or two members dominate a sum");
        for level in [0.0, 1_000.0, -1_000.0] {
            let range = (level - 100.0, level + 100.0);
            let even = [4.0, 5.0, 7.0, 8.0, 6.0].map(|value| value + level);
            assert_eq!(verified(&even, range, 6.0 + level, 1.6), Ok(()), "{level}");
            let uneven = [4.0, 5.0, 7.0, 8.0, 96.0].map(|value| value + level);
            for range in [range, (f64::NEG_INFINITY, f64::INFINITY)] {
                assert_eq!(verified(&uneven, range, 25.0 + level, 40.0), refused, "{level}");
            }
        }
    }

    #[test]
    fn dominance_is_measured_from_both_range_ends() {
        let refused = Err("one or two members dominate a sum");
        let low = [10.0, 4.9, 4.9, 0.0, 0.0];
        let high = low.map(|value| 100.0 - value);
        assert_eq!(verified(&low, (0.0, 100.0), 4.0, 4.0), refused);
        assert_eq!(verified(&high, (0.0, 100.0), 96.0, 4.0), refused);
        assert_eq!(verified(&high, (0.0, 200.0), 96.0, 4.0), Ok(()));
    }

    #[test]
    fn mean_off_rounding_step_is_refused() {
        let values = [40.0, 50.0, 70.0, 80.0, 60.0];
        assert_eq!(verified(&values, (0.0, 100.0), 60.0, 16.0), Ok(()), "15.81 by steps of 2");
        for (mean, sd) in [(60.0, 15.8), (60.0, 15.0), (60.2, 16.0), (61.0, 16.0), (60.0, 18.0)] {
            assert!(verified(&values, (0.0, 100.0), mean, sd).is_err(), "{mean} {sd}");
        }
        assert!(verified(&[60.0; 5], (0.0, 100.0), 60.0, 1.0).is_err());
    }
}
