//! Tests `plan.prime`: the first batch uses a plan made from a file that has no other effect.

use crate::support;

use std::fmt::Write as _;
use support::binary::Place;
use support::daemon::Dice;
use support::schemas::schema;

const SCHEMA: &str = schema!("primed"; person, hundred "age", hundred "rooms", text "badge");

/// Badges are e-mail addresses, one per subject, or one of three values.
fn records(from: usize, count: usize, own_badges: bool) -> String {
    let mut dice = Dice::new(from as u64 + 1);
    (from..from + count).fold(String::new(), |mut text, n| {
        let badge = if own_badges { format!("b{n}@example.org") } else { format!("b{}", dice.roll(3)) };
        let (age, rooms) = (20 + dice.roll(4), 1 + dice.roll(3));
        writeln!(text, r#"{{"person":"p{n}","age":{age},"rooms":{rooms},"badge":"{badge}"}}"#).expect("a string");
        text
    })
}

const PLAN: &str = "[plan]\nwindow_records = 400\nprime = \"prime.ndjson\"\ninterval = \"1h\"\n";

fn without_drift() -> Place {
    let place = Place::new(SCHEMA, PLAN);
    place.write("throng.tuning", "drift = 1.0");
    place
}

fn adopted(said: &str) -> Vec<&str> {
    said.lines().filter(|line| line.contains("plan adopted")).collect()
}

#[test]
fn primed_plan_applies_to_the_first_batch() {
    // The badges are identifiers only in the file. A plan made from the schema alone would release them.
    let place = without_drift();
    place.write("in.ndjson", records(5000, 40, false));
    place.write("prime.ndjson", records(0, 150, true));
    let run = place.run(&[("BATCH__MAX_RECORDS", "40")]).expect(0);
    assert_eq!(run.account().consumed, 40);
    assert!(adopted(&run.stderr)[0].contains("why=\"prime\""), "{}", run.stderr);
    let lines = place.lines("out.ndjson");
    assert!(!lines.is_empty() && lines.iter().all(|line| line.contains("\"badge\":\"*\"")), "{lines:?}");

    let without = Place::new(SCHEMA, "");
    without.write("in.ndjson", records(5000, 40, false));
    let run = without.run(&[("BATCH__MAX_RECORDS", "40")]).expect(0);
    assert!(adopted(&run.stderr)[0].contains("why=\"start\""), "{}", run.stderr);
    assert!(without.lines("out.ndjson").iter().any(|line| !line.contains("\"badge\":\"*\"")));
}

#[test]
fn primed_records_are_not_counted_or_read_again() {
    let place = without_drift();
    place.write("in.ndjson", records(5000, 40, false));
    place.write("prime.ndjson", records(0, 150, true));
    place.run(&[("BATCH__MAX_RECORDS", "40")]).expect(0);
    std::fs::remove_file(place.path("prime.ndjson")).expect("a file");
    let more = records(5000, 40, false) + &records(6000, 60, false);
    place.write("in.ndjson", more);
    let mut daemon = place.start(&[("BATCH__MAX_RECORDS", "40"), ("SOURCE__PATH", "in.ndjson")]);
    assert!(daemon.ends_within(std::time::Duration::from_secs(60)));
    let run = daemon.wait().expect(0);
    assert!(!run.stderr.contains("why=\"prime\""), "{}", run.stderr);
    // The plan of the 150 records of the file is still active.
    assert_eq!((run.account().consumed, adopted(&run.stderr).len()), (100, 0), "{}", run.stderr);
    let lines = place.lines("out.ndjson");
    assert!(lines.len() > 60 && lines.iter().all(|line| line.contains("\"badge\":\"*\"")), "{lines:?}");
    place.write("in.ndjson", records(5000, 40, false) + &records(6000, 60, false) + &records(7000, 120, false));
    let run = place.run(&[("BATCH__MAX_RECORDS", "40")]).expect(0);
    assert!(run.stderr.contains("why=\"growth\""), "{}", run.stderr);
    assert!(place.lines("out.ndjson").iter().any(|line| !line.contains("\"badge\":\"*\"")));
}

#[test]
fn primed_plan_is_replaced_early_on_drift() {
    let place = Place::new(SCHEMA, PLAN);
    place.write("throng.tuning", "handover_batches = 0");
    // Drift detection starts after an eighth of the window.
    place.write("in.ndjson", records(5000, 120, false).replace("\"age\":2", "\"age\":7"));
    place.write("prime.ndjson", records(0, 200, false));
    let run = place.run(&[("BATCH__MAX_RECORDS", "30")]).expect(0);
    let why: Vec<bool> = adopted(&run.stderr).iter().map(|line| line.contains("why=\"drift\"")).collect();
    assert_eq!(why, [false, true], "{}", run.stderr);
}

#[test]
fn primed_plan_is_shown_on_the_page() {
    let place = without_drift();
    place.write("prime.ndjson", records(0, 150, true));
    let mut daemon = place.start(&[("SOURCE__PATH", "-"), ("BATCH__MAX_RECORDS", "40")]);
    // Evidence is shown with the batch after its computation.
    let mut shown = serde_json::Value::Null;
    for batch in 0..3 {
        daemon.feed(records(5000 + 40 * batch, 40, false));
        let consumed = 40 * (batch as u64 + 1);
        shown = daemon.until("the batch is consumed", |status| status["totals"]["consumed"] == consumed);
        std::thread::sleep(std::time::Duration::from_secs(2));
    }
    let status = shown;
    let plan = &status["plan"];
    assert_eq!((&plan["primed"], &plan["rows"]), (&serde_json::json!(true), &serde_json::json!(150)), "{plan}");
    assert_eq!(plan["evidence"]["primed"], serde_json::json!(true), "{plan}");
    assert!(plan["evidence"]["records"].as_u64().expect("a number") <= 120, "{plan}");
    assert!(status["last"]["window_records"].as_u64().expect("a number") <= 120, "{status}");
    daemon.wait().expect(0);
}

#[test]
fn priming_with_an_unusable_file_is_refused_at_startup() {
    let place = without_drift();
    place.write("in.ndjson", records(0, 40, false));
    let refused = |how: &str, wanted: &[&str]| {
        let run = place.run(&[]).expect(2);
        assert!(wanted.iter().all(|text| run.stderr.contains(text)), "{how}: {}", run.stderr);
        assert!(place.lines("out.ndjson").is_empty() && !run.stderr.contains("p77"), "{how}: {}", run.stderr);
    };
    refused("missing", &["plan.prime", "prime.ndjson", "cannot open"]);
    std::fs::create_dir(place.path("prime.ndjson")).expect("a directory");
    refused("a directory", &["plan.prime", "prime.ndjson", "is not a regular file"]);
    std::fs::remove_dir(place.path("prime.ndjson")).expect("an empty directory");
    place.write("prime.ndjson", "");
    refused("empty", &["plan.prime", "prime.ndjson", "has no records"]);
    place.write("prime.ndjson", records(70, 20, false).replace("\"age\":2", "\"age\":\"x\",\"y\":2"));
    refused("of other types", &["plan.prime", "20 record(s)", "the first is number 1"]);
    place.write("prime.ndjson", records(70, 20, false) + "{\"person\":");
    refused("cut off", &["plan.prime", "1 record(s)", "the first is number 21"]);
    let dash = place.run(&[("PLAN__PRIME", "-")]).expect(2);
    assert!(dash.stderr.contains("THRONG__PLAN__PRIME") && dash.stderr.contains("standard input"), "{}", dash.stderr);
    place.write("prime.ndjson", records(70, 20, false));
    assert_eq!(place.run(&[]).expect(0).account().consumed, 40);
}

#[cfg(feature = "failpoints")]
#[test]
fn priming_after_a_crash_gives_the_same_output() {
    let start = |crash: Option<&str>| {
        let place = without_drift();
        place.write("in.ndjson", records(5000, 130, false));
        place.write("prime.ndjson", records(0, 150, true));
        if let Some(point) = crash {
            let mut command = place.command(&[("BATCH__MAX_RECORDS", "40")], &[]);
            let died = command.env("FAILPOINTS", format!("{point}=return")).output().expect("it starts");
            assert_eq!(died.status.code(), None, "{point}: {}", String::from_utf8_lossy(&died.stderr));
        }
        let run = place.run(&[("BATCH__MAX_RECORDS", "40")]).expect(0);
        assert!(crash == Some("applied") || run.stderr.contains("why=\"prime\""), "{}", run.stderr);
        place.lines("out.ndjson")
    };
    let undisturbed = start(None);
    assert!(!undisturbed.is_empty());
    for point in ["plan-adopted", "intent-flushed", "file-appended", "applied"] {
        assert_eq!(start(Some(point)), undisturbed, "{point}");
    }
}
