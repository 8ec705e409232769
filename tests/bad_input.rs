//! Tests bad input and a bad environment: no loss, and no release below k.

#![allow(clippy::format_collect, reason = "short texts of a test")]

use crate::support;

use std::fmt::Write as _;
use std::process::Command;
use std::time::Duration;
use support::binary::{Account, Place, Process, get};
use support::kafka::{TestCluster, unique};
use support::ports::free_port;
use support::schemas::schema;
use support::stand::{Fault, Stand, record};
use throng::daemon::state::records::Flush;

const SCHEMA: &str = schema!("bad input"; person, hundred "age", text "city",
    more "[[attribute]]\nname = \"weight\"\ntype = \"float\"\n");

fn crowd() -> String {
    (0..4).map(|i| format!("{{\"person\":\"p{i}\",\"age\":30,\"city\":\"Zug\",\"weight\":70.5}}\n")).collect()
}

#[track_caller]
fn dead_letters(bad: &[Vec<u8>], reason: &str) {
    let place = Place::new(SCHEMA, "");
    let mut source = crowd().into_bytes();
    for record in bad {
        source.extend(record);
        source.push(b'\n');
    }
    source.extend(crowd().replace("\"p", "\"q").bytes());
    place.write("in.ndjson", source);
    let account = place.run(&[("SOURCE__MAX_RECORD_BYTES", "4096")]).expect(0).account();
    let dead_lettered = bad.len() as u64;
    assert_eq!(account, Account { consumed: 8 + dead_lettered, released: 8, dead_lettered, ..Account::default() });
    for (offset, line) in (4..).zip(place.lines("dead.ndjson")) {
        let letter: serde_json::Value = serde_json::from_str(&line).expect("a letter");
        assert_eq!(letter["reason"], reason, "{line}");
        assert_eq!((&letter["topic"], &letter["offset"]), (&"in.ndjson".into(), &offset.into()), "{line}");
    }
    assert_eq!(place.lines("dead.ndjson").len() as u64, dead_lettered);
}

fn texts(list: &[&str]) -> Vec<Vec<u8>> {
    list.iter().map(|t| t.as_bytes().to_vec()).collect()
}

#[test]
fn malformed_records_become_dead_letters() {
    let bad = [
        "{",
        "{\"age\"",
        "{\"age\":",
        "{\"age\":3",
        "{\"age\":30,",
        "{age:30}",
        "{\"age\":30}}",
        "{\"age\":30} x",
        "{'age':30}",
        "{\"age\":03}",
        "{\"weight\":-inf}",
        "{\"weight\":[NaN}",
        "{\"city\":\"a\tb\"}",
        "}",
        "nul",
        "{\"city\":\"\\ud800\"}",
    ];
    dead_letters(&texts(&bad), "malformed_json");
}

#[test]
fn records_that_are_not_objects_become_dead_letters() {
    dead_letters(&texts(&["[]", "[{\"age\":30}]", "\"text\"", "1", "true"]), "not_an_object");
}

#[test]
fn non_finite_numbers_become_dead_letters() {
    dead_letters(&texts(&["{\"age\":NaN}", "{\"weight\":Infinity}", "{\"weight\": -Infinity }"]), "wrong_type");
    let place = Place::new(&SCHEMA.replace("type = \"float\"", "type = \"float\"\nmissing = [\"NaN\"]"), "");
    place.write("in.ndjson", crowd().replace("70.5", "NaN"));
    let account = place.run(&[]).expect(0).account();
    assert_eq!(account, Account { consumed: 4, released: 4, ..Account::default() });
    assert!(place.lines("out.ndjson").iter().all(|line| line.contains("\"weight\":null")));
}

#[test]
fn blank_lines_are_ignored() {
    let place = Place::new(SCHEMA, "");
    place.write(
        "in.ndjson",
        format!("\n{}\n   \r\n\t\n{}\n\n", crowd().replace('\n', "\n\n"), crowd().replace("\"p", "\"q")),
    );
    let account = place.run(&[]).expect(0).account();
    assert_eq!(account, Account { consumed: 8, released: 8, ..Account::default() });
}

#[test]
fn oversized_records_become_dead_letters() {
    let long = |n: usize| format!("{{\"city\":\"{}\"}}", "x".repeat(n)).into_bytes();
    dead_letters(&[long(5_000), long(200_000), vec![b'x'; 3_000_000]], "oversized");
}

