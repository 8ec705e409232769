//! Tests messages that contain many records: lineage by element, nested lines, and unchanged bytes after any kill.
#![cfg(feature = "failpoints")]

#[path = "exploded/around.rs"]
mod around;
use crate::support;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use support::binary::{Outcome, Place, Process};
use support::crash_points::{self, kill_at};
use support::daemon::{Dice, K, LOT, Stage, TestDaemon, configure, conserved, same, scratch, sound};
use support::invariants::timeless;
use support::kafka::{Record, TestCluster};

const BUNDLES: &str = r#"
name = "bundles"
explode = "/visits"
[[attribute]]
name = "person"
pointer = "/visits/*/person"
type = "string"
role = "subject"
[[attribute]]
name = "clinic"
type = "string"
[[attribute]]
name = "city"
pointer = "/visits/*/place/city"
type = "string"
[[attribute]]
name = "age"
pointer = "/visits/*/age"
type = "integer"
[attribute.hierarchy]
kind = "intervals"
min = 0
max = 100
widths = [10, 50]
"#;

const AT_ONCE: [(&str, &str); 1] = [("BATCH__MAX_RECORDS", "5000")];

fn one_by_one() -> String {
    BUNDLES.replace("explode = \"/visits\"\n", "").replace("/visits/*", "")
}

/// Some elements are no records, and some messages have no elements.
fn bundle(number: usize, dice: &mut Dice) -> Value {
    let visit = |dice: &mut Dice, at: usize| match dice.roll(17) {
        0 => json!(at),
        1 => json!({"person": format!("p{}", dice.roll(40)), "place": {"city": "Bern"}, "age": "old"}),
        2 => json!({"person": format!("p{}", dice.roll(40)), "age": null}),
        _ => {
            let city = ["Bern", "Zug", "Chur"][dice.roll(3) as usize];
            json!({"person": format!("p{}", dice.roll(40)), "place": {"city": city}, "age": 20 + dice.roll(40), "x": 1})
        }
    };
    let most = if number % 9 == 4 { 0 } else { 1 + dice.roll(30) as usize };
    let visits: Vec<Value> = (0..most).map(|at| visit(dice, at)).collect();
    let clinic = ["north", "south"][dice.roll(2) as usize];
    let mut bundle = json!({"clinic": clinic, "visits": visits});
    match number % 27 {
        4 => bundle["visits"] = Value::Null,
        13 => bundle["visits"] = json!({"0": {}}),
        _ => {}
    }
    bundle
}

fn bundles(count: usize) -> Vec<Value> {
    let mut dice = Dice::new(11);
    (0..count).map(|number| bundle(number, &mut dice)).collect()
}

fn text(messages: &[Value]) -> String {
    messages.iter().map(|message| format!("{message}\n")).collect()
}

fn elements(message: &Value) -> &[Value] {
    message["visits"].as_array().map_or(&[], Vec::as_slice)
}

fn expected_letters(messages: &[Value]) -> BTreeSet<(u64, Option<u64>, String)> {
    let mut letters = BTreeSet::new();
    for (message, offset) in messages.iter().zip(0..) {
        if message["visits"].is_object() {
            letters.insert((offset, None, "not_an_array".to_owned()));
        } else if elements(message).is_empty() {
            letters.insert((offset, None, "no_elements".to_owned()));
        }
        for (element, at) in elements(message).iter().zip(0..) {
            let reason = if element.is_number() { "not_an_object" } else { "wrong_type" };
            if element.is_number() || element["age"].is_string() {
                letters.insert((offset, Some(at), reason.to_owned()));
            }
        }
    }
    letters
}

fn letters(place: &Place) -> BTreeSet<(u64, Option<u64>, String)> {
    let letter = |line: &String| {
        let letter: Value = serde_json::from_str(line).expect("JSON");
        let reason = letter["reason"].as_str().expect("a reason").to_owned();
        (letter["offset"].as_u64().expect("an offset"), letter["element"].as_u64(), reason)
    };
    let lines = place.lines("dead.ndjson");
    let letters: BTreeSet<_> = lines.iter().map(letter).collect();
    assert_eq!(letters.len(), lines.len(), "each of them once");
    letters
}

fn throng(place: &Place, arguments: &str) -> Outcome {
    let mut command = crate::support::binary::throng();
    command.args(arguments.split_whitespace());
    place.surround(&mut command, &[]);
    Process::spawn(command, place.port).wait()
}

fn printed(outcome: &Outcome) -> Value {
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    serde_json::from_slice(&outcome.stdout).expect("JSON")
}

