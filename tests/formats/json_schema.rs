//! Tests JSON with JSON Schemas of a registry, written and read by Confluent's client.

use crate::formats::scene::{K, PEOPLE, SCHEMA, Scene, file, framed};
use crate::support::kafka::{Record, TestCluster, unique};
use crate::support::registry::Registry;
use serde_json::{Value, json};
use std::collections::BTreeMap;

const SOURCE: &str = "format = \"json_schema\"\nkey_format = \"json_schema\"";

#[test]
fn json_schema_records_are_read_and_written() {
    let (Some(broker), Some(registry)) = (TestCluster::shared(), Registry::shared()) else { return };
    let scene = Scene::new(broker, SCHEMA);
    let (records, url) = (PEOPLE * 5, registry.url());
    scene.produce(&url, "json/observation-key.json", "json/wrist-heart-rate.json", 5);
    let more = format!("[registry]\nurl = \"{url}\"");
    let mut daemon = scene.start(SOURCE, "format = \"json_schema\"", &more);
    scene.wait_consumed(records, &mut daemon);
    daemon.stop();
    assert_eq!(scene.letters(), Vec::<Value>::new(), "{}", daemon.said());
    let lines = scene.released();
    assert!(lines > records * 9 / 10, "{lines} of {records} lines: {}", daemon.said());
    let read = scene.read_back(&url, "JSON");
    assert_eq!(read.len(), lines, "the client validates each line");
    let mut classes: BTreeMap<String, usize> = BTreeMap::new();
    for value in &read {
        *classes.entry(value.to_string()).or_default() += 1;
    }
    assert!(classes.values().all(|lines| *lines >= K), "{classes:?}");
    assert!(read.iter().any(|value| value["pulse"].is_i64()), "numbers stay numbers: {classes:?}");
}

#[test]
fn json_schema_mismatches_are_refused_by_name() {
    let (Some(broker), Some(registry)) = (TestCluster::shared(), Registry::shared()) else { return };
    let scene = Scene { max_age: "1s", ..Scene::new(broker, SCHEMA) };
    let url = registry.url();
    let number =
        |subject: &str, schema: &Value| scene.register(&url, &unique(subject), "json", &schema.to_string(), &[]);
    let read = |name: &str| -> Value {
        serde_json::from_str(&std::fs::read_to_string(file(name)).expect("a schema")).expect("JSON")
    };
    let (key, value) = (read("json/observation-key.json"), read("json/wrist-heart-rate.json"));
    let key = framed(number("key", &key), b"{\"userId\": \"u\", \"sourceId\": \"s\"}");
    let good = number("value", &value);
    let mut changed = value.clone();
    changed["properties"]["ssid"] = json!({"type": "string"});
    let grown = number("grown", &changed);
    let mut changed = value.clone();
    changed["properties"].as_object_mut().expect("properties").remove("heartRate");
    let removed = number("removed", &changed);
    let mut changed = value.clone();
    changed["properties"]["heartRate"] = json!({"type": "boolean"});
    let retyped = number("retyped", &changed);
    let datum = b"{\"time\": 1700000000, \"heartRate\": 60, \"activity\": \"REST\", \"ssid\": \"home\"}";
    let values = [
        framed(good, datum),
        framed(grown, datum),
        framed(1_999_999, datum),
        framed(removed, datum),
        framed(retyped, datum),
        framed(good, b"{"),
        datum.to_vec(),
    ];
    let record = |value: &Vec<u8>| Record {
        partition: Some(0),
        key: Some(key.clone()),
        payload: Some(value.clone()),
        ..Record::default()
    };
    broker.produce_records(&scene.raw, &values.iter().map(record).collect::<Vec<_>>());
    let more = format!("[registry]\nurl = \"{url}\"");
    let mut daemon = scene.start(SOURCE, "", &more);
    scene.wait_consumed(values.len(), &mut daemon);
    let metrics = scene.page("metrics").1;
    daemon.stop();
    let wanted =
        [(2, "unknown_schema"), (3, "missing_field"), (4, "wrong_type"), (5, "malformed_json"), (6, "broken_frame")];
    let mut reasons = scene.reasons();
    reasons.sort();
    assert_eq!(reasons, wanted.map(|(at, reason)| (at, reason.to_owned())), "{}", daemon.said());
    assert!(daemon.said().contains("heartRate") && !daemon.said().contains("home"), "{}", daemon.said());
    assert!(metrics.contains("throng_writer_schemas_total{format=\"json\",outcome=\"wrong_type\"} 1"), "{metrics}");
}
