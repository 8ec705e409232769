use super::*;
use crate::anonymity::series::{CohortTerms, DAY_MS, Signal, propose};
use crate::records::digest::mix;
use proptest::prelude::*;

const HALF_DAY: i64 = DAY_MS / 2;

/// A record: person, time, two values.
type Record = (u64, i64, f64, f64);

fn terms(crowd: usize, size: usize, is_batch: bool, strata: usize) -> Arc<Terms> {
    let signal =
        |attribute: usize| Signal { attribute, name: format!("s{attribute}"), unit: None, range: (-1_000.0, 1_000.0) };
    let series = |name: &str, every_ms, pooled, signals: &[usize]| SeriesTerms {
        name: name.to_owned(),
        every_ms,
        every: "x".to_owned(),
        cycle: None,
        signals: signals.iter().map(|at| signal(*at)).collect(),
        lateness_ms: HALF_DAY,
        pooled,
        min_values: 2,
    };
    Arc::new(Terms {
        cohorts: CohortTerms {
            crowd,
            size,
            warm_up_days: if is_batch { 0 } else { 2 },
            idle_ms: 3 * DAY_MS,
            strata: (0..strata).map(|at| (at + 2, 0)).collect(),
            strata_names: (0..strata).map(|at| format!("stratum{at}")).collect(),
            time: 4,
            max_histories: 1 << 20,
            is_batch,
        },
        series: vec![series("daily", DAY_MS, false, &[0, 1]), series("halves", HALF_DAY, true, &[1])],
    })
}

fn readings(records: &[Record], strata: usize) -> Readings {
    Readings {
        subjects: records.iter().map(|record| record.0).collect(),
        times: records.iter().map(|record| Some(record.1)).collect(),
        values: vec![records.iter().map(|record| record.2).collect(), records.iter().map(|record| record.3).collect()],
        strata: records.iter().map(|record| (record.0, vec![(record.0 % 2).to_string(); strata])).collect(),
    }
}

/// A stream of `people` over `days`, of which some send rarely, come late, or stop for ever.
fn stream(seed: u64, people: u64, days: i64, lateness: i64) -> Vec<Record> {
    let mut records = Vec::new();
    for person in 1..=people {
        let habit = mix(seed ^ person);
        let (first, last) = ((habit % 4) as i64, days - (habit >> 8) as i64 % 7);
        for half in first * 2..last * 2 {
            let draw = mix(habit ^ half as u64);
            if draw.is_multiple_of(3) && habit.is_multiple_of(2) {
                continue;
            }
            let value = (draw >> 16) % 100 + habit % 50;
            let missing = (draw >> 40).is_multiple_of(5);
            let arrival = half * HALF_DAY + (draw >> 24) as i64 % HALF_DAY;
            let time = arrival - if (draw >> 50).is_multiple_of(6) { (draw >> 30) as i64 % (lateness + 1) } else { 0 };
            records.push((
                arrival,
                (person, time, if missing { f64::NAN } else { value as f64 }, (value + half as u64 % 9) as f64),
            ));
        }
    }
    records.sort_by_key(|(arrival, (person, ..))| (*arrival, *person));
    records.into_iter().map(|(_, record)| record).collect()
}

/// What a run has published and become.
#[derive(Default)]
struct Published {
    rows: Vec<SeriesRow>,
    /// People of every contributor set that was published.
    sets: BTreeSet<Vec<u64>>,
    state: SeriesState,
}

