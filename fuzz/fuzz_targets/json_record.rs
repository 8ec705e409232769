//! One JSON record, as a topic holds it. A refused record leaves nothing behind; of one that is read, the cells
//! written down again are the same cells, and every cell has a code within the bounds of its attribute.
#![no_main]

use libfuzzer_sys::fuzz_target;
use throng_core::values::raw::{Coordinate, RawBatch, Token};
use throng_formats::{Field, JsonCodec, JsonKeys, Limits};
use throng_fuzz::{RECORD, check_cell, codebooks};

const AT: Coordinate = Coordinate { topic: 0, partition: 0, offset: 0, element: 0 };

fn json_of(token: Token<'_>) -> Option<String> {
    Some(match token {
        Token::Absent => return None,
        Token::Null => "null".to_owned(),
        Token::Bool(value) => value.to_string(),
        Token::Number(text) | Token::Structure(text) => text.to_owned(),
        Token::Text(text) | Token::Untyped(text) => serde_json::to_string(text).expect("a text"),
    })
}

/// The record that has exactly these cells.
fn record_of(tokens: &[Token<'_>]) -> String {
    let member = |(attribute, token): (&std::sync::Arc<throng_core::values::schema::Attribute>, &Token<'_>)| {
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
    let fields: Vec<Field> = RECORD.attributes.iter().map(|a| Field::of(a)).collect();
    let limits = Limits { max_record_bytes: 4096, max_depth: 8, max_elements: 100, max_repeated_bytes: 1 << 20 };
    let codec = JsonCodec::new(&fields, limits);
    let mut batch = RawBatch::new(fields.len());
    codec.decode(br#"{"name":"before","other":1}"#, AT, &mut batch).expect("a record");
    if codec.decode(data, AT, &mut batch).is_err() {
        assert_eq!((batch.rows(), batch.unknown_cells), (1, 1), "a refused record left something");
    } else {
        assert_eq!(batch.rows(), 2);
        let tokens: Vec<Token<'_>> = (0..fields.len()).map(|attribute| batch.token(1, attribute)).collect();
        let roomy = JsonCodec::new(
            &fields,
            Limits { max_record_bytes: 1 << 20, max_depth: 8, max_elements: 100, max_repeated_bytes: 1 << 20 },
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
    // The same bytes as a message whose elements are records: every element is a row or refused, or the message is.
    let within = |name: &str| Field { pointer: vec!["list".to_owned(), name.to_owned()], elements: Some(1) };
    let exploding = JsonCodec::new(&[Field::flat("name"), within("rate"), within("0")], limits);
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
    // The reader of files that no schema describes.
    let mut keys = JsonKeys::new(limits, None, 16);
    let mut wide = RawBatch::new(0);
    if keys.decode(data, AT, &mut wide).is_ok() {
        assert_eq!(wide.rows(), 1);
    }
});
