use super::*;
use crate::records::json::quoted;
use proptest::prelude::*;

fn cell() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("null".to_owned()),
        any::<i32>().prop_map(|n| n.to_string()),
        ".*".prop_map(|s| quoted(&s)),
        // Control characters have more than one spelling in JSON.
        "[\\x00-\\x1f\"\\\\a]{1,4}".prop_map(|s| quoted(&s)),
    ]
}

fn texts(cells: &[String]) -> Vec<&str> {
    cells.iter().map(String::as_str).collect()
}

/// Found by fuzzing: what is no text by its first character, and would be written as one, or as nothing.
#[test]
fn a_line_is_read_only_as_it_is_written() {
    let layout = LineLayout::new(&LineFormat::Csv { separator: b',' }, &["a", "b"]);
    let mut cells = Vec::new();
    for row in ["7, \"\"", "7,x\"", "null,7", "7,null"] {
        assert_eq!(layout.read(row.as_bytes(), &mut cells), None, "{row}");
    }
    assert_eq!(layout.read(b"7,\"null\"", &mut cells), Some(()));
    assert_eq!(cells, ["7", "\"null\""]);
    let layout = LineLayout::new(&LineFormat::Json, &["a", "b"]);
    assert_eq!(layout.read(br#"{"a":,"b":7}"#, &mut cells), None);
    assert_eq!(layout.read(br#"{"b":7}"#, &mut cells), Some(()));
}

proptest! {
    #[test]
    fn a_line_gives_its_cells_back(
        cells in prop::collection::vec(prop_oneof![3 => cell(), 1 => Just(String::new())], 1..6),
        names in prop::collection::vec(".{0,6}", 6),
    ) {
        let mut names: Vec<String> = names;
        for (i, name) in names.iter_mut().enumerate() { name.push_str(&i.to_string()); }
        let names: Vec<&str> = names.iter().take(cells.len()).map(String::as_str).collect();
        let layout = LineLayout::new(&LineFormat::Json, &names);
        let mut out = Vec::new();
        layout.write(&texts(&cells), &mut out);
        let parsed: serde_json::Value = serde_json::from_slice(&out).unwrap();
        prop_assert_eq!(parsed.as_object().unwrap().len(), cells.iter().filter(|c| !c.is_empty()).count());
        let mut back = Vec::new();
        layout.read(&out, &mut back).unwrap();
        prop_assert_eq!(back, cells);
    }

    #[test]
    fn a_row_gives_its_cells_back(cells in prop::collection::vec(cell(), 1..6)) {
        let names: Vec<String> = (0..cells.len()).map(|i| i.to_string()).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let layout = LineLayout::new(&LineFormat::Csv { separator: b';' }, &names);
        let mut out = Vec::new();
        layout.write(&texts(&cells), &mut out);
        let mut back = Vec::new();
        layout.read(&out, &mut back).unwrap();
        prop_assert_eq!(back, cells);
    }

    #[test]
    fn nothing_else_is_read_as_a_line(noise in ".{0,40}") {
        let layout = LineLayout::new(&LineFormat::Json, &["a", "b"]);
        let mut back = Vec::new();
        if layout.read(noise.as_bytes(), &mut back).is_some() {
            let mut again = Vec::new();
            layout.write(&texts(&back), &mut again);
            prop_assert_eq!(again, noise.as_bytes());
        }
    }
}
