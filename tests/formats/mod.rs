//! Tests records of wearable platforms on a real broker with a real registry and an independent client.

mod exploded;
mod json_schema;
mod platforms;
mod protobuf;
mod scene;
use crate::support;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use scene::{K, PEOPLE, SCHEMA, Scene, file, forward, framed, heart_rates};
use serde_json::Value;
use support::kafka::{Record, TestCluster, unique};
use support::ports::free_port;
use support::registry::{Registry, client};
use throng::io::file::{FileFormat, FileSource};
use throng_core::values::canonical::CanonicalKind;
use throng_core::values::raw_batch::{RawBatch, RecordPosition};
use throng_core::values::resolved_cells::ResolvedCells;
use throng_core::values::schema::{AttributeOrigin, Schema};
use throng_formats::{DecodeLimits, FieldPath, JsonCodec, UnknownCellPolicy};

#[test]
fn avro_records_in_registry_frames_are_read_and_written() {
    let (Some(broker), Some(registry)) = (TestCluster::shared(), Registry::shared()) else { return };
    let scene = Scene::new(broker, SCHEMA);
    let records = PEOPLE * 5;
    let url = registry.url();
    let produce = [
        "produce",
        &broker.bootstrap(),
        &url,
        &scene.raw,
        &file("avro/observation-key.avsc"),
        &file("avro/wrist-heart-rate.avsc"),
    ]
    .map(str::to_owned);
    client(&produce.each_ref().map(String::as_str), &heart_rates(5));
    let more = format!("[registry]\nurl = \"{url}\"");
    let avro = "format = \"avro\"";
    let mut daemon = scene.start("format = \"avro\"\nkey_format = \"avro\"", avro, &more);
    scene.wait_consumed(records, &mut daemon);
    daemon.stop();
    assert_eq!(scene.letters(), Vec::<Value>::new(), "{}", daemon.said());
    let lines = scene.released();
    assert!(lines > records * 9 / 10, "{lines} of {records} lines: {}", daemon.said());
    let said = client(&["consume", &broker.bootstrap(), &url, &scene.out, &lines.to_string(), "AVRO"], "");
    let mut classes: BTreeMap<String, usize> = BTreeMap::new();
    let mut pulses = BTreeSet::new();
    for line in said.lines() {
        let value: Value = serde_json::from_str(line).expect("JSON");
        let keys: Vec<&String> = value.as_object().expect("a record").keys().collect();
        assert_eq!(keys, ["time", "pulse", "activity"], "nothing else leaves");
        pulses.insert(value["pulse"].to_string());
        *classes.entry(line.to_owned()).or_default() += 1;
    }
    assert_eq!(said.lines().count(), lines);
    assert!(classes.values().all(|lines| *lines >= K), "{classes:?}");
    assert!(
        pulses.contains("null") && pulses.iter().any(|p| p.parse::<i64>().is_ok()),
        "numbers stay numbers: {pulses:?}"
    );
}

#[test]
fn registry_outage_delays_records_without_loss() {
    let (Some(broker), Some(registry)) = (TestCluster::shared(), Registry::shared()) else { return };
    let scene = Scene::new(broker, SCHEMA);
    let records = PEOPLE * 5;
    let url = registry.url();
    let produce = [
        "produce",
        &broker.bootstrap(),
        &url,
        &scene.raw,
        &file("avro/observation-key.avsc"),
        &file("avro/wrist-heart-rate.avsc"),
    ]
    .map(str::to_owned);
    client(&produce.each_ref().map(String::as_str), &heart_rates(5));
    // A port without a listener until the proxy starts.
    let port = free_port();
    let more = format!("[registry]\nurl = \"http://127.0.0.1:{port}/apis/ccompat/v7\"");
    let mut daemon = scene.start("format = \"avro\"\nkey_format = \"avro\"", "", &more);
    std::thread::sleep(std::time::Duration::from_secs(6));
    assert!(daemon.ended().is_none(), "{}", daemon.said());
    assert_eq!((scene.consumed(), scene.released(), scene.letters().len()), (0, 0, 0), "{}", daemon.said());
    assert!(daemon.said().contains("records wait for the schema registry"), "{}", daemon.said());
    let (status, reasons) = scene.page("readyz");
    assert_eq!(status, 503);
    assert!(reasons.contains("records wait for a schema registry that does not answer"), "{reasons}");
    assert!(scene.page("metrics").1.contains("throng_registry_waited_for 1"));
    let target: std::net::SocketAddr =
        url["http://".len()..].split('/').next().expect("host").parse().expect("an address");
    forward(port, target);
    scene.wait_consumed(records, &mut daemon);
    assert_eq!(scene.page("readyz"), (200, "ready\n".to_owned()));
    let metrics = scene.page("metrics").1;
    assert!(metrics.contains("throng_registry_waited_for 0") && !metrics.contains("throng_registry_losses_total 0"));
    daemon.stop();
    assert!(scene.released() > records * 9 / 10 && scene.letters().is_empty(), "{}", daemon.said());
}

