//! Reference implementation of docs/internals/methods.md §13: loops without state. Its rows must equal those of the
//! product.

#[path = "twin_moments_tests.rs"]
mod moments;
#[path = "twin_statistics_tests.rs"]
mod statistics;

use super::*;
use crate::values::canonical::Rounding;
use crate::values::digest::mix;
use crate::values::hierarchy::Ruler;
use proptest::prelude::*;
use statistics::{is_dominated, is_small_rest, reference_quantile, reference_shares, reference_step};
use std::collections::{BTreeMap, BTreeSet};

const WIDTHS: [i32; 3] = [10, 40, 200];

/// Subject, time, two values (NaN if missing).
type ReferenceRecord = (u64, i64, [f64; 2]);

/// Series, bucket, signal, cohort, stratum, interval or other signal.
type ReferenceRowName = (usize, i64, usize, Option<String>, Option<Vec<String>>, Option<String>);

const EPOCH_MS: i64 = 5 * DAY_MS;

fn terms(crowd: usize, size: usize, strata: usize, pooled_model: bool) -> AllSeriesTerms {
    let signal = |attribute: usize| {
        let range = if attribute == 0 { (-20.0, 90.0) } else { (-1_000.0, 1_000.0) };
        let widths = WIDTHS.map(f64::from);
        let intervals = Ruler::from_widths(true, Rounding::None, range, 0.0, &widths).ok();
        SeriesSignal { attribute, name: format!("s{attribute}"), unit: None, range, intervals }
    };
    let series = |name: &str, every_ms, cycle, pooled, signals: &[usize]| SeriesTerms {
        name: name.to_owned(),
        every_ms,
        every: "x".to_owned(),
        cycle,
        signals: signals.iter().map(|at| signal(*at)).collect(),
        lateness_ms: 0,
        pooled,
        min_values: if cycle.is_some() { 1 } else { 4 },
        moments: None,
        noise: None,
    };
    let model = SeriesTerms { min_values: 3, ..series("model", DAY_MS, None, pooled_model, &[0, 1]) };
    AllSeriesTerms {
        cohorts: CohortTerms {
            crowd,
            colluders: crowd / 4,
            size,
            warm_up_days: 0,
            idle_ms: 3 * DAY_MS,
            strata: (0..strata).map(|at| (at + 2, 0)).collect(),
            strata_names: (0..strata).map(|at| format!("stratum{at}")).collect(),
            time: 4,
            max_histories: 1 << 20,
            is_batch: true,
        },
        series: vec![
            series("daily", DAY_MS, None, false, &[0, 1]),
            series("halves", DAY_MS / 2, None, true, &[1]),
            series("week", 7 * DAY_MS, Some(SlotCycle::DayOfWeek), false, &[0]),
            SeriesTerms { moments: Some(MomentTerms { every_ms: EPOCH_MS, every: "x".to_owned() }), ..model },
        ],
    }
}

fn records(seed: u64, people: u64, days: i64) -> Vec<ReferenceRecord> {
    let mut records = Vec::new();
    for person in 1..=people {
        let habit = mix(seed ^ person);
        let (first, last) = (habit as i64 & 7, days - (habit >> 8) as i64 % 9);
        for half in first * 2..last * 2 {
            let draw = mix(habit ^ half as u64);
            if draw.is_multiple_of(2 + habit % 5) {
                continue;
            }
            // The fraction keeps sums away from dominance thresholds, where the order of additions decides.
            let value = ((draw >> 16) % 100 + habit % 50) as f64 + ((draw >> 30) % 99_991) as f64 * 1.7e-6;
            let is_missing = (draw >> 40).is_multiple_of(if habit.is_multiple_of(4) { 1 } else { 5 }) && half != 9;
            let is_missing = is_missing && !seed.is_multiple_of(3);
            let first = if is_missing { f64::NAN } else { value };
            // Values near 0 let a large one dominate.
            let second = match half % 6 {
                // The second value is a function of the first except for few subjects.
                _ if seed.is_multiple_of(3) => 2.0 * value + if person.is_multiple_of(6) { 30.0 } else { 0.0 },
                5 if (draw >> 45).is_multiple_of(9) => 900.0,
                5 => (value - 75.0) / 20.0,
                _ => value - 45.0,
            };
            records.push((person, half * DAY_MS / 2 + (draw >> 24) as i64 % (DAY_MS / 2), [first, second]));
        }
    }
    records
}

