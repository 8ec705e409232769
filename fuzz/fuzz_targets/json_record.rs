//! Decodes one JSON record; a refused record changes nothing. Cells are equal after writing and reading, with codes
//! within their bounds.
#![no_main]

use libfuzzer_sys::fuzz_target;
use throng_core::values::raw_batch::{RawBatch, RawToken, RecordPosition};
use throng_formats::{DecodeLimits, FieldPath, JsonCodec, SchemalessJsonCodec};
use throng_fuzz::{RECORD, check_cell, codebooks};

const AT: RecordPosition = RecordPosition { topic: 0, partition: 0, offset: 0, element: 0 };

fn json_of(token: RawToken<'_>) -> Option<String> {
    Some(match token {
        RawToken::Absent => return None,
        RawToken::Null => "null".to_owned(),
        RawToken::Bool(value) => value.to_string(),
        RawToken::Number(text) | RawToken::Structure(text) => text.to_owned(),
        RawToken::Text(text) | RawToken::Untyped(text) => serde_json::to_string(text).expect("a text"),
    })
}

fn record_of(tokens: &[RawToken<'_>]) -> String {
    let member = |(attribute, token): (&std::sync::Arc<throng_core::values::schema::Attribute>, &RawToken<'_>)| {
        let json = json_of(*token)?;
        Some(match attribute.segments().as_slice() {
            [key] => format!("{key:?}:{json}"),
            [key, index] if index == "0" => format!("{key:?}:[{json}]"),
            [key, inner] => format!("{key:?}:{{{inner:?}:{json}}}"),
            _ => unreachable!("the schema goes no deeper"),
        })
    };
    let members: Vec<String> = RECORD.attributes.iter().zip(tokens).filter_map(member).collect();
    format!("{{{}}}", members.join(","))
}

fuzz_target!(|data: &[u8]| {
    let fields: Vec<FieldPath> = RECORD.attributes.iter().map(|a| FieldPath::for_attribute_path(a)).collect();
    let limits = DecodeLimits { max_record_bytes: 4096, max_depth: 8, max_elements: 100, max_repeated_bytes: 1 << 20 };
    let codec = JsonCodec::new(&fields, limits);
    let mut batch = RawBatch::new(fields.len());
    codec.decode(br#"{"name":"before","other":1}"#, AT, &mut batch).expect("a record");
    if codec.decode(data, AT, &mut batch).is_err() {
        assert_eq!((batch.rows(), batch.unknown_cells), (1, 1), "a refused record left something");
    } else {
        assert_eq!(batch.rows(), 2);
        let tokens: Vec<RawToken<'_>> = (0..fields.len()).map(|attribute| batch.token(1, attribute)).collect();
        let roomy = JsonCodec::new(
            &fields,
            DecodeLimits { max_record_bytes: 1 << 20, max_depth: 8, max_elements: 100, max_repeated_bytes: 1 << 20 },
        );
        let mut twin = RawBatch::new(fields.len());
        roomy.decode(record_of(&tokens).as_bytes(), AT, &mut twin).expect("what was read can be written and read");
        assert_eq!(twin.unknown_cells, 0);
        let (mut books, mut fresh) = (codebooks(&RECORD), codebooks(&RECORD));
        for (attribute, token) in tokens.iter().enumerate() {
            assert_eq!(*token, twin.token(0, attribute), "another cell");
            check_cell(&mut books[attribute], &mut fresh[attribute], *token);
        }
    }
    // As a message with records as elements.
    let within = |name: &str| FieldPath { pointer: vec!["list".to_owned(), name.to_owned()], elements: Some(1) };
    let exploding = JsonCodec::new(&[FieldPath::top_level("name"), within("rate"), within("0")], limits);
    let mut many = RawBatch::new(3);
    match exploding.decode(data, AT, &mut many) {
        Err(_) => assert_eq!((many.rows(), many.take_refused().len(), many.unknown_cells), (0, 0, 0)),
        Ok(()) => {
            let mut places: Vec<u32> = many.coordinates().iter().map(|place| place.element).collect();
            places.extend(many.take_refused().iter().map(|(place, _)| place.element));
            places.sort_unstable();
            assert!(places.iter().copied().eq(1..=places.len() as u32), "each element once");
        }
    }
    let mut keys = SchemalessJsonCodec::new(limits, None, 16);
    let mut wide = RawBatch::new(0);
    if keys.decode(data, AT, &mut wide).is_ok() {
        assert_eq!(wide.rows(), 1);
    }
});
