//! Quality per signal, and contrasts between strata.

use super::release_utility::{MIN_BUCKETS, PopulationBucket, SignalSeries, median};
use super::{SeriesEvidence, is_contributor_row};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use throng_core::series::{MomentStatistic, RowStatistic, SeriesRow};

/// Quality of one signal.
#[derive(Clone, Debug, Serialize)]
pub struct SignalQuality {
    /// Series name.
    pub series: String,
    /// Signal name.
    pub signal: String,
    /// Signal unit.
    pub unit: Option<String>,
    /// Original cells: a subject's value in a bucket.
    pub cells: u64,
    /// Cells in a published row.
    pub cells_represented: u64,
    /// Epochs with a published mean; none without moments.
    pub epochs: Option<u64>,
    /// Median of error ÷ sampling error.
    pub error_ratio: Option<f64>,
    /// Pearson correlation of published and true means.
    pub correlation: Option<f64>,
    /// Published and true population means by bucket.
    pub population: Vec<PopulationBucket>,
}

/// Difference between the means of two strata.
#[derive(Clone, Debug, Serialize)]
pub struct StratumContrast {
    /// Series name.
    pub series: String,
    /// Signal name.
    pub signal: String,
    /// Labels of both strata.
    pub strata: [Vec<String>; 2],
    /// Buckets with rows of both strata.
    pub buckets: u64,
    /// Mean published difference, first minus second.
    pub published: f64,
    /// True difference over these buckets.
    pub actual: f64,
    /// Mean sampling error of the difference in a bucket.
    pub sampling_error: f64,
}

/// Quality of released series.
#[derive(Clone, Debug, Serialize)]
pub struct SeriesQuality {
    /// Quality by series and signal.
    pub signals: Vec<SignalQuality>,
    /// Contrasts by series, signal and strata.
    pub contrasts: Vec<StratumContrast>,
}

#[derive(Clone, Copy)]
struct SampleMoments {
    n: f64,
    mean: f64,
    variance: f64,
}

impl SampleMoments {
    fn from_values(values: &[f64]) -> Self {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
        Self { n, mean, variance: if values.len() < 2 { 0.0 } else { squares / (n - 1.0) } }
    }
}

impl SignalSeries {
    /// Returns the correlation of published and true means; none with too few buckets or a constant mean.
    #[must_use]
    pub fn correlation(&self) -> Option<f64> {
        let buckets: Vec<&PopulationBucket> = self.buckets.iter().filter(|bucket| bucket.has_enough_people()).collect();
        let n = buckets.len() as f64;
        let mean = |of: fn(&PopulationBucket) -> f64| buckets.iter().map(|bucket| of(bucket)).sum::<f64>() / n;
        let (x, y) = (mean(|bucket| bucket.published), mean(|bucket| bucket.true_mean));
        let (mut xy, mut xx, mut yy) = (0.0, 0.0, 0.0);
        for bucket in &buckets {
            let (dx, dy) = (bucket.published - x, bucket.true_mean - y);
            (xy, xx, yy) = (xy + dx * dy, xx + dx * dx, yy + dy * dy);
        }
        (buckets.len() >= MIN_BUCKETS && xx > 0.0 && yy > 0.0).then(|| xy / (xx * yy).sqrt())
    }
}

impl SeriesEvidence {
    /// Measures every signal and pair of strata.
    #[must_use]
    pub fn quality(&self) -> SeriesQuality {
        let mut population: BTreeMap<(usize, usize), SignalSeries> =
            self.population().into_iter().map(|of| ((of.series, of.signal), of)).collect();
        let mut signals = Vec::new();
        for (number, series) in self.terms.series.iter().enumerate() {
            for (at, signal) in series.signals.iter().enumerate() {
                let empty = SignalSeries { series: number, signal: at, buckets: Vec::new() };
                let of = population.remove(&(number, at)).unwrap_or(empty);
                let (cells, cells_represented) = self.count_cells(number, at);
                signals.push(SignalQuality {
                    series: series.name.clone(),
                    signal: signal.name.clone(),
                    unit: signal.unit.clone(),
                    cells,
                    cells_represented,
                    epochs: series.moments.as_ref().map(|_| self.epochs_with_mean(number, at)),
                    error_ratio: of.error_ratio(),
                    correlation: of.correlation(),
                    population: of.buckets,
                });
            }
        }
        SeriesQuality { signals, contrasts: self.contrasts() }
    }

    fn epochs_with_mean(&self, series: usize, signal: usize) -> u64 {
        let of_signal = self.moments.iter().filter(|row| (row.series, row.signal) == (series, signal));
        of_signal.filter(|row| shows_mean(row)).map(|row| row.bucket).collect::<BTreeSet<i64>>().len() as u64
    }

