use std::path::Path;

use proptest::prelude::*;

use super::ResolvedTimes;
use crate::values::canonical::CanonicalKind;
use crate::values::raw_batch::{RawBatch, RawToken, RecordPosition};
use crate::values::schema::Schema;

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
    let resolved = ResolvedTimes::from_raw_batch(&raw, &schema.attributes).unwrap();
    assert!(resolved.column(0).is_none() && resolved.column(2).is_none());
    [1, 3].map(|attribute| {
        let (cells, column) = resolved.column(attribute).unwrap();
        let mut out = String::new();
        match schema.attributes[attribute].typing.canonical(cells.token(0, column), &mut out) {
            Ok(CanonicalKind::Absent) => "ABSENT".to_owned(),
            Ok(CanonicalKind::Null) => "NULL".to_owned(),
            Ok(CanonicalKind::Value) => out,
            Err(error) => error.to_string(),
        }
    })
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