#[test]
fn exploded_elements_are_released_like_single_records() {
    let messages = bundles(60);
    let place = Place::new(BUNDLES, "");
    place.write("in.ndjson", text(&messages));
    let account = place.run(&AT_ONCE).expect(0).account();
    let in_all: usize = messages.iter().map(|message| elements(message).len().max(1)).sum();
    let wanted = expected_letters(&messages);
    assert_eq!(account.consumed, in_all as u64);
    assert_eq!(account.dead_lettered, wanted.len() as u64);
    assert!(account.released > in_all as u64 / 2, "{account:?}");
    assert_eq!(letters(&place), wanted);

    let twin = Place::new(&one_by_one(), "");
    let mut lines = String::new();
    for message in &messages {
        for element in elements(message) {
            let mut record = element.clone();
            if let Some(record) = record.as_object_mut() {
                record.insert("clinic".to_owned(), message["clinic"].clone());
            }
            writeln!(lines, "{record}").expect("a string");
        }
    }
    twin.write("in.ndjson", lines);
    let alone = twin.run(&AT_ONCE).expect(0).account();
    let empty = messages.iter().filter(|message| elements(message).is_empty()).count() as u64;
    assert_eq!((alone.released, alone.suppressed), (account.released, account.suppressed));
    assert_eq!(alone.dead_lettered, account.dead_lettered - empty);
    let (found, wanted) = (place.lines("out.ndjson"), twin.lines("out.ndjson"));
    assert!(found == wanted, "{} lines, {} one by one", found.len(), wanted.len());
}

#[test]
fn exploded_message_stays_in_one_batch_with_lineage_per_element() {
    let messages = bundles(60);
    let place = Place::new(BUNDLES, "");
    place.write("in.ndjson", text(&messages));
    let command = place.command(&[("BATCH__MAX_RECORDS", "20")], &["--lineage", "lineage.ndjson"]);
    let account = Process::spawn(command, place.port).wait().expect(0).account();
    assert_eq!(account.held, 0);
    let (lines, mut batches, mut seen) = (place.lines("out.ndjson"), BTreeMap::new(), BTreeSet::new());
    let lineage = place.lines("lineage.ndjson");
    assert_eq!(lineage.len(), lines.len());
    for entry in &lineage {
        let entry: Value = serde_json::from_str(entry).expect("JSON");
        let (offset, element) = (entry["source"][2].as_u64().expect("an offset"), entry["element"].as_u64());
        let element = element.expect("an element");
        assert!(seen.insert((offset, element)), "{entry}: twice");
        let batch = entry["batch"].as_u64().expect("a batch");
        assert_eq!(*batches.entry(offset).or_insert(batch), batch, "a message of two batches");
        let line: Value = serde_json::from_str(&lines[entry["line"].as_u64().expect("a line") as usize]).expect("JSON");
        let message = &messages[offset as usize];
        let visit = &message["visits"][element as usize];
        for (shown, raw) in [(&line["city"], &visit["place"]["city"]), (&line["clinic"], &message["clinic"])] {
            assert!(shown == raw || shown == "*", "{line} of {visit}");
        }
        if let (Some(label), Some(age)) =
            (line["age"].as_str().and_then(|label| label.split_once('-')), visit["age"].as_u64())
        {
            let bound = |text: &str| text.parse::<u64>().expect("a bound");
            assert!((bound(label.0)..=bound(label.1)).contains(&age), "{line} of {visit}");
        }
    }
    assert!(batches.values().collect::<BTreeSet<_>>().len() > 10, "{batches:?}");

    let report = printed(&throng(
        &place,
        "evaluate in.ndjson out.ndjson -c throng.toml --lineage lineage.ndjson --json --queries 20",
    ));
    assert!(report["quality"].is_object(), "{report}");
    throng(&place, "verify-release out.ndjson -c throng.toml --lineage lineage.ndjson").expect(0);
    throng(&place, "attack out.ndjson --original in.ndjson --lineage lineage.ndjson -c throng.toml --json").expect(0);
    let first: Value = serde_json::from_str(&lineage[0]).expect("JSON");
    let mut strange = first.clone();
    strange["element"] = json!(4000);
    place.write("strange.ndjson", lineage.join("\n").replacen(&lineage[0], &strange.to_string(), 1) + "\n");
    let refused = throng(&place, "evaluate in.ndjson out.ndjson -c throng.toml --lineage strange.ndjson").expect(1);
    assert!(refused.stderr.contains("its record is not in the original"), "{}", refused.stderr);
}

