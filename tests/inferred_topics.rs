//! Tests `throng schema infer` on topics: the proposed schema reads the messages.

use crate::support;

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::json;
use support::daemon::TestDaemon;
use support::kafka::{TestCluster, unique};
use support::registry::{Registry, client};
use throng_core::values::schema::{AttributeOrigin, Role, Schema};

const K: usize = 5;

fn throng(place: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut command = crate::support::binary::throng();
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("THRONG_")) {
        command.env_remove(name);
    }
    let output = command.args(arguments).current_dir(place).output().expect("it runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    (output.status.code(), text(output.stdout), text(output.stderr))
}

fn configure(place: &Path, brokers: &str, raw: &str, out: &str, source: &str, more: &str) {
    let key = place.join("key");
    std::fs::write(&key, "a secret of the tests, long enough").expect("the secret");
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).expect("a file of ours");
    let text = format!(
        r#"
[source]
brokers = "{brokers}"
topics = ["{raw}"]
group = "{raw}"
{source}
[sink]
topic = "{out}"
dead_letter_topic = "{raw}.dead"
changelog_topic = "{raw}.changelog"
[schema]
file = "{place}/schema.toml"
[batch]
max_records = 500
max_wait = "200ms"
max_age = "2s"
[privacy]
k = {K}
max_delay = "0s"
max_lines_per_subject = 0
[state]
path = "{place}/state"
secret_file = "{place}/key"
[telemetry]
listen = "127.0.0.1:0"
{more}
"#,
        place = place.display(),
    );
    std::fs::write(place.join("throng.toml"), text).expect("the configuration");
}

fn topics(broker: &TestCluster) -> (String, String) {
    let (raw, out) = (unique("raw"), unique("out"));
    broker.create_topic(&raw, 3, false);
    broker.create_topic_with(&out, 1, &[("retention.ms", "-1")]);
    broker.create_topic(&format!("{raw}.dead"), 1, false);
    broker.create_topic(&format!("{raw}.changelog"), 4, true);
    (raw, out)
}

fn released(place: &Path, broker: &TestCluster, raw: &str, out: &str, records: i64) -> (usize, String) {
    let mut daemon = TestDaemon::start(&place.join("throng.toml"), &[], None);
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(90);
    let consumed = || broker.group_offsets_now(raw, raw).values().map(|at| at.unwrap_or(0)).sum::<i64>();
    while consumed() < records {
        assert!(daemon.ended().is_none(), "it ended early: {}", daemon.said());
        assert!(std::time::Instant::now() < deadline, "{} of {records}: {}", consumed(), daemon.said());
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    daemon.stop();
    (broker.read_committed(out).len(), daemon.said())
}

#[test]
fn schema_infer_reads_json_with_text_keys() {
    let Some(broker) = TestCluster::shared() else { return };
    let dir = tempfile::tempdir().expect("a directory");
    let (place, brokers) = (dir.path(), broker.bootstrap());
    let (raw, out) = topics(broker);
    let records: Vec<_> = (0..3000_usize)
        .map(|i| {
            let value =
                json!({"pulse": 60 + i % 7 * 5, "kind": (["a", "b"][i % 2]), "at": {"place": format!("zone-{}", i % 3)}});
            (Some(format!("user-{}", i % 60).into_bytes()), Some(value.to_string().into_bytes()))
        })
        .chain([(Some(b"user-1".to_vec()), None), (None, Some(b"no record".to_vec()))])
        .collect();
    broker.produce(&raw, records);
    let arguments =
        ["schema", "infer", "--topic", &raw, "--brokers", &brokers, "--subject", "key", "-o", "schema.toml"];
    let (code, _, said) = throng(place, &arguments);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("3,000 records of 60 people"), "{said}");
    let text = std::fs::read_to_string(place.join("schema.toml")).expect("the schema");
    assert!(text.contains("1 record(s) could not be read"), "{text}");
    let schema = Schema::parse(&text, "it", place).expect("a schema");
    let subject = &schema.attributes[schema.subject.expect("one")];
    assert_eq!((&subject.from, subject.role), (&AttributeOrigin::Key, Role::Subject));
    let names: Vec<&str> = schema.attributes.iter().map(|a| a.name.as_str()).collect();
    assert_eq!(names, ["key", "pulse", "kind", "at.place"]);
    assert!(broker.group_offsets(&raw, &raw).values().all(Option::is_none), "nothing is committed");

    let few = ["schema", "infer", "--topic", &raw, "--brokers", &brokers, "--records", "200"];
    let (code, _, said) = throng(place, &few);
    assert!(code == Some(2) && said.contains("\"key\"") && said.contains("--no-subject"), "keys come back: {said}");
    let (code, text, said) = throng(place, &[&few[..], &["--subject", "key"]].concat());
    assert!(code == Some(0) && text.contains("the first 200 records"), "{text}{said}");
    let (code, _, said) = throng(place, &["schema", "infer", "--topic", "no.such.topic", "--brokers", &brokers]);
    assert!(code == Some(1) && said.contains("missing topics: no.such.topic"), "{said}");

    configure(place, &brokers, &raw, &out, "", "");
    let (lines, said) = released(place, broker, &raw, &out, 3002);
    assert!(lines > 2700, "{lines}: {said}");
}

#[test]
fn schema_infer_reads_avro_in_registry_frames() {
    let (Some(broker), Some(registry)) = (TestCluster::shared(), Registry::shared()) else { return };
    let dir = tempfile::tempdir().expect("a directory");
    let (place, brokers, url) = (dir.path(), broker.bootstrap(), registry.url());
    let (raw, out) = topics(broker);
    let lines: String = (0..2000_usize)
        .map(|i| {
            let key =
                json!({"projectId": "p", "userId": format!("user-{}", i % 50), "sourceId": format!("band-{}", i % 50)});
            let value = json!({
                "time": 1_700_000_000.25 + i as f64, "timeReceived": 1_700_000_001.5 + i as f64,
                "heartRate": 60 + i % 4 * 5, "activity": (["REST", "WALK"][i % 2]), "battery": 0.5,
            });
            format!("{}\n", json!({"key": key, "value": value}))
        })
        .collect();
    let schema = |name: &str| format!("{}/schemas/avro/{name}.avsc", env!("CARGO_MANIFEST_DIR"));
    let (key, value) = (schema("observation-key"), schema("wrist-heart-rate"));
    client(&["produce", &brokers, &url, &raw, &key, &value], &lines);
    let registry = format!("[registry]\nurl = \"{url}\"");
    configure(place, &brokers, &raw, &out, "", &registry);
    let (code, _, said) = throng(place, &["schema", "infer", "-c", "throng.toml"]);
    assert!(code == Some(2) && said.contains("no message can be read"), "JSON is no format of theirs: {said}");
    configure(place, &brokers, &raw, &out, "format = \"avro\"\nkey_format = \"avro\"", &registry);
    let (code, _, said) = throng(place, &["schema", "infer", "-c", "throng.toml", "-o", "schema.toml"]);
    assert_eq!(code, Some(0), "{said}");
    let text = std::fs::read_to_string(place.join("schema.toml")).expect("the schema");
    let schema = Schema::parse(&text, "it", place).expect("a schema");
    let subject = &schema.attributes[schema.subject.expect("one")];
    assert_eq!((subject.name.as_str(), &subject.from), ("userId", &AttributeOrigin::Key), "{text}");
    let (lines, said) = released(place, broker, &raw, &out, 2000);
    assert!(lines > 1800, "{lines}: {said}\n{text}");
}
