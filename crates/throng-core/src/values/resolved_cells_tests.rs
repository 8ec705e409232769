use std::path::Path;

use proptest::prelude::*;

use super::ResolvedCells;
use crate::values::canonical::CanonicalKind;
use crate::values::raw_batch::{RawBatch, RawToken, RecordPosition};
use crate::values::schema::{Attribute, Schema};

const SERIES: &str = r#"
name = "series"
[[attribute]]
name = "start"
type = "timestamp"
role = "identifier"
missing = ["never"]
[[attribute]]
name = "time"
type = "timestamp"
base = "start"
epoch = "ms"
missing = ["-1"]
[[attribute]]
name = "day"
type = "date"
format = "%d.%m.%Y"
[[attribute]]
name = "hour"
type = "timestamp"
base = "day"
format = "%I:%M:%S%.f %p"
"#;

fn schema(text: &str) -> Schema {
    Schema::parse(text, "s.toml", Path::new("")).unwrap()
}

fn read(cells: [RawToken<'_>; 4]) -> [String; 2] {
    let schema = schema(SERIES);
    let mut raw = RawBatch::new(4);
    raw.push_row(RecordPosition { topic: 0, partition: 0, offset: 0, element: 0 });
    for (attribute, token) in cells.into_iter().enumerate() {
        raw.set(attribute, token);
    }
    let resolved = ResolvedCells::from_raw_batch(&raw, &schema.attributes).unwrap();
    assert!(resolved.column(0).is_none() && resolved.column(2).is_none());
    [1, 3].map(|attribute| {
        let (cells, column) = resolved.column(attribute).unwrap();
        canonical(&schema.attributes[attribute], cells.token(0, column))
    })
}

fn canonical(attribute: &Attribute, token: RawToken<'_>) -> String {
    let mut out = String::new();
    match attribute.typing.canonical(token, &mut out) {
        Ok(CanonicalKind::Absent) => "ABSENT".to_owned(),
        Ok(CanonicalKind::Null) => "NULL".to_owned(),
        Ok(CanonicalKind::Value) => out,
        Err(error) => error.to_string(),
    }
}

fn time(start: RawToken<'_>, offset: RawToken<'_>) -> String {
    read([start, offset, RawToken::Absent, RawToken::Absent])[0].clone()
}

fn hour(day: RawToken<'_>, clock: RawToken<'_>) -> String {
    read([RawToken::Absent, RawToken::Absent, day, clock])[1].clone()
}

#[test]
fn offset_is_added_to_its_base() {
    let start = RawToken::Text("2026-03-02T06:25:00+02:00");
    assert_eq!(time(start, RawToken::Number("0")), "\"2026-03-02T04:25:00Z\"");
    assert_eq!(time(start, RawToken::Untyped(" 86400250 ")), "\"2026-03-03T04:25:00.250Z\"");
    assert_eq!(time(start, RawToken::Number("-1500")), "\"2026-03-02T04:24:58.500Z\"");
    assert_eq!(time(start, RawToken::Number("-1")), "NULL", "the schema says that it is missing");
    assert_eq!(time(start, RawToken::Null), "NULL");
    assert_eq!(time(start, RawToken::Absent), "ABSENT");
    for none in [RawToken::Absent, RawToken::Null, RawToken::Text("never")] {
        assert_eq!(time(none, RawToken::Number("5")), "NULL", "no start is known: {none:?}");
    }
}

#[test]
fn time_of_day_is_added_to_its_date() {
    let day = RawToken::Untyped("2.3.2026");
    assert_eq!(hour(day, RawToken::Text("12:00:00 AM")), "\"2026-03-02T00:00:00Z\"");
    assert_eq!(hour(day, RawToken::Text("11:59:59.5 PM")), "\"2026-03-02T23:59:59.500Z\"");
    assert_eq!(hour(RawToken::Null, RawToken::Text("1:00:00 PM")), "NULL");
}

#[test]
fn invalid_offset_or_base_is_refused() {
    let start = RawToken::Text("2026-03-02T06:25:00Z");
    let refused = |found: String| assert!(found.contains("relative to the `base`"), "{found}");
    for offset in ["2026-03-02T06:30:00Z", "", "soon", "1e99", "99999999999999999"] {
        refused(time(start, RawToken::Text(offset)));
    }
    for start in [RawToken::Text("2026"), RawToken::Number("5"), RawToken::Bool(true), RawToken::Structure("{}")] {
        refused(time(start, RawToken::Number("5")));
    }
    // The year is 10000.
    refused(time(RawToken::Text("9999-12-31T23:59:59Z"), RawToken::Number("1000")));
    refused(hour(RawToken::Untyped("2.3.2026"), RawToken::Text("2026-03-02T06:30:00Z")));
    refused(hour(RawToken::Untyped("2.3.2026"), RawToken::Text("13:00:00 PM")));
    assert!(time(start, RawToken::Structure("[1]")).contains("an array or object"));
}

#[test]
fn invalid_base_in_schema_is_reported() {
    let with = |base: &str, more: &str| {
        let text = format!(
            "name = \"s\"\n[[attribute]]\nname = \"start\"\ntype = \"timestamp\"\n[[attribute]]\nname = \"count\"\ntype = \"integer\"\n\
             [[attribute]]\nname = \"time\"\ntype = \"timestamp\"\nbase = \"{base}\"\n{more}\n"
        );
        Schema::parse(&text, "s.toml", Path::new("")).map(|schema| schema.fingerprint())
    };
    let sound = with("start", "epoch = \"s\"").unwrap();
    assert_ne!(sound, with("start", "epoch = \"ms\"").unwrap(), "another state");
    for (base, more, says) in [
        ("begin", "epoch = \"s\"", "is not an attribute"),
        ("count", "epoch = \"s\"", "is not a time"),
        ("time", "epoch = \"s\"", "counts from another attribute"),
        ("start", "", "the unit of the cells is missing"),
        ("start", "epoch = \"s\"\nformat = \"%H:%M\"", "exclude each other"),
        ("start", "format = \"%H:%M\"", "change the type of the base to date"),
        ("start", "format = \"%Y-%m-%d %H:%M\"", "not a time of day"),
        ("start", "format = \"%I:%M\"", "not a time of day"),
        ("start", "format = \"%H:%M %z\"", "not a time of day"),
        ("start", "format = \"%Q\"", "unknown letter"),
    ] {
        let error = with(base, more).unwrap_err().to_string();
        assert!(error.contains(says), "{base} {more}: {error}");
    }
}

proptest! {
    #[test]
    fn sum_of_base_and_offset_equals_chrono(start in -30_000_000_000_i64..200_000_000_000, offset in -100_000_000_000_i64..100_000_000_000) {
        let began = chrono::DateTime::from_timestamp(start, 0).unwrap();
        let (text, number) = (began.to_rfc3339(), offset.to_string());
        prop_assume!(number != "-1");
        let sum = began + chrono::Duration::milliseconds(offset);
        let wanted = sum.to_rfc3339_opts(chrono::SecondsFormat::AutoSi, true);
        let found = time(RawToken::Text(&text), RawToken::Number(&number));
        let found = chrono::DateTime::parse_from_rfc3339(found.trim_matches('"')).map(|found| found.to_utc());
        prop_assert_eq!(found, Ok(sum), "{}", wanted);
    }
}

const UNITS: &str = r#"
name = "observations"
[[attribute]]
name = "code"
type = "string"
role = "identifier"
missing = ["?"]
[[attribute]]
name = "warmth"
type = "float"
unit = "Cel"
unit_from = "code"
round = 0.1
missing = ["-1", "n/a"]
[[attribute]]
name = "beats"
type = "integer"
unit = "bpm"
unit_from = "code"
[[attribute]]
name = "steps"
type = "integer"
unit = "steps"
unit_from = "code"
"#;

/// Reads the records, each with a unit and a number for all attributes.
fn converted(records: &[(RawToken<'_>, RawToken<'_>)], attribute: usize) -> Vec<String> {
    let schema = schema(UNITS);
    let mut raw = RawBatch::new(4);
    for (row, (unit, number)) in records.iter().enumerate() {
        raw.push_row(RecordPosition { topic: 0, partition: 0, offset: row as i64, element: 0 });
        raw.set(0, *unit);
        for attribute in 1..4 {
            raw.set(attribute, *number);
        }
    }
    let resolved = ResolvedCells::from_raw_batch(&raw, &schema.attributes).unwrap();
    let (cells, column) = resolved.column(attribute).unwrap();
    (0..records.len()).map(|row| canonical(&schema.attributes[attribute], cells.token(row, column))).collect()
}

#[test]
fn numbers_are_converted_from_the_unit_of_their_record() {
    use RawToken::{Absent, Bool, Null, Number, Structure, Text, Untyped};
    let records = [
        (Text("[degF]"), Number("98.6")),
        (Text("Cel"), Number("36.64")),
        (Untyped(" K "), Untyped(" 310.15 ")),
        (Text("[degF]"), Text("98.6")),
        (Text("Cel"), Number("-1")),
        (Text("[degF]"), Text("n/a")),
        (Text("[degF]"), Number("30.2")),
        (Null, Number("36.6")),
        (Absent, Number("36.6")),
        (Text("?"), Number("36.6")),
        (Text("kg"), Number("36.6")),
        (Text(""), Number("36.6")),
        (Bool(true), Number("36.6")),
        (Structure("{}"), Number("36.6")),
        (Text("Cel"), Null),
        (Text("Cel"), Absent),
        (Text("kg"), Absent),
        (Text("Cel"), Text("warm")),
        (Text("Cel"), Number("1e400")),
        (Text("Cel"), Bool(true)),
    ];
    let wanted = [
        "37", "36.6", "37", "37", "NULL", "NULL", "-1", "NULL", "NULL", "NULL", "ERROR", "ERROR", "ERROR", "ERROR",
        "NULL", "ABSENT", "ABSENT", "ERROR", "ERROR", "ERROR",
    ];
    let is_error = |cell: &String| cell.starts_with("attribute \"");
    let kinds = |cells: Vec<String>| -> Vec<String> {
        cells.into_iter().map(|cell| if is_error(&cell) { "ERROR".to_owned() } else { cell }).collect()
    };
    assert_eq!(kinds(converted(&records, 1)), wanted);
    let rates = [(Text("/min"), Number("61")), (Text("1/s"), Number("1.01")), (Text("Cel"), Number("61"))];
    assert_eq!(kinds(converted(&rates, 2)), ["61", "61", "ERROR"]);
    let counts = [(Text("steps"), Number("61")), (Text("km"), Number("61")), (Text("steps"), Number("6.5"))];
    assert_eq!(kinds(converted(&counts, 3)), ["61", "ERROR", "7"], "an unlisted unit needs no conversion");
}

#[test]
fn converted_numbers_are_equal_in_all_units_without_rounding() {
    let text = UNITS.replace("round = 0.1\n", "");
    let schema = schema(&text);
    let mut raw = RawBatch::new(4);
    let records = [("Cel", "37"), ("[degF]", "98.6"), ("K", "310.15"), ("furlong", "n/a")];
    for (row, (unit, number)) in records.into_iter().enumerate() {
        raw.push_row(RecordPosition { topic: 0, partition: 0, offset: row as i64, element: 0 });
        raw.set(0, RawToken::Text(unit));
        raw.set(1, RawToken::Untyped(number));
    }
    let resolved = ResolvedCells::from_raw_batch(&raw, &schema.attributes).unwrap();
    let (cells, column) = resolved.column(1).unwrap();
    let read: Vec<String> = (0..4).map(|row| canonical(&schema.attributes[1], cells.token(row, column))).collect();
    assert_eq!(read, ["37", "37", "37", "NULL"], "a missing number needs no unit");
}

#[test]
fn wrong_units_of_attributes_are_refused() {
    let refused = |change: (&str, &str), why: &str| {
        assert!(UNITS.contains(change.0));
        let error = Schema::parse(&UNITS.replacen(change.0, change.1, 1), "s.toml", Path::new("")).unwrap_err();
        assert!(error.to_string().contains(why), "{error}");
    };
    refused(("unit = \"Cel\"\n", ""), "the unit to which numbers are converted is missing");
    refused(("unit_from = \"code\"\nround", "unit_from = \"kode\"\nround"), "\"kode\" is not an attribute");
    refused(("unit_from = \"code\"\nround", "unit_from = \"beats\"\nround"), "\"beats\" is not a string");
    refused(("round = 0.1", "to = \"K\""), "unit_from already converts");
    refused(("round = 0.1", "scale = 2"), "unit_from already converts");
    refused(("type = \"float\"", "type = \"string\""), "only integers and floats");
    refused(("missing = [\"?\"]", "topics = [\"t\"]"), "not in all topics");
}

proptest! {
    /// Every order of units gives the results of the records alone.
    #[test]
    fn conversion_depends_on_the_record_only(records in prop::collection::vec((0usize..5, -500i32..500), 1..40)) {
        let names = ["Cel", "[degF]", "K", "kg", "Cel"];
        let texts: Vec<String> = records.iter().map(|(_, number)| format!("{}", f64::from(*number) / 10.0)).collect();
        let tokens: Vec<_> = records
            .iter()
            .zip(&texts)
            .map(|((unit, _), text)| (RawToken::Text(names[*unit]), RawToken::Number(text)))
            .collect();
        let alone: Vec<String> = tokens.iter().flat_map(|record| converted(&[*record], 1)).collect();
        prop_assert_eq!(converted(&tokens, 1), alone);
    }
}
