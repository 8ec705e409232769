//! RADAR-base end to end, with the shipped configuration.

use crate::support::binary::{Place, Process};
use crate::support::kafka::{Record, TestCluster, unique};
use crate::support::registry::{Registry, client};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

const PEOPLE: usize = 60;
const K: usize = 5;

fn file(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name).display().to_string()
}

fn heart_rates() -> String {
    (0..PEOPLE).fold(String::new(), |mut lines, person| {
        let record = json!({
            "key": {"projectId": "p", "userId": format!("user-{person}"), "sourceId": format!("band-{person}")},
            "value": {
                "time": 1_700_000_000.25, "timeReceived": 1_700_000_001.5, "timeInterval": 60,
                "heartRate": 60 + person % 2 * 5,
            },
        });
        writeln!(lines, "{record}").expect("text");
        lines
    })
}

/// All but the last ten people; one profile is unique.
fn profiles() -> String {
    (0..PEOPLE - 10).fold(String::new(), |mut lines, person| {
        let (year, sex, zip) = match person {
            0 => (1931, "OTHER", json!({"string": "99999"})),
            p if p % 2 == 0 => (1984, "FEMALE", json!({"string": "60617"})),
            _ => (1971, "MALE", Value::Null),
        };
        let zip = zip.get("string").cloned().unwrap_or(Value::Null);
        let record =
            json!({"key": format!("user-{person}"), "value": {"birthYear": year, "sex": sex, "address": {"zip": zip}}});
        writeln!(lines, "{record}").expect("text");
        lines
    })
}

#[test]
fn radar_heart_rates_are_released_with_frequent_profiles_only() {
    let (Some(broker), Some(registry)) = (TestCluster::shared(), Registry::shared()) else { return };
    let (raw, people, out) = (unique("raw"), unique("people"), unique("out"));
    let (letters, group) = (unique("letters"), unique("group"));
    let changelog = format!("{group}.changelog");
    for (topic, compacted) in [(&raw, false), (&people, true), (&letters, false), (&changelog, true)] {
        broker.create_topic(topic, if *topic == changelog { 2 } else { 1 }, compacted);
    }
    for part in ["heart_rate", "person"] {
        broker.create_topic_with(&format!("{out}.{part}"), 1, &[("retention.ms", "-1")]);
    }
    let (url, brokers) = (registry.url(), broker.bootstrap());
    let produce = |topic: &str, key: &str, value: &str, lines: &str| {
        let arguments = ["produce", &brokers, &url, topic, key, value].map(str::to_owned);
        client(&arguments.each_ref().map(String::as_str), lines);
    };
    produce(&people, "text", &file("schemas/avro/profile.avsc"), &profiles());
    let gone = Record { key: Some(b"user-1".to_vec()), payload: None, partition: Some(0), ..Record::default() };
    broker.produce_records(&people, &[gone]);
    let (key, value) =
        (file("schemas/avro/observation-key.avsc"), file("schemas/avro/fitbit-intraday-heart-rate.avsc"));
    produce(&raw, &key, &value, &heart_rates());

    let place = Place::new("", "");
    let shipped = std::fs::read_to_string(file("config/radar-profiles.toml")).expect("the configuration");
    let schema = file("schemas/radar-heart-rate-profiles.toml");
    let config = shipped
        .replace("secret_file = \"secret/throng.key\"", "secret_file = \"secret\"")
        .replace("localhost:9092", &brokers)
        .replace("http://localhost:8081", &url)
        .replace("topic = \"profiles\"", &format!("topic = \"{people}\""))
        .replace("connect_fitbit_intraday_heart_rate.{group}", &format!("{out}.{{group}}"))
        .replace("connect_fitbit_intraday_heart_rate", &raw)
        .replace("schemas/radar-heart-rate-profiles.toml", &schema);
    place.write("throng.toml", config);
    let process: Process = place.start(&[
        ("SOURCE__GROUP", &group),
        ("SINK__CHANGELOG_TOPIC", &changelog),
        ("SINK__DEAD_LETTER_TOPIC", &letters),
        ("PRIVACY__MAX_DELAY", "0s"),
        ("TELEMETRY__LISTEN", &format!("127.0.0.1:{}", place.port)),
    ]);
    process.until("all are consumed", |s| s["totals"]["consumed"] == PEOPLE);
    process.terminate();
    let outcome = process.wait().expect(0);
    assert!(broker.read_committed(&letters).is_empty(), "{}", outcome.stderr);
    let read = |part: &str| -> BTreeMap<String, usize> {
        let topic = format!("{out}.{part}");
        let lines = broker.read_committed(&topic).len();
        let said = client(&["consume", &brokers, &url, &topic, &lines.to_string(), "AVRO"], "");
        let mut classes = BTreeMap::new();
        said.lines().for_each(|line| *classes.entry(line.to_owned()).or_insert(0) += 1);
        assert_eq!(said.lines().count(), lines);
        classes
    };
    let (rates, persons) = (read("heart_rate"), read("person"));
    // Each person has sent one record.
    for (line, people) in rates.iter().chain(&persons) {
        assert!(*people >= K, "{people} of {line}");
        assert!(!line.contains("99999") && !line.contains("OTHER") && !line.contains("1931"), "{line}");
    }
    let of =
        |part: &str| persons.iter().filter(|(line, _)| line.contains(part)).map(|(_, people)| *people).sum::<usize>();
    assert_eq!((of("60617"), of("MALE")), (24, 48), "{persons:?}");
    assert!(of("\"sex\": null") >= 10, "missing profiles, the removed one among them: {persons:?}");
    assert!(rates.values().sum::<usize>() >= PEOPLE - K, "{rates:?}");
}

