//! Decodes one Protobuf message; a refused message changes nothing. The first byte selects the message; input that is
//! schema text is compiled, too.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;
use throng_core::values::raw_batch::{RawBatch, RecordPosition};
use throng_formats::{
    DecodeLimits, FieldPath, MessageIndex, ProtobufCodec, ProtobufSchema, RecordDecoder, UnknownCellPolicy,
};

const AT: RecordPosition = RecordPosition { topic: 0, partition: 0, offset: 0, element: 0 };

const LIMITS: DecodeLimits =
    DecodeLimits { max_record_bytes: 4096, max_depth: 8, max_elements: 16, max_repeated_bytes: 1 << 10 };

const SCHEMA: &str = r#"syntax = "proto3";
import "google/protobuf/timestamp.proto";
import "google/protobuf/duration.proto";
import "google/protobuf/wrappers.proto";
enum E { A = 0; B = 1; }
message First { string name = 1; optional sint64 age = 2; repeated float list = 3; }
message Second { Second name = 1; map<string, bytes> age = 2; google.protobuf.Timestamp list = 3; }
message Third { oneof which { E name = 1; google.protobuf.Duration age = 2; } repeated Third list = 3; }
message Fourth { google.protobuf.Int32Value name = 1; map<bool, Fourth> age = 2; repeated E list = 3; }
"#;

static CODECS: LazyLock<Vec<ProtobufCodec>> = LazyLock::new(|| {
    let schema = ProtobufSchema::compile_proto_texts(SCHEMA, &[]).expect("a schema");
    let codec = |at: u64| {
        let message = schema.message(&MessageIndex::new(&[at]).expect("a place")).expect("a message");
        message.codec(&fields(), LIMITS, UnknownCellPolicy::Drop).expect("a codec")
    };
    (0..4).map(codec).collect()
});

/// Records in the items of a list, or of a list inside a map or another list.
static EXPLODING: LazyLock<Vec<ProtobufCodec>> = LazyLock::new(|| {
    let schema = ProtobufSchema::compile_proto_texts(SCHEMA, &[]).expect("a schema");
    let codec = |(at, way, within): &(u64, &[&str], &[&str])| {
        let segments = |way: &[&str]| way.iter().map(|segment| (*segment).to_owned()).collect::<Vec<_>>();
        let element = FieldPath { pointer: segments(&[*way, *within].concat()), elements: Some(way.len()) };
        let message = schema.message(&MessageIndex::new(&[*at]).expect("a place")).expect("a message");
        message
            .codec(&[(0, FieldPath::top_level("name")), (1, element)], LIMITS, UnknownCellPolicy::Drop)
            .expect("a codec")
    };
    let ways: [(u64, &[&str], &[&str]); 4] = [
        (0, &["list"], &[]),
        (2, &["list"], &["name"]),
        (2, &["list", "1", "list"], &["list", "0"]),
        (3, &["age", "true", "list"], &[]),
    ];
    ways.iter().map(codec).collect()
});

fn fields() -> Vec<(usize, FieldPath)> {
    [vec!["name"], vec!["age"], vec!["list"], vec!["list", "1"], vec!["name", "age"], vec![]]
        .into_iter()
        .map(|pointer| FieldPath::from_segments(pointer.into_iter().map(str::to_owned).collect()))
        .enumerate()
        .collect()
}

fuzz_target!(|data: &[u8]| {
    let Some((&choice, data)) = data.split_first() else { return };
    let text = std::str::from_utf8(data).unwrap_or_default();
    if ProtobufSchema::compile_proto_texts(text, &[]).is_ok() {
        // Only termination is checked.
    }
    let codec = &CODECS[usize::from(choice) % CODECS.len()];
    let mut batch = RawBatch::new(fields().len());
    let read = codec.decode(data, AT, &mut batch).is_ok();
    assert_eq!(batch.rows(), usize::from(read));
    assert!(read || batch.unknown_cells == 0, "a refused record left something");
    // As a message with records as elements.
    let mut many = RawBatch::new(2);
    match EXPLODING[usize::from(choice) % EXPLODING.len()].decode(data, AT, &mut many) {
        Err(_) => assert_eq!((many.rows(), many.take_refused().len(), many.unknown_cells), (0, 0, 0)),
        Ok(()) => {
            let mut places: Vec<u32> = many.coordinates().iter().map(|place| place.element).collect();
            places.extend(many.take_refused().iter().map(|(place, _)| place.element));
            places.sort_unstable();
            assert!(!places.is_empty() && places.iter().copied().eq(1..=places.len() as u32), "each element once");
        }
    }
});
