use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::*;

const FLAT_SCHEMA: &str = include_str!("../../../schemas/wearable.toml");

fn lines(settings: WearableSettings, records: usize) -> Vec<String> {
    let mut stream = WearableStream::new(settings).expect("settings in range");
    let mut out = Vec::new();
    (0..records)
        .map(|_| {
            out.clear();
            stream.append(&mut out);
            String::from_utf8(out.clone()).expect("ASCII")
        })
        .collect()
}

fn parsed(settings: WearableSettings, records: usize) -> Vec<Map<String, Value>> {
    let object = |line: &String| serde_json::from_str(line).expect("a JSON object");
    lines(settings, records).iter().map(object).collect()
}

fn seeded(seed: u64) -> WearableSettings {
    WearableSettings { seed, ..WearableSettings::default() }
}

fn number(record: &Map<String, Value>, name: &str) -> Option<f64> {
    record.get(name).and_then(Value::as_f64)
}

/// Mean over the records that `keep` selects, and the number of values.
fn mean(records: &[Map<String, Value>], name: &str, keep: impl Fn(&Map<String, Value>) -> bool) -> (f64, f64) {
    let values: Vec<f64> = records.iter().filter(|r| keep(r)).filter_map(|r| number(r, name)).collect();
    (values.iter().sum::<f64>() / values.len() as f64, values.len() as f64)
}

fn is(name: &'static str, value: &'static str) -> impl Fn(&Map<String, Value>) -> bool {
    move |record| record.get(name).and_then(Value::as_str) == Some(value)
}

#[test]
fn wearable_seed_determines_every_byte() {
    let digest = |seed| {
        let mut hash = Sha256::new();
        for line in lines(seeded(seed), 5_000) {
            hash.update(line.as_bytes());
            hash.update(b"\n");
        }
        hash.finalize().iter().take(8).fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
    };
    assert_eq!(digest(1), digest(1));
    assert_ne!(digest(1), digest(2));
    // Update only for an intended change of the generator.
    assert_eq!(digest(1), "e08304aa38d67e4e");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn valid_settings_produce_valid_records(
        seed: u64,
        subjects in 1u32..200,
        skew in 0.0f64..4.0,
        missing in 0.0f64..0.9,
        shift_at in proptest::option::of(0u64..60),
        start_seconds in 0i64..32_503_680_000,
        interval_micros in 0u64..3_600_000_000,
    ) {
        let settings = WearableSettings {
            seed, subjects, skew, missing, shift_at, start_seconds, interval_micros, layout: RecordLayout::Flat,
        };
        let longer = lines(settings.clone(), 80);
        prop_assert_eq!(&lines(settings.clone(), 30)[..], &longer[..30], "a shorter run is a prefix of a longer one");
        for line in &longer {
            let record: Map<String, Value> = serde_json::from_str(line).expect("JSON");
            prop_assert_eq!(line.matches("\":").count(), record.len(), "a key twice: {}", line);
            let order: Vec<usize> = record.keys().map(|k| WEARABLE_FIELDS.iter().position(|n| n == k).expect("known")).collect();
            prop_assert!(order.is_sorted());
            for name in ["user_id", "email", "device_serial", "timestamp", "activity"] {
                prop_assert!(record.get(name).is_some_and(Value::is_string), "{} in {}", name, line);
            }
        }
        let csv = lines(WearableSettings { layout: RecordLayout::Csv, ..settings }, 80).join("\n");
        let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(csv.as_bytes());
        for (flat, row) in longer.iter().zip(reader.records()) {
            let flat: Map<String, Value> = serde_json::from_str(flat).expect("JSON");
            let row = row.expect("25 fields");
            prop_assert_eq!(row.len(), WEARABLE_FIELDS.len());
            for (field, cell) in WEARABLE_FIELDS.into_iter().zip(row.iter()) {
                let text = match flat.get(field) {
                    None | Some(Value::Null) => String::new(),
                    Some(Value::String(text)) => text.clone(),
                    Some(other) => other.to_string(),
                };
                prop_assert_eq!(cell, text.as_str());
            }
        }
    }
}

fn attributes(schema: &str) -> Vec<toml::Table> {
    let schema: toml::Table = schema.parse().expect("TOML");
    let list = schema["attribute"].as_array().expect("a list of tables");
    list.iter().map(|a| a.as_table().expect("a table").clone()).collect()
}

#[test]
fn wearable_schema_lists_generated_attributes() {
    let flat = attributes(FLAT_SCHEMA);
    assert_eq!(flat.iter().map(|a| a["name"].as_str().expect("text")).collect::<Vec<_>>(), WEARABLE_FIELDS);
}

