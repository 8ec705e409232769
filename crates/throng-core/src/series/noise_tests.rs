use super::super::noise_budget::GRID_STEPS;
use super::super::propose::propose_series;
use super::super::state::SeriesState;
use super::super::terms::{AllSeriesTerms, CohortTerms, DAY_MS, NoiseTerms};
use super::super::{SeriesProposal, SeriesReadings};
use super::*;
use crate::values::digest::mix;
use proptest::prelude::*;

/// 2026-03-02, a Monday.
const MONDAY: i64 = 1_772_409_600_000;
const RANGE: (f64, f64) = (-10.0, 90.0);

fn terms(every_ms: i64, is_batch: bool, epsilon: f64) -> AllSeriesTerms {
    let signal = |attribute: usize| SeriesSignal {
        attribute,
        name: format!("s{attribute}"),
        unit: None,
        range: RANGE,
        intervals: None,
    };
    let series = SeriesTerms {
        name: "noisy".into(),
        every_ms,
        every: "x".into(),
        cycle: None,
        signals: vec![signal(0), signal(1)],
        lateness_ms: 0,
        pooled: false,
        min_values: 4,
        moments: None,
        noise: Some(NoiseTerms { epsilon }),
    };
    let cohorts = CohortTerms {
        crowd: 3,
        colluders: 0,
        size: 9,
        warm_up_days: 7,
        idle_ms: 14 * DAY_MS,
        strata: Vec::new(),
        strata_names: Vec::new(),
        time: 2,
        max_histories: 1 << 20,
        is_batch,
    };
    AllSeriesTerms { cohorts, series: vec![series] }
}

/// Subject, time, two values.
type NoiseTestRecord = (u64, i64, f64, f64);

fn readings(records: &[NoiseTestRecord]) -> SeriesReadings {
    SeriesReadings {
        subjects: records.iter().map(|of| of.0).collect(),
        times: records.iter().map(|of| Some(of.1)).collect(),
        values: vec![records.iter().map(|of| of.2).collect(), records.iter().map(|of| of.3).collect()],
        ..SeriesReadings::default()
    }
}

fn draw(number: u128) -> u128 {
    u128::from(mix((number >> 64) as u64 ^ number as u64 ^ 5))
}

fn records_on_days(people: u64, days: impl IntoIterator<Item = i64>) -> Vec<NoiseTestRecord> {
    let of_day = |day: i64| {
        (1..=people).map(move |person| {
            let drawn = mix(person << 20 ^ day as u64);
            (
                person,
                MONDAY + day * DAY_MS + (drawn % 80_000) as i64 * 1_000,
                (drawn % 50) as f64,
                (drawn >> 8 & 63) as f64,
            )
        })
    };
    days.into_iter().flat_map(of_day).collect()
}

fn proposed(terms: &AllSeriesTerms, state: &SeriesState, records: &[NoiseTestRecord], is_end: bool) -> SeriesProposal {
    propose_series(terms, state, &readings(records), None, is_end, &draw)
}

fn job_proposal(terms: &AllSeriesTerms, records: &[NoiseTestRecord]) -> SeriesProposal {
    proposed(terms, &SeriesState::new(terms), records, true)
}

fn noisy_sums(proposal: &SeriesProposal) -> BTreeMap<(i64, usize), (u64, i64)> {
    let sum = |row: &SeriesRow| match row.statistic {
        RowStatistic::Noisy(of) => of.sum,
        _ => panic!("a series with noise has another statistic"),
    };
    proposal.rows.iter().map(|row| ((row.bucket, row.signal), (row.n, sum(row)))).collect()
}

#[test]
fn noisy_rows_are_near_true_means_and_equal_on_retry() {
    let terms = terms(DAY_MS, true, 8.0);
    let records = records_on_days(400, 0..10);
    let proposal = job_proposal(&terms, &records);
    assert_eq!(proposal, job_proposal(&terms, &records));
    assert_eq!(proposal.rows.len(), 20, "10 days, two signals");
    let scale = terms.series[0].noise.expect("noise").scale(&terms.series[0]);
    for row in &proposal.rows {
        let values: Vec<f64> = records
            .iter()
            .filter(|of| terms.series[0].bucket(of.1) == row.bucket)
            .map(|of| if row.signal == 0 { of.2 } else { of.3 })
            .collect();
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let error = scale.mean_error(values.len() as f64, mean, RANGE);
        let shown = row.mean().expect("a mean");
        assert!((shown - mean).abs() < 5.0 * error + 0.01, "{shown} against {mean} ± {error}");
        assert!((row.n as f64 - 400.0).abs() < 5.0 * scale.count_deviation());
    }
    let head = &proposal.changes.head;
    assert_eq!((head.noise_people, head.totals().represented, head.totals().records), (400, 4_000, 4_000));
    assert!(proposal.changes.cohorts.is_empty());
}

