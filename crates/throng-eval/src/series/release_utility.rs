//! Measures the share of the original that released series represent, and the distance of their means from the true
//! means.

use super::SeriesEvidence;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use throng_core::series::{DAY_MS, SeriesRow, SeriesTerms};

/// Smallest number of subjects per bucket, and of buckets per signal, for which an error is computed.
const MIN_PEOPLE: usize = 5;
pub(super) const MIN_BUCKETS: usize = 5;

/// Represented share of the original, and error of the means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct ReleaseUtility {
    /// Subjects of the original; in a release of series those with an event time.
    pub people: u64,
    /// Of these, subjects in a published contributor set or with a value in a row with noise (in a release of
    /// fragments: with a line).
    pub people_represented: u64,
    /// Records of the original, including unreadable records.
    pub records: u64,
    /// Of these, unreadable records, which the run wrote as dead letters.
    pub unreadable: u64,
    /// Of these, records in a bucket with a published value of their subject (in a release of fragments: with a
    /// line).
    pub records_represented: u64,
    /// Error of a daily mean ÷ its sampling error: median over the buckets of a signal, then over the signals. None
    /// if it cannot be computed.
    pub error_ratio: Option<f64>,
}

/// Signal of a series, published for the whole population.
#[derive(Clone, Debug, PartialEq)]
pub struct SignalSeries {
    /// Position of the series.
    pub series: usize,
    /// Position of the signal.
    pub signal: usize,
    /// Buckets, ascending.
    pub buckets: Vec<PopulationBucket>,
}

/// Published and true mean of one bucket, for the whole population.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PopulationBucket {
    /// Start of the bucket.
    pub bucket: i64,
    /// Published mean.
    pub published: f64,
    /// Mean of all subjects of the original with a value.
    pub true_mean: f64,
    /// Standard deviation of their values (n − 1).
    pub true_sd: f64,
    /// Number of these subjects.
    pub people: usize,
}

impl PopulationBucket {
    /// Combines a published mean with the statistics of the true values.
    pub(super) fn compare_with_values(bucket: i64, published: f64, values: &[f64]) -> Self {
        let n = values.len() as f64;
        let true_mean = values.iter().sum::<f64>() / n;
        let squares: f64 = values.iter().map(|value| (value - true_mean) * (value - true_mean)).sum();
        let true_sd = if values.len() < 2 { 0.0 } else { (squares / (n - 1.0)).sqrt() };
        Self { bucket, published, true_mean, true_sd, people: values.len() }
    }

    /// Returns true if the bucket has enough subjects for a sampling error.
    #[must_use]
    pub fn has_enough_people(&self) -> bool {
        self.people >= MIN_PEOPLE
    }

    /// Error of the published mean ÷ sampling error of the true mean. None with too few subjects, or if all have the
    /// same value.
    #[must_use]
    pub fn error_ratio(&self) -> Option<f64> {
        let sampling_error = self.true_sd / (self.people as f64).sqrt();
        let is_known = self.has_enough_people() && sampling_error > 0.0;
        is_known.then(|| (self.published - self.true_mean).abs() / sampling_error)
    }
}

impl SignalSeries {
    /// Median of the errors over the buckets; none with too few buckets.
    #[must_use]
    pub fn error_ratio(&self) -> Option<f64> {
        let errors: Vec<f64> = self.buckets.iter().filter_map(PopulationBucket::error_ratio).collect();
        if errors.len() < MIN_BUCKETS { None } else { median(errors) }
    }
}

/// Median: the middle value, or the mean of the two middle values. None without values.
#[must_use]
pub fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => None,
        odd if odd % 2 == 1 => Some(values[middle]),
        _ => Some(f64::midpoint(values[middle - 1], values[middle])),
    }
}

