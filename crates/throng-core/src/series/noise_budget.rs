//! Noise budget, scale and grid (docs/internals/methods.md §13, Noise).
//!
//! All records of a subject in a week change each cell's count by at most 1 and its sum by at most [`GRID_STEPS`] (half
//! if the count changes). Source: Bun and Steinke 2016 (zCDP); Canonne, Kamath and Steinke 2020 (discrete Gaussian).

use super::statistics::{round_to_step, rounding_step};
use super::terms::{DAY_MS, NoiseTerms, SeriesTerms, window_start};

/// δ of each series with noise.
pub const DELTA: f64 = 1e-6;
/// Grid steps over a signal's range.
pub const GRID_STEPS: i64 = 1 << 16;
/// Resolution of deviations, in parts per unit.
pub const DEVIATION_PARTS: u64 = 1 << 10;
/// Margin of the smallest published count over the crowd, in deviations. Noise exceeds it with probability below
/// 7 · 10⁻¹⁶: all cells of a week, at most 10⁶, together stay below `ROW_DELTA`.
pub const COUNT_MARGIN_DEVIATIONS: f64 = 8.0;
/// Part of δ for the existence of rows; the rest is for their numbers.
pub const ROW_DELTA: f64 = 1e-8;
const WEEK_MS: i64 = 7 * DAY_MS;

/// Noise per bucket and signal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NoiseScale {
    /// ρ per subject and week.
    pub weekly_rho: f64,
    /// ρ per bucket and signal.
    pub cell_rho: f64,
    /// Deviation of counts, in parts, rounded up.
    pub count_parts: u64,
    /// Deviation of sums, in parts of a grid step, rounded up.
    pub sum_parts: u64,
}

/// Returns the zCDP ρ for (ε, δ − `ROW_DELTA`): the root of ε = ρ + 2 √(ρ ln(1/δ)).
#[must_use]
pub fn rho_of(epsilon: f64) -> f64 {
    let log = (1.0 / (DELTA - ROW_DELTA)).ln();
    (epsilon / ((log + epsilon).sqrt() + log.sqrt())).powi(2)
}

/// Converts ρ to ε with [`DELTA`] − `ROW_DELTA`.
#[must_use]
pub fn epsilon_of(rho: f64) -> f64 {
    rho + 2.0 * (rho * (1.0 / (DELTA - ROW_DELTA)).ln()).sqrt()
}

/// Checks if whole buckets fill a week from Monday.
#[must_use]
pub fn divides_week(every_ms: i64) -> bool {
    every_ms == WEEK_MS || every_ms > 0 && DAY_MS % every_ms == 0
}

pub(super) fn week_of(bucket: i64) -> i64 {
    window_start(bucket, WEEK_MS)
}

fn parts_of(deviation: f64) -> u64 {
    (deviation * (1.0 + 1e-9) * DEVIATION_PARTS as f64).ceil() as u64
}

impl NoiseTerms {
    /// Returns the noise of a series, with equal ρ for all cells of a week.
    ///
    /// A changed value costs all of it. A joining or leaving subject costs a quarter for the sum (half of the steps)
    /// and three quarters for the count.
    #[must_use]
    pub fn scale(&self, series: &SeriesTerms) -> NoiseScale {
        let weekly_rho = rho_of(self.epsilon);
        let cells = series.signals.len() as f64 * (WEEK_MS as f64 / series.every_ms as f64);
        let cell_rho = weekly_rho / cells;
        NoiseScale {
            weekly_rho,
            cell_rho,
            count_parts: parts_of((1.0 / (2.0 * 0.75 * cell_rho)).sqrt()),
            sum_parts: parts_of(GRID_STEPS as f64 / (2.0 * cell_rho).sqrt()),
        }
    }
}

impl NoiseScale {
    /// Deviation of counts.
    #[must_use]
    pub fn count_deviation(&self) -> f64 {
        self.count_parts as f64 / DEVIATION_PARTS as f64
    }

    /// Deviation of sums, in signal ranges.
    #[must_use]
    pub fn sum_deviation(&self) -> f64 {
        self.sum_parts as f64 / (DEVIATION_PARTS as i64 * GRID_STEPS) as f64
    }

    /// Smallest published noisy count.
    #[must_use]
    pub fn min_published_count(&self, crowd: usize) -> i64 {
        (crowd as f64 + COUNT_MARGIN_DEVIATIONS * self.count_deviation()).ceil() as i64
    }

    /// Standard error of a mean by noise.
    #[must_use]
    pub fn mean_error(&self, people: f64, mean: f64, (low, high): (f64, f64)) -> f64 {
        let offset = (mean - f64::midpoint(low, high)) / (high - low);
        (high - low) * self.sum_deviation().hypot(offset * self.count_deviation()) / people
    }
}

