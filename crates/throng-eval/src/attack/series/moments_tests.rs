//! Best linear combination of all rows about a subject with few days in the second epoch.
//!
//! 15 subjects have a daily heart rate of 60 ± 8, daily ± 4, in two epochs of 28 days.

use std::sync::Arc;
use throng_core::release::series::verify_series;
use throng_core::series::{
    AllSeriesTerms, CARRIED_SHARE, CohortTerms, DAY_MS, MomentStatistic, MomentTerms, RowStatistic, SeriesReadings,
    SeriesRow, SeriesSignal, SeriesState, SeriesTerms, propose_series,
};
use throng_core::values::digest::mix;

const PEOPLE: u64 = 15;
const TARGET: u64 = 7;
const EPOCH_DAYS: i64 = 28;
const LEVEL_SD: f64 = 8.0;
const DAY_SD: f64 = 4.0;
const TRIALS: u64 = 60;

/// No configuration allows two series with the same signals.
fn terms(least: u32) -> Arc<AllSeriesTerms> {
    let signal = |attribute: usize| SeriesSignal {
        attribute,
        name: format!("s{attribute}"),
        unit: None,
        range: (0.0, 50_000.0),
        intervals: None,
    };
    let daily = SeriesTerms {
        name: "daily".to_owned(),
        every_ms: DAY_MS,
        every: "1d".to_owned(),
        cycle: None,
        signals: vec![signal(0), signal(1)],
        lateness_ms: 0,
        pooled: false,
        min_values: 4,
        moments: None,
        noise: None,
    };
    let moments = Some(MomentTerms { every_ms: EPOCH_DAYS * DAY_MS, every: "4w".to_owned() });
    let model = SeriesTerms { name: "model".to_owned(), moments, min_values: least, ..daily.clone() };
    let cohorts = CohortTerms {
        crowd: 5,
        colluders: 0,
        size: 15,
        warm_up_days: 0,
        idle_ms: 14 * DAY_MS,
        strata: Vec::new(),
        strata_names: Vec::new(),
        time: 2,
        max_histories: 1 << 20,
        is_batch: true,
    };
    Arc::new(AllSeriesTerms { cohorts, series: vec![daily, model] })
}

fn normal(seed: u64) -> f64 {
    (0..12).map(|part| (mix(seed.wrapping_mul(12) + part) >> 11) as f64 / (1_u64 << 53) as f64).sum::<f64>() - 6.0
}

struct MomentTrial {
    seed: u64,
    /// From the start of the first epoch.
    days: Vec<i64>,
    /// Per subject and epoch.
    least: u32,
}

impl MomentTrial {
    fn is_present(&self, person: u64, day: i64) -> bool {
        person != TARGET || day < EPOCH_DAYS || self.days.contains(&day)
    }

    /// The target changes its level in the second epoch.
    fn level(&self, person: u64, day: i64) -> f64 {
        let moved = u64::from(person == TARGET && day >= EPOCH_DAYS) << 40;
        60.0 + LEVEL_SD * normal(mix(self.seed ^ person << 8) ^ moved)
    }

    fn value(&self, person: u64, day: i64) -> f64 {
        let noise = DAY_SD * normal(mix(self.seed ^ person << 20 ^ (day as u64) << 32));
        ((self.level(person, day) + noise) * 10.0).round() / 10.0
    }

    fn truth(&self) -> f64 {
        self.days.iter().map(|day| self.value(TARGET, *day)).sum::<f64>() / self.days.len() as f64
    }

    fn release(&self, terms: &Arc<AllSeriesTerms>) -> Vec<SeriesRow> {
        let first = 4 * DAY_MS;
        let cells = (0..2 * EPOCH_DAYS).flat_map(|day| (0..PEOPLE).map(move |person| (person, day)));
        let cells: Vec<(u64, i64)> = cells.filter(|(person, day)| self.is_present(*person, *day)).collect();
        let steps = |(person, day): &(u64, i64)| 2_000.0 + (mix(self.seed ^ person << 16 ^ *day as u64) % 7_000) as f64;
        let readings = SeriesReadings {
            subjects: cells.iter().map(|(person, _)| person + 1).collect(),
            times: cells.iter().map(|(_, day)| Some(first + day * DAY_MS)).collect(),
            values: vec![
                cells.iter().map(|(person, day)| self.value(*person, *day)).collect(),
                cells.iter().map(steps).collect(),
            ],
            ..SeriesReadings::default()
        };
        let state = SeriesState::new(terms);
        let proposal = propose_series(terms, &state, &readings, None, true, &|number| u128::from(mix(number as u64)));
        let verified = verify_series(terms, &state, &readings, None, &proposal).expect("a sound proposal");
        let rows = verified.rows().iter().filter(|row| !row.sets.is_empty() && row.signal == 0);
        rows.cloned().map(|row| SeriesRow { bucket: (row.bucket - first) / DAY_MS, ..row }).collect()
    }

