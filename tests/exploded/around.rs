//! Tests profiles, size limits, reading of releases, and unknown keys with messages of many records.

use crate::exploded::{AT_ONCE, BUNDLES, bundles, letters, printed, text, throng};
use crate::support::binary::{Place, Process};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::process::Command;

const OF_PEOPLE: &str = "[[attribute]]\nname = \"sex\"\nfrom = \"join:people\"\ntype = \"string\"\n";

/// Profiles have no elements.
#[test]
fn exploded_elements_are_joined_with_profiles() {
    let messages = bundles(30);
    for file in ["people.ndjson", "people.csv"] {
        let join = format!("[[join]]\nname = \"people\"\npath = \"{file}\"\n");
        let place = Place::new(&format!("{BUNDLES}{OF_PEOPLE}"), &join);
        let rows: Vec<String> = (0..40)
            .map(|person| match file {
                "people.csv" => format!("p{person},f"),
                _ => json!({"person": format!("p{person}"), "sex": "f"}).to_string(),
            })
            .collect();
        let header = if file == "people.csv" { "person,sex\n" } else { "" };
        place.write(file, format!("{header}{}\n", rows.join("\n")));
        place.write("in.ndjson", text(&messages));
        place.run(&AT_ONCE).expect(0);
        let lines = place.lines("out.ndjson");
        assert!(lines.len() > 50, "{file}: {} lines", lines.len());
        assert!(lines.iter().all(|line| line.contains("\"sex\":\"f\"")), "{file}: {lines:?}");
    }
}

/// Enclosing values are copied into every record.
#[test]
fn exploded_enclosing_values_count_for_size_limits() {
    let place = Place::new(BUNDLES, "");
    let visit = |at: usize| json!({"person": format!("p{}", at % 40), "place": {"city": "Bern"}, "age": 33});
    let bundle = |clinic: usize, visits: usize| {
        let visits: Vec<Value> = (0..visits).map(visit).collect();
        json!({"clinic": "c".repeat(clinic), "visits": visits})
    };
    // 600 KiB each in clinics alone, and one of 1.5 MiB.
    let mut messages = vec![bundle(1024, 600); 6];
    messages.insert(2, bundle(1024, 1500));
    place.write("in.ndjson", text(&messages));
    let overrides = [AT_ONCE[0], ("BATCH__MAX_BYTES", "1MiB")];
    let command = place.command(&overrides, &["--lineage", "lineage.ndjson"]);
    let account = Process::spawn(command, place.port).wait().expect(0).account();
    assert_eq!((account.consumed, account.dead_lettered), (6 * 600 + 1, 1));
    assert_eq!(letters(&place), BTreeSet::from([(2, None, "too_many_elements".to_owned())]));
    let batch = |line: &String| serde_json::from_str::<Value>(line).expect("JSON")["batch"].as_u64();
    let batches: BTreeSet<Option<u64>> = place.lines("lineage.ndjson").iter().map(batch).collect();
    assert_eq!(batches.len(), 3, "two messages fill one");
}

/// A line may contain another attribute at the pointer of the subject.
#[test]
fn nested_attribute_at_the_subject_pointer_passes_verification() {
    let schema = "name = \"s\"\n[[attribute]]\nname = \"person\"\npointer = \"/id\"\ntype = \"string\"\nrole = \"subject\"\n\
        [[attribute]]\nname = \"id\"\nfrom = \"join:people\"\npointer = \"/kind\"\ntype = \"string\"\n";
    let join = "[output]\nshape = \"nested\"\n[[join]]\nname = \"people\"\npath = \"people.ndjson\"\n";
    let place = Place::new(schema, join);
    let lines = |row: fn(usize) -> Value| (0..20).map(|at| format!("{}\n", row(at))).collect::<String>();
    place.write("people.ndjson", lines(|at| json!({"id": format!("p{at}"), "kind": "k"})));
    place.write("in.ndjson", lines(|at| json!({"id": format!("p{at}")})));
    let command = place.command(&AT_ONCE, &["--lineage", "lineage.ndjson"]);
    Process::spawn(command, place.port).wait().expect(0);
    assert_eq!(place.lines("out.ndjson"), vec!["{\"id\":\"k\"}"; 20]);
    throng(&place, "verify-release out.ndjson -c throng.toml --lineage lineage.ndjson").expect(0);
}

#[test]
fn compressed_nested_lines_are_evaluated() {
    let place = Place::new(BUNDLES, "[output]\nshape = \"nested\"\n");
    place.write("in.ndjson", text(&bundles(30)));
    let command = place.command(&AT_ONCE, &["--lineage", "lineage.ndjson"]);
    Process::spawn(command, place.port).wait().expect(0);
    let measured = |file: &str| {
        let command = format!("evaluate in.ndjson {file} -c throng.toml --lineage lineage.ndjson --json --queries 20");
        printed(&throng(&place, &command))["quality"].clone()
    };
    let plain = measured("out.ndjson");
    let done = Command::new("gzip").arg("-k").arg(place.path("out.ndjson")).status().expect("gzip");
    assert!(done.success());
    assert_eq!(measured("out.ndjson.gz"), plain);
}

#[test]
fn exploded_unknown_keys_are_named() {
    let messages: Vec<Value> = bundles(60)
        .into_iter()
        .map(|mut bundle| {
            bundle["outer"] = json!({"y": 1});
            bundle
        })
        .collect();
    let place = Place::new(BUNDLES, "");
    place.write("in.ndjson", text(&messages));
    let said = throng(&place, "check -c throng.toml --sample in.ndjson").expect(0);
    let said = String::from_utf8(said.stdout).expect("text");
    assert!(said.contains("dropped, not in the schema: outer.y, visits.*.x\n"), "{said}");
    assert!(!said.contains("more, not named"), "{said}");
}
