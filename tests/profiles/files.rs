//! Profiles from a file, joined to records from a file.

use crate::profiles::{SCHEMA, classes, line};
use crate::support::binary::Place;
use std::fmt::Write as _;

const JOIN: &str = "[[join]]\nname = \"profiles\"\npath = \"profiles.csv\"\n";

/// Each column is named by the last segment of its pointer.
fn profiles(rows: &[(usize, &str, &str)]) -> String {
    rows.iter().fold("sex,person,age,city\n".to_owned(), |mut text, (person, age, sex)| {
        writeln!(text, "{sex},p{person},{age},Zug").expect("a string");
        text
    })
}

fn visits(people: impl IntoIterator<Item = usize>) -> String {
    people.into_iter().fold(String::new(), |mut text, person| {
        writeln!(text, "{{\"person\":\"p{person}\",\"ward\":\"east\",\"age\":\"of the record\"}}").expect("a string");
        text
    })
}

#[test]
fn profile_file_is_joined_and_replaces_previous_file() {
    let place = Place::new(SCHEMA, JOIN);
    let mut rows: Vec<_> = (0..5).map(|p| (p, "34", "f")).collect();
    rows.extend((5..10).map(|p| (p, "-1", "m")));
    rows.insert(0, (0, "99", "m"));
    place.write("profiles.csv", profiles(&rows));
    place.write("in.ndjson", visits(0..13));
    let outcome = place.run(&[]).expect(0);
    assert_eq!((outcome.account().consumed, outcome.account().dead_lettered), (13, 0), "{}", outcome.stderr);
    let known = classes(&place.lines("out.ndjson"));
    assert_eq!(known[&line("34", "\"f\"")], 5, "{known:?}");
    assert_eq!(known[&line("null", "\"m\"")], 5, "{known:?}");
    assert_eq!(known[&line("null", "null")], 3, "{known:?}");

    place.write("profiles.csv", profiles(&(0..4).map(|p| (p, "61", "f")).collect::<Vec<_>>()));
    place.run(&[]).expect(0);
    let known = classes(&place.lines("out.ndjson"));
    assert_eq!(known[&line("61", "\"f\"")], 4, "{known:?}");
    assert_eq!(known[&line("null", "null")], 9, "{known:?}");
}

/// A row with a subject and an unreadable cell removes the known profile.
#[test]
fn unreadable_profile_rows_are_counted_and_remove_named_subject() {
    let place = Place::new(SCHEMA, JOIN);
    let mut text = profiles(&(0..12).map(|p| (p, "34", "f")).collect::<Vec<_>>());
    for row in ["f,p0,old,Zug", "f,p1,NaN,Zug", "f,p2,1e99,Zug", "f,,34,Zug", "f,p3", "f,p4,34,Zug,more"] {
        text += row;
        text += "\n";
    }
    place.write("profiles.csv", &text);
    place.write("in.ndjson", visits(0..12));
    let outcome = place.run(&[]).expect(0);
    let known = classes(&place.lines("out.ndjson"));
    assert_eq!((known[&line("34", "\"f\"")], known[&line("null", "null")]), (9, 3), "{known:?} {}", outcome.stderr);
    let said = |record: &str| {
        let line = outcome.stderr.lines().find(|line| line.contains(record)).unwrap_or_default();
        (line.contains("cells of its person are missing"), line.contains("is skipped"))
    };
    assert_eq!(said("record 13"), (true, false), "a cell of p0: {}", outcome.stderr);
    assert_eq!(said("record 16"), (false, true), "nobody: {}", outcome.stderr);
    assert_eq!(said("record 17"), (false, true), "fields are missing: {}", outcome.stderr);
    assert!(!outcome.stderr.contains("1e99"), "no value");
}

#[test]
fn profile_files_in_other_formats_are_read_and_malformed_ones_refused() {
    let json = "[[join]]\nname = \"profiles\"\npath = \"profiles.ndjson\"\nkey = \"/who/id\"\n";
    let place = Place::new(SCHEMA, json);
    let text = (0..6).fold(String::new(), |mut text, p| {
        writeln!(text, "{{\"who\":{{\"id\":\"p{p}\"}},\"born\":{{\"age\":34}},\"sex\":\"f\"}}").expect("a string");
        text
    });
    place.write("profiles.ndjson", format!("{text}{{\"who\":{{\"id\":\"p0\"}},\"sex\":"));
    place.write("in.ndjson", visits(0..6));
    place.run(&[]).expect(0);
    assert_eq!(classes(&place.lines("out.ndjson"))[&line("34", "\"f\"")], 6);

    let place = Place::new(SCHEMA, JOIN);
    place.write("in.ndjson", visits(0..6));
    let missing = place.run(&[]).expect(1);
    assert!(missing.stderr.contains("join \"profiles\": cannot open profiles.csv"), "{}", missing.stderr);
    place.write("profiles.csv", "person,sex\np1,f\n");
    let lacking = place.run(&[]).expect(2);
    assert!(lacking.stderr.contains("no column for attribute \"age\""), "{}", lacking.stderr);
    place.write("profiles.csv", "");
    let empty = place.run(&[]).expect(1);
    assert!(empty.stderr.contains("profiles.csv is empty"), "{}", empty.stderr);
    place.write("profiles.csv", [0xff, 0xfe, 0x00]);
    place.run(&[]).expect(1);
    assert!(place.lines("out.ndjson").is_empty(), "nothing has left meanwhile");
    place.write("profiles.csv", "person,age,sex\n");
    place.run(&[]).expect(0);
    assert_eq!(classes(&place.lines("out.ndjson"))[&line("null", "null")], 6);
}

