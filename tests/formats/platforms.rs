//! Tests documents of wearable platforms with their shipped schemas. FHIR and Google Health are in `exploded.rs`.

use super::Scene;
use super::scene::{PEOPLE, file, heart_rates};
use crate::support::kafka::{Record, TestCluster, unique};
use serde_json::{Value, json};

const EACH: usize = 15;
const RECORDS: usize = PEOPLE * EACH;

fn message(key: Option<String>, value: &Value) -> Record {
    Record {
        partition: Some(0),
        key: key.map(String::into_bytes),
        payload: Some(value.to_string().into_bytes()),
        ..Record::default()
    }
}

fn released(
    broker: &'static TestCluster,
    schema: &str,
    records: &[Record],
    source: &str,
    more: &str,
) -> (Vec<Value>, String) {
    let schema = std::fs::read_to_string(file(schema)).expect("the schema");
    let scene = Scene { max_age: "2s", ..Scene::new(broker, &schema) };
    broker.produce_records(&scene.raw, records);
    let mut daemon = scene.start(source, "", more);
    scene.wait_consumed(records.len(), &mut daemon);
    daemon.stop();
    assert_eq!(scene.letters(), Vec::<Value>::new(), "{}", daemon.said());
    let lines = broker.read_committed(&scene.out).into_iter();
    let lines = lines.map(|line| serde_json::from_slice(&line.payload.expect("a payload")).expect("JSON")).collect();
    (lines, daemon.said())
}

fn shown(lines: &[Value], attribute: &str) -> usize {
    lines.iter().filter(|line| line.get(attribute).is_some_and(|cell| *cell != "*")).count()
}

#[test]
fn open_mhealth_data_points_are_released() {
    let Some(broker) = TestCluster::shared() else { return };
    let sample = std::fs::read_to_string(file("samples/open-mhealth-heart-rate.json")).expect("the sample");
    let sample: Value = serde_json::from_str(&sample).expect("JSON");
    let point = |i: usize| {
        let mut point = sample.clone();
        point["header"]["id"] = json!(format!("point-{i}"));
        point["header"]["user_id"] = json!(format!("participant-{}", i % PEOPLE));
        point["body"]["heart_rate"]["value"] = json!(60 + i % PEOPLE % 4 * 5);
        message(None, &point)
    };
    let records: Vec<Record> = (0..RECORDS).map(point).collect();
    let (lines, log) = released(broker, "open-mhealth-heart-rate.toml", &records, "", "");
    assert!(lines.len() > RECORDS * 8 / 10 && shown(&lines, "pulse") > RECORDS / 2, "{}: {log}", lines.len());
}

#[test]
fn radar_base_heart_rates_are_joined_with_profiles() {
    let Some(broker) = TestCluster::shared() else { return };
    let topic = unique("profiles");
    broker.create_topic(&topic, 2, true);
    let profile = |person: usize| {
        let sex = ["FEMALE", "MALE"][person % 2];
        let zip = format!("606{:02}", person % 4);
        let value = json!({ "birthYear": 1960 + person % 5, "sex": sex, "address": { "zip": zip } });
        message(Some(format!("user-{person}")), &value)
    };
    broker.produce_records(&topic, &(0..PEOPLE).map(profile).collect::<Vec<Record>>());
    let pair = |line: &str| {
        let pair: Value = serde_json::from_str(line).expect("JSON");
        message(Some(pair["key"].to_string()), &pair["value"])
    };
    let records: Vec<Record> = heart_rates(EACH).lines().map(pair).collect();
    let more = format!(
        "[[join]]\nname = \"profiles\"\ntopic = \"{topic}\"\n[[group]]\nname = \"rate\"\nattributes = [\"time\", \"pulse\"]\n\
         [[group]]\nname = \"person\"\nattributes = [\"birth_year\", \"sex\", \"zip\"]\n"
    );
    let (lines, log) = released(broker, "radar-heart-rate-profiles.toml", &records, "key_format = \"json\"", &more);
    assert!(shown(&lines, "sex") > RECORDS / 2 && shown(&lines, "pulse") > RECORDS / 2, "{}: {log}", lines.len());
}
