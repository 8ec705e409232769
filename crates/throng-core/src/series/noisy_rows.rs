//! Counts and means with (ε, δ)-differential privacy per subject and week (docs/internals/methods.md §13).
//!
//! Every subject with a value counts, and every bucket from first to last is evaluated. Only the noisy count withholds
//! a row.

use super::batch_step::SeriesBatchStep;
use super::gaussian_noise::NoiseKey;
use super::noise_budget::{NoiseScale, noisy_mean, to_grid, week_of};
use super::published_row::{NoisyStatistic, RowStatistic, SeriesRow};
use super::state::{OpenBucket, WeekSpent};
use super::terms::{SeriesSignal, SeriesTerms};
use std::collections::{BTreeMap, BTreeSet};

/// Largest range of buckets that is evaluated completely. In a larger one, buckets below a crowd are skipped.
const MAX_RANGE_BUCKETS: i64 = 1 << 20;

type NoisyContributions = BTreeMap<u64, OpenBucket>;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct ExactSum {
    count: i64,
    sum: i64,
}

impl ExactSum {
    fn from_contributions(contributions: &NoisyContributions, signal: usize, range: (f64, f64)) -> Self {
        let values = contributions.values().filter_map(|open| open.partials[signal].value(range));
        values.fold(Self::default(), |Self { count, sum }, value| Self {
            count: count + 1,
            sum: sum + to_grid(value, range),
        })
    }

    /// Adds noise, equal only for equal numbers, place and settings.
    fn with_noise(self, key: &NoiseKey, scale: &NoiseScale, place: &str) -> Self {
        let Self { count, sum } = self;
        let NoiseScale { count_parts, sum_parts, .. } = *scale;
        let place = format!("{place} {count_parts} {sum_parts} {count} {sum}");
        Self {
            count: count + key.sample(count_parts, &format!("count {place}")),
            sum: sum + key.sample(sum_parts, &format!("sum {place}")),
        }
    }
}

fn noise_place(series: &SeriesTerms, signal: &SeriesSignal, bucket: i64) -> String {
    let (low, high) = signal.range;
    let range = (low.to_bits(), high.to_bits());
    format!("{:?} {} {:?} {range:?} {bucket}", series.name, series.every_ms, signal.name)
}

