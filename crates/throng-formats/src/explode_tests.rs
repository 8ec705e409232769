//! Compares messages with record arrays with `serde_json`.

use super::codec_fixtures::{MESSAGE_POSITION, element, test_field};
use super::*;
use proptest::prelude::*;
use serde_json::{Value, json};
use throng_core::values::raw_batch::{RawBatch, RawToken, RecordPosition};
use throng_core::values::rejection::RejectionReason;

const LIMITS: DecodeLimits =
    DecodeLimits { max_record_bytes: 1 << 16, max_depth: 12, max_elements: 6, max_repeated_bytes: 200 };

fn codec(pointers: &[&str]) -> JsonCodec {
    let fields: Vec<FieldPath> = pointers.iter().map(|pointer| test_field(pointer)).collect();
    JsonCodec::new(&fields, LIMITS)
}

fn text_of(token: RawToken<'_>) -> Option<Value> {
    Some(match token {
        RawToken::Absent => return None,
        RawToken::Null => Value::Null,
        RawToken::Text(text) | RawToken::Untyped(text) => Value::from(text),
        RawToken::Bool(value) => Value::from(value),
        RawToken::Number(text) | RawToken::Structure(text) => serde_json::from_str(text).expect("JSON"),
    })
}

fn rows(batch: &RawBatch) -> Vec<(RecordPosition, Vec<Option<Value>>)> {
    let row = |row: usize| (0..batch.width()).map(|attribute| text_of(batch.token(row, attribute))).collect();
    (0..batch.rows()).map(|at| (batch.coordinates()[at], row(at))).collect()
}

/// Rows, refused elements, and the number of unknown values.
type ExplodedMessage = (Vec<(RecordPosition, Vec<Option<Value>>)>, Vec<(RecordPosition, RejectionReason)>, u64);

fn read(codec: &JsonCodec, width: usize, text: &str) -> Result<ExplodedMessage, RejectionReason> {
    let mut batch = RawBatch::new(width);
    batch.push_row(RecordPosition { offset: 16, ..MESSAGE_POSITION });
    batch.set(0, RawToken::Text("before"));
    let outcome = codec.decode(text.as_bytes(), MESSAGE_POSITION, &mut batch);
    let mut rows = rows(&batch);
    assert_eq!(rows.remove(0).1[0], Some(json!("before")), "what was there before");
    let (refused, unknown) = (batch.take_refused(), batch.unknown_cells);
    if outcome.is_err() {
        assert_eq!((rows.len(), refused.len(), unknown), (0, 0, 0), "a refused message left something");
    }
    outcome.map(|()| (rows, refused, unknown))
}

#[test]
fn each_element_becomes_a_row_with_enclosing_cells() {
    let codec = codec(&["/id", "/entry/*/resource/value", "/entry/*/at", "/entry/0/at"]);
    let text =
        r#"{"entry":[{"resource":{"value":1.50,"x":0},"at":"a"},{"at":null},{"resource":null}],"id":"b","y":[1]}"#;
    let (found, refused, unknown) = read(&codec, 4, text).expect("a message");
    let id = Some(json!("b"));
    let first = Some(json!("a"));
    let wanted = [
        (element(1), vec![id.clone(), Some(json!(1.5)), first.clone(), first.clone()]),
        (element(2), vec![id.clone(), None, Some(Value::Null), first.clone()]),
        (element(3), vec![id, None, None, first]),
    ];
    assert_eq!((found.as_slice(), refused, unknown), (wanted.as_slice(), Vec::new(), 2));
}