#[test]
fn deeply_nested_records_become_dead_letters() {
    let nested = |field: &str, open: &str, close: &str, n: usize| {
        format!("{{\"{field}\":{}1{}}}", open.repeat(n), close.repeat(n)).into_bytes()
    };
    let bad = [
        nested("age", "[", "]", 40),
        nested("stranger", "[", "]", 40),
        nested("stranger", "{\"a\":", "}", 400),
        nested("city", "[", "]", 1500),
    ];
    dead_letters(&bad, "too_deep");
}

#[test]
fn records_with_duplicate_keys_become_dead_letters() {
    let bad = [
        "{\"age\":30,\"age\":30}",
        "{\"x\":1,\"x\":2}",
        "{\"person\":\"a\",\"age\":1,\"person\":\"b\"}",
        "{\"\\u0061ge\":1,\"age\":2}",
    ];
    dead_letters(&texts(&bad), "duplicate_key");
}

#[test]
fn invalid_utf8_becomes_a_dead_letter() {
    let bad: Vec<Vec<u8>> = vec![
        b"{\"city\":\"\xff\"}".to_vec(),
        b"\xc3\x28".to_vec(),
        b"{\"\xed\xa0\x80\":1}".to_vec(),
        b"{\"city\":\"Z\xfcrich\"}".to_vec(),
    ];
    dead_letters(&bad, "not_utf8");
}

#[test]
fn cells_of_the_wrong_type_become_dead_letters() {
    let bad = [
        "{\"age\":\"old\"}",
        "{\"age\":1.5}",
        "{\"age\":true}",
        "{\"age\":[1]}",
        "{\"age\":99999999999999999999}",
        "{\"weight\":1e999}",
        "{\"weight\":\"NaN\"}",
        "{\"weight\":\"inf\"}",
        "{\"weight\":{}}",
        "{\"age\":\"\"}",
        "{\"weight\":\"0x10\"}",
    ];
    let mut bad = texts(&bad);
    bad.push(format!("{{\"city\":\"{}\"}}", "x".repeat(2000)).into_bytes());
    dead_letters(&bad, "wrong_type");
}

#[test]
fn csv_with_bad_rows_reports_each_reason() {
    let place = Place::new(SCHEMA, "");
    let mut rows = "person,age,city,weight\n".to_owned();
    for i in 0..4 {
        writeln!(rows, "p{i},30,Zug,70.5").expect("a string");
    }
    rows += "p9,NaN,Zug,70\np9,30,Zug,NaN\np9,30,Zug,inf\np9,30,Zug,-infinity\np9,old,Zug,1\n"; // 5 of the wrong type
    rows += "p9,30,Zug\np9,30,Zug,1,2\n"; // 2 ragged
    let mut bytes = rows.into_bytes();
    bytes.extend(b"p9,30,Z\xfcrich,70\n"); // not UTF-8
    bytes.extend(b"p9,30,\"open,70\n"); // a quote that never closes
    place.write("in.csv", bytes);
    let outcome = place.run(&[("SOURCE__PATH", "in.csv")]).expect(0);
    let reasons: Vec<String> = place
        .lines("dead.ndjson")
        .iter()
        .map(|l| {
            serde_json::from_str::<serde_json::Value>(l).expect("a letter")["reason"].as_str().expect("text").to_owned()
        })
        .collect();
    let count = |reason: &str| reasons.iter().filter(|r| *r == reason).count();
    println!("{reasons:?}");
    assert_eq!((count("wrong_type"), count("ragged_row"), count("not_utf8"), count("malformed_row")), (5, 2, 1, 1));
    let account = outcome.account();
    assert_eq!(account, Account { consumed: 13, released: 4, dead_lettered: 9, ..Account::default() });
}