    /// Returns a row's mean, and day weights by subject.
    fn observation(&self, row: &SeriesRow) -> Option<(f64, Vec<Vec<(i64, f64)>>)> {
        let mean = match row.statistic {
            RowStatistic::Mean(statistic) => statistic.mean,
            RowStatistic::Moment(MomentStatistic { mean: Some(mean), .. }) => mean,
            RowStatistic::Moment(_) | RowStatistic::Bin { .. } | RowStatistic::Noisy(_) => return None,
        };
        let days = |person: u64, from: i64, to: i64| (from..to).filter(move |day| self.is_present(person, *day));
        let of_day = |person: u64| -> Vec<(i64, f64)> {
            if self.is_present(person, row.bucket) {
                return vec![(row.bucket, 1.0)];
            }
            let past: Vec<i64> = days(person, 0, row.bucket).collect();
            let last = past[past.len() - 1];
            let kept = CARRIED_SHARE.powi((row.bucket - last) as i32);
            let share = |day: i64| (1.0 - kept) / past.len() as f64 + if day == last { kept } else { 0.0 };
            past.iter().map(|day| (*day, share(*day))).collect()
        };
        let of_epoch = |person: u64| -> Vec<(i64, f64)> {
            let own: Vec<i64> = days(person, row.bucket, row.bucket + EPOCH_DAYS).collect();
            let counted = if own.len() >= self.least as usize { own } else { days(person, 0, EPOCH_DAYS).collect() };
            counted.iter().map(|day| (*day, 1.0 / counted.len() as f64)).collect()
        };
        let weights = |person: u64| if row.is_of_epoch() { of_epoch(person) } else { of_day(person) };
        Some((mean, (0..PEOPLE).map(weights).collect()))
    }

    /// Conditional expectation of the target's mean in the second epoch; `knows_level` adds the first level.
    fn guess(&self, rows: &[&SeriesRow], knows_level: bool) -> f64 {
        let observations: Vec<(f64, Vec<Vec<(i64, f64)>>)> =
            rows.iter().filter_map(|row| self.observation(row)).collect();
        let n = PEOPLE as f64;
        // Expected cell, and variance of its level.
        let expected = |person: u64, day: i64| {
            if knows_level && person == TARGET && day < EPOCH_DAYS { self.level(TARGET, 0) } else { 60.0 }
        };
        let level_variance = |person: u64, late: bool| {
            if knows_level && person == TARGET && !late { 0.0 } else { LEVEL_SD * LEVEL_SD }
        };
        let is_other = |person: u64, day: i64| person == TARGET && day >= EPOCH_DAYS;
        let product = |one: &[Vec<(i64, f64)>], other: &[Vec<(i64, f64)>]| -> f64 {
            let mut sum = 0.0;
            for person in 0..PEOPLE {
                let (a, b) = (&one[person as usize], &other[person as usize]);
                for late in [false, true] {
                    let share = |of: &[(i64, f64)]| -> f64 {
                        of.iter().filter(|(day, _)| is_other(person, *day) == late).map(|(_, weight)| weight).sum()
                    };
                    sum += level_variance(person, late) * share(a) * share(b);
                }
                for (day, weight) in a {
                    let same = b.iter().find(|(other, _)| other == day).map_or(0.0, |(_, weight)| *weight);
                    sum += DAY_SD * DAY_SD * weight * same;
                }
            }
            sum
        };
        let mut wanted: Vec<Vec<(i64, f64)>> = vec![Vec::new(); PEOPLE as usize];
        wanted[TARGET as usize] = self.days.iter().map(|day| (*day, 1.0 / self.days.len() as f64)).collect();
        let mut matrix: Vec<Vec<f64>> = Vec::new();
        for (at, (mean, weights)) in observations.iter().enumerate() {
            let mut line: Vec<f64> = observations.iter().map(|(_, other)| product(weights, other) / n / n).collect();
            // Rounding to a tenth, and of rows.
            line[at] += 1e-4;
            let cells = (0..PEOPLE).zip(weights);
            let sum: f64 = cells
                .flat_map(|(person, own)| own.iter().map(move |(day, weight)| weight * expected(person, *day)))
                .sum();
            line.push(mean - sum / n);
            matrix.push(line);
        }
        let solution = solve_system(matrix);
        let covariances = observations.iter().map(|(_, weights)| product(&wanted, weights) / n);
        60.0 + covariances.zip(solution).map(|(covariance, factor)| covariance * factor).sum::<f64>()
    }
}

