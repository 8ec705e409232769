//! Recounts the guarantees of series on random streams.

use super::isolation::{MinimumWeight, components, minimum_weight};
use super::{FillMode, Panel, PublishedSetMean, SignalChannel};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use throng_core::release::series::verify_series;
use throng_core::series::{
    AllSeriesTerms, CohortState, CohortTerms, DAY_MS, MeanStatistic, MomentTerms, RowStatistic, SeriesChanges,
    SeriesReadings, SeriesRow, SeriesSignal, SeriesState, SeriesTerms, SlotCycle, propose_series,
};
use throng_core::values::canonical::Rounding;
use throng_core::values::digest::mix;
use throng_core::values::hierarchy::Ruler;

const HALF_DAY: i64 = DAY_MS / 2;
const EPOCH: i64 = 4 * DAY_MS;

/// NaN: missing value.
#[derive(Clone, Copy, Debug)]
struct StreamRecord {
    person: u64,
    time: i64,
    values: [f64; 2],
}

#[derive(Clone, Copy, Debug)]
struct StreamScenario {
    seed: u64,
    people: u64,
    days: i64,
    crowd: usize,
    size: usize,
    strata: usize,
    lateness: i64,
    batch: usize,
    /// Batches per restart and, below, per erasure.
    restarts: u64,
    erasures: u64,
}

fn stream_scenarios() -> impl Strategy<Value = StreamScenario> {
    let sizes = (2_usize..5).prop_flat_map(|crowd| (Just(crowd), crowd..4 * crowd));
    (any::<u64>(), 0_u64..40, 1_i64..40, sizes, 0_usize..2, 0_i64..3 * DAY_MS, 1_usize..120, 1_u64..6, 1_u64..60)
        .prop_map(|(seed, people, days, (crowd, size), strata, lateness, batch, restarts, erasures)| StreamScenario {
            seed,
            people,
            days,
            crowd,
            size,
            strata,
            lateness,
            batch,
            restarts,
            erasures,
        })
}

fn terms(scene: StreamScenario) -> Arc<AllSeriesTerms> {
    let signal = |attribute: usize| {
        let range = if attribute == 0 { (-50.0, 90.0) } else { (-1_000.0, 1_000.0) };
        let intervals = Ruler::from_widths(true, Rounding::None, range, 0.0, &[20.0, 100.0]).ok();
        SeriesSignal { attribute, name: format!("s{attribute}"), unit: None, range, intervals }
    };
    let series = |name: &str, every_ms, cycle, pooled, signals: &[usize]| SeriesTerms {
        name: name.to_owned(),
        every_ms,
        every: "x".to_owned(),
        cycle,
        signals: signals.iter().map(|at| signal(*at)).collect(),
        lateness_ms: HALF_DAY,
        pooled,
        min_values: if cycle.is_some() { 1 } else { 2 },
        moments: None,
        noise: None,
    };
    let moments = Some(MomentTerms { every_ms: EPOCH, every: "4d".to_owned() });
    Arc::new(AllSeriesTerms {
        cohorts: CohortTerms {
            crowd: scene.crowd,
            colluders: 0,
            size: scene.size,
            warm_up_days: 2,
            idle_ms: 3 * DAY_MS,
            strata: (0..scene.strata).map(|at| (at + 2, 0)).collect(),
            strata_names: (0..scene.strata).map(|at| format!("stratum{at}")).collect(),
            time: 4,
            max_histories: 1 << 20,
            is_batch: false,
        },
        series: vec![
            series("daily", DAY_MS, None, false, &[0, 1]),
            series("halves", HALF_DAY, None, true, &[1]),
            series("week", 7 * DAY_MS, Some(SlotCycle::DayOfWeek), false, &[0]),
            SeriesTerms { moments, ..series("model", DAY_MS, None, scene.seed.is_multiple_of(2), &[0, 1]) },
        ],
    })
}