#[test]
fn wearable_hierarchies_cover_generated_values() {
    fn leaves(node: &toml::Value, into: &mut BTreeSet<String>) {
        match node {
            toml::Value::Table(table) => table.values().for_each(|inner| leaves(inner, into)),
            toml::Value::Array(list) => into.extend(list.iter().filter_map(|l| l.as_str().map(str::to_owned))),
            other => panic!("neither a group nor a list: {other}"),
        }
    }
    let settings = WearableSettings { shift_at: Some(10_000), interval_micros: 20_000_000, ..seeded(11) };
    let records = parsed(settings, 20_000);
    for attribute in attributes(FLAT_SCHEMA) {
        let name = attribute["name"].as_str().expect("text");
        let hierarchy = attribute.get("hierarchy").and_then(toml::Value::as_table);
        let bound = |key: &str| {
            let value = hierarchy?.get(key)?;
            value.as_float().or(value.as_integer().map(|n| n as f64))
        };
        let mut listed = BTreeSet::new();
        if let Some(tree) = hierarchy.and_then(|h| h.get("tree")) {
            leaves(tree, &mut listed);
        }
        let mut seen = BTreeSet::new();
        for value in records.iter().filter_map(|r| r.get(name)).filter(|v| !v.is_null()) {
            match attribute["type"].as_str().expect("text") {
                "integer" | "float" => {
                    let number = value.as_f64().expect("a number");
                    assert!(bound("min").expect("a domain") <= number && number <= bound("max").expect("a domain"));
                    assert!(attribute["type"].as_str() == Some("float") || value.is_i64(), "{name}");
                }
                _ => {
                    let text = value.as_str().expect("text");
                    seen.insert(text.to_owned());
                    if !listed.is_empty() {
                        assert!(listed.contains(text), "{name}: {text} is not in the tree");
                    }
                    if let Some(length) = hierarchy.and_then(|h| h.get("length")).and_then(toml::Value::as_integer) {
                        assert_eq!(text.len() as i64, length, "{name}");
                    }
                }
            }
        }
        assert!(listed.is_empty() || listed == seen, "{name}: the tree lists values that never come");
    }
}

#[test]
fn wearable_records_have_realistic_size() {
    let bytes: usize = lines(seeded(5), 5_000).iter().map(String::len).sum();
    assert!((400..=460).contains(&(bytes / 5_000)), "{} bytes a record", bytes / 5_000);
}

#[test]
fn subject_attributes_are_constant() {
    let records = parsed(WearableSettings { subjects: 50, ..seeded(3) }, 2_000);
    let mut people: BTreeMap<&str, Vec<Option<&Value>>> = BTreeMap::new();
    let mut serials = BTreeSet::new();
    let mut mails = BTreeSet::new();
    for record in &records {
        let constant: Vec<_> = WEARABLE_FIELDS[1..11].iter().map(|name| record.get(*name)).collect();
        mails.insert(record["email"].as_str());
        serials.insert(record["device_serial"].as_str());
        let known = people.entry(record["user_id"].as_str().expect("text")).or_insert_with(|| constant.clone());
        assert_eq!(*known, constant);
    }
    assert_eq!(people.len(), 50, "with 2,000 records everybody has sent");
    assert_eq!((mails.len(), serials.len()), (50, 50), "identifiers identify");
}

#[test]
fn message_key_is_record_subject() {
    let mut stream = WearableStream::new(WearableSettings { shift_at: Some(20), ..seeded(3) }).expect("in range");
    for _ in 0..40 {
        let (mut line, mut key) = (Vec::new(), Vec::new());
        stream.append(&mut line);
        stream.append_subject(&mut key);
        let record: Map<String, Value> = serde_json::from_slice(&line).expect("JSON");
        assert_eq!(record["user_id"].as_str().map(str::as_bytes), Some(key.as_slice()));
    }
}

/// Shares of the most and least active of 100 subjects. False failures below 1e-6 (six standard deviations, eleven
/// comparisons); fixed seed.
#[test]
fn records_per_subject_follow_zipf() {
    let n = 50_000_usize;
    for (skew, seed) in [(1.0, 21), (0.0, 22)] {
        let mut stream =
            WearableStream::new(WearableSettings { subjects: 100, skew, ..seeded(seed) }).expect("in range");
        let mut counts = BTreeMap::new();
        for _ in 0..n {
            let (mut line, mut key) = (Vec::new(), Vec::new());
            stream.append(&mut line);
            stream.append_subject(&mut key);
            *counts.entry(key).or_insert(0_usize) += 1;
        }
        let mut counts: Vec<f64> = counts.into_values().map(|c| c as f64).collect();
        counts.sort_by(|a, b| b.total_cmp(a));
        let total: f64 = (1..=100).map(|rank| f64::from(rank).powf(-skew)).sum();
        // Sorting widens the extremes of the uniform case, within six standard deviations.
        for rank in [1, 2, 5, 10, 50] {
            let p = f64::from(rank).powf(-skew) / total;
            let deviation = (n as f64 * p * (1.0 - p)).sqrt();
            let count = counts[rank as usize - 1];
            assert!((count - n as f64 * p).abs() < 6.0 * deviation, "skew {skew}, rank {rank}: {count}");
        }
    }
}

