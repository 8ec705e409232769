use super::*;
use crate::testing::{AT, field};
use crate::{Field, JsonCodec, Limits, LineFormat, LineLayout};
use proptest::prelude::*;
use throng_core::values::raw::{RawBatch, Token};

fn way(pointer: &str) -> Vec<Step> {
    let step = |segment: &str| segment.parse().map_or_else(|_| Step::Key(segment.to_owned()), Step::Place);
    pointer.split('/').skip(1).map(step).collect()
}

fn layout(pointers: &[&str]) -> LineLayout {
    let nesting: Nesting = pointers.iter().map(|pointer| ((*pointer).to_owned(), way(pointer))).collect();
    LineLayout::new(&LineFormat::Nested(nesting), pointers)
}

fn line(layout: &LineLayout, cells: &[&str]) -> String {
    let mut out = Vec::new();
    layout.write(cells, &mut out);
    String::from_utf8(out).expect("text")
}

#[test]
fn cells_stand_where_their_ways_lead() {
    let layout = layout(&["/id", "/entry/0/resource/value", "/code/coding/1/code", "/entry/0/resource/at"]);
    let cells = ["7", "\"60-69\"", "\"a,]}\"", "null"];
    let written = line(&layout, &cells);
    assert_eq!(
        written,
        r#"{"id":7,"entry":[{"resource":{"value":"60-69","at":null}}],"code":{"coding":[null,{"code":"a,]}"}]}}"#
    );
    let mut read = Vec::new();
    assert_eq!(layout.read(written.as_bytes(), &mut read), Some(()));
    assert_eq!(read, cells);
    assert_eq!(line(&layout, &["", "", "", ""]), "{}");
    assert_eq!(line(&layout, &["", "1", "", ""]), r#"{"entry":[{"resource":{"value":1}}]}"#);
}

#[test]
fn an_element_may_be_the_cell() {
    let layout = layout(&["/pulse/0"]);
    for cell in ["72", "null", "\"*\"", ""] {
        let mut read = Vec::new();
        assert_eq!(layout.read(line(&layout, &[cell]).as_bytes(), &mut read), Some(()), "{cell}");
        assert_eq!(read, [cell]);
    }
    assert_eq!(line(&layout, &["null"]), r#"{"pulse":[null]}"#);
}

#[test]
fn other_spellings_are_not_read() {
    let layout = layout(&["/id", "/x/a", "/x/b", "/s/1/v", "/s/2/v"]);
    let mut read = Vec::new();
    for spelled in [
        "",
        "{",
        "{}}",
        "{} ",
        " {}",
        "[]",
        "null",
        "{\"x\":{}}",
        "{\"s\":[]}",
        "{\"s\":[null]}",
        "{\"s\":[null,null]}",
        "{\"s\":[null,{}]}",
        "{\"s\":[null,{\"v\":1},null]}",
        "{\"s\":[{\"v\":1}]}",
        "{\"s\":[null,{\"v\":1}",
        "{\"s\":[null,{\"v\":1},{\"v\":2},{\"v\":3}]}",
        "{\"x\":{\"b\":1,\"a\":2}}",
        "{\"x\":{\"a\":1,\"a\":2}}",
        "{\"x\":1}",
        "{\"x\":null}",
        "{\"x\":{\"a\":}}",
        "{\"x\":{\"a\":1,}}",
        "{\"x\":{\"a\":1},\"id\":1}",
        "{\"x\":{\"a\":1,\"c\":2}}",
        "{\"x\":{\"a\":{\"c\":2}}}",
        "{\"x.a\":1}",
        "{\"id\":1,\"y\":2}",
    ] {
        assert_eq!(layout.read(spelled.as_bytes(), &mut read), None, "{spelled}");
    }
    for spelled in ["{}", "{\"id\":1}", "{\"s\":[null,null,{\"v\":1}]}", "{\"s\":[null,{\"v\":1}]}"] {
        assert_eq!(layout.read(spelled.as_bytes(), &mut read), Some(()), "{spelled}");
    }
}

const WAYS: [&str; 7] = ["/a", "/b/c", "/b/d/e", "/f/0/g", "/f/0/h", "/f/2/g", "/k\"y/z"];

/// JSON texts of cells, empty for an omitted one.
fn cell() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        Just("null".to_owned()),
        any::<i32>().prop_map(|number| number.to_string()),
        "\\PC{0,6}".prop_map(|text| serde_json::Value::from(text).to_string()),
        Just("\"*\"".to_owned()),
    ]
}

/// What a line says at a pointer, by `serde_json`; none where there is nothing.
fn at(line: &serde_json::Value, pointer: &str) -> Option<serde_json::Value> {
    line.pointer(pointer).cloned()
}

proptest! {
    #[test]
    fn what_is_written_is_read_and_lies_where_its_pointer_leads(
        cells in proptest::collection::vec(cell(), WAYS.len()),
        own in proptest::collection::vec(any::<bool>(), WAYS.len()),
    ) {
        let ways: Vec<&str> = WAYS.iter().zip(&own).filter(|(_, own)| **own).map(|(way, _)| *way).collect();
        let cells: Vec<&str> = cells.iter().zip(&own).filter(|(_, own)| **own).map(|(cell, _)| cell.as_str()).collect();
        let layout = layout(&ways);
        let written = line(&layout, &cells);
        let mut read = vec!["left over".to_owned(); 3];
        prop_assert_eq!(layout.read(written.as_bytes(), &mut read), Some(()));
        prop_assert_eq!(&read, &cells);
        let parsed: serde_json::Value = serde_json::from_str(&written).expect("JSON");
        for (way, cell) in ways.iter().zip(&cells) {
            let expected = (!cell.is_empty()).then(|| serde_json::from_str(cell).expect("a cell is JSON"));
            prop_assert_eq!(at(&parsed, way), expected, "{} of {}", way, written);
        }
    }

    /// Nothing that is read was spelled otherwise: a line that is changed is refused, or says something else.
    #[test]
    fn a_line_is_read_in_one_spelling(
        cells in proptest::collection::vec(cell(), WAYS.len()),
        place in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let layout = layout(&WAYS);
        let cells: Vec<&str> = cells.iter().map(String::as_str).collect();
        let mut bytes = line(&layout, &cells).into_bytes();
        let place = place.index(bytes.len());
        bytes[place] = byte;
        let mut read = Vec::new();
        if layout.read(&bytes, &mut read).is_some() {
            let again: Vec<&str> = read.iter().map(String::as_str).collect();
            prop_assert_eq!(line(&layout, &again).into_bytes(), bytes);
        }
    }

    /// Our own decoder finds the same cells.
    #[test]
    fn a_reader_of_nested_records_finds_the_cells(cells in proptest::collection::vec(-9_i32..9, WAYS.len())) {
        let texts: Vec<String> = cells.iter().map(ToString::to_string).collect();
        let written = line(&layout(&WAYS), &texts.iter().map(String::as_str).collect::<Vec<_>>());
        let fields: Vec<Field> = WAYS.iter().map(|way| field(way)).collect();
        let mut batch = RawBatch::new(WAYS.len());
        JsonCodec::new(&fields, Limits::default()).decode(written.as_bytes(), AT, &mut batch).expect("a record");
        for (attribute, text) in texts.iter().enumerate() {
            prop_assert_eq!(batch.token(0, attribute), Token::Number(text));
        }
    }
}