#[test]
fn nested_lines_equal_flat_lines() {
    const NESTED: &str = "[output]\nshape = \"nested\"\n";
    let messages = bundles(60);
    let (flat, nested) = (Place::new(BUNDLES, ""), Place::new(BUNDLES, NESTED));
    for place in [&flat, &nested] {
        place.write("in.ndjson", text(&messages));
        let command = place.command(&AT_ONCE, &["--lineage", "lineage.ndjson"]);
        Process::spawn(command, place.port).wait().expect(0);
    }
    let read = |line: &String| serde_json::from_str::<Value>(line).expect("JSON");
    let of_flat = |line: &String| {
        let line = read(line);
        let get = |name: &str| line.get(name).cloned();
        (get("clinic"), get("city"), get("age"))
    };
    let of_nested = |line: &String| {
        let line = read(line);
        let get = |pointer: &str| line.pointer(pointer).cloned();
        assert!(line["visits"].as_array().is_none_or(|visits| visits.len() == 1), "{line}");
        (get("/clinic"), get("/visits/0/place/city"), get("/visits/0/age"))
    };
    let sorted = |mut rows: Vec<(Option<Value>, Option<Value>, Option<Value>)>| {
        rows.sort_by_key(|row| format!("{row:?}"));
        rows
    };
    let wanted = sorted(flat.lines("out.ndjson").iter().map(of_flat).collect());
    let lines = nested.lines("out.ndjson");
    assert_eq!(sorted(lines.iter().map(of_nested).collect()), wanted);
    assert!(
        lines
            .iter()
            .any(|line| line.starts_with("{\"clinic\":\"north\",\"visits\":[{\"place\":{\"city\":\"Bern\"},\"age\":"))
    );

    let evaluate = "evaluate in.ndjson out.ndjson -c throng.toml --lineage lineage.ndjson --json --queries 20";
    let figures = |place: &Place| printed(&throng(place, evaluate))["quality"].clone();
    assert_eq!(figures(&nested), figures(&flat));
    let verify = "verify-release out.ndjson -c throng.toml --lineage lineage.ndjson --json";
    assert_eq!(printed(&throng(&nested, verify)), printed(&throng(&flat, verify)));
    throng(&nested, "attack out.ndjson --original in.ndjson --lineage lineage.ndjson -c throng.toml --json").expect(0);

    let schemas = printed(&throng(&nested, "check -c throng.toml --output-schema"));
    let described = &schemas["all"]["properties"];
    assert_eq!(described["clinic"]["x-throng-role"], "quasi");
    let visit = &described["visits"]["prefixItems"][0]["properties"];
    assert_eq!(visit["place"]["properties"]["city"]["x-throng-role"], "quasi");
    assert_eq!(visit["age"]["x-throng-levels"].as_array().map(Vec::len), Some(4));
    let validator = jsonschema::JSONSchema::compile(&schemas["all"]).expect("a JSON Schema");
    assert!(lines.iter().all(|line| validator.is_valid(&read(line))), "{}", schemas["all"]);
    assert!(!validator.is_valid(&json!({"visits": [{"age": 33}, {"age": 34}]})));
    tampered(&nested, &lines);
}

fn tampered(place: &Place, lines: &[String]) {
    let at = lines.iter().position(|line| line.contains("\"city\":\"Bern\"")).expect("a line of Bern");
    let line = &lines[at];
    for (changed, word) in [
        (line.replace("Bern", "Bärn"), "required size"),
        (line.replace("\"city\":\"Bern\"", "\"city\":7"), "value of its attribute"),
        (line.replace("\"place\":{", "\"person\":\"p1\",\"place\":{"), "identifiers and subjects"),
        (line.replace("\"place\":{", "\"place\":{\"zip\":1,"), "attributes of the schema"),
        (line.replace("}]}", "},{\"place\":{\"city\":\"Bern\"}}]}"), "attributes of the schema"),
        (line.replace("{\"clinic\"", "{\"visits\":[{\"age\":1}],\"clinic\""), "order of the schema"),
        (line.replace("{\"clinic\"", "{\"city\":\"Bern\",\"clinic\""), "attributes of the schema"),
        (line[..line.len() - 1].to_owned(), "JSON object"),
    ] {
        assert_ne!(changed, *line, "{word}");
        let mut all = lines.to_vec();
        all[at] = changed;
        place.write("changed.ndjson", all.join("\n") + "\n");
        let found = throng(place, "verify-release changed.ndjson -c throng.toml --lineage lineage.ndjson").expect(4);
        let said = String::from_utf8(found.stdout).expect("text");
        assert!(said.contains(word), "{word}: {said}");
    }
}