/// Runs a stream in batches of `size`, with a verified proposal for each; people of `erased` go after half of it.
fn run(terms: &Arc<Terms>, records: &[Record], size: usize, erased: &[u64]) -> Published {
    let mut state = SeriesState::new(terms);
    let mut published = Published::default();
    let draw = |number: u128| u128::from(mix(number as u64)) << 64 | u128::from(mix(number as u64 ^ 1));
    let batches = records.len().div_ceil(size).max(1);
    for batch in 0..batches {
        if batch == batches / 2 && !erased.is_empty() {
            state.erase(|subject| erased.contains(&subject));
        }
        let part = &records[batch * size..((batch + 1) * size).min(records.len())];
        let readings = readings(part, terms.cohorts.strata.len());
        let proposal = propose(terms, &state, &readings, None, batch + 1 == batches, &draw);
        let verified = verify_series(terms, &state, &readings, None, &proposal);
        let verified = verified.unwrap_or_else(|refusal| panic!("batch {batch}: {refusal}"));
        published.rows.extend(verified.rows().iter().cloned());
        state.apply(proposal.changes);
    }
    for cohort in state.cohorts.values() {
        for set in cohort.sets.iter().flatten() {
            published.sets.insert(cohort.members(*set).collect());
        }
    }
    published.state = state;
    published
}

/// Rank of a 0/1 matrix by elimination over the rationals, as floating-point numbers: entries stay small in these tests.
fn rank(mut rows: Vec<Vec<f64>>) -> usize {
    let (mut rank, width) = (0, rows.first().map_or(0, Vec::len));
    for column in 0..width {
        let Some(pivot) = (rank..rows.len()).find(|row| rows[*row][column].abs() > 1e-9) else { continue };
        rows.swap(rank, pivot);
        for row in 0..rows.len() {
            if row != rank && rows[row][column].abs() > 1e-9 {
                let factor = rows[row][column] / rows[rank][column];
                for at in column..width {
                    let taken = factor * rows[rank][at];
                    rows[row][at] -= taken;
                }
            }
        }
        rank += 1;
    }
    rank
}

/// G1 by brute force: whatever fewer than `crowd` people are left out, the sets keep their rank, so no combination of them is non-zero
/// on these people alone.
fn isolates_nobody(sets: &BTreeSet<Vec<u64>>, crowd: usize) -> bool {
    let people: BTreeSet<u64> = sets.iter().flatten().copied().collect();
    let matrix = |left_out: &[u64]| -> Vec<Vec<f64>> {
        let kept: Vec<u64> = people.iter().copied().filter(|person| !left_out.contains(person)).collect();
        sets.iter().map(|set| kept.iter().map(|person| f64::from(u8::from(set.contains(person)))).collect()).collect()
    };
    let whole = rank(matrix(&[]));
    let people: Vec<u64> = people.iter().copied().collect();
    let subsets: Vec<Vec<u64>> = match crowd {
        2 => people.iter().map(|person| vec![*person]).collect(),
        _ => people.iter().flat_map(|a| people.iter().filter(move |b| a < b).map(move |b| vec![*a, *b])).collect(),
    };
    subsets.iter().all(|left_out| rank(matrix(left_out)) == whole)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn streams_publish_no_isolating_combination_and_no_bucket_twice(
        seed in any::<u64>(), people in 0_u64..26, days in 1_i64..16, batch in 1_usize..60, crowd in 2_usize..4,
        strata in 0_usize..2, lateness in 0_i64..(2 * DAY_MS), erased in proptest::collection::vec(1_u64..26, 0..3),
    ) {
        let terms = terms(crowd, 2 * crowd + 1, false, strata);
        let records = stream(seed, people, days, lateness);
        let published = run(&terms, &records, batch, &erased);
        prop_assert!(isolates_nobody(&published.sets, crowd) || !erased.is_empty());
        let keys: BTreeSet<_> = published.rows.iter().map(|r| (r.series, r.bucket, r.signal, &r.cohort, &r.stratum)).collect();
        prop_assert_eq!(keys.len(), published.rows.len(), "a row left twice");
        let totals = published.state.head.totals;
        let open: u64 = published.state.open.values().flatten().map(|open| u64::from(open.records)).sum();
        let taken = totals.records + totals.late + totals.over_limit + open;
        if erased.is_empty() {
            prop_assert_eq!(taken, 2 * records.len() as u64);
        }
        prop_assert!(totals.represented <= totals.records);
        if erased.is_empty() {
            let whole = run(&terms, &records, records.len().max(1), &[]);
            prop_assert_eq!(&whole.rows, &published.rows, "rows depend on batches");
        }
    }

    #[test]
    fn files_give_the_same_rows_in_any_order_and_any_batches(
        seed in any::<u64>(), people in 0_u64..30, days in 1_i64..12, batch in 1_usize..200, crowd in 2_usize..4, strata in 0_usize..2,
    ) {
        let terms = terms(crowd, 3 * crowd, true, strata);
        let mut records = stream(seed, people, days, 0);
        let whole = run(&terms, &records, records.len().max(1), &[]);
        prop_assert!(isolates_nobody(&whole.sets, crowd));
        records.sort_by_key(|record| mix(seed ^ record.0 ^ record.1 as u64));
        let parts = run(&terms, &records, batch, &[]);
        prop_assert_eq!(&whole.rows, &parts.rows);
        let totals = whole.state.head.totals;
        prop_assert_eq!((totals.records, totals.late), (2 * records.len() as u64, 0));
    }
}

