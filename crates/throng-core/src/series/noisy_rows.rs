//! Counts and means with (ε, δ)-differential privacy per subject and week (docs/internals/methods.md §13).
//!
//! Every subject with a value counts. A bucket with fewer subjects than the crowd has no row; otherwise the noisy count
//! decides.

use super::batch_step::SeriesBatchStep;
use super::gaussian_noise::NoiseKey;
use super::noise_budget::{NoiseScale, noisy_mean, to_grid, week_of};
use super::published_row::{NoisyStatistic, RowStatistic, SeriesRow};
use super::state::{OpenBucket, WeekSpent};
use super::terms::{SeriesSignal, SeriesTerms};
use std::collections::{BTreeMap, BTreeSet};

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
    /// Publishes due noisy buckets and removes them from `due`.
    pub(super) fn close_noisy_buckets(&mut self, due: &mut BTreeMap<(i64, usize, i64), NoisyContributions>) {
        let terms = self.terms;
        if terms.series.iter().all(|series| series.noise.is_none()) {
            return;
        }
        let key = NoiseKey::new(self.draw);
        for (number, series) in terms.series.iter().enumerate() {
            let Some(noise) = &series.noise else { continue };
            let scale = noise.scale(series);
            let of_series = due.extract_if(.., |(_, of, _), _| *of == number);
            // With or without one subject, the evaluated buckets differ only in buckets of exactly a crowd with that
            // subject, all in the subject's week. Their rows are too improbable to exceed δ (`min_published_count`).
            let crowd = terms.cohorts.crowd;
            for (bucket, contributions) in of_series.map(|((.., bucket), of)| (bucket, of)).collect::<Vec<_>>() {
                if contributions.len() < crowd {
                    let records = contributions.values().map(|open| u64::from(open.records));
                    self.head.counts[number].records += records.sum::<u64>();
                    self.head.counts[number].too_few += series.signals.len() as u64;
                    continue;
                }
                self.publish_noisy_bucket((number, bucket), &scale, &key, &contributions);
            }
        }
    }

    fn publish_noisy_bucket(
        &mut self,
        (series, bucket): (usize, i64),
        scale: &NoiseScale,
        key: &NoiseKey,
        contributions: &NoisyContributions,
    ) {
        let terms = &self.terms.series[series];
        let is_within_budget = self.spend_budget((series, bucket), scale);
        let least_count = scale.min_published_count(self.terms.cohorts.crowd);
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
