//! Benchmark of the whole program: `./dev bench pipeline`. Each rate is compared with simple passes over the same
//! records.
//!
//! `THRONG_BENCH_RECORDS` sets the number of records (default 1,000,000), each with about 4 KB of temporary disk.

mod client;
#[allow(dead_code, reason = "the scenario tests use the rest")]
#[path = "../../tests/support/copies.rs"]
mod copies;
mod daemon;
mod input;
#[allow(dead_code, reason = "the scenario tests use the rest")]
#[path = "../../tests/support/kafka.rs"]
mod kafka;
mod latency;
mod machine;
mod metrics;
#[path = "../../tests/support/ports.rs"]
mod ports;
mod report;

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use client::{BATCH, PARTITIONS};
use daemon::{Daemon, Look};
use input::Input;
use kafka::TestCluster;
use latency::{Latencies, Reader, observe, quantile, send_at};
use machine::Stretch;
use metrics::Metrics;
use report::{Report, grouped};

const CONFIGURATION: &str = "config/wearable.toml";

/// Memory should not grow once the planner's window is full.
const WINDOW: u64 = 200_000;

/// Duration of production for the latencies.
const PACED: Duration = Duration::from_secs(20);

const MAX_WAIT_SECONDS: f64 = 1.0;

const STAGES: [&str; 6] = ["read", "decode", "encode", "treat", "verify", "commit"];

const GROUPS: [&str; 11] =
    ["motion", "body", "device", "home", "place", "sensors", "recovery", "resting", "blood", "clock", "power"];

const SOURCE: &str = "wearable.raw";
const SINK: &str = "wearable.sanitized";
const COPY: &str = "bench.copy";
const COPY_IN_TRANSACTIONS: &str = "bench.copy-in-transactions";
const FRAGMENTS: &str = "bench.fragments";

fn main() {
    // `cargo test --benches` runs this without the flag.
    if !std::env::args().any(|argument| argument == "--bench") {
        println!("the whole-program benchmark runs with `./dev bench pipeline`");
        return;
    }
    let records = match std::env::var("THRONG_BENCH_RECORDS") {
        Ok(text) => text.parse().expect("THRONG_BENCH_RECORDS is a number of records"),
        Err(_) => 1_000_000,
    };
    assert!(records >= 3 * BATCH, "THRONG_BENCH_RECORDS is at least {}: a rate needs several batches", 3 * BATCH);
    let folder = tempfile::Builder::new().prefix("throng-bench-").tempdir().expect("a temporary directory");
    remove_when_interrupted(folder.path());

    let mut report = Report::default();
    eprintln!("generating {} records", grouped(records));
    let input = Input::generate(folder.path().join("records.ndjson"), records);
    describe(&mut report, &input);
    floors(&mut report, &input, folder.path());
    let files = folder.path().join("released.ndjson");
    let file_rate = file_to_file(&mut report, &input, folder.path(), &files);
    match TestCluster::start() {
        Some(broker) => topics(&mut report, &input, folder.path(), &files, &broker, file_rate),
        None => report.head("No Kafka, so no row about topics.".to_owned()),
    }
    println!("{}", report.markdown());
}

fn describe(report: &mut Report, input: &Input) {
    let build = if cfg!(debug_assertions) { "**a debug build: no figure means anything**" } else { "release build" };
    report.head(format!("Machine: {}.", machine::description()));
    report.head(format!("Program: throng {}, {build}.", env!("CARGO_PKG_VERSION")));
    report.head(format!(
        "Records: {} generated wearable records of {} bytes on average, {} subjects; {CONFIGURATION} ({} groups, without its series), \
         k = 5, batches of {}.",
        grouped(input.records),
        input.bytes / input.records,
        grouped(u64::from(input.subjects)),
        GROUPS.len(),
        grouped(BATCH),
    ));
}

fn floors(report: &mut Report, input: &Input, folder: &Path) {
    let copy = folder.join("copy.ndjson");
    let stretch = Stretch::begin();
    input.copy(&copy);
    report.rate("floor: the file copied line by line, one core", input.records, stretch.end(), None);
    remove(&copy);
    let stretch = Stretch::begin();
    input.parse();
    report.rate("floor: parsed by serde_json, nothing kept, one core", input.records, stretch.end(), None);
    let stretch = Stretch::begin();
    input.parse_into_values();
    report.rate("floor: parsed by serde_json into values, one core", input.records, stretch.end(), None);
}

