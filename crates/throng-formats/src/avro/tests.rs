//! Compares with `apache-avro`, which encodes the test data.

use super::*;
use crate::FieldPath;
use crate::codec_fixtures::{MESSAGE_POSITION, element, numbered_test_fields, row, row_tokens};
use apache_avro::types::Value;
use apache_avro::writer::datum::GenericDatumWriter;
use apache_avro::{Days, Decimal, Duration, Millis, Months, Schema};
use proptest::prelude::*;
use std::collections::HashMap;
use throng_core::values::raw_batch::RawToken;

const LIMITS: DecodeLimits =
    DecodeLimits { max_record_bytes: 1 << 16, max_depth: 16, max_elements: 100, max_repeated_bytes: 200 };

const SCHEMA: &str = r#"{"type": "record", "name": "Sample", "namespace": "org.example", "fields": [
    {"name": "time", "type": "double"},
    {"name": "count", "type": ["null", "long"]},
    {"name": "ok", "type": "boolean"},
    {"name": "device", "type": {"type": "record", "name": "Device", "fields": [
        {"name": "model", "type": "string"},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["WRIST", "CHEST"]}}]}},
    {"name": "spare", "type": ["null", "Device"]},
    {"name": "beats", "type": {"type": "array", "items": "int"}},
    {"name": "tags", "type": {"type": "map", "values": "float"}},
    {"name": "day", "type": {"type": "int", "logicalType": "date"}},
    {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
    {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
    {"name": "raw", "type": "bytes"},
    {"name": "clock", "type": {"type": "int", "logicalType": "time-millis"}},
    {"name": "id", "type": {"type": "string", "logicalType": "uuid"}},
    {"name": "span", "type": {"type": "fixed", "name": "Span", "size": 12, "logicalType": "duration"}}
]}"#;

fn codec(schema: &str, pointers: &[&str]) -> AvroCodec {
    AvroCodec::new(schema, &numbered_test_fields(pointers), LIMITS, UnknownCellPolicy::Drop).expect("an Avro schema")
}

fn datum(schema: &str, value: Value) -> Vec<u8> {
    let schema = Schema::parse_str(schema).expect("an Avro schema");
    let writer = GenericDatumWriter::builder(&schema).build().expect("a writer");
    writer.write_value_to_vec(value).expect("a value of it")
}

fn record(fields: &[(&str, Value)]) -> Value {
    Value::Record(fields.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect())
}

fn device() -> Value {
    record(&[("model", Value::String("M\"1".into())), ("kind", Value::Enum(1, "CHEST".into()))])
}

fn sample() -> Value {
    record(&[
        ("time", Value::Double(1.5)),
        ("count", Value::Union(1, Box::new(Value::Long(-7)))),
        ("ok", Value::Boolean(true)),
        ("device", device()),
        ("spare", Value::Union(0, Box::new(Value::Null))),
        ("beats", Value::Array(vec![Value::Int(60), Value::Int(-61)])),
        ("tags", Value::Map(HashMap::from([("x".to_owned(), Value::Float(0.1))]))),
        ("day", Value::Date(18_771)),
        ("at", Value::TimestampMicros(1_621_850_407_250_999)),
        ("price", Value::Decimal(Decimal::from(vec![0xff, 0x00]))),
        ("raw", Value::Bytes(vec![1, 2, 255])),
        ("clock", Value::TimeMillis(36_307_250)),
        ("id", Value::Uuid("3a1e0d2c-7b1f-4d8e-9a53-0c9b7a6d5e4f".parse().expect("a UUID"))),
        ("span", Value::Duration(Duration::new(Months::new(1), Days::new(2), Millis::new(3)))),
    ])
}

