use std::path::Path;

use proptest::prelude::*;

use super::Resolved;
use crate::values::canonical::Canonical;
use crate::values::raw::{Coordinate, RawBatch, Token};
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

/// What is read of one record: its times, `NULL`, or what the type says against it.
fn read(cells: [Token<'_>; 4]) -> [String; 2] {
    let schema = schema(SERIES);
    let mut raw = RawBatch::new(4);
    raw.push_row(Coordinate { topic: 0, partition: 0, offset: 0, element: 0 });
    for (attribute, token) in cells.into_iter().enumerate() {
        raw.set(attribute, token);
    }
    let resolved = Resolved::of(&raw, &schema.attributes).unwrap();
    assert!(resolved.column(0).is_none() && resolved.column(2).is_none());
    [1, 3].map(|attribute| {
        let (cells, column) = resolved.column(attribute).unwrap();
        let mut out = String::new();
        match schema.attributes[attribute].typing.canonical(cells.token(0, column), &mut out) {
            Ok(Canonical::Absent) => "ABSENT".to_owned(),
            Ok(Canonical::Null) => "NULL".to_owned(),
            Ok(Canonical::Value) => out,
            Err(error) => error.to_string(),
        }
    })
}

fn time(start: Token<'_>, offset: Token<'_>) -> String {
    read([start, offset, Token::Absent, Token::Absent])[0].clone()
}

fn hour(day: Token<'_>, clock: Token<'_>) -> String {
    read([Token::Absent, Token::Absent, day, clock])[1].clone()
}

#[test]
fn an_offset_is_added_to_its_start() {
    let start = Token::Text("2026-03-02T06:25:00+02:00");
    assert_eq!(time(start, Token::Number("0")), "\"2026-03-02T04:25:00Z\"");
    assert_eq!(time(start, Token::Untyped(" 86400250 ")), "\"2026-03-03T04:25:00.250Z\"");
    assert_eq!(time(start, Token::Number("-1500")), "\"2026-03-02T04:24:58.500Z\"");
    assert_eq!(time(start, Token::Number("-1")), "NULL", "the schema says that it is missing");
    assert_eq!(time(start, Token::Null), "NULL");
    assert_eq!(time(start, Token::Absent), "ABSENT");
    for none in [Token::Absent, Token::Null, Token::Text("never")] {
        assert_eq!(time(none, Token::Number("5")), "NULL", "no start is known: {none:?}");
    }
}

#[test]
fn a_time_of_day_is_that_of_its_date() {
    let day = Token::Untyped("2.3.2026");
    assert_eq!(hour(day, Token::Text("12:00:00 AM")), "\"2026-03-02T00:00:00Z\"");
    assert_eq!(hour(day, Token::Text("11:59:59.5 PM")), "\"2026-03-02T23:59:59.500Z\"");
    assert_eq!(hour(Token::Null, Token::Text("1:00:00 PM")), "NULL");
}

/// Also what would be a time by itself is none where it should count from another one.
#[test]
fn what_says_no_span_or_no_start_is_no_time() {
    let start = Token::Text("2026-03-02T06:25:00Z");
    let refused = |found: String| assert!(found.contains("counts from"), "{found}");
    for offset in ["2026-03-02T06:30:00Z", "", "soon", "1e99", "99999999999999999"] {
        refused(time(start, Token::Text(offset)));
    }
    for start in [Token::Text("2026"), Token::Number("5"), Token::Bool(true), Token::Structure("{}")] {
        refused(time(start, Token::Number("5")));
    }
    // The year 10000.
    refused(time(Token::Text("9999-12-31T23:59:59Z"), Token::Number("1000")));
    refused(hour(Token::Untyped("2.3.2026"), Token::Text("2026-03-02T06:30:00Z")));
    refused(hour(Token::Untyped("2.3.2026"), Token::Text("13:00:00 PM")));
    assert!(time(start, Token::Structure("[1]")).contains("an array or object"));
}

#[test]
fn a_base_that_is_none_is_told() {
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
        ("begin", "epoch = \"s\"", "is no attribute"),
        ("count", "epoch = \"s\"", "is no time"),
        ("time", "epoch = \"s\"", "counts from another attribute itself"),
        ("start", "", "nothing says what a cell counts"),
        ("start", "epoch = \"s\"\nformat = \"%H:%M\"", "exclude each other"),
        ("start", "format = \"%H:%M\"", "give that the type date"),
        ("start", "format = \"%Y-%m-%d %H:%M\"", "no time of day by itself"),
        ("start", "format = \"%I:%M\"", "no time of day by itself"),
        ("start", "format = \"%H:%M %z\"", "no time of day by itself"),
        ("start", "format = \"%Q\"", "unknown letter"),
    ] {
        let error = with(base, more).unwrap_err().to_string();
        assert!(error.contains(says), "{base} {more}: {error}");
    }
}

proptest! {
    /// The sum is what chrono makes of the two.
    #[test]
    fn sums_agree_with_the_reference(start in -30_000_000_000_i64..200_000_000_000, offset in -100_000_000_000_i64..100_000_000_000) {
        let began = chrono::DateTime::from_timestamp(start, 0).unwrap();
        let (text, number) = (began.to_rfc3339(), offset.to_string());
        prop_assume!(number != "-1");
        let sum = began + chrono::Duration::milliseconds(offset);
        let wanted = sum.to_rfc3339_opts(chrono::SecondsFormat::AutoSi, true);
        let found = time(Token::Text(&text), Token::Number(&number));
        let found = chrono::DateTime::parse_from_rfc3339(found.trim_matches('"')).map(|found| found.to_utc());
        prop_assert_eq!(found, Ok(sum), "{}", wanted);
    }
}