/// The rate covers the whole process lifetime.
fn file_to_file(report: &mut Report, input: &Input, folder: &Path, files: &Path) -> f64 {
    let stretch = Stretch::begin();
    let (source, sink) = (text(&input.path), text(files));
    let mut daemon = Daemon::start(
        folder,
        "file",
        &[
            ("SOURCE__KIND", "file"),
            ("SOURCE__PATH", &source),
            ("SINK__KIND", "file"),
            ("SINK__PATH", &sink),
            ("BATCH__MAX_RECORDS", "10000"),
        ],
    );
    daemon.watch_to_the_end();
    let spent = stretch.end();
    let rate = report.rate("**file → file**, `throng run`, start and end included", input.records, spent, None);
    let (looks, peak, metrics) = (daemon.looks.clone(), daemon.peak_mib, daemon.metrics.clone());
    daemon.stop();
    report.target("file → file", format!("{} records/s", grouped(rate as u64)), "≥ 100,000 records/s", rate >= 1e5);
    memory(report, "file → file", &looks, peak, input.records);
    stages(report, "file → file", &metrics);
    rate
}

fn memory(report: &mut Report, run: &str, looks: &[Look], peak: f64, records: u64) {
    let at = |share: f64| looks.iter().find(|l| l.consumed as f64 >= share * records as f64).or(looks.last());
    let marks: Vec<String> = [0.25, 0.5, 0.75, 1.0]
        .iter()
        .filter_map(|&share| at(share))
        .map(|look| format!("{:.0}", look.resident_mib))
        .collect();
    report.figure(
        &format!("{run}: resident memory at 25, 50, 75 and 100 % of the records; peak"),
        format!("{} MiB; {peak:.0} MiB", marks.join(", ")),
    );
    report.target(&format!("{run}: peak memory"), format!("{peak:.0} MiB"), "< 1,024 MiB", peak < 1024.0);
    let Some(full) = looks.iter().find(|l| l.window >= WINDOW) else {
        report.figure(&format!("{run}: memory after the window is full"), "the window was never full".to_owned());
        return;
    };
    let later = looks.iter().filter(|l| l.consumed > full.consumed).map(|l| l.resident_mib).fold(0.0, f64::max);
    report.figure(
        &format!("{run}: memory when the window is full; the most after that"),
        format!("{:.0} MiB at {} records; {later:.0} MiB", full.resident_mib, grouped(full.consumed)),
    );
}

fn stages(report: &mut Report, run: &str, metrics: &Metrics) {
    let seconds: Vec<String> =
        STAGES.iter().map(|stage| format!("{stage} {:.1}", metrics.stage_seconds(stage))).collect();
    report.figure(&format!("{run}: seconds in each stage (read and decode run beside the others)"), seconds.join(", "));
    report.figure(
        &format!("{run}: mean loss of the last batch, fragments per record"),
        format!(
            "{:.4}, {:.2}",
            metrics.get("throng_information_loss"),
            fragments(metrics) / metrics.records("consumed")
        ),
    );
}

fn fragments(metrics: &Metrics) -> f64 {
    GROUPS.iter().map(|group| metrics.get(&format!("throng_fragments_total{{group=\"{group}\"}}"))).sum()
}

fn topics(report: &mut Report, input: &Input, folder: &Path, files: &Path, broker: &TestCluster, file_rate: f64) {
    let brokers = broker.bootstrap();
    let cluster = client::cluster(&brokers);
    for topic in [SOURCE, SINK, COPY, COPY_IN_TRANSACTIONS, FRAGMENTS] {
        broker.create_topic(topic, PARTITIONS, false);
    }
    broker.create_topic("throng.dead-letters", 1, false);
    broker.create_topic("throng.changelog", PARTITIONS + 1, true);

    let stretch = Stretch::begin();
    client::load(&cluster, input, SOURCE);
    report.rate("the records loaded into the topic, 2 partitions", input.records, stretch.end(), None);
    let mut copy = |to: &str, transactions: bool| {
        let stretch = Stretch::begin();
        let rate = client::copy(&cluster, SOURCE, to, input.records, transactions);
        let how = if transactions { "a transaction per 10,000 records" } else { "no transactions" };
        report.rate(&format!("floor: topic → topic, plain copy, {how}"), input.records, stretch.end(), Some(rate))
    };
    let plain = copy(COPY, false);
    let in_transactions = copy(COPY_IN_TRANSACTIONS, true);
    let stretch = Stretch::begin();
    let released: Vec<PathBuf> = GROUPS.iter().map(|group| files.with_extension(format!("{group}.ndjson"))).collect();
    let sent = client::produce_fragments(&cluster, &released, FRAGMENTS);
    let what = format!("floor: the {} released fragments produced again, transactions as above", grouped(sent));
    report.rate(&what, input.records, stretch.end(), None);
    for file in &released {
        remove(file);
    }

    let stretch = Stretch::begin();
    let max_wait = format!("{MAX_WAIT_SECONDS}s");
    let mut daemon = Daemon::start(
        folder,
        "topic",
        &[("SOURCE__BROKERS", brokers.as_str()), ("BATCH__MAX_WAIT", max_wait.as_str())],
    );
    daemon.watch_until(input.records, Duration::from_secs(60 + input.records / 1000));
    let rate = daemon.rate_from_first_to_last_commit();
    report.rate("**topic → topic**, `throng run`", input.records, stretch.end(), Some(rate));
    conserved(&daemon.metrics, input.records);
    memory(report, "topic → topic", &daemon.looks, daemon.peak_mib, input.records);
    stages(report, "topic → topic", &daemon.metrics);
    for (name, floor) in [("no transactions", plain), ("in transactions", in_transactions)] {
        let share = rate / floor.min(file_rate);
        report.target(
            &format!("topic → topic, against the slower of file → file and the plain copy ({name})"),
            format!("{:.0} %", share * 100.0),
            "≥ 60 %",
            share >= 0.6,
        );
    }
    latencies(report, input, &cluster, &mut daemon, rate / 2.0);
    daemon.stop();
}

