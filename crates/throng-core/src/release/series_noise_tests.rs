use super::super::series::verify_series;
use super::*;
use crate::series::{
    CohortTerms, NoiseTerms, NoisyStatistic, SeriesProposal, SeriesReadings, SeriesSignal, SeriesState, epsilon_of,
    propose_series, rho_of,
};
use crate::values::digest::mix;
use proptest::prelude::*;
use std::sync::Arc;

const MONDAY: i64 = 1_772_409_600_000;

fn signal(attribute: usize) -> SeriesSignal {
    SeriesSignal { attribute, name: format!("s{attribute}"), unit: None, range: (0.0, 100.0), intervals: None }
}

fn series(every_ms: i64, signals: &[usize], noise: Option<NoiseTerms>) -> SeriesTerms {
    SeriesTerms {
        name: format!("s{signals:?}"),
        every_ms,
        every: "x".into(),
        cycle: None,
        signals: signals.iter().map(|at| signal(*at)).collect(),
        lateness_ms: 0,
        pooled: false,
        min_values: 1,
        moments: None,
        noise,
    }
}

fn terms(is_batch: bool) -> Arc<AllSeriesTerms> {
    let cohorts = CohortTerms {
        crowd: 3,
        colluders: 0,
        size: 9,
        warm_up_days: 0,
        idle_ms: 14 * DAY_MS,
        strata: Vec::new(),
        strata_names: Vec::new(),
        time: 4,
        max_histories: 1 << 20,
        is_batch,
    };
    let noise = Some(NoiseTerms { epsilon: 8.0 });
    let series = vec![series(DAY_MS, &[0], None), series(DAY_MS, &[1, 2], noise), series(DAY_MS / 2, &[3], None)];
    Arc::new(AllSeriesTerms { cohorts, series })
}

fn readings(people: u64, days: std::ops::Range<i64>) -> SeriesReadings {
    let all: Vec<(i64, u64)> = days.flat_map(|day| (1..=people).map(move |person| (day, person))).collect();
    let value = |attribute: u64| {
        all.iter().map(move |(day, person)| (mix(person << 30 ^ *day as u64 ^ attribute << 50) % 90) as f64)
    };
    SeriesReadings {
        subjects: all.iter().map(|(_, person)| *person).collect(),
        times: all.iter().map(|(day, person)| Some(MONDAY + day * DAY_MS + (person % 40) as i64 * 1_800_000)).collect(),
        values: (0..4).map(|attribute| value(attribute).collect()).collect(),
        ..SeriesReadings::default()
    }
}

fn draw(number: u128) -> u128 {
    u128::from(mix((number >> 64) as u64 ^ number as u64)) << 64 | u128::from(mix(number as u64 ^ 1))
}

fn is_noisy(row: &SeriesRow) -> bool {
    matches!(row.statistic, RowStatistic::Noisy(_))
}

#[test]
fn noisy_rows_and_cohort_rows_are_released_over_batches() {
    let terms = terms(false);
    let mut state = SeriesState::new(&terms);
    let (mut noisy, mut others) = (0, 0);
    for day in 0..9 {
        let readings = readings(200, day..day + 1);
        let proposal = propose_series(&terms, &state, &readings, None, day == 8, &draw);
        let verified = verify_series(&terms, &state, &readings, None, &proposal).expect("sound rows");
        noisy += verified.rows().iter().filter(|row| is_noisy(row)).count();
        others += verified.rows().iter().filter(|row| !is_noisy(row)).count();
        assert!(proposal.changes.cohorts.iter().all(|(_, cohort)| cohort.sets.len() == 2), "two channels");
        state.apply(proposal.changes);
    }
    assert_eq!(noisy, 18);
    assert!(others > 100, "{others}");
}

