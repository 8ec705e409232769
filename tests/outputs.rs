//! Tests the outputs of groups, and their description by `throng check`.

use crate::support;

use serde_json::Value;
use std::fmt::Write as _;
use std::process::Command;
use support::binary::{Outcome, Place, Process};
use support::kafka::{Record, TestCluster};
use support::schemas::schema;

const SCHEMA: &str = schema!("visits"; person, hundred "age", text "city", sensitive "illness");

const GROUPS: &str = "[[group]]\nname = \"body\"\nattributes = [\"age\", \"illness\"]\n\
    [[group]]\nname = \"place\"\nattributes = [\"city\"]\n";

fn records() -> String {
    let mut text = String::new();
    for n in 0..100 {
        let age = if n % 10 == 0 { (n % 97).to_string() } else { "30".to_owned() };
        let city = ["\"Bern\"", "\"Zug\"", "null"][n % 3];
        let illness = if n == 7 { "scurvy" } else { "flu" };
        let absent = if n == 9 { String::new() } else { format!(",\"city\":{city}") };
        writeln!(text, r#"{{"person":"p{n}","age":{age},"illness":"{illness}"{absent}}}"#).expect("a string");
    }
    text
}

fn place() -> Place {
    let place = Place::new(SCHEMA, GROUPS);
    place.write("in.ndjson", records());
    place
}

fn check(place: &Place, overrides: &[(&str, &str)], flag: &str) -> Outcome {
    let mut command = crate::support::binary::throng();
    command.args(["check", "-c", "throng.toml", flag]);
    place.surround(&mut command, overrides);
    Process::spawn(command, place.port).wait()
}

fn schemas(place: &Place, overrides: &[(&str, &str)]) -> Value {
    let outcome = check(place, overrides, "--output-schema");
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    serde_json::from_slice(&outcome.stdout).expect("nothing but JSON")
}

/// Checks the part of JSON Schema that the derived schemas use.
fn fits(line: &Value, schema: &Value) -> bool {
    line.as_object().expect("an object").iter().all(|(name, cell)| {
        let types = schema["properties"][name]["type"].as_array();
        types.is_some_and(|types| {
            types.iter().any(|kind| match kind.as_str() {
                Some("integer") => cell.is_i64(),
                Some("string") => cell.is_string(),
                Some("null") => cell.is_null(),
                other => panic!("{other:?}"),
            })
        })
    })
}

#[test]
fn group_files_follow_the_path_pattern() {
    for (path, body, city) in [
        ("out.ndjson", "out.body.ndjson", "out.place.ndjson"),
        ("out/{group}.ndjson", "out/body.ndjson", "out/place.ndjson"),
        ("{group}-x.ndjson", "body-x.ndjson", "place-x.ndjson"),
        ("{group}/x.ndjson", "body/x.ndjson", "place/x.ndjson"),
    ] {
        let place = place();
        ["out", "body", "place"].iter().for_each(|name| std::fs::create_dir(place.path(name)).expect("a directory"));
        let outcome = place.run(&[("SINK__PATH", path)]).expect(0);
        assert_eq!(outcome.account().consumed, 100);
        let derived = schemas(&place, &[("SINK__PATH", path)]);
        for (group, file) in [("body", body), ("place", city)] {
            let lines = place.lines(file);
            assert!(lines.len() > 50, "{path}: {} lines in {file}", lines.len());
            assert_eq!(derived[group]["x-throng-destination"]["file"], file);
            for line in lines {
                let line: Value = serde_json::from_str(&line).expect("JSON");
                assert!(fits(&line, &derived[group]), "{line} against {:#}", derived[group]);
            }
        }
    }
    let clash = place().run(&[("SINK__PATH", "{group}.ndjson"), ("SINK__DEAD_LETTER_PATH", "body.ndjson")]).expect(2);
    assert!(clash.stderr.contains("body.ndjson"), "{}", clash.stderr);
}

#[test]
fn altered_output_schemas_are_marked_untruthful() {
    assert_eq!(schemas(&place(), &[])["body"]["x-throng-truthful"], true);
    for treat in ["perturb", "aggregate"] {
        let rule = format!("[[treatment.rule]]\nattributes = [\"age\"]\ntreat = \"{treat}\"\n");
        let altered = Place::new(SCHEMA, &format!("{GROUPS}{rule}"));
        assert_eq!(schemas(&altered, &[])["body"]["x-throng-truthful"], false, "{treat}");
    }
}

#[test]
fn check_explain_names_attributes_and_limits() {
    let place = place();
    let said = |overrides: &[(&str, &str)]| {
        let outcome = check(&place, overrides, "--explain").expect(0);
        String::from_utf8(outcome.stdout).expect("text").split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let weak = said(&[]);
    for part in [
        "person is never released",
        "age is released with illness (group body): exact, then 10-wide intervals, then 50-wide intervals, or `*`",
        "city is released alone (group place)",
        "illness is sensitive and is released with age",
        "at least 3 different people of its batch",
        "No person can be excluded from a class",
        "All members of a class may have the same value of illness",
        "Attributes that do not change within a person are released with every record",
        "This is not differential privacy",
        "Equal numbers of fragments in two groups may show",
    ] {
        assert!(weak.contains(part), "{part:?} is not in {weak}");
    }
    let strong = said(&[("PRIVACY__MAX_LINES_PER_SUBJECT", "1")]);
    assert!(strong.contains("at least 3 different people of its batch"), "{strong}");
    let bound = "At most 1 fragment(s) per person and group are released in a batch";
    assert!(strong.contains(bound) && !weak.contains(bound), "{strong}");
    assert!(!strong.contains("Equal numbers of fragments in two groups may show"), "{strong}");
    for value in ["Bern", "Zug", "flu", "scurvy"] {
        assert!(!weak.contains(value), "an explanation has no value of the data");
    }
}

#[test]
fn group_topics_receive_only_their_lines() {
    let Some(broker) = TestCluster::shared() else { return };
    let base = format!("outputs-{}", std::process::id());
    let named = |part: &str| format!("{base}.{part}");
    for (part, partitions) in [("raw", 1), ("body", 2), ("place", 1), ("dead", 1)] {
        broker.create_topic(&named(part), partitions, false);
    }
    broker.create_topic(&named("changelog"), 2, true);
    let place = place();
    let (servers, topic) = (broker.bootstrap(), named("{group}"));
    let (dead, changelog) = (named("dead"), named("changelog"));
    let raw = named("raw");
    let sink = [
        ("SOURCE__KIND", "kafka"),
        ("SOURCE__BROKERS", servers.as_str()),
        ("SOURCE__TOPICS", raw.as_str()),
        ("SOURCE__GROUP", raw.as_str()),
        ("SINK__KIND", "kafka"),
        ("SOURCE__BROKERS", servers.as_str()),
        ("SINK__TOPIC", topic.as_str()),
        ("SINK__DEAD_LETTER_TOPIC", dead.as_str()),
        ("SINK__CHANGELOG_TOPIC", changelog.as_str()),
    ];
    let payload = |line: &str| Record { payload: Some(line.as_bytes().to_vec()), ..Record::default() };
    broker.produce_records(&raw, &records().lines().map(payload).collect::<Vec<_>>());
    let process = place.start(&sink);
    process.until("all are consumed", |status| status["totals"]["consumed"] == 100);
    process.terminate();
    process.wait().expect(0);
    let derived = schemas(&place, &sink);
    for group in ["body", "place"] {
        let stored = broker.read_committed(&named(group));
        assert!(stored.len() > 50, "{group}: {}", stored.len());
        assert_eq!(derived[group]["x-throng-destination"]["topic"], named(group));
        for record in stored {
            let line: Value = serde_json::from_slice(record.payload.as_deref().expect("a fragment")).expect("JSON");
            assert!(fits(&line, &derived[group]), "{line}");
            let own = derived[group]["properties"].as_object().expect("properties");
            assert!(line.as_object().expect("an object").keys().all(|name| own.contains_key(name)), "{line}");
        }
    }
    let places: std::collections::BTreeSet<i32> =
        broker.read_committed(&named("body")).iter().map(|record| record.partition).collect();
    assert_eq!(places.len(), 2, "each topic's places are counted by themselves");
    let taken = place.run(&[
        ("SOURCE__KIND", "kafka"),
        ("SOURCE__BROKERS", &servers),
        ("SOURCE__TOPICS", &raw),
        ("SINK__KIND", "kafka"),
        ("SOURCE__BROKERS", &servers),
        ("SINK__TOPIC", "{group}"),
        ("SINK__DEAD_LETTER_TOPIC", "body"),
    ]);
    assert!(taken.expect(2).stderr.contains("this topic is also named by sink.topic"));
}

/// A job writes its output only at the end.
#[test]
fn stream_lines_are_written_before_its_end() {
    let place = Place::new(SCHEMA, "");
    let stream = [("SOURCE__PATH", "-"), ("SOURCE__FORMAT", "json"), ("BATCH__MAX_WAIT", "50ms")];
    let mut process = place.start(&stream);
    process.feed(records());
    process.until("the first batches have left", |status| status["totals"]["consumed"] == 100);
    let before = place.lines("out.ndjson").len();
    assert!(before > 50, "{before} lines while the stream goes on");
    process.feed(records().replace(":\"p", ":\"q"));
    process.until("the next batches have left", |status| status["totals"]["consumed"] == 200);
    assert!(place.lines("out.ndjson").len() > before);
    process.wait().expect(0);
    let outcome = place.command(&stream, &[]);
    let mut printed = Process::spawn(outcome, place.port);
    printed.end_input();
    assert!(printed.wait().expect(2).stderr.contains("is not empty"));
}

/// A user with write access to the output directory can neither redirect a write nor keep access to the new file.
#[test]
fn existing_unfinished_file_is_not_replaced() {
    let place = place();
    let unfinished = place.path(".out.body.ndjson.unfinished");
    let refused = |what: &str| {
        let outcome = place.run(&[]).expect(2);
        assert!(outcome.stderr.contains(".out.body.ndjson.unfinished already exists"), "{what}: {}", outcome.stderr);
        assert!(std::fs::symlink_metadata(&unfinished).is_ok(), "{what}: it is not removed");
        assert!(!place.path("out.body.ndjson").exists() && !place.path("out.place.ndjson").exists(), "{what}");
        std::fs::remove_file(&unfinished).expect("it is there");
    };
    place.write("victim", "precious");
    std::os::unix::fs::symlink("victim", &unfinished).expect("a link");
    refused("a link");
    assert_eq!(place.read("victim"), b"precious");
    std::os::unix::fs::symlink("nowhere", &unfinished).expect("a link");
    refused("a link to nothing");
    assert!(!place.path("nowhere").exists());
    std::fs::hard_link(place.path("in.ndjson"), &unfinished).expect("a link");
    refused("a second name of the input");
    assert_eq!(place.read("in.ndjson"), records().into_bytes());
    assert!(Command::new("mkfifo").arg(&unfinished).status().expect("mkfifo").success());
    refused("a pipe");
    if rustix::process::geteuid().is_root() {
        std::fs::write(&unfinished, "").expect("a file");
        std::os::unix::fs::chown(&unfinished, Some(65534), None).expect("a file of another user");
        refused("a file of another user");
    }
    std::fs::write(&unfinished, "left").expect("a file");
    let mut open = std::fs::File::open(&unfinished).expect("a file");
    place.run(&[]).expect(0);
    let mut text = String::new();
    std::io::Read::read_to_string(&mut open, &mut text).expect("a file");
    assert_eq!(text, "left");
    assert!(!unfinished.exists() && !place.lines("out.body.ndjson").is_empty());
}

#[test]
#[cfg(feature = "failpoints")]
fn killed_job_state_is_removed_by_the_next_start() {
    let place = place();
    std::fs::create_dir(place.path("tmp")).expect("a directory");
    let run = |faults: &str| {
        let mut command = place.command(&[("STATE__PATH", "")], &[]);
        command.env("TMPDIR", place.path("tmp")).env("FAILPOINTS", faults);
        Process::spawn(command, place.port).wait().code
    };
    let left = || std::fs::read_dir(place.path("tmp")).expect("a directory").count();
    assert_eq!((run("file-appended=return"), left()), (None, 1));
    assert_eq!((run("file-appended=return"), left()), (None, 1), "that of the first one is gone");
    std::fs::create_dir(place.path("tmp/throng-state-begun")).expect("a directory");
    assert_eq!((run(""), left()), (Some(0), 1), "somebody may be about to make it");
}

#[test]
fn job_opens_no_port_and_keeps_no_state() {
    let place = place();
    let text = String::from_utf8(place.read("throng.toml")).expect("text");
    let listen = format!("listen = \"127.0.0.1:{}\"\n", place.port);
    place.write("throng.toml", text.replace(&listen, "").replace("path = \"state\"\n", ""));
    let taken = std::net::TcpListener::bind("127.0.0.1:9464");
    for _ in 0..2 {
        place.run(&[]).expect(0);
    }
    assert!(!place.path("state").exists());
    drop(taken);
    let text = String::from_utf8(place.read("throng.toml")).expect("text");
    place.write("throng.toml", text.replace("max_records = 50\n", ""));
    let whole = place.run(&[]).expect(0);
    assert_eq!(whole.account().consumed, 100);
}

#[test]
fn csv_header_with_a_formula_is_refused() {
    let name = |text: &str| text.replace("\"city\"", "\"=city\"");
    let place = Place::new(&name(SCHEMA), &name(GROUPS));
    place.write("in.ndjson", name(&records()));
    let csv = check(&place, &[("SINK__FORMAT", "csv")], "--output-schema");
    assert_eq!(csv.code, Some(2), "{}", csv.stderr);
    assert!(
        csv.stderr.contains("\"=city\" in the header of the output") && csv.stderr.contains("column"),
        "{}",
        csv.stderr
    );
    let json = check(&place, &[], "--output-schema");
    assert_eq!(json.code, Some(0), "{}", json.stderr);
}
