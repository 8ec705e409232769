//! What released series represent, and how far their means are from the true ones.

use super::Evidence;
use crate::anonymity::series::{DAY_MS, SeriesRow, SeriesTerms};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// People of a bucket, and buckets of a signal, below which no error is computed.
const MIN_PEOPLE: usize = 5;
pub(super) const MIN_BUCKETS: usize = 5;

/// What a release represents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Usefulness {
    /// People of the original.
    pub people: u64,
    /// Of these, people of a published contributor set (of fragments: with a line).
    pub people_represented: u64,
    /// Records of the original, those that could not be read included.
    pub records: u64,
    /// Of these, records that could not be read: the run made dead letters of them.
    pub unreadable: u64,
    /// Of these, records whose value is part of a published row (of fragments: with a line).
    pub records_represented: u64,
    /// Error of a daily mean ÷ its sampling error: median over the buckets of a signal, then over the signals. None where it cannot be
    /// computed.
    pub error_ratio: Option<f64>,
}

/// A signal of a series as it was published for the whole population.
#[derive(Clone, Debug, PartialEq)]
pub struct SignalSeries {
    /// Position of the series.
    pub series: usize,
    /// Position of the signal.
    pub signal: usize,
    /// By bucket, ascending.
    pub buckets: Vec<PopulationBucket>,
}

/// A bucket of the population.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PopulationBucket {
    /// The bucket.
    pub bucket: i64,
    /// Published mean.
    pub published: f64,
    /// Mean of all people of the original with a value.
    pub true_mean: f64,
    /// Standard deviation of their values (n − 1).
    pub true_sd: f64,
    /// Their number.
    pub people: usize,
}

impl PopulationBucket {
    /// A published mean beside the true values.
    pub(super) fn of(bucket: i64, published: f64, values: &[f64]) -> Self {
        let n = values.len() as f64;
        let true_mean = values.iter().sum::<f64>() / n;
        let squares: f64 = values.iter().map(|value| (value - true_mean) * (value - true_mean)).sum();
        let true_sd = if values.len() < 2 { 0.0 } else { (squares / (n - 1.0)).sqrt() };
        Self { bucket, published, true_mean, true_sd, people: values.len() }
    }

    /// Whether there are people enough to speak of a sampling error.
    #[must_use]
    pub fn has_enough_people(&self) -> bool {
        self.people >= MIN_PEOPLE
    }

    /// Error of the published mean ÷ sampling error of the true one; none where people are too few, or all have one value.
    #[must_use]
    pub fn error_ratio(&self) -> Option<f64> {
        let sampling_error = self.true_sd / (self.people as f64).sqrt();
        let is_known = self.has_enough_people() && sampling_error > 0.0;
        is_known.then(|| (self.published - self.true_mean).abs() / sampling_error)
    }
}

impl SignalSeries {
    /// Median of the errors over the buckets; none with too few of them.
    #[must_use]
    pub fn error_ratio(&self) -> Option<f64> {
        let errors: Vec<f64> = self.buckets.iter().filter_map(PopulationBucket::error_ratio).collect();
        if errors.len() < MIN_BUCKETS { None } else { median(errors) }
    }
}

/// The middle value; of an even number the mean of the middle two. None of no values.
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

impl Evidence {
    /// People and records represented, and the error of a mean.
    #[must_use]
    pub fn usefulness(&self) -> Usefulness {
        let mut people = BTreeSet::new();
        let mut represented: BTreeSet<(usize, i64, usize)> = BTreeSet::new();
        for (person, row) in
            self.rows.iter().flat_map(|row| self.people_with_noise(row).map(move |person| (person, row)))
        {
            people.insert(person);
            represented.insert((row.series, row.bucket, person));
        }
        for row in self.rows.iter().filter(|row| !row.sets.is_empty()) {
            let present = self.contributions.get(&(row.series, row.bucket));
            for person in self.members(row) {
                people.insert(person);
                if present.and_then(|people| people.get(&person)).is_some_and(|of| of.values[row.signal].is_some()) {
                    represented.insert((row.series, row.bucket, person));
                }
            }
        }
        for row in self.moments.iter().filter(|row| !row.sets.is_empty()) {
            people.extend(self.members(row));
        }
        represented.extend(self.buckets_in_moments(|_| true));
        let is_represented = |record: &&super::PlacedRecord| {
            self.terms.series.iter().enumerate().any(|(number, series)| {
                record.dropped & 1 << number == 0
                    && represented.contains(&(number, series.bucket(record.time_ms), record.person))
            })
        };
        Usefulness {
            people: self.records.iter().map(|record| record.person).collect::<BTreeSet<_>>().len() as u64,
            people_represented: people.len() as u64,
            records: self.records.len() as u64 + self.unplaced + self.unreadable,
            unreadable: self.unreadable,
            records_represented: self.records.iter().filter(is_represented).count() as u64,
            error_ratio: self.error_ratio(),
        }
    }

    /// Series, bucket and person of all complete rows that are part of published moments, as far as `is_counted` counts them.
    pub(super) fn buckets_in_moments(&self, is_counted: impl Fn(&SeriesRow) -> bool) -> BTreeSet<(usize, i64, usize)> {
        let mut published: BTreeSet<(usize, i64, usize)> = BTreeSet::new();
        for row in self.moments.iter().filter(|row| is_counted(row)) {
            published.extend(self.members(row).map(|person| (row.series, row.bucket, person)));
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

    /// Median over the signals of the series of days; of the first series with rows of buckets where none has days.
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
        for row in self.rows.iter().filter(|row| self.is_of_everybody(row)) {
            let Some(published) = row.mean() else { continue };
            let people = self.contributions.get(&(row.series, row.bucket)).into_iter().flat_map(BTreeMap::values);
            let values: Vec<f64> = people.filter_map(|contribution| contribution.values[row.signal]).collect();
            let bucket = PopulationBucket::of(row.bucket, published, &values);
            all.entry((row.series, row.signal)).or_default().insert(row.bucket, bucket);
        }
        let of = |((series, signal), buckets): ((usize, usize), BTreeMap<i64, PopulationBucket>)| SignalSeries {
            series,
            signal,
            buckets: buckets.into_values().collect(),
        };
        all.into_iter().map(of).collect()
    }

    /// Whether a row is of all strata and all published cohorts.
    fn is_of_everybody(&self, row: &SeriesRow) -> bool {
        row.cohort.is_none() && (row.stratum.is_none() || self.terms.cohorts.strata.is_empty())
    }
}
