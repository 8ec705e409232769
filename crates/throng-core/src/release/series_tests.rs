#[path = "series_epoch_tests.rs"]
mod epochs;
#[path = "series_exchange_tests.rs"]
mod exchange;

use super::*;
use crate::series::{
    CohortTerms, DAY_MS, MeanStatistic, MomentStatistic, MomentTerms, SeriesCounts, SeriesSignal, propose_series,
};
use crate::values::canonical::Rounding;
use crate::values::digest::mix;
use crate::values::hierarchy::Ruler;
use proptest::prelude::*;

const HALF_DAY: i64 = DAY_MS / 2;

type SignalRecord = (u64, i64, f64, f64);

fn terms(crowd: usize, size: usize, is_batch: bool, strata: usize) -> Arc<AllSeriesTerms> {
    let signal = |attribute: usize| SeriesSignal {
        attribute,
        name: format!("s{attribute}"),
        unit: None,
        range: (-1_000.0, 1_000.0),
        intervals: Some(intervals()),
    };
    let series = |name: &str, every_ms, pooled, signals: &[usize]| SeriesTerms {
        name: name.to_owned(),
        every_ms,
        every: "x".to_owned(),
        cycle: None,
        signals: signals.iter().map(|at| signal(*at)).collect(),
        lateness_ms: HALF_DAY,
        pooled,
        min_values: 2,
        moments: None,
        noise: None,
    };
    Arc::new(AllSeriesTerms {
        cohorts: CohortTerms {
            crowd,
            colluders: crowd / 4,
            size,
            warm_up_days: if is_batch { 0 } else { 2 },
            idle_ms: 3 * DAY_MS,
            strata: (0..strata).map(|at| (at + 2, 0)).collect(),
            strata_names: (0..strata).map(|at| format!("stratum{at}")).collect(),
            time: 4,
            max_histories: 1 << 20,
            is_batch,
        },
        series: vec![
            series("daily", DAY_MS, false, &[0, 1]),
            series("halves", HALF_DAY, true, &[1]),
            SeriesTerms { moments: Some(four_days()), ..series("model", DAY_MS, false, &[0, 1]) },
        ],
    })
}

fn four_days() -> MomentTerms {
    MomentTerms { every_ms: 4 * DAY_MS, every: "4d".to_owned() }
}

const CUTS: [&[f64]; 3] = [&[-500.0, 0.5, 20.0, 500.0], &[0.5, 500.0], &[0.5]];

fn intervals() -> Ruler {
    Ruler::from_bounds(false, Rounding::None, (-1_000.0, 1_000.0), &CUTS.map(<[f64]>::to_vec)).expect("cut points")
}

fn readings(records: &[SignalRecord], strata: usize) -> SeriesReadings {
    SeriesReadings {
        subjects: records.iter().map(|record| record.0).collect(),
        times: records.iter().map(|record| Some(record.1)).collect(),
        values: vec![records.iter().map(|record| record.2).collect(), records.iter().map(|record| record.3).collect()],
        strata: records.iter().map(|record| (record.0, vec![(record.0 % 2).to_string(); strata])).collect(),
        received: None,
    }
}