#[test]
fn check_on_sample_joins_profiles() {
    let place = Place::new(SCHEMA, JOIN);
    place.write("profiles.csv", profiles(&(0..6).map(|p| (p, "34", "f")).collect::<Vec<_>>()));
    place.write("in.ndjson", visits(0..6));
    let mut command = crate::support::binary::throng();
    command.args(["check", "-c", "throng.toml", "--sample", "in.ndjson"]);
    place.surround(&mut command, &[]);
    let out = command.output().expect("it runs");
    let said = String::from_utf8_lossy(&out.stdout).into_owned();
    assert_eq!(out.status.code(), Some(0), "{said}{}", String::from_utf8_lossy(&out.stderr));
    assert!(said.contains("\"age\":34"), "{said}");
    assert!(!said.contains("of the wrong type") && !said.contains("no value in any record"), "{said}");
}

#[test]
fn several_joins_supply_independent_attributes() {
    let schema = SCHEMA.replacen(
        "name = \"sex\"\ntype = \"string\"\nfrom = \"join:profiles\"",
        "name = \"sex\"\ntype = \"string\"\nfrom = \"join:a-register\"",
        1,
    );
    let joins = "[[join]]\nname = \"profiles\"\npath = \"ages.csv\"\n\
        [[join]]\nname = \"a-register\"\npath = \"register.csv\"\nkey = \"who\"\n";
    let place = Place::new(&schema, joins);
    let rows = |head: &str, people: std::ops::Range<usize>, row: fn(usize) -> String| {
        people.fold(format!("{head}\n"), |text, person| text + &row(person) + "\n")
    };
    place.write("ages.csv", rows("person,age", 0..6, |p| format!("p{p},34")));
    place.write("register.csv", rows("sex,who", 3..9, |p| format!("f,p{p}")));
    place.write("in.ndjson", visits(0..9));
    place.run(&[]).expect(0);
    let known = classes(&place.lines("out.ndjson"));
    let of = |age: &str, sex: &str| known[&line(age, sex)];
    assert_eq!((of("34", "null"), of("34", "\"f\""), of("null", "\"f\"")), (3, 3, 3), "{known:?}");
}

#[test]
fn source_header_may_lack_profile_columns() {
    let place = Place::new(SCHEMA, JOIN);
    place.write("profiles.csv", profiles(&(0..6).map(|p| (p, "34", "f")).collect::<Vec<_>>()));
    let source = (0..6).fold("person,ward\n".to_owned(), |text, p| text + &format!("p{p},east\n"));
    place.write("in.csv", source);
    let csv = [("SOURCE__PATH", "in.csv"), ("SOURCE__FORMAT", "csv")];
    let mut command = crate::support::binary::throng();
    command.args(["check", "-c", "throng.toml"]);
    place.surround(&mut command, &csv);
    let out = command.output().expect("it runs");
    let said = String::from_utf8_lossy(&[out.stdout, out.stderr].concat()).into_owned();
    assert!(out.status.code() == Some(0) && !said.contains("has no column"), "{said}");
    place.run(&csv).expect(0);
    assert_eq!(classes(&place.lines("out.ndjson"))[&line("34", "\"f\"")], 6);
}

/// Checks the memory figure of docs/policies.md.
#[test]
fn first_start_with_profiles_stays_below_memory_per_subject_limit() {
    const PEOPLE: usize = 50_000;
    let peak = |people: usize| {
        let place = Place::new(SCHEMA, JOIN);
        place.write("profiles.csv", profiles(&(0..people).map(|p| (p, "34", "f")).collect::<Vec<_>>()));
        let mut process =
            place.start(&[("SOURCE__PATH", "-"), ("SOURCE__FORMAT", "json"), ("TELEMETRY__LOG_LEVEL", "info")]);
        process.feed(visits(0..50));
        process.until("a batch has left", |s| s["totals"]["consumed"] == 50);
        let peak = process.peak_memory();
        process.wait().expect(0);
        peak
    };
    let (Some(few), Some(many)) = (peak(10), peak(PEOPLE)) else { return };
    let each = many.saturating_sub(few) / PEOPLE as u64;
    assert!(each < 1_500, "{each} bytes a person");
}
