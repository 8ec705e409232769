//! Tests messages of many records on a real broker: a FHIR Bundle, and a response of Google Health.

use super::{Scene, file};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use support::kafka::{Record, TestCluster};
use support::registry::Registry;

use super::support;

fn sample(name: &str) -> Value {
    serde_json::from_str(&std::fs::read_to_string(file(name)).expect("the sample")).expect("JSON")
}

fn message(key: Option<String>, value: &Value) -> Record {
    Record {
        partition: Some(0),
        key: key.map(String::into_bytes),
        payload: Some(value.to_string().into_bytes()),
        ..Record::default()
    }
}

fn released(scene: &Scene) -> Vec<Value> {
    let read =
        |stored: support::kafka::Stored| serde_json::from_slice(&stored.payload.expect("a payload")).expect("JSON");
    scene.broker.read_committed(&scene.out).into_iter().map(read).collect()
}

#[test]
fn fhir_bundle_entries_are_records() {
    let Some(broker) = TestCluster::shared() else { return };
    let schema = std::fs::read_to_string(file("fhir-bundle.toml")).expect("the schema");
    let scene = Scene::new(broker, &schema);
    let shipped = sample("samples/fhir-bundle.json");
    let mut records = Vec::new();
    for number in 0..20 {
        let mut bundle = shipped.clone();
        bundle["id"] = json!(format!("bundle-{number}"));
        for (at, entry) in bundle["entry"].as_array_mut().expect("entries").iter_mut().enumerate() {
            entry["resource"]["subject"]["reference"] = json!(format!("Patient/{}", number * 2 + at));
        }
        match number {
            3 => bundle["entry"][1] = json!("urn:uuid:0"),
            4 => bundle["entry"][0]["resource"]["valueQuantity"]["value"] = json!("high"),
            5 => bundle["entry"] = json!([]),
            6 => bundle["entry"] = Value::from(vec![json!({}); 10_001]),
            _ => {}
        }
        records.push(message(None, &bundle));
    }
    broker.produce_records(&scene.raw, &records);
    let mut daemon = scene.start("", "", "[output]\nshape = \"nested\"");
    scene.wait_consumed(records.len(), &mut daemon);
    daemon.stop();
    let wanted = [
        (3, Some(1), "not_an_object"),
        (4, Some(0), "wrong_type"),
        (5, None, "no_elements"),
        (6, None, "too_many_elements"),
    ];
    let wanted = wanted.map(|(offset, element, reason)| (offset, element, reason.to_owned()));
    assert_eq!(scene.refused_elements(), BTreeSet::from(wanted), "{}", daemon.said());
    let lines = released(&scene);
    assert_eq!(lines.len(), 20 * 2 - 6, "{}", daemon.said());
    for line in lines {
        assert_eq!(line["timestamp"], "2026-03-02T00:00:00Z", "{line}");
        let resource = &line["entry"][0]["resource"];
        assert_eq!(resource["code"]["coding"][0]["code"], "8867-4", "{line}");
        assert!([json!(60), json!(120)].contains(&resource["valueQuantity"]["value"]), "{line}");
        assert!(resource.get("subject").is_none() && line.get("id").is_none(), "{line}");
    }
}

/// Returns the shipped schema with the person in the key, and a response with three points.
fn google_health() -> (String, Value) {
    let schema = std::fs::read_to_string(file("google-health-heart-rate.toml")).expect("the schema");
    let schema = schema.replace("name = \"person\"\n", "name = \"person\"\nfrom = \"key\"\n");
    let responses = std::fs::read_to_string(file("samples/google-health-heart-rate.ndjson")).expect("the samples");
    let mut response: Value = serde_json::from_str(responses.lines().next().expect("a response")).expect("JSON");
    response.as_object_mut().expect("an object").remove("person");
    let points = [61, 64, 97].iter().enumerate().map(|(minute, beats)| {
        let mut point = response["dataPoints"][0].clone();
        point["heartRate"]["sampleTime"]["physicalTime"] = json!(format!("2026-03-02T07:2{minute}:00Z"));
        point["heartRate"]["beatsPerMinute"] = json!(beats.to_string());
        point
    });
    let points = Value::from(points.collect::<Vec<Value>>());
    response["dataPoints"] = points;
    (schema, response)
}

#[test]
fn google_health_points_are_records_of_the_key_subject() {
    let Some(broker) = TestCluster::shared() else { return };
    let (schema, response) = google_health();
    let scene = Scene::new(broker, &schema);
    let records: Vec<Record> = (0..20).map(|person| message(Some(format!("person {person}")), &response)).collect();
    broker.produce_records(&scene.raw, &records);
    let mut daemon = scene.start("", "", "");
    scene.wait_consumed(records.len(), &mut daemon);
    daemon.stop();
    let lines: Vec<String> = released(&scene).iter().map(ToString::to_string).collect();
    assert_eq!(lines.len(), 20 * 3, "{}", daemon.said());
    let distinct: BTreeSet<&String> = lines.iter().collect();
    assert_eq!(distinct.len(), 3, "{distinct:?}");
    for beats in [61, 64, 97] {
        assert!(lines.iter().any(|line| line.contains(&format!("\"heart_rate\":{beats}"))), "{beats}: {distinct:?}");
    }
    assert!(scene.letters().is_empty());
}

#[test]
fn google_health_response_of_one_subject_is_no_crowd() {
    let Some(broker) = TestCluster::shared() else { return };
    let (schema, mut response) = google_health();
    let scene = Scene { max_age: "500ms", ..Scene::new(broker, &schema) };
    let point = response["dataPoints"][0].clone();
    response["dataPoints"] = Value::from(vec![point; 500]);
    broker.produce_records(&scene.raw, &[message(Some("one".to_owned()), &response)]);
    let mut daemon = scene.start("", "", "");
    scene.wait_consumed(1, &mut daemon);
    daemon.stop();
    assert_eq!(scene.released(), 0, "{}", daemon.said());
}

#[test]
fn nested_lines_are_written_in_registry_frames() {
    let (Some(broker), Some(registry)) = (TestCluster::shared(), Registry::shared()) else { return };
    let schema = std::fs::read_to_string(file("fhir-bundle.toml")).expect("the schema");
    let scene = Scene::new(broker, &schema);
    let shipped = sample("samples/fhir-bundle.json");
    let bundle = |number: usize| {
        let mut bundle = shipped.clone();
        for (at, entry) in bundle["entry"].as_array_mut().expect("entries").iter_mut().enumerate() {
            entry["resource"]["subject"]["reference"] = json!(format!("Patient/{}", number * 2 + at));
        }
        message(None, &bundle)
    };
    let records: Vec<Record> = (0..20).map(bundle).collect();
    broker.produce_records(&scene.raw, &records);
    let url = registry.url();
    let more = format!("[output]\nshape = \"nested\"\n[registry]\nurl = \"{url}\"");
    let mut daemon = scene.start("", "format = \"json_schema\"", &more);
    scene.wait_consumed(records.len(), &mut daemon);
    daemon.stop();
    assert!(scene.letters().is_empty(), "{}", daemon.said());
    let read = scene.read_back(&url, "JSON");
    assert_eq!((read.len(), scene.released()), (40, 40), "{}", daemon.said());
    for line in read {
        assert_eq!(line["entry"][0]["resource"]["code"]["coding"][0]["code"], "8867-4", "{line}");
    }
}