fn draw(number: u128) -> u128 {
    u128::from(mix(number as u64)) << 64 | u128::from(mix(number as u64 ^ 1) ^ (number >> 100) as u64)
}

struct ReferenceSeries<'a> {
    terms: &'a AllSeriesTerms,
    people: BTreeSet<u64>,
    buckets: Vec<BTreeSet<i64>>,
    values: BTreeMap<(usize, u64, i64, usize), f64>,
    is_stratified: bool,
}

struct ReferenceCohort {
    token: String,
    stratum: Vec<String>,
    atoms: Vec<Vec<u64>>,
}

impl<'a> ReferenceSeries<'a> {
    fn new(terms: &'a AllSeriesTerms, records: &[ReferenceRecord]) -> Self {
        let mut sums: BTreeMap<(usize, u64, i64, usize), (f64, f64)> = BTreeMap::new();
        let mut buckets = vec![BTreeSet::new(); terms.series.len()];
        // Drop buckets that no crowd has reached.
        let mut latest: BTreeMap<u64, i64> = BTreeMap::new();
        for (person, time, _) in records {
            let known = latest.entry(*person).or_insert(*time);
            *known = (*known).max(*time);
        }
        let mut latest: Vec<i64> = latest.into_values().collect();
        latest.sort_unstable();
        let reached = latest.iter().rev().nth(terms.cohorts.crowd - 1);
        for (person, time, values) in records {
            for (at, series) in terms.series.iter().enumerate() {
                if reached.is_none_or(|reached| series.end(series.bucket(*time)) > series.end(series.bucket(*reached)))
                {
                    continue;
                }
                buckets[at].insert(series.bucket(*time));
                for (number, signal) in series.signals.iter().enumerate() {
                    let value = values[signal.attribute].clamp(signal.range.0, signal.range.1);
                    if !value.is_nan() {
                        let sum = sums.entry((at, *person, series.bucket(*time), number)).or_default();
                        *sum = (sum.0 + value, sum.1 + 1.0);
                    }
                }
            }
        }
        // With moments, only complete rows count.
        let all = sums.clone();
        sums.retain(|(at, person, bucket, _), _| {
            let has = |signal: usize| all.contains_key(&(*at, *person, *bucket, signal));
            terms.series[*at].moments.is_none() || (0..terms.series[*at].signals.len()).all(has)
        });
        let mean = |(key, (sum, count)): ((usize, u64, i64, usize), (f64, f64))| (key, sum / count);
        Self {
            terms,
            people: records.iter().map(|record| record.0).collect(),
            buckets,
            values: sums.into_iter().map(mean).collect(),
            is_stratified: !terms.cohorts.strata.is_empty(),
        }
    }

    fn history(&self, person: u64, series: usize, slot: usize, signal: usize) -> Vec<(i64, f64)> {
        let terms = &self.terms.series[series];
        let in_slot = self.buckets[series].iter().filter(|bucket| terms.slot(**bucket) == slot);
        in_slot.filter_map(|b| Some((*b, *self.values.get(&(series, person, *b, signal))?))).collect()
    }

    fn channels(&self) -> Vec<(usize, usize, usize)> {
        let of_series = |(at, series): (usize, &SeriesTerms)| {
            let signals = if series.moments.is_some() { 1 } else { series.signals.len() };
            let slots = series.cycle.map_or(1, SlotCycle::slots);
            (0..slots).flat_map(move |slot| (0..signals).map(move |signal| (at, slot, signal))).collect::<Vec<_>>()
        };
        self.terms.series.iter().enumerate().flat_map(of_series).collect()
    }

    fn reaches_min_values(&self, person: u64, (series, slot, signal): (usize, usize, usize)) -> bool {
        if self.terms.series[series].moments.is_some() {
            return !self.rows_by_epoch(person, series).is_empty();
        }
        self.history(person, series, slot, signal).len() >= self.terms.series[series].min_values as usize
    }

