//! Comparison of noisy rows with the original.

use super::SeriesEvidence;
use super::release_utility::median;
use serde::Serialize;
use throng_core::series::{RowStatistic, SeriesRow};

/// Noise of a signal relative to sampling error.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NoiseRatio {
    /// Series name.
    pub series: String,
    /// Signal name.
    pub signal: String,
    /// Median number of subjects per bucket.
    pub people: f64,
    /// Median ratio of noise to sampling error.
    pub ratio: f64,
}

impl NoiseRatio {
    /// Returns the subjects per bucket for less noise than sampling error.
    #[must_use]
    pub fn subjects_needed(&self) -> f64 {
        self.people * self.ratio * self.ratio
    }
}

impl SeriesEvidence {
    pub(super) fn subjects_in_noisy_row<'a>(&'a self, row: &'a SeriesRow) -> impl Iterator<Item = usize> + 'a {
        let is_noisy = matches!(row.statistic, RowStatistic::Noisy(_));
        let people = self.contributions.get(&(row.series, row.bucket)).filter(|_| is_noisy).into_iter().flatten();
        people.filter(|(_, of)| of.values[row.signal].is_some()).map(|(person, _)| *person)
    }

    /// Compares each noisy signal, including withheld rows.
    #[must_use]
    pub fn noise_ratios(&self) -> Vec<NoiseRatio> {
        let mut ratios = Vec::new();
        for (number, series) in self.terms.series.iter().enumerate() {
            let Some(scale) = series.noise.map(|noise| noise.scale(series)) else { continue };
            for (at, signal) in series.signals.iter().enumerate() {
                let of_series = self.contributions.range((number, i64::MIN)..=(number, i64::MAX));
                let buckets: Vec<(f64, f64)> = of_series
                    .filter_map(|(_, people)| {
                        let values: Vec<f64> = people.values().filter_map(|of| of.values[at]).collect();
                        let n = values.len() as f64;
                        let mean = values.iter().sum::<f64>() / n;
                        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
                        let sampling_error = (squares / (n - 1.0) / n).sqrt();
                        let ratio = scale.mean_error(n, mean, signal.range) / sampling_error;
                        (n >= 2.0 && ratio.is_finite()).then_some((n, ratio))
                    })
                    .collect();
                let middle = |of: fn(&(f64, f64)) -> f64| median(buckets.iter().map(of).collect());
                if let (Some(people), Some(ratio)) = (middle(|of| of.0), middle(|of| of.1)) {
                    let (series, signal) = (series.name.clone(), signal.name.clone());
                    ratios.push(NoiseRatio { series, signal, people, ratio });
                }
            }
        }
        ratios
    }
}
