//! Tests `throng forget` with a running daemon.

use crate::forget::at_rest::{SCHEMA, SECRET, line, spelled};
use crate::forget::opened::{Opened, databases};
use crate::forget::{forget, receipt, start, with_token};
use crate::support::binary::{Place, series};
use crate::support::canaries::Canaries;

/// Records arrive through a pipe, and are held until they have a crowd.
pub const LIVE: [(&str, &str); 5] = [
    ("SOURCE__PATH", "-"),
    ("TELEMETRY__TOKEN_FILE", "token"),
    ("TELEMETRY__LOG_LEVEL", "debug"),
    ("BATCH__MAX_WAIT", "30ms"),
    ("PRIVACY__MAX_HOLD_BATCHES", "200"),
];

#[test]
fn erasure_in_a_running_daemon_happens_between_batches() {
    let canaries = Canaries::default();
    let place = Place::new(SCHEMA, "");
    with_token(&place);
    let (person, city) = (canaries.text(), canaries.text());
    let mut process = start(&place, &LIVE, None);
    let crowd: String = (0..40).map(|n| line(&format!("p{n}"), 30 + n % 2, "Zug")).collect();
    process.feed(line(&person, 77, &city) + &line(&person, 78, &city) + &crowd);
    let status = process.until("all are consumed", |s| s["totals"]["consumed"] == 42);
    assert_eq!(status["held"], 2, "she has no crowd: {}", status["totals"]);
    let names = spelled(&place, &person);
    let would = receipt(&forget(&place, &LIVE, &["--json", "--dry-run", &person], ""));
    assert_eq!(would["dropped_records"], 2);
    assert_eq!(process.until("it goes on", |s| s["held"] == 2)["totals"]["dropped"], 0, "a dry run drops nothing");
    let out = forget(&place, &LIVE, &["--json", &person], "");
    let done = receipt(&out);
    canaries.absent_from("the receipt", &out.stdout);
    canaries.absent_from("standard error", &out.stderr);
    assert_eq!((&done["dropped_records"], &done["removed"]["held_rows"]), (&2.into(), &2.into()));
    assert_eq!(done["removed"], would["removed"]);
    let status = process.until("they are dropped", |s| s["totals"]["dropped"] == 2);
    assert_eq!((&status["held"], &status["conserved"]), (&0.into(), &true.into()));
    let metrics = series(&process.get("/metrics").expect("metrics").1);
    assert_eq!(metrics["throng_erasures_total"], 1.0);
    assert_eq!(metrics["throng_erased_held_records_total"], 2.0);
    assert_eq!(metrics["throng_records_total{outcome=\"dropped\"}"], 2.0);
    assert_eq!(databases(&place.path("state")), ["db.1"]);
    // Later records are treated as new.
    process.feed(line(&person, 30, "Zug") + &crowd);
    process.until("all are consumed", |s| s["totals"]["consumed"] == 83);
    assert_eq!(receipt(&forget(&place, &LIVE, &["--json", &person], ""))["removed"]["window_rows"], 1);
    let outcome = process.wait().expect(0);
    let account = outcome.account();
    assert_eq!((account.consumed, account.dropped, account.held), (83, 2, 0));
    assert_eq!(outcome.stderr.matches("people were erased from the state").count(), 2, "an audit line each");
    canaries.absent_from("the log", &outcome.stderr);
    assert_eq!(Opened::read(&place.path("state"), SECRET).with(&names), Vec::<String>::new());
    for (path, content) in place.files("state") {
        canaries.absent_from(&path.display().to_string(), content);
    }
}

#[test]
fn erasure_in_a_running_daemon_requires_the_token() {
    let place = Place::new(SCHEMA, "");
    let without: Vec<(&str, &str)> = LIVE.iter().copied().filter(|(key, _)| *key != "TELEMETRY__TOKEN_FILE").collect();
    let mut process = start(&place, &without, None);
    process.feed((0..9).map(|n| line(&format!("p{n}"), 30, "Zug")).collect::<String>());
    process.until("all are consumed", |s| s["totals"]["consumed"] == 9);
    let out = forget(&place, &without, &["p1"], "").expect(2);
    assert!(out.stderr.contains("set telemetry.token_file"), "{}", out.stderr);
    with_token(&place);
    let out = forget(&place, &LIVE, &["p1"], "").expect(2);
    assert!(out.stderr.contains("was started without telemetry.token_file"), "{}", out.stderr);
    process.wait().expect(0);
    std::fs::remove_file(place.path("out.ndjson")).expect("what the first has released");
    let mut process = start(&place, &LIVE, None);
    process.feed((0..9).map(|n| line(&format!("p{n}"), 30, "Zug")).collect::<String>());
    process.until("all are consumed", |s| s["totals"]["consumed"] == 18);
    place.write("token", "another-token-that-is-as-long");
    let out = forget(&place, &LIVE, &["p1"], "").expect(2);
    assert!(out.stderr.contains("rejected the token"), "{}", out.stderr);
    let url = format!("http://127.0.0.1:{}", place.port);
    with_token(&place);
    assert_eq!(receipt(&forget(&place, &LIVE, &["--json", "--url", &url, "p1"], ""))["subjects"], 1);
    let out = forget(&place, &LIVE, &["--url", "http://127.0.0.1:1", "p1"], "").expect(1);
    assert!(out.stderr.contains("did not answer"), "{}", out.stderr);
    process.wait().expect(0);
}