fn stream(seed: u64, people: u64, days: i64, lateness: i64) -> Vec<SignalRecord> {
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

#[derive(Default)]
struct PublishedRun {
    rows: Vec<SeriesRow>,
    sets: BTreeSet<Vec<u64>>,
    state: SeriesState,
}

fn run(terms: &Arc<AllSeriesTerms>, records: &[SignalRecord], size: usize, erased: &[u64]) -> PublishedRun {
    let mut state = SeriesState::new(terms);
    let mut published = PublishedRun::default();
    let draw = |number: u128| u128::from(mix(number as u64)) << 64 | u128::from(mix(number as u64 ^ 1));
    let batches = records.len().div_ceil(size).max(1);
    let mut locked: BTreeSet<(u32, usize)> = BTreeSet::new();
    for batch in 0..batches {
        if batch == batches / 2 && !erased.is_empty() {
            state.erase_subjects(|subject| erased.contains(&subject));
        }
        let part = &records[batch * size..((batch + 1) * size).min(records.len())];
        let readings = readings(part, terms.cohorts.strata.len());
        let proposal = propose_series(terms, &state, &readings, None, batch + 1 == batches, &draw);
        let verified = verify_series(terms, &state, &readings, None, &proposal);
        let verified = verified.unwrap_or_else(|refusal| panic!("batch {batch}: {refusal}"));
        published.rows.extend(verified.rows().iter().cloned());
        // Erasure keeps published members.
        for (number, cohort) in &proposal.changes.cohorts {
            for (channel, set) in cohort.sets.iter().enumerate() {
                if let Some(set) = set.filter(|_| locked.insert((*number, channel))) {
                    published.sets.insert(cohort.members(set).collect());
                }
            }
        }
        state.apply(proposal.changes);
    }
    published.state = state;
    published
}

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

/// G1: any `crowd` − 1 subjects left out keep the rank, so no combination is non-zero only on them.
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

fn zero_inflated(seed: u64, people: u64, days: i64) -> Vec<SignalRecord> {
    let value = |draw: u64| match draw % 8 {
        0..=3 => 0.0,
        4 => -((draw >> 8) as f64 % 1_000.0),
        5 => (draw >> 8) as f64 % 20.0 + 1.0 / 3.0,
        _ => ((draw >> 8) % 3) as f64 * 500.0,
    };
    let at = |day: i64, person: u64| mix(seed ^ mix(person) ^ day as u64);
    let record = |day, person| (person, day * DAY_MS, value(at(day, person)), value(mix(at(day, person))));
    (0..days).flat_map(|day| (1..=people).map(move |person| record(day, person))).collect()
}

fn brute_force_bins(values: &[f64], crowd: usize) -> Vec<(String, f64)> {
    for cuts in CUTS {
        let edges: Vec<f64> = [&[-1_000.0], cuts, &[1_000.0]].concat();
        let bins = edges.windows(2).map(|edge| {
            let is_last = edge[1] == 1_000.0;
            let holds = |value: &&f64| **value >= edge[0] && (**value < edge[1] || is_last);
            let label = format!("[{},{}{}", edge[0], edge[1], if is_last { ']' } else { ')' });
            (label, values.iter().filter(holds).count())
        });
        let bins: Vec<(String, usize)> = bins.filter(|(_, people)| *people > 0).collect();
        if bins.len() > 1 && bins.iter().all(|(_, people)| *people >= crowd) {
            let share = |people: usize| (people as f64 * 100.0 / values.len() as f64).round() / 100.0;
            return bins.into_iter().map(|(label, people)| (label, share(people))).collect();
        }
    }
    Vec::new()
}

fn key(row: &SeriesRow) -> (usize, i64, usize, Option<String>, Option<Vec<String>>, String) {
    let part = match &row.statistic {
        RowStatistic::Mean(_) | RowStatistic::Noisy(_) => String::new(),
        RowStatistic::Bin { label, .. } => label.clone(),
        RowStatistic::Moment(moment) => format!("with {}", moment.with),
    };
    (row.series, row.bucket, row.signal, row.cohort.clone(), row.stratum.clone(), part)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn dominated_sums_are_released_as_brute_force_bins(
        seed in any::<u64>(), people in 8_u64..40, days in 2_i64..5, crowd in 2_usize..4,
    ) {
        let terms = terms(crowd, 3 * crowd, true, 0);
        let records = zero_inflated(seed, people, days);
        let published = run(&terms, &records, 1_000, &[]);
        let mut blocks: BTreeMap<(i64, usize, u32, u16), Vec<&SeriesRow>> = BTreeMap::new();
        let is_of_bucket = |row: &&SeriesRow| !matches!(row.statistic, RowStatistic::Moment(_)) && !row.sets.is_empty();
        for row in published.rows.iter().filter(|row| row.series == 0).filter(is_of_bucket) {
            blocks.entry((row.bucket, row.signal, row.sets[0].0, row.sets[0].1)).or_default().push(row);
        }
        let mut withheld = 0;
        for (number, cohort) in &published.state.cohorts {
            for day in 0..days {
                for signal in 0..terms.series[0].signals.len() {
                    let set = cohort.sets[signal].unwrap_or(u16::MAX >> (16 - cohort.atoms.len()));
                    let members: BTreeSet<u64> = cohort.members(set).collect();
                    let of_day = records.iter().filter(|record| record.1 == day * DAY_MS && members.contains(&record.0));
                    let values: Vec<f64> = of_day.map(|record| if signal == 0 { record.2 } else { record.3 }).collect();
                    let rows = blocks.remove(&(day * DAY_MS, signal, *number, set)).unwrap_or_default();
                    if rows.len() == 1 {
                        prop_assert!(rows[0].mean_statistic().is_some());
                        continue;
                    }
                    let shown: Vec<(String, f64)> = rows.iter().filter_map(|row| match &row.statistic {
                        RowStatistic::Bin { label, share } => Some((label.clone(), *share)),
                        RowStatistic::Mean(_) | RowStatistic::Moment(_) | RowStatistic::Noisy(_) => None,
                    }).collect();
                    withheld += u64::from(shown.is_empty());
                    prop_assert_eq!(shown, brute_force_bins(&values, crowd));
                }
            }
        }
        prop_assert!(blocks.is_empty(), "rows of no cohort: {:?}", blocks);
        prop_assert!(published.state.head.totals().dominated >= withheld);
    }

    #[test]
    fn stream_publishes_no_isolating_combination_and_no_bucket_twice(
        seed in any::<u64>(), people in 0_u64..26, days in 1_i64..16, batch in 1_usize..60, crowd in 2_usize..4,
        strata in 0_usize..2, lateness in 0_i64..(2 * DAY_MS), erased in proptest::collection::vec(1_u64..26, 0..3),
    ) {
        let terms = terms(crowd, 2 * crowd + 1, false, strata);
        let records = stream(seed, people, days, lateness);
        let published = run(&terms, &records, batch, &erased);
        prop_assert!(isolates_nobody(&published.sets, crowd));
        let keys: BTreeSet<_> = published.rows.iter().map(key).collect();
        prop_assert_eq!(keys.len(), published.rows.len(), "a row left twice");
        let totals = published.state.head.totals();
        let open: u64 = published.state.open.values().flatten().map(|open| u64::from(open.records)).sum();
        let pending: u64 = published.state.head.epochs.iter().map(|epochs| epochs.records).sum();
        let taken = totals.records + totals.late + totals.over_limit + open + pending;
        if erased.is_empty() {
            prop_assert_eq!(taken, 3 * records.len() as u64);
        }
        prop_assert!(totals.represented <= totals.records);
        if erased.is_empty() {
            let whole = run(&terms, &records, records.len().max(1), &[]);
            prop_assert_eq!(&whole.rows, &published.rows, "rows depend on batches");
        }
    }

    #[test]
    fn file_rows_do_not_depend_on_order_or_batches(
        seed in any::<u64>(), people in 0_u64..30, days in 1_i64..12, batch in 1_usize..200, crowd in 2_usize..4, strata in 0_usize..2,
    ) {
        let terms = terms(crowd, 3 * crowd, true, strata);
        let mut records = stream(seed, people, days, 0);
        let whole = run(&terms, &records, records.len().max(1), &[]);
        prop_assert!(isolates_nobody(&whole.sets, crowd));
        records.sort_by_key(|record| mix(seed ^ record.0 ^ record.1 as u64));
        let parts = run(&terms, &records, batch, &[]);
        prop_assert_eq!(&whole.rows, &parts.rows);
        let totals = whole.state.head.totals();
        prop_assert_eq!((totals.records, totals.late), (3 * records.len() as u64, 0));
    }
}

#[test]
fn bins_are_released_and_forged_ones_are_refused() {
    let terms = terms(3, 9, true, 0);
    let records = zero_inflated(4, 30, 6);
    let (state, readings) = (SeriesState::new(&terms), readings(&records, 0));
    let sound = propose_series(&terms, &state, &readings, None, true, &|number| u128::from(mix(number as u64)));
    verify_series(&terms, &state, &readings, None, &sound).expect("a sound proposal");
    let totals = sound.changes.head.totals();
    assert!(totals.binned > 5 && totals.dominated > 0, "{totals:?}");
    let is_bin = |row: &&SeriesRow| matches!(row.statistic, RowStatistic::Bin { .. });
    assert!(sound.rows.iter().filter(is_bin).all(|row| !row.sets.is_empty()), "no roll-up of bins");
    let is_all = |row: &&SeriesRow| row.series == 0 && row.cohort.is_none() && row.mean_statistic().is_some();
    let (mut compared, mut without_a_cohort) = (0, 0);
    for all in sound.rows.iter().filter(is_all) {
        let cohorts = sound
            .rows
            .iter()
            .filter(|row| (row.series, row.bucket, row.signal) == (0, all.bucket, all.signal) && row.cohort.is_some());
        let of_means = cohorts.clone().filter(|row| row.mean_statistic().is_some()).map(|row| row.n).sum::<u64>();
        assert_eq!(all.n, of_means);
        compared += 1;
        without_a_cohort += usize::from(cohorts.clone().any(|row| is_bin(&row)));
    }
    assert!(compared > 5 && without_a_cohort > 0, "{compared} rows, {without_a_cohort} without a cohort");
    let row = sound.rows.iter().position(|row| is_bin(&row)).expect("a bin");
    let (RowStatistic::Bin { label, share }, of_row) = (sound.rows[row].statistic.clone(), sound.rows[row].clone())
    else {
        panic!("a bin")
    };
    type Spoil<'a> = (&'a str, Box<dyn Fn(&mut SeriesProposal) + 'a>);
    let spoils: Vec<Spoil<'_>> = vec![
        ("share", Box::new(|p| p.rows[row].statistic = bin(&label, share + 0.05))),
        ("unrounded share", Box::new(|p| p.rows[row].statistic = bin(&label, share + 0.001))),
        ("other label", Box::new(|p| p.rows[row].statistic = bin("[-700,0.5)", share))),
        ("a bin left out", Box::new(|p| drop(p.rows.remove(row)))),
        ("a bin twice", Box::new(|p| p.rows.push(of_row.clone()))),
        ("filled share of one bin", Box::new(|p| p.rows[row].filled += 0.1)),
        ("people of one bin", Box::new(|p| p.rows[row].n += 1)),
        (
            "a mean in its place",
            Box::new(|p| {
                let statistic = MeanStatistic { mean: 1.0, sd: 1.0, quartiles: None };
                p.rows[row].statistic = RowStatistic::Mean(statistic);
            }),
        ),
    ];
    for (what, spoil) in spoils {
        let mut proposal = sound.clone();
        spoil(&mut proposal);
        assert!(verify_series(&terms, &state, &readings, None, &proposal).is_err(), "{what} was not refused");
    }
}

