//! Simulation of one partition of a large group's changelog, compared with the formulas of `docs/operation.md`.

use std::collections::{BTreeMap, HashMap};
use std::time::Instant;
use throng::daemon::state::entries::{ChangelogEntry, EntryCodec, EntryReader, PartitionProgress, StateBinding};
use throng::daemon::state::records::{PendingGroup, StoredRow};
use throng::daemon::state::state_keys::StateKeys;
use throng_core::stream::release_sink::ChangelogRecord;
use throng_core::values::raw_batch::RecordPosition;

/// Bytes per record in a log segment in addition to key and value.
const FRAME: f64 = 12.0;

/// Dirty share at which a broker compacts a partition (`min.cleanable.dirty.ratio`).
const DIRTY: f64 = 0.5;

#[derive(Clone, Copy)]
struct Load {
    records_a_second: f64,
    partitions: f64,
    people: f64,
    batch: f64,
    /// Attribute groups released once per window, and the window in seconds.
    said_groups: f64,
    window: f64,
    waiting: f64,
}

#[derive(Clone, Copy)]
struct Figures {
    bytes_a_record: f64,
    live: f64,
    most: f64,
}

/// Key, value and frame.
fn bytes(record: &ChangelogRecord) -> f64 {
    (record.key.len() + record.value.as_ref().map_or(0, Vec::len)) as f64 + FRAME
}

fn progress(sequence: u64) -> ChangelogEntry {
    let binding = StateBinding { stream: 1 << 100, sink: 1 << 101, groups: 1 << 102 };
    let author = "01234567-89ab-cdef-0123-456789abcdef".to_owned();
    ChangelogEntry::Progress(Box::new(PartitionProgress { author, sequence, next: sequence as i64 * 10_000, binding }))
}

fn said(person: u64, group: u64, until: f64) -> ChangelogEntry {
    ChangelogEntry::Said(
        u128::from(person) << 64 | u128::from(group.wrapping_mul(0x9e37_79b9_7f4a_7c15)),
        (until * 1e3) as i64,
    )
}

/// Withheld for one of its groups.
fn waiting(number: u64) -> ChangelogEntry {
    let cells = (0..25).map(|at| format!("\"value {at} {}\"", number % 10)).collect();
    ChangelogEntry::Waiting(Box::new(StoredRow {
        ordinal: number,
        subject: number.wrapping_mul(0x9e37_79b9_7f4a_7c15),
        coordinate: RecordPosition { topic: 0, partition: 0, offset: number as i64, element: 0 },
        waited: 1,
        released: true,
        parts: Some(vec![PendingGroup {
            group: u128::MAX / 3,
            since_ms: 1_790_000_000_000,
            due_ms: 1_790_000_060_000,
        }]),
        cells,
    }))
}

fn model(load: &Load, codec: &EntryCodec) -> Figures {
    let set = |entry: &ChangelogEntry| bytes(&codec.set((0, 0), entry));
    let row = waiting(123_456);
    let removed = bytes(&codec.remove((0, 0), row.key()));
    let records = load.records_a_second / load.partitions;
    let people = load.people / load.partitions;
    // With the next record after the window, a subject releases one line per group.
    let said_a_second = people * load.said_groups / (load.window + people / records);
    let waiting_a_second = records * load.waiting;
    let written = set(&progress(1_000)) / load.batch
        + said_a_second * set(&said(1 << 60, 1, 2e9))
        + waiting_a_second * (set(&row) + removed);
    // A row is withheld for two batches minus half of its first batch.
    let live = 1.0 + people * load.said_groups + waiting_a_second * 2.0 * load.batch;
    Figures { bytes_a_record: written / records, live, most: live / (1.0 - DIRTY) }
}

