//! Records as wearable platforms keep them: the person in the key, Avro in the frames of a schema registry, on a real broker
//! with a real registry, written and read by a client that is not ours.

mod exploded;
#[path = "../support/mod.rs"]
mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use support::daemon::Daemon;
use support::kafka::{Broker, Record, unique};
use support::registry::{Registry, client};
use throng::codec::{Field, JsonCodec, Limits};
use throng::records::canonical::Canonical;
use throng::records::raw::{Coordinate, RawBatch};
use throng::records::schema::Schema;

const K: usize = 5;
const PEOPLE: usize = 40;

/// Heart rates in the shape of RADAR-base: the person in the key, times and a measurement in the value.
const SCHEMA: &str = include_str!("../../schemas/radar-heart-rate.toml");

/// A folder, topics and a configuration of a daemon on the shared broker.
struct Scene {
    broker: &'static Broker,
    dir: tempfile::TempDir,
    raw: String,
    out: String,
    letters: String,
    group: String,
    /// `batch.max_age`.
    max_age: &'static str,
}

fn file(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas").join(name).display().to_string()
}

impl Scene {
    fn new(broker: &'static Broker, schema: &str) -> Self {
        let scene = Self {
            broker,
            dir: tempfile::tempdir().expect("a temporary directory"),
            raw: unique("raw"),
            out: unique("out"),
            letters: unique("letters"),
            group: unique("group"),
            max_age: "5m",
        };
        broker.create_topic(&scene.raw, 1, false);
        broker.create_topic_with(&scene.out, 2, &[("retention.ms", "-1")]);
        broker.create_topic(&scene.letters, 1, false);
        broker.create_topic(&format!("{}.commits", scene.group), 1, true);
        std::fs::write(scene.dir.path().join("schema.toml"), schema).expect("the schema");
        std::fs::write(scene.dir.path().join("key"), "a secret of the tests, long enough").expect("the secret");
        scene
    }

    /// Starts a daemon; `source`, `sink` and `more` are lines of its configuration.
    fn start(&self, source: &str, sink: &str, more: &str) -> Daemon {
        let Self { raw, out, letters, group, max_age, .. } = self;
        let place = self.dir.path().display();
        let text = format!(
            r#"
[source]
brokers = "{brokers}"
topics = ["{raw}"]
group = "{group}"
{source}
[source.librdkafka]
"fetch.wait.max.ms" = "50"
[sink]
topic = "{out}"
dead_letter_topic = "{letters}"
commits_topic = "{group}.commits"
{sink}
[schema]
file = "{place}/schema.toml"
[batch]
max_records = 1000
max_wait = "200ms"
max_age = "{max_age}"
[privacy]
k = {K}
max_delay = "0s"
max_lines_per_subject = 0
[plan]
interval = "1h"
[state]
path = "{place}/state"
secret_file = "{place}/key"
[telemetry]
listen = "127.0.0.1:0"
{more}
"#,
            brokers = self.broker.bootstrap(),
        );
        let config = self.config();
        std::fs::write(&config, text).expect("the configuration");
        Daemon::start(&config, &[], None)
    }

    fn config(&self) -> PathBuf {
        self.dir.path().join("throng.toml")
    }

    fn consumed(&self) -> i64 {
        self.broker.group_offsets_now(&self.group, &self.raw).values().map(|at| at.unwrap_or(0)).sum()
    }

    fn wait_consumed(&self, records: usize, daemon: &mut Daemon) {
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(90);
        while self.consumed() < records as i64 {
            assert!(daemon.ended().is_none(), "it ended early: {}", daemon.said());
            assert!(std::time::Instant::now() < deadline, "{} of {records}: {}", self.consumed(), daemon.said());
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
    }

    fn letters(&self) -> Vec<Value> {
        let letters = self.broker.read_committed(&self.letters);
        letters
            .iter()
            .map(|l| serde_json::from_slice(l.payload.as_deref().expect("a payload")).expect("JSON"))
            .collect()
    }

    fn released(&self) -> usize {
        self.broker.read_committed(&self.out).len()
    }
}

/// Heart rates of [`PEOPLE`] people, `each` a person, as the client takes them.
fn heart_rates(each: usize) -> String {
    let mut lines = String::new();
    for i in 0..PEOPLE * each {
        let person = i % PEOPLE;
        let activity = ["REST", "WALK"][person % 2];
        let rate = if i % 17 == 0 { Value::Null } else { json!(60 + person % 4 * 5) };
        let record = json!({
            "key": {"projectId": "p", "userId": format!("user-{person}"), "sourceId": format!("band-{person}")},
            "value": {
                "time": 1_700_000_000.25 + i as f64,
                "timeReceived": 1_700_000_001.5 + i as f64,
                "heartRate": rate,
                "activity": activity,
                "battery": 0.5,
            },
        });
        writeln!(lines, "{record}").expect("text");
    }
    lines
}

#[test]
fn avro_in_the_frames_of_a_registry_comes_and_leaves() {
    let (Some(broker), Some(registry)) = (Broker::shared(), Registry::shared()) else { return };
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
    let said = client(&["consume", &broker.bootstrap(), &url, &scene.out, &lines.to_string()], "");
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
fn a_registry_that_does_not_answer_holds_records_up_and_loses_none() {
    let (Some(broker), Some(registry)) = (Broker::shared(), Registry::shared()) else { return };
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
    // A port at which nobody listens, until the proxy does.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("its address").port();
    drop(listener);
    let more = format!("[registry]\nurl = \"http://127.0.0.1:{port}/apis/ccompat/v7\"\ntimeout = \"1s\"");
    let mut daemon = scene.start("format = \"avro\"\nkey_format = \"avro\"", "", &more);
    std::thread::sleep(std::time::Duration::from_secs(6));
    assert!(daemon.ended().is_none(), "{}", daemon.said());
    assert_eq!((scene.consumed(), scene.released(), scene.letters().len()), (0, 0, 0), "{}", daemon.said());
    assert!(daemon.said().contains("records wait for the schema registry"), "{}", daemon.said());
    let target: std::net::SocketAddr =
        url["http://".len()..].split('/').next().expect("host").parse().expect("an address");
    forward(port, target);
    scene.wait_consumed(records, &mut daemon);
    daemon.stop();
    assert!(scene.released() > records * 9 / 10 && scene.letters().is_empty(), "{}", daemon.said());
}

/// Hands every connection to `port` on to `target`.
fn forward(port: u16, target: std::net::SocketAddr) {
    let listener = std::net::TcpListener::bind(("127.0.0.1", port)).expect("the port is still free");
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let Ok(server) = std::net::TcpStream::connect(target) else { continue };
            let (mut up, mut down) = (client.try_clone().expect("a socket"), server.try_clone().expect("a socket"));
            let (mut client, mut server) = (client, server);
            std::thread::spawn(move || {
                if std::io::copy(&mut up, &mut server).is_err() {
                    // The other side has gone.
                }
            });
            std::thread::spawn(move || {
                if std::io::copy(&mut down, &mut client).is_err() {
                    // The other side has gone.
                }
            });
        }
    });
}

