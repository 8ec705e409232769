//! Killed at any moment of an erasure, a state is the one before it or the one after it.

use crate::at_rest::{SCHEMA, SECRET, line, spelled};
use crate::opened::{Opened, databases};
use crate::running::{LIVE, crowds};
use crate::support::binary::Place;
use crate::{TOKEN, forget, receipt, start, with_token};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};

/// In their order; behind the name it is done.
pub const POINTS: [&str; 5] =
    ["erasure-begun", "erasure-copied", "state-file-unnamed", "erasure-named", "erasure-cleared"];

pub fn is_done(point: &str) -> bool {
    matches!(point, "erasure-named" | "erasure-cleared" | "erasure-unanswered")
}

fn count(receipt: &serde_json::Value) -> u64 {
    receipt["removed"].as_object().expect("counts").values().map(|count| count.as_u64().expect("a count")).sum()
}

#[test]
fn killed_at_any_point_at_rest_it_is_done_or_not_begun() {
    let place = Place::new(SCHEMA, "");
    place.write("in.ndjson", (0..200).map(|n| line(&format!("p{}", n % 40), 30 + n % 4, "Zug")).collect::<String>());
    place.run(&[]).expect(0);
    for (number, point) in POINTS.iter().enumerate() {
        let person = format!("p{}", number + 1);
        let names = spelled(&place, &person);
        let would = receipt(&forget(&place, &[], &["--json", "--dry-run", &person], ""));
        assert!(count(&would) > 0);
        let mut command = Command::new(env!("CARGO_BIN_EXE_throng"));
        command.args(["forget", "-c", "throng.toml", &person]);
        place.surround(&mut command, &[]);
        command.env("FAILPOINTS", format!("{point}=return")).stdout(Stdio::null()).stderr(Stdio::null());
        let status = command.status().expect("it runs");
        assert_eq!(status.signal(), Some(6), "{point} was not reached");
        let left = receipt(&forget(&place, &[], &["--json", "--dry-run", &person], ""));
        assert_eq!(databases(&place.path("state")).len(), 1, "{point}: what was not finished is gone");
        assert_eq!(count(&left), if is_done(point) { 0 } else { count(&would) }, "{point}");
        // Asked again it is done, whatever it was.
        receipt(&forget(&place, &[], &["--json", &person], ""));
        assert_eq!(Opened::read(&place.path("state"), SECRET).with(&names), Vec::<String>::new(), "{point}");
        place.run(&[]).expect(0);
    }
}

/// Records come all the time; the daemon is killed within an erasure, started again and asked again.
#[test]
fn threat_33_killed_within_erasures_under_load_it_goes_on_and_loses_nothing() {
    let place = Place::new(SCHEMA, "");
    with_token(&place);
    // Each record is a person of its own, so that lines are people.
    let all: Vec<String> =
        (0..6_000).map(|n| line(&format!("p{n}"), 30 + (n * 7) % 40, ["Zug", "Bern", "Chur"][n % 3])).collect();
    let live: Vec<(&str, &str)> = LIVE.iter().copied().filter(|(key, _)| *key != "TELEMETRY__LOG_LEVEL").collect();
    let mut erased = Vec::new();
    let points = POINTS.iter().chain(&["erasure-unanswered"]);
    for (round, point) in (1..).zip(points) {
        let mut process = start(&place, &live, Some(&format!("{point}=return")));
        let feed: String = all[..round * 900].concat();
        // More than was consumed before, so that batches are under way while it is asked.
        process.feed(&feed);
        process.until("it reads", |s| s["totals"]["consumed"].as_u64() > Some((round as u64 - 1) * 900));
        let person = format!("p{}", round * 11);
        let out = forget(&place, &live, &["--json", &person], "");
        assert_eq!(out.code, Some(1), "{point}: no answer, no receipt: {}", out.stderr);
        assert!(out.stderr.contains("whether it is done is not known"), "{}", out.stderr);
        assert!(!process.wait().stderr.contains("panicked"), "{point}");
        erased.push(person);
    }
    let mut process = start(&place, &live, None);
    process.feed(all.concat());
    process.until("it reads", |s| s["ready"] == true);
    for person in &erased {
        receipt(&forget(&place, &live, &["--json", person], ""));
    }
    let outcome = process.wait().expect(0);
    let account = outcome.account();
    assert_eq!(account.consumed, 6_000, "nothing is lost, and nothing comes twice");
    let lines = crowds(&place);
    assert!(lines as u64 == account.released && lines > 3_000, "{lines} lines, {account:?}");
    let state = Opened::read(&place.path("state"), SECRET);
    for person in &erased {
        assert_eq!(state.with(&spelled(&place, person)), Vec::<String>::new(), "{person}");
    }
    assert!(!outcome.stderr.contains(TOKEN));
}