#[test]
fn regular_people_are_all_represented() {
    let terms = terms(3, 9, true, 0);
    let records: Vec<Record> = (1..=20_u64)
        .flat_map(|person| {
            (0..8_i64).map(move |day| {
                (person, day * DAY_MS, (person * 7 % 30) as f64 + day as f64, 50.0 + (person % 11) as f64)
            })
        })
        .collect();
    let published = run(&terms, &records, 1_000, &[]);
    let totals = published.state.head.totals;
    assert_eq!((totals.records, totals.represented), (320, 320), "{totals:?}");
    let members: BTreeSet<u64> = published.sets.iter().flatten().copied().collect();
    assert_eq!(members.len(), 20);
}

#[test]
fn spoiled_rows_are_refused() {
    let terms = terms(3, 7, true, 0);
    let records = stream(5, 20, 8, 0);
    let (state, readings) = (SeriesState::new(&terms), readings(&records, 0));
    let draw = |number: u128| u128::from(mix(number as u64));
    let sound = propose(&terms, &state, &readings, None, true, &draw);
    verify_series(&terms, &state, &readings, None, &sound).expect("a sound proposal");
    let cohort_row = sound.rows.iter().position(|row| row.cohort.is_some()).expect("a row of a cohort");
    let whole_row =
        sound.rows.iter().position(|row| row.cohort.is_none() && row.series == 0).expect("a row of all cohorts");
    let quartile_row = sound.rows.iter().position(|row| row.quartiles.is_some()).expect("a row with quartiles");
    let step = |row: usize| sound.changes.head.steps[sound.rows[row].signal].expect("a step");
    type Spoil<'a> = (&'a str, Box<dyn Fn(&mut SeriesProposal) + 'a>);
    let spoils: Vec<Spoil<'_>> = vec![
        ("mean", Box::new(|p| p.rows[cohort_row].mean += step(cohort_row))),
        ("unrounded mean", Box::new(|p| p.rows[cohort_row].mean += step(cohort_row) / 4.0)),
        ("deviation", Box::new(|p| p.rows[cohort_row].sd += step(cohort_row))),
        ("number of people", Box::new(|p| p.rows[cohort_row].n += 1)),
        ("filled share", Box::new(|p| p.rows[cohort_row].filled += 0.2)),
        ("quartile", Box::new(|p| p.rows[quartile_row].quartiles.as_mut().expect("quartiles")[1] += 1e3)),
        ("row twice", Box::new(|p| p.rows.push(p.rows[cohort_row].clone()))),
        ("other cohort", Box::new(|p| p.rows[cohort_row].cohort = Some("0".into()))),
        ("other bucket", Box::new(|p| p.rows[cohort_row].bucket += 400 * DAY_MS)),
        ("population mean", Box::new(|p| p.rows[whole_row].mean += 3.0 * step(whole_row))),
        ("population people", Box::new(|p| p.rows[whole_row].n += 1)),
        ("no series", Box::new(|p| p.rows[cohort_row].series = 9)),
        ("no signal", Box::new(|p| p.rows[cohort_row].signal = 9)),
        (
            "a member taken out",
            Box::new(|p| {
                p.changes.cohorts[0].1.atoms[0].members.pop();
            }),
        ),
        (
            "a person in two cohorts",
            Box::new(|p| {
                let stolen = p.changes.cohorts[1].1.atoms[0].members.clone();
                p.changes.cohorts[0].1.atoms[0].members = stolen;
            }),
        ),
        ("a set of no atoms", Box::new(|p| p.changes.cohorts[0].1.sets[0] = Some(0))),
        ("a set of other atoms", Box::new(|p| p.changes.cohorts[0].1.sets[0] = Some(1 << 15))),
        ("no step", Box::new(|p| p.changes.head.steps.iter_mut().for_each(|step| *step = None))),
    ];
    for (what, spoil) in spoils {
        let mut proposal = sound.clone();
        spoil(&mut proposal);
        assert!(verify_series(&terms, &state, &readings, None, &proposal).is_err(), "{what} was not refused");
    }
}