#[test]
fn regular_subjects_are_all_represented() {
    let terms = terms(3, 9, true, 0);
    let records: Vec<SignalRecord> = (1..=20_u64)
        .flat_map(|person| {
            (0..8_i64).map(move |day| {
                (person, day * DAY_MS, (person * 7 % 30) as f64 + day as f64, 50.0 + (person % 11) as f64)
            })
        })
        .collect();
    let published = run(&terms, &records, 1_000, &[]);
    let totals = published.state.head.totals();
    assert_eq!((totals.records, totals.represented), (480, 480), "{totals:?}");
    let members: BTreeSet<u64> = published.sets.iter().flatten().copied().collect();
    assert_eq!(members.len(), 20);
}

fn mean_of(proposal: &mut SeriesProposal, row: usize) -> &mut MeanStatistic {
    match &mut proposal.rows[row].statistic {
        RowStatistic::Mean(statistic) => statistic,
        RowStatistic::Bin { .. } | RowStatistic::Moment(_) | RowStatistic::Noisy(_) => panic!("a row of a mean"),
    }
}

fn bin(label: &str, share: f64) -> RowStatistic {
    RowStatistic::Bin { label: label.to_owned(), share }
}

#[test]
fn forged_series_rows_are_refused() {
    let terms = terms(3, 7, true, 0);
    let records = stream(5, 20, 8, 0);
    let (state, readings) = (SeriesState::new(&terms), readings(&records, 0));
    let draw = |number: u128| u128::from(mix(number as u64));
    let sound = propose_series(&terms, &state, &readings, None, true, &draw);
    verify_series(&terms, &state, &readings, None, &sound).expect("a sound proposal");
    let cohort_row = sound.rows.iter().position(|row| row.cohort.is_some()).expect("a row of a cohort");
    let whole_row =
        sound.rows.iter().position(|row| row.cohort.is_none() && row.series == 0).expect("a row of all cohorts");
    let has_quartiles = |row: &SeriesRow| row.mean_statistic().is_some_and(|of| of.quartiles.is_some());
    let quartile_row = sound.rows.iter().position(has_quartiles).expect("a row with quartiles");
    let step = |row: usize| {
        let of_row = sound.rows[row].mean_statistic().expect("a row of a mean");
        of_row.rounding_step(sound.rows[row].n)
    };
    type Spoil<'a> = (&'a str, Box<dyn Fn(&mut SeriesProposal) + 'a>);
    let spoils: Vec<Spoil<'_>> = vec![
        ("mean", Box::new(|p| mean_of(p, cohort_row).mean += step(cohort_row))),
        ("unrounded mean", Box::new(|p| mean_of(p, cohort_row).mean += step(cohort_row) / 4.0)),
        ("deviation", Box::new(|p| mean_of(p, cohort_row).sd += step(cohort_row))),
        ("share in the place of a mean", Box::new(|p| p.rows[cohort_row].statistic = bin("[0,500)", 1.0))),
        (
            "share beside a mean",
            Box::new(|p| {
                let share = SeriesRow { statistic: bin("[0,500)", 1.0), ..p.rows[cohort_row].clone() };
                p.rows.push(share);
            }),
        ),
        ("share of several cohorts", Box::new(|p| p.rows[whole_row].statistic = bin("[0,500)", 1.0))),
        ("number of people", Box::new(|p| p.rows[cohort_row].n += 1)),
        ("filled share", Box::new(|p| p.rows[cohort_row].filled += 0.2)),
        ("quartile", Box::new(|p| mean_of(p, quartile_row).quartiles.as_mut().expect("quartiles")[1] += 1e3)),
        ("row twice", Box::new(|p| p.rows.push(p.rows[cohort_row].clone()))),
        ("other cohort", Box::new(|p| p.rows[cohort_row].cohort = Some("0".into()))),
        ("other bucket", Box::new(|p| p.rows[cohort_row].bucket += 400 * DAY_MS)),
        ("population mean", Box::new(|p| mean_of(p, whole_row).mean += 3.0 * step(whole_row))),
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
    ];
    for (what, spoil) in spoils {
        let mut proposal = sound.clone();
        spoil(&mut proposal);
        assert!(verify_series(&terms, &state, &readings, None, &proposal).is_err(), "{what} was not refused");
    }
}