    fn blocks<'b>(&self, terms: &SeriesTerms, cohorts: &'b [ReferenceCohort]) -> Vec<Vec<&'b ReferenceCohort>> {
        let mut blocks: BTreeMap<(&[String], usize), Vec<&ReferenceCohort>> = BTreeMap::new();
        for (at, cohort) in cohorts.iter().enumerate() {
            blocks.entry((&cohort.stratum, if terms.pooled { 0 } else { at })).or_default().push(cohort);
        }
        blocks.into_values().collect()
    }

    fn presence_features(&self, person: u64) -> Vec<f32> {
        let mut due: Vec<(i64, usize, i64)> = Vec::new();
        for (series, buckets) in self.buckets.iter().enumerate() {
            due.extend(buckets.iter().map(|bucket| (self.terms.series[series].end(*bucket), series, *bucket)));
        }
        due.sort_unstable();
        let (first, last) = (due[0].0, due[due.len() - 1].0);
        let part = |end: i64| (((end - first) as f64 / (last - first).max(1) as f64 * 128.0) as usize).min(127);
        let mut presence = vec![0.0; 2 * 128];
        for (end, series, bucket) in &due {
            let buckets = due.iter().filter(|other| other.1 == *series && part(other.0) == part(*end)).count();
            for (number, signal) in self.terms.series[*series].signals.iter().enumerate() {
                if self.values.contains_key(&(*series, person, *bucket, number)) {
                    presence[part(*end) * 2 + signal.attribute] += 1.0 / buckets as f32;
                }
            }
        }
        presence
    }

    fn cohorts(&self) -> Vec<ReferenceCohort> {
        let terms = &self.terms.cohorts;
        let channels = self.channels();
        let mut pools: BTreeMap<Vec<String>, Vec<u64>> = BTreeMap::new();
        for person in &self.people {
            if channels.iter().any(|channel| self.reaches_min_values(*person, *channel)) {
                pools.entry(stratum(*person, self.is_stratified)).or_default().push(*person);
            }
        }
        let mut cohorts = Vec::new();
        for (stratum, mut pool) in pools {
            let wearers = |channel| pool.iter().filter(|person| self.reaches_min_values(**person, channel)).count();
            let mut order: Vec<(i64, usize)> = Vec::new();
            for (at, channel) in channels.iter().enumerate() {
                order.push(((2 * wearers(*channel) as i64 - pool.len() as i64).abs(), at));
            }
            order.sort_unstable();
            pool.sort_by_key(|person| {
                let firsts = channels.iter().filter_map(|c| self.history(*person, c.0, c.1, c.2).first().map(|f| f.0));
                let worn: Vec<bool> =
                    order.iter().map(|(_, at)| self.reaches_min_values(*person, channels[*at])).collect();
                (firsts.min(), worn, draw(u128::from(*person)))
            });
            let size = terms.size.min(pool.len());
            if size < terms.crowd {
                continue;
            }
            for cohort in self.group_by_definition(&pool, size) {
                let smallest = terms.crowd.max(cohort.len() / 16 + 1);
                let mut atoms = self.group_by_definition(&cohort, smallest);
                atoms.iter_mut().for_each(|atom| atom.sort_unstable());
                let token = format!("{:016x}", draw(cohorts.len() as u128 | 1 << 100) as u64);
                cohorts.push(ReferenceCohort { token, stratum: stratum.clone(), atoms });
            }
        }
        cohorts
    }

    /// MDAV by its definition.
    fn group_by_definition(&self, pool: &[u64], size: usize) -> Vec<Vec<u64>> {
        let features: Vec<Vec<f32>> = pool.iter().map(|person| self.presence_features(*person)).collect();
        let distance = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(a - b).powi(2)).sum::<f64>();
        let mut left: Vec<usize> = (0..pool.len()).collect();
        let mut groups: Vec<Vec<usize>> = Vec::new();
        while left.len() >= 2 * size {
            let sum = |at: usize| left.iter().map(|person| f64::from(features[*person][at])).sum::<f64>();
            let center: Vec<f32> = (0..features[0].len()).map(|at| (sum(at) / left.len() as f64) as f32).collect();
            let mut farthest = left[0];
            for person in &left {
                if distance(&features[*person], &center) > distance(&features[farthest], &center) {
                    farthest = *person;
                }
            }
            left.sort_by(|a, b| {
                let to = |person: usize| distance(&features[person], &features[farthest]);
                to(*a).total_cmp(&to(*b)).then(a.cmp(b))
            });
            groups.push(left.drain(..size).collect());
            left.sort_unstable();
        }
        groups.push(left);
        groups.into_iter().map(|group| group.into_iter().map(|at| pool[at]).collect()).collect()
    }

    /// True if measured in the bucket.
    fn contribution(&self, person: u64, series: usize, bucket: i64, signal: usize) -> (f64, bool) {
        let terms = &self.terms.series[series];
        let history = self.history(person, series, terms.slot(bucket), signal);
        let past: Vec<(i64, f64)> = history.iter().copied().filter(|(at, _)| *at < bucket).collect();
        if let Some((_, value)) = history.iter().find(|(at, _)| *at == bucket) {
            return (*value, true);
        }
        let Some((last_bucket, last)) = past.last() else { return (history[0].1, false) };
        let center = past.iter().map(|(_, value)| value).sum::<f64>() / past.len() as f64;
        let missed = terms.windows_between(*last_bucket, bucket) as i32;
        (center + 0.5_f64.powi(missed) * (last - center), false)
    }

    /// Unrounded rows: buckets, then moments.
    fn rows(&self) -> Vec<ReferenceRow> {
        let crowd = self.terms.cohorts.crowd;
        let cohorts = self.cohorts();
        let mut due: Vec<(i64, usize, i64)> = Vec::new();
        for (series, buckets) in self.buckets.iter().enumerate() {
            due.extend(buckets.iter().map(|bucket| (self.terms.series[series].end(*bucket), series, *bucket)));
        }
        due.sort_unstable();
        let mut rows = Vec::new();
        for (_, series, bucket) in due {
            let terms = &self.terms.series[series];
            if terms.moments.is_some() {
                continue;
            }
            for block in self.blocks(terms, &cohorts) {
                let mut means: Vec<(Vec<u64>, Vec<f64>)> = Vec::new();
                for signal in 0..terms.signals.len() {
                    let channel = (series, terms.slot(bucket), signal);
                    let is_whole =
                        |atom: &&Vec<u64>| atom.iter().all(|person| self.reaches_min_values(*person, channel));
                    let members = block.iter().flat_map(|cohort| cohort.atoms.iter().filter(is_whole)).flatten();
                    let people: Vec<u64> = members.copied().collect();
                    let contributions: Vec<(f64, bool)> =
                        people.iter().map(|person| self.contribution(*person, series, bucket, signal)).collect();
                    let values: Vec<f64> = contributions.iter().map(|(value, _)| *value).collect();
                    let present = contributions.iter().filter(|(_, is_present)| *is_present).count();
                    let n = values.len() as f64;
                    if present < crowd {
                        continue;
                    }
                    let cohort = (!terms.pooled).then(|| block[0].token.clone());
                    let name = |label| (series, bucket, signal, cohort.clone(), Some(block[0].stratum.clone()), label);
                    let row = |label: Option<String>, shown: ReferenceStatistic| ReferenceRow {
                        name: name(label),
                        n: values.len() as u64,
                        filled: (n - present as f64) / n,
                        expected_statistic: shown,
                    };
                    let mean = values.iter().sum::<f64>() / n;
                    let sd = (values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0)).sqrt();
                    let range = terms.signals[signal].range;
                    let is_given_away = means
                        .iter()
                        .any(|(of, before)| *of == people && is_small_rest(before, &values, &self.terms.cohorts));
                    if sd <= 1e-9 || is_given_away || is_dominated(&values, range, self.terms.cohorts.colluders) {
                        let shares = reference_shares(&contributions, range, crowd);
                        rows.extend(
                            shares.into_iter().map(|(label, share)| row(Some(label), ReferenceStatistic::Share(share))),
                        );
                    } else {
                        means.push((people, values.clone()));
                        let quartiles = (values.len() >= 2 * crowd)
                            .then(|| [0.25, 0.5, 0.75].map(|share| reference_quantile(&values, share, crowd)));
                        rows.push(row(None, ReferenceStatistic::Mean { mean, sd, quartiles }));
                    }
                }
            }
        }
        for series in (0..self.terms.series.len()).filter(|at| self.terms.series[*at].moments.is_some()) {
            rows.extend(self.expected_moments(series, &cohorts));
        }
        rows
    }
}

