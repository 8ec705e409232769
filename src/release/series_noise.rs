//! Recount of rows with noise (docs/methods.md §13).
//!
//! Claim. If [`verify_noise`] returns `Ok`, then each row is of everybody, of a bucket that closes with this batch, and leaves once; its
//! count and its sum are those of the contributions up to 12 deviations of noise; its mean follows from them; its count is a crowd and
//! three deviations at least; and the rows of a week, with what the week has spent before, cost no more than ε allows.
//!
//! Budget, deviations, grid and mean are computed here by other code than that which proposes rows. That noise has the right
//! distribution cannot be seen in single rows; three rows whose sums have no noise at all are refused.

use crate::anonymity::series::{DAY_MS, DELTA, Head, SeriesRow, SeriesTerms, Statistic, Terms};
use std::collections::{BTreeMap, BTreeSet};

/// Noise beyond these deviations is refused: probability 4 · 10⁻³³ for a row.
const MOST_DEVIATIONS: f64 = 12.0;
/// Rows of a batch whose sums have no noise, from which on noise is missing: probability below 10⁻¹³ for three rows of the least noise.
const UNNOISED_ROWS: usize = 3;
/// Grid steps over the range of a signal.
const STEPS: f64 = 65_536.0;

/// Count and sum by signal.
pub(super) type Sums = Vec<(u32, f64)>;
/// End of the window, position of the series, bucket.
pub(super) type Place = (i64, usize, i64);
/// Contributions of the buckets that close, by bucket.
pub(super) type Closing = BTreeMap<Place, BTreeMap<u64, Sums>>;

/// Budget and noise of a series, from ε.
struct Budget {
    week: f64,
    bucket_and_signal: f64,
    count_deviation: f64,
    sum_deviation: f64,
}

impl Budget {
    fn of(series: &SeriesTerms) -> Option<Self> {
        let epsilon = series.noise?.epsilon;
        let week = greatest_rho(epsilon);
        let buckets = 7.0 * DAY_MS as f64 / series.every_ms as f64;
        let rho = week / (buckets * series.signals.len() as f64);
        // (1, half of the steps) for a person who comes or goes, (0, all steps) for a value that changes.
        Some(Self {
            week,
            bucket_and_signal: rho,
            count_deviation: (2.0 / (3.0 * rho)).sqrt(),
            sum_deviation: STEPS * (0.5 / rho).sqrt(),
        })
    }
}