#[test]
fn closed_bucket_is_not_published_again() {
    let terms = terms(2, 4, false, 0);
    let records = stream(9, 12, 10, 0);
    let published = run(&terms, &records, 40, &[]);
    assert!(!published.rows.is_empty());
    let late: Vec<SignalRecord> = (1..=12).map(|person| (person, DAY_MS, 5.0, 6.0)).collect();
    let draw = |number: u128| number;
    let readings = readings(&late, 0);
    let proposal = propose_series(&terms, &published.state, &readings, None, false, &draw);
    assert!(proposal.rows.is_empty());
    assert_eq!(proposal.changes.head.totals().late, published.state.head.totals().late + 36);
    let mut forged = proposal;
    forged.rows.push(published.rows[0].clone());
    assert!(verify_series(&terms, &published.state, &readings, None, &forged).is_err());
}

#[test]
fn single_sender_closes_no_bucket_and_state_stays_bounded() {
    let terms = terms(3, 6, false, 0);
    let state = SeriesState::new(&terms);
    let flood: Vec<SignalRecord> = (0..5_000).map(|day| (7, day * DAY_MS, 1.0, 1.0)).collect();
    let readings = readings(&flood, 0);
    let proposal = propose_series(&terms, &state, &readings, None, false, &|number| number);
    verify_series(&terms, &state, &readings, None, &proposal).expect("no row");
    let head = &proposal.changes.head;
    assert_eq!(head.closed_ms, [i64::MIN; 3]);
    assert_eq!(proposal.changes.open[0].1.len(), 3 * 128);
    assert_eq!(head.totals().over_limit, 3 * (5_000 - 128));
    assert_eq!(proposal.dropped.len(), 3 * (5_000 - 128));
    assert!(proposal.rows.is_empty());
}