#[derive(Debug)]
struct ReferenceRow {
    name: ReferenceRowName,
    n: u64,
    filled: f64,
    expected_statistic: ReferenceStatistic,
}

#[derive(Debug)]
enum ReferenceStatistic {
    Mean {
        mean: f64,
        sd: f64,
        quartiles: Option<[f64; 3]>,
    },
    Share(f64),
    /// Mean and covariance with their steps.
    Moment {
        mean: Option<(f64, f64)>,
        covariance: f64,
        step: f64,
    },
}

impl ReferenceRow {
    fn matches_row(&self, row: &SeriesRow) -> bool {
        let is_near = row.n == self.n && (row.filled - self.filled).abs() <= 0.05 + 1e-9;
        is_near
            && match (&self.expected_statistic, &row.statistic) {
                (ReferenceStatistic::Mean { mean, sd, quartiles }, RowStatistic::Mean(shown)) => {
                    let step_of = |sd: f64| reference_step(sd / (2.0 * (self.n as f64).sqrt())).unwrap_or(f64::NAN);
                    let step = step_of(shown.sd);
                    let pairs = shown.quartiles.into_iter().flatten().zip(quartiles.iter().flatten().copied());
                    shown.quartiles.is_some() == quartiles.is_some()
                        && is_rounded(shown.sd, *sd, step_of(*sd))
                        && [(shown.mean, *mean)]
                            .into_iter()
                            .chain(pairs)
                            .all(|(shown, exact)| is_rounded(shown, exact, step))
                }
                (ReferenceStatistic::Share(share), RowStatistic::Bin { share: shown, .. }) => {
                    is_rounded(*shown, *share, 0.01)
                }
                (ReferenceStatistic::Moment { mean, covariance, step }, RowStatistic::Moment(shown)) => {
                    let pairs = shown.mean.zip(*mean);
                    shown.mean.is_some() == mean.is_some()
                        && pairs.is_none_or(|(shown, (exact, step))| is_rounded(shown, exact, step))
                        && is_rounded(shown.covariance, *covariance, *step)
                }
                _ => false,
            }
    }
}