#[test]
fn registry_unknown_schema_ids_become_dead_letters() {
    let (Some(broker), Some(registry)) = (TestCluster::shared(), Registry::shared()) else { return };
    let scene = Scene { max_age: "2s", ..Scene::new(broker, SCHEMA) };
    let url = registry.url();
    let noise = |from: u32, frames: u32| {
        let frame = |id: u32| Record {
            partition: Some(0),
            key: Some(framed(id, b"")),
            payload: Some(framed(id, b"")),
            ..Record::default()
        };
        broker.produce_records(&scene.raw, &(from..from + frames).map(frame).collect::<Vec<_>>());
    };
    noise(1_000_000, 8);
    scene.produce(&url, "avro/observation-key.avsc", "avro/wrist-heart-rate.avsc", 5);
    noise(1_500_000, 1_000);
    scene.produce(&url, "avro/observation-key.avsc", "avro/wrist-heart-rate.avsc", 5);
    let records = 2 * PEOPLE * 5 + 1_008;
    let more = format!("[registry]\nurl = \"{url}\"");
    let mut daemon = scene.start("format = \"avro\"\nkey_format = \"avro\"", "", &more);
    scene.wait_consumed(records, &mut daemon);
    let metrics = scene.page("metrics").1;
    daemon.stop();
    let reasons = scene.reasons();
    assert_eq!(reasons.len(), 1_008, "{}", daemon.said());
    assert!(reasons.iter().all(|(_, reason)| reason == "unknown_schema"), "{reasons:?}");
    assert!(scene.released() > PEOPLE * 9, "both halves of the honest records leave: {}", daemon.said());
    let counted = |outcome: &str| -> usize {
        let series = format!("throng_writer_schemas_total{{format=\"avro\",outcome=\"{outcome}\"}} ");
        metrics.lines().find_map(|line| line.strip_prefix(&series)?.parse().ok()).expect("a series")
    };
    assert_eq!(counted("unknown") + counted("not_asked"), 1_008, "each number is asked for once at most");
    assert_eq!(counted("taken") + counted("taken_in_part"), 2);
}

#[test]
fn registry_broken_frames_become_dead_letters_with_a_reason() {
    let (Some(broker), Some(registry)) = (TestCluster::shared(), Registry::shared()) else { return };
    // Too few subjects to close a batch in another way.
    let scene = Scene { max_age: "1s", ..Scene::new(broker, SCHEMA) };
    let url = registry.url();
    let number = |subject: &str, schema: &str| scene.register(&url, subject, "avsc", schema, &[]);
    let key = number(&unique("key"), &std::fs::read_to_string(file("avro/observation-key.avsc")).expect("the schema"));
    let value_schema = std::fs::read_to_string(file("avro/wrist-heart-rate.avsc")).expect("the schema");
    let value = number(&unique("value"), &value_schema);
    let mut without: Value = serde_json::from_str(&value_schema).expect("JSON");
    without["fields"].as_array_mut().expect("fields").retain(|field| field["name"] != "heartRate");
    let removed = number(&unique("removed"), &without.to_string());
    let good_key = framed(key, b"\x00\x02u\x02s");
    let datum = [&1.7e9_f64.to_le_bytes()[..], &1.7e9_f64.to_le_bytes(), &[0, 0], &0.5_f32.to_le_bytes()].concat();
    let record = |key: Vec<u8>, payload: Vec<u8>| Record {
        partition: Some(0),
        key: Some(key),
        payload: Some(payload),
        ..Record::default()
    };
    broker.produce_records(
        &scene.raw,
        &[
            record(good_key.clone(), framed(value, &datum)),
            record(good_key.clone(), b"{\"time\": 1}".to_vec()),
            record(good_key.clone(), Vec::new()),
            record(good_key.clone(), framed(1_999_999, &datum)),
            record(good_key.clone(), framed(removed, &datum)),
            record(good_key.clone(), framed(value, &datum[..9])),
            record(good_key.clone(), framed(value, &[&datum[..], &[0]].concat())),
            record(b"user-1".to_vec(), framed(value, &datum)),
        ],
    );
    let more = format!("[registry]\nurl = \"{url}\"");
    let mut daemon = scene.start("format = \"avro\"\nkey_format = \"avro\"", "", &more);
    scene.wait_consumed(8, &mut daemon);
    daemon.stop();
    let letters = scene.reasons();
    let wanted = [
        (1, "broken_frame"),
        (2, "broken_frame"),
        (3, "unknown_schema"),
        (4, "missing_field"),
        (5, "malformed_avro"),
        (6, "malformed_avro"),
        (7, "broken_frame"),
    ];
    assert_eq!(letters, wanted.map(|(at, reason)| (at, reason.to_owned())), "{}", daemon.said());
    assert!(daemon.said().contains("heartRate"), "the field is named: {}", daemon.said());
}

