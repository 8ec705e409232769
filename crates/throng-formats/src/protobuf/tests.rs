//! Compares with `prost-reflect`, which encodes the test data.

use super::{MessageIndex, ProtobufCodec, ProtobufMessage, ProtobufSchema, message_types};
use crate::codec_fixtures::{MESSAGE_POSITION, numbered_test_fields, row};
use crate::{DecodeLimits, RecordDecoder, UnknownCellPolicy};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use proptest::prelude::*;
use prost_reflect::prost::Message as _;
use prost_reflect::{DynamicMessage, Kind, MapKey, ReflectMessage, Value};
use std::collections::HashMap;
use std::sync::LazyLock;
use throng_core::values::raw_batch::{RawBatch, RawToken};
use throng_core::values::rejection::RejectionReason;

const LIMITS: DecodeLimits =
    DecodeLimits { max_record_bytes: 1 << 16, max_depth: 16, max_elements: 6, max_repeated_bytes: 200 };

const SCHEMA: &str = r#"
syntax = "proto3";
package org.example;
import "google/protobuf/timestamp.proto";
import "google/protobuf/duration.proto";
import "google/protobuf/wrappers.proto";
import "device.proto";
message Other { message Inner { int32 v = 1; } }
message Sample {
  double time = 1;
  optional int64 count = 2;
  bool ok = 3;
  Device device = 4;
  Device spare = 5;
  repeated sint32 beats = 6;
  map<string, float> tags = 7;
  google.protobuf.Timestamp at = 8;
  google.protobuf.Duration span = 9;
  google.protobuf.Int32Value level = 10;
  bytes raw = 11;
  oneof place { string city = 12; fixed64 cell = 13; }
  repeated Device worn = 14;
  map<int32, Device> slots = 15;
  Kind kind = 16;
  uint64 big = 17;
  sfixed32 low = 18;
  string heart_rate = 100;
  Sample inner = 101;
  google.protobuf.StringValue note = 102;
}
"#;

const DEVICE_SCHEMA: &str = r#"
syntax = "proto3";
package org.example;
enum Kind { NONE = 0; WRIST = 1; CHEST = 2; }
message Device { string model = 1; Kind kind = 2; }
"#;

fn schema() -> &'static ProtobufSchema {
    static COMPILED: LazyLock<ProtobufSchema> = LazyLock::new(|| {
        ProtobufSchema::compile_proto_texts(SCHEMA, &[("device.proto".to_owned(), DEVICE_SCHEMA.to_owned())])
            .expect("a schema")
    });
    &COMPILED
}

fn sample_type() -> ProtobufMessage {
    schema().message_by_name(Some("org.example.Sample")).expect("a message")
}

fn codec(pointers: &[&str]) -> ProtobufCodec {
    sample_type().codec(&numbered_test_fields(pointers), LIMITS, UnknownCellPolicy::Drop).expect("a codec")
}

fn single_message(text: &str) -> ProtobufMessage {
    let schema = ProtobufSchema::compile_proto_texts(text, &[]).expect("a schema");
    schema.message_by_name(None).expect("one message")
}

fn device(message: &DynamicMessage) -> DynamicMessage {
    let field = message.descriptor().get_field_by_name("device").expect("a field");
    let mut device = DynamicMessage::new(field.kind().as_message().expect("a message").clone());
    device.set_field_by_name("model", Value::String("M\"1".into()));
    device.set_field_by_name("kind", Value::EnumNumber(2));
    device
}

fn part(message: &DynamicMessage, field: &str, values: &[(&str, Value)]) -> Value {
    let field = message.descriptor().get_field_by_name(field).expect("a field");
    let mut inner = DynamicMessage::new(field.kind().as_message().expect("a message").clone());
    for (name, value) in values {
        inner.set_field_by_name(name, value.clone());
    }
    Value::Message(inner)
}