/// Subjects pause for weeks, stop, send late or omit values.
fn stream(scene: StreamScenario) -> Vec<StreamRecord> {
    let mut records = Vec::new();
    for person in 1..=scene.people {
        let habit = mix(scene.seed ^ person);
        let (first, last) = ((habit % 4) as i64, scene.days - (habit >> 8) as i64 % 9);
        let pause = (habit >> 20) as i64 % 30;
        for half in first * 2..last * 2 {
            let draw = mix(habit ^ half as u64);
            let is_away = habit.is_multiple_of(3) && (half / 2 - pause).rem_euclid(30) < 8;
            if is_away || draw.is_multiple_of(3) && habit.is_multiple_of(2) {
                continue;
            }
            let value = ((draw >> 16) % 100 + habit % 50) as f64;
            let arrival = half * HALF_DAY + (draw >> 24) as i64 % HALF_DAY;
            let is_late = (draw >> 50).is_multiple_of(6);
            let time = arrival - if is_late { (draw >> 30) as i64 % (scene.lateness + 1) } else { 0 };
            let first = if (draw >> 40).is_multiple_of(5) { f64::NAN } else { value };
            // A large value dominates others near 0.
            let second = match half % 6 {
                5 if (draw >> 45).is_multiple_of(9) => 95.0,
                5 => (value - 75.0) / 20.0,
                _ => value - 40.0 + (half % 9) as f64,
            };
            records.push((arrival, StreamRecord { person, time, values: [first, second] }));
        }
    }
    records.sort_by_key(|(arrival, record)| (*arrival, record.person));
    records.into_iter().map(|(_, record)| record).collect()
}

fn readings(records: &[StreamRecord], strata: usize) -> SeriesReadings {
    SeriesReadings {
        subjects: records.iter().map(|record| record.person).collect(),
        times: records.iter().map(|record| Some(record.time)).collect(),
        values: (0..2).map(|at| records.iter().map(|record| record.values[at]).collect()).collect(),
        strata: records.iter().map(|record| (record.person, vec![(record.person % 2).to_string(); strata])).collect(),
        received: None,
    }
}

/// Members as life numbers.
struct ReleasedRow {
    row: SeriesRow,
    members: Vec<u64>,
}

struct StreamOutcome {
    terms: Arc<AllSeriesTerms>,
    seen: Vec<ReleasedRow>,
    taken: Vec<Vec<StreamRecord>>,
    state: SeriesState,
    /// Records of erased subjects in open buckets.
    erased_open: u64,
    erasures: usize,
    closed: Vec<Vec<i64>>,
}

const LIVES: u64 = 1_000;

/// An erasure starts a new life.
fn life_number(person: u64, lives: &BTreeMap<u64, u64>) -> u64 {
    person * LIVES + lives.get(&person).copied().unwrap_or(0)
}

/// Proposes, verifies, writes and applies, as the engine does.
fn run_scenario(scene: StreamScenario) -> StreamOutcome {
    let terms = terms(scene);
    let records = stream(scene);
    let mut outcome = StreamOutcome {
        seen: Vec::new(),
        taken: vec![Vec::new(); terms.series.len()],
        state: SeriesState::new(&terms),
        erased_open: 0,
        erasures: 0,
        closed: Vec::new(),
        terms: Arc::clone(&terms),
    };
    let mut lives: BTreeMap<u64, u64> = BTreeMap::new();
    let draw = |number: u128| u128::from(mix(number as u64 ^ scene.seed)) << 64 | u128::from(mix(number as u64));
    for (at, batch) in records.chunks(scene.batch).enumerate() {
        let readings = readings(batch, scene.strata);
        let proposal = propose_series(&terms, &outcome.state, &readings, None, false, &draw);
        let verified = verify_series(&terms, &outcome.state, &readings, None, &proposal);
        let verified = verified.unwrap_or_else(|refusal| panic!("batch {at}: {refusal}"));
        for (row, record) in batch.iter().enumerate() {
            for series in (0..terms.series.len()).filter(|series| !proposal.dropped.contains(&(row, *series))) {
                outcome.taken[series].push(StreamRecord { person: life_number(record.person, &lives), ..*record });
            }
        }
        let written = postcard::to_stdvec(&proposal.changes).expect("changes are written");
        let rows = verified.rows().to_vec();
        outcome.state.apply(postcard::from_bytes::<SeriesChanges>(&written).expect("changes are read"));
        for row in rows {
            let member = |&(cohort, atoms): &(u32, u16)| {
                outcome.state.cohorts[&cohort]
                    .members(atoms)
                    .map(|person| life_number(person, &lives))
                    .collect::<Vec<u64>>()
            };
            let mut members: Vec<u64> = row.sets.iter().flat_map(member).collect();
            members.sort_unstable();
            outcome.seen.push(ReleasedRow { row, members });
        }
        outcome.closed.push(outcome.state.head.closed_ms.clone());
        let event = mix(scene.seed ^ at as u64 ^ 0xE7);
        if event.is_multiple_of(scene.restarts) {
            outcome.state = restored_state(&outcome.state);
        }
        if scene.people > 0 && (event >> 8).is_multiple_of(scene.erasures) {
            let person = 1 + (event >> 16) % scene.people;
            let open = outcome.state.open.get(&person).into_iter().flatten();
            outcome.erased_open += open.map(|open| u64::from(open.records)).sum::<u64>();
            outcome.state.erase_subjects(|subject| subject == person);
            *lives.entry(person).or_default() += 1;
            outcome.erasures += 1;
        }
    }
    outcome
}