/// Grid position of a value, from −[`GRID_STEPS`]/2 to [`GRID_STEPS`]/2.
#[must_use]
pub fn to_grid(value: f64, (low, high): (f64, f64)) -> i64 {
    let share = ((value - low) / (high - low)).clamp(0.0, 1.0);
    (share * GRID_STEPS as f64).round() as i64 - GRID_STEPS / 2
}

/// Mean of a noisy sum and count > 0, clipped to the range, rounded below a grid step.
#[must_use]
pub fn noisy_mean(sum: i64, count: i64, (low, high): (f64, f64)) -> f64 {
    let share = 0.5 + sum as f64 / (count as f64 * GRID_STEPS as f64);
    let mean = low + (high - low) * share.clamp(0.0, 1.0);
    let step = rounding_step((high - low) / GRID_STEPS as f64, 1);
    step.map_or(mean, |step| round_to_step(mean, step)).clamp(low, high)
}

#[cfg(test)]
mod tests {
    use super::super::terms::SeriesSignal;
    use super::*;
    use proptest::prelude::*;

    fn series(every_ms: i64, signals: usize) -> SeriesTerms {
        let signal = SeriesSignal { attribute: 0, name: "s".into(), unit: None, range: (0.0, 6.0), intervals: None };
        SeriesTerms {
            name: "t".into(),
            every_ms,
            every: String::new(),
            cycle: None,
            signals: vec![signal; signals],
            lateness_ms: 0,
            pooled: false,
            min_values: 4,
            moments: None,
            noise: None,
        }
    }

    /// Ten daily signals, ε = 4, deviation of a sixth of the range.
    #[test]
    fn noise_matches_reference_ratios_at_three_sizes() {
        let scale = NoiseTerms { epsilon: 4.0 }.scale(&series(DAY_MS, 10));
        for (people, ratio) in [(100_000.0, 0.22), (10_000.0, 0.70), (71.0, 8.4)] {
            let found = scale.mean_error(people, 3.0, (0.0, 6.0)) / (1.0 / f64::sqrt(people));
            assert!((found / ratio - 1.0).abs() < 0.02, "{people} people: {found}");
        }
    }

    #[test]
    fn week_division_requires_whole_buckets() {
        let hour = DAY_MS / 24;
        for (every, fits) in [(DAY_MS, true), (hour, true), (8 * hour, true), (WEEK_MS, true), (7 * hour, false)] {
            assert_eq!(divides_week(every), fits, "{every}");
        }
        assert!(!divides_week(2 * WEEK_MS) && !divides_week(2 * DAY_MS) && !divides_week(0));
    }

    #[test]
    fn noisy_means_are_clipped_and_rounded_below_a_grid_step() {
        let range = (0.0, 40_000.0);
        assert_eq!(noisy_mean(0, 10, range), 20_000.0);
        assert_eq!(noisy_mean(-GRID_STEPS * 9, 10, range), 0.0);
        assert_eq!(noisy_mean(GRID_STEPS * 9, 10, range), 40_000.0);
        assert!((noisy_mean(GRID_STEPS, 10, range) - 24_000.0).abs() <= 0.1);
    }

    proptest! {
        #[test]
        fn epsilon_and_rho_conversions_are_inverse(epsilon in 0.01_f64..20.0) {
            prop_assert!((epsilon_of(rho_of(epsilon)) / epsilon - 1.0).abs() < 1e-12);
        }

        #[test]
        fn changed_week_costs_at_most_its_budget(epsilon in 0.01_f64..20.0, hours in 0_usize..5, signals in 1_usize..12) {
            let every = [DAY_MS / 24, DAY_MS / 4, DAY_MS / 2, DAY_MS, WEEK_MS][hours];
            let series = series(every, signals);
            let scale = NoiseTerms { epsilon }.scale(&series);
            let (count, sum) = (scale.count_deviation(), scale.sum_deviation() * GRID_STEPS as f64);
            let contributions = [None, Some(0.0), Some(2.0), Some(3.0), Some(6.0)];
            let exact = |value: Option<f64>| value.map_or((0, 0), |value| (1, to_grid(value, (0.0, 6.0))));
            let mut dearest = 0.0_f64;
            for before in contributions {
                for after in contributions {
                    let ((n, s), (m, t)) = (exact(before), exact(after));
                    let cost = (f64::from(n - m) / count).powi(2) + ((s - t) as f64 / sum).powi(2);
                    dearest = dearest.max(cost / 2.0);
                }
            }
            let week = dearest * signals as f64 * (WEEK_MS / every) as f64;
            prop_assert!(week <= scale.weekly_rho, "{week} of {}", scale.weekly_rho);
            prop_assert!(week >= 0.99 * scale.weekly_rho, "noise is wasted: {week} of {}", scale.weekly_rho);
        }
    }
}
