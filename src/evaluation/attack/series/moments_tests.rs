//! The best linear combination of everything published about people of whom one has a single complete day in an epoch, or a few.
//!
//! 15 people have a heart rate on each day of two epochs of 28 days: a level of 60 ± 8, and ± 4 on each day. One of them has only some days
//! in the second epoch, with values of another level. The attacker knows who sent when, and how all numbers are distributed.

use crate::anonymity::series::{
    CARRY, CohortTerms, DAY_MS, MomentStatistic, MomentTerms, Readings, SeriesRow, SeriesState, SeriesTerms, Signal,
    Statistic, Terms, propose,
};
use crate::release::series::verify_series;
use std::sync::Arc;
use throng_core::values::digest::mix;

const PEOPLE: u64 = 15;
const TARGET: u64 = 7;
const EPOCH_DAYS: i64 = 28;
const LEVEL_SD: f64 = 8.0;
const DAY_SD: f64 = 4.0;
const TRIALS: u64 = 60;

/// Both series have the same signals, as no configuration may have them: `model` as it is released, `daily` to show what it would add.
fn terms(least: u32) -> Arc<Terms> {
    let signal = |attribute: usize| Signal {
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
    Arc::new(Terms { cohorts, series: vec![daily, model] })
}

/// A standard normal number, nearly.
fn normal(seed: u64) -> f64 {
    (0..12).map(|part| (mix(seed.wrapping_mul(12) + part) >> 11) as f64 / (1_u64 << 53) as f64).sum::<f64>() - 6.0
}

/// Heart rates of one trial.
struct Trial {
    seed: u64,
    /// Days of the target in the second epoch, from 0 at the start of the first.
    days: Vec<i64>,
    /// Rows that a person needs in an epoch.
    least: u32,
}

impl Trial {
    fn is_present(&self, person: u64, day: i64) -> bool {
        person != TARGET || day < EPOCH_DAYS || self.days.contains(&day)
    }

    /// The target's level in the second epoch is another one.
    fn level(&self, person: u64, day: i64) -> f64 {
        let moved = u64::from(person == TARGET && day >= EPOCH_DAYS) << 40;
        60.0 + LEVEL_SD * normal(mix(self.seed ^ person << 8) ^ moved)
    }

    fn value(&self, person: u64, day: i64) -> f64 {
        let noise = DAY_SD * normal(mix(self.seed ^ person << 20 ^ (day as u64) << 32));
        ((self.level(person, day) + noise) * 10.0).round() / 10.0
    }

    /// Mean of the target over the days of the second epoch.
    fn truth(&self) -> f64 {
        self.days.iter().map(|day| self.value(TARGET, *day)).sum::<f64>() / self.days.len() as f64
    }

    /// All rows of the heart rate, verified.
    fn release(&self, terms: &Arc<Terms>) -> Vec<SeriesRow> {
        let first = 4 * DAY_MS;
        let cells = (0..2 * EPOCH_DAYS).flat_map(|day| (0..PEOPLE).map(move |person| (person, day)));
        let cells: Vec<(u64, i64)> = cells.filter(|(person, day)| self.is_present(*person, *day)).collect();
        let steps = |(person, day): &(u64, i64)| 2_000.0 + (mix(self.seed ^ person << 16 ^ *day as u64) % 7_000) as f64;
        let readings = Readings {
            subjects: cells.iter().map(|(person, _)| person + 1).collect(),
            times: cells.iter().map(|(_, day)| Some(first + day * DAY_MS)).collect(),
            values: vec![
                cells.iter().map(|(person, day)| self.value(*person, *day)).collect(),
                cells.iter().map(steps).collect(),
            ],
            ..Readings::default()
        };
        let state = SeriesState::new(terms);
        let proposal = propose(terms, &state, &readings, None, true, &|number| u128::from(mix(number as u64)));
        let verified = verify_series(terms, &state, &readings, None, &proposal).expect("a sound proposal");
        let rows = verified.rows().iter().filter(|row| !row.sets.is_empty() && row.signal == 0);
        rows.cloned().map(|row| SeriesRow { bucket: (row.bucket - first) / DAY_MS, ..row }).collect()
    }

    /// Weight of each day of a person in what they contribute to a row, and the published mean; none of a row without a mean.
    fn observation(&self, row: &SeriesRow) -> Option<(f64, Vec<Vec<(i64, f64)>>)> {
        let mean = match row.statistic {
            Statistic::Mean(statistic) => statistic.mean,
            Statistic::Moment(MomentStatistic { mean: Some(mean), .. }) => mean,
            Statistic::Moment(_) | Statistic::Bin { .. } | Statistic::Noisy(_) => return None,
        };
        let days = |person: u64, from: i64, to: i64| (from..to).filter(move |day| self.is_present(person, *day));
        let of_day = |person: u64| -> Vec<(i64, f64)> {
            if self.is_present(person, row.bucket) {
                return vec![(row.bucket, 1.0)];
            }
            let past: Vec<i64> = days(person, 0, row.bucket).collect();
            let last = past[past.len() - 1];
            let kept = CARRY.powi((row.bucket - last) as i32);
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

    /// Conditional expectation of the target's mean in the second epoch. The target's first level is known where `knows_level`.
    fn guess(&self, rows: &[&SeriesRow], knows_level: bool) -> f64 {
        let observations: Vec<(f64, Vec<Vec<(i64, f64)>>)> =
            rows.iter().filter_map(|row| self.observation(row)).collect();
        let n = PEOPLE as f64;
        // What a cell is expected to be, the source of its level, and the variance of that.
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
            // Rounding of the heart rate to a tenth, and of the rows.
            line[at] += 1e-4;
            let cells = (0..PEOPLE).zip(weights);
            let sum: f64 = cells
                .flat_map(|(person, own)| own.iter().map(move |(day, weight)| weight * expected(person, *day)))
                .sum();
            line.push(mean - sum / n);
            matrix.push(line);
        }
        let solution = solved(matrix);
        let covariances = observations.iter().map(|(_, weights)| product(&wanted, weights) / n);
        60.0 + covariances.zip(solution).map(|(covariance, factor)| covariance * factor).sum::<f64>()
    }
}

/// Solves a positive definite system whose right side is the last column.
fn solved(mut matrix: Vec<Vec<f64>>) -> Vec<f64> {
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

/// Share of the variance of the truths that guesses explain; below 0 where they are worse than a constant.
fn explained(guesses: &[(f64, f64)]) -> f64 {
    let mean = guesses.iter().map(|(_, truth)| truth).sum::<f64>() / guesses.len() as f64;
    let error: f64 = guesses.iter().map(|(guess, truth)| (guess - truth).powi(2)).sum();
    1.0 - error / guesses.iter().map(|(_, truth)| (truth - mean).powi(2)).sum::<f64>()
}

/// R² of the target's mean in the second epoch.
struct Explained {
    /// From moments.
    moments: f64,
    /// From rows of days.
    days: f64,
    /// From both.
    both: f64,
}

/// Attacks trials with `days` days of the target, in moments that count epochs of `least` rows.
fn attacked(days: &[i64], knows_level: bool, least: u32) -> Explained {
    let terms = terms(least);
    let (mut guesses, mut withheld) = ([const { Vec::new() }; 3], 0);
    for seed in 0..TRIALS {
        let start = EPOCH_DAYS + (mix(seed) % 20) as i64;
        let trial = Trial { seed: mix(seed + 1_000), days: days.iter().map(|day| start + day).collect(), least };
        let rows = trial.release(&terms);
        let of = |series: usize| rows.iter().filter(|row| row.series == series).collect::<Vec<&SeriesRow>>();
        let known = [of(1), of(0), rows.iter().collect()];
        // The second one is withheld where the person dominates the variance.
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
    let [moments, days, both] = guesses.map(|guesses| explained(&guesses));
    println!(
        "level known: {knows_level}, epochs of {least} rows: {moments:.3} {days:.3} {both:.3}, withheld {withheld} of {TRIALS}"
    );
    Explained { moments, days, both }
}

/// Before, rows of days left beside moments that counted every epoch with a row.
#[test]
fn threat_42_moments_tell_nothing_of_the_only_day_of_a_person() {
    for knows_level in [false, true] {
        let before = attacked(&[0], knows_level, 1);
        // Of somebody whose level is not known, only the difference from it is found.
        assert!(before.both > if knows_level { 0.9 } else { 0.5 }, "the attack works: {}", before.both);
        assert!(before.moments > 0.5, "an epoch of one row is the row: {}", before.moments);
        let now = attacked(&[0], knows_level, 4);
        assert!(now.moments < 0.05, "chance is 0: {}", now.moments);
    }
}

/// The limit that docs/guarantees.md states: the change of one person between two epochs is not hidden where all others are steady.
#[test]
fn moments_tell_of_a_person_who_changes_among_steady_ones() {
    for knows_level in [false, true] {
        let now = attacked(&[0, 1, 2, 3], knows_level, 4);
        assert!((0.4..0.95).contains(&now.moments), "{}", now.moments);
        assert!(now.days > 0.3, "{}", now.days);
    }
}

/// Exactly: no published number depends on it.
#[test]
fn moments_do_not_depend_on_rows_of_too_short_an_epoch() {
    let terms = terms(4);
    let release = |days: Vec<i64>, seed: u64| {
        let rows = Trial { seed, days, least: 4 }.release(&terms);
        rows.into_iter().filter(|row| row.series == 1).collect::<Vec<SeriesRow>>()
    };
    for seed in 0..10 {
        assert_eq!(release(vec![30, 35, 40], seed), release(Vec::new(), seed));
        assert_ne!(release(vec![30, 35, 40, 41], seed), release(Vec::new(), seed));
    }
}
