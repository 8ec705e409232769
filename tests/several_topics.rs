//! Tests one daemon over topics with different records: attributes by topic, selected records, created topics.

use crate::support;

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::daemon::TestDaemon;
use support::kafka::{TestCluster, unique};

const SCHEMA: &str = r#"
name = "two-topics"
[[attribute]]
name = "user"
pointer = "/userId"
type = "string"
role = "subject"
[[attribute]]
name = "time"
pointer = "/time"
pointers = { "STEPS" = "/interval/start" }
type = "timestamp"
role = "identifier"
[[attribute]]
name = "code"
pointer = "/code"
topics = ["PULSE"]
only = ["8867-4", "7"]
type = "string"
role = "identifier"
[[attribute]]
name = "pulse"
pointer = "/value"
topics = ["PULSE"]
type = "integer"
[[attribute]]
name = "steps"
pointer = "/value"
topics = ["STEPS"]
type = "integer"
"#;

fn configuration(place: &Path, brokers: &str, names: &[String; 2]) -> String {
    let [pulse, steps] = names;
    let schema = SCHEMA.replace("PULSE", pulse).replace("STEPS", steps);
    std::fs::write(place.join("schema.toml"), schema).expect("the schema");
    std::fs::write(place.join("key"), "a secret of the tests, long enough").expect("the secret");
    std::fs::set_permissions(place.join("key"), std::fs::Permissions::from_mode(0o600)).expect("a file of ours");
    format!(
        r#"
[source]
brokers = "{brokers}"
topics = ["{pulse}", "{steps}"]
group = "{pulse}"
[sink]
topic = "{pulse}.out"
dead_letter_topic = "{pulse}.dead"
changelog_topic = "{pulse}.changelog"
[schema]
file = "{place}/schema.toml"
[batch]
max_records = 500
max_wait = "200ms"
max_age = "2s"
[privacy]
k = 5
max_delay = "0s"
max_lines_per_subject = 0
[state]
path = "{place}/state"
secret_file = "{place}/key"
[telemetry]
listen = "127.0.0.1:0"
"#,
        place = place.display(),
    )
}

