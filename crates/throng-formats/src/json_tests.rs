use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::codec_fixtures::{MESSAGE_POSITION, test_field};

fn codec(pointers: &[&str]) -> JsonCodec {
    let fields: Vec<FieldPath> = pointers.iter().map(|p| test_field(p)).collect();
    JsonCodec::new(
        &fields,
        DecodeLimits { max_record_bytes: 4096, max_depth: 8, max_elements: 100, max_repeated_bytes: 1 << 20 },
    )
}

fn rejection_of(codec: &JsonCodec, payload: &[u8]) -> RejectionReason {
    let mut batch = RawBatch::new(8);
    batch.push_row(MESSAGE_POSITION);
    batch.unknown_cells = 3;
    let rejection = codec.decode(payload, MESSAGE_POSITION, &mut batch).unwrap_err();
    assert_eq!((batch.rows(), batch.unknown_cells), (1, 3), "{rejection} left something behind");
    rejection
}

#[test]
fn decode_reads_flat_and_nested_attributes() {
    let codec = codec(&["/age", "/heart/rate", "/name", "/ok", "/none", "/gone", "/list", "/list/1"]);
    let mut batch = RawBatch::new(8);
    let payload = br#" {"heart": {"rate": 61.50, "unit": "bpm"}, "age": -0e1, "name": "a\"\u00e9",
        "ok": true, "none": null, "extra": {"x": [1]}, "list": [1, "zwei" ]} "#;
    codec.decode(payload, MESSAGE_POSITION, &mut batch).unwrap();
    let cells: Vec<RawToken<'_>> = (0..8).map(|attribute| batch.token(0, attribute)).collect();
    let expected = [
        RawToken::Number("-0e1"),
        RawToken::Number("61.50"),
        RawToken::Text("a\"é"),
        RawToken::Bool(true),
        RawToken::Null,
        RawToken::Absent,
        RawToken::Structure("[1, \"zwei\" ]"),
        RawToken::Text("zwei"),
    ];
    assert_eq!(cells, expected);
    assert_eq!(batch.unknown_cells, 2, "heart.unit and extra");
    assert_eq!(batch.coordinates(), [MESSAGE_POSITION]);
}

#[test]
fn invalid_payload_is_rejected_with_its_reason() {
    let codec = codec(&["/a", "/b/c"]);
    let cases: [(&[u8], RejectionReason); 19] = [
        (b"", RejectionReason::Empty),
        (b" \t\r\n", RejectionReason::Empty),
        (b"[1]", RejectionReason::NotAnObject),
        (b"17", RejectionReason::NotAnObject),
        (b"\"text\"", RejectionReason::NotAnObject),
        (b"nul", RejectionReason::Truncated),
        (b"xyz", RejectionReason::MalformedJson),
        (b"{\"a\":1", RejectionReason::Truncated),
        (b"{\"a\":\"x", RejectionReason::Truncated),
        (b"{\"a\":1}}", RejectionReason::TrailingText),
        (b"{\"a\":1} {\"a\":2}", RejectionReason::TrailingText),
        (b"{\"a\":01}", RejectionReason::MalformedJson),
        (b"{\"a\":nan}", RejectionReason::MalformedJson),
        (b"{\"a\":1,}", RejectionReason::MalformedJson),
        (b"{a:1}", RejectionReason::MalformedJson),
        (b"{\"a\":\"\\ud800\"}", RejectionReason::MalformedJson),
        (b"{\"a\":\"\xff\"}", RejectionReason::NotUtf8),
        (b"{\"a\":\"\x01\"}", RejectionReason::MalformedJson),
        (b"\xef\xbb\xbf{\"a\":1}", RejectionReason::MalformedJson),
    ];
    for (payload, expected) in cases {
        assert_eq!(rejection_of(&codec, payload), expected, "{}", payload.escape_ascii());
    }
    let long = format!("{{\"a\":\"{}\"}}", "x".repeat(4096));
    assert_eq!(rejection_of(&codec, long.as_bytes()), RejectionReason::Oversized);
}