fn sample() -> DynamicMessage {
    let mut sample = DynamicMessage::new(sample_type().0);
    let device = device(&sample);
    let at = part(&sample, "at", &[("seconds", Value::I64(1_621_850_407)), ("nanos", Value::I32(250_999_999))]);
    let span = part(&sample, "span", &[("seconds", Value::I64(-90)), ("nanos", Value::I32(-500_000_000))]);
    let level = part(&sample, "level", &[]);
    for (name, value) in [
        ("time", Value::F64(1.5)),
        ("count", Value::I64(0)),
        ("ok", Value::Bool(true)),
        ("device", Value::Message(device.clone())),
        ("beats", Value::List(vec![Value::I32(60), Value::I32(-61)])),
        ("tags", Value::Map(HashMap::from([(MapKey::String("x".into()), Value::F32(0.1))]))),
        ("at", at),
        ("span", span),
        ("level", level),
        ("raw", Value::Bytes(vec![1, 2, 255].into())),
        ("cell", Value::U64(7)),
        ("worn", Value::List(vec![Value::Message(device.clone())])),
        ("slots", Value::Map(HashMap::from([(MapKey::I32(-1), Value::Message(device))]))),
        ("big", Value::U64(u64::MAX)),
        ("low", Value::I32(-2)),
        ("heart_rate", Value::String("fast".into())),
    ] {
        sample.set_field_by_name(name, value);
    }
    sample
}

#[test]
fn protobuf_values_have_expected_tokens() {
    let wanted = [
        ("/time", RawToken::Number("1.5")),
        ("/count", RawToken::Number("0")),
        ("/ok", RawToken::Bool(true)),
        ("/device/model", RawToken::Text("M\"1")),
        ("/device/kind", RawToken::Text("CHEST")),
        ("/spare/model", RawToken::Absent),
        ("/spare", RawToken::Absent),
        ("/beats", RawToken::Structure("[60,-61]")),
        ("/beats/1", RawToken::Number("-61")),
        ("/beats/2", RawToken::Absent),
        ("/tags/x", RawToken::Number("0.1")),
        ("/tags/y", RawToken::Absent),
        ("/tags", RawToken::Structure("{\"x\":0.1}")),
        ("/at", RawToken::Text("2021-05-24T10:00:07.250Z")),
        ("/at/nanos", RawToken::Number("250999999")),
        ("/span", RawToken::Number("-90.5")),
        ("/level", RawToken::Number("0")),
        ("/raw", RawToken::Text("AQL/")),
        ("/city", RawToken::Absent),
        ("/cell", RawToken::Number("7")),
        ("/worn/0/kind", RawToken::Text("CHEST")),
        ("/worn", RawToken::Structure("[{\"model\":\"M\\\"1\",\"kind\":\"CHEST\"}]")),
        ("/slots/-1/model", RawToken::Text("M\"1")),
        ("/slots/-1/kind", RawToken::Text("CHEST")),
        ("/kind", RawToken::Text("NONE")),
        ("/big", RawToken::Number("18446744073709551615")),
        ("/low", RawToken::Number("-2")),
        ("/heart_rate", RawToken::Text("fast")),
        ("/heartRate", RawToken::Text("fast")),
        ("/device", RawToken::Structure("{\"model\":\"M\\\"1\",\"kind\":\"CHEST\"}")),
        ("/inner/time", RawToken::Absent),
        ("/note", RawToken::Absent),
    ];
    let pointers: Vec<&str> = wanted.iter().map(|(pointer, _)| *pointer).collect();
    let (batch, unknown) = row(&codec(&pointers), pointers.len(), &sample().encode_to_vec()).expect("it can be read");
    for (attribute, (pointer, token)) in wanted.iter().enumerate() {
        assert_eq!(batch.token(0, attribute), *token, "{pointer}");
    }
    assert_eq!(unknown, 0);
    assert_eq!(codec(&pointers).missing(), Vec::<usize>::new());
}