#[test]
fn avro_values_have_expected_tokens() {
    let wanted = [
        ("/time", RawToken::Number("1.5")),
        ("/count", RawToken::Number("-7")),
        ("/ok", RawToken::Bool(true)),
        ("/device/model", RawToken::Text("M\"1")),
        ("/device/kind", RawToken::Text("CHEST")),
        ("/spare/model", RawToken::Absent),
        ("/spare", RawToken::Null),
        ("/beats", RawToken::Structure("[60,-61]")),
        ("/beats/1", RawToken::Number("-61")),
        ("/beats/2", RawToken::Absent),
        ("/tags/x", RawToken::Number("0.1")),
        ("/tags/y", RawToken::Absent),
        ("/day", RawToken::Text("2021-05-24")),
        ("/at", RawToken::Text("2021-05-24T10:00:07.250Z")),
        ("/price", RawToken::Number("-2.56")),
        ("/raw", RawToken::Text("AQL/")),
        ("/clock", RawToken::Text("10:05:07.250")),
        ("/id", RawToken::Text("3a1e0d2c-7b1f-4d8e-9a53-0c9b7a6d5e4f")),
        ("/device", RawToken::Structure("{\"model\":\"M\\\"1\",\"kind\":\"CHEST\"}")),
        ("/span", RawToken::Text("AQAAAAIAAAADAAAA")),
    ];
    let pointers: Vec<&str> = wanted.iter().map(|(pointer, _)| *pointer).collect();
    let (batch, unknown) =
        row(&codec(SCHEMA, &pointers), pointers.len(), &datum(SCHEMA, sample())).expect("it can be read");
    for (attribute, (pointer, token)) in wanted.iter().enumerate() {
        assert_eq!(batch.token(0, attribute), *token, "{pointer}");
    }
    assert_eq!(unknown, 0);
}

#[test]
fn unselected_avro_fields_are_counted_or_refused() {
    let payload = datum(SCHEMA, sample());
    let (_, unknown) = row(&codec(SCHEMA, &["/time", "/device/kind", "/beats/0"]), 3, &payload).expect("read");
    // Eleven fields of the record, the model of the device, one beat.
    assert_eq!(unknown, 13);
    let strict =
        AvroCodec::new(SCHEMA, &numbered_test_fields(&["/time"]), LIMITS, UnknownCellPolicy::Refuse).expect("a schema");
    assert_eq!(row(&strict, 1, &payload).expect_err("refused"), RejectionReason::UnknownAttribute);
}

#[test]
fn fields_missing_in_avro_schema_are_reported() {
    let codec = codec(SCHEMA, &["/time", "/gone", "/device/gone", "/spare/kind", "/tags/any", "/beats/0"]);
    assert_eq!(codec.missing(), [1, 2]);
}

#[test]
fn non_finite_avro_floats_are_text() {
    let schema = r#"{"type": "record", "name": "R", "fields": [
        {"name": "a", "type": "double"}, {"name": "b", "type": "float"}]}"#;
    let payload = datum(schema, record(&[("a", Value::Double(f64::NAN)), ("b", Value::Float(f32::NEG_INFINITY))]));
    let (batch, _) = row(&codec(schema, &["/a", "/b"]), 2, &payload).expect("read");
    assert_eq!((batch.token(0, 0), batch.token(0, 1)), (RawToken::Text("NaN"), RawToken::Text("infinite")));
}

#[test]
fn avro_schema_parts_and_recursive_types_are_supported() {
    let part =
        r#"{"type": "record", "name": "Key", "namespace": "k", "fields": [{"name": "userId", "type": "string"}]}"#;
    let whole = r#"{"type": "record", "name": "V", "fields": [{"name": "key", "type": "k.Key"}]}"#;
    let codec_of_parts = AvroCodec::with_schema_parts(
        whole,
        &[part.to_owned()],
        &numbered_test_fields(&["/key/userId"]),
        LIMITS,
        UnknownCellPolicy::Drop,
    )
    .expect("a schema in two parts");
    let (batch, _) = row(&codec_of_parts, 1, b"\x04ab").expect("read");
    assert_eq!(batch.token(0, 0), RawToken::Text("ab"));
    assert!(
        AvroCodec::with_schema_parts(whole, &[], &numbered_test_fields(&["/key"]), LIMITS, UnknownCellPolicy::Drop)
            .is_err()
    );

    let list = r#"{"type": "record", "name": "L", "fields": [
        {"name": "v", "type": "int"}, {"name": "next", "type": ["null", "L"]}]}"#;
    let deep = |depth: usize| {
        let mut payload = Vec::new();
        for _ in 0..depth {
            payload.extend([2, 2]);
        }
        payload.extend([2, 0]);
        payload
    };
    let codec = codec(list, &["/next/next/v"]);
    assert_eq!(row(&codec, 1, &deep(3)).expect("read").0.token(0, 0), RawToken::Number("1"));
    assert_eq!(row(&codec, 1, &deep(300)).expect_err("refused"), RejectionReason::TooDeep);
}