#[test]
fn duplicate_keys_on_selected_paths_are_rejected() {
    let codec = codec(&["/a", "/b/c", "/w", "/w/x"]);
    for payload in [
        r#"{"a":1,"a":1}"#,
        r#"{"a":1,"\u0061":2}"#,
        r#"{"a":null,"a":null}"#,
        r#"{"u":1,"v":2,"u":3}"#,
        r#"{"b":{"c":1},"b":{}}"#,
        r#"{"b":{"c":1,"c":2}}"#,
        r#"{"b":{"y":1,"z":0,"y":2}}"#,
        r#"{"w":{"x":1,"x":2}}"#,
        r#"{"w":{"q":1,"q":2}}"#,
    ] {
        assert_eq!(rejection_of(&codec, payload.as_bytes()), RejectionReason::DuplicateKey, "{payload}");
    }
    let mut batch = RawBatch::new(4);
    codec.decode(br#"{"a":1,"b":{"a":1},"c":{"a":1}}"#, MESSAGE_POSITION, &mut batch).unwrap();
}

#[test]
fn nesting_limit_applies_to_selected_and_dropped_values() {
    let codec = codec(&["/a", "/b/c"]);
    let nest = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    let mut batch = RawBatch::new(2);
    for (key, fits) in [(r#"{"a":X}"#, 7), (r#"{"b":{"c":X}}"#, 6), (r#"{"u":X}"#, 7), (r#"{"b":{"u":X}}"#, 6)] {
        let payload = |levels| key.replace('X', &nest(levels));
        codec.decode(payload(fits).as_bytes(), MESSAGE_POSITION, &mut batch).unwrap();
        assert_eq!(rejection_of(&codec, payload(fits + 1).as_bytes()), RejectionReason::TooDeep, "{key}");
        assert_eq!(rejection_of(&codec, payload(1500).as_bytes()), RejectionReason::TooDeep, "{key}");
    }
    // Brackets inside text are no nesting.
    codec.decode(br#"{"a":["[[[[[[[[\"[[[["]}"#, MESSAGE_POSITION, &mut batch).unwrap();
    // A schema pointer may exceed the recursion limit.
    let deep = FieldPath { pointer: vec!["k".into(); 300], elements: None };
    let unlimited = JsonCodec::new(
        &[deep],
        DecodeLimits {
            max_record_bytes: 1 << 20,
            max_depth: usize::MAX,
            max_elements: 100,
            max_repeated_bytes: 1 << 20,
        },
    );
    let payload = format!("{}1{}", "{\"k\":".repeat(300), "}".repeat(300));
    assert_eq!(rejection_of(&unlimited, payload.as_bytes()), RejectionReason::TooDeep);
}

#[test]
fn unknown_keys_follow_the_configured_policy() {
    let strict = codec(&["/a", "/b/c"]).with_unknown(UnknownCellPolicy::Refuse);
    for payload in [r#"{"u":1}"#, r#"{"b":{"u":null}}"#, r#"{"b":5}"#, r#"{"b":[1]}"#] {
        assert_eq!(rejection_of(&strict, payload.as_bytes()), RejectionReason::UnknownAttribute, "{payload}");
        let mut batch = RawBatch::new(2);
        codec(&["/a", "/b/c"]).decode(payload.as_bytes(), MESSAGE_POSITION, &mut batch).unwrap();
        assert_eq!(batch.unknown_cells, 1, "{payload}");
    }
    let mut batch = RawBatch::new(2);
    strict.decode(br#"{"a":1,"b":null}"#, MESSAGE_POSITION, &mut batch).unwrap();
    assert_eq!((batch.token(0, 1), batch.unknown_cells), (RawToken::Absent, 0));
}

const RANDOM_KEYS: [&str; 7] = ["a", "b", "c", "0", "1", "~/é", ""];

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-z\"\\\\\u{1}é😀\\[{]{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((prop::sample::select(&RANDOM_KEYS[..]), inner), 0..5)
                .prop_map(|members| members.into_iter().map(|(k, v)| (k.to_owned(), v)).collect()),
        ]
    })
}

fn json_object() -> impl Strategy<Value = Value> {
    json_value().prop_map(|value| if value.is_object() { value } else { json!({ "a": value }) })
}

fn pointers() -> impl Strategy<Value = Vec<FieldPath>> {
    let pointer = prop::collection::vec(prop::sample::select(&RANDOM_KEYS[..]), 0..4);
    prop::collection::vec(pointer, 1..6).prop_map(|pointers| {
        pointers
            .iter()
            .map(|p| FieldPath { pointer: p.iter().map(|&s| s.to_owned()).collect(), elements: None })
            .collect()
    })
}

fn naive_pointer(field: &FieldPath) -> String {
    field.pointer.iter().map(|segment| format!("/{}", segment.replace('~', "~0").replace('/', "~1"))).collect()
}

fn naive_unknown(value: &Value, path: &mut Vec<String>, fields: &[FieldPath]) -> u64 {
    if fields.iter().any(|f| path.starts_with(&f.pointer)) {
        return 0;
    }
    if !fields.iter().any(|f| f.pointer.starts_with(path)) {
        return 1;
    }
    let mut below = |key: String, value: &Value| {
        path.push(key);
        let count = naive_unknown(value, path, fields);
        path.pop();
        count
    };
    match value {
        Value::Object(members) => members.iter().map(|(k, v)| below(k.clone(), v)).sum(),
        Value::Array(items) => items.iter().enumerate().map(|(i, v)| below(i.to_string(), v)).sum(),
        Value::Null => 0,
        _ => 1,
    }
}