#[test]
fn changed_numbers_get_different_noise() {
    let terms = terms(DAY_MS, true, 8.0);
    // Per cell, the difference hides one person's whole range with probability 0.8.
    let far = |one: &BTreeMap<(i64, usize), (u64, i64)>, other: &BTreeMap<(i64, usize), (u64, i64)>| {
        one.iter().filter(|(cell, (_, sum))| (sum - other[cell].1).abs() > GRID_STEPS).count()
    };
    let all = noisy_sums(&job_proposal(&terms, &records_on_days(300, 0..10)));
    let mut without = records_on_days(300, 0..10);
    without.retain(|of| of.0 != 300);
    let without = noisy_sums(&job_proposal(&terms, &without));
    assert!(far(&all, &without) >= 10, "{} of 20 cells", far(&all, &without));
    let mut changed = records_on_days(300, 0..10);
    changed.iter_mut().for_each(|of| of.2 += if of.0 == 1 { 1.0 } else { 0.0 });
    let changed = noisy_sums(&job_proposal(&terms, &changed));
    assert!((5..=10).contains(&far(&all, &changed)), "{} of 10 cells", far(&all, &changed));
    let key = |signal| (MONDAY, signal);
    assert_eq!(all[&key(1)], changed[&key(1)], "the same numbers under the same terms");
}

#[test]
fn changed_settings_or_buckets_get_different_noise() {
    let records = records_on_days(300, [0]);
    let of = |terms: &AllSeriesTerms, records: &[NoiseTestRecord]| {
        *noisy_sums(&job_proposal(terms, records)).first_key_value().expect("a row").1
    };
    let first = of(&terms(DAY_MS, true, 8.0), &records);
    assert_ne!(first, of(&terms(DAY_MS, true, 8.1), &records));
    let later: Vec<NoiseTestRecord> = records.iter().map(|of| (of.0, of.1 + DAY_MS, of.2, of.3)).collect();
    assert_ne!(first, of(&terms(DAY_MS, true, 8.0), &later));
}

#[test]
fn noisy_rows_do_not_depend_on_batches() {
    let terms = terms(DAY_MS, false, 8.0);
    let mut records = records_on_days(300, (0..3).chain(9..12));
    records.sort_by_key(|of| (of.1, of.0));
    let all = |size: usize| {
        let (mut state, mut rows) = (SeriesState::new(&terms), Vec::new());
        for part in records.chunks(size) {
            let proposal = proposed(&terms, &state, part, false);
            rows.extend(proposal.rows);
            // Simulates a restart.
            state.apply(proposal.changes);
        }
        (rows, state.head)
    };
    let (rows, head) = all(7);
    assert_eq!((rows.clone(), head.clone()), all(500));
    let buckets: BTreeSet<i64> = rows.iter().map(|row| (row.bucket - MONDAY) / DAY_MS).collect();
    assert_eq!(buckets, BTreeSet::from([0, 1, 2, 9, 10]));
    assert_eq!(head.totals().too_few, 0);
    let cost = terms.series[0].noise.expect("noise").scale(&terms.series[0]).cell_rho * 2.0;
    assert_eq!(head.noise[0].week, MONDAY + 7 * DAY_MS);
    assert!((head.noise[0].rho / (2.0 * cost) - 1.0).abs() < 1e-12, "two days of the second week");
}

#[test]
fn week_with_spent_budget_publishes_no_rows() {
    let terms = terms(DAY_MS, true, 8.0);
    let scale = terms.series[0].noise.expect("noise").scale(&terms.series[0]);
    let mut state = SeriesState::new(&terms);
    state.head.closed_ms[0] = MONDAY;
    state.head.noise[0] = WeekSpent { week: MONDAY, rho: scale.weekly_rho - 3.5 * scale.cell_rho };
    let proposal = proposed(&terms, &state, &records_on_days(300, 0..8), true);
    let published: BTreeSet<i64> = proposal.rows.iter().map(|row| (row.bucket - MONDAY) / DAY_MS).collect();
    assert_eq!(published, BTreeSet::from([0, 7]), "one day is left of this week, and the next week is new");
    assert_eq!(proposal.changes.head.totals().too_few, 12);
}