#[test]
fn zero_byte_items_are_limited() {
    let schema =
        r#"{"type": "record", "name": "R", "fields": [{"name": "a", "type": {"type": "array", "items": "null"}}]}"#;
    let mut payload = Vec::new();
    // 2⁴⁰ nulls in one block, in eight bytes.
    let mut rest = 1_u64 << 41;
    while rest >= 0x80 {
        payload.push((rest & 0x7f) as u8 | 0x80);
        rest >>= 7;
    }
    payload.extend([rest as u8, 0]);
    for pointer in ["/a", "/b", "/a/0"] {
        assert_eq!(row(&codec(schema, &[pointer]), 1, &payload).expect_err("refused"), RejectionReason::Oversized);
    }
}

#[test]
fn empty_nested_records_are_limited() {
    // Many records without bytes.
    let mut inner = r#"{"type": "record", "name": "R0", "fields": []}"#.to_owned();
    for level in 1..=12 {
        let before = level - 1;
        inner = format!(
            r#"{{"type": "record", "name": "R{level}", "fields": [{{"name": "a", "type": {inner}}}, {{"name": "b", "type": "R{before}"}}]}}"#
        );
    }
    let schema = format!(
        r#"{{"type": "record", "name": "R", "fields": [{{"name": "x", "type": {{"type": "array", "items": {inner}}}}}]}}"#
    );
    for pointer in ["/x", "/y", "/x/3"] {
        let outcome = row(&codec(&schema, &[pointer]), 1, &[0xd0, 0x0f, 0]);
        assert_eq!(outcome.expect_err("refused"), RejectionReason::Oversized, "{pointer}");
    }
}

#[test]
fn type_nested_in_schema_part_is_resolved() {
    let part = r#"{"type": "record", "name": "Outer", "namespace": "k", "fields": [
        {"name": "inner", "type": {"type": "record", "name": "Inner", "fields": [{"name": "v", "type": "int"}]}}]}"#;
    let whole = r#"{"type": "record", "name": "W", "fields": [{"name": "x", "type": "k.Inner"}, {"name": "y", "type": "k.Outer"}]}"#;
    let codec = AvroCodec::with_schema_parts(
        whole,
        &[part.to_owned()],
        &numbered_test_fields(&["/x/v", "/y/inner/v"]),
        LIMITS,
        UnknownCellPolicy::Drop,
    );
    let (batch, _) = row(&codec.expect("a schema in two parts"), 2, &[2, 4]).expect("read");
    assert_eq!((batch.token(0, 0), batch.token(0, 1)), (RawToken::Number("1"), RawToken::Number("2")));
}

#[test]
fn invalid_avro_schema_is_refused() {
    for text in ["", "{", "\"nothing\"", r#"{"type": "record", "name": "R"}"#] {
        let error = AvroCodec::new(text, &[], LIMITS, UnknownCellPolicy::Drop).expect_err("no schema");
        assert!(error.to_string().starts_with("not an Avro schema: "), "{error}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn avro_values_round_trip(long: i64, double: f64, float: f32, text in "\\PC{0,40}", beats in prop::collection::vec(any::<i32>(), 0..5)) {
        let schema = r#"{"type": "record", "name": "R", "fields": [
            {"name": "l", "type": "long"}, {"name": "d", "type": "double"}, {"name": "f", "type": "float"},
            {"name": "t", "type": "string"}, {"name": "b", "type": {"type": "array", "items": "int"}}]}"#;
        let payload = datum(schema, record(&[
            ("l", Value::Long(long)), ("d", Value::Double(double)), ("f", Value::Float(float)),
            ("t", Value::String(text.clone())), ("b", Value::Array(beats.iter().copied().map(Value::Int).collect())),
        ]));
        let (batch, unknown) = row(&codec(schema, &["/l", "/d", "/f", "/t", "/b"]), 5, &payload).expect("read");
        prop_assert_eq!(unknown, 0);
        prop_assert_eq!(batch.token(0, 0), RawToken::Number(&long.to_string()));
        if let RawToken::Number(text) = batch.token(0, 1) { prop_assert_eq!(text.parse::<f64>().ok(), Some(double)); }
        if let RawToken::Number(text) = batch.token(0, 2) { prop_assert_eq!(text.parse::<f32>().ok(), Some(float)); }
        prop_assert_eq!(matches!(batch.token(0, 1), RawToken::Number(_)), double.is_finite());
        prop_assert_eq!(matches!(batch.token(0, 2), RawToken::Number(_)), float.is_finite());
        prop_assert_eq!(batch.token(0, 3), RawToken::Text(&text));
        let listed = serde_json::to_string(&beats).expect("JSON");
        prop_assert_eq!(batch.token(0, 4), RawToken::Structure(&listed));
    }

    #[test]
    fn changed_avro_bytes_are_decoded_or_rejected(at: prop::sample::Index, byte: u8, cut: prop::sample::Index, noise in prop::collection::vec(any::<u8>(), 0..60)) {
        let mut payload = datum(SCHEMA, sample());
        let place = at.index(payload.len());
        payload[place] = byte;
        payload.truncate(cut.index(payload.len()) + 1);
        let codec = codec(SCHEMA, &["/count", "/device", "/beats/1", "/tags/x", "/price", "/span"]);
        for payload in [payload, noise] {
            let mut batch = RawBatch::new(6);
            let outcome = codec.decode(&payload, MESSAGE_POSITION, &mut batch);
            prop_assert_eq!(batch.rows(), usize::from(outcome.is_ok()));
            prop_assert!(outcome.is_ok() || batch.unknown_cells == 0);
        }
    }
}