fn stratum(person: u64, is_stratified: bool) -> Vec<String> {
    vec![(person % 2).to_string(); usize::from(is_stratified)]
}

/// Half steps may be rounded in either direction.
fn is_rounded(shown: f64, exact: f64, step: f64) -> bool {
    let multiple = shown / step;
    (shown - exact).abs() <= step * (0.5 + 1e-9) + 1e-9 && (multiple - multiple.round()).abs() < 1e-6
}

fn combined_rows(rows: &[&SeriesRow], is_pooled: bool, is_stratified: bool) -> Vec<ReferenceRow> {
    let means: Vec<(&SeriesRow, MeanStatistic)> =
        rows.iter().filter_map(|row| Some((*row, row.mean_statistic()?))).collect();
    let strata: BTreeSet<Option<Vec<String>>> = means.iter().map(|(row, _)| row.stratum.clone()).collect();
    let mut whole: Vec<Option<Vec<String>>> = if is_pooled { Vec::new() } else { strata.into_iter().collect() };
    whole.extend((is_stratified && !means.is_empty()).then_some(None));
    let of = |stratum: Option<Vec<String>>| {
        let parts: Vec<(&SeriesRow, MeanStatistic)> =
            means.iter().copied().filter(|(row, _)| stratum.is_none() || row.stratum == stratum).collect();
        let weight = |row: &SeriesRow| row.n as f64 * f64::max(1.0 - row.filled, 0.1);
        let total: f64 = parts.iter().map(|(row, _)| weight(row)).sum();
        let mean = parts.iter().map(|(row, shown)| weight(row) * shown.mean).sum::<f64>() / total;
        let square = |shown: &MeanStatistic| shown.sd.powi(2) + (shown.mean - mean).powi(2);
        let variance = parts.iter().map(|(row, shown)| weight(row) * square(shown)).sum::<f64>() / total;
        let n = parts.iter().map(|(row, _)| row.n).sum::<u64>();
        let filled = parts.iter().map(|(row, _)| row.filled * row.n as f64).sum::<f64>() / n as f64;
        let first = parts[0].0;
        ReferenceRow {
            name: (first.series, first.bucket, first.signal, None, stratum, None),
            n,
            filled,
            expected_statistic: ReferenceStatistic::Mean { mean, sd: variance.sqrt(), quartiles: None },
        }
    };
    whole.into_iter().map(of).collect()
}