impl SeriesBatchStep<'_> {
    /// Publishes noisy buckets that end by `until` and removes them from `due`.
    pub(super) fn close_noisy_buckets(
        &mut self,
        until: &[i64],
        due: &mut BTreeMap<(i64, usize, i64), NoisyContributions>,
    ) {
        let terms = self.terms;
        if terms.series.iter().all(|series| series.noise.is_none()) {
            return;
        }
        let key = NoiseKey::new(self.draw);
        for (number, series) in terms.series.iter().enumerate() {
            let Some(noise) = &series.noise else { continue };
            let scale = noise.scale(series);
            let of_series = due.extract_if(.., |(_, of, _), _| *of == number);
            let people: BTreeMap<i64, NoisyContributions> = of_series.map(|((.., bucket), of)| (bucket, of)).collect();
            let nobody = NoisyContributions::new();
            let (judged, least_count) = self.evaluated_buckets(number, until[number], &people, &scale);
            let before = people.iter().filter(|(bucket, _)| judged.binary_search(bucket).is_err());
            let unjudged: u64 = before.flat_map(|(_, of)| of.values()).map(|open| u64::from(open.records)).sum();
            self.head.counts[number].records += unjudged;
            for bucket in judged {
                let contributions = people.get(&bucket).unwrap_or(&nobody);
                self.publish_noisy_bucket((number, bucket), (&scale, least_count), &key, contributions);
            }
        }
    }

    /// New buckets that end by `until`, and their smallest published count.
    ///
    /// Which buckets are evaluated must not depend on one subject. Up to [`MAX_RANGE_BUCKETS`] all are, also empty ones.
    /// In a larger range, only those with a crowd are; the publication of one at the boundary is then so improbable
    /// that it does not exceed δ ([`NoiseScale::min_count_of_sparse_range`]).
    fn evaluated_buckets(
        &self,
        series: usize,
        until: i64,
        people: &BTreeMap<i64, NoisyContributions>,
        scale: &NoiseScale,
    ) -> (Vec<i64>, i64) {
        let every_ms = self.terms.series[series].every_ms;
        let crowd = self.terms.cohorts.crowd;
        let closed_ms = self.head.closed_ms[series];
        let first = Some(closed_ms).filter(|closed| *closed > i64::MIN).or_else(|| self.first_bucket(people));
        let first = first.filter(|first| *first < until);
        let Some(first) = first else { return (Vec::new(), scale.min_published_count(crowd)) };
        let buckets = until.saturating_sub(first) / every_ms;
        if buckets <= MAX_RANGE_BUCKETS {
            return ((0..buckets).map(|at| first + at * every_ms).collect(), scale.min_published_count(crowd));
        }
        let crowded = people.range(first..).filter(|(bucket, of)| **bucket + every_ms <= until && of.len() >= crowd);
        (crowded.map(|(bucket, _)| *bucket).collect(), scale.min_count_of_sparse_range(crowd))
    }

    fn first_bucket(&self, people: &BTreeMap<i64, NoisyContributions>) -> Option<i64> {
        let mut seen: BTreeSet<u64> = BTreeSet::new();
        people.iter().find_map(|(bucket, contributions)| {
            seen.extend(contributions.keys());
            (seen.len() >= self.terms.cohorts.crowd).then_some(*bucket)
        })
    }

    fn publish_noisy_bucket(
        &mut self,
        (series, bucket): (usize, i64),
        (scale, least_count): (&NoiseScale, i64),
        key: &NoiseKey,
        contributions: &NoisyContributions,
    ) {
        let terms = &self.terms.series[series];
        let is_within_budget = self.spend_budget((series, bucket), scale);
        let mut represented: BTreeSet<u64> = BTreeSet::new();
        for (at, signal) in terms.signals.iter().enumerate() {
            let exact = ExactSum::from_contributions(contributions, at, signal.range);
            let noisy = exact.with_noise(key, scale, &noise_place(terms, signal, bucket));
            if !is_within_budget || noisy.count < least_count {
                self.head.counts[series].too_few += 1;
                continue;
            }
            let mean = noisy_mean(noisy.sum, noisy.count, signal.range);
            self.rows.push(SeriesRow {
                series,
                cohort: None,
                stratum: None,
                bucket,
                signal: at,
                sets: Vec::new(),
                n: noisy.count.unsigned_abs(),
                statistic: RowStatistic::Noisy(NoisyStatistic { mean, sum: noisy.sum }),
                filled: 0.0,
            });
            self.head.counts[series].rows += 1;
            let present = contributions.iter().filter(|(_, open)| open.partials[at].value(signal.range).is_some());
            represented.extend(present.map(|(subject, _)| *subject));
        }
        for (subject, open) in contributions {
            let records = u64::from(open.records);
            self.head.counts[series].records += records;
            self.head.counts[series].represented += if represented.contains(subject) { records } else { 0 };
        }
        for subject in represented {
            if self.person(subject).is_some_and(|person| !person.is_in_noise) {
                self.person_mut(subject).is_in_noise = true;
                self.head.noise_people += 1;
            }
        }
    }

    /// Returns false if the week's remaining budget is too small.
    fn spend_budget(&mut self, (series, bucket): (usize, i64), scale: &NoiseScale) -> bool {
        let cost = scale.cell_rho * self.terms.series[series].signals.len() as f64;
        let (week, spent) = (week_of(bucket), &mut self.head.noise[series]);
        if week > spent.week {
            *spent = WeekSpent { week, rho: 0.0 };
        }
        let is_within = week == spent.week && spent.rho + cost <= scale.weekly_rho * (1.0 + 1e-9);
        spent.rho += if is_within { cost } else { 0.0 };
        is_within
    }
}

#[cfg(test)]
#[path = "noise_tests.rs"]
mod tests;
