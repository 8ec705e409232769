//! Recount of moments (docs/internals/methods.md §13).

use super::series_means::is_any_dominant;
use super::series_nested::has_rest_of_few;
use crate::series::{AllSeriesTerms, MomentStatistic, SeriesState, SubjectMoments, moment_count};
use std::collections::{BTreeMap, HashMap};

#[derive(Clone, Default)]
struct MomentRows {
    epoch: i64,
    latest: MomentSums,
    /// Sums of the means per epoch.
    earlier: MomentSums,
}

#[derive(Clone, Default)]
struct MomentSums {
    count: f64,
    values: Vec<f64>,
    products: Vec<Vec<f64>>,
}

pub(super) struct ShownMoment {
    pub signal: usize,
    pub statistic: MomentStatistic,
}

impl MomentSums {
    fn new(signals: usize) -> Self {
        Self { count: 0.0, values: vec![0.0; signals], products: vec![vec![0.0; signals]; signals] }
    }

    /// `packed` has values, then products of pairs.
    fn unpacked(packed: &[f64], count: f64, factor: f64, signals: usize) -> Self {
        let mut sums = Self::new(signals);
        if packed.len() != moment_count(signals) {
            return sums;
        }
        sums.count = count;
        let mut numbers = packed.iter().map(|number| number * factor);
        sums.values.iter_mut().zip(&mut numbers).for_each(|(value, number)| *value = number);
        for first in 0..signals {
            for second in first..signals {
                let number = numbers.next().unwrap_or(f64::NAN);
                (sums.products[first][second], sums.products[second][first]) = (number, number);
            }
        }
        sums
    }

    fn add(&mut self, values: &[f64], products: impl Fn(usize, usize) -> f64) {
        self.count += 1.0;
        for (first, value) in values.iter().enumerate() {
            self.values[first] += value;
            for second in 0..values.len() {
                self.products[first][second] += products(first, second);
            }
        }
    }

    fn mean(&self, signal: usize) -> f64 {
        self.values[signal] / self.count
    }

    fn product_around(&self, (first, one): (usize, f64), (second, other): (usize, f64)) -> f64 {
        self.product(first, second) - one * self.mean(second) - other * self.mean(first) + one * other
    }

    fn product(&self, first: usize, second: usize) -> f64 {
        self.products[first][second] / self.count
    }
}

impl MomentRows {
    fn of(known: Option<&SubjectMoments>, signals: usize) -> Self {
        let Some(known) = known else {
            return Self { epoch: i64::MIN, latest: MomentSums::new(signals), earlier: MomentSums::new(signals) };
        };
        let epochs = f64::from(known.epochs);
        Self {
            epoch: known.epoch,
            latest: MomentSums::unpacked(&known.sums, f64::from(known.rows), 1.0, signals),
            earlier: MomentSums::unpacked(&known.past, epochs, epochs, signals),
        }
    }

    fn all(&self, least: f64) -> MomentSums {
        let mut all = self.earlier.clone();
        if self.latest.count >= least {
            let means: Vec<f64> = (0..self.latest.values.len()).map(|signal| self.latest.mean(signal)).collect();
            all.add(&means, |first, second| self.latest.product(first, second));
        }
        all
    }
}

pub(super) struct MomentRecount<'a> {
    series: usize,
    signals: usize,
    ranges: Vec<(f64, f64)>,
    /// Minimum rows in an epoch.
    least: f64,
    colluders: usize,
    before: &'a SeriesState,
    rows: HashMap<u64, MomentRows>,
    first: HashMap<u64, MomentRows>,
}

impl<'a> MomentRecount<'a> {
    pub(super) fn new(series: usize, terms: &AllSeriesTerms, before: &'a SeriesState) -> Self {
        let of_series = &terms.series[series];
        let (signals, least) = (of_series.signals.len(), f64::from(of_series.min_values));
        let ranges = of_series.signals.iter().map(|signal| signal.range).collect();
        let colluders = terms.cohorts.colluders;
        Self { series, signals, ranges, least, colluders, before, rows: HashMap::new(), first: HashMap::new() }
    }

    fn rows(&self, subject: u64) -> MomentRows {
        let known = || self.before.people.get(&subject).and_then(|person| person.moments.get(self.series));
        self.rows.get(&subject).cloned().unwrap_or_else(|| MomentRows::of(known(), self.signals))
    }

    pub(super) fn record_first_rows(&mut self, subject: u64, epoch: i64, values: &[f64]) {
        let signals = self.signals;
        let begin = || MomentRows { epoch, ..MomentRows::of(None, signals) };
        let first = self.first.entry(subject).or_insert_with(begin);
        if first.epoch != epoch && first.latest.count < self.least {
            *first = begin();
        }
        if first.epoch == epoch {
            first.latest.add(values, |a, b| values[a] * values[b]);
        }
    }

    pub(super) fn add(&mut self, subject: u64, epoch: i64, values: &[f64]) {
        let mut rows = self.rows(subject);
        if rows.epoch != epoch {
            rows = MomentRows { epoch, earlier: rows.all(self.least), latest: MomentSums::new(self.signals) };
        }
        rows.latest.add(values, |a, b| values[a] * values[b]);
        self.rows.insert(subject, rows);
    }