#[test]
fn forged_noisy_rows_are_refused() {
    let terms = terms(true);
    let (state, readings) = (SeriesState::new(&terms), readings(200, 0..9));
    let sound = propose_series(&terms, &state, &readings, None, true, &draw);
    verify_series(&terms, &state, &readings, None, &sound).expect("a sound proposal");
    let rows: Vec<usize> = (0..sound.rows.len()).filter(|at| is_noisy(&sound.rows[*at])).collect();
    let of_cohort = sound.rows.iter().position(|row| row.cohort.is_some()).expect("a row of a cohort");
    let row = rows[3];
    let budget = NoiseBudget::of(&terms.series[1]).expect("noise");
    let far = (13.0 * budget.sum_deviation) as i64;
    let noisy = |row: &SeriesRow| match row.statistic {
        RowStatistic::Noisy(of) => of,
        _ => panic!("a row with noise"),
    };
    type NoiseForgery<'a> = (&'a str, Box<dyn Fn(&mut SeriesProposal) + 'a>);
    let shift = |p: &mut SeriesProposal, at: usize, sum: i64, n: i64| {
        let of = noisy(&p.rows[at]);
        let (sum, n) = (of.sum + sum, p.rows[at].n.strict_add_signed(n));
        let mean = 50.0 + 100.0 * (sum as f64 / (n as f64 * RANGE_STEPS)).clamp(-0.5, 0.5);
        (p.rows[at].n, p.rows[at].statistic) = (n, RowStatistic::Noisy(NoisyStatistic { mean, sum }));
    };
    let exact_sum = |at: usize| {
        let (bucket, signal) = (sound.rows[at].bucket, sound.rows[at].signal);
        let of_bucket = (0..readings.subjects.len())
            .filter(|at| terms.series[1].bucket(readings.times[*at].expect("a time")) == bucket);
        let values = of_bucket.map(|at| readings.values[terms.series[1].signals[signal].attribute][at]);
        values.map(|value| (value / 100.0 * RANGE_STEPS).round() as i64 - 32_768).sum::<i64>()
    };
    let spoils: Vec<NoiseForgery<'_>> = vec![
        ("another sum", Box::new(|p| shift(p, row, far, 0))),
        ("another count", Box::new(|p| shift(p, row, 0, (25.0 * budget.count_deviation) as i64))),
        ("a small count", Box::new(|p| shift(p, row, 0, 10 - p.rows[row].n as i64))),
        (
            "another mean",
            Box::new(|p| {
                let of = noisy(&p.rows[row]);
                p.rows[row].statistic = RowStatistic::Noisy(NoisyStatistic { mean: of.mean + 0.01, ..of });
            }),
        ),
        ("a row twice", Box::new(|p| p.rows.push(p.rows[row].clone()))),
        ("a cohort", Box::new(|p| p.rows[row].cohort = Some("c".into()))),
        ("a set", Box::new(|p| p.rows[row].sets = vec![(0, 1)])),
        ("a filled share", Box::new(|p| p.rows[row].filled = 0.1)),
        ("another signal", Box::new(|p| p.rows[row].signal = 2)),
        ("a bucket in between", Box::new(|p| p.rows[row].bucket += 1)),
        ("a later bucket", Box::new(|p| p.rows[row].bucket += 30 * DAY_MS)),
        ("a statistic of cohorts", Box::new(|p| p.rows[row].statistic = p.rows[of_cohort].statistic.clone())),
        ("noise in a row of a cohort", Box::new(|p| p.rows[of_cohort].statistic = p.rows[row].statistic.clone())),
        (
            "no noise",
            Box::new(|p| rows[..3].iter().for_each(|at| shift(p, *at, exact_sum(*at) - noisy(&p.rows[*at]).sum, 0))),
        ),
        ("nothing spent", Box::new(|p| p.changes.head.noise[1].rho = 0.0)),
        ("no later week", Box::new(|p| p.changes.head.noise[1].week = MONDAY)),
    ];
    for (what, spoil) in spoils {
        let mut proposal = sound.clone();
        spoil(&mut proposal);
        assert!(verify_series(&terms, &state, &readings, None, &proposal).is_err(), "{what} was not refused");
    }
    let mut spent = state.clone();
    spent.head.noise[1] = crate::series::WeekSpent { week: MONDAY, rho: 0.8 * budget.week };
    let refused = verify_series(&terms, &spent, &readings, None, &sound).expect_err("the week is spent");
    assert!(refused.claim.contains("budget"), "{refused}");
    let mut closed = state.clone();
    closed.head.closed_ms[1] = MONDAY + 3 * DAY_MS;
    assert!(verify_series(&terms, &closed, &readings, None, &sound).is_err(), "three buckets were closed before");
}

proptest! {
    #[test]
    fn noise_budget_matches_proposal(epsilon in 0.01_f64..20.0, every in 0_usize..4, signals in 1_usize..10) {
        let every = [DAY_MS / 24, DAY_MS / 2, DAY_MS, 7 * DAY_MS][every];
        let noise = NoiseTerms { epsilon };
        let of = series(every, &(0..signals).collect::<Vec<_>>(), Some(noise));
        let (scale, budget) = (noise.scale(&of), NoiseBudget::of(&of).expect("noise"));
        prop_assert!((rho_of(epsilon) / greatest_rho(epsilon) - 1.0).abs() < 1e-9);
        prop_assert!((epsilon_of(budget.week) / epsilon - 1.0).abs() < 1e-9);
        for (proposed, own) in [
            (scale.count_deviation(), budget.count_deviation),
            (scale.sum_deviation() * RANGE_STEPS, budget.sum_deviation),
        ] {
            prop_assert!(proposed >= own && proposed < own + 0.002 + own * 1e-8, "{proposed} {own}");
        }
    }

    #[test]
    fn week_starts_on_monday(day in -100_000_i64..100_000) {
        let week = week_of(day * DAY_MS + 5);
        prop_assert!((0..7).contains(&(day - week)));
        prop_assert_eq!((week * DAY_MS - MONDAY).rem_euclid(7 * DAY_MS), 0);
    }
}
