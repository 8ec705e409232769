use super::SeriesEvidence;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use throng_core::series::{DAY_MS, SeriesRow, SeriesTerms};

/// For a sampling error.
const MIN_PEOPLE: usize = 5;
pub(super) const MIN_BUCKETS: usize = 5;

/// Represented share, and error of the means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct ReleaseUtility {
    /// Original subjects, in series with an event time.
    pub people: u64,
    /// Subjects in a published contributor set, noisy row or line.
    pub people_represented: u64,
    /// Original records, including unreadable ones.
    pub records: u64,
    /// Unreadable records (dead letters).
    pub unreadable: u64,
    /// Records in a line or a published bucket of their subject.
    pub records_represented: u64,
    /// Median over signals and buckets of error ÷ sampling error.
    pub error_ratio: Option<f64>,
}

/// Population-wide signal of a series.
#[derive(Clone, Debug, PartialEq)]
pub struct SignalSeries {
    /// Series position.
    pub series: usize,
    /// Signal position.
    pub signal: usize,
    /// Buckets, ascending.
    pub buckets: Vec<PopulationBucket>,
}

/// Published and true population mean of one bucket.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PopulationBucket {
    /// Bucket start.
    pub bucket: i64,
    /// Published mean.
    pub published: f64,
    /// Mean of all original subjects with a value.
    pub true_mean: f64,
    /// Their standard deviation (n − 1).
    pub true_sd: f64,
    /// Number of these subjects.
    pub people: usize,
}

impl PopulationBucket {
    pub(super) fn compare_with_values(bucket: i64, published: f64, values: &[f64]) -> Self {
        let n = values.len() as f64;
        let true_mean = values.iter().sum::<f64>() / n;
        let squares: f64 = values.iter().map(|value| (value - true_mean) * (value - true_mean)).sum();
        let true_sd = if values.len() < 2 { 0.0 } else { (squares / (n - 1.0)).sqrt() };
        Self { bucket, published, true_mean, true_sd, people: values.len() }
    }

    /// Returns true with enough subjects for a sampling error.
    #[must_use]
    pub fn has_enough_people(&self) -> bool {
        self.people >= MIN_PEOPLE
    }

    /// Returns error ÷ sampling error, if defined.
    #[must_use]
    pub fn error_ratio(&self) -> Option<f64> {
        let sampling_error = self.true_sd / (self.people as f64).sqrt();
        let is_known = self.has_enough_people() && sampling_error > 0.0;
        is_known.then(|| (self.published - self.true_mean).abs() / sampling_error)
    }
}

impl SignalSeries {
    /// Returns the median error ratio.
    #[must_use]
    pub fn error_ratio(&self) -> Option<f64> {
        let errors: Vec<f64> = self.buckets.iter().filter_map(PopulationBucket::error_ratio).collect();
        if errors.len() < MIN_BUCKETS { None } else { median(errors) }
    }
}

/// Returns the median; none without values.
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
    /// Computes the represented share and the error.
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

    /// Complete rows in moments that `is_counted` accepts.
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

    /// Without a daily series: the first with buckets.
    fn error_ratio(&self) -> Option<f64> {
        let is_daily = |of: &SeriesTerms| of.every_ms == DAY_MS && of.cycle.is_none();
        let with_buckets = || self.terms.series.iter().enumerate().filter(|(_, of)| of.moments.is_none());
        let (series, _) = with_buckets().find(|(_, of)| is_daily(of)).or_else(|| with_buckets().next())?;
        let signals = self.population().into_iter().filter(|signal| signal.series == series);
        median(signals.filter_map(|signal| signal.error_ratio()).collect())
    }

    /// Returns the population means by series and signal.
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

    fn is_population_row(&self, row: &SeriesRow) -> bool {
        row.cohort.is_none() && (row.stratum.is_none() || self.terms.cohorts.strata.is_empty())
    }
}