/// In any order.
fn restored_state(state: &SeriesState) -> SeriesState {
    let changes = SeriesChanges {
        head: state.head.clone(),
        people: state.people.clone().into_iter().rev().collect(),
        open: state.open.clone().into_iter().rev().collect(),
        cohorts: state.cohorts.clone().into_iter().rev().collect(),
    };
    let mut read = SeriesState::default();
    read.apply(changes);
    read.return_members_to_pool();
    assert_eq!(&read, state, "a restart changes the state");
    read
}

/// One channel per series, signal and slot.
fn panel(outcome: &StreamOutcome, crowd: usize) -> Panel {
    let terms = &outcome.terms;
    let people: BTreeSet<u64> = outcome.taken.iter().flatten().map(|record| record.person).collect();
    let people: Vec<u64> = people.into_iter().collect();
    let index = |person: &u64| people.binary_search(person).expect("a person of a record") as u32;
    let first_ms = outcome.taken.iter().flatten().map(|record| record.time).min().unwrap_or(0) - 7 * DAY_MS;
    let mut channels: Vec<SignalChannel> = Vec::new();
    for (at, series) in terms.series.iter().enumerate() {
        for _ in 0..series.channels() {
            channels.push(SignalChannel {
                timeline: at,
                values: vec![Vec::new(); people.len()],
                range: (-1_000.0, 1_000.0),
                ..SignalChannel::default()
            });
        }
        if series.moments.is_some() {
            continue;
        }
        let window = |bucket: i64| series.windows_between(first_ms, bucket) as u32;
        let mut sums: BTreeMap<(u64, i64, usize), (f64, f64)> = BTreeMap::new();
        for record in &outcome.taken[at] {
            for (signal, of_signal) in series.signals.iter().enumerate() {
                let value = record.values[of_signal.attribute];
                if !value.is_nan() {
                    let sum = sums.entry((record.person, series.bucket(record.time), signal)).or_default();
                    *sum = (sum.0 + value.clamp(of_signal.range.0, of_signal.range.1), sum.1 + 1.0);
                }
            }
        }
        for ((person, bucket, signal), (sum, count)) in sums {
            let channel = &mut channels[terms.first_channel(at) + series.channel(bucket, signal)];
            channel.values[index(&person) as usize].push((window(bucket), sum / count));
        }
    }
    let mut sets: Vec<Vec<u32>> = Vec::new();
    for seen in outcome.seen.iter().filter(|seen| !seen.members.is_empty()) {
        let series = &terms.series[seen.row.series];
        let number = terms.first_channel(seen.row.series) + series.channel(seen.row.bucket, seen.row.signal);
        let bucket = series.windows_between(first_ms, seen.row.bucket) as u32;
        let statistic = seen.row.mean_statistic();
        let mean = statistic.map_or(f64::NAN, |statistic| statistic.mean);
        let step = statistic.map_or(0.0, |statistic| statistic.rounding_step(seen.row.n));
        if !seen.row.is_of_epoch() {
            channels[number].rows.push(PublishedSetMean {
                bucket,
                stream: 0,
                set: sets.len() as u32,
                mean,
                quartiles: None,
                step,
            });
        }
        sets.push(seen.members.iter().map(&index).collect());
    }
    Panel { people: people.len(), crowd, sets, channels, fill: FillMode::Carried }
}