/// At least six standard errors: each comparison fails falsely below 1e-8; fixed seed.
#[test]
fn signals_depend_on_activity_age_and_hour() {
    // Nine days.
    let records = parsed(WearableSettings { interval_micros: 20_000_000, ..seeded(31) }, 40_000);
    let heart = |activity| mean(&records, "heart_rate", is("activity", activity)).0;
    assert!(heart("sleep") + 2.0 < heart("rest") && heart("rest") + 15.0 < heart("walk"));
    assert!(heart("walk") + 20.0 < heart("cycle") && heart("cycle") + 10.0 < heart("run"));
    let (spo2_asleep, _) = mean(&records, "spo2", is("activity", "sleep"));
    let (spo2_awake, _) = mean(&records, "spo2", is("activity", "rest"));
    assert!(spo2_asleep + 0.7 < spo2_awake, "{spo2_asleep} asleep, {spo2_awake} awake");
    let (walked, _) = mean(&records, "steps", is("activity", "walk"));
    assert!((walked - 106.0).abs() < 2.0, "{walked} steps a minute");
    let run_at = |low: f64, high: f64| {
        let keep = |r: &Map<String, Value>| {
            is("activity", "run")(r) && number(r, "age").is_some_and(|age| low <= age && age < high)
        };
        mean(&records, "heart_rate", keep)
    };
    let ((young, many), (old, few)) = (run_at(18.0, 30.0), run_at(45.0, 99.0));
    assert!(many > 100.0 && few > 30.0 && young > old + 6.0, "{young} of {many}, {old} of {few}");
    for record in &records {
        let asleep = is("activity", "sleep")(record);
        if let Some(stage) = record.get("sleep_stage").and_then(Value::as_str) {
            assert_eq!(asleep, stage != "awake");
        }
        assert!(!asleep || number(record, "steps").is_none_or(|steps| steps == 0.0));
    }
    let asleep = records.iter().filter(|r| is("activity", "sleep")(r)).count();
    assert!((0.24..0.40).contains(&(asleep as f64 / 40_000.0)), "{asleep} of 40,000 asleep");
}

#[test]
fn missing_values_are_null_or_absent_by_device() {
    let share = |missing: f64| {
        let records = parsed(WearableSettings { missing, ..seeded(41) }, 5_000);
        let null: usize = records.iter().flat_map(Map::values).filter(|v| v.is_null()).count();
        let present: usize = records.iter().map(Map::len).sum();
        (null as f64 / 125_000.0, 1.0 - present as f64 / 125_000.0)
    };
    assert_eq!(share(0.0), (0.0, 0.0), "complete records");
    let (null, absent) = share(0.03);
    assert!((0.005..0.05).contains(&null) && (0.02..0.15).contains(&absent), "{null} null, {absent} absent");
    let (more_null, more_absent) = share(0.2);
    assert!(more_null > 2.0 * null && more_absent > absent);
    let records = parsed(seeded(42), 5_000);
    for record in &records {
        let simple = is("device_model", "Step One")(record);
        assert!(!simple || !record.contains_key("spo2") && !record.contains_key("position"), "it has no such sensor");
    }
    assert!(records.iter().any(is("device_model", "Step One")));
}

#[test]
fn population_shifts_at_configured_record() {
    let before = lines(seeded(51), 3_000);
    let settings = WearableSettings { shift_at: Some(2_000), ..seeded(51) };
    let after = lines(settings.clone(), 4_000);
    assert_eq!(before[..2_000], after[..2_000], "nothing changes before");
    let records = parsed(settings, 4_000);
    for (i, record) in records.iter().enumerate() {
        let number: u32 = record["user_id"].as_str().and_then(|id| id[1..].parse().ok()).expect("u and digits");
        assert_eq!(number >= 10_000, i >= 2_000);
    }
    // Means of about 37 and 56, deviation 15: the margin is 20 standard errors.
    let (young, _) = mean(&records[..2_000], "age", |_| true);
    let (old, _) = mean(&records[2_000..], "age", |_| true);
    assert!(young + 10.0 < old, "{young}, {old}");
}

#[test]
fn settings_out_of_range_are_refused_with_name() {
    let refused = |settings: WearableSettings, name: &str| {
        let error = WearableStream::new(settings).expect_err("refused").to_string();
        assert!(error.starts_with(name), "{error}");
    };
    refused(WearableSettings { subjects: 0, ..seeded(0) }, "subjects is 0");
    refused(WearableSettings { skew: f64::NAN, ..seeded(0) }, "skew is NaN");
    refused(WearableSettings { skew: -0.5, ..seeded(0) }, "skew is -0.5");
    refused(WearableSettings { missing: 1.0, ..seeded(0) }, "missing is 1");
    refused(WearableSettings { interval_micros: u64::MAX, ..seeded(0) }, "interval");
    refused(WearableSettings { start_seconds: -1, ..seeded(0) }, "start");
}
