//! Recount of rows with noise (docs/internals/methods.md §13).
//!
//! Claim. If [`verify_noise`] returns `Ok`, each row covers all subjects of a closing bucket, and is released once.
//! Count and sum match the contributions up to 12 deviations of noise, and the mean follows from them. The bucket has at
//! least `crowd` subjects, and the count is at least `crowd` plus eight deviations. The rows of a week cost at most ε, spent budget included.
//!
//! The noise distribution is not verified, but three sums without noise are refused.

use crate::series::{AllSeriesTerms, DAY_MS, DELTA, RowStatistic, SeriesRow, SeriesTerms, SharedSeriesState};
use std::collections::{BTreeMap, BTreeSet};

/// Larger noise has probability 4 · 10⁻³³ per row.
const MOST_DEVIATIONS: f64 = 12.0;
/// Refused number of sums without noise: probability below 10⁻¹³ per batch.
const UNNOISED_ROWS: usize = 3;
const RANGE_STEPS: f64 = 65_536.0;

pub(super) type SignalSums = Vec<(u32, f64)>;
/// End, series and bucket.
pub(super) type BucketPlace = (i64, usize, i64);
pub(super) type ClosingBuckets = BTreeMap<BucketPlace, BTreeMap<u64, SignalSums>>;

struct NoiseBudget {
    week: f64,
    bucket_and_signal: f64,
    count_deviation: f64,
    sum_deviation: f64,
}

impl NoiseBudget {
    fn of(series: &SeriesTerms) -> Option<Self> {
        let epsilon = series.noise?.epsilon;
        let week = greatest_rho(epsilon);
        let buckets = 7.0 * DAY_MS as f64 / series.every_ms as f64;
        let rho = week / (buckets * series.signals.len() as f64);
        // Sensitivity (1, half the steps) for a subject, (0, all steps) for a value.
        Some(Self {
            week,
            bucket_and_signal: rho,
            count_deviation: (2.0 / (3.0 * rho)).sqrt(),
            sum_deviation: RANGE_STEPS * (0.5 / rho).sqrt(),
        })
    }
}