    fn count_cells(&self, series: usize, signal: usize) -> (u64, u64) {
        let has_value = |bucket: i64, person: usize| {
            let people = self.contributions.get(&(series, bucket));
            people.and_then(|people| people.get(&person)).is_some_and(|of| of.values[signal].is_some())
        };
        let of_series = self.contributions.iter().filter(|((number, _), _)| *number == series);
        let cells: usize = of_series
            .map(|(_, people)| people.values().filter(|contribution| contribution.values[signal].is_some()).count())
            .sum();
        if self.terms.series[series].moments.is_some() {
            let is_of_signal = |row: &SeriesRow| (row.series, row.signal) == (series, signal) && shows_mean(row);
            return (cells as u64, self.buckets_in_moments(is_of_signal).len() as u64);
        }
        let mut represented = BTreeSet::new();
        let rows = self.rows.iter().filter(|row| (row.series, row.signal) == (series, signal));
        for row in rows.filter(|row| is_contributor_row(row, &self.terms)) {
            let present = self.members_of_row(row).filter(|person| has_value(row.bucket, *person));
            represented.extend(present.map(|person| (row.bucket, person)));
        }
        let rows = self.rows.iter().filter(|row| (row.series, row.signal) == (series, signal));
        for row in rows {
            represented.extend(self.subjects_in_noisy_row(row).map(|person| (row.bucket, person)));
        }
        (cells as u64, represented.len() as u64)
    }

    fn contrasts(&self) -> Vec<StratumContrast> {
        // By stratum and bucket.
        type Rows<'a> = BTreeMap<&'a [String], BTreeMap<i64, f64>>;
        let mut all: BTreeMap<(usize, usize), Rows<'_>> = BTreeMap::new();
        for row in self.rows.iter().filter(|row| row.cohort.is_none()) {
            let stratum = row.stratum.as_deref().filter(|labels| !labels.is_empty());
            if let (Some(stratum), Some(published)) = (stratum, row.mean_statistic()) {
                let strata = all.entry((row.series, row.signal)).or_default();
                strata.entry(stratum).or_default().insert(row.bucket, published.mean);
            }
        }
        let mut contrasts = Vec::new();
        for ((series, signal), strata) in &all {
            let strata: Vec<(&&[String], &BTreeMap<i64, f64>)> = strata.iter().collect();
            for (at, one) in strata.iter().enumerate() {
                for other in &strata[at + 1..] {
                    contrasts.extend(self.contrast((*series, *signal), [*one, *other]));
                }
            }
        }
        contrasts
    }

    fn contrast(
        &self,
        (series, signal): (usize, usize),
        strata: [(&&[String], &BTreeMap<i64, f64>); 2],
    ) -> Option<StratumContrast> {
        let (mut buckets, mut published, mut actual, mut sampling_error) = (0, 0.0, 0.0, 0.0);
        for (bucket, mean) in strata[0].1 {
            let Some(other) = strata[1].1.get(bucket) else { continue };
            let [one_true, other_true] =
                strata.map(|(labels, _)| self.values_of_stratum(series, *bucket, signal, labels));
            if one_true.len() < 2 || other_true.len() < 2 {
                continue;
            }
            let (one_true, other_true) =
                (SampleMoments::from_values(&one_true), SampleMoments::from_values(&other_true));
            buckets += 1;
            published += mean - other;
            actual += one_true.mean - other_true.mean;
            sampling_error += (one_true.variance / one_true.n + other_true.variance / other_true.n).sqrt();
        }
        let n = buckets as f64;
        (buckets > 0).then(|| StratumContrast {
            series: self.terms.series[series].name.clone(),
            signal: self.terms.series[series].signals[signal].name.clone(),
            strata: strata.map(|(labels, _)| labels.to_vec()),
            buckets,
            published: published / n,
            actual: actual / n,
            sampling_error: sampling_error / n,
        })
    }

    fn values_of_stratum(&self, series: usize, bucket: i64, signal: usize, stratum: &[String]) -> Vec<f64> {
        let people = self.contributions.get(&(series, bucket)).into_iter().flatten();
        let of_stratum = people.filter(|(person, _)| self.strata[**person].as_deref() == Some(stratum));
        of_stratum.filter_map(|(_, contribution)| contribution.values[signal]).collect()
    }
}

fn shows_mean(row: &SeriesRow) -> bool {
    matches!(row.statistic, RowStatistic::Moment(MomentStatistic { mean: Some(_), .. }))
}

impl SeriesQuality {
    /// Returns the median of contrast error ÷ sampling error.
    #[must_use]
    pub fn contrast_error(&self) -> Option<f64> {
        let of = |contrast: &StratumContrast| (contrast.published - contrast.actual).abs() / contrast.sampling_error;
        median(self.contrasts.iter().map(of).filter(|ratio| ratio.is_finite()).collect())
    }
}
