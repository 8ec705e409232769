//! Benchmark of one, two and four instances on the same topic: `./dev bench scale`. It measures released records, loss,
//! speed, and takeover time after a kill.
//!
//! `THRONG_BENCH_RECORDS` sets the number of records (default 200,000). `THRONG_BENCH_RESTORE=1000000,10000000`
//! measures the restore of that number of entries. `THRONG_BENCH_SIMULATE=1` compares the changelog with the formulas
//! of `docs/operation.md`.

#[allow(dead_code, reason = "the scenario tests use the rest")]
#[path = "../../tests/support/copies.rs"]
mod copies;
#[allow(dead_code, reason = "the pipeline's benchmark uses the rest")]
#[path = "../pipeline/daemon.rs"]
mod daemon;
#[allow(dead_code, reason = "the pipeline's benchmark uses the rest")]
#[path = "../pipeline/input.rs"]
mod input;
#[allow(dead_code, reason = "the scenario tests use the rest")]
#[path = "../../tests/support/kafka.rs"]
mod kafka;
#[allow(dead_code, reason = "the pipeline's benchmark uses the rest")]
#[path = "../pipeline/machine.rs"]
mod machine;
#[allow(dead_code, reason = "the pipeline's benchmark uses the rest")]
#[path = "../pipeline/metrics.rs"]
mod metrics;
#[path = "../../tests/support/ports.rs"]
mod ports;
mod restore;
mod simulate;

use std::path::Path;
use std::time::{Duration, Instant};

use daemon::{Daemon, LOOK};
use input::Input;
use kafka::{Record, TestCluster};

const CONFIGURATION: &str = "config/wearable.toml";
const PARTITIONS: i32 = 8;
const BATCH: u64 = 10_000;
const PORTION: usize = 20_000;
const PATIENCE: Duration = Duration::from_secs(300);
/// Records that may remain withheld per instance.
const WAITING: u64 = 50;

#[derive(Clone, Copy)]
struct Way {
    instances: u64,
    /// Batches of one instance that equal one batch of all instances.
    parts: u64,
}

struct Outcome {
    loss: f64,
    suppressed: f64,
    rate: f64,
    takes_over: Option<Duration>,
}

fn main() {
    // `cargo test --benches` runs this without the flag.
    if !std::env::args().any(|argument| argument == "--bench") {
        println!("the benchmark of several instances runs with `./dev bench scale`");
        return;
    }
    if std::env::var_os("THRONG_BENCH_SIMULATE").is_some() {
        println!("Machine: {}. One partition stands for all.\n", machine::description());
        simulate::run();
        return;
    }
    if let Ok(numbers) = std::env::var("THRONG_BENCH_RESTORE") {
        let numbers: Vec<u64> = numbers.split(',').map(|n| n.parse().expect("numbers of entries")).collect();
        println!("Machine: {}. Entries of the release log in one partition.\n", machine::description());
        if let Some(broker) = TestCluster::start() {
            restore::run(&broker, &numbers);
        }
        return;
    }
    let records = match std::env::var("THRONG_BENCH_RECORDS") {
        Ok(text) => text.parse().expect("THRONG_BENCH_RECORDS is a number of records"),
        Err(_) => 200_000,
    };
    assert!(records >= 5 * BATCH, "THRONG_BENCH_RECORDS is at least {}: a loss needs several batches", 5 * BATCH);
    let folder = tempfile::Builder::new().prefix("throng-scale-").tempdir().expect("a temporary directory");
    eprintln!("generating {records} records");
    let input = Input::generate(folder.path().join("records.ndjson"), records);
    println!(
        "Machine: {}. {records} wearable records, {PARTITIONS} partitions, batches of {BATCH} in all.\n",
        machine::description()
    );
    println!(
        "| instances | records a batch | mean loss | suppressed, % | records/s, all | goes on after a kill, s |\n|---:|---:|---:|---:|---:|---:|"
    );
    // The smaller batches of two and four measure their cost alone.
    for (instances, parts) in [(1, 1), (1, 2), (1, 4), (2, 2), (4, 4)] {
        let way = Way { instances, parts };
        let Some(outcome) = measured(way, &input, folder.path()) else { return };
        row(way, &outcome);
    }
}

fn row(way: Way, outcome: &Outcome) {
    let Outcome { loss, suppressed, rate, takes_over } = outcome;
    let again = takes_over.map_or("–".to_owned(), |time| format!("{:.1}", time.as_secs_f64()));
    println!("| {} | {} | {loss:.4} | {suppressed:.2} | {rate:.0} | {again} |", way.instances, BATCH / way.parts);
}