/// The greatest ρ with ρ + 2 √(ρ ln(1/δ)) ≤ ε, by halving an interval.
fn greatest_rho(epsilon: f64) -> f64 {
    let (mut low, mut high) = (0.0, epsilon);
    for _ in 0..200 {
        let middle = f64::midpoint(low, high);
        if middle + 2.0 * (middle * -DELTA.ln()).sqrt() <= epsilon {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

/// Monday on which the week of a bucket starts, in days since 1970.
fn week_of(bucket: i64) -> i64 {
    let day = bucket.div_euclid(DAY_MS);
    day - (day + 3).rem_euclid(7)
}

/// Number of people with a value of a signal, and the sum of their values on the grid around the middle of the range.
fn exact(people: Option<&BTreeMap<u64, Sums>>, signal: usize, (low, high): (f64, f64)) -> (f64, f64) {
    let mut exact = (0.0, 0.0);
    for sums in people.into_iter().flat_map(BTreeMap::values) {
        let (count, sum) = sums[signal];
        if count > 0 && sum.is_finite() {
            let value = (sum / f64::from(count)).max(low).min(high);
            exact = (exact.0 + 1.0, exact.1 + ((value - low) / (high - low) * STEPS).round() - STEPS / 2.0);
        }
    }
    exact
}

/// Recounts rows with noise from the contributions to the buckets that close.
///
/// # Errors
/// The series and the claim that does not hold.
pub(super) fn verify_noise(
    terms: &Terms,
    before: &Head,
    after: &Head,
    rows: &[&SeriesRow],
    closing: &Closing,
) -> Result<(), (usize, &'static str)> {
    let mut seen = BTreeSet::new();
    let mut buckets: BTreeMap<(usize, i64), BTreeSet<i64>> = BTreeMap::new();
    let mut unnoised = 0;
    for row in rows {
        let claim = |claim| (row.series, claim);
        let series = &terms.series[row.series];
        let budget = Budget::of(series).ok_or(claim("a series has no noise"))?;
        let end = series.end(row.bucket);
        if series.bucket(row.bucket) != row.bucket
            || end <= before.closed_ms[row.series]
            || end > after.closed_ms[row.series]
        {
            return Err(claim("a row with noise is of a bucket that does not close with this batch"));
        }
        if row.signal >= series.signals.len() || !seen.insert((row.series, row.bucket, row.signal)) {
            return Err(claim("a row with noise leaves twice, or is of no signal"));
        }
        let people = closing.get(&(end, row.series, row.bucket));
        let has_noise = verify_row(row, series, &budget, people, terms.cohorts.crowd).map_err(claim)?;
        unnoised += usize::from(!has_noise);
        if unnoised >= UNNOISED_ROWS {
            return Err(claim("sums leave without noise"));
        }
        buckets.entry((row.series, week_of(row.bucket))).or_default().insert(row.bucket);
    }
    for ((series, week), published) in buckets {
        let claim = |claim| (series, claim);
        let of = &terms.series[series];
        let budget = Budget::of(of).ok_or(claim("a series has no noise"))?;
        let spent = |head: &Head| head.noise.get(series).map(|spent| (spent.week.div_euclid(DAY_MS), spent.rho));
        let (Some((week_before, rho_before)), Some((week_after, rho_after))) = (spent(before), spent(after)) else {
            return Err(claim("the state has no budget of a series with noise"));
        };
        let least = budget.bucket_and_signal * (published.len() * of.signals.len()) as f64;
        let least = least + if week == week_before { rho_before } else { 0.0 };
        if week < week_before || week > week_after || least > budget.week * (1.0 + 1e-6) {
            return Err(claim("a week costs more than its budget, or publishes after a later one"));
        }
        if week == week_after && rho_after < least * (1.0 - 1e-6) {
            return Err(claim("the state has less spent than the rows of a week cost"));
        }
    }
    Ok(())
}

/// Checks a row by the contributions to its bucket; whether its sum has noise.
fn verify_row(
    row: &SeriesRow,
    series: &SeriesTerms,
    budget: &Budget,
    people: Option<&BTreeMap<u64, Sums>>,
    crowd: usize,
) -> Result<bool, &'static str> {
    let Statistic::Noisy(noisy) = row.statistic else { return Err("a series with noise has another statistic") };
    if row.cohort.is_some() || row.stratum.is_some() || !row.sets.is_empty() || row.filled != 0.0 {
        return Err("a row with noise is of a cohort");
    }
    let (low, high) = series.signals[row.signal].range;
    let (count, sum) = exact(people, row.signal, (low, high));
    let (n, noisy_sum) = (row.n as f64, noisy.sum as f64);
    // Deviations are rounded up to a thousandth.
    let within = |distance: f64, deviation: f64| distance.abs() <= MOST_DEVIATIONS * (deviation + 0.002);
    if !within(n - count, budget.count_deviation) || !within(noisy_sum - sum, budget.sum_deviation) {
        return Err("a noisy count or sum is not that of the contributions");
    }
    if n < crowd as f64 + 3.0 * budget.count_deviation {
        return Err("a noisy count is too small");
    }
    let half = STEPS / 2.0;
    let mean = low + (noisy_sum / n).clamp(-half, half).midpoint(half) / half * (high - low);
    if !(low..=high).contains(&noisy.mean) || (noisy.mean - mean).abs() > (high - low) / STEPS {
        return Err("a mean with noise is not that of its sum and count");
    }
    Ok(noisy_sum != sum)
}

#[cfg(test)]
#[path = "series_noise_tests.rs"]
mod tests;
