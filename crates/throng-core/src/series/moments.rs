//! First and second moments of all signals over a contributor set (docs/internals/methods.md §13).
//!
//! A subject has weight one and contributes means over at least `min_values` rows of an epoch. Rows of buckets are not
//! published: subtracted from an epoch's mean, they would reveal subjects with few rows.

use super::batch_step::{SeriesBatchStep, SubjectPreview};
use super::nested_signals::reveals_small_rest;
use super::published_row::{MomentStatistic, RowStatistic};
use super::state::{MomentEpochs, OpenBucket, SubjectMoments};
use super::statistics::{is_dominated, is_largest_dominant, largest_round_step, round_to_step};
use super::terms::{SeriesTerms, moment_count};
use std::collections::BTreeMap;

/// Largest rounding step, relative to a deviation or a product of two.
const MAX_STEP_SHARE: f64 = 1e-3;
/// Smaller variances, relative to the mean square, are floating-point error.
const MIN_RELATIVE_VARIANCE: f64 = 1e-10;

/// Requires `first` ≤ `second`.
fn product_index(signals: usize, first: usize, second: usize) -> usize {
    signals + first * signals - first * first.saturating_sub(1) / 2 + (second - first)
}

impl SubjectMoments {
    /// Adds a row. Discards an earlier epoch with fewer than `least` rows.
    pub(super) fn add(&mut self, epoch: i64, values: &[f64], records: u32, least: u32) {
        if self.rows > 0 && self.epoch != epoch {
            if self.rows >= least {
                self.past = self.mean_of_epochs(least);
                self.epochs += 1;
            }
            (self.rows, self.records, self.sums) = (0, 0, Vec::new());
        }
        self.epoch = epoch;
        self.rows += 1;
        self.records = self.records.saturating_add(records);
        self.sums.resize(moment_count(values.len()), 0.0);
        let products = values.iter().enumerate().flat_map(|(at, first)| values[at..].iter().map(move |x| first * x));
        for (sum, value) in self.sums.iter_mut().zip(values.iter().copied().chain(products)) {
            *sum += value;
        }
    }

    pub(super) fn means_of_epoch(&self, epoch: i64, least: u32) -> Option<Vec<f64>> {
        (self.rows >= least && self.epoch == epoch).then(|| self.means())
    }

    fn means(&self) -> Vec<f64> {
        self.sums.iter().map(|sum| sum / f64::from(self.rows)).collect()
    }

    /// Mean over all epochs with at least `least` rows; empty without any.
    pub(super) fn mean_of_epochs(&self, least: u32) -> Vec<f64> {
        if self.rows < least {
            return self.past.clone();
        }
        let means = self.means();
        if self.epochs == 0 {
            return means;
        }
        let epochs = f64::from(self.epochs);
        self.past.iter().zip(means).map(|(past, mean)| (past * epochs + mean) / (epochs + 1.0)).collect()
    }
}

/// Means over subjects; covariances with denominator n.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PooledMoments {
    pub means: Vec<f64>,
    pub squares: Vec<f64>,
    pub covariances: BTreeMap<(usize, usize), f64>,
}

pub(super) fn pool_moments(members: &[Vec<f64>], signals: usize) -> PooledMoments {
    let mean = |at: usize| members.iter().map(|moments| moments[at]).sum::<f64>() / members.len() as f64;
    let means: Vec<f64> = (0..signals).map(mean).collect();
    let squares = (0..signals).map(|signal| mean(product_index(signals, signal, signal))).collect();
    let pairs = (0..signals).flat_map(|first| (first..signals).map(move |second| (first, second)));
    let covariance =
        |(first, second): (usize, usize)| mean(product_index(signals, first, second)) - means[first] * means[second];
    let covariances = pairs.map(|pair| (pair, covariance(pair))).collect();
    PooledMoments { means, squares, covariances }
}

