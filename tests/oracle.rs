//! Threat 28: the pages as an oracle for a guessed value, pair or person.

#![allow(clippy::format_collect, reason = "short texts of a test")]

use crate::support;

use serde_json::Value;
use std::time::{Duration, Instant};
use support::schemas::schema;
use support::stand::{Fault, Stand, record};
use throng::config::FixedSettings;
use throng::daemon::state::records::Flush;

const SCHEMA: &str = schema!("oracle"; person, text "city", text "job", text "mood");

/// A plan is made every second of the batch clock.
const SETTINGS: &str = "[privacy]\nk = 3\n[batch]\nmax_records = 2000\n[plan]\ninterval = \"1s\"\n\
                        window_records = 6000\n";
const NOW: i64 = 1_700_000_000_000;

const STATIC: &str = "[privacy]\nk = 3\nmax_delay = \"1h\"\n[batch]\nmax_records = 2000\n[plan]\ninterval = \"1s\"\n\
                      window_records = 6000\n";

type Records = Vec<Option<Vec<u8>>>;

fn one(person: &str, city: &str, job: &str, mood: &str) -> Option<Vec<u8>> {
    record(format!(r#"{{"person":"{person}","city":"{city}","job":"{job}","mood":"{mood}"}}"#))
}

#[derive(Clone, Copy, Debug)]
enum Guess {
    Value,
    Pair,
    Person,
    /// The value of a known subject.
    Change,
}

/// City 0 never occurs with the jobs 7 and 9. A tenth of the subjects has a unique city.
fn crowd(from: usize, count: usize) -> Records {
    let each = (from..from + count).map(|n| {
        let city = if n % 10 == 9 { format!("hamlet-{n}") } else { format!("city-{}", n % 24) };
        let job = (n / 24 * 5 + n % 7) % 12;
        let job = if city == "city-0" && [7, 9].contains(&job) { 8 } else { job };
        one(&format!("p{n}"), &city, &format!("job-{job}"), &format!("mood-{}", n / 5 % 5))
    });
    each.collect()
}

/// Six of the same subjects have moved.
fn again(crowd: &Records) -> Records {
    let moved = |text: &str| text.replace("\"city-3\"", "\"city-4\"");
    let text = |record: &Option<Vec<u8>>| String::from_utf8(record.clone().expect("a record")).expect("a text");
    let those = crowd.iter().map(text).scan(6, |left, text| {
        let moves = *left > 0 && text.contains("\"city-3\"");
        *left -= i32::from(moves);
        Some(record(if moves { moved(&text) } else { text }))
    });
    those.collect()
}

fn target(guess: Guess, right: bool) -> Option<Vec<u8>> {
    match (guess, right) {
        (Guess::Value, true) => one("target", "hamlet-secret", "job-3", "mood-1"),
        (Guess::Value, false) => one("target", "hamlet-of-all-the-others", "job-3", "mood-1"),
        (Guess::Pair, true) => one("target", "city-0", "job-7", "mood-1"),
        (Guess::Pair, false) => one("a-target-of-longer-name", "city-0", "job-9", "mood-1"),
        (Guess::Person, true) => one("target", "city-1", "job-3", "mood-1"),
        (Guess::Person, false) => one("somebody-else", "city-1", "job-3", "mood-1"),
        (Guess::Change, true) => one("target", "city-1", "job-3", "mood-1"),
        (Guess::Change, false) => one("target", "city-11", "job-3", "mood-1"),
    }
}

fn attack(guess: Guess) -> Option<Vec<u8>> {
    match guess {
        Guess::Value => one("attacker", "hamlet-secret", "job-3", "mood-1"),
        Guess::Pair => one("attacker", "city-0", "job-7", "mood-1"),
        Guess::Person | Guess::Change => one("target", "city-1", "job-3", "mood-1"),
    }
}

/// Without durations, start times, memory and disk space.
fn pages(stand: &Stand) -> Vec<String> {
    let clocked = [
        "throng_batch_duration_seconds",
        "throng_append_to_commit_seconds",
        "throng_plan_search_seconds",
        "throng_recheck_seconds",
        "throng_state_recovery_seconds",
        "process_",
        // Includes the empty batches sent while waiting for evidence.
        "throng_state_bytes",
        "throng_state_free_bytes",
    ];
    let metrics = stand.telemetry.render();
    let mut lines: Vec<String> = metrics
        .lines()
        .filter(|line| !line.starts_with('#') && !clocked.iter().any(|name| line.starts_with(name)))
        .map(str::to_owned)
        .collect();
    let mut status = serde_json::to_value(stand.telemetry.status()).expect("JSON");
    forget_clocks(&mut status);
    flatten("status", &status, &mut lines);
    let mut plan = stand.telemetry.plan();
    forget_clocks(&mut plan);
    flatten("plan", &plan, &mut lines);
    lines.retain(|line| !counts_empty_batches(line));
    lines
}

fn counts_empty_batches(line: &str) -> bool {
    let metrics =
        ["throng_records_total{outcome=\"consumed\"}", "throng_records_total{outcome=\"dropped\"}", "throng_batch"];
    let figures = ["sequence", "clock_ms", "consumed", "dropped", "batches_committed"];
    let path = line.split(' ').next().unwrap_or_default();
    metrics.iter().any(|name| line.starts_with(name)) || figures.iter().any(|name| path.ends_with(&format!(".{name}")))
}

fn forget_clocks(page: &mut Value) {
    match page {
        Value::Object(map) => {
            let of_the_clock = |key: &str| {
                [
                    "seconds",
                    "uptime_seconds",
                    "append_to_commit_seconds",
                    "resident_bytes",
                    "state_bytes",
                    "state_free_bytes",
                ]
                .contains(&key)
                    || ["history", "consumed_per_second", "released_per_second"].contains(&key)
            };
            map.retain(|key, _| !of_the_clock(key));
            map.values_mut().for_each(forget_clocks);
        }
        Value::Array(list) => list.iter_mut().for_each(forget_clocks),
        _ => {}
    }
}

fn flatten(path: &str, value: &Value, into: &mut Vec<String>) {
    match value {
        Value::Object(map) => map.iter().for_each(|(key, value)| flatten(&format!("{path}.{key}"), value, into)),
        Value::Array(list) => list.iter().enumerate().for_each(|(n, v)| flatten(&format!("{path}.{n}"), v, into)),
        leaf => into.push(format!("{path} {leaf}")),
    }
}

fn version(stand: &Stand) -> u64 {
    stand.telemetry.plan()["version"].as_u64().expect("a plan")
}

fn until_evidence(stand: &mut Stand, version: u64, now: i64) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while stand.telemetry.plan()["evidence"]["plan"].as_u64().unwrap_or(0) < version {
        assert!(Instant::now() < deadline, "no evidence came: {}", stand.telemetry.plan());
        std::thread::sleep(Duration::from_millis(20));
        stand.offer(&[None], Flush::No, now, Fault::Nothing);
    }
}

/// Returns the pages right after the attacker's record, and after the next plan. The target's record precedes it by far
/// or is in the same small batch.
fn seen(guess: Guess, right: bool, together: bool, secret: &str) -> (Vec<String>, Vec<String>) {
    let changes = matches!(guess, Guess::Change);
    let mut stand = Stand::tuned(
        SCHEMA,
        if changes { STATIC } else { SETTINGS },
        secret,
        FixedSettings { handover_batches: 0, ..FixedSettings::default() },
    );
    let (mut first, mut small) = (crowd(0, 2000), crowd(5000, 8));
    if together { &mut small } else { &mut first }.push(target(guess, right));
    small.push(attack(guess));
    stand.offer(&first, Flush::No, NOW, Fault::Nothing);
    // After a restart no computation is running, so that of the next plan starts.
    let second = if changes { again(&crowd(0, 2000)) } else { crowd(2000, 2000) };
    stand.offer(&second, Flush::No, NOW + 10, Fault::Restart);
    let before = version(&stand);
    stand.offer(&small, Flush::No, NOW + 20, Fault::Nothing);
    let mut at_once = pages(&stand);
    // Gathered before the attacker's record, for a plan that depends on the machine.
    let early = [
        "throng_minimal_qids",
        "throng_quasi_identifiers",
        "throng_attribute_involvement",
        "throng_recheck_complete",
        "throng_plan_expected_loss",
        "status.plan.evidence",
        "plan.evidence",
    ];
    at_once.retain(|line| !early.iter().any(|name| line.starts_with(name)));
    stand.offer(&crowd(4000, 1000), Flush::No, NOW + 5000, Fault::Nothing);
    let after = version(&stand);
    assert!(after > before, "a plan was due");
    until_evidence(&mut stand, after, NOW + 5001);
    (at_once, pages(&stand))
}

fn differences(one: &[String], other: &[String]) -> Vec<String> {
    let only = |a: &[String], b: &[String]| a.iter().filter(|line| !b.contains(line)).cloned().collect::<Vec<_>>();
    [only(one, other), only(other, one)].concat()
}

#[test]
fn threat_28_pages_do_not_confirm_a_guess() {
    for guess in [Guess::Value, Guess::Pair, Guess::Person, Guess::Change] {
        for (together, secret) in [
            (false, "the first secret of this test"),
            (false, "the second secret of this test"),
            (true, "the third secret of this test"),
        ] {
            let (right, wrong) = (seen(guess, true, together, secret), seen(guess, false, together, secret));
            assert!(right.0.len() > 100 && right.1.len() > 100, "the pages were read");
            let told = [differences(&right.0, &wrong.0), differences(&right.1, &wrong.1)];
            assert!(told.iter().all(Vec::is_empty), "{guess:?}, together: {together}: {told:#?}");
        }
    }
}
