//! Tests audit records of `sink.audit_topic` on a real broker, and of `sink.audit_file`.
#![cfg(feature = "failpoints")]

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use support::crash_points::{self, kill_at};
use support::daemon::{self, Dice, Stage, TestDaemon, finish, payload, records, scratch};
use support::kafka::{Stored, TestCluster, unique};

use crate::support;

const BATCH: usize = 40;

fn stage(broker: &TestCluster, hold: usize) -> (Stage<'_>, String) {
    let stage = Stage::new(broker, 1).with_static_membership();
    let audit = unique("audit");
    broker.create_topic(&audit, 1, true);
    configure(&stage, &audit, hold);
    (stage, audit)
}

fn configure(stage: &Stage, audit: &str, hold: usize) {
    let config = stage.configure("only", hold, BATCH, "1h");
    let text = std::fs::read_to_string(&config).expect("the configuration");
    let text = text
        .replace("[sink]\n", &format!("[sink]\naudit_topic = \"{audit}\"\n"))
        .replace("max_lines_per_subject = 0", "max_lines_per_subject = 1");
    std::fs::write(&config, text).expect("the configuration");
}

fn parsed(stored: &Stored) -> Value {
    serde_json::from_slice(stored.payload.as_deref().expect("a payload")).expect("JSON")
}

fn sum(counts: &Value) -> u64 {
    match counts {
        Value::Object(reasons) => reasons.values().filter_map(Value::as_u64).sum(),
        count => count.as_u64().expect("a count"),
    }
}

fn schema() -> jsonschema::JSONSchema {
    let schema = include_str!("../schemas/audit-record.schema.json");
    let schema = serde_json::from_str(schema).expect("JSON");
    jsonschema::JSONSchema::compile(&schema).expect("a schema")
}

/// Returns the committed audit records in order, checked against the published schema.
fn audited(stage: &Stage, audit: &str) -> Vec<Value> {
    let schema = schema();
    let mut found = Vec::new();
    for (stored, number) in stage.broker.read_committed(audit).iter().zip(1_u64..) {
        let record = parsed(stored);
        assert!(schema.is_valid(&record), "{record:#}");
        assert_eq!(record["sequence"], number, "one record a batch");
        let key = format!("{}/{number:020}", record["instance"].as_str().expect("a text"));
        assert_eq!((stored.key.as_deref(), stored.partition), (Some(key.as_bytes()), 0));
        assert_eq!(stored.timestamp, record["clock_ms"].as_i64());
        found.push(record);
    }
    found
}

fn capped(record: &Value, classes: BTreeMap<&str, u64>) -> u64 {
    let required = record["required_crowd"].as_u64().expect("a count");
    classes.into_values().min().unwrap_or(0).min(required)
}

/// The position of a line is its rank in its batch.
fn recount(stage: &Stage, records: &[Value]) {
    let released = stage.released();
    let mut next: BTreeMap<i32, usize> = BTreeMap::new();
    for record in records {
        let mut rank = 0;
        for group in record["groups"].as_array().expect("groups") {
            let mut classes: BTreeMap<&str, u64> = BTreeMap::new();
            for _ in 0..group["lines"].as_u64().expect("a count") {
                let at = next.entry(rank % 2).or_default();
                let line = released[&(rank % 2)][*at].as_str();
                assert_eq!(line.contains("\"lot\""), group["name"] == "trace", "{line} in {group}");
                *classes.entry(line).or_default() += 1;
                *at += 1;
                rank += 1;
            }
            assert_eq!(group["smallest_crowd"], capped(record, classes), "batch {}: {group}", record["sequence"]);
        }
    }
    for (partition, lines) in &released {
        assert_eq!(next.get(partition), Some(&lines.len()), "every line of partition {partition} is in a record");
    }
}

fn comparable(mut record: Value) -> Value {
    for field in ["instance", "group", "clock_ms"] {
        record.as_object_mut().expect("a record").remove(field);
    }
    record["offsets"].as_array_mut().expect("ranges").iter_mut().for_each(|range| range["topic"] = Value::Null);
    record
}

#[test]
fn committed_batch_has_one_audit_record_that_matches_the_output() {
    let Some(broker) = TestCluster::shared() else { return };
    let (stage, audit) = stage(broker, 2);
    let total = 8 * BATCH;
    broker.produce_records(&stage.raw, &records(52, 0, total, 1));
    let seen = finish(&stage, total);
    let records = audited(&stage, &audit);
    recount(&stage, &records);
    let (mut held, mut consumed, mut dead) = (0, 0, 0);
    for record in &records {
        let of = |outcome: &str| sum(&record["records"][outcome]);
        let settled: u64 = ["released", "suppressed", "dead_lettered", "dropped"].into_iter().map(of).sum();
        assert_eq!(held + of("consumed"), settled + of("held"), "records are conserved: {record}");
        for range in record["offsets"].as_array().expect("ranges") {
            assert_eq!((range["topic"].as_str(), range["from"].as_u64()), (Some(stage.raw.as_str()), Some(consumed)));
            assert_eq!(range["to"].as_u64(), Some(consumed + of("consumed")));
        }
        held = of("held");
        consumed += of("consumed");
        dead += of("dead_lettered");
    }
    assert_eq!((held, consumed, dead), (0, total as u64, seen.dead_letters.len() as u64));
}