#[test]
fn missing_fields_are_default_or_absent() {
    let wanted = [
        ("/time", RawToken::Number("0")),
        ("/count", RawToken::Absent),
        ("/ok", RawToken::Bool(false)),
        ("/device/kind", RawToken::Absent),
        ("/beats", RawToken::Structure("[]")),
        ("/tags", RawToken::Structure("{}")),
        ("/beats/0", RawToken::Absent),
        ("/at", RawToken::Absent),
        ("/raw", RawToken::Text("")),
        ("/kind", RawToken::Text("NONE")),
        ("/heart_rate", RawToken::Text("")),
        ("/level", RawToken::Absent),
        ("/cell", RawToken::Absent),
    ];
    let pointers: Vec<&str> = wanted.iter().map(|(pointer, _)| *pointer).collect();
    let (batch, _) = row(&codec(&pointers), pointers.len(), &[]).expect("an empty message is one");
    for (attribute, (pointer, token)) in wanted.iter().enumerate() {
        assert_eq!(batch.token(0, attribute), *token, "{pointer}");
    }
    let (batch, _) =
        row(&codec(&["/device/kind", "/level", "/tags/x"]), 3, &[0x22, 0, 0x52, 0, 0x3a, 3, 0x0a, 1, b'x'])
            .expect("read");
    assert_eq!(batch.token(0, 0), RawToken::Text("NONE"));
    assert_eq!(batch.token(0, 1), RawToken::Number("0"));
    assert_eq!(batch.token(0, 2), RawToken::Number("0"));
}

#[test]
fn proto2_missing_fields_are_absent() {
    let message = single_message(
        "syntax = \"proto2\"; message R { optional int32 a = 1 [default = 5]; required string b = 2; repeated int32 c = 3; }",
    );
    let codec =
        message.codec(&numbered_test_fields(&["/a", "/b", "/c"]), LIMITS, UnknownCellPolicy::Drop).expect("a codec");
    let (batch, _) = row(&codec, 3, &[0x18, 7, 0x1a, 2, 8, 9]).expect("read");
    assert_eq!((batch.token(0, 0), batch.token(0, 1)), (RawToken::Absent, RawToken::Absent));
    assert_eq!(batch.token(0, 2), RawToken::Structure("[7,8,9]"));
}

#[test]
fn unselected_protobuf_fields_are_counted_or_refused() {
    let mut payload = sample().encode_to_vec();
    // A field of a later schema version, and another item of an unselected field.
    payload.extend([0xf8, 0x07, 1, 0x72, 0]);
    let (_, unknown) = row(&codec(&["/time", "/device/kind", "/beats/0"]), 3, &payload).expect("read");
    // Thirteen fields of the record, the model of the device, one beat, and the new field.
    assert_eq!(unknown, 16);
    let strict =
        sample_type().codec(&numbered_test_fields(&["/time"]), LIMITS, UnknownCellPolicy::Refuse).expect("a codec");
    assert_eq!(row(&strict, 1, &payload).expect_err("refused"), RejectionReason::UnknownAttribute);
    let whole =
        sample_type().codec(&numbered_test_fields(&["", "/time"]), LIMITS, UnknownCellPolicy::Refuse).expect("a codec");
    assert!(row(&whole, 2, &sample().encode_to_vec()).is_ok());
}

#[test]
fn fields_missing_in_protobuf_schema_are_reported() {
    let asked = ["/time", "/gone", "/device/gone", "/spare/kind", "/tags/any", "/beats/0", "/ok/v", "/beats/x"];
    assert_eq!(codec(&asked).missing(), [1, 2, 6, 7]);
}

#[test]
fn unambiguous_json_names_resolve_to_fields() {
    let field = |number: u32, name: &str, json_name: &str| message_types::MessageField {
        number,
        name: name.into(),
        json_name: json_name.to_owned(),
        of: message_types::ProtobufValueType::Scalar(Kind::Bool),
        form: message_types::FieldCardinality::One { presence: true },
        oneof: None,
    };
    let fields = vec![field(1, "a_b", "aB"), field(2, "a__b", "aB"), field(3, "c_d", "cD"), field(4, "e_f", "c_d")];
    let message = message_types::MessageType { fields, ..Default::default() };
    assert_eq!(
        ["a_b", "a__b", "aB", "cD", "c_d", "e"].map(|name| message.field_index_by_name(name)),
        [Some(0), Some(1), None, Some(2), Some(2), None]
    );
}