#[test]
fn record_metadata_can_be_attributes() {
    let Some(broker) = TestCluster::shared() else { return };
    let schema = r#"
name = "visits"
[[attribute]]
name = "person"
from = "key"
type = "string"
role = "subject"
[[attribute]]
name = "clinic"
from = "header:clinic"
type = "string"
[[attribute]]
name = "at"
from = "timestamp"
type = "timestamp"
role = "time"
round = "day"
[[attribute]]
name = "stream"
from = "topic"
type = "string"
[[attribute]]
name = "ward"
type = "string"
"#;
    let scene = Scene::new(broker, schema);
    let records: Vec<Record> = (0..40)
        .map(|i| Record {
            partition: Some(0),
            key: Some(format!("person {}", i % 20).into_bytes()),
            payload: Some(format!("{{\"ward\": \"{}\"}}", i % 2).into_bytes()),
            headers: vec![("trace".to_owned(), None), ("clinic".to_owned(), Some(b"north".to_vec()))],
            timestamp: Some(1_700_000_000_000 + i),
        })
        .chain([Record {
            partition: Some(0),
            key: Some(b"person 1".to_vec()),
            payload: Some(b"{\"ward\": \"1\"}".to_vec()),
            headers: vec![("clinic".to_owned(), None), ("clinic".to_owned(), Some(b"south".to_vec()))],
            timestamp: None,
        }])
        .collect();
    broker.produce_records(&scene.raw, &records);
    let mut daemon = scene.start("", "", "");
    scene.wait_consumed(41, &mut daemon);
    daemon.stop();
    let letters = scene.letters();
    assert_eq!((letters.len(), letters[0]["reason"].as_str()), (1, Some("duplicate_key")));
    let lines: BTreeSet<String> = broker
        .read_committed(&scene.out)
        .into_iter()
        .map(|stored| String::from_utf8(stored.payload.expect("a payload")).expect("text"))
        .collect();
    let line = |ward: u8| {
        format!(r#"{{"clinic":"north","at":"2023-11-14T00:00:00Z","stream":"{}","ward":"{ward}"}}"#, scene.raw)
    };
    assert_eq!(lines, BTreeSet::from([line(0), line(1)]), "{}", daemon.said());
}

fn cells_of(schema: &str, sample: &str) -> Vec<(String, String)> {
    cells(schema, &std::fs::read_to_string(file(sample)).expect("the sample"))
}

fn records_of(schema: &str, sample: &str) -> Vec<Vec<(String, String)>> {
    records(schema, &std::fs::read_to_string(file(sample)).expect("the sample"))
}

fn cells(schema: &str, text: &str) -> Vec<(String, String)> {
    let mut records = records(schema, text);
    assert_eq!(records.len(), 1);
    records.remove(0)
}

fn records(schema: &str, text: &str) -> Vec<Vec<(String, String)>> {
    let schema = Schema::load(Path::new(&file(schema))).expect("a sound schema");
    let fields: Vec<FieldPath> = schema.attributes.iter().map(|a| FieldPath::for_attribute_path(a)).collect();
    let mut batch = RawBatch::new(fields.len());
    let at = RecordPosition { topic: 0, partition: 0, offset: 0, element: 0 };
    JsonCodec::new(&fields, DecodeLimits::default()).decode(text.as_bytes(), at, &mut batch).expect("a record");
    canonical_records(&schema, &batch)
}

fn canonical_records(schema: &Schema, batch: &RawBatch) -> Vec<Vec<(String, String)>> {
    let resolved = ResolvedCells::from_raw_batch(batch, &schema.attributes);
    let cell = |row: usize, (i, attribute): (usize, &std::sync::Arc<throng_core::values::schema::Attribute>)| {
        let mut text = String::new();
        let (cells, column) = resolved.as_ref().and_then(|resolved| resolved.column(i)).unwrap_or((batch, i));
        match attribute.typing.canonical(cells.token(row, column), &mut text).expect("of its type") {
            CanonicalKind::Value => Some((attribute.name.clone(), text)),
            // A document has a value and no key.
            _ if attribute.optional || attribute.from != AttributeOrigin::Value => None,
            CanonicalKind::Absent | CanonicalKind::Null => panic!("{} is missing", attribute.name),
        }
    };
    let record = |row| schema.attributes.iter().enumerate().filter_map(|attribute| cell(row, attribute)).collect();
    (0..batch.rows()).map(record).collect()
}

#[test]
fn shipped_samples_match_their_schemas() {
    let of = |cells: &[(String, String)], name: &str| {
        cells.iter().find(|(attribute, _)| attribute == name).map(|(_, text)| text.clone()).expect("an attribute")
    };
    let omh = cells_of("open-mhealth-heart-rate.toml", "samples/open-mhealth-heart-rate.json");
    assert_eq!((of(&omh, "pulse").as_str(), of(&omh, "relation").as_str()), ("60", "\"at rest\""));
    let fhir = cells_of("fhir-observation.toml", "samples/fhir-observation.json");
    assert_eq!((of(&fhir, "temperature").as_str(), of(&fhir, "patient").as_str()), ("37", "\"Patient/4711\""));
    assert_eq!(of(&fhir, "time"), "\"2026-03-02T06:00:00Z\"");
    let series = &records_of("heart-rate-series.toml", "samples/heart-rate-series.json");
    let points: Vec<(String, String)> = series.iter().map(|point| (of(point, "time"), of(point, "pulse"))).collect();
    let wanted = [("25", "60"), ("25", "60"), ("27", "95")];
    assert_eq!(points, wanted.map(|(at, pulse)| (format!("\"2026-03-02T06:{at}:00Z\""), pulse.to_owned())));
    let responses = std::fs::read_to_string(file("samples/google-health-heart-rate.ndjson")).expect("the samples");
    let points = &records("google-health-heart-rate.toml", responses.lines().next().expect("a response"));
    let wanted = ("\"2026-03-03T19:20:00Z\"", "79");
    assert_eq!((of(&points[2], "time").as_str(), of(&points[2], "heart_rate").as_str()), wanted);
}

#[test]
fn apple_health_export_matches_its_schemas() {
    let dir = tempfile::tempdir().expect("a directory");
    let export = dir.path().join("ana.xml");
    std::fs::copy(file("samples/apple-health-export.xml"), &export).expect("the sample");
    let read = |name: &str, signal: &str| -> Vec<(String, String, String)> {
        let schema = Schema::load(Path::new(&file(name))).expect("a sound schema");
        let fields: Vec<FieldPath> = schema.attributes.iter().map(|a| FieldPath::for_attribute_path(a)).collect();
        let limits = DecodeLimits::default();
        let source = FileSource::open(&export, FileFormat::AppleHealth, &fields, limits, UnknownCellPolicy::Drop);
        let mut source = source.and_then(|source| source.selecting(&schema.attributes)).expect("an export");
        let (mut batch, mut rejected) = (RawBatch::new(fields.len()), Vec::new());
        let outcome = source.read(&mut batch, 100, u64::MAX, &mut rejected).expect("records");
        assert_eq!((outcome.records, outcome.end, rejected.len()), (3, true, 0));
        let of = |cells: &[(String, String)], name: &str| {
            cells.iter().find(|(attribute, _)| attribute == name).map(|(_, text)| text.clone()).expect("an attribute")
        };
        let records = canonical_records(&schema, &batch);
        records.iter().map(|cells| (of(cells, "person"), of(cells, "time"), of(cells, signal))).collect()
    };
    let ana = |time: &str, value: &str| ("\"ana\"".to_owned(), format!("\"{time}\""), value.to_owned());
    let rates = [ana("2026-03-02T06:00:00Z", "60"), ana("2026-03-03T04:00:00Z", "130")];
    assert_eq!(read("apple-health-heart-rate.toml", "pulse"), rates);
    assert_eq!(read("apple-health-steps.toml", "steps"), [ana("2026-03-02T06:00:00Z", "140")]);
}
