//! Rows of signals, and values carried forward in the rows.

use super::SeriesEvidence;
use super::release_utility::median;
use serde::Serialize;
use std::collections::BTreeMap;
use throng_core::series::{RowStatistic, SeriesRow};

/// Smallest share of carried values of a row that counts as half carried.
const HALF: f64 = 0.5;

/// Rows of a signal, and the subjects with its values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SignalRows {
    /// Series name.
    pub series: String,
    /// Signal name.
    pub signal: String,
    /// Published rows.
    pub rows: u64,
    /// Subjects with a value.
    pub people: u64,
}

/// Values carried forward in the rows of a series.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CarriedValues {
    /// Series name.
    pub series: String,
    /// Published rows.
    pub rows: u64,
    /// Rows in which at least half of the values are carried forward.
    pub half_carried: u64,
    /// Median of the carried shares.
    pub median: f64,
}

impl SeriesEvidence {
    fn all_rows(&self) -> impl Iterator<Item = &SeriesRow> {
        self.rows.iter().chain(&self.moments)
    }

    /// Counts the rows of each signal, and the subjects with its values.
    #[must_use]
    pub fn signal_rows(&self) -> Vec<SignalRows> {
        let mut rows: BTreeMap<(usize, usize), u64> = BTreeMap::new();
        for row in self.all_rows() {
            *rows.entry((row.series, row.signal)).or_default() += 1;
            if let RowStatistic::Moment(of) = &row.statistic
                && of.with != row.signal
            {
                *rows.entry((row.series, of.with)).or_default() += 1;
            }
        }
        let mut counts = Vec::new();
        for (number, series) in self.terms.series.iter().enumerate() {
            let people = self.people_with_values(number);
            counts.extend(series.signals.iter().enumerate().map(|(at, signal)| SignalRows {
                series: series.name.clone(),
                signal: signal.name.clone(),
                rows: rows.get(&(number, at)).copied().unwrap_or(0),
                people: people[at],
            }));
        }
        counts
    }

    /// Subjects with a value, by signal.
    fn people_with_values(&self, series: usize) -> Vec<u64> {
        let signals = self.terms.series[series].signals.len();
        let mut has_value = vec![vec![false; self.people.len()]; signals];
        for people in self.contributions.range((series, i64::MIN)..=(series, i64::MAX)).map(|(_, people)| people) {
            for (person, contribution) in people {
                for (of_signal, value) in has_value.iter_mut().zip(&contribution.values) {
                    of_signal[*person] |= value.is_some();
                }
            }
        }
        has_value.iter().map(|people| people.iter().filter(|has_value| **has_value).count() as u64).collect()
    }

    /// Measures the carried values of each series with rows and without noise.
    #[must_use]
    pub fn carried_values(&self) -> Vec<CarriedValues> {
        let of_series = |number: usize, name: &str| {
            let shares: Vec<f64> = self.all_rows().filter(|row| row.series == number).map(|row| row.filled).collect();
            let half_carried = shares.iter().filter(|share| **share >= HALF).count() as u64;
            let (rows, median) = (shares.len() as u64, median(shares)?);
            Some(CarriedValues { series: name.to_owned(), rows, half_carried, median })
        };
        let series = self.terms.series.iter().enumerate().filter(|(_, series)| series.noise.is_none());
        series.filter_map(|(number, series)| of_series(number, &series.name)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{SeriesLineage, SubjectContribution};
    use super::*;
    use std::sync::Arc;
    use throng_core::series::{AllSeriesTerms, CohortTerms, DAY_MS, MeanStatistic, SeriesSignal, SeriesTerms};

    fn signal(name: &str) -> SeriesSignal {
        SeriesSignal { attribute: 0, name: name.into(), unit: None, range: (0.0, 9.0), intervals: None }
    }

    fn terms() -> AllSeriesTerms {
        let series = SeriesTerms {
            name: "daily".into(),
            every_ms: DAY_MS,
            every: "1d".into(),
            cycle: None,
            signals: vec![signal("steps"), signal("spo2")],
            lateness_ms: 0,
            pooled: false,
            min_values: 4,
            moments: None,
            noise: None,
        };
        let cohorts = CohortTerms {
            crowd: 5,
            colluders: 0,
            size: 15,
            warm_up_days: 0,
            idle_ms: DAY_MS,
            strata: Vec::new(),
            strata_names: Vec::new(),
            time: 1,
            max_histories: 1,
            is_batch: true,
        };
        AllSeriesTerms { cohorts, series: vec![series] }
    }

    fn row(filled: f64) -> SeriesRow {
        let statistic = RowStatistic::Mean(MeanStatistic { mean: 1.0, sd: 1.0, quartiles: None });
        let (cohort, sets) = (None, Vec::new());
        SeriesRow { series: 0, cohort, stratum: None, bucket: 0, signal: 0, sets, n: 5, statistic, filled }
    }

    fn evidence(filled: &[f64]) -> SeriesEvidence {
        let of = |values: [Option<f64>; 2]| SubjectContribution { records: 1, values: values.to_vec() };
        let people = BTreeMap::from([(0, of([Some(1.0), None])), (1, of([Some(2.0), Some(97.0)]))]);
        SeriesEvidence {
            terms: Arc::new(terms()),
            people: vec![7, 8, 9],
            strata: vec![None; 3],
            records: Vec::new(),
            unplaced: 0,
            unreadable: 0,
            contributions: BTreeMap::from([((0, 0), people)]),
            rows: filled.iter().map(|share| row(*share)).collect(),
            moments: Vec::new(),
            lineage: SeriesLineage::default(),
        }
    }

    #[test]
    fn signal_without_rows_keeps_its_people() {
        let counts = evidence(&[0.0, 0.4, 0.6]).signal_rows();
        let of: Vec<(&str, u64, u64)> = counts.iter().map(|of| (of.signal.as_str(), of.rows, of.people)).collect();
        assert_eq!(of, [("steps", 3, 2), ("spo2", 0, 1)]);
    }

    #[test]
    fn carried_values_count_rows_of_at_least_half() {
        let carried = evidence(&[0.0, 0.4, 0.5, 0.9, 0.5]).carried_values();
        let expected = CarriedValues { series: "daily".into(), rows: 5, half_carried: 3, median: 0.5 };
        assert_eq!(carried, [expected]);
        assert!(evidence(&[]).carried_values().is_empty());
    }
}