/// Omits dominated signals and pairs, and signals that reveal the rest of few subjects.
pub(super) fn moment_rows(
    members: &[Vec<f64>],
    ranges: &[(f64, f64)],
    (crowd, colluders): (usize, usize),
) -> Vec<(usize, RowStatistic)> {
    let signals = ranges.len();
    let PooledMoments { means, squares, covariances } = pool_moments(members, signals);
    let is_sum_dominated = |signal: usize| {
        let values: Vec<f64> = members.iter().map(|moments| moments[signal]).collect();
        is_dominated(&values, ranges[signal], colluders)
    };
    let is_pair_dominated = |first: usize, second: usize| {
        is_product_dominated(members, (ranges[first], ranges[second]), (first, second), &means, colluders)
    };
    let variance = |signal: usize| {
        let variance = covariances[&(signal, signal)];
        // Without a range, squares can overflow.
        let varies = variance.is_finite() && variance > MIN_RELATIVE_VARIANCE * squares[signal];
        let step = largest_round_step(variance * MAX_STEP_SHARE).filter(|_| varies)?;
        let is_shown = !is_sum_dominated(signal) && !is_pair_dominated(signal, signal);
        is_shown.then(|| round_to_step(variance, step))
    };
    let mut variances: Vec<Option<f64>> = (0..signals).map(variance).collect();
    let values = |signal: usize| members.iter().map(|moments| moments[signal]).collect::<Vec<f64>>();
    for signal in 1..signals {
        let before = (0..signal).filter(|before| variances[*before].is_some());
        let of_signal = values(signal);
        let mut others = before.map(values);
        if variances[signal].is_some() && others.any(|other| reveals_small_rest(&other, &of_signal, crowd, colluders)) {
            variances[signal] = None;
        }
    }
    let mut rows = Vec::new();
    for (&(first, second), &covariance) in &covariances {
        let (Some(one), Some(other)) = (variances[first], variances[second]) else { continue };
        let deviation = one.sqrt() * other.sqrt();
        let Some(step) = largest_round_step(deviation * MAX_STEP_SHARE) else { continue };
        let statistic = if first == second {
            let mean = round_to_step(means[first], rounding_step_of_mean(one));
            MomentStatistic { with: second, mean: Some(mean), covariance: one }
        } else if is_pair_dominated(first, second) {
            continue;
        } else {
            MomentStatistic { with: second, mean: None, covariance: round_to_step(covariance, step) }
        };
        rows.push((first, RowStatistic::Moment(statistic)));
    }
    rows
}

/// Checks for products dominated from the means or a range end (from 0 without both ranges).
fn is_product_dominated(
    members: &[Vec<f64>],
    (one, other): ((f64, f64), (f64, f64)),
    (first, second): (usize, usize),
    means: &[f64],
    colluders: usize,
) -> bool {
    let product = product_index(means.len(), first, second);
    let ends = [(one.0, other.0), (one.1, other.1)];
    let are_known = ends.iter().all(|(a, b)| a.is_finite() && b.is_finite());
    let ends = if are_known { ends } else { [(0.0, 0.0); 2] };
    ends.into_iter().chain([(means[first], means[second])]).any(|(a, b)| {
        let distances =
            members.iter().map(|moments| moments[product] - a * moments[second] - b * moments[first] + a * b);
        is_largest_dominant(distances.map(f64::abs), colluders)
    })
}

fn rounding_step_of_mean(variance: f64) -> f64 {
    largest_round_step(variance.sqrt() * MAX_STEP_SHARE).unwrap_or(f64::MIN_POSITIVE)
}