fn write(broker: &TestCluster, lines: &mut input::Lines, records: u64) {
    let mut left = records;
    while left > 0 {
        let mut portion = Vec::new();
        while portion.len() < PORTION && left > 0 {
            let line = lines.next_line().expect("as many records as were generated").to_vec();
            let partition = i32::try_from(left % PARTITIONS as u64).expect("few partitions");
            portion.push(Record { partition: Some(partition), payload: Some(line), ..Record::default() });
            left -= 1;
        }
        broker.produce_records("wearable.raw", &portion);
    }
}

fn stage() -> Option<TestCluster> {
    let broker = TestCluster::start()?;
    for topic in ["wearable.raw", "wearable.sanitized"] {
        broker.create_topic(topic, PARTITIONS, false);
    }
    broker.create_topic("throng.dead-letters", 1, false);
    broker.create_topic("throng.changelog", PARTITIONS + 1, true);
    Some(broker)
}

/// Returns `None` without a broker.
fn measured(way: Way, input: &Input, folder: &Path) -> Option<Outcome> {
    let broker = stage()?;
    let run = folder.join(format!("{}-{}", way.instances, way.parts));
    std::fs::create_dir(&run).expect("a directory");

    // The last part is held back for the takeover: one batch per instance.
    let rest = if way.instances > 1 { BATCH } else { 0 };
    let mut lines = input.lines();
    write(&broker, &mut lines, input.records - rest);
    let (bootstrap, batch) = (broker.bootstrap(), (BATCH / way.parts).to_string());
    let overrides = [
        ("SOURCE__BROKERS", bootstrap.as_str()),
        ("BATCH__MAX_RECORDS", &batch),
        ("BATCH__MAX_WAIT", "1s"),
        ("SOURCE__LIBRDKAFKA__SESSION_TIMEOUT_MS", "6000"),
    ];
    let mut daemons: Vec<Daemon> =
        (0..way.instances).map(|at| Daemon::start(&run, &format!("instance-{at}"), &overrides)).collect();
    let mut losses = Losses::default();
    watch(&mut daemons, input.records - rest, &mut losses);
    let (first, last) = losses.span.expect("batches have left");
    let rate = losses.consumed_since_first / (last - first).as_secs_f64();

    let mut takes_over = None;
    if rest > 0 {
        let gone = daemons.pop().expect("several instances");
        let had = gone.metrics.records("consumed");
        drop(gone);
        let killed = Instant::now();
        write(&broker, &mut lines, rest);
        watch(&mut daemons, input.records - had as u64, &mut losses);
        takes_over = Some(killed.elapsed());
    }
    let sum = |outcome: &str| daemons.iter().map(|d| d.metrics.records(outcome)).sum::<f64>();
    let suppressed = 100.0 * sum("suppressed") / sum("consumed").max(1.0);
    daemons.into_iter().for_each(Daemon::stop);
    let loss = losses.weighed / losses.weight.max(1.0);
    Some(Outcome { loss, suppressed, rate, takes_over })
}

/// Weighted by the records consumed since the previous sample.
#[derive(Default)]
struct Losses {
    weighed: f64,
    weight: f64,
    span: Option<(Instant, Instant)>,
    consumed_since_first: f64,
}

fn watch(daemons: &mut [Daemon], records: u64, losses: &mut Losses) {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let mut consumed = 0;
        let (mut fresh, mut weighed) = (0.0, 0.0);
        for daemon in &mut *daemons {
            let before = if daemon.looks.is_empty() { 0.0 } else { daemon.metrics.records("consumed") };
            assert!(daemon.look(), "an instance has ended by itself");
            if daemon.looks.is_empty() {
                continue;
            }
            let more = daemon.metrics.records("consumed") - before;
            fresh += more;
            consumed += daemon.metrics.consumed();
            weighed += more * daemon.metrics.get("throng_information_loss");
        }
        losses.weighed += weighed;
        losses.weight += fresh;
        let now = Instant::now();
        if fresh > 0.0 {
            match &mut losses.span {
                Some((_, last)) => {
                    *last = now;
                    losses.consumed_since_first += fresh;
                }
                none => *none = Some((now, now)),
            }
        }
        // A few records remain withheld.
        if consumed + WAITING * daemons.len() as u64 >= records {
            return;
        }
        assert!(now < deadline, "{consumed} of {records} records after {} s", PATIENCE.as_secs());
        std::thread::sleep(LOOK / 2);
    }
}
