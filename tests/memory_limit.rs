//! Tests `process.memory_limit`: an unbounded number of values and classes in bounded memory.

use crate::support;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

use support::binary::{Account, Outcome, Place, Process};
use support::daemon::{Stage, finish, records, same};
use support::kafka::TestCluster;

/// Records that exceed the limit if none is set. `LONG` is used with `THRONG_LONG`.
const RECORDS: usize = 32_000;
const LONG: usize = 42_000;
const LOT: usize = 6;
const K: usize = 3;
const MIB: u64 = 1 << 20;
const LIMIT: u64 = 512 * MIB;
/// Longer than a run takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(1200);

const SCHEMA: &str = r#"
name = "t"
[[attribute]]
name = "user"
type = "string"
role = "subject"
[[attribute]]
name = "lot"
type = "string"
[[attribute]]
name = "a"
type = "string"
[[attribute]]
name = "b"
type = "string"
[[attribute]]
name = "c"
type = "string"
[[attribute]]
name = "d"
type = "string"
"#;

/// The texts are released as `*`, but the planner keeps them in memory.
const MORE: &str = r#"
[plan]
window_records = 42000
interval = "1h"
[[group]]
name = "lots"
attributes = ["lot"]
[[group]]
name = "texts"
attributes = ["a", "b", "c", "d"]
"#;

fn text(n: usize, of: usize) -> String {
    let mut state = (n * 4 + of) as u64;
    let mut letters = String::new();
    for place in 0..1_000 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        letters.push(if place % 7 == 6 { ' ' } else { char::from(b'a' + (state >> 59) as u8 % 26) });
    }
    letters
}

fn input(records: usize) -> String {
    let mut lines = String::new();
    for n in 0..records {
        let [a, b, c, d] = [0, 1, 2, 3].map(|of| text(n, of));
        writeln!(
            lines,
            "{{\"user\":\"u{}\",\"lot\":\"lot {}\",\"a\":\"{a}\",\"b\":\"{b}\",\"c\":\"{c}\",\"d\":\"{d}\"}}",
            n % 1009,
            n / LOT
        )
        .expect("a string");
    }
    lines
}

fn run(place: &Place, limit: &str) -> (u64, BTreeMap<String, f64>, Outcome) {
    let settings = [("PROCESS__MEMORY_LIMIT", limit), ("TELEMETRY__LOG_LEVEL", "warn"), ("BATCH__MAX_RECORDS", "600")];
    let mut process: Process = place.start(&settings);
    let (mut peak, mut highest, deadline) = (0, BTreeMap::new(), Instant::now() + PATIENCE);
    while !process.ends_within(Duration::from_millis(50)) {
        assert!(Instant::now() < deadline, "the daemon does not end");
        peak = peak.max(process.peak_memory().unwrap_or(0));
        let page = process.get("/metrics").map(|(_, page)| support::binary::series(&page)).unwrap_or_default();
        let is_read = |name: &str| name.starts_with("throng_memory_") || name.contains("_limit");
        for (name, value) in page.into_iter().filter(|(name, _)| is_read(name)) {
            let known = highest.entry(name).or_insert(value);
            *known = known.max(value);
        }
    }
    (peak, highest, process.wait().expect(0))
}

fn crowds(place: &Place) -> usize {
    let mut lines: BTreeMap<String, usize> = BTreeMap::new();
    for line in place.lines("out.lots.ndjson").into_iter().filter(|line| line.contains("lot ")) {
        *lines.entry(line).or_default() += 1;
    }
    assert!(lines.values().all(|people| *people >= K), "a lot of fewer than {K} people has left");
    lines.values().sum()
}

#[test]
fn threat_36_memory_stays_below_its_limit_for_any_input() {
    let is_long = std::env::var_os("THRONG_LONG").is_some();
    let records = if is_long { LONG } else { RECORDS };
    let input = input(records);
    let of = |limit: &str| {
        let place = Place::new(SCHEMA, MORE);
        place.write("in.ndjson", &input);
        let (peak, series, outcome) = run(&place, limit);
        let account: Account = outcome.account();
        assert_eq!(account.consumed, records as u64);
        (peak, series, account, crowds(&place))
    };
    let (limited, series, account, released) = of("512MiB");
    let (unlimited, without, account_without, released_without) = of("");
    eprintln!(
        "at most {} MiB below a limit of {} MiB, {} MiB without one",
        limited / MIB,
        LIMIT / MIB,
        unlimited / MIB
    );
    eprintln!("released {released} of {account:?}; without {released_without} of {account_without:?}");
    assert!(limited > 0, "the system tells what a process takes");
    assert!(limited < LIMIT, "{} MiB", limited / MIB);
    assert!(unlimited > LIMIT, "the limit is felt: {} and {} MiB", unlimited / MIB, limited / MIB);
    assert!(released > records / 2 && released == released_without, "{released}, {released_without}");
    let parts = ["program", "cache", "queues", "ledger", "window", "profiles", "dictionaries", "reserve"];
    let limits: f64 = parts.iter().map(|part| series[&format!("throng_memory_limit_bytes{{part=\"{part}\"}}")]).sum();
    assert!((limits - LIMIT as f64).abs() < 16.0, "{limits}");
    let limit = |series: &BTreeMap<String, f64>| series["throng_process_memory_limit_bytes"];
    assert!((limit(&series) - LIMIT as f64).abs() < 1.0 && limit(&without).abs() < 1.0);
    assert!(series["throng_ledger_supporters_limit"] <= without["throng_ledger_supporters_limit"]);
    let used = |series: &BTreeMap<String, f64>| series["throng_memory_used_bytes{part=\"dictionaries\"}"];
    assert!(used(&series) > 0.0 && used(&series) < used(&without), "{series:?}");
    assert!(without["throng_memory_limit_bytes{part=\"queues\"}"].abs() < 1.0);
}

#[test]
fn memory_limit_too_small_is_refused_with_a_minimum() {
    let place = Place::new(SCHEMA, MORE);
    place.write("in.ndjson", input(30));
    let refused = place.run(&[("PROCESS__MEMORY_LIMIT", "100MiB")]).expect(2);
    let words = refused.stderr.split("give at least ").nth(1).unwrap_or_else(|| panic!("{}", refused.stderr));
    let least = words.split(',').next().expect("a size").trim().to_owned();
    let taken = place.run(&[("PROCESS__MEMORY_LIMIT", &least)]).expect(0);
    assert!(taken.stderr.contains("consumed 30"), "{}", taken.stderr);
    place.run(&[("PROCESS__MEMORY_LIMIT", "a lot")]).expect(2);
}

#[test]
fn memory_limit_not_reached_keeps_topic_output_identical() {
    let Some(broker) = TestCluster::shared() else { return };
    let total = 2_000;
    let of = |limit: &str| {
        let mut stage = Stage::new(broker, 1);
        stage.security = limit.to_owned();
        stage.configure("only", 0, 40, "1h");
        broker.produce_records(&stage.raw, &records(5, 0, total, 1));
        let seen = finish(&stage, total);
        (stage, seen)
    };
    let (without, undisturbed) = of("");
    let (stage, seen) = of("[process]\nmemory_limit = \"640MiB\"\n");
    same(&stage, &seen, &without, &undisturbed);
}
