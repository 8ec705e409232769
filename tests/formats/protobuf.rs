//! Tests Protobuf in registry frames, written and read by Confluent's client and Google's compiler.

use crate::formats::scene::{K, PEOPLE, SCHEMA, Scene, file, framed};
use crate::support::kafka::{Record, TestCluster, unique};
use crate::support::registry::{Registry, client};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

fn text(name: &str) -> String {
    std::fs::read_to_string(file(name)).expect("a schema")
}

fn pulse(time: f64, pulse: f32, activity: u8) -> Vec<u8> {
    [&[9][..], &time.to_le_bytes(), &[0x1d], &pulse.to_le_bytes(), &[0x20, activity]].concat()
}

fn record(key: &[u8], value: Vec<u8>) -> Record {
    Record { partition: Some(0), key: Some(key.to_vec()), payload: Some(value), ..Record::default() }
}

#[test]
fn protobuf_records_in_registry_frames_are_read_and_written() {
    let (Some(broker), Some(registry)) = (TestCluster::shared(), Registry::shared()) else { return };
    let scene = Scene::new(broker, SCHEMA);
    let (records, url) = (PEOPLE * 5, registry.url());
    scene.produce(&url, "protobuf/observation-key.proto", "protobuf/wrist-heart-rate.proto", 5);
    let more = format!("[registry]\nurl = \"{url}\"");
    let mut daemon = scene.start("format = \"protobuf\"\nkey_format = \"protobuf\"", "format = \"protobuf\"", &more);
    scene.wait_consumed(records, &mut daemon);
    let metrics = scene.page("metrics").1;
    daemon.stop();
    assert_eq!(scene.letters(), Vec::<Value>::new(), "{}", daemon.said());
    let lines = scene.released();
    assert!(lines > records * 9 / 10, "{lines} of {records} lines: {}", daemon.said());
    let read = scene.read_back(&url, "PROTOBUF");
    assert_eq!(read.len(), lines);
    let mut classes: BTreeMap<String, usize> = BTreeMap::new();
    let mut pulses = BTreeSet::new();
    for value in &read {
        let keys = value.as_object().expect("a record").keys();
        assert!(keys.clone().all(|key| ["time", "pulse", "pulse_text", "activity"].contains(&key.as_str())), "{value}");
        // Google's JSON writes 64-bit integers as texts.
        pulses.insert(value.get("pulse").map_or("none".to_owned(), |pulse| pulse.as_str().expect("text").to_owned()));
        *classes.entry(value.to_string()).or_default() += 1;
    }
    assert!(classes.values().all(|lines| *lines >= K), "{classes:?}");
    assert!(pulses.contains("none") && pulses.iter().any(|p| p.parse::<i64>().is_ok()), "{pulses:?}");
    // Two fields of every value and one of every key belong to no attribute.
    let dropped = format!("throng_unknown_cells_total{{format=\"protobuf\"}} {}", records * 3);
    assert!(metrics.contains(&dropped), "{metrics}");
}