#[test]
fn a_closed_bucket_is_not_published_again() {
    let terms = terms(2, 4, false, 0);
    let records = stream(9, 12, 10, 0);
    let published = run(&terms, &records, 40, &[]);
    assert!(!published.rows.is_empty());
    let late: Vec<Record> = (1..=12).map(|person| (person, DAY_MS, 5.0, 6.0)).collect();
    let draw = |number: u128| number;
    let readings = readings(&late, 0);
    let proposal = propose(&terms, &published.state, &readings, None, false, &draw);
    assert!(proposal.rows.is_empty());
    assert_eq!(proposal.changes.head.totals.late, published.state.head.totals.late + 24);
    let mut forged = proposal;
    forged.rows.push(published.rows[0].clone());
    assert!(verify_series(&terms, &published.state, &readings, None, &forged).is_err());
}

#[test]
fn one_sender_closes_no_bucket_and_fills_no_memory() {
    let terms = terms(3, 6, false, 0);
    let state = SeriesState::new(&terms);
    let flood: Vec<Record> = (0..5_000).map(|day| (7, day * DAY_MS, 1.0, 1.0)).collect();
    let readings = readings(&flood, 0);
    let proposal = propose(&terms, &state, &readings, None, false, &|number| number);
    verify_series(&terms, &state, &readings, None, &proposal).expect("no row");
    let head = &proposal.changes.head;
    assert_eq!(head.closed_ms, [i64::MIN, i64::MIN]);
    assert_eq!(proposal.changes.open[0].1.len(), 2 * 128);
    assert_eq!(head.totals.over_limit, 2 * (5_000 - 128));
    assert_eq!(proposal.dropped.len(), 2 * (5_000 - 128));
    assert!(proposal.rows.is_empty());
}

#[test]
fn people_beyond_the_limit_of_histories_are_not_taken_in() {
    let mut limited = (*terms(3, 6, false, 0)).clone();
    // Three channels a person.
    limited.cohorts.max_histories = 3 * 10;
    let limited = Arc::new(limited);
    let flood: Vec<Record> = (1..=100).map(|person| (person, DAY_MS, 1.0, 1.0)).collect();
    let (state, readings) = (SeriesState::new(&limited), readings(&flood, 0));
    let proposal = propose(&limited, &state, &readings, None, false, &|number| number);
    verify_series(&limited, &state, &readings, None, &proposal).expect("no row");
    assert_eq!((proposal.changes.people.len(), proposal.changes.open.len()), (10, 10));
    assert_eq!(proposal.changes.head.totals.over_limit, 2 * 90);
}

#[test]
fn sums_beyond_a_double_are_missing_and_spoil_no_history() {
    let terms = terms(3, 6, true, 0);
    let mut records = stream(3, 12, 8, 0);
    records.extend((0..8).flat_map(|day| [(1, day * DAY_MS, f64::MAX, f64::MAX); 2]));
    let published = run(&terms, &records, 1_000, &[]);
    assert!(!published.rows.is_empty());
    assert!(published.rows.iter().all(|row| row.mean.is_finite() && row.sd.is_finite()));
    let histories = published.state.people.values().flat_map(|person| &person.histories);
    assert!(histories.clone().count() > 0 && histories.clone().all(|history| history.mean.is_finite()));
}