    /// Checks an epoch and returns the number of members with enough rows, at least `crowd`.
    pub(super) fn verify(
        &self,
        epoch: i64,
        members: &[u64],
        shown: &[ShownMoment],
        crowd: usize,
    ) -> Result<usize, &'static str> {
        let mut people = Vec::new();
        let mut present = 0;
        for subject in members {
            let rows = self.rows(*subject);
            let of_person = if rows.latest.count >= self.least && rows.epoch == epoch {
                present += 1;
                rows.latest
            } else {
                rows.all(self.least)
            };
            let first = || Some(self.first.get(subject)?.latest.clone()).filter(|first| first.count >= self.least);
            let of_person = Some(of_person).filter(|sums| sums.count > 0.0).or_else(first);
            people.push(of_person.ok_or("a member has no rows")?);
        }
        if present < crowd {
            return Err("fewer members than required have rows");
        }
        let mut variances: BTreeMap<usize, f64> = BTreeMap::new();
        let is_diagonal = |row: &&ShownMoment| row.statistic.with == row.signal;
        for row in shown.iter().filter(is_diagonal) {
            self.verify_diagonal(row, &people)?;
            if variances.insert(row.signal, row.statistic.covariance).is_some() {
                return Err("moments are published twice");
            }
        }
        let means = |signal: &usize| people.iter().map(|sums| sums.mean(*signal)).collect::<Vec<f64>>();
        let of_signals: Vec<Vec<f64>> = variances.keys().map(means).collect();
        for (at, other) in of_signals.iter().enumerate() {
            if of_signals[..at].iter().any(|one| has_rest_of_few(one, other, crowd, self.colluders)) {
                return Err("two published signals isolate few members");
            }
        }
        let mut pairs = std::collections::BTreeSet::new();
        for row in shown.iter().filter(|row| !is_diagonal(row)) {
            if row.statistic.with <= row.signal || !pairs.insert((row.signal, row.statistic.with)) {
                return Err("moments are published twice");
            }
            let deviation = |signal: &usize| variances.get(signal).map(|variance| variance.sqrt());
            let deviations = deviation(&row.signal).zip(deviation(&row.statistic.with));
            let (one, other) = deviations.ok_or("a covariance is published without its variances")?;
            self.verify_pair(row, &people, one * other)?;
        }
        Ok(present)
    }

    fn verify_diagonal(&self, row: &ShownMoment, people: &[MomentSums]) -> Result<(), &'static str> {
        let ShownMoment { signal, statistic } = row;
        if *signal >= self.signals {
            return Err("a row belongs to no signal");
        }
        let variance = statistic.covariance;
        if variance.is_nan() || variance <= 0.0 {
            return Err("a variance is not above zero");
        }
        let mean = people.iter().map(|sums| sums.mean(*signal)).sum::<f64>() / people.len() as f64;
        let shown = statistic.mean.ok_or("a mean is missing")?;
        let tolerance = (mean.abs() + variance.sqrt()) * 1e-9;
        is_rounded(shown, mean, variance.sqrt(), tolerance)?;
        let values: Vec<f64> = people.iter().map(|sums| sums.mean(*signal)).collect();
        if is_any_dominant(&values, self.ranges[*signal], self.colluders) {
            return Err("one or two members dominate a mean");
        }
        self.verify_pair(row, people, variance)
    }

    /// `scale` is the product of the deviations.
    fn verify_pair(&self, row: &ShownMoment, people: &[MomentSums], scale: f64) -> Result<(), &'static str> {
        let ShownMoment { signal, statistic: MomentStatistic { with, mean, covariance } } = row;
        if mean.is_some() != (signal == with) {
            return Err("a covariance has a mean, or a variance has none");
        }
        let n = people.len() as f64;
        let mean = |at: usize| people.iter().map(|sums| sums.mean(at)).sum::<f64>() / n;
        let (one, other) = (mean(*signal), mean(*with));
        let exact = people.iter().map(|sums| sums.product_around((*signal, one), (*with, other))).sum::<f64>() / n;
        let size =
            people.iter().map(|sums| sums.product(*signal, *signal) + sums.product(*with, *with)).sum::<f64>() / n;
        is_rounded(*covariance, exact, scale, size * 1e-12)?;
        let [(low, high), (other_low, other_high)] = [self.ranges[*signal], self.ranges[*with]];
        let has_ranges = [low, high, other_low, other_high].iter().all(|end| end.is_finite());
        let mut ends = if has_ranges { vec![(low, other_low), (high, other_high)] } else { vec![(0.0, 0.0)] };
        ends.push((one, other));
        let is_dominated = ends.iter().any(|(end, other_end)| {
            let products = people.iter().map(|sums| sums.product_around((*signal, *end), (*with, *other_end)));
            is_any_product_dominant(products, self.colluders, size * n * 1e-12)
        });
        if is_dominated { Err("one or two members dominate a product") } else { Ok(()) }
    }
}

/// The step is a thousandth of `scale`, down to 1, 2 or 5 · 10ⁿ.
fn is_rounded(shown: f64, exact: f64, scale: f64, tolerance: f64) -> Result<(), &'static str> {
    let target = scale / 1_000.0;
    let decade = 10f64.powf(target.log10().floor());
    let digit = target / decade * (1.0 + 1e-9);
    let step = decade * [10.0, 5.0, 2.0].into_iter().find(|nice| digit >= *nice).unwrap_or(1.0);
    let multiple = shown / step;
    let is_multiple = (multiple - multiple.round()).abs() <= 1e-6 * multiple.abs().max(1.0);
    if is_multiple && (shown - exact).abs() <= step * 0.500_001 + tolerance {
        Ok(())
    } else {
        Err("moments do not match the contributions")
    }
}

fn is_any_product_dominant(products: impl Iterator<Item = f64>, colluders: usize, error: f64) -> bool {
    let mut sizes: Vec<f64> = products.map(f64::abs).collect();
    sizes.sort_by(f64::total_cmp);
    let total: f64 = sizes.iter().sum();
    let Some(largest) = sizes.pop() else { return true };
    let others: f64 = sizes.iter().rev().take(colluders.max(1)).sum();
    total - largest - others < largest / 10.0 * (1.0 - 1e-9) - error || largest > total / 2.0 * (1.0 + 1e-9) + error
}