fn texts(schema: &str, datum: &[u8], pointer: &str) -> String {
    let fields = [(0, FieldPath::from_segments(vec![pointer.to_owned()]))];
    let codec = AvroCodec::new(schema, &fields, DecodeLimits::default(), UnknownCellPolicy::Drop).expect("a schema");
    let mut batch = RawBatch::new(1);
    codec.decode(datum, MESSAGE_POSITION, &mut batch).expect("a datum");
    match batch.token(0, 0) {
        RawToken::Text(text) => text.to_owned(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn type_promotion_keeps_text() {
    let of = |kind: &str| format!(r#"{{"type":"record","name":"r","fields":[{{"name":"who","type":{kind}}}]}}"#);
    for name in ["alice", "größe", ""] {
        let datum = [&[2 * name.len() as u8][..], name.as_bytes()].concat();
        assert_eq!(texts(&of("\"bytes\""), &datum, "who"), texts(&of("\"string\""), &datum, "who"));
    }
    let raw: Vec<u8> = (0x61..0x71).collect();
    let fixed = r#"{"type":"fixed","name":"f","size":16}"#;
    let uuid = r#"{"type":"fixed","name":"f","size":16,"logicalType":"uuid"}"#;
    assert_eq!(texts(&of(fixed), &raw, "who"), texts(&of(uuid), &raw, "who"));
    assert_eq!(texts(&of("\"bytes\""), &[4, 0xff, 0xfe], "who"), "//4=");
}

#[test]
fn hostile_avro_schema_is_limited() {
    let nested = |name: &str, inner: &str| {
        let inner = (0..100).fold(inner.to_owned(), |inner, _| format!(r#"{{"type":"array","items":{inner}}}"#));
        format!(r#"{{"type":"record","name":"{name}","fields":[{{"name":"a","type":{inner}}}]}}"#)
    };
    let parts: Vec<String> = (0..63)
        .map(|part| {
            nested(&format!("r{part}"), &if part == 62 { "\"int\"".into() } else { format!("\"r{}\"", part + 1) })
        })
        .collect();
    let fields = [(0, FieldPath::from_segments(vec!["a".to_owned()]))];
    let deep = |parts: &[String]| {
        AvroCodec::with_schema_parts(
            &nested("top", "\"r0\""),
            parts,
            &fields,
            DecodeLimits::default(),
            UnknownCellPolicy::Drop,
        )
        .map(drop)
    };
    // 6,400 nested arrays; depending on the order of the parts, they are compiled or refused.
    let reversed: Vec<String> = parts.iter().rev().cloned().collect();
    for error in [deep(&parts), deep(&reversed)].into_iter().filter_map(Result::err) {
        assert!(error.to_string().contains("nests"), "{error}");
    }
    // The number of paths through nested unions multiplies.
    let records = |stem: &str, inner: &str| {
        let each = |n: usize| {
            format!(
                r#"{{"type":"record","name":"{stem}{n}","fields":[{{"name":"b","type":{}}}]}}"#,
                if n == 0 { inner.to_owned() } else { "\"shared\"".to_owned() }
            )
        };
        format!("[{}]", (0..600).map(each).collect::<Vec<_>>().join(","))
    };
    let leaf = r#"{"type":"record","name":"leaf","fields":[{"name":"x","type":"int"}]}"#;
    let below: Vec<String> = (0..600)
        .map(|n| format!(r#"{{"type":"record","name":"l{n}","fields":[{{"name":"x","type":"int"}}]}}"#))
        .collect();
    let shared =
        format!(r#"{{"type":"record","name":"shared","fields":[{{"name":"x","type":[{leaf},{}]}}]}}"#, below.join(","));
    let wide =
        format!(r#"{{"type":"record","name":"top","fields":[{{"name":"a","type":{}}}]}}"#, records("u", &shared));
    let codec = |way: &[&str]| {
        let fields = [(0, FieldPath::from_segments(way.iter().map(|segment| (*segment).to_owned()).collect()))];
        AvroCodec::new(&wide, &fields, DecodeLimits::default(), UnknownCellPolicy::Drop)
    };
    assert!(codec(&["a", "b", "x", "x"]).is_ok(), "the first branch leads there");
    let error = codec(&["a", "b", "x", "y"]).map(drop).expect_err("360,000 places");
    assert!(error.to_string().contains("places"), "{error}");
}

const SERIES_SCHEMA: &str = r#"{"type": "record", "name": "Series", "fields": [
    {"name": "user", "type": "string"},
    {"name": "samples", "type": ["null", "int", {"type": "array", "items": ["null", "int", {"type": "record", "name": "Point", "fields": [
        {"name": "offset", "type": "int"},
        {"name": "bpm", "type": ["null", "double"]},
        {"name": "spare", "type": "string"}]}]}]},
    {"name": "end", "type": "long"}
]}"#;

fn series(samples: Value) -> Vec<u8> {
    datum(SERIES_SCHEMA, record(&[("user", Value::String("u".into())), ("samples", samples), ("end", Value::Long(9))]))
}

fn point(offset: i32, bpm: Option<f64>) -> Value {
    let bpm = bpm.map_or(Value::Union(0, Box::new(Value::Null)), |bpm| Value::Union(1, Box::new(Value::Double(bpm))));
    let point = record(&[("offset", Value::Int(offset)), ("bpm", bpm), ("spare", Value::String("s".into()))]);
    Value::Union(2, Box::new(point))
}

fn array(points: Vec<Value>) -> Value {
    Value::Union(2, Box::new(Value::Array(points)))
}

fn points() -> AvroCodec {
    let within = |name: &str| FieldPath { pointer: vec!["samples".to_owned(), name.to_owned()], elements: Some(1) };
    let fields = [
        (0, FieldPath::top_level("user")),
        (1, within("offset")),
        (2, within("bpm")),
        (3, FieldPath::top_level("end")),
    ];
    let limits = DecodeLimits { max_elements: 4, ..LIMITS };
    AvroCodec::new(SERIES_SCHEMA, &fields, limits, UnknownCellPolicy::Drop).expect("an Avro schema")
}

#[test]
fn avro_array_elements_become_rows() {
    let codec = points();
    assert_eq!(codec.missing(), Vec::<usize>::new(), "what is in elements is there");
    let mut batch = RawBatch::new(4);
    let payload = series(array(vec![
        point(0, Some(61.5)),
        Value::Union(1, Box::new(Value::Int(7))),
        point(5, None),
        Value::Union(0, Box::new(Value::Null)),
    ]));
    codec.decode(&payload, MESSAGE_POSITION, &mut batch).expect("a message");
    let (user, end) = (RawToken::Text("u"), RawToken::Number("9"));
    assert_eq!(batch.rows(), 2);
    assert_eq!(row_tokens(&batch, 0), [user, RawToken::Number("0"), RawToken::Number("61.5"), end]);
    assert_eq!(row_tokens(&batch, 1), [user, RawToken::Number("5"), RawToken::Null, end]);
    assert_eq!(batch.coordinates(), [element(1), element(3)]);
    assert_eq!(batch.unknown_cells, 2, "the spare text of each point");
    let stranger = RejectionReason::NotAnObject;
    assert_eq!(batch.take_refused(), [(element(2), stranger), (element(4), stranger)]);
}

#[test]
fn invalid_avro_array_rejects_message() {
    let codec = points();
    let refused = |samples: Value| row(&codec, 4, &series(samples)).expect_err("a refusal");
    assert_eq!(refused(Value::Union(0, Box::new(Value::Null))), RejectionReason::NoElements);
    assert_eq!(refused(Value::Union(1, Box::new(Value::Int(3)))), RejectionReason::NotAnArray);
    assert_eq!(refused(array(Vec::new())), RejectionReason::NoElements);
    assert_eq!(refused(array((0..5).map(|n| point(n, None)).collect())), RejectionReason::TooManyElements);
    assert!(row(&codec, 4, &series(array((0..4).map(|n| point(n, None)).collect()))).is_ok());
    let whole = series(array(vec![point(1, Some(2.0)), point(3, None)]));
    for cut in 0..whole.len() {
        let mut batch = RawBatch::new(4);
        assert!(codec.decode(&whole[..cut], MESSAGE_POSITION, &mut batch).is_err(), "cut at {cut}");
        assert_eq!((batch.rows(), batch.take_refused().len()), (0, 0));
    }
}

#[test]
fn duplicate_avro_map_key_is_rejected() {
    const MAPS_SCHEMA: &str = r#"{"type": "record", "name": "Maps", "fields": [
        {"name": "m", "type": {"type": "map", "values": {"type": "array", "items": "int"}}},
        {"name": "n", "type": {"type": "map", "values": {"type": "map", "values": "int"}}}]}"#;
    let length = |count: usize| u8::try_from(count * 2).expect("a short one");
    let text = |key: &str| [&[length(key.len())], key.as_bytes()].concat();
    let map = |entries: &[(&str, Vec<u8>)]| {
        let inner: Vec<u8> = entries.iter().flat_map(|(key, value)| [text(key), value.clone()].concat()).collect();
        [vec![length(entries.len())], inner, vec![0]].concat()
    };
    let list = |value: u8| vec![2, value * 2, 0];
    let one = |key: &str| map(&[(key, vec![2])]);
    let each = FieldPath { pointer: ["m", "entry"].map(str::to_owned).to_vec(), elements: Some(2) };
    let exploding = AvroCodec::new(MAPS_SCHEMA, &[(0, each)], LIMITS, UnknownCellPolicy::Drop).expect("a schema");
    let inside = codec(MAPS_SCHEMA, &["/n/1/a", "/n/1/b"]);
    let twice = Err(RejectionReason::DuplicateKey);
    for (of_m, of_n, exploded, taken) in [
        (["entry", "x"], ["1", "2"], Ok(1), Ok(1)),
        (["x", "x"], ["2", "2"], Err(RejectionReason::NoElements), Ok(1)),
        (["entry", "entry"], ["2", "2"], twice, Ok(1)),
        (["entry", "x"], ["1", "1"], Ok(1), twice),
    ] {
        let of_m = map(&[(of_m[0], list(7)), (of_m[1], list(8))]);
        let of_n = map(&[(of_n[0], one("a")), (of_n[1], one("b"))]);
        let payload = [of_m, of_n].concat();
        let rows = |codec: &AvroCodec, width: usize| row(codec, width, &payload).map(|(batch, _)| batch.rows());
        assert_eq!((rows(&exploding, 1), rows(&inside, 2)), (exploded, taken));
    }
}

proptest! {
    #[test]
    fn avro_elements_decode_like_single_records(
        samples in proptest::collection::vec((any::<i32>(), proptest::option::of(-1e6_f64..1e6)), 1..5),
    ) {
        const POINT_SCHEMA: &str = r#"{"type": "record", "name": "Point", "fields": [
            {"name": "offset", "type": "int"}, {"name": "bpm", "type": ["null", "double"]}, {"name": "spare", "type": "string"}]}"#;
        let payload = series(array(samples.iter().map(|(offset, bpm)| point(*offset, *bpm)).collect()));
        let mut batch = RawBatch::new(4);
        points().decode(&payload, MESSAGE_POSITION, &mut batch).expect("a message");
        prop_assert_eq!(batch.rows(), samples.len());
        let alone = codec(POINT_SCHEMA, &["/offset", "/bpm"]);
        for (at, (offset, bpm)) in samples.iter().enumerate() {
            let Value::Union(_, one) = point(*offset, *bpm) else { unreachable!("a point is in a union") };
            let (twin, _) = row(&alone, 2, &datum(POINT_SCHEMA, *one)).expect("a point");
            prop_assert_eq!(batch.token(at, 1), twin.token(0, 0));
            prop_assert_eq!(batch.token(at, 2), twin.token(0, 1));
        }
    }

    #[test]
    fn random_avro_bytes_leave_no_partial_rows(payload in proptest::collection::vec(any::<u8>(), 0..60)) {
        let mut batch = RawBatch::new(4);
        if points().decode(&payload, MESSAGE_POSITION, &mut batch).is_err() {
            prop_assert_eq!((batch.rows(), batch.take_refused().len(), batch.unknown_cells), (0, 0, 0));
        }
    }
}