fn throng(place: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = support::binary::throng().args(arguments).current_dir(place).output().expect("it runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn one_daemon_reads_topics_with_different_records() {
    let Some(broker) = TestCluster::shared() else { return };
    let dir = tempfile::tempdir().expect("a directory");
    let (place, brokers) = (dir.path(), broker.bootstrap());
    let names = [unique("pulse"), unique("steps")];
    let text = configuration(place, &brokers, &names);
    std::fs::write(place.join("throng.toml"), text).expect("the configuration");

    let (code, listed, said) = throng(place, &["topics", "list", "-c", "throng.toml"]);
    assert!(code == Some(2) && listed.contains("missing"), "{listed}{said}");
    let (code, _, said) = throng(place, &["topics", "create", "-c", "throng.toml"]);
    assert!(code == Some(2) && said.contains("--source-partitions"), "a source topic is not created alone: {said}");
    let create = ["topics", "create", "-c", "throng.toml", "--source-partitions", "2"];
    let (code, created, said) = throng(place, &create);
    assert_eq!(code, Some(0), "{created}{said}");
    assert!(created.contains(&format!("created {}.changelog: 3 partitions, cleanup.policy=compact", names[0])));
    let (code, listed, said) = throng(place, &["topics", "list", "-c", "throng.toml"]);
    assert!(code == Some(0) && !listed.contains("missing"), "{listed}{said}");
    let (code, again, said) = throng(place, &create);
    assert!(code == Some(0) && again.contains("topics existed before"), "{again}{said}");
    broker.delete_topic(&format!("{}.changelog", names[0]));
    let larger = ["topics", "create", "-c", "throng.toml", "--source-partitions", "9"];
    let (code, again, said) = throng(place, &larger);
    let changelog = format!("created {}.changelog: 3 partitions", names[0]);
    assert!(code == Some(0) && again.contains(&changelog), "the source topics have 2 partitions: {again}{said}");
    assert!(said.contains("--source-partitions is not used"), "{said}");

    let record = |user: usize, value: Value| {
        let mut value = value;
        value["userId"] = json!(format!("user-{user}"));
        (Some(format!("user-{user}").into_bytes()), Some(value.to_string().into_bytes()))
    };
    let at = |i: usize| format!("2026-01-05T10:{:02}:00Z", i % 60);
    let pulses = (0..600).map(|i| record(i % 40, json!({"time": at(i), "value": 60 + i % 2, "code": "8867-4"})));
    // Another code, no code, and a number that is spelled as selected.
    let others = (0..40).flat_map(|i| {
        [
            record(i, json!({"time": at(i), "value": 999, "code": "8310-5"})),
            record(i, json!({"time": at(i), "value": 998})),
            record(i, json!({"time": at(i), "value": 62, "code": 7})),
        ]
    });
    let steps = (0..400).map(|i| record(i % 40, json!({"interval": {"start": at(i)}, "value": 100 + i % 2})));
    broker.produce(&names[0], pulses.chain(others).collect());
    broker.produce(&names[1], steps.collect());

    let mut daemon = TestDaemon::start(&place.join("throng.toml"), &[], None);
    let deadline = Instant::now() + Duration::from_secs(300);
    let consumed = || {
        let of = |topic: &String| broker.group_offsets_now(&names[0], topic);
        names.iter().flat_map(|topic| of(topic).into_values()).map(|at| at.unwrap_or(0)).sum::<i64>()
    };
    while consumed() < 1120 {
        assert!(daemon.ended().is_none(), "it ended early: {}", daemon.said());
        assert!(Instant::now() < deadline, "{} of 1120: {}", consumed(), daemon.said());
        std::thread::sleep(Duration::from_millis(50));
    }
    let (connected, report, said) = throng(place, &["check", "-c", "throng.toml", "--connect"]);
    assert_eq!(connected, Some(0), "{report}{said}");
    assert!(report.contains("transactional id") && report.contains("readable"), "{report}");
    daemon.stop();
    let said = daemon.said();
    let logged = |figure: &str| -> u64 {
        let figures = said.split_whitespace().filter_map(|word| word.strip_prefix(figure)?.parse::<u64>().ok());
        figures.sum()
    };
    assert_eq!((logged("dropped="), logged("records=")), (80, 1040), "{said}");

    let lines: Vec<Value> = broker
        .read_committed(&format!("{}.out", names[0]))
        .iter()
        .map(|line| serde_json::from_slice(line.payload.as_deref().expect("a line")).expect("JSON"))
        .filter(|line: &Value| line.get("series").is_none())
        .collect();
    let has = |line: &Value, key: &str| line.get(key).is_some_and(|value| !value.is_null());
    assert!(lines.iter().filter(|line| has(line, "pulse")).count() > 300, "{} lines", lines.len());
    assert!(lines.iter().filter(|line| has(line, "steps")).count() > 200, "{} lines", lines.len());
    assert!(lines.iter().all(|line| !(has(line, "pulse") && has(line, "steps"))), "one topic has one of them");
    let text = serde_json::to_string(&lines).expect("JSON");
    assert!(!text.contains("999") && !text.contains("998"), "records of other codes are not read");
}

#[test]
fn topics_of_the_schema_that_are_not_read_are_refused() {
    let dir = tempfile::tempdir().expect("a directory");
    let place = dir.path();
    let text = configuration(place, "localhost:9", &["pulse".to_owned(), "steps".to_owned()]);
    let text = text.replace(", \"steps\"]\ngroup", "]\ngroup");
    std::fs::write(place.join("throng.toml"), text).expect("the configuration");
    let (code, _, said) = throng(place, &["check", "-c", "throng.toml"]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("names topic \"steps\", which is not read"), "{said}");
}