fn reference_name(row: &SeriesRow) -> ReferenceRowName {
    let label = match &row.statistic {
        RowStatistic::Bin { label, .. } => Some(label.clone()),
        RowStatistic::Moment(moment) => Some(format!("with {}", moment.with)),
        RowStatistic::Mean(_) | RowStatistic::Noisy(_) => None,
    };
    (row.series, row.bucket, row.signal, row.cohort.clone(), row.stratum.clone(), label)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, ..ProptestConfig::default() })]

    #[test]
    fn file_rows_equal_reference_rows(
        seed in any::<u64>(), people in 0_u64..28, days in 1_i64..20, crowd in 2_usize..4, more in 0_usize..6, strata in 0_usize..2,
        pooled_model in any::<bool>(),
    ) {
        let terms = terms(crowd, crowd + more, strata, pooled_model);
        let records = records(seed, people, days);
        let readings = SeriesReadings {
            subjects: records.iter().map(|record| record.0).collect(),
            times: records.iter().map(|record| Some(record.1)).collect(),
            values: (0..2).map(|at| records.iter().map(|record| record.2[at]).collect()).collect(),
            strata: records.iter().map(|record| (record.0, stratum(record.0, strata > 0))).collect(),
            received: None,
        };
        let proposal = propose_series(&terms, &SeriesState::new(&terms), &readings, None, true, &draw);
        let expected = if records.is_empty() { Vec::new() } else { ReferenceSeries::new(&terms, &records).rows() };
        let (own, derived): (Vec<&SeriesRow>, Vec<&SeriesRow>) = proposal.rows.iter().partition(|row| !row.sets.is_empty());
        let mut by_bucket: BTreeMap<(usize, i64, usize), Vec<&SeriesRow>> = BTreeMap::new();
        own.iter().for_each(|row| by_bucket.entry((row.series, row.bucket, row.signal)).or_default().push(row));
        let of_several = by_bucket
            .into_iter()
            .flat_map(|((series, ..), rows)| combined_rows(&rows, terms.series[series].pooled, strata > 0));
        for (expected, rows) in [(of_several.collect(), derived), (expected, own)] {
            let mut shown: BTreeMap<ReferenceRowName, &SeriesRow> = rows.iter().map(|row| (reference_name(row), *row)).collect();
            prop_assert_eq!(shown.len(), rows.len(), "a row leaves twice");
            for row in &expected {
                let found = shown.remove(&row.name);
                prop_assert!(found.is_some_and(|found| row.matches_row(found)), "{:?} is shown as {:?}", row, found);
            }
            prop_assert!(shown.is_empty(), "unexpected: {:?}", shown);
        }
    }
}

#[test]
fn reference_files_contain_hard_cases() {
    let (mut rows, mut binned, mut carried, mut quartiles, mut withheld, mut split) = (0, 0, 0, 0, 0, 0);
    let (mut moments, mut filled_moments) = (0, 0);
    for seed in 0..40 {
        let terms = terms(3, 7, (seed % 2) as usize, false);
        let twin = ReferenceSeries::new(&terms, &records(seed, 27, 19));
        let (of_epochs, expected): (Vec<ReferenceRow>, Vec<ReferenceRow>) =
            twin.rows().into_iter().partition(|row| row.name.0 == 3);
        moments += of_epochs.len();
        filled_moments += of_epochs.iter().filter(|row| row.filled > 0.0).count();
        let cells = twin
            .values
            .keys()
            .filter(|(series, ..)| *series < 3)
            .map(|(series, _, bucket, signal)| (*series, *bucket, *signal));
        withheld += cells.collect::<BTreeSet<_>>().len();
        let shown = expected.iter().map(|row| (row.name.0, row.name.1, row.name.2));
        withheld -= shown.collect::<BTreeSet<_>>().len();
        rows += expected.len();
        carried += expected.iter().filter(|row| row.filled > 0.0).count();
        quartiles += expected
            .iter()
            .filter(|row| matches!(row.expected_statistic, ReferenceStatistic::Mean { quartiles: Some(_), .. }))
            .count();
        binned += expected.iter().filter(|row| row.name.5.is_some()).count();
        let members: BTreeMap<&ReferenceRowName, u64> = expected.iter().map(|row| (&row.name, row.n)).collect();
        let in_series = |series: usize| members.iter().filter(|(name, _)| name.0 == series).map(|(_, n)| *n).max();
        split += usize::from(in_series(0) != in_series(2));
    }
    assert!(moments > 150 && filled_moments > 30, "{moments} rows of moments, {filled_moments} filled");
    let counts = format!(
        "{rows} rows, {binned} binned, {carried} carried, {quartiles} with quartiles, {withheld} withheld, {split} split"
    );
    assert!(rows > 2_000 && binned > 20 && carried > 500 && quartiles > 300 && withheld > 300 && split > 5, "{counts}");
}