#[test]
fn malformed_protobuf_is_rejected_with_reason() {
    let whole = sample().encode_to_vec();
    let pointers =
        ["/time", "/device", "/tags/x", "/city", "/kind", "/heart_rate", "/at", "/span", "/cell", "/inner/inner"];
    let codec = codec(&pointers);
    let reason = |payload: &[u8]| row(&codec, pointers.len(), payload).expect_err("refused");
    // A group start, a group end, undefined wire types, field number 0.
    for byte in [0x0b_u8, 0x0c, 0x0e, 0x0f, 0x00] {
        assert_eq!(reason(&[byte, 0, 0, 0, 0, 0, 0, 0, 0]), RejectionReason::MalformedProtobuf, "{byte:x}");
    }
    assert_eq!(reason(&whole[..whole.len() - 1]), RejectionReason::MalformedProtobuf);
    // Wrong wire type; length beyond the end; unterminated varint.
    assert_eq!(reason(&[0x08, 1]), RejectionReason::MalformedProtobuf);
    assert_eq!(reason(&[0xa2, 0x06, 9]), RejectionReason::MalformedProtobuf);
    assert_eq!(reason(&[0xff; 12]), RejectionReason::MalformedProtobuf);
    assert_eq!(reason(&[0xa2, 0x06, 2, 0xff, 0xfe]), RejectionReason::NotUtf8);
    // Undefined enum number; invalid timestamp and duration.
    assert_eq!(reason(&[0x80, 0x01, 9]), RejectionReason::WrongType);
    assert_eq!(reason(&[0x42, 6, 0x10, 0x80, 0x94, 0xeb, 0xdc, 0x03]), RejectionReason::WrongType);
    assert_eq!(reason(&[0x4a, 4, 0x08, 1, 0x10, 0xff]), RejectionReason::MalformedProtobuf);
    // A repeated singular field, and two members of a oneof.
    assert_eq!(reason(&[0xa2, 0x06, 1, b'a', 0xa2, 0x06, 1, b'b']), RejectionReason::DuplicateKey);
    assert_eq!(reason(&[0x62, 1, b'a', 0x69, 0, 0, 0, 0, 0, 0, 0, 0]), RejectionReason::DuplicateKey);
    assert_eq!(reason(&vec![0; (1 << 16) + 1]), RejectionReason::Oversized);
}

/// Merging entries with one key would create a record that was never sent.
#[test]
fn duplicate_map_entries_are_not_merged() {
    let of = "syntax = \"proto3\"; message T { map<int32, V> slots = 1; map<int32, int32> plain = 2; }
        message V { optional int32 a = 1; optional int32 b = 2; }";
    let schema = ProtobufSchema::compile_proto_texts(of, &[]).expect("a schema");
    let message = schema.message_by_name(Some("T")).expect("a message");
    let pointers = ["/slots/1/a", "/slots/1/b", "/plain/1"];
    let codec = message.codec(&numbered_test_fields(&pointers), LIMITS, UnknownCellPolicy::Drop).expect("a codec");
    let entry = |key: u8, member: u8| vec![0x0a, 6, 8, key, 0x12, 2, member << 3, 7];
    let (batch, _) =
        row(&codec, 3, &[entry(1, 1), entry(2, 2), entry(2, 1)].concat()).expect("other keys are nobody's");
    assert_eq!([0, 1].map(|at| batch.token(0, at)), [RawToken::Number("7"), RawToken::Absent]);
    for twice in [[entry(1, 1), entry(1, 2)].concat(), vec![0x12, 2, 8, 1, 0x12, 2, 8, 1]] {
        assert_eq!(row(&codec, 3, &twice).map(|_| ()), Err(RejectionReason::DuplicateKey), "{twice:?}");
    }
}

#[test]
fn depth_limit_applies_to_selected_messages() {
    let deep = |levels: usize| {
        let mut payload = Vec::new();
        for _ in 0..levels {
            let mut outer = vec![0xaa, 0x06];
            let mut length = payload.len();
            while length >= 0x80 {
                outer.push((length & 0x7f) as u8 | 0x80);
                length >>= 7;
            }
            outer.push(length as u8);
            outer.extend(payload);
            payload = outer;
        }
        payload
    };
    let whole = codec(&["/inner"]);
    assert_eq!(row(&whole, 1, &deep(300)).expect_err("refused"), RejectionReason::TooDeep);
    assert!(row(&whole, 1, &deep(14)).is_ok());
    assert!(row(&codec(&["/time"]), 1, &deep(300)).is_ok());
}