/// Simulates one partition over `seconds`, and returns the longest log.
fn simulated(load: &Load, codec: &EntryCodec, seconds: f64) -> (Figures, Vec<ChangelogRecord>) {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1u64 << 53) as f64
    };
    let people = load.people / load.partitions;
    let a_batch = (load.records_a_second / load.partitions * load.batch) as u64;
    // Windows end at random times, as in a long run.
    let ends = load.window + load.partitions * people / load.records_a_second;
    let mut until: BTreeMap<u64, f64> = (0..people as u64).map(|person| (person, random() * ends)).collect();
    let groups = 0..load.said_groups as u64;
    let of_person = |(person, until): (&u64, &f64)| {
        groups.clone().map(|group| codec.set((0, 0), &said(person << 32, group, *until))).collect::<Vec<_>>()
    };
    let mut log: Vec<ChangelogRecord> = until.iter().flat_map(of_person).collect();
    let (mut clean, mut written, mut records, mut now, mut sequence) = (log.len(), 0.0, 0u64, 0.0, 0u64);
    let mut rows: [Vec<u64>; 2] = Default::default();
    let mut longest: Vec<ChangelogRecord> = Vec::new();
    while now < seconds {
        let mut batch = Vec::new();
        for number in std::mem::take(&mut rows[0]) {
            batch.push(codec.remove((0, 0), waiting(number).key()));
        }
        rows.swap(0, 1);
        for _ in 0..a_batch {
            records += 1;
            let person = (random() * people) as u64;
            if until.get(&person).is_none_or(|until| *until <= now) {
                until.insert(person, now + load.window);
                batch.extend(
                    groups.clone().map(|group| codec.set((0, 0), &said(person << 32, group, now + load.window))),
                );
            }
            if random() < load.waiting {
                rows[1].push(records);
                batch.push(codec.set((0, 0), &waiting(records)));
            }
        }
        sequence += 1;
        batch.push(codec.set((0, 0), &progress(sequence)));
        written += batch.iter().map(bytes).sum::<f64>();
        log.extend(batch);
        if (log.len() - clean) as f64 > DIRTY * log.len() as f64 && log.len() > 1_000 {
            if log.len() > longest.len() {
                longest.clone_from(&log);
            }
            log = compacted(log);
            clean = log.len();
        }
        now += load.batch;
    }
    let live = compacted(log).len() as f64;
    (Figures { bytes_a_record: written / records as f64, live, most: longest.len() as f64 }, longest)
}

fn compacted(log: Vec<ChangelogRecord>) -> Vec<ChangelogRecord> {
    let last: HashMap<Vec<u8>, usize> = log.iter().enumerate().map(|(at, record)| (record.key.clone(), at)).collect();
    let stays = |(at, record): &(usize, ChangelogRecord)| record.value.is_some() && last[&record.key] == *at;
    log.into_iter().enumerate().filter(stays).map(|(_, record)| record).collect()
}

pub fn run() {
    let codec = EntryCodec::new(&StateKeys::derive(b"a secret of the benchmark"), "bench");
    let million = Load {
        records_a_second: 1e6,
        partitions: 100.0,
        people: 1e6,
        batch: 2.0,
        said_groups: 4.0,
        window: 600.0,
        waiting: 0.02,
    };
    let loads = [
        ("1 M records/s, 1 M people, 100 partitions, batches of 2 s, 2 % wait", million),
        ("the same, batches of 10 s", Load { batch: 10.0, ..million }),
        ("the same, 20 % wait", Load { waiting: 0.2, ..million }),
        ("100,000 records/s, 10 M people", Load { records_a_second: 1e5, people: 1e7, ..million }),
    ];
    println!(
        "| load | | bytes a record | changelog, MB/s of all partitions | entries a partition | records of its log, most | read back, s |"
    );
    println!("|---|---|---:|---:|---:|---:|---:|");
    let row = waiting(123_456);
    let sizes = [&progress(1_000), &said(1 << 60, 1, 2e9), &row].map(|entry| bytes(&codec.set((0, 0), entry)));
    let removed = bytes(&codec.remove((0, 0), row.key()));
    let mut worst: f64 = 0.0;
    for (name, load) in loads {
        let by_model = model(&load, &codec);
        let (by_run, log) = simulated(&load, &codec, 900.0);
        let started = Instant::now();
        let mut reader = EntryReader::new(codec.clone());
        log.iter().for_each(|record| reader.add_record((&record.key, record.value.as_deref())));
        let restored = reader.into_restored(|_| true).expect("entries of one secret");
        let seconds = started.elapsed().as_secs_f64();
        assert!(!restored.release_entries.is_empty());
        let row = |what: &str, figures: Figures, seconds: f64| {
            let of_all = figures.bytes_a_record * load.records_a_second / 1e6;
            println!(
                "| {name} | {what} | {:.1} | {of_all:.1} | {:.0} | {:.0} | {seconds:.2} |",
                figures.bytes_a_record, figures.live, figures.most
            );
        };
        row("formula", by_model, seconds / log.len() as f64 * by_model.most);
        row("simulated", by_run, seconds);
        for (formula, run) in [
            (by_model.bytes_a_record, by_run.bytes_a_record),
            (by_model.live, by_run.live),
            (by_model.most, by_run.most),
        ] {
            worst = worst.max((formula / run - 1.0).abs());
        }
    }
    println!("\nBytes of an entry: progress, release log, waiting, removed: {sizes:?}, {removed}.");
    println!("Largest difference between formula and simulation: {:.0} %.", worst * 100.0);
    assert!(worst <= 0.2, "formula and simulation differ by more than a fifth");
}