/// K − 1 others are in the middle of a gap, before the first bucket of the others, and after their last. The lone subject
/// is the K-th there, and alone elsewhere.
#[test]
fn records_of_one_subject_change_no_other_bucket() {
    let hour = DAY_MS / 24;
    for is_batch in [true, false] {
        let terms = terms(hour, is_batch, 8.0);
        let at = |hours: i64| move |person: u64| (person, MONDAY + hours * hour, 20.0, 30.0);
        let few = [-500_000, 5_000, 30_000].into_iter().flat_map(|hours| [2, 3].map(at(hours)));
        let many = [0, 1, 20_000].into_iter().flat_map(|hours| (1..=300).map(at(hours)));
        let records: Vec<NoiseTestRecord> = few.chain(many).collect();
        let others = |lone: &[i64], is_added: bool| {
            let added = lone.iter().map(|hours| at(*hours)(1)).filter(|_| is_added);
            let mut records: Vec<NoiseTestRecord> = records.iter().copied().chain(added).collect();
            records.sort_by_key(|of| (of.1, of.0));
            let proposal = proposed(&terms, &SeriesState::new(&terms), &records, true);
            let own: Vec<i64> = lone.iter().map(|hours| MONDAY + hours * hour).collect();
            let others = proposal.rows.iter().filter(|row| !own.contains(&row.bucket)).map(|row| format!("{row:?}"));
            others.collect::<Vec<_>>()
        };
        for lone in [vec![-500_000], vec![30_000], vec![5_000], vec![-3_000, 4_000, 19_999, 24_000], vec![5_000, 5_001]]
        {
            let without = others(&lone, false);
            assert_eq!(
                (without.len(), others(&lone, true)),
                (6, without.clone()),
                "a record of one person at {lone:?}"
            );
        }
    }
}

/// The exact crowd is present in 10,000 buckets with both signals: no row may exist.
#[test]
fn buckets_of_exactly_one_crowd_have_no_rows() {
    let hour = DAY_MS / 24;
    let terms = terms(hour, true, 8.0);
    let records: Vec<NoiseTestRecord> =
        (0..10_000).flat_map(|hours| (1..=3).map(move |person| (person, MONDAY + hours * hour, 20.0, 30.0))).collect();
    let proposal = job_proposal(&terms, &records);
    assert_eq!((proposal.rows.len(), proposal.changes.head.totals().too_few), (0, 20_000));
}

#[test]
fn subjects_beyond_limit_are_counted_but_not_stored() {
    let mut terms = terms(DAY_MS, true, 8.0);
    terms.cohorts.max_histories = 100;
    let proposal = job_proposal(&terms, &records_on_days(300, 0..2));
    assert!(proposal.rows.iter().all(|row| row.n > 200), "everybody is counted");
    assert!(proposal.changes.people.len() <= 100 && proposal.dropped.is_empty());
    assert_eq!(proposal.changes.head.totals().over_limit, 0);
}

proptest! {
    #[test]
    fn exact_sums_change_by_at_most_the_sensitivity(
        others in prop::collection::vec((2_u64..9, 0_i64..7, -20.0_f64..120.0), 0..40),
        before in prop::collection::vec((0_i64..7, -1e6_f64..1e6), 0..8),
        after in prop::collection::vec((0_i64..7, -1e6_f64..1e6), 0..8),
    ) {
        let terms = terms(DAY_MS, true, 4.0);
        let exact = |own: &[(i64, f64)]| -> Vec<ExactSum> {
            let own = own.iter().map(|(day, value)| (1, *day, *value));
            let records: Vec<NoiseTestRecord> = others.iter().copied().chain(own)
                .map(|(person, day, value)| (person, MONDAY + day * DAY_MS, value, f64::NAN)).collect();
            // No bucket closes before the end of a job.
            let open = proposed(&terms, &SeriesState::new(&terms), &records, false).changes.open;
            (0..7).map(|day| {
                let people = open.iter().flat_map(|(subject, buckets)| buckets.iter().map(move |of| (*subject, of.clone())));
                let contributions = people.filter(|(_, of)| of.bucket == MONDAY + day * DAY_MS).collect();
                ExactSum::from_contributions(&contributions, 0, RANGE)
            }).collect()
        };
        for (one, other) in exact(&before).iter().zip(exact(&after)) {
            let (count, sum) = ((one.count - other.count).abs(), (one.sum - other.sum).abs());
            let most = if count == 0 { GRID_STEPS } else { GRID_STEPS / 2 };
            prop_assert!(count <= 1 && sum <= most, "{one:?} {other:?}");
        }
    }
}
