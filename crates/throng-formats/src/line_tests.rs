use super::*;
use proptest::prelude::*;
use throng_core::values::json::quoted;

fn cell() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("null".to_owned()),
        any::<i32>().prop_map(|n| n.to_string()),
        ".*".prop_map(|s| quoted(&s)),
        // Control characters have several encodings in JSON.
        "[\\x00-\\x1f\"\\\\a]{1,4}".prop_map(|s| quoted(&s)),
    ]
}

fn texts(cells: &[String]) -> Vec<&str> {
    cells.iter().map(String::as_str).collect()
}

/// Regression test for unquoted cells, found by fuzzing.
#[test]
fn csv_and_json_accept_only_canonical_lines() {
    let layout = LineFormat::Csv { separator: b',' }.layout(&["a", "b"]);
    let mut cells = Vec::new();
    for row in ["7, \"\"", "7,x\"", "null,7", "7,null"] {
        assert_eq!(layout.read(row.as_bytes(), &mut cells), None, "{row}");
    }
    assert_eq!(layout.read(b"7,\"null\"", &mut cells), Some(()));
    assert_eq!(cells, ["7", "\"null\""]);
    // CSV readers skip blank lines.
    let layout = LineFormat::Csv { separator: b',' }.layout(&["a"]);
    for (cell, line) in [("null", "null"), ("\"null\"", "\"null\""), ("\"\"", "\"\""), ("7", "7")] {
        let mut written = Vec::new();
        layout.write(&[cell], &mut written);
        assert_eq!(written, line.as_bytes());
        assert_eq!(layout.read(&written, &mut cells), Some(()));
        assert_eq!(cells, [cell]);
    }
    assert_eq!(layout.read(b"", &mut cells), None);
    let layout = LineFormat::Json.layout(&["a", "b"]);
    assert_eq!(layout.read(br#"{"a":,"b":7}"#, &mut cells), None);
    assert_eq!(layout.read(br#"{"b":7}"#, &mut cells), Some(()));
}

/// Spreadsheets evaluate texts with certain first characters as formulas.
#[test]
fn csv_formula_text_is_guarded() {
    let layout = LineFormat::Csv { separator: b',' }.layout(&["a", "b"]);
    let mut cells = Vec::new();
    for (cell, field) in [("=1+1", "\"'=1+1\""), ("-5--1", "\"'-5--1\""), ("'@a", "\"''@a\""), ("'a'", "\"'a'\"")] {
        let cell = quoted(cell);
        let mut written = Vec::new();
        layout.write(&[&cell, "-7"], &mut written);
        assert_eq!(String::from_utf8_lossy(&written), format!("{field},-7"));
        assert_eq!(layout.read(&written, &mut cells), Some(()));
        assert_eq!(cells, [cell, "-7".to_owned()]);
    }
    assert_eq!(layout.read(b"\"=1+1\",-7", &mut cells), None, "no line of ours");
    let layout = LineFormat::Json.layout(&["a"]);
    let mut written = Vec::new();
    layout.write(&["\"=1+1\""], &mut written);
    assert_eq!(written, br#"{"a":"=1+1"}"#);
}

#[test]
fn joined_row_with_foreign_values_is_refused() {
    for format in [LineFormat::Json, LineFormat::Csv { separator: b',' }] {
        let row = format.layout(&["a", "b", "c"]);
        let own = format.joined_layout(&["a", "b", "c"], &[0, 2]);
        assert!(own.is_joined() && !row.is_joined());
        let (mut line, mut cells) = (Vec::new(), Vec::new());
        let read = |cells: &[&str], into: &mut Vec<String>| {
            let mut line = Vec::new();
            row.write(cells, &mut line);
            own.read(&line, into)
        };
        own.write(&["7", ""], &mut line);
        assert_eq!(own.read(&line, &mut cells), Some(()));
        assert_eq!(cells, ["7", "null"], "an absent cell is a missing one");
        assert_eq!(read(&["1", "null", "\"x\""], &mut cells), Some(()));
        assert_eq!(cells, ["1", "\"x\""]);
        for foreign in ["0", "\"\"", "\"*\"", "\"null\"", "false"] {
            assert_eq!(read(&["1", foreign, "2"], &mut cells), None, "{foreign} is another group's");
        }
        assert_eq!(own.read(b"", &mut cells), None);
    }
    let own = LineFormat::Json.joined_layout(&["a", "b"], &[0]);
    let mut cells = Vec::new();
    for line in [&br#"{"a":1}"#[..], br#"{"b":null}"#, b"{}", br#"{"a":1,"b":null,"c":1}"#, br#"{"b":null,"a":1}"#] {
        assert_eq!(own.read(line, &mut cells), None, "{}", String::from_utf8_lossy(line));
    }
}

proptest! {
    #[test]
    fn joined_row_round_trip_keeps_cells(
        drawn in prop::collection::vec((cell(), any::<bool>()), 1..6), csv in any::<bool>(),
    ) {
        let names: Vec<String> = (0..drawn.len()).map(|i| format!("n{i}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let format = if csv { LineFormat::Csv { separator: b';' } } else { LineFormat::Json };
        let places: Vec<usize> = (0..drawn.len()).filter(|at| drawn[*at].1).collect();
        let own: Vec<String> = places.iter().map(|at| drawn[*at].0.clone()).collect();
        let layout = format.joined_layout(&names, &places);
        let mut line = Vec::new();
        layout.write(&texts(&own), &mut line);
        let (mut back, mut row) = (Vec::new(), Vec::new());
        layout.read(&line, &mut back).unwrap();
        prop_assert_eq!(&back, &own);
        format.layout(&names).read(&line, &mut row).unwrap();
        for (at, (cell, is_own)) in drawn.iter().enumerate() {
            prop_assert_eq!(row[at].as_str(), if *is_own { cell.as_str() } else { "null" });
        }
        for at in (0..drawn.len()).filter(|at| !drawn[*at].1 && drawn[*at].0 != "null") {
            let mut shown = texts(&row);
            shown[at] = &drawn[at].0;
            let mut line = Vec::new();
            format.layout(&names).write(&shown, &mut line);
            prop_assert_eq!(layout.read(&line, &mut back), None);
        }
    }

    #[test]
    fn json_line_round_trip_keeps_cells(
        cells in prop::collection::vec(prop_oneof![3 => cell(), 1 => Just(String::new())], 1..6),
        names in prop::collection::vec(".{0,6}", 6),
    ) {
        let mut names: Vec<String> = names;
        for (i, name) in names.iter_mut().enumerate() { name.push_str(&i.to_string()); }
        let names: Vec<&str> = names.iter().take(cells.len()).map(String::as_str).collect();
        let layout = LineFormat::Json.layout(&names);
        let mut out = Vec::new();
        layout.write(&texts(&cells), &mut out);
        let parsed: serde_json::Value = serde_json::from_slice(&out).unwrap();
        prop_assert_eq!(parsed.as_object().unwrap().len(), cells.iter().filter(|c| !c.is_empty()).count());
        let mut back = Vec::new();
        layout.read(&out, &mut back).unwrap();
        prop_assert_eq!(back, cells);
    }

    #[test]
    fn csv_row_round_trip_keeps_cells(cells in prop::collection::vec(cell(), 1..6)) {
        let names: Vec<String> = (0..cells.len()).map(|i| i.to_string()).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let layout = LineFormat::Csv { separator: b';' }.layout(&names);
        let mut out = Vec::new();
        layout.write(&texts(&cells), &mut out);
        let mut back = Vec::new();
        layout.read(&out, &mut back).unwrap();
        prop_assert_eq!(back, cells);
    }

    #[test]
    fn random_text_is_refused_or_round_trips(noise in ".{0,40}") {
        let layout = LineFormat::Json.layout(&["a", "b"]);
        let mut back = Vec::new();
        if layout.read(noise.as_bytes(), &mut back).is_some() {
            let mut again = Vec::new();
            layout.write(&texts(&back), &mut again);
            prop_assert_eq!(again, noise.as_bytes());
        }
    }
}
