//! Benchmark of series of 100,000 subjects with 20 signals. Processor times, best of the days.
//!
//! `./dev bench series -- PEOPLE` sets the number of subjects.

use rustix::time::{ClockId, clock_gettime};
use std::hint::black_box;
use std::sync::Arc;
use throng_core::release::series::verify_series;
use throng_core::series::{
    AllSeriesTerms, CohortTerms, DAY_MS, SeriesReadings, SeriesSignal, SeriesState, SeriesTerms, propose_series,
};

const SIGNALS: usize = 20;
const BATCH: usize = 10_000;
const WARM_UP: u32 = 4;
const DAYS: i64 = 8;

fn cpu() -> f64 {
    let now = clock_gettime(ClockId::ProcessCPUTime);
    now.tv_sec as f64 + now.tv_nsec as f64 / 1e9
}

fn terms() -> AllSeriesTerms {
    let signal = |attribute| SeriesSignal {
        attribute,
        name: format!("signal{attribute}"),
        unit: None,
        range: (0.0, 200.0),
        intervals: None,
    };
    let cohorts = CohortTerms {
        crowd: 5,
        colluders: 0,
        size: 15,
        warm_up_days: WARM_UP,
        idle_ms: 14 * DAY_MS,
        strata: Vec::new(),
        strata_names: Vec::new(),
        time: SIGNALS,
        max_histories: 1 << 25,
        is_batch: false,
    };
    let daily = SeriesTerms {
        name: "daily".into(),
        every_ms: DAY_MS,
        every: "1d".into(),
        cycle: None,
        signals: (0..SIGNALS).map(signal).collect(),
        lateness_ms: 0,
        pooled: false,
        min_values: 4,
        moments: None,
        noise: None,
    };
    AllSeriesTerms { cohorts, series: vec![daily] }
}

fn drawn(number: u64) -> f64 {
    let mixed = (number ^ (number >> 31)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    ((mixed ^ (mixed >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 11) as f64 / (1_u64 << 53) as f64
}

/// One record per subject on a day.
fn readings(people: std::ops::Range<u64>, day: i64) -> SeriesReadings {
    let value = |person: u64, signal: usize| {
        let level = 60.0 + 40.0 * drawn(person * 31 + signal as u64);
        level + 10.0 * drawn(person * 7919 + signal as u64 * 104_729 + day as u64)
    };
    SeriesReadings {
        times: people.clone().map(|person| Some(day * DAY_MS + (person % 86_400) as i64 * 1000)).collect(),
        values: (0..SIGNALS).map(|signal| people.clone().map(|person| value(person, signal)).collect()).collect(),
        subjects: people.map(|person| person + 1).collect(),
        ..SeriesReadings::default()
    }
}

#[derive(Clone, Copy, Default)]
struct Spent {
    proposed: f64,
    verified: f64,
}

fn step(terms: &Arc<AllSeriesTerms>, state: &mut SeriesState, readings: &SeriesReadings) -> (Spent, usize) {
    let draw = |number: u128| number.wrapping_mul(0x2545_F491_4F6C_DD1D_9E37_79B9_7F4A_7C15);
    let start = cpu();
    let proposal = propose_series(terms, state, readings, None, false, &draw);
    let proposed = cpu();
    let verified = verify_series(terms, state, readings, None, &proposal).expect("rows that are right");
    let spent = Spent { proposed: proposed - start, verified: cpu() - proposed };
    state.apply(proposal.changes);
    (spent, verified.rows().len())
}

fn main() {
    let people = std::env::args().skip(1).find_map(|text| text.parse().ok()).unwrap_or(100_000_u64);
    let terms = Arc::new(terms());
    let mut state = SeriesState::new(&terms);
    let least =
        |a: Spent, b: Spent| Spent { proposed: a.proposed.min(b.proposed), verified: a.verified.min(b.verified) };
    let never = Spent { proposed: f64::INFINITY, verified: f64::INFINITY };
    let (mut taking, mut closing, mut floor, mut rows) = (never, never, f64::INFINITY, 0);
    for day in 0..DAYS {
        for first in (0..people).step_by(BATCH) {
            let batch = readings(first..(first + BATCH as u64).min(people), day);
            let start = cpu();
            black_box(batch.values.iter().flatten().sum::<f64>());
            floor = floor.min(cpu() - start);
            let (spent, published) = step(&terms, &mut state, &batch);
            if day <= i64::from(WARM_UP) + 1 {
                continue;
            }
            // The first batch of a day also closes the previous day.
            if first > 0 {
                taking = least(taking, spent);
            } else {
                rows = published;
                closing = least(closing, spent);
            }
        }
    }
    let per_record = |seconds: f64| seconds / BATCH.min(people as usize) as f64 * 1e6;
    println!("{people} people, {SIGNALS} signals, a record of each a day, batches of {BATCH} records");
    println!("record, proposed   {:8.2} µs", per_record(taking.proposed));
    println!("record, verified   {:8.2} µs", per_record(taking.verified));
    println!("record, added only {:8.2} µs", per_record(floor));
    println!("bucket, proposed   {:8.2} s for {rows} rows", closing.proposed);
    println!("bucket, verified   {:8.2} s", closing.verified);
    let bytes = |bytes: Result<usize, String>| {
        bytes.map_or_else(|error| error, |bytes| format!("{:.0} MB", bytes as f64 / 1e6))
    };
    let histories =
        state.people.values().map(|person| person.histories.len() * size_of_val(&person.histories[..1])).sum();
    println!("histories          {:>8}, open cells {:>8}", bytes(Ok(histories)), bytes(Ok(state.cells * 16)));
}
