use super::cell_validation::{CellValidator, PrintedCellKind};
use std::path::Path;
use std::sync::Arc;
use throng_core::values::codebook::{Codebook, FIRST_VALUE};
use throng_core::values::digest::DigestKey;
use throng_core::values::raw_batch::RawToken;
use throng_core::values::schema::Schema;

const SCHEMA: &str = r#"
name = "kinds"
[[attribute]]
name = "age"
type = "integer"
hierarchy = { kind = "intervals", min = 0, max = 100, widths = [10, 50] }
[[attribute]]
name = "temperature"
type = "float"
round = 0.1
hierarchy = { kind = "intervals", min = 30, max = 45, widths = [0.5, 5] }
[[attribute]]
name = "steps"
type = "integer"
round = 5
hierarchy = { kind = "bounds", min = 0, max = 300, levels = [[1, 20, 40], [1, 40], [40]] }
[[attribute]]
name = "zip"
type = "string"
hierarchy = { kind = "prefix", keep = [3, 1] }
[[attribute]]
name = "mood"
type = "string"
[[attribute]]
name = "day"
type = "date"
hierarchy = { kind = "truncate", levels = ["week", "month", "quarter"], min = "2021-04-07", max = "2021-12-31" }
[[attribute]]
name = "at"
type = "timestamp"
round = "minute"
hierarchy = { kind = "truncate", levels = ["hour", "day", "month", "year"], min = "2021-04-07T10:30:20Z", max = "2022-12-31T00:00:00Z" }
"#;

/// The validator knows only hierarchies.
#[test]
fn validator_accepts_every_codebook_text() {
    let schema = Schema::parse(SCHEMA, "s.toml", Path::new(".")).unwrap();
    let values = [
        ["0", "37", "100"],
        ["30.0", "36.6", "45.0"],
        ["0", "5", "40"],
        ["60617", "12345", "00001"],
        ["good", "\\\\x", "30-39"],
        // First week, month, quarter, hour, day and year begin before the domain.
        ["2021-04-07", "2021-06-09", "2021-12-31"],
        ["2021-04-07T10:31:00Z", "2021-05-01T00:00:00Z", "2022-02-03T04:05:06Z"],
    ];
    for (attribute, values) in values.iter().enumerate() {
        let key = DigestKey([7; 32]);
        let mut book = Codebook::new(Arc::clone(&schema.attributes[attribute]), &key, 100).unwrap();
        for value in values {
            let code = book.encode(RawToken::Untyped(value)).unwrap();
            assert!(code >= FIRST_VALUE, "{value}");
            for level in 0..book.levels() {
                let cell = book.cell(code, level);
                let text = book.text(cell).to_owned();
                let mut spelling = CellValidator::new(&schema);
                let found = spelling.printed_kind(attribute, &text);
                let expected = match () {
                    () if text == "\"*\"" => PrintedCellKind::Suppressed,
                    () if book.is_exact(cell) => PrintedCellKind::Exact,
                    () => PrintedCellKind::Label,
                };
                assert_eq!(found, Some(expected), "{text}");
            }
        }
    }
}

#[test]
fn validator_rejects_texts_of_no_level() {
    let schema = Schema::parse(SCHEMA, "s.toml", Path::new(".")).unwrap();
    let mut spelling = CellValidator::new(&schema);
    for (attribute, text) in [
        (0, "\"30-40\""),
        (0, "\"31-39\""),
        (0, "101"),
        (0, "\"37\""),
        (0, "*"),
        (0, "37.0"),
        (0, "\"60-59\""),
        (1, "\"[36.6,37)\""),
        (1, "36.61"),
        (3, "60617"),
        (2, "\"1-38\""),
    ] {
        assert_eq!(spelling.printed_kind(attribute, text), None, "{text}");
    }
    assert_eq!(spelling.printed_kind(0, "null"), Some(PrintedCellKind::Exact));
}