/// Heart rates or steps of 25 people on twelve days.
fn fitbit_days(field: &str) -> String {
    let mut lines = String::new();
    for (day, person) in (0..12).flat_map(|day| (0..25).map(move |person| (day, person))) {
        let time = 1_772_409_600 + day * 86_400 + 36_000 + person * 60;
        let mut value = json!({"time": time, "timeReceived": time + 900, "timeInterval": 60});
        value[field] = json!(40 + person * 3 + (day * 7 + person * 5) % 11);
        let key = json!({"projectId": "p", "userId": format!("user-{person}"), "sourceId": format!("band-{person}")});
        writeln!(lines, "{}", json!({"key": key, "value": value})).expect("text");
    }
    lines
}

#[test]
fn radar_fitbit_topics_are_read_with_one_schema() {
    let (Some(broker), Some(registry)) = (TestCluster::shared(), Registry::shared()) else { return };
    let (rates, steps, out) = (unique("rates"), unique("steps"), unique("out"));
    let (letters, changelog, group) = (unique("letters"), unique("changelog"), unique("group"));
    for topic in [&rates, &steps, &letters, &format!("{changelog}.contributions")] {
        broker.create_topic(topic, 1, false);
    }
    broker.create_topic(&changelog, 2, true);
    broker.create_topic_with(&out, 1, &[("retention.ms", "-1")]);
    let (url, brokers) = (registry.url(), broker.bootstrap());
    let key = file("schemas/avro/observation-key.avsc");
    for (topic, name, field) in [(&rates, "heart-rate", "heartRate"), (&steps, "steps", "steps")] {
        let value = file(&format!("schemas/avro/fitbit-intraday-{name}.avsc"));
        client(&["produce", &brokers, &url, topic, &key, &value], &fitbit_days(field));
    }
    let place = Place::new("", "");
    let shipped = std::fs::read_to_string(file("config/radar-fitbit.toml")).expect("the configuration");
    let config = shipped
        .replace("secret_file = \"secret/throng.key\"", "secret_file = \"secret\"")
        .replace("schemas/radar-fitbit.toml", &file("schemas/radar-fitbit.toml"));
    place.write("throng.toml", config);
    let process: Process = place.start(&[
        ("SOURCE__BROKERS", &brokers),
        ("SOURCE__TOPICS", &format!("{rates},{steps}")),
        ("SOURCE__GROUP", &group),
        ("REGISTRY__URL", &url),
        ("SINK__TOPIC", &out),
        ("SINK__CHANGELOG_TOPIC", &changelog),
        ("SINK__DEAD_LETTER_TOPIC", &letters),
        ("TELEMETRY__LISTEN", &format!("127.0.0.1:{}", place.port)),
    ]);
    process.until("all are consumed", |s| s["totals"]["consumed"] == 2 * 12 * 25);
    let rows = || -> Vec<Value> {
        let rows = broker.read_committed(&out).into_iter();
        rows.map(|row| serde_json::from_slice(&row.payload.expect("a payload")).expect("JSON")).collect()
    };
    for signal in ["heart_rate", "steps"] {
        process.until("each signal has rows", |_| rows().iter().any(|row| row["signal"] == signal));
    }
    process.terminate();
    let outcome = process.wait().expect(0);
    assert!(broker.read_committed(&letters).is_empty(), "{}", outcome.stderr);
    assert!(rows().iter().all(|row| row["n"].as_u64() >= Some(5)), "{:?}", rows());
}