#[test]
fn broken_frames_and_unknown_schemas_are_dead_letters_with_their_reason() {
    let (Some(broker), Some(registry)) = (Broker::shared(), Registry::shared()) else { return };
    // Too few people for any other end of a batch.
    let scene = Scene { max_age: "1s", ..Scene::new(broker, SCHEMA) };
    let url = registry.url();
    let number = |subject: &str, schema: &str| -> u32 {
        let path = scene.dir.path().join(format!("{subject}.avsc"));
        std::fs::write(&path, schema).expect("a schema");
        client(&["register", &url, subject, &path.display().to_string()], "").trim().parse().expect("a number")
    };
    let key = number(&unique("key"), &std::fs::read_to_string(file("avro/observation-key.avsc")).expect("the schema"));
    let value_schema = std::fs::read_to_string(file("avro/wrist-heart-rate.avsc")).expect("the schema");
    let value = number(&unique("value"), &value_schema);
    let mut without: Value = serde_json::from_str(&value_schema).expect("JSON");
    without["fields"].as_array_mut().expect("fields").retain(|field| field["name"] != "heartRate");
    let removed = number(&unique("removed"), &without.to_string());
    let framed = |id: u32, datum: &[u8]| [&[0][..], &id.to_be_bytes(), datum].concat();
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
    let letters: Vec<(i64, String)> = scene
        .letters()
        .iter()
        .map(|l| (l["offset"].as_i64().expect("an offset"), l["reason"].as_str().expect("a reason").to_owned()))
        .collect();
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
fn keys_headers_timestamps_and_topics_are_attributes() {
    let Some(broker) = Broker::shared() else { return };
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

/// The cells of a shipped sample of one record, by attribute, as they are counted.
fn cells_of(schema: &str, sample: &str) -> Vec<(String, String)> {
    let mut records = records_of(schema, sample);
    assert_eq!(records.len(), 1);
    records.remove(0)
}

/// The same of each of its records.
fn records_of(schema: &str, sample: &str) -> Vec<Vec<(String, String)>> {
    let schema = Schema::load(Path::new(&file(schema))).expect("a sound schema");
    let fields: Vec<Field> = schema.attributes.iter().map(|a| Field::of(a)).collect();
    let mut batch = RawBatch::new(fields.len());
    let text = std::fs::read_to_string(file(sample)).expect("the sample");
    let at = Coordinate { topic: 0, partition: 0, offset: 0, element: 0 };
    JsonCodec::new(&fields, Limits::default()).decode(text.as_bytes(), at, &mut batch).expect("a record");
    let cell = |row: usize, (i, attribute): (usize, &std::sync::Arc<throng::records::schema::Attribute>)| {
        let mut text = String::new();
        let read = attribute.typing.canonical(batch.token(row, i), &mut text).expect("of its type");
        assert_eq!(read, Canonical::Value, "{}", attribute.name);
        (attribute.name.clone(), text)
    };
    let record = |row| schema.attributes.iter().enumerate().map(|attribute| cell(row, attribute)).collect();
    (0..batch.rows()).map(record).collect()
}

#[test]
fn shipped_samples_are_what_their_schemas_say() {
    let of = |cells: &[(String, String)], name: &str| {
        cells.iter().find(|(attribute, _)| attribute == name).map(|(_, text)| text.clone()).expect("an attribute")
    };
    let omh = cells_of("open-mhealth-heart-rate.toml", "samples/open-mhealth-heart-rate.json");
    assert_eq!((of(&omh, "pulse").as_str(), of(&omh, "relation").as_str()), ("60", "\"at rest\""));
    let fhir = cells_of("fhir-observation.toml", "samples/fhir-observation.json");
    assert_eq!((of(&fhir, "temperature").as_str(), of(&fhir, "patient").as_str()), ("37", "\"Patient/4711\""));
    assert_eq!(of(&fhir, "time"), "\"2026-03-02T06:00:00Z\"");
    let series = &records_of("heart-rate-series.toml", "samples/heart-rate-series.json");
    let points: Vec<(String, String)> = series.iter().map(|point| (of(point, "offset"), of(point, "pulse"))).collect();
    assert_eq!(points, [("0", "60"), ("0", "60"), ("0", "95")].map(|(at, pulse)| (at.to_owned(), pulse.to_owned())));
    assert_eq!(of(&series[2], "start"), "\"2026-03-02T06:00:00Z\"");
}