#[test]
fn file_without_records_is_refused() {
    let place = Place::new(SCHEMA, "");
    for (name, content) in [
        ("in.ndjson", ""),
        ("other.ndjson", "\n"),
        ("header.csv", "person,age,city,weight\n"),
        ("short.csv", "person,age,city,weight"),
    ] {
        place.write(name, content);
        let outcome = place.run(&[
            ("SOURCE__PATH", name),
            ("STATE__PATH", &format!("state-{name}")),
            ("SINK__PATH", &format!("out-{name}")),
        ]);
        let refused = outcome.expect(1);
        assert!(refused.stderr.contains(&format!("{name}: no records; no output was replaced")), "{name}");
        assert!(!place.path(&format!("out-{name}")).exists() && !place.path("dead.ndjson").exists());
    }
    place.write("empty.csv", "");
    let outcome = place.run(&[("SOURCE__PATH", "empty.csv"), ("STATE__PATH", "state-empty")]).expect(1);
    assert!(outcome.stderr.contains("empty.csv is empty: a CSV file starts with a header row"), "{}", outcome.stderr);
}

#[test]
fn csv_without_an_attribute_column_is_refused_at_startup() {
    let place = Place::new(SCHEMA, "");
    place.write("in.csv", "person,age,town,weight\np1,30,Zug,70\n");
    let outcome = place.run(&[("SOURCE__PATH", "in.csv")]).expect(2);
    assert!(outcome.stderr.contains("in.csv: no column for attribute \"city\""), "{}", outcome.stderr);
    assert!(!outcome.stderr.contains("Zug"), "{}", outcome.stderr);
}

#[test]
fn csv_with_repeated_headers_is_refused() {
    let place = Place::new(SCHEMA, "");
    place.write("in.csv", "person,age,age\np1,1,2\n");
    let outcome = place.run(&[("SOURCE__PATH", "in.csv")]).expect(1);
    assert!(outcome.stderr.contains("columns 2 and 3 have the same header"), "{}", outcome.stderr);
    assert!(place.read("out.ndjson").is_empty());
}

#[test]
fn missing_sources_and_sinks_are_named() {
    let says = |overrides: &[(&str, &str)], code: i32, what: &str| {
        let place = Place::new(SCHEMA, "");
        place.write("in.ndjson", crowd());
        std::fs::create_dir(place.path("folder")).expect("a directory");
        let outcome = place.run(overrides).expect(code);
        assert!(outcome.stderr.contains(what), "{what:?} is not in {}", outcome.stderr);
        assert!(!place.path("out.ndjson").exists() || place.read("out.ndjson").is_empty());
    };
    says(&[("SOURCE__PATH", "missing.ndjson")], 1, "cannot open missing.ndjson");
    says(&[("SOURCE__PATH", "folder")], 1, "folder has no file that ends in");
    says(&[("SINK__PATH", "no/such/folder/out.ndjson")], 1, "cannot open no/such/folder/");
    says(&[("SINK__PATH", "folder")], 2, "folder is not a regular file");
    says(&[("SINK__DEAD_LETTER_PATH", "no/such/folder/dead.ndjson")], 1, "no/such/folder/dead.ndjson");
    says(&[("SCHEMA__FILE", "missing.toml")], 2, "missing.toml");
    says(&[("STATE__SECRET_FILE", "no/such/folder/secret")], 2, "state.secret_file");
    says(&[("STATE__PATH", "in.ndjson")], 1, "state directory in.ndjson");
}

#[test]
fn stream_to_a_non_empty_file_is_refused() {
    let place = Place::new(SCHEMA, "");
    place.write("out.ndjson", "somebody's\n");
    let stream = [("SOURCE__PATH", "-"), ("SOURCE__FORMAT", "json")];
    let outcome = place.run(&stream).expect(2);
    assert!(outcome.stderr.contains("is not empty"), "{}", outcome.stderr);
    assert_eq!(place.read("out.ndjson"), b"somebody's\n");
}

