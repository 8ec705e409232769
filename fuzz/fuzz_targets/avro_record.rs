//! Decodes one Avro record; a refused record changes nothing. The first byte selects the schema; input that is a schema
//! is compiled, too.
#![no_main]

use libfuzzer_sys::fuzz_target;
use throng_core::values::raw_batch::{RawBatch, RecordPosition};
use throng_formats::{AvroCodec, DecodeLimits, FieldPath, RecordDecoder, UnknownCellPolicy};

const AT: RecordPosition = RecordPosition { topic: 0, partition: 0, offset: 0, element: 0 };

const SCHEMAS: [&str; 3] = [
    r#"{"type": "record", "name": "R", "fields": [
        {"name": "name", "type": "string"}, {"name": "age", "type": ["null", "int", "double"]},
        {"name": "list", "type": {"type": "array", "items": "float"}}]}"#,
    r#"{"type": "record", "name": "R", "fields": [
        {"name": "name", "type": ["null", "R"]}, {"name": "age", "type": {"type": "map", "values": "bytes"}},
        {"name": "list", "type": {"type": "long", "logicalType": "timestamp-micros"}}]}"#,
    r#"{"type": "record", "name": "R", "fields": [
        {"name": "name", "type": {"type": "enum", "name": "E", "symbols": ["A", "B"]}},
        {"name": "age", "type": {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 3}},
        {"name": "list", "type": {"type": "array", "items": "null"}}]}"#,
];

fuzz_target!(|data: &[u8]| {
    let Some((&choice, data)) = data.split_first() else { return };
    let fields: Vec<(usize, FieldPath)> =
        [vec!["name"], vec!["age"], vec!["list"], vec!["list", "1"], vec!["name", "age"]]
            .into_iter()
            .map(|pointer| FieldPath { pointer: pointer.into_iter().map(str::to_owned).collect(), elements: None })
            .enumerate()
            .collect();
    let limits = DecodeLimits { max_record_bytes: 4096, max_depth: 8, max_elements: 100, max_repeated_bytes: 1 << 20 };
    let text = std::str::from_utf8(data).unwrap_or_default();
    if AvroCodec::new(text, &fields, limits, UnknownCellPolicy::Drop).is_ok() {
        // Only termination is checked.
    }
    let schema = SCHEMAS[usize::from(choice) % SCHEMAS.len()];
    let codec = AvroCodec::new(schema, &fields, limits, UnknownCellPolicy::Drop).expect("a schema");
    let mut batch = RawBatch::new(fields.len());
    let read = codec.decode(data, AT, &mut batch).is_ok();
    assert_eq!(batch.rows(), usize::from(read));
    assert!(read || batch.unknown_cells == 0, "a refused record left something");
});