#[test]
fn explode_configuration_errors_name_the_key() {
    let refused = |schema: &str, more: &str, overrides: &[(&str, &str)], words: &[&str]| {
        let place = Place::new(schema, more);
        place.write("in.ndjson", "");
        let mut command = crate::support::binary::throng();
        command.args(["check", "-c", "throng.toml"]);
        place.surround(&mut command, overrides);
        let outcome = Process::spawn(command, place.port).wait().expect(2);
        for word in words {
            assert!(outcome.stderr.contains(word), "{word}: {}", outcome.stderr);
        }
    };
    let no_subject = BUNDLES.replace("role = \"subject\"", "role = \"identifier\"");
    refused(&no_subject, "", &[], &["explode", "of one person", "role subject"]);
    refused(&BUNDLES.replace("/*", "/0"), "", &[], &["no attribute is read from the elements"]);
    refused(&BUNDLES.replace("\"/visits\"", "\"visits\""), "", &[], &["explode", "not a JSON pointer"]);
    refused(BUNDLES, "", &[("SOURCE__FORMAT", "csv")], &["source.format", "rows of CSV cannot be exploded"]);
    refused(BUNDLES, "", &[("SOURCE__FORMAT", "parquet")], &["source.format", "Parquet"]);
    let nested = ("OUTPUT__SHAPE", "nested");
    refused(BUNDLES, "", &[nested, ("SINK__FORMAT", "csv")], &["output.shape", "only JSON can be nested"]);
    refused(BUNDLES, "", &[nested, ("SINK__ROWS", "joined")], &["output.shape", "joined rows are flat"]);
    refused(BUNDLES, "", &[("OUTPUT__SHAPE", "deep")], &["OUTPUT__SHAPE"]);
    let inside = BUNDLES.replace("/visits/*/age", "/visits/*/place/city/age");
    refused(&inside, "", &[nested], &["\"city\" and \"age\"", "nested in each other"]);
    let mixed = BUNDLES.replace("name = \"clinic\"\n", "name = \"clinic\"\npointer = \"/visits/0/clinic\"\n");
    refused(&mixed, "", &[nested], &["in each element of an array and in one of them"]);
    let far = BUNDLES.replace("name = \"clinic\"\n", "name = \"clinic\"\npointer = \"/channels/100/v\"\n");
    refused(&far, "", &[nested], &["\"clinic\" has an array index above 99", "digits are an index"]);
    let place = BUNDLES.replace("name = \"clinic\"\n", "name = \"clinic\"\npointer = \"/clinics/0\"\n");
    refused(&place, "", &[nested], &["\"clinic\" is an array element by index"]);
}

const VISITS: &str = r#"
name = "visits"
explode = "/visits"
[[attribute]]
name = "person"
pointer = "/visits/*/person"
type = "string"
role = "subject"
[[attribute]]
name = "lot"
type = "string"
pointer = "/visits/*/lot"
[[attribute]]
name = "age"
type = "integer"
pointer = "/visits/*/age"
[attribute.hierarchy]
kind = "intervals"
min = 0
max = 100
widths = [10, 50]
[[attribute]]
name = "ward"
type = "string"
"#;

const BATCH: usize = 40;

/// Returns messages that fill exactly `batches` batches, and their number of records.
fn stream(seed: u64, batches: usize) -> (Vec<Value>, usize) {
    let mut dice = Dice::new(seed);
    let (mut messages, mut records, mut full, mut filled) = (Vec::new(), 0, 0, 0);
    let mut person = 0;
    while full < batches {
        let size = [0, 1, 7, 19, 60][dice.roll(5) as usize];
        let visit = |dice: &mut Dice, number: usize| match dice.roll(31) {
            0 => json!("no visit"),
            _ => json!({"person": format!("p{number}"), "lot": format!("L{}", number / LOT), "age": 30 + dice.roll(5)}),
        };
        let visits: Vec<Value> = (0..size).map(|at| visit(&mut dice, person + at)).collect();
        person += size;
        let ward = ["north", "south"][dice.roll(2) as usize];
        messages.push(json!({"ward": ward, "visits": visits}));
        records += size.max(1);
        filled += size.max(1);
        if filled >= BATCH {
            (full, filled) = (full + 1, 0);
        }
    }
    (messages, records)
}

fn file_run(hold: usize, messages: &[Value]) -> tempfile::TempDir {
    let dir = scratch();
    fs::write(dir.path().join("visits.toml"), VISITS).expect("the schema");
    fs::write(dir.path().join("in.ndjson"), text(messages)).expect("the input");
    let ends = r#"
[source]
kind = "file"
path = "@/in.ndjson"
[sink]
kind = "file"
path = "@/out.ndjson"
dead_letter_path = "@/out.letters"
[output]
shape = "nested"
"#;
    configure(dir.path(), "only", &ends.replace('@', &dir.path().to_string_lossy()), hold, BATCH, "1h");
    dir
}