#[test]
fn protobuf_broken_records_become_dead_letters_with_a_reason() {
    let (Some(broker), Some(registry)) = (TestCluster::shared(), Registry::shared()) else { return };
    let scene = Scene { max_age: "1s", ..Scene::new(broker, SCHEMA) };
    let url = registry.url();
    let parts = unique("activity");
    scene.register(&url, &parts, "proto", &text("protobuf/activity.proto"), &[]);
    let part = format!("activity.proto={parts}");
    let value_text = text("protobuf/wrist-heart-rate.proto");
    let key = scene.register(&url, &unique("key"), "proto", &text("protobuf/observation-key.proto"), &[]);
    let value = scene.register(&url, &unique("value"), "proto", &value_text, &[&part]);
    let removed = value_text.replace("  optional float heart_rate = 3;\n", "");
    let removed = scene.register(&url, &unique("removed"), "proto", &removed, &[&part]);
    let retyped = value_text.replace("optional float heart_rate = 3", "Battery heart_rate = 3");
    let retyped = scene.register(&url, &unique("retyped"), "proto", &retyped, &[&part]);
    let avro = scene.register(&url, &unique("avro"), "avsc", "\"string\"", &[]);
    let key = framed(key, b"\0\x12\x01u\x1a\x01s");
    // The second message of the file.
    let of = |id: u32, datum: &[u8]| framed(id, &[&[2, 2][..], datum].concat());
    let good = pulse(1.7e9, 60.0, 1);
    let second = [good.as_slice(), &good].concat();
    let values = [
        of(value, &good),
        b"{\"time\": 1}".to_vec(),
        framed(value, &[]),
        framed(value, &[2, 8]),
        framed(1_999_999, &good),
        of(removed, &good),
        of(value, &good[..9 - 1]),
        of(value, &second),
        of(value, &pulse(1.7e9, 60.0, 99)),
        of(value, &[&good[..], &[0x0b, 0x0c]].concat()),
        framed(avro, &[2, b'a']),
        of(retyped, &[&good[..9], &[0x1a, 0]].concat()),
        framed(value, &[0]),
    ];
    let records: Vec<Record> = values.iter().map(|value| record(&key, value.clone())).collect();
    broker.produce_records(&scene.raw, &records);
    let more = format!("[registry]\nurl = \"{url}\"");
    let mut daemon = scene.start("format = \"protobuf\"\nkey_format = \"protobuf\"", "", &more);
    scene.wait_consumed(records.len(), &mut daemon);
    daemon.stop();
    let wanted = [
        (1, "broken_frame"),
        (2, "broken_frame"),
        (3, "broken_frame"),
        (4, "unknown_schema"),
        (5, "missing_field"),
        (6, "malformed_protobuf"),
        (7, "duplicate_key"),
        (8, "wrong_type"),
        (9, "malformed_protobuf"),
        (10, "unknown_schema"),
        (11, "wrong_type"),
        (12, "missing_field"),
    ];
    let mut reasons = scene.reasons();
    reasons.sort();
    assert_eq!(reasons, wanted.map(|(at, reason)| (at, reason.to_owned())), "{}", daemon.said());
    assert!(daemon.said().contains("heartRate"), "the field is named: {}", daemon.said());
}

#[test]
fn protobuf_schemas_may_grow_at_run_time() {
    let (Some(broker), Some(registry)) = (TestCluster::shared(), Registry::shared()) else { return };
    let scene = Scene { max_age: "1s", ..Scene::new(broker, SCHEMA) };
    let url = registry.url();
    let subject = unique("grows");
    let first = text("protobuf/wrist-heart-rate.proto")
        .replace("import \"activity.proto\";\n", "enum Activity { UNKNOWN = 0; REST = 1; }\n")
        .replace("message Battery {\n  float level = 1;\n}\n", "")
        .replace("  float battery = 5;\n", "")
        .replace("  // Seconds since 1970, by the phone.\n  double time_received = 2;\n", "");
    let key = scene.register(&url, &unique("key"), "proto", &text("protobuf/observation-key.proto"), &[]);
    let key = framed(key, b"\0\x12\x01u\x1a\x01s");
    let old = scene.register(&url, &subject, "proto", &first, &[]);
    let produce = |id: u32, more: &[u8]| {
        let datum = [&[0][..], &pulse(1.7e9, 60.0, 1), more].concat();
        broker.produce_records(&scene.raw, &[record(&key, framed(id, &datum))]);
    };
    produce(old, &[]);
    let more = format!("[registry]\nurl = \"{url}\"");
    let mut daemon = scene.start("format = \"protobuf\"\nkey_format = \"protobuf\"", "", &more);
    scene.wait_consumed(1, &mut daemon);
    let grown = first.replace("  Activity activity = 4;\n", "  Activity activity = 4;\n  optional string ssid = 6;\n");
    let new = scene.register(&url, &subject, "proto", &grown, &[]);
    assert_ne!(old, new);
    produce(new, b"\x32\x04home");
    produce(old, &[]);
    scene.wait_consumed(3, &mut daemon);
    let metrics = scene.page("metrics").1;
    daemon.stop();
    assert_eq!(scene.letters(), Vec::<Value>::new(), "{}", daemon.said());
    for line in [
        "throng_unknown_cells_total{format=\"protobuf\"} 1",
        "throng_writer_schemas_total{format=\"protobuf\",outcome=\"taken_in_part\"} 2",
        "throng_writer_schemas_total{format=\"protobuf\",outcome=\"taken\"} 1",
    ] {
        assert!(metrics.contains(line), "{line}: {metrics}");
    }
    assert!(!daemon.said().contains("home"), "no value of a record is said");
}