#[test]
fn full_disk_loses_no_record() {
    // Wide lines with few classes: the output exceeds the limit before the state.
    let wide = |i: usize, cities: usize| {
        let city = format!("{}{}", "Zug".repeat(60), i % cities);
        format!("{{\"person\":\"p{i}\",\"age\":30,\"city\":\"{city}\",\"weight\":70.5}}\n")
    };
    let mut stopped = 0;
    for (cities, blocks) in [(1, vec![256, 700, 1400, 2800]), (300, vec![64, 128, 256, 700])] {
        let source: String = (0..6000).map(|i| wide(i, cities)).collect();
        // The planner's sample would fill the state.
        let more = "[plan]\n";
        let (place, reference) = (Place::new(SCHEMA, more), Place::new(SCHEMA, more));
        for place in [&place, &reference] {
            place.write("in.ndjson", &source);
        }
        let account = reference.run(&[]).expect(0).account();
        for blocks in blocks {
            // A write beyond the limit fails as on a full disk; the signal is ignored.
            let mut command = Command::new("sh");
            let limited = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" run -c throng.toml");
            command.args(["-c", &limited, env!("CARGO_BIN_EXE_throng")]);
            place.surround(&mut command, &[]);
            let outcome = Process::spawn(command, place.port).wait();
            if outcome.code == Some(0) {
                break;
            }
            assert_eq!(outcome.code, Some(1), "{}", outcome.stderr);
            let message = outcome.stderr.lines().last().expect("a message");
            println!("{blocks} blocks: {message}");
            assert!(message.starts_with("error: ") && message.contains("too large"), "{message}");
            stopped += 1;
            assert!(!place.path("out.ndjson").exists(), "a job that fails shows no output");
        }
        assert_eq!(place.run(&[]).expect(0).account(), account);
        assert_eq!(place.read("out.ndjson").len(), reference.read("out.ndjson").len());
        assert!(place.read("out.ndjson") == reference.read("out.ndjson"), "the same bytes");
    }
    assert!(stopped >= 2, "the disk has been full");
}

#[test]
fn k_above_the_stream_size_suppresses_all_records() {
    let place = Place::new(SCHEMA, "");
    place.write("in.ndjson", crowd());
    let account = place.run(&[("PRIVACY__K", "50")]).expect(1).account();
    assert_eq!(account, Account { consumed: 4, suppressed: 4, ..Account::default() });
    assert!(place.read("out.ndjson").is_empty());
}

#[test]
fn configuration_mistakes_are_named() {
    let refused = |more: &str, overrides: &[(&str, &str)], says: &[&str]| {
        let place = Place::new(SCHEMA, more);
        place.write("in.ndjson", crowd());
        let outcome = place.run(overrides).expect(2);
        for what in says {
            assert!(outcome.stderr.contains(what), "{what:?} is not in {}", outcome.stderr);
        }
        assert!(!place.path("out.ndjson").exists() && !place.path("state").exists(), "nothing was begun");
    };
    refused("[plan]\nintervall = \"5m\"\n", &[], &["plan.intervall", "interval"]);
    refused("[surprise]\nx = 1\n", &[], &["surprise"]);
    refused("", &[("PRIVACY__KK", "3")], &["THRONG__PRIVACY__KK"]);
    refused("", &[("PRIVACY__K", "1")], &["THRONG__PRIVACY__K", "at least two people"]);
    refused("", &[("PRIVACY__K", "many")], &["THRONG__PRIVACY__K"]);
    refused("", &[("PRIVACY__K", "51")], &["batch.max_records"]);
    let unknown = "[[group]]\nname = \"a\"\nattributes = [\"age\", \"ages\"]\n[[group]]\nname = \"b\"\nattributes = [\"city\", \"weight\"]\n";
    refused(unknown, &[], &["group[0].attributes", "the schema has no attribute \"ages\""]);
    let forgotten = "[[group]]\nname = \"a\"\nattributes = [\"age\"]\n";
    refused(forgotten, &[], &["attribute \"city\" is in no group", "attribute \"weight\" is in no group"]);
    let subject = "[[group]]\nname = \"a\"\nattributes = [\"age\", \"city\", \"weight\", \"person\"]\n";
    refused(subject, &[], &["role subject, which is never released"]);
    let twice = "[[group]]\nname = \"a\"\nattributes = [\"age\", \"city\"]\n[[group]]\nname = \"b\"\nattributes = [\"city\", \"weight\"]\n";
    refused(twice, &[], &["attribute `city` is in group[0] already"]);
    refused(
        "[plan]\ninterval = \"soon\"\nwindow = 3\n",
        &[("BATCH__MAX_RECORDS", "0")],
        &["plan.interval", "plan.window", "MAX_RECORDS"],
    );
}

