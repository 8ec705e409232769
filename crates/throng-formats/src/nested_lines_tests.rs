use super::*;
use crate::codec_fixtures::{MESSAGE_POSITION, test_field};
use crate::{DecodeLimits, FieldPath, JsonCodec, LineFormat};
use proptest::prelude::*;
use throng_core::line_encoder::LineLayout;
use throng_core::values::raw_batch::{RawBatch, RawToken};

fn way(pointer: &str) -> Vec<NestingStep> {
    let step =
        |segment: &str| segment.parse().map_or_else(|_| NestingStep::Key(segment.to_owned()), NestingStep::ArrayIndex);
    pointer.split('/').skip(1).map(step).collect()
}

fn layout(pointers: &[&str]) -> LineLayout {
    let nesting: NestedPaths = pointers.iter().map(|pointer| ((*pointer).to_owned(), way(pointer))).collect();
    LineFormat::Nested(nesting).layout(pointers)
}

fn line(layout: &LineLayout, cells: &[&str]) -> String {
    let mut out = Vec::new();
    layout.write(cells, &mut out);
    String::from_utf8(out).expect("text")
}

#[test]
fn nested_line_places_cells_at_their_paths() {
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
fn array_element_can_be_a_cell() {
    let layout = layout(&["/pulse/0"]);
    for cell in ["72", "null", "\"*\"", ""] {
        let mut read = Vec::new();
        assert_eq!(layout.read(line(&layout, &[cell]).as_bytes(), &mut read), Some(()), "{cell}");
        assert_eq!(read, [cell]);
    }
    assert_eq!(line(&layout, &["null"]), r#"{"pulse":[null]}"#);
}

#[test]
fn non_canonical_nested_lines_are_refused() {
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

const TEST_POINTERS: [&str; 7] = ["/a", "/b/c", "/b/d/e", "/f/0/g", "/f/0/h", "/f/2/g", "/k\"y/z"];

fn cell() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        Just("null".to_owned()),
        any::<i32>().prop_map(|number| number.to_string()),
        "\\PC{0,6}".prop_map(|text| serde_json::Value::from(text).to_string()),
        Just("\"*\"".to_owned()),
    ]
}

fn value_at(line: &serde_json::Value, pointer: &str) -> Option<serde_json::Value> {
    line.pointer(pointer).cloned()
}

proptest! {
    #[test]
    fn nested_line_round_trip_matches_json_pointers(
        cells in proptest::collection::vec(cell(), TEST_POINTERS.len()),
        own in proptest::collection::vec(any::<bool>(), TEST_POINTERS.len()),
    ) {
        let ways: Vec<&str> = TEST_POINTERS.iter().zip(&own).filter(|(_, own)| **own).map(|(way, _)| *way).collect();
        let cells: Vec<&str> = cells.iter().zip(&own).filter(|(_, own)| **own).map(|(cell, _)| cell.as_str()).collect();
        let layout = layout(&ways);
        let written = line(&layout, &cells);
        let mut read = vec!["left over".to_owned(); 3];
        prop_assert_eq!(layout.read(written.as_bytes(), &mut read), Some(()));
        prop_assert_eq!(&read, &cells);
        let parsed: serde_json::Value = serde_json::from_str(&written).expect("JSON");
        for (way, cell) in ways.iter().zip(&cells) {
            let expected = (!cell.is_empty()).then(|| serde_json::from_str(cell).expect("a cell is JSON"));
            prop_assert_eq!(value_at(&parsed, way), expected, "{} of {}", way, written);
        }
    }

    /// Each line has one encoding.
    #[test]
    fn changed_nested_line_is_refused_or_round_trips(
        cells in proptest::collection::vec(cell(), TEST_POINTERS.len()),
        place in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let layout = layout(&TEST_POINTERS);
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

    #[test]
    fn json_codec_reads_nested_lines(cells in proptest::collection::vec(-9_i32..9, TEST_POINTERS.len())) {
        let texts: Vec<String> = cells.iter().map(ToString::to_string).collect();
        let written = line(&layout(&TEST_POINTERS), &texts.iter().map(String::as_str).collect::<Vec<_>>());
        let fields: Vec<FieldPath> = TEST_POINTERS.iter().map(|way| test_field(way)).collect();
        let mut batch = RawBatch::new(TEST_POINTERS.len());
        JsonCodec::new(&fields, DecodeLimits::default()).decode(written.as_bytes(), MESSAGE_POSITION, &mut batch).expect("a record");
        for (attribute, text) in texts.iter().enumerate() {
            prop_assert_eq!(batch.token(0, attribute), RawToken::Number(text));
        }
    }
}