fn recount(outcome: &StreamOutcome, panel: &Panel) -> Result<(), TestCaseError> {
    let mut next: Vec<usize> = vec![0; panel.channels.len()];
    for seen in outcome.seen.iter().filter(|seen| !seen.members.is_empty() && !seen.row.is_of_epoch()) {
        let series = &outcome.terms.series[seen.row.series];
        let number = outcome.terms.first_channel(seen.row.series) + series.channel(seen.row.bucket, seen.row.signal);
        let channel = &panel.channels[number];
        let row = channel.rows[next[number]];
        next[number] += 1;
        let members = panel.members(&row);
        let present = members.iter().filter(|person| channel.value(**person, row.bucket).is_some()).count();
        prop_assert!(present >= panel.crowd, "{present} members are present");
        let values: Vec<f64> = members.iter().map(|p| panel.contribution(channel, *p, row.bucket)).collect();
        let n = values.len() as f64;
        prop_assert_eq!(seen.row.n, values.len() as u64);
        prop_assert!((seen.row.filled - (n - present as f64) / n).abs() <= 0.050_001);
        match &seen.row.statistic {
            RowStatistic::Mean(statistic) => {
                recount_mean(statistic, values, channel.range)?;
            }
            RowStatistic::Bin { label, share } => {
                prop_assert!(share * n + 0.005 * n >= panel.crowd as f64, "{label} holds {share} of {n} people");
            }
            RowStatistic::Moment(_) => unreachable!("moments are recounted by themselves"),
            RowStatistic::Noisy(_) => return Err(TestCaseError::fail("no series has noise")),
        }
    }
    Ok(())
}

/// Complete buckets by life and epoch.
fn complete_rows(outcome: &StreamOutcome, series: usize) -> BTreeMap<u64, BTreeMap<i64, Vec<[f64; 2]>>> {
    let terms = &outcome.terms.series[series];
    let mut sums: BTreeMap<(u64, i64), [(f64, f64); 2]> = BTreeMap::new();
    for record in &outcome.taken[series] {
        let of_bucket = sums.entry((record.person, terms.bucket(record.time))).or_default();
        for (sum, (value, signal)) in of_bucket.iter_mut().zip(record.values.iter().zip(&terms.signals)) {
            if !value.is_nan() {
                *sum = (sum.0 + value.clamp(signal.range.0, signal.range.1), sum.1 + 1.0);
            }
        }
    }
    let mut rows: BTreeMap<u64, BTreeMap<i64, Vec<[f64; 2]>>> = BTreeMap::new();
    for ((person, bucket), sums) in sums {
        if sums.iter().all(|(_, count)| *count > 0.0) {
            let of_person = rows.entry(person).or_default();
            of_person.entry(bucket.div_euclid(EPOCH) * EPOCH).or_default().push(sums.map(|(sum, count)| sum / count));
        }
    }
    rows.values_mut().for_each(|epochs| epochs.retain(|_, rows| rows.len() >= terms.min_values as usize));
    rows
}