impl SeriesEvidence {
    /// Represented subjects and records, and the error of a mean.
    #[must_use]
    pub fn series_utility(&self) -> ReleaseUtility {
        let mut people = BTreeSet::new();
        let mut represented: BTreeSet<(usize, i64, usize)> = BTreeSet::new();
        for (person, row) in
            self.rows.iter().flat_map(|row| self.subjects_in_noisy_row(row).map(move |person| (person, row)))
        {
            people.insert(person);
            represented.insert((row.series, row.bucket, person));
        }
        for row in self.rows.iter().filter(|row| !row.sets.is_empty()) {
            let present = self.contributions.get(&(row.series, row.bucket));
            for person in self.members_of_row(row) {
                people.insert(person);
                if present.and_then(|people| people.get(&person)).is_some_and(|of| of.values[row.signal].is_some()) {
                    represented.insert((row.series, row.bucket, person));
                }
            }
        }
        for row in self.moments.iter().filter(|row| !row.sets.is_empty()) {
            people.extend(self.members_of_row(row));
        }
        represented.extend(self.buckets_in_moments(|_| true));
        let is_represented = |record: &&super::PlacedRecord| {
            self.terms.series.iter().enumerate().any(|(number, series)| {
                record.dropped & 1 << number == 0
                    && represented.contains(&(number, series.bucket(record.time_ms), record.person))
            })
        };
        ReleaseUtility {
            people: self.records.iter().map(|record| record.person).collect::<BTreeSet<_>>().len() as u64,
            people_represented: people.len() as u64,
            records: self.records.len() as u64 + self.unplaced + self.unreadable,
            unreadable: self.unreadable,
            records_represented: self.records.iter().filter(is_represented).count() as u64,
            error_ratio: self.error_ratio(),
        }
    }

    /// Series, bucket and subject of all complete rows in published moments that `is_counted` accepts.
    pub(super) fn buckets_in_moments(&self, is_counted: impl Fn(&SeriesRow) -> bool) -> BTreeSet<(usize, i64, usize)> {
        let mut published: BTreeSet<(usize, i64, usize)> = BTreeSet::new();
        for row in self.moments.iter().filter(|row| is_counted(row)) {
            published.extend(self.members_of_row(row).map(|person| (row.series, row.bucket, person)));
        }
        let mut buckets = BTreeSet::new();
        for (series, terms) in self.terms.series.iter().enumerate() {
            let Some(moments) = &terms.moments else { continue };
            let counted = self.rows_of_epochs(series);
            for ((_, bucket), people) in self.contributions.range((series, i64::MIN)..=(series, i64::MAX)) {
                let epoch = moments.epoch(*bucket);
                let is_shown = |person: &usize| {
                    counted.contains_key(&(epoch, *person)) && published.contains(&(series, epoch, *person))
                };
                let complete = people.iter().filter(|(_, of)| of.values.iter().all(Option::is_some));
                let shown = complete.map(|(person, _)| *person).filter(is_shown);
                buckets.extend(shown.map(|person| (series, *bucket, person)));
            }
        }
        buckets
    }

    /// Median error over the signals of the daily series. Uses the first series with rows of buckets if none is
    /// daily.
    fn error_ratio(&self) -> Option<f64> {
        let is_daily = |of: &SeriesTerms| of.every_ms == DAY_MS && of.cycle.is_none();
        let with_buckets = || self.terms.series.iter().enumerate().filter(|(_, of)| of.moments.is_none());
        let (series, _) = with_buckets().find(|(_, of)| is_daily(of)).or_else(|| with_buckets().next())?;
        let signals = self.population().into_iter().filter(|signal| signal.series == series);
        median(signals.filter_map(|signal| signal.error_ratio()).collect())
    }

    /// Published and true means of the whole population, by series and signal.
    #[must_use]
    pub fn population(&self) -> Vec<SignalSeries> {
        let mut all: BTreeMap<(usize, usize), BTreeMap<i64, PopulationBucket>> = BTreeMap::new();
        for row in self.rows.iter().filter(|row| self.is_population_row(row)) {
            let Some(published) = row.mean() else { continue };
            let people = self.contributions.get(&(row.series, row.bucket)).into_iter().flat_map(BTreeMap::values);
            let values: Vec<f64> = people.filter_map(|contribution| contribution.values[row.signal]).collect();
            let bucket = PopulationBucket::compare_with_values(row.bucket, published, &values);
            all.entry((row.series, row.signal)).or_default().insert(row.bucket, bucket);
        }
        let of = |((series, signal), buckets): ((usize, usize), BTreeMap<i64, PopulationBucket>)| SignalSeries {
            series,
            signal,
            buckets: buckets.into_values().collect(),
        };
        all.into_iter().map(of).collect()
    }

    /// Returns true if a row covers all strata and all published cohorts.
    fn is_population_row(&self, row: &SeriesRow) -> bool {
        row.cohort.is_none() && (row.stratum.is_none() || self.terms.cohorts.strata.is_empty())
    }
}