#[test]
fn schema_mistakes_are_named() {
    for (more, says) in [
        ("[[attribute]]\nname = \"x\"\ntype = \"integer\"\nrolle = \"quasi\"\n", "rolle"),
        ("[[attribute]]\nname = \"x\"\ntype = \"number\"\n", "type"),
        ("[[attribute]]\nname = \"age\"\ntype = \"integer\"\n", "used twice"),
        ("[[attribute]]\nname = \"x\"\ntype = \"string\"\npointer = \"age\"\n", "JSON pointer"),
        (
            "[[attribute]]\nname = \"x\"\ntype = \"string\"\n[attribute.hierarchy]\nkind = \"file\"\npath = \"none.csv\"\n",
            "none.csv",
        ),
        (
            "[[attribute]]\nname = \"x\"\ntype = \"integer\"\n[attribute.hierarchy]\nkind = \"intervals\"\nmin = 0\nmax = 10\nwidths = [3, 5]\n",
            "must nest",
        ),
    ] {
        let place = Place::new(&format!("{SCHEMA}{more}"), "");
        place.write("in.ndjson", crowd());
        let outcome = place.run(&[]).expect(2);
        assert!(outcome.stderr.contains(says), "{says:?} is not in {}", outcome.stderr);
        assert!(!place.path("out.ndjson").exists());
    }
    let file =
        "[[attribute]]\nname = \"x\"\ntype = \"string\"\n[attribute.hierarchy]\nkind = \"file\"\npath = \"x.csv\"\n";
    let place = Place::new(&format!("{SCHEMA}{file}"), "");
    place.write("x.csv", "a;low;*\nb;low;*\na;high;*\n");
    let outcome = place.run(&[]).expect(2);
    assert!(outcome.stderr.contains("x.csv") && outcome.stderr.contains("row 3"), "{}", outcome.stderr);
}

#[test]
fn unknown_attributes_are_dropped_or_refused_as_configured() {
    let place = Place::new(SCHEMA, "");
    let odd = crowd().replace("\"age\"", "\"colour\":\"blue\",\"age\"");
    place.write("in.ndjson", &odd);
    assert_eq!(place.run(&[]).expect(0).account().released, 4);
    assert!(!String::from_utf8_lossy(&place.read("out.ndjson")).contains("blue"));
    let place = Place::new(SCHEMA, "");
    place.write("in.ndjson", odd + &crowd().replace(":\"p", ":\"q"));
    let account = place.run(&[("SCHEMA__UNKNOWN", "refuse")]).expect(0).account();
    assert_eq!((account.dead_lettered, account.released), (4, 4));
    let letters = place.lines("dead.ndjson");
    assert!(letters.len() == 4 && letters.iter().all(|l| l.contains("unknown_attribute") && !l.contains("colour")));
}

const HOUR: i64 = 3_600_000;
const NOW: i64 = 1_700_000_000_000;

fn of_city(city: &str, from: usize, count: usize) -> Vec<Option<Vec<u8>>> {
    (from..from + count)
        .map(|i| record(format!("{{\"person\":\"p{i}\",\"age\":30,\"city\":\"{city}\",\"weight\":1}}")))
        .collect()
}

#[test]
fn clock_set_back_stays_monotonic() {
    let mut stand = Stand::new(SCHEMA, "[privacy]\nk = 3\nrelease_window = \"1h\"\n");
    for (step, now) in [NOW, NOW - 10 * HOUR, NOW + 1000, 0, -5, NOW + 2000].into_iter().enumerate() {
        let fault = if step % 2 == 0 { Fault::Restart } else { Fault::Nothing };
        stand.offer(&of_city("Zug", 10 * step, 4), Flush::No, now, fault);
        let clock = stand.sink.committed.1;
        assert!(clock >= NOW, "batch {step} at {clock}");
    }
    assert!(stand.sink.lines.is_sorted_by_key(|l| l.clock_ms));
    assert_eq!(stand.sink.committed.1, NOW + 2000);
    stand.promise.check_all(&stand.sink.lines).expect("the invariant");
}

#[test]
fn tenure_expires_with_the_window_and_ignores_clock_jumps() {
    let mut stand = Stand::new(SCHEMA, "[privacy]\nk = 3\nmin_tenure = 1\nrelease_window = \"1h\"\n");
    let mut of_zug = |now: i64| {
        stand.offer(&of_city("Zug", 0, 4), Flush::No, now, Fault::Restart);
        stand.promise.check_all(&stand.sink.lines).expect("the invariant");
        stand.sink.lines.iter().filter(|l| l.batch == stand.sink.committed.0).count()
    };
    assert_eq!(of_zug(NOW), 0, "nobody has been seen before");
    assert_eq!(of_zug(NOW + HOUR - 2000), 4, "those that were seen are settled");
    // After an hour their tenure starts again.
    assert_eq!(of_zug(NOW + 1000 * HOUR), 0, "they begin anew");
    assert_eq!(of_zug(NOW), 4, "they have just been seen");
}