/// Each subject has weight one.
fn recount_moments(outcome: &StreamOutcome, crowd: usize) -> Result<(), TestCaseError> {
    let Some(series) = outcome.terms.series.iter().position(|series| series.moments.is_some()) else { return Ok(()) };
    let rows = complete_rows(outcome, series);
    prop_assert!(outcome.seen.iter().all(|seen| seen.row.is_of_epoch() == (seen.row.series == series)));
    for seen in outcome.seen.iter().filter(|seen| seen.row.series == series) {
        let RowStatistic::Moment(shown) = seen.row.statistic else { continue };
        let (epoch, n) = (seen.row.bucket, seen.members.len() as f64);
        let epochs_of = |member: &u64| rows.get(member).ok_or_else(|| TestCaseError::fail("a member has no epoch"));
        let mut present = 0;
        let (mut means, mut products) = ([0.0; 2], [0.0; 3]);
        for member in &seen.members {
            let epochs = epochs_of(member)?;
            present += usize::from(epochs.contains_key(&epoch));
            let counted: Vec<&Vec<[f64; 2]>> = match epochs.get(&epoch) {
                Some(own) => vec![own],
                None => epochs.range(..epoch).map(|(_, rows)| rows).collect(),
            };
            prop_assert!(!counted.is_empty(), "a member has no epoch so far");
            for rows in &counted {
                for [a, b] in *rows {
                    let weight = 1.0 / (rows.len() * counted.len()) as f64 / n;
                    (means[0], means[1]) = (means[0] + weight * a, means[1] + weight * b);
                    let of_row = [a * a, a * b, b * b];
                    products.iter_mut().zip(of_row).for_each(|(sum, product)| *sum += weight * product);
                }
            }
        }
        prop_assert!(present >= crowd, "{present} members are present");
        prop_assert_eq!(seen.row.n, seen.members.len() as u64);
        prop_assert!((seen.row.filled - (n - present as f64) / n).abs() <= 0.050_001);
        let covariance = |a: usize, b: usize| products[a + b] - means[a] * means[b];
        let (a, b) = (seen.row.signal, shown.with);
        let scale = (covariance(a, a) * covariance(b, b)).sqrt();
        let exact = covariance(a, b);
        prop_assert!((exact - shown.covariance).abs() <= scale * 0.000_51 + 1e-7, "{exact} is shown as {shown:?}");
        if let Some(mean) = shown.mean {
            prop_assert!((means[a] - mean).abs() <= scale.sqrt() * 0.000_51 + 1e-9, "{means:?} are shown as {shown:?}");
        }
    }
    Ok(())
}

fn recount_mean(shown: &MeanStatistic, mut values: Vec<f64>, (low, high): (f64, f64)) -> Result<(), TestCaseError> {
    let n = values.len() as f64;
    // At most half a standard error.
    let step = shown.sd / (2.0 * n.sqrt());
    let mean = values.iter().sum::<f64>() / n;
    prop_assert!((mean - shown.mean).abs() <= step * 0.500_001, "{mean} is shown as {}", shown.mean);
    let deviation = (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0)).sqrt();
    prop_assert!((shown.sd - deviation).abs() <= 0.500_001 * deviation / (2.0 * n.sqrt()));
    values.sort_by(f64::total_cmp);
    let median = f64::midpoint(values[(values.len() - 1) / 2], values[values.len() / 2]);
    for point in [low, high, median] {
        let mut sizes: Vec<f64> = values.iter().map(|value| (value - point).abs()).collect();
        sizes.sort_by(|a, b| b.total_cmp(a));
        let (total, rest) = (sizes.iter().sum::<f64>(), sizes[2..].iter().sum::<f64>());
        prop_assert!(sizes[0] <= total * 0.500_001 && rest >= sizes[0] * 0.099_999, "{values:?} is dominated");
    }
    Ok(())
}

fn label(row: &SeriesRow) -> Option<String> {
    match &row.statistic {
        RowStatistic::Bin { label, .. } => Some(label.clone()),
        RowStatistic::Mean(_) | RowStatistic::Moment(_) | RowStatistic::Noisy(_) => None,
    }
}