#[test]
fn elements_can_be_scalars_arrays_or_top_level() {
    let (scalars, pairs, bare) = (codec(&["/who", "/bpm/*"]), codec(&["/s/*/0", "/s/*/1"]), codec(&["/*/v"]));
    let (found, ..) = read(&scalars, 2, r#"{"bpm":[61,null,"x"],"who":7}"#).expect("a message");
    assert_eq!(
        found.iter().map(|(_, cells)| cells[1].clone()).collect::<Vec<_>>(),
        [Some(json!(61)), Some(Value::Null), Some(json!("x"))]
    );
    let (found, ..) = read(&pairs, 2, r#"{"s":[[0,61],[5,62]]}"#).expect("a message");
    assert_eq!(found[1].1, [Some(json!(5)), Some(json!(62))]);
    let (found, ..) = read(&bare, 1, " [ {\"v\":1} , {\"v\":2} ] ").expect("a message");
    assert_eq!(found.len(), 2);
    for (text, reason) in [
        ("{\"v\":1}", RejectionReason::NotAnArray),
        ("[]", RejectionReason::NoElements),
        ("null", RejectionReason::NoElements),
        (" ", RejectionReason::Empty),
        ("[{\"v\":1}", RejectionReason::Truncated),
        ("[{\"v\":1}] []", RejectionReason::TrailingText),
        ("[{\"v\":1},]", RejectionReason::MalformedJson),
        ("x", RejectionReason::MalformedJson),
    ] {
        assert_eq!(read(&bare, 1, text), Err(reason), "{text}");
    }
}

#[test]
fn json_message_without_elements_is_rejected_with_reason() {
    let codec = codec(&["/id", "/a/b/*/v"]);
    for (text, reason) in [
        (r#"{"id":1}"#, RejectionReason::NoElements),
        (r#"{"id":1,"a":{"b":[]}}"#, RejectionReason::NoElements),
        (r#"{"id":1,"a":{"b":null}}"#, RejectionReason::NoElements),
        (r#"{"id":1,"a":null}"#, RejectionReason::NoElements),
        (r#"{"id":1,"a":{"b":{"v":1}}}"#, RejectionReason::NotAnArray),
        (r#"{"id":1,"a":{"b":"[1]"}}"#, RejectionReason::NotAnArray),
        (r#"{"id":1,"a":{"b":[1],"b":[1]}}"#, RejectionReason::DuplicateKey),
        (r#"{"id":1,"a":{"b":[{},{},{},{},{},{},{}]}}"#, RejectionReason::TooManyElements),
        (r#"{"id":1,"a":{"b":[{"v":1}]"#, RejectionReason::Truncated),
        (r#"[{"id":1}]"#, RejectionReason::NotAnObject),
    ] {
        assert_eq!(read(&codec, 2, text), Err(reason), "{text}");
    }
    assert_eq!(read(&codec, 2, r#"{"a":{"b":[{},{},{},{},{},{}]}}"#).expect("as many as may be").0.len(), 6);
}

#[test]
fn bad_element_is_rejected_and_others_are_kept() {
    let deep = format!("{{\"v\":{}1{}}}", "[".repeat(20), "]".repeat(20));
    let text = format!(r#"{{"id":1,"e":[{{"v":1}},7,{{"v":2,"v":3}},{deep},null,{{"v":4}}]}}"#);
    let (found, refused, _) = read(&codec(&["/id", "/e/*/v"]), 2, &text).expect("a message");
    let places: Vec<RecordPosition> = found.iter().map(|(place, _)| *place).collect();
    assert_eq!(places, [element(1), element(6)]);
    assert_eq!(
        refused,
        [
            (element(2), RejectionReason::NotAnObject),
            (element(3), RejectionReason::DuplicateKey),
            (element(4), RejectionReason::TooDeep),
            (element(5), RejectionReason::NotAnObject),
        ]
    );
    let strict = codec(&["/id", "/e/*/v"]).with_unknown(UnknownCellPolicy::Refuse);
    let (found, refused, _) = read(&strict, 2, r#"{"id":1,"e":[{"v":1,"x":2},{"v":3}]}"#).expect("a message");
    assert_eq!((found.len(), refused), (1, vec![(element(1), RejectionReason::UnknownAttribute)]));
    assert_eq!(read(&strict, 2, r#"{"id":1,"x":2,"e":[{"v":1}]}"#), Err(RejectionReason::UnknownAttribute));
}

#[test]
fn repeated_enclosing_bytes_are_limited() {
    let codec = codec(&["/id", "/o", "/list/*/a"]);
    let message = |id: usize, elements: usize| {
        let list = vec!["{\"a\":1}"; elements].join(",");
        format!("{{\"id\":\"{}\",\"o\":{{\"x\":1}},\"list\":[{list}]}}", "i".repeat(id))
    };
    let repeated = |id: usize, elements: usize| {
        let mut batch = RawBatch::new(3);
        let outcome = codec.decode(message(id, elements).as_bytes(), MESSAGE_POSITION, &mut batch);
        outcome.map(|()| (batch.rows(), batch.repeated_bytes()))
    };
    // 7 bytes of `o` plus the ID, once per element after the first.
    assert_eq!(repeated(33, 6), Ok((6, 200)));
    assert_eq!(repeated(34, 6), Err(RejectionReason::TooManyElements));
    assert_eq!(repeated(193, 2), Ok((2, 200)));
    assert_eq!(repeated(4_000, 1), Ok((1, 0)));
    let mut batch = RawBatch::new(3);
    for (id, elements) in [(33, 6), (34, 6), (3, 2)] {
        let outcome = codec.decode(message(id, elements).as_bytes(), MESSAGE_POSITION, &mut batch);
        assert_eq!(outcome.is_ok(), id != 34);
    }
    assert_eq!((batch.rows(), batch.repeated_bytes()), (8, 210));
}

const POINTERS: [&str; 5] = ["/id", "/o/x", "/list/*/a", "/list/*/b/c", "/list/*/b/d"];

fn leaf() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-99_i64..99).prop_map(Value::from),
        "[a-c\"\\\\é]{0,3}".prop_map(Value::from),
    ]
}

fn object() -> impl Strategy<Value = Value> {
    let keys = prop_oneof![Just("a"), Just("b"), Just("c"), Just("d"), Just("e"), Just("list")];
    let inner = prop_oneof![
        leaf(),
        proptest::collection::btree_map(keys.clone(), leaf(), 0..4).prop_map(|map| json!(map)),
        proptest::collection::vec(leaf(), 0..3).prop_map(Value::from),
    ];
    proptest::collection::btree_map(keys, inner, 0..5).prop_map(|map| json!(map))
}

proptest! {
    #[test]
    fn exploded_cells_match_json_pointers(
        id in proptest::option::of(leaf()),
        o in proptest::option::of(object()),
        list in proptest::option::of(proptest::collection::vec(prop_oneof![4 => object(), 1 => leaf()], 0..9)),
    ) {
        let mut message = json!({"other": 1});
        for (key, value) in [("id", id), ("o", o), ("list", list.clone().map(Value::from))] {
            if let Some(value) = value {
                message[key] = value;
            }
        }
        let found = read(&codec(&POINTERS), POINTERS.len(), &message.to_string());
        let list = list.unwrap_or_default();
        if list.is_empty() || list.len() > LIMITS.max_elements {
            let reason = if list.is_empty() { RejectionReason::NoElements } else { RejectionReason::TooManyElements };
            prop_assert_eq!(found, Err(reason));
            return Ok(());
        }
        let (found, refused, _) = found.expect("a message");
        let (mut rows, mut strangers) = (Vec::new(), Vec::new());
        for (element, number) in list.iter().zip(1_u32..) {
            let place = RecordPosition { element: number, ..MESSAGE_POSITION };
            if element.is_object() {
                let cell = |pointer: &&str| match pointer.split_once("/*") {
                    Some((_, within)) => element.pointer(within).cloned(),
                    None => message.pointer(pointer).cloned(),
                };
                rows.push((place, POINTERS.iter().map(cell).collect::<Vec<_>>()));
            } else {
                strangers.push((place, RejectionReason::NotAnObject));
            }
        }
        prop_assert_eq!(found, rows);
        prop_assert_eq!(refused, strangers);
    }

    #[test]
    fn every_element_is_a_row_or_rejected(text in "(\\{|\\[|\\}|\\]|,|:|\"list\"|\"a\"|\"id\"|1|null| ){0,24}") {
        if let Ok((rows, refused, _)) = read(&codec(&POINTERS), POINTERS.len(), &text) {
            let message: Value = serde_json::from_str(&text).expect("what was read is JSON");
            let elements = message["list"].as_array().expect("an array").len();
            prop_assert_eq!(rows.len() + refused.len(), elements);
        }
    }
}