#[test]
fn kill_at_any_point_keeps_audit_records_unchanged() {
    let Some(broker) = TestCluster::shared() else { return };
    let total = 45 * BATCH;
    let (calm, calm_audit) = stage(broker, 0);
    broker.produce_records(&calm.raw, &records(53, 0, total, 1));
    finish(&calm, total);
    let (stage, audit) = stage(broker, 0);
    broker.produce_records(&stage.raw, &records(53, 0, total, 1));
    let mut dice = Dice::new(53);
    for point in crash_points::TOPIC.into_iter().chain([crash_points::EPOCH_TAKEN]) {
        let crash = kill_at(point, &mut dice);
        stage.start("only", Some(&crash)).crashes(&crash);
    }
    assert!(stage.consumed() < total as i64, "the last crash came after the end of the stream");
    finish(&stage, total);
    let committed = audited(&stage, &audit);
    recount(&stage, &committed);
    let plain = |records: Vec<Value>| records.into_iter().map(comparable).collect::<Vec<_>>();
    assert_eq!(plain(committed), plain(audited(&calm, &calm_audit)));
    let bytes: Vec<_> = broker.read_committed(&audit).into_iter().map(|stored| stored.payload).collect();
    let all = broker.read_uncommitted(&audit);
    assert!(all.len() > bytes.len(), "no attempt was aborted");
    for attempt in &all {
        let sequence = parsed(attempt)["sequence"].as_u64().expect("a number") as usize;
        assert_eq!(attempt.payload, bytes[sequence - 1], "an aborted attempt and its retry differ");
    }
}

#[test]
fn file_run_writes_one_audit_record_per_batch() {
    let dir = scratch();
    let mut dice = Dice::new(57);
    let payloads = (0..5 * BATCH + 7).filter_map(|n| payload(n, &mut dice));
    let input: Vec<u8> = payloads.flat_map(|line| [line, b"\n".to_vec()].concat()).collect();
    std::fs::write(dir.path().join("in.ndjson"), input).expect("the input");
    let ends = "[source]\nkind = \"file\"\npath = \"@/in.ndjson\"\n[sink]\nkind = \"file\"\npath = \"@/out.ndjson\"\n\
                audit_file = \"@/out.audit\"\n";
    let place = dir.path().to_string_lossy().into_owned();
    let config = daemon::configure(dir.path(), "only", &ends.replace('@', &place), 0, BATCH, "1h");
    let text = std::fs::read_to_string(&config).expect("the configuration");
    let text = text.replace("max_lines_per_subject = 0", "max_lines_per_subject = 1");
    std::fs::write(&config, text).expect("the configuration");
    let mut daemon = TestDaemon::start(&config, &[], None);
    assert!(daemon.wait().success(), "{}", daemon.said());
    let read = |name: &str| std::fs::read_to_string(dir.path().join(name)).expect("a file");
    let (audit, schema) = (read("out.audit"), schema());
    let outputs = [read("out.trace.ndjson"), read("out.visit.ndjson")];
    let mut lines = outputs.each_ref().map(|text| text.lines());
    let mut batches = 0;
    for (line, number) in audit.lines().zip(1_u64..) {
        let record: Value = serde_json::from_str(line).expect("JSON");
        assert!(schema.is_valid(&record) && record["sequence"] == number, "{record:#}");
        for (group, lines) in record["groups"].as_array().expect("groups").iter().zip(&mut lines) {
            let mut classes: BTreeMap<&str, u64> = BTreeMap::new();
            for _ in 0..group["lines"].as_u64().expect("a count") {
                *classes.entry(lines.next().expect("a line")).or_default() += 1;
            }
            assert_eq!(group["smallest_crowd"], capped(&record, classes), "batch {number}: {group}");
        }
        batches = number;
    }
    assert!(batches >= 5, "{batches} batches");
    assert!(lines.into_iter().all(|mut rest| rest.next().is_none()), "every line is in a record");
}

#[test]
fn threat_31_audit_record_contains_no_data_values() {
    let Some(broker) = TestCluster::shared() else { return };
    let (stage, audit) = stage(broker, 2);
    let total = 4 * BATCH;
    broker.produce_records(&stage.raw, &records(55, 0, total, 1));
    finish(&stage, total);
    fn texts(value: &Value, into: &mut BTreeSet<String>) {
        match value {
            Value::String(text) => drop(into.insert(text.clone())),
            Value::Array(items) => items.iter().for_each(|item| texts(item, into)),
            Value::Object(map) => map.iter().for_each(|(key, item)| {
                into.insert(key.clone());
                texts(item, into);
            }),
            _ => {}
        }
    }
    const WORDS: &str = "format throng policy group instance sequence clock_ms offsets topic partition from to records consumed released \
        suppressed held dead_lettered dropped required_crowd groups name trace visit lines smallest_crowd mean_loss verification passed \
        no_support guard held_out shutdown thinned malformed_json represented people people_seen series_records \
        series_represented fragment_records fragment_represented unreadable_records";
    let mut known: BTreeSet<&str> = WORDS.split_whitespace().chain([env!("CARGO_PKG_VERSION")]).collect();
    known.extend([stage.raw.as_str(), stage.group.as_str()]);
    let mut found = BTreeSet::new();
    audited(&stage, &audit).iter().for_each(|record| texts(record, &mut found));
    for text in &found {
        let digest = text.len() >= 36 && text.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-');
        assert!(digest || known.contains(text.as_str()), "{text:?} is no word of an audit record");
    }
    assert!(found.contains("smallest_crowd"));
}

#[test]
fn missing_audit_topic_is_named_at_startup() {
    let Some(broker) = TestCluster::shared() else { return };
    let (stage, _) = stage(broker, 0);
    configure(&stage, "no-such-topic", 0);
    let mut daemon = stage.start("only", None);
    assert_eq!(daemon.wait().code(), Some(2), "{}", daemon.said());
    assert!(daemon.said().contains("no-such-topic"), "{}", daemon.said());
}