/// The last column is the right side.
fn solve_system(mut matrix: Vec<Vec<f64>>) -> Vec<f64> {
    let size = matrix.len();
    for pivot in 0..size {
        for row in (0..size).filter(|row| *row != pivot) {
            let factor = matrix[row][pivot] / matrix[pivot][pivot];
            for at in pivot..=size {
                matrix[row][at] -= factor * matrix[pivot][at];
            }
        }
    }
    (0..size).map(|at| matrix[at][size] / matrix[at][at]).collect()
}

/// Negative if worse than a constant.
fn share_explained(guesses: &[(f64, f64)]) -> f64 {
    let mean = guesses.iter().map(|(_, truth)| truth).sum::<f64>() / guesses.len() as f64;
    let error: f64 = guesses.iter().map(|(guess, truth)| (guess - truth).powi(2)).sum();
    1.0 - error / guesses.iter().map(|(_, truth)| (truth - mean).powi(2)).sum::<f64>()
}

/// R² of the target's mean in the second epoch.
struct MomentShares {
    moments: f64,
    days: f64,
    both: f64,
}

fn attack_trials(days: &[i64], knows_level: bool, least: u32) -> MomentShares {
    let terms = terms(least);
    let (mut guesses, mut withheld) = ([const { Vec::new() }; 3], 0);
    for seed in 0..TRIALS {
        let start = EPOCH_DAYS + (mix(seed) % 20) as i64;
        let trial = MomentTrial { seed: mix(seed + 1_000), days: days.iter().map(|day| start + day).collect(), least };
        let rows = trial.release(&terms);
        let of = |series: usize| rows.iter().filter(|row| row.series == series).collect::<Vec<&SeriesRow>>();
        let known = [of(1), of(0), rows.iter().collect()];
        // The second epoch is withheld if the subject dominates the variance.
        let epochs = known[0].iter().filter(|row| trial.observation(row).is_some()).count();
        if epochs == 1 {
            withheld += 1;
            continue;
        }
        assert_eq!(epochs, 2, "two epochs");
        for (guesses, rows) in guesses.iter_mut().zip(known) {
            guesses.push((trial.guess(&rows, knows_level), trial.truth()));
        }
    }
    assert!(withheld < TRIALS / 10, "{withheld} withheld");
    let [moments, days, both] = guesses.map(|guesses| share_explained(&guesses));
    println!(
        "level known: {knows_level}, epochs of {least} rows: {moments:.3} {days:.3} {both:.3}, withheld {withheld} of {TRIALS}"
    );
    MomentShares { moments, days, both }
}

/// Earlier versions released daily rows, and moments that counted every epoch with a row.
#[test]
fn threat_42_moments_hide_single_day_of_subject() {
    for knows_level in [false, true] {
        let before = attack_trials(&[0], knows_level, 1);
        // Without the level, only the difference from it is found.
        assert!(before.both > if knows_level { 0.9 } else { 0.5 }, "the attack works: {}", before.both);
        assert!(before.moments > 0.5, "an epoch of one row is the row: {}", before.moments);
        let now = attack_trials(&[0], knows_level, 4);
        assert!(now.moments < 0.05, "chance is 0: {}", now.moments);
    }
}

/// Limit in docs/guarantees.md: the change of one subject is visible if all others are constant.
#[test]
fn moments_show_change_of_one_subject_among_constant_ones() {
    for knows_level in [false, true] {
        let now = attack_trials(&[0, 1, 2, 3], knows_level, 4);
        assert!((0.4..0.95).contains(&now.moments), "{}", now.moments);
        assert!(now.days > 0.3, "{}", now.days);
    }
}

#[test]
fn moments_ignore_rows_of_short_epochs() {
    let terms = terms(4);
    let release = |days: Vec<i64>, seed: u64| {
        let rows = MomentTrial { seed, days, least: 4 }.release(&terms);
        rows.into_iter().filter(|row| row.series == 1).collect::<Vec<SeriesRow>>()
    };
    for seed in 0..10 {
        assert_eq!(release(vec![30, 35, 40], seed), release(Vec::new(), seed));
        assert_ne!(release(vec![30, 35, 40, 41], seed), release(Vec::new(), seed));
    }
}