/// Measures latencies at half of the measured rate, with the same daemon.
fn latencies(
    report: &mut Report,
    input: &Input,
    cluster: &throng_kafka::connection::KafkaCluster,
    daemon: &mut Daemon,
    rate: f64,
) {
    let before = daemon.metrics.clone();
    let reader = Reader::from_the_end(cluster, SINK);
    let stretch = Stretch::begin();
    let mut sent = 0;
    let observed = observe(&reader, || {
        let appended = send_at(cluster, input, SOURCE, rate, PACED);
        sent = appended.len() as u64;
        appended
    });
    daemon.watch_until(input.records + sent, Duration::from_secs(60));
    report.rate(
        "latency run: half of that rate, 1 partition",
        sent,
        stretch.end(),
        Some(sent as f64 / PACED.as_secs_f64()),
    );
    conserved(&daemon.metrics, input.records + sent);

    let reported = daemon.metrics.histogram_since(&before, "throng_append_to_commit_seconds");
    let within =
        |q| reported.quantile_within(q).map_or("not reported".to_owned(), |(a, b)| format!("{a:.3} to {b:.3} s"));
    report.figure(
        "append → commit as throng reports it, of the oldest record of each batch: p50; p99; batches",
        format!("{}; {}; {}", within(0.5), within(0.99), reported.count()),
    );
    match observed {
        Ok(Latencies { oldest, every }) => {
            for (whose, values) in [("the oldest record of each batch", oldest), ("every record", every)] {
                let (p50, p99) = (quantile(&values, 0.5), quantile(&values, 0.99));
                report.figure(
                    &format!("append → visible to a `read_committed` reader, of {whose}: p50; p99; worst; number"),
                    format!(
                        "{p50:.3} s; {p99:.3} s; {:.3} s; {}",
                        quantile(&values, 1.0),
                        grouped(values.len() as u64)
                    ),
                );
                report.target(
                    &format!("p99 from append to a reader, of {whose}"),
                    format!("{p99:.3} s"),
                    "≤ `max_wait` (1 s) + 0.25 s",
                    p99 <= MAX_WAIT_SECONDS + 0.25,
                );
            }
        }
        Err(why) => report.figure("append → visible to a `read_committed` reader", why),
    }
}

/// A rate with lost records is meaningless.
fn conserved(metrics: &Metrics, records: u64) {
    let settled: f64 = ["released", "suppressed", "dead_lettered", "dropped"].iter().map(|o| metrics.records(o)).sum();
    let held = metrics.get("throng_records_held");
    let consumed = metrics.records("consumed");
    assert!(
        consumed == records as f64 && consumed == settled + held,
        "{records} records were sent, {consumed} consumed, {settled} settled, {held} held"
    );
}

fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock after 1970");
    i64::try_from(since.as_millis()).expect("a clock before the year 292 million")
}

fn text(path: &Path) -> String {
    path.to_str().expect("a UTF-8 path").to_owned()
}

fn remove(file: &Path) {
    std::fs::remove_file(file).unwrap_or_else(|why| panic!("{}: {why}", file.display()));
}

/// Removes the temporary files on a signal, which ends the process without destructors.
fn remove_when_interrupted(folder: &Path) {
    let folder = folder.to_owned();
    let signals = [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM];
    let mut signals = signal_hook::iterator::Signals::new(signals).expect("signals can be caught");
    std::thread::spawn(move || {
        for signal in &mut signals {
            if let Err(why) = std::fs::remove_dir_all(&folder) {
                eprintln!("{} stays: {why}", folder.display());
            }
            if signal_hook::low_level::emulate_default_handler(signal).is_err() {
                return;
            }
        }
    });
}