#[test]
fn protobuf_output_field_numbers_stay_with_their_names() {
    let (Some(broker), Some(registry)) = (TestCluster::shared(), Registry::shared()) else { return };
    let url = registry.url();
    let scene = Scene::new(broker, SCHEMA);
    let more = format!("[registry]\nurl = \"{url}\"");
    let subject = format!("{}-value", scene.out);
    let start = |scene: &Scene| {
        let mut daemon = scene.start("", "format = \"protobuf\"", &more);
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
        while !daemon.said().contains("output schema registered") {
            assert!(daemon.ended().is_none() && std::time::Instant::now() < deadline, "{}", daemon.said());
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        daemon.stop();
        client(&["schema", &url, &subject], "")
    };
    let textual = SCHEMA.replace("from = \"key\"\npointer = \"/userId\"", "from = \"key\"").replace(
        "[[attribute]]\nname = \"source\"\nfrom = \"key\"\npointer = \"/sourceId\"\ntype = \"string\"\nrole = \"identifier\"\n",
        "",
    );
    std::fs::write(scene.dir.path().join("schema.toml"), &textual).expect("the schema");
    let before = start(&scene);
    let older = ["time", "pulse", "pulse_text", "activity"].map(|field| number_of(&before, field));
    // Field numbers of any registered schema are kept.
    let renamed = before.replace(&format!("string time = {};", older[0]), "string time = 1;");
    scene.register(&url, &subject, "proto", &renamed, &[]);
    let older = [1, older[1], older[2], older[3]];
    let first = textual.find("[[attribute]]\nname = \"time\"").expect("the time");
    let inserted =
        format!("{}[[attribute]]\nname = \"device\"\ntype = \"string\"\n\n{}", &textual[..first], &textual[first..]);
    std::fs::write(scene.dir.path().join("schema.toml"), inserted).expect("the schema");
    std::fs::remove_dir_all(scene.dir.path().join("state")).expect("the state");
    let after = start(&scene);
    assert_eq!(["time", "pulse", "pulse_text", "activity"].map(|field| number_of(&after, field)), older, "{after}");
    assert!(!older.contains(&number_of(&after, "device")), "{after}");
}

fn number_of(schema: &str, field: &str) -> u32 {
    let (_, behind) = schema.split_once(&format!(" {field} = ")).expect("the field");
    behind.split(';').next().and_then(|number| number.parse().ok()).expect("a number")
}

fn printed(scene: &Scene) -> prost_reflect::MessageDescriptor {
    let said = crate::support::binary::throng()
        .args(["check", "--output-schema", "-c"])
        .arg(scene.config())
        .output()
        .expect("throng");
    std::fs::write(scene.dir.path().join("out.proto"), said.stdout).expect("a schema");
    let files = protox::compile(["out.proto"], [scene.dir.path()]).expect("what is printed compiles");
    let pool = prost_reflect::DescriptorPool::from_file_descriptor_set(files).expect("descriptors");
    pool.all_messages().next().expect("a message")
}

fn plain_lines(scene: &Scene) -> Vec<BTreeMap<String, String>> {
    let message = printed(scene);
    let read = |stored: crate::support::kafka::Stored| {
        let payload = stored.payload.expect("a payload");
        let line = prost_reflect::DynamicMessage::decode(message.clone(), payload.as_slice()).expect("a message");
        assert_eq!(line.unknown_fields().count(), 0, "{payload:?}");
        let text = |value: &prost_reflect::Value| match value.as_str() {
            Some(text) => text.to_owned(),
            None => value.as_i64().expect("a text or a number").to_string(),
        };
        line.fields().map(|(field, value)| (field.name().to_owned(), text(value))).collect()
    };
    scene.broker.read_committed(&scene.out).into_iter().map(read).collect()
}

const WATCHES: &str = r#"
name = "watches"
explode = "/watch/points"
[[attribute]]
name = "user"
type = "string"
role = "subject"
[[attribute]]
name = "pulse"
pointer = "/watch/points/*/bpm"
type = "integer"
[[attribute]]
name = "model"
pointer = "/watch/model"
type = "string"
"#;

fn varint(mut length: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while length > 127 {
        bytes.push(length as u8 | 128);
        length >>= 7;
    }
    bytes.push(length as u8);
    bytes
}

#[test]
fn protobuf_repeated_items_are_records() {
    let Some(broker) = TestCluster::shared() else { return };
    let scene = Scene::new(broker, WATCHES);
    let path = scene.dir.path().join("watch.proto");
    let schema = "syntax = \"proto3\"; message Day { string user = 1; Watch watch = 2; } \
        message Watch { repeated Point points = 1; string model = 2; } message Point { int32 bpm = 1; }";
    std::fs::write(&path, schema).expect("a schema");
    let field = |number: u8, bytes: &[u8]| [&[number << 3 | 2], &varint(bytes.len())[..], bytes].concat();
    let day = |person: usize, points: &[&[u8]]| {
        let points: Vec<u8> = points.iter().flat_map(|point| field(1, point)).collect();
        let watch = [points, field(2, b"M1")].concat();
        record(b"", [field(1, format!("u{person}").as_bytes()), field(2, &watch)].concat())
    };
    let mut records: Vec<Record> = (0..20).map(|person| day(person, &[&[8, 60], &[8, 61]])).collect();
    records.push(day(0, &[&[8, 60], &[8], &[8, 60, 8, 61], &[]]));
    records.push(day(1, &[]));
    records.push(day(2, &vec![&[8_u8, 60][..]; 10_001]));
    broker.produce_records(&scene.raw, &records);
    let source = format!("format = \"protobuf\"\nwriter_schema = \"{}\"\nmessage = \"Day\"", path.display());
    let mut daemon = scene.start(&source, "format = \"protobuf\"", "");
    scene.wait_consumed(records.len(), &mut daemon);
    daemon.stop();
    let wanted = [
        (20, Some(1), "malformed_protobuf"),
        (20, Some(2), "duplicate_key"),
        (21, None, "no_elements"),
        (22, None, "too_many_elements"),
    ];
    let wanted = wanted.map(|(offset, element, reason)| (offset, element, reason.to_owned()));
    assert_eq!(scene.refused_elements(), BTreeSet::from(wanted), "{}", daemon.said());
    let mut pulses: BTreeMap<String, usize> = BTreeMap::new();
    for pulse in plain_lines(&scene).iter().filter_map(|line| line.get("pulse")) {
        *pulses.entry(pulse.clone()).or_default() += 1;
    }
    // The empty point has the default value, and no crowd.
    assert_eq!((pulses.remove("60"), pulses.remove("61")), (Some(21), Some(20)), "{pulses:?}: {}", daemon.said());
    assert!(pulses.is_empty(), "{pulses:?}");
}

#[test]
fn protobuf_without_registry_is_read_and_written_unframed() {
    let Some(broker) = TestCluster::shared() else { return };
    let schema = SCHEMA.replace("from = \"key\"\npointer = \"/userId\"", "pointer = \"/user\"").replace(
        "[[attribute]]\nname = \"source\"\nfrom = \"key\"\npointer = \"/sourceId\"\ntype = \"string\"\nrole = \"identifier\"\n",
        "",
    );
    let scene = Scene::new(broker, &schema);
    let path = scene.dir.path().join("flat.proto");
    let flat = "syntax = \"proto3\"; enum A { REST = 0; WALK = 1; } \
        message Flat { double time = 1; optional float heartRate = 3; A activity = 4; string user = 5; }";
    std::fs::write(&path, flat).expect("a schema");
    let datum = |i: usize| [pulse(1.7e9, 60.0, (i % 2) as u8), vec![0x2a, 1, b'a' + (i % 20) as u8]].concat();
    let records: Vec<Record> = (0..100).map(|i| record(b"", datum(i))).collect();
    broker.produce_records(&scene.raw, &records);
    let source = format!("format = \"protobuf\"\nwriter_schema = \"{}\"", path.display());
    let mut daemon = scene.start(&source, "format = \"protobuf\"", "");
    scene.wait_consumed(100, &mut daemon);
    daemon.stop();
    assert!(scene.letters().is_empty(), "{}", daemon.said());
    let lines: BTreeSet<BTreeMap<String, String>> = plain_lines(&scene).into_iter().collect();
    let line = |activity: &str| {
        let cells = [("time", "2023-11-14T22:00:00Z"), ("pulse", "60"), ("activity", activity)];
        BTreeMap::from(cells.map(|(name, cell)| (name.to_owned(), cell.to_owned())))
    };
    assert_eq!(lines, BTreeSet::from([line("REST"), line("WALK")]), "{}", daemon.said());
}