fn escaped(value: &Value) -> String {
    let text = |t: &str| {
        let units: String = t.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect();
        format!("\"{units}\"")
    };
    match value {
        Value::String(t) => text(t),
        Value::Array(items) => format!("[ {}\n]", items.iter().map(escaped).collect::<Vec<_>>().join(" ,")),
        Value::Object(members) => {
            let members: Vec<String> = members.iter().map(|(k, v)| format!("{}\t: {}", text(k), escaped(v))).collect();
            format!("{{ {}\r\n}}", members.join(","))
        }
        other => other.to_string(),
    }
}

proptest! {
    #[test]
    fn decoded_cells_match_parsed_json_value(value in json_object(), fields in pointers(), escape in any::<bool>()) {
        let codec = JsonCodec::new(&fields, DecodeLimits::default());
        let payload = if escape { escaped(&value) } else { value.to_string() };
        let mut batch = RawBatch::new(fields.len());
        prop_assert_eq!(codec.decode(payload.as_bytes(), MESSAGE_POSITION, &mut batch), Ok(()));
        for (attribute, field) in fields.iter().enumerate() {
            let token = batch.token(0, attribute);
            match value.pointer(&naive_pointer(field)) {
                None => prop_assert_eq!(token, RawToken::Absent),
                Some(Value::Null) => prop_assert_eq!(token, RawToken::Null),
                Some(Value::Bool(b)) => prop_assert_eq!(token, RawToken::Bool(*b)),
                Some(Value::String(t)) => prop_assert_eq!(token, RawToken::Text(t)),
                Some(Value::Number(n)) => prop_assert_eq!(token, RawToken::Number(&n.to_string())),
                Some(nested) => {
                    let text = if escape { escaped(nested) } else { nested.to_string() };
                    prop_assert_eq!(token, RawToken::Structure(&text));
                }
            }
        }
        prop_assert_eq!(batch.unknown_cells, naive_unknown(&value, &mut Vec::new(), &fields));
    }

    #[test]
    fn truncated_record_is_rejected(value in json_object(), fields in pointers(), escape in any::<bool>()) {
        let codec = JsonCodec::new(&fields, DecodeLimits::default());
        let payload = if escape { escaped(&value) } else { value.to_string() };
        let mut batch = RawBatch::new(fields.len());
        for end in 0..payload.len() {
            let rejection = codec.decode(&payload.as_bytes()[..end], MESSAGE_POSITION, &mut batch).unwrap_err();
            let expected = match rejection {
                RejectionReason::Truncated | RejectionReason::Empty | RejectionReason::NotUtf8 => true,
                // A number that ends at its decimal point, exponent or sign.
                RejectionReason::MalformedJson => payload[..end].ends_with(['.', 'e', 'E', '+', '-']),
                _ => false,
            };
            prop_assert!(expected, "{} at {}", rejection, end);
            prop_assert_eq!((batch.rows(), batch.unknown_cells), (0, 0));
        }
    }

    #[test]
    fn changed_bytes_are_accepted_only_as_valid_json(
        value in json_object(),
        fields in pointers(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), prop::sample::select(&b"{}[]\",:\\u0e-\x80 a"[..])), 1..4),
    ) {
        let codec = JsonCodec::new(&fields, DecodeLimits::default());
        let sound = value.to_string();
        let mut batch = RawBatch::new(fields.len());
        prop_assert_eq!(codec.decode(sound.as_bytes(), MESSAGE_POSITION, &mut batch), Ok(()));
        let before: Vec<String> = (0..fields.len()).map(|a| format!("{:?}", batch.token(0, a))).collect();
        let mut payload = sound.into_bytes();
        for (index, byte) in changes {
            let at = index.index(payload.len());
            payload[at] = byte;
        }
        let outcome = codec.decode(&payload, MESSAGE_POSITION, &mut batch);
        let syntax = serde_json::from_slice::<IgnoredAny>(&payload).is_ok();
        let tree = serde_json::from_slice::<Value>(&payload);
        match outcome {
            Ok(()) => prop_assert!(syntax),
            Err(RejectionReason::MalformedJson | RejectionReason::Truncated | RejectionReason::TrailingText | RejectionReason::NotUtf8) => {
                prop_assert!(tree.is_err());
            }
            Err(RejectionReason::DuplicateKey | RejectionReason::Empty | RejectionReason::NotAnObject) => {}
            Err(other) => prop_assert!(false, "{}", other),
        }
        prop_assert_eq!(batch.rows(), 1 + usize::from(outcome.is_ok()));
        let after: Vec<String> = (0..fields.len()).map(|a| format!("{:?}", batch.token(0, a))).collect();
        prop_assert_eq!(before, after);
    }
}