fn start(dir: &Path, crash: Option<&str>) -> TestDaemon {
    let lineage = dir.join("out.lineage");
    TestDaemon::start(&dir.join("only.toml"), &["--lineage", &lineage.to_string_lossy()], crash)
}

fn finish(dir: &Path, records: usize) -> BTreeMap<String, String> {
    let mut daemon = start(dir, None);
    assert_eq!(daemon.wait().code(), Some(0), "{}", daemon.said());
    assert_eq!(conserved(&dir.join("only")), records as u64);
    let entries = fs::read_dir(dir).expect("a directory").map(|entry| entry.expect("an entry"));
    let named = entries.map(|entry| (entry.file_name().to_string_lossy().into_owned(), entry.path()));
    let written = named.filter(|(name, _)| name.starts_with("out."));
    let read = |name: &str, path| {
        let text = fs::read_to_string(path).expect("text").replace(&*dir.to_string_lossy(), "");
        if name.ends_with(".lineage") { timeless(&text) } else { text }
    };
    written.map(|(name, path)| (name.clone(), read(&name, path))).collect()
}

fn killed_at_every_point(hold: usize) {
    let (messages, records) = stream(3, 40);
    let calm = file_run(hold, &messages);
    let undisturbed = finish(calm.path(), records);
    let fragments: Vec<String> = ["out.trace.ndjson", "out.visit.ndjson"]
        .iter()
        .flat_map(|name| undisturbed[*name].lines().map(str::to_owned))
        .collect();
    assert!(sound(fragments.iter()) > records / 2, "{} fragments of {records} records", fragments.len());
    let run = file_run(hold, &messages);
    let mut dice = Dice::new(hold as u64);
    for point in crash_points::FILE {
        let crash = kill_at(point, &mut dice);
        start(run.path(), Some(&crash)).crashes(&crash);
    }
    let found = finish(run.path(), records);
    assert_eq!(found.keys().collect::<Vec<_>>(), undisturbed.keys().collect::<Vec<_>>());
    for (name, text) in &undisturbed {
        assert!(found[name] == *text, "{name} differs");
    }
}

#[test]
fn exploded_file_kill_at_any_point_keeps_output_identical() {
    killed_at_every_point(0);
}

#[test]
fn exploded_file_kill_with_held_elements_keeps_output_identical() {
    killed_at_every_point(2);
}

#[test]
fn exploded_topic_kill_at_any_point_keeps_output_identical() {
    const POINTS: [&str; 8] =
        ["intent-flushed", "begun", "produced", "offsets-sent", "acknowledged", "committed", "delivered", "applied"];
    let Some(broker) = TestCluster::shared() else { return };
    let (messages, records) = stream(8, 30);
    let payloads: Vec<Record> = messages
        .iter()
        .map(|message| Record {
            partition: Some(0),
            payload: Some(message.to_string().into_bytes()),
            ..Record::default()
        })
        .collect();
    let stage = || {
        let stage = Stage::new(broker, 1).with_static_membership();
        stage.configure("only", 2, BATCH, "1h");
        fs::write(stage.dir.path().join("visits.toml"), VISITS).expect("the schema");
        stage.broker.produce_records(&stage.raw, &payloads);
        stage
    };
    let finish = |stage: &Stage| {
        let mut daemon = stage.start("only", None);
        stage.wait_consumed(payloads.len(), &mut [&mut daemon]);
        daemon.stop();
        assert_eq!(conserved(&stage.state("only")), records as u64);
        let seen = support::daemon::Seen { released: stage.released(), dead_letters: stage.dead_letters() };
        assert!(sound(seen.released.values().flatten()) > records / 2, "few of {records} records with k = {K}");
        seen
    };
    let calm = stage();
    let undisturbed = finish(&calm);
    let killed = stage();
    let mut dice = Dice::new(5);
    for point in POINTS {
        let crash = kill_at(point, &mut dice);
        killed.start("only", Some(&crash)).crashes(&crash);
    }
    assert!(killed.consumed() < payloads.len() as i64, "the last crash came after the end of the stream");
    let seen = finish(&killed);
    same(&killed, &seen, &calm, &undisturbed);
    assert!(seen.dead_letters.iter().any(|letter| letter.contains("\"element\":")), "elements that are no visits");
}