#[test]
fn subjects_beyond_history_limit_are_dropped() {
    let mut limited = (*terms(3, 6, false, 0)).clone();
    limited.cohorts.max_histories = (3 + 1 + 2) * 10;
    let limited = Arc::new(limited);
    let flood: Vec<SignalRecord> = (1..=100).map(|person| (person, DAY_MS, 1.0, 1.0)).collect();
    let (state, readings) = (SeriesState::new(&limited), readings(&flood, 0));
    let proposal = propose_series(&limited, &state, &readings, None, false, &|number| number);
    verify_series(&limited, &state, &readings, None, &proposal).expect("no row");
    assert_eq!((proposal.changes.people.len(), proposal.changes.open.len()), (10, 10));
    assert_eq!(proposal.changes.head.totals().over_limit, 3 * 90);
}

#[test]
fn overflowing_sums_are_missing_and_keep_histories_finite() {
    let mut terms = (*terms(3, 6, true, 0)).clone();
    for signal in terms.series.iter_mut().flat_map(|series| &mut series.signals) {
        (signal.range, signal.intervals) = ((f64::NEG_INFINITY, f64::INFINITY), None);
    }
    let terms = Arc::new(terms);
    let mut records = stream(3, 12, 8, 0);
    records.extend((0..8).flat_map(|day| [(1, day * DAY_MS, f64::MAX, f64::MAX); 2]));
    let published = run(&terms, &records, 1_000, &[]);
    assert!(!published.rows.is_empty());
    let mut means = published.rows.iter().filter_map(SeriesRow::mean_statistic);
    assert!(means.all(|of| of.mean.is_finite() && of.sd.is_finite()));
    let histories = published.state.people.values().flat_map(|person| &person.histories);
    assert!(histories.clone().count() > 0 && histories.clone().all(|history| history.mean.is_finite()));
}