impl SeriesBatchStep<'_> {
    pub(super) fn add_to_moments(&mut self, series: usize, bucket: i64, contributions: &BTreeMap<u64, OpenBucket>) {
        let terms = self.terms;
        let of_series = &terms.series[series];
        let Some(moments) = &of_series.moments else { return };
        let (epoch, channel) = (moments.epoch(bucket), terms.first_channel(series));
        let is_open = epoch >= self.head.epochs[series].closed_ms;
        let (records, warming_up) = self.count_records(contributions);
        if is_open {
            let epochs = &mut self.head.epochs[series];
            epochs.open = Some(epoch);
            (epochs.records, epochs.warming_up) = (epochs.records + records, epochs.warming_up + warming_up);
        } else {
            // The epoch ended with the input of an earlier job.
            self.head.counts[series].records += records;
            self.head.counts[series].warming_up += warming_up;
        }
        for (&subject, open) in contributions {
            let Some(values) = complete_row(of_series, open) else { continue };
            if is_open {
                let person = self.person_mut(subject);
                person.moments.resize(terms.series.len(), SubjectMoments::default());
                let moments = &mut person.moments[series];
                moments.add(epoch, &values, open.records, of_series.min_values);
                let most_rows = &mut person.histories[channel].values;
                *most_rows = moments.rows.max(*most_rows);
            }
        }
    }

    /// Closes the open epoch if `next` is later, or if it ends by `closed_ms`.
    pub(super) fn close_epoch(&mut self, series: usize, next: Option<i64>, closed_ms: i64) {
        let terms = self.terms;
        let of_series = &terms.series[series];
        let (Some(moments), Some(epoch)) = (&of_series.moments, self.head.epochs[series].open) else { return };
        let end_ms = epoch.saturating_add(moments.every_ms);
        let is_left = next.is_some_and(|bucket| moments.epoch(bucket) > epoch);
        if !is_left && of_series.end(of_series.bucket(end_ms - 1)) > closed_ms {
            return;
        }
        for block in self.cohort_blocks(of_series) {
            self.publish_moments(series, epoch, &block);
        }
        let MomentEpochs { records, warming_up, .. } = self.head.epochs[series];
        self.head.counts[series].records += records;
        self.head.counts[series].warming_up += warming_up;
        self.head.epochs[series] = MomentEpochs { closed_ms: end_ms, ..MomentEpochs::default() };
    }

    fn publish_moments(&mut self, series: usize, epoch: i64, block: &[u32]) {
        let of_series = &self.terms.series[series];
        let (channel, least) = (self.terms.first_channel(series), of_series.min_values);
        let sets: Vec<(u32, u16)> =
            block.iter().map(|&cohort| (cohort, self.contributor_set(of_series, cohort, channel))).collect();
        let (mut members, mut present, mut represented) = (Vec::new(), 0, 0);
        for &(number, atoms) in &sets {
            for subject in self.cohorts[&number].members(atoms) {
                let person = self.person(subject).and_then(|person| person.moments.get(series));
                let own = person.and_then(|moments| moments.means_of_epoch(epoch, least));
                present += usize::from(own.is_some());
                represented += own.as_ref().and(person).map_or(0, |moments| u64::from(moments.records));
                let known = || self.previews.get(&subject).and_then(|known| known.first_epoch_means(series, least));
                let past = || person.map(|moments| moments.mean_of_epochs(least)).filter(|past| !past.is_empty());
                // Every member of an atom has such an epoch.
                let Some(moments) = own.or_else(past).or_else(known) else { return };
                members.push(moments);
            }
        }
        if present < self.terms.cohorts.crowd {
            self.head.counts[series].too_few += u64::from(present > 0);
            return;
        }
        let ranges: Vec<(f64, f64)> = of_series.signals.iter().map(|signal| signal.range).collect();
        let rows = moment_rows(&members, &ranges, (self.terms.cohorts.crowd, self.terms.cohorts.colluders));
        if rows.is_empty() {
            self.head.counts[series].dominated += 1;
            return;
        }
        for (signal, statistic) in rows {
            let row = self.contributor_row(&sets, (series, epoch, signal), (members.len(), present), statistic);
            self.rows.push(row);
            self.head.counts[series].rows += 1;
        }
        self.head.counts[series].represented += represented;
        self.lock_sets(&sets, channel);
    }
}