/// Solves ρ + 2 √(ρ ln(1/δ)) ≤ ε by bisection. A hundredth of δ is left for the existence of rows.
fn greatest_rho(epsilon: f64) -> f64 {
    let (mut low, mut high) = (0.0, epsilon);
    for _ in 0..200 {
        let middle = f64::midpoint(low, high);
        if middle + 2.0 * (middle * -(0.99 * DELTA).ln()).sqrt() <= epsilon {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

/// Monday, in days since 1970.
fn week_of(bucket: i64) -> i64 {
    let day = bucket.div_euclid(DAY_MS);
    day - (day + 3).rem_euclid(7)
}

/// Sums are on the grid around the middle of the range.
fn exact(people: Option<&BTreeMap<u64, SignalSums>>, signal: usize, (low, high): (f64, f64)) -> (f64, f64) {
    let mut exact = (0.0, 0.0);
    for sums in people.into_iter().flat_map(BTreeMap::values) {
        let (count, sum) = sums[signal];
        if count > 0 && sum.is_finite() {
            let value = (sum / f64::from(count)).max(low).min(high);
            exact = (exact.0 + 1.0, exact.1 + ((value - low) / (high - low) * RANGE_STEPS).round() - RANGE_STEPS / 2.0);
        }
    }
    exact
}

/// # Errors
/// Series and violated claim.
pub(super) fn verify_noise(
    terms: &AllSeriesTerms,
    before: &SharedSeriesState,
    after: &SharedSeriesState,
    rows: &[&SeriesRow],
    closing: &ClosingBuckets,
) -> Result<(), (usize, &'static str)> {
    let mut seen = BTreeSet::new();
    let mut buckets: BTreeMap<(usize, i64), BTreeSet<i64>> = BTreeMap::new();
    let mut unnoised = 0;
    for row in rows {
        let claim = |claim| (row.series, claim);
        let series = &terms.series[row.series];
        let budget = NoiseBudget::of(series).ok_or(claim("a series has no noise"))?;
        let end = series.end(row.bucket);
        if series.bucket(row.bucket) != row.bucket
            || end <= before.closed_ms[row.series]
            || end > after.closed_ms[row.series]
        {
            return Err(claim("a row with noise belongs to a bucket that does not close with this batch"));
        }
        if row.signal >= series.signals.len() || !seen.insert((row.series, row.bucket, row.signal)) {
            return Err(claim("a row with noise is published twice, or belongs to no signal"));
        }
        let people = closing.get(&(end, row.series, row.bucket));
        let has_noise = verify_row(row, series, &budget, people, terms.cohorts.crowd).map_err(claim)?;
        unnoised += usize::from(!has_noise);
        if unnoised >= UNNOISED_ROWS {
            return Err(claim("sums are published without noise"));
        }
        buckets.entry((row.series, week_of(row.bucket))).or_default().insert(row.bucket);
    }
    for ((series, week), published) in buckets {
        let claim = |claim| (series, claim);
        let of = &terms.series[series];
        let budget = NoiseBudget::of(of).ok_or(claim("a series has no noise"))?;
        let spent =
            |head: &SharedSeriesState| head.noise.get(series).map(|spent| (spent.week.div_euclid(DAY_MS), spent.rho));
        let (Some((week_before, rho_before)), Some((week_after, rho_after))) = (spent(before), spent(after)) else {
            return Err(claim("the state has no budget of a series with noise"));
        };
        let least = budget.bucket_and_signal * (published.len() * of.signals.len()) as f64;
        let least = least + if week == week_before { rho_before } else { 0.0 };
        if week < week_before || week > week_after || least > budget.week * (1.0 + 1e-6) {
            return Err(claim("a week costs more than its budget, or is published after a later week"));
        }
        if week == week_after && rho_after < least * (1.0 - 1e-6) {
            return Err(claim("the recorded cost of a week is below the cost of its rows"));
        }
    }
    Ok(())
}

fn verify_row(
    row: &SeriesRow,
    series: &SeriesTerms,
    budget: &NoiseBudget,
    people: Option<&BTreeMap<u64, SignalSums>>,
    crowd: usize,
) -> Result<bool, &'static str> {
    let RowStatistic::Noisy(noisy) = row.statistic else { return Err("a series with noise has another statistic") };
    if row.cohort.is_some() || row.stratum.is_some() || !row.sets.is_empty() || row.filled != 0.0 {
        return Err("a row with noise belongs to a cohort");
    }
    let (low, high) = series.signals[row.signal].range;
    let (count, sum) = exact(people, row.signal, (low, high));
    let (n, noisy_sum) = (row.n as f64, noisy.sum as f64);
    let within = |distance: f64, deviation: f64| distance.abs() <= MOST_DEVIATIONS * (deviation + 0.002);
    if !within(n - count, budget.count_deviation) || !within(noisy_sum - sum, budget.sum_deviation) {
        return Err("a noisy count or sum does not match the contributions");
    }
    if people.map_or(0, BTreeMap::len) < crowd {
        return Err("a bucket of a row with noise has too few people");
    }
    if n < crowd as f64 + 8.0 * budget.count_deviation {
        return Err("a noisy count is too small");
    }
    let half = RANGE_STEPS / 2.0;
    let mean = low + (noisy_sum / n).clamp(-half, half).midpoint(half) / half * (high - low);
    if !(low..=high).contains(&noisy.mean) || (noisy.mean - mean).abs() > (high - low) / RANGE_STEPS {
        return Err("a mean with noise does not match its sum and count");
    }
    Ok(noisy_sum != sum)
}

#[cfg(test)]
#[path = "series_noise_tests.rs"]
mod tests;