#[test]
fn structure_text_length_is_limited() {
    let payload = [0x72, 0].repeat(20_000);
    assert_eq!(row(&codec(&["/worn"]), 1, &payload).expect_err("refused"), RejectionReason::Oversized);
    assert!(row(&codec(&["/worn/3/kind"]), 1, &payload).is_ok());
}

#[test]
fn message_index_resolves_nested_messages() {
    let schema = schema();
    let name = |numbers: &[u64]| {
        let index = MessageIndex::new(numbers)?;
        Some(schema.message(&index)?.0.full_name().to_owned())
    };
    assert_eq!(name(&[0]).as_deref(), Some("org.example.Other"));
    assert_eq!(name(&[0, 0]).as_deref(), Some("org.example.Other.Inner"));
    assert_eq!(name(&[1]).as_deref(), Some("org.example.Sample"));
    // A map entry, missing messages, too many indexes, too large a number, no index.
    for none in [&[1, 0][..], &[2], &[0, 0, 0], &[0; 9], &[1 << 40], &[]] {
        assert_eq!(name(none), None, "{none:?}");
    }
}

#[test]
fn invalid_protobuf_schema_is_refused() {
    let refused = |text: &str, parts: &[(&str, &str)]| {
        let parts: Vec<(String, String)> = parts.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
        ProtobufSchema::compile_proto_texts(text, &parts).expect_err("no schema").to_string()
    };
    for text in ["{", "message", "syntax = \"proto3\"; message R { Gone x = 1; }", "syntax = \"proto9\";"] {
        assert!(refused(text, &[]).starts_with("not a Protobuf schema"), "{text}");
    }
    assert!(refused("import \"gone.proto\";", &[]).contains("gone.proto"));
    let circle = refused("import \"a\";", &[("a", "import \"b\";"), ("b", "import \"a\";")]);
    assert!(circle.contains('a'), "{circle}");
    assert!(refused(&"message A { ".repeat(10_000), &[]).contains("deep"));
    assert!(refused(&format!("// {}\nmessage \u{1b}[2J", "(".repeat(99)), &[]).contains("not a Protobuf schema"));
    let option = format!("option (x) = {};", "{ a ".repeat(100_000));
    assert!(refused(&option, &[]).contains("deep"));
    assert!(refused(&" ".repeat((1 << 20) + 1), &[]).contains("bytes"));
    assert!(schema().message_by_name(None).is_err() && schema().message_by_name(Some("Sample")).is_err());
}

/// Format in which Confluent's Python client registers a schema.
#[test]
fn base64_descriptor_is_accepted_as_schema() {
    let encoded = |file: &str| {
        let found = schema().message_by_name(Some("org.example.Sample")).expect("a message").0;
        let found = found.parent_pool().get_file_by_name(file).expect("a file");
        STANDARD.encode(found.file_descriptor_proto().encode_to_vec())
    };
    let parts = [("device.proto".to_owned(), encoded("device.proto"))];
    let again = ProtobufSchema::compile_proto_texts(&encoded("<schema>"), &parts).expect("a schema");
    let message = again.message_by_name(Some("org.example.Sample")).expect("a message");
    let codec =
        message.codec(&numbered_test_fields(&["/device/kind"]), LIMITS, UnknownCellPolicy::Drop).expect("a codec");
    let (batch, _) = row(&codec, 1, &sample().encode_to_vec()).expect("read");
    assert_eq!(batch.token(0, 0), RawToken::Text("CHEST"));
    assert!(ProtobufSchema::compile_proto_texts("AAAA", &[]).is_err(), "Base64 of nothing");
}

#[test]
fn comments_and_strings_do_not_count_as_nesting() {
    assert_eq!(nesting_of("a { b [ ( ) ] }"), 3);
    assert_eq!(nesting_of("// {{{\n/* {{{ \n {{ */ { '{{{' \"{{\\\"{{\" }"), 1);
    assert_eq!(nesting_of("{ // }\n { // }\n {"), 3);
    assert_eq!(nesting_of("{ # /* \n { # ' \n { # // [ \n [ */"), 5, "nothing of such a comment hides brackets");
}