#[test]
fn subjects_outside_the_window_are_pruned_from_the_state() {
    let mut stand = Stand::new(SCHEMA, "[privacy]\nk = 3\nmin_tenure = 1\nrelease_window = \"1h\"\n");
    for i in 0..20 {
        stand.offer(&of_city(&format!("c{i}"), 10 * i, 4), Flush::No, NOW, Fault::Nothing);
    }
    let people = |stand: &Stand| stand.telemetry.exact_last_report().expect("a batch").supporters;
    assert!(people(&stand) >= 80, "{}", people(&stand));
    for _ in 0..70 {
        stand.offer(&of_city("later", 1000, 4), Flush::No, NOW + 3 * HOUR, Fault::Nothing);
    }
    assert_eq!(people(&stand), 4, "the people of today");
}

#[test]
fn unreachable_broker_keeps_the_daemon_waiting() {
    let place = Place::new(SCHEMA, "");
    // No process listens on this port.
    let brokers = format!("127.0.0.1:{}", free_port());
    let mut process = place.start(&[
        ("SOURCE__KIND", "kafka"),
        ("SOURCE__BROKERS", &brokers),
        ("SOURCE__TOPICS", "raw"),
        ("SINK__KIND", "kafka"),
        ("SINK__TOPIC", "clean"),
    ]);
    let deadline = std::time::Instant::now() + Duration::from_secs(60);
    let (status, body) = loop {
        match get(place.port, "/readyz") {
            Some(answer) => break answer,
            None => assert!(std::time::Instant::now() < deadline, "the pages are up while the broker is not"),
        }
    };
    assert_eq!(status, 503);
    assert!(body.contains("no broker answers"), "{body}");
    assert_eq!(get(place.port, "/healthz").map(|a| a.0), Some(200), "it lives");
    assert!(!process.ends_within(Duration::from_secs(7)), "it waits");
    process.terminate();
    assert!(process.ends_within(Duration::from_secs(20)), "it ends when told to");
    let outcome = process.wait().expect(0);
    assert!(outcome.stderr.contains("the source does not answer; retrying"), "{}", outcome.stderr);
    assert!(outcome.stderr.contains(&brokers), "the address that does not answer: {}", outcome.stderr);
}

#[test]
fn missing_topics_are_named() {
    let Some(broker) = TestCluster::shared() else { return };
    let (raw, clean, dead, changelog) = (unique("raw"), unique("clean"), unique("dead"), unique("changelog"));
    let place = Place::new(SCHEMA, "");
    let bootstrap = broker.bootstrap();
    let run = || {
        let process = place.start(&[
            ("SOURCE__KIND", "kafka"),
            ("SOURCE__BROKERS", &bootstrap),
            ("SOURCE__TOPICS", &raw),
            ("SINK__KIND", "kafka"),
            ("SINK__TOPIC", &clean),
            ("SINK__DEAD_LETTER_TOPIC", &dead),
            ("SINK__CHANGELOG_TOPIC", &changelog),
        ]);
        process.wait().expect(2).stderr
    };
    let missing = |topics: &[&String]| {
        let names: Vec<&str> = topics.iter().map(|topic| topic.as_str()).collect();
        format!("missing topics: {} (", names.join(", "))
    };
    let stderr = run();
    assert!(stderr.contains(&missing(&[&raw, &changelog, &clean, &dead])), "one start names all: {stderr}");
    broker.create_topic(&raw, 1, false);
    broker.create_topic(&changelog, 2, true);
    let stderr = run();
    assert!(stderr.contains(&missing(&[&clean, &dead])), "{stderr}");
}

#[test]
fn invalid_rust_log_is_ignored_with_a_warning() {
    let place = Place::new(SCHEMA, "");
    place.write("in.ndjson", crowd());
    let mut command = place.command(&[], &[]);
    command.env("RUST_LOG", "throng=loud");
    let outcome = Process::spawn(command, place.port).wait().expect(0);
    assert!(outcome.stderr.contains("RUST_LOG is ignored"), "{}", outcome.stderr);
    assert_eq!(outcome.account().released, 4);
}
