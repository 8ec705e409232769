//! Parses a record schema. An accepted one keeps its fingerprint when read again. A refused one gives the reason.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::path::Path;
use throng_core::values::raw_batch::RawToken;
use throng_core::values::schema::Schema;
use throng_fuzz::{check_cell, codebooks};

const CELLS: [&str; 7] = ["", "7", "-12.5", "2021-05-24", "2021-05-24T10:00:00Z", "47.37,8.54", "true"];

fuzz_target!(|text: &str| {
    // The fuzzer could name any path here.
    if text.contains("path") {
        return;
    }
    match Schema::parse(text, "fuzz.toml", Path::new("")) {
        Err(error) => assert!(!error.problems.is_empty(), "refused without a reason"),
        Ok(schema) => {
            let again = Schema::parse(text, "fuzz.toml", Path::new("")).expect("accepted before");
            assert_eq!(schema.fingerprint(), again.fingerprint());
            for attribute in &schema.attributes {
                let losses = attribute.hierarchy.expected_losses();
                assert_eq!(losses.len(), attribute.hierarchy.levels());
                assert!(losses.iter().all(|loss| (0.0..=1.0).contains(loss)), "a loss out of range: {losses:?}");
            }
            let (mut books, mut fresh) = (codebooks(&schema), codebooks(&schema));
            for (book, fresh) in books.iter_mut().zip(&mut fresh) {
                CELLS.iter().for_each(|cell| check_cell(book, fresh, RawToken::Untyped(cell)));
            }
        }
    }
});