fn second_signal(row: &SeriesRow) -> Option<usize> {
    match &row.statistic {
        RowStatistic::Moment(moment) => Some(moment.with),
        RowStatistic::Mean(_) | RowStatistic::Bin { .. } | RowStatistic::Noisy(_) => None,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, ..ProptestConfig::default() })]

    #[test]
    fn random_streams_keep_series_guarantees(scene in stream_scenarios()) {
        let outcome = run_scenario(scene);
        let panel = panel(&outcome, scene.crowd);
        recount(&outcome, &panel)?;
        recount_moments(&outcome, scene.crowd)?;
        // A returning erased subject is the same person.
        let people = |seen: &ReleasedRow| seen.members.iter().map(|life| (life / LIVES) as u32).collect::<Vec<u32>>();
        let sets: BTreeSet<Vec<u32>> = outcome.seen.iter().map(people).filter(|set| !set.is_empty()).collect();
        let sets: Vec<&[u32]> = sets.iter().map(Vec::as_slice).collect();
        for sets in components(&sets) {
            let MinimumWeight { people, .. } = minimum_weight(&sets);
            prop_assert!(people >= scene.crowd, "a combination of {people} people in {sets:?}");
        }
        let key = |seen: &ReleasedRow| {
            let row = &seen.row;
            (row.series, row.bucket, row.signal, row.cohort.clone(), row.stratum.clone(), label(row), second_signal(row))
        };
        let keys: BTreeSet<_> = outcome.seen.iter().map(key).collect();
        prop_assert_eq!(keys.len(), outcome.seen.len(), "a bucket is published twice");
        for pair in outcome.closed.windows(2) {
            prop_assert!(pair[0].iter().zip(&pair[1]).all(|(before, after)| before <= after), "a bucket opens again");
        }
        let totals = outcome.state.head.totals();
        let open: u64 = outcome.state.open.values().flatten().map(|open| u64::from(open.records)).sum();
        let taken: u64 = outcome.taken.iter().map(|records| records.len() as u64).sum();
        let pending: u64 = outcome.state.head.epochs.iter().map(|epochs| epochs.records).sum();
        let counted = totals.records + pending + open + outcome.erased_open;
        prop_assert_eq!(taken, counted, "a record is lost or counted twice");
        prop_assert_eq!(taken + totals.late + totals.over_limit, 4 * stream(scene).len() as u64);
        prop_assert!(totals.represented <= totals.records);
    }

    #[test]
    fn rows_are_independent_of_restarts_and_batches(scene in stream_scenarios()) {
        let calm = StreamScenario { restarts: u64::MAX, erasures: u64::MAX, batch: usize::MAX, ..scene };
        let rows = |scene: StreamScenario| run_scenario(scene).seen.into_iter().map(|seen| (seen.row, seen.members)).collect::<Vec<_>>();
        prop_assert_eq!(rows(calm), rows(StreamScenario { erasures: u64::MAX, ..scene }));
    }
}

#[test]
fn random_streams_contain_hard_cases() {
    let (mut rows, mut binned, mut late, mut retired, mut erasures, mut veterans) = (0, 0, 0, 0, 0, 0);
    let (mut moments, mut filled) = (0, 0);
    for seed in 0..40 {
        let scene = StreamScenario {
            seed,
            people: 30,
            days: 36,
            crowd: 3,
            size: 7,
            strata: 0,
            lateness: DAY_MS,
            batch: 50,
            restarts: 3,
            erasures: 20,
        };
        let outcome = run_scenario(scene);
        rows += outcome.seen.len();
        let of_epochs = || outcome.seen.iter().filter(|seen| seen.row.is_of_epoch());
        (moments, filled) =
            (moments + of_epochs().count(), filled + of_epochs().filter(|s| s.row.filled > 0.0).count());
        binned += outcome.seen.iter().filter(|seen| label(&seen.row).is_some()).count();
        late += outcome.state.head.totals().late;
        retired += outcome.state.cohorts.values().filter(|cohort| cohort.is_retired).count();
        erasures += outcome.erasures;
        let cohorts = outcome.state.cohorts.values().flat_map(CohortState::all_members);
        let mut of_person: BTreeMap<u64, u32> = BTreeMap::new();
        cohorts.for_each(|person| *of_person.entry(person).or_default() += 1);
        veterans += of_person.values().filter(|cohorts| **cohorts > 1).count();
    }
    let counts = format!(
        "{rows} rows, {moments} of moments, {filled} of them filled, {binned} binned, {late} late, {retired} retired, {erasures} erasures, {veterans} veterans"
    );
    assert!(moments > 200 && filled > 20, "{counts}");
    assert!(rows > 1_000 && binned > 20 && late > 100 && retired > 10 && erasures > 20 && veterans > 10, "{counts}");
}