fn nesting_of(text: &str) -> usize {
    super::schema::nesting(text)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn protobuf_values_round_trip(
        long: i64, double: f64, float: f32, big: u64, low: i32, text in "\\PC{0,40}",
        beats in prop::collection::vec(any::<i32>(), 0..5), kind in 0..3_i32,
    ) {
        let mut message = DynamicMessage::new(sample_type().0);
        for (name, value) in [
            ("count", Value::I64(long)), ("time", Value::F64(double)), ("big", Value::U64(big)), ("low", Value::I32(low)),
            ("heart_rate", Value::String(text.clone())), ("kind", Value::EnumNumber(kind)),
            ("beats", Value::List(beats.iter().copied().map(Value::I32).collect())),
            ("tags", Value::Map(HashMap::from([(MapKey::String(text.clone()), Value::F32(float))]))),
        ] {
            message.set_field_by_name(name, value);
        }
        let asked = ["/count", "/time", "/big", "/low", "/heart_rate", "/kind", "/beats", "/tags"];
        let (batch, unknown) = row(&codec(&asked), asked.len(), &message.encode_to_vec()).expect("read");
        prop_assert_eq!(unknown, 0);
        prop_assert_eq!(batch.token(0, 0), RawToken::Number(&long.to_string()));
        if let RawToken::Number(text) = batch.token(0, 1) { prop_assert_eq!(text.parse::<f64>().ok(), Some(double)); }
        prop_assert_eq!(matches!(batch.token(0, 1), RawToken::Number(_)), double.is_finite());
        prop_assert_eq!(batch.token(0, 2), RawToken::Number(&big.to_string()));
        prop_assert_eq!(batch.token(0, 3), RawToken::Number(&low.to_string()));
        prop_assert_eq!(batch.token(0, 4), RawToken::Text(&text));
        prop_assert_eq!(batch.token(0, 5), RawToken::Text(["NONE", "WRIST", "CHEST"][kind as usize]));
        let listed = serde_json::to_string(&beats).expect("JSON");
        prop_assert_eq!(batch.token(0, 6), RawToken::Structure(&listed));
        if float.is_finite() {
            let RawToken::Structure(json) = batch.token(0, 7) else { panic!("a structure") };
            let read: HashMap<String, f32> = serde_json::from_str(json).expect("JSON");
            prop_assert_eq!(read, HashMap::from([(text, float)]));
        }
    }

    #[test]
    fn changed_protobuf_bytes_are_decoded_or_rejected(
        at: prop::sample::Index, byte: u8, cut: prop::sample::Index, noise in prop::collection::vec(any::<u8>(), 0..60),
    ) {
        let mut payload = sample().encode_to_vec();
        let place = at.index(payload.len());
        payload[place] = byte;
        payload.truncate(cut.index(payload.len()) + 1);
        let asked = ["/count", "/device", "/beats/1", "/tags/x", "/at", "/span", "/big", "/heart_rate", ""];
        let codec = codec(&asked);
        for payload in [payload, noise] {
            let mut batch = RawBatch::new(asked.len());
            let outcome = codec.decode(&payload, MESSAGE_POSITION, &mut batch);
            prop_assert_eq!(batch.rows(), usize::from(outcome.is_ok()));
            prop_assert!(outcome.is_ok() || batch.unknown_cells == 0);
            let Ok(twin) = DynamicMessage::decode(sample_type().0, payload.as_slice()) else { continue };
            if outcome.is_ok() {
                let big = twin.get_field_by_name("big").and_then(|v| v.as_u64()).expect("a number");
                prop_assert_eq!(batch.token(0, 6), RawToken::Number(&big.to_string()));
                let rate = twin.get_field_by_name("heart_rate").expect("a field");
                prop_assert_eq!(batch.token(0, 7), RawToken::Text(rate.as_str().expect("text")));
                let counted = twin.has_field_by_name("count");
                prop_assert_eq!(batch.token(0, 0) != RawToken::Absent, counted);
            }
        }
    }
}