impl SubjectPreview {
    /// Adds a row to series `series` of `count` unless an earlier epoch has enough. Returns the stored row count.
    pub(super) fn add_preview_row(
        &mut self,
        (series, count): (usize, usize),
        epoch: i64,
        values: &[f64],
        least: u32,
    ) -> u32 {
        self.moments.resize(count, SubjectMoments::default());
        let first = &mut self.moments[series];
        if first.rows < least || first.epoch == epoch {
            first.add(epoch, values, 0, least);
        }
        first.rows
    }

    fn first_epoch_means(&self, series: usize, least: u32) -> Option<Vec<f64>> {
        self.moments.get(series).filter(|first| first.rows >= least).map(SubjectMoments::means)
    }
}

/// Returns none if a signal has no value.
pub(super) fn complete_row(terms: &SeriesTerms, open: &OpenBucket) -> Option<Vec<f64>> {
    terms.moments.as_ref()?;
    terms.signals.iter().zip(&open.partials).map(|(signal, partial)| partial.value(signal.range)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::digest::mix;

    const UNBOUNDED: (f64, f64) = (f64::NEG_INFINITY, f64::INFINITY);

    fn people(number: u64, seed: u64) -> Vec<Vec<[f64; 3]>> {
        let uniform = |draw: u64| (mix(draw) >> 11) as f64 / (1_u64 << 53) as f64;
        let row = |person: u64, row: u64| {
            let draw = mix(seed ^ person << 16 ^ row << 8);
            let (a, b) = (60.0 + 20.0 * uniform(draw) + 10.0 * uniform(person), 5_000.0 * (1.0 + uniform(draw ^ 1)));
            [a, b, 3.0 + 0.4 * a - 0.002 * b + 8.0 * uniform(draw ^ 2)]
        };
        (0..number).map(|person| (0..=mix(seed ^ person) % 9).map(|at| row(person, at)).collect()).collect()
    }

    fn moments_of(rows: &[[f64; 3]]) -> Vec<f64> {
        let mut moments = SubjectMoments::default();
        rows.iter().for_each(|row| moments.add(0, row, 1, 1));
        moments.means_of_epoch(0, 1).expect("rows")
    }

    /// 14 subjects are almost constant; one varies strongly.
    #[test]
    fn variance_dominated_by_one_subject_is_withheld() {
        let steady = |person: u64| {
            let level = 60.0 + (person % 3) as f64 * 0.1;
            moments_of(&[
                [level, 9_000.0, 1.0],
                [level + 0.2, 9_010.0, 2.0],
                [level - 0.2, 8_990.0, 3.0 + person as f64],
            ])
        };
        let swinging = moments_of(&[[28.0, 2_500.0, 4.0], [92.0, 15_500.0, 5.0], [60.0, 9_000.0, 6.0]]);
        let ranges = [(0.0, 220.0), (0.0, 50_000.0), (0.0, 100.0)];
        let shown = |members: &[Vec<f64>], ranges: &[(f64, f64)]| {
            let rows = moment_rows(members, ranges, (5, 0));
            rows.iter().map(|(signal, _)| *signal).collect::<Vec<usize>>()
        };
        let all: Vec<Vec<f64>> = (0..14).map(steady).chain([swinging]).collect();
        assert_eq!(shown(&all, &ranges), [2], "only the third signal, in which nobody stands out");
        assert_eq!(shown(&all, &[UNBOUNDED; 3]), [2]);
        let others: Vec<Vec<f64>> = (0..15).map(steady).collect();
        assert_eq!(shown(&others, &ranges), [0, 0, 0, 1, 1, 2], "without that person all leave");
    }

    #[test]
    fn moments_with_overflowing_squares_omit_the_signal() {
        for size in [1e60, 1e78, 1e150, 1e160, 1e300] {
            let huge = |person: usize| size * (1.0 + (person % 5) as f64 / 10.0);
            let person = |person: usize| {
                let first = if person < 6 { huge(person) } else { person as f64 };
                moments_of(&[[first, person as f64, 1.0], [first, 2.0 * person as f64, 5.0], [first, 3.0, 3.0]])
            };
            let rows = moment_rows(&(0..15).map(person).collect::<Vec<_>>(), &[UNBOUNDED; 3], (5, 0));
            let mut variances = BTreeMap::new();
            for (signal, statistic) in rows {
                let RowStatistic::Moment(of) = statistic else { panic!("a moment") };
                assert!(of.covariance.is_finite() && of.mean.is_none_or(f64::is_finite), "{size}: {of:?}");
                if of.with == signal {
                    variances.insert(signal, of.covariance);
                }
            }
            assert!(variances.contains_key(&1) && variances.contains_key(&2), "{size}: {variances:?}");
            assert_eq!(variances.contains_key(&0), size < 1e154, "{size}");
        }
    }

    fn solve_linear_system(mut matrix: Vec<Vec<f64>>, mut right: Vec<f64>) -> Vec<f64> {
        let size = right.len();
        for column in 0..size {
            let pivot = (column..size).max_by(|a, b| matrix[*a][column].abs().total_cmp(&matrix[*b][column].abs()));
            let pivot = pivot.expect("a row");
            matrix.swap(column, pivot);
            right.swap(column, pivot);
            for row in 0..size {
                if row != column {
                    let factor = matrix[row][column] / matrix[column][column];
                    for at in column..size {
                        matrix[row][at] -= factor * matrix[column][at];
                    }
                    right[row] -= factor * right[column];
                }
            }
        }
        (0..size).map(|at| right[at] / matrix[at][at]).collect()
    }

    fn coefficients_from_moments(cohorts: &[PooledMoments], people: &[usize]) -> Vec<f64> {
        let total = people.iter().sum::<usize>() as f64;
        let weights: Vec<f64> = people.iter().map(|people| *people as f64 / total).collect();
        let mean = |at: usize| cohorts.iter().zip(&weights).map(|(cohort, w)| w * cohort.means[at]).sum::<f64>();
        let covariance = |a: usize, b: usize| {
            let (a, b) = (a.min(b), a.max(b));
            let of = |cohort: &PooledMoments| {
                cohort.covariances[&(a, b)] + (cohort.means[a] - mean(a)) * (cohort.means[b] - mean(b))
            };
            cohorts.iter().zip(&weights).map(|(cohort, w)| w * of(cohort)).sum::<f64>()
        };
        let matrix = (0..2).map(|a| (0..2).map(|b| covariance(a, b)).collect()).collect();
        let slopes = solve_linear_system(matrix, vec![covariance(0, 2), covariance(1, 2)]);
        vec![mean(2) - slopes[0] * mean(0) - slopes[1] * mean(1), slopes[0], slopes[1]]
    }

    /// Each row has weight 1 / number of rows of its subject.
    fn coefficients_from_rows(people: &[Vec<[f64; 3]>]) -> Vec<f64> {
        let (mut matrix, mut right) = (vec![vec![0.0; 3]; 3], vec![0.0; 3]);
        for rows in people {
            for [a, b, y] in rows {
                let x = [1.0, *a, *b];
                for i in 0..3 {
                    right[i] += x[i] * y / rows.len() as f64;
                    for j in 0..3 {
                        matrix[i][j] += x[i] * x[j] / rows.len() as f64;
                    }
                }
            }
        }
        solve_linear_system(matrix, right)
    }

    fn relative_difference(one: &[f64], other: &[f64]) -> f64 {
        one.iter().zip(other).map(|(a, b)| ((a - b) / b).abs()).fold(0.0, f64::max)
    }

    #[test]
    fn regression_from_moments_equals_regression_on_weighted_rows() {
        for seed in 0..20 {
            let people = people(39, seed);
            let cohorts: Vec<Vec<Vec<f64>>> =
                people.chunks(13).map(|cohort| cohort.iter().map(|rows| moments_of(rows)).collect()).collect();
            let sizes: Vec<usize> = cohorts.iter().map(Vec::len).collect();
            let exact = coefficients_from_rows(&people);
            let unrounded: Vec<PooledMoments> = cohorts.iter().map(|cohort| pool_moments(cohort, 3)).collect();
            let difference = relative_difference(&coefficients_from_moments(&unrounded, &sizes), &exact);
            assert!(difference < 1e-6, "seed {seed}: {difference}");
            let rounded: Vec<PooledMoments> =
                cohorts.iter().map(|cohort| pooled_from_rows(&moment_rows(cohort, &[UNBOUNDED; 3], (5, 0)))).collect();
            let difference = relative_difference(&coefficients_from_moments(&rounded, &sizes)[1..], &exact[1..]);
            assert!(difference > 0.0 && difference < 0.01, "seed {seed}, slopes after rounding: {difference}");
        }
    }

    fn pooled_from_rows(rows: &[(usize, RowStatistic)]) -> PooledMoments {
        let mut pooled = PooledMoments { means: vec![f64::NAN; 3], squares: Vec::new(), covariances: BTreeMap::new() };
        for (signal, statistic) in rows {
            let RowStatistic::Moment(moment) = statistic else { panic!("a row of moments") };
            pooled.covariances.insert((*signal, moment.with), moment.covariance);
            if let Some(mean) = moment.mean {
                pooled.means[*signal] = mean;
            }
        }
        pooled
    }

    #[test]
    fn moments_of_absent_member_are_mean_of_earlier_epochs() {
        let mut moments = SubjectMoments::default();
        moments.add(0, &[2.0, 4.0], 1, 1);
        moments.add(0, &[4.0, 4.0], 1, 1);
        assert_eq!(moments.records, 2);
        moments.add(10, &[7.0, 1.0], 3, 1);
        assert_eq!(moments.records, 3, "of the latest epoch");
        assert_eq!(moments.means_of_epoch(10, 1), Some(vec![7.0, 1.0, 49.0, 7.0, 1.0]));
        assert_eq!((moments.means_of_epoch(0, 1), moments.means_of_epoch(20, 1)), (None, None));
        assert_eq!(moments.mean_of_epochs(1), [5.0, 2.5, 29.5, 9.5, 8.5]);
    }

    #[test]
    fn epoch_with_too_few_rows_is_discarded() {
        let mut moments = SubjectMoments::default();
        moments.add(0, &[2.0], 1, 2);
        assert_eq!((moments.means_of_epoch(0, 2), moments.mean_of_epochs(2)), (None, Vec::new()));
        moments.add(10, &[4.0], 1, 2);
        moments.add(10, &[6.0], 1, 2);
        moments.add(20, &[100.0], 1, 2);
        assert_eq!(moments.mean_of_epochs(2), [5.0, 26.0]);
        moments.add(30, &[8.0], 1, 2);
        moments.add(30, &[10.0], 1, 2);
        assert_eq!(moments.means_of_epoch(30, 2), Some(vec![9.0, 82.0]));
        assert_eq!(moments.mean_of_epochs(2), [7.0, 54.0]);
    }

    #[test]
    fn moment_rows_omit_dominated_signals_and_pairs() {
        let member = |a: f64, b: f64| vec![a, b, a * a, a * b, b * b];
        let even: Vec<Vec<f64>> = (0..8).map(|at| member(10.0 + f64::from(at), 5.0 - f64::from(at % 3))).collect();
        assert_eq!(moment_rows(&even, &[UNBOUNDED; 2], (2, 0)).len(), 3);
        let mut one_large = even.clone();
        one_large[3] = member(1_000.0, 4.0);
        let rows = moment_rows(&one_large, &[UNBOUNDED; 2], (2, 0));
        assert_eq!(rows.iter().map(|(signal, _)| *signal).collect::<Vec<_>>(), [1], "the second signal alone");
        let mut constant = even;
        constant.iter_mut().for_each(|moments| *moments = member(3.0, moments[1]));
        assert_eq!(moment_rows(&constant, &[UNBOUNDED; 2], (2, 0)).len(), 1);
    }
}
