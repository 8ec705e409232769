//! Reads a hierarchy file. An accepted one covers each value on each level, with losses between 0 and 1; text and value
//! set of a cell are one to one.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use throng_core::values::canonical::CanonicalKind;
use throng_core::values::hierarchy::ValueCover;
use throng_core::values::raw_batch::RawToken;
use throng_core::values::schema::Schema;
use throng_fuzz::scratch;

static FILE: LazyLock<PathBuf> = LazyLock::new(|| scratch("hierarchy.csv"));

fuzz_target!(|data: &[u8]| {
    let Some((&kind, text)) = data.split_first() else { return };
    let kind = ["string", "integer", "float", "date", "boolean"][usize::from(kind) % 5];
    let path = FILE.display();
    let schema = format!(
        "name = \"f\"\n[[attribute]]\nname = \"a\"\ntype = \"{kind}\"\nhierarchy = {{ kind = \"file\", path = \"{path}\" }}\n"
    );
    std::fs::write(&*FILE, text).expect("a scratch file");
    let schema = match Schema::parse(&schema, "fuzz.toml", Path::new("")) {
        Ok(schema) => schema,
        Err(error) => {
            assert!(!error.problems.is_empty(), "refused without a reason");
            return;
        }
    };
    let attribute = &schema.attributes[0];
    let losses = attribute.hierarchy.expected_losses();
    assert_eq!(losses.len(), attribute.hierarchy.levels());
    assert!(losses.iter().all(|loss| (0.0..=1.0).contains(loss)), "a loss out of range: {losses:?}");

    let text = std::str::from_utf8(text).expect("accepted as text").trim_start_matches('\u{feff}');
    let mut rows =
        csv::ReaderBuilder::new().delimiter(b';').has_headers(false).flexible(true).from_reader(text.as_bytes());
    let (mut text_of, mut set_of) = (BTreeMap::new(), BTreeMap::new());
    for row in rows.records() {
        let row = row.expect("accepted as a table");
        let mut canonical = String::new();
        let typed =
            attribute.typing.canonical(RawToken::Untyped(&row[0]), &mut canonical).expect("accepted as a value");
        assert_eq!(typed, CanonicalKind::Value);
        let covers = attribute.hierarchy.covers(&canonical).expect("a listed value is covered");
        assert_eq!(covers.len() + 2, attribute.hierarchy.levels());
        for cover in covers {
            if let ValueCover::Set { text, set, loss } = cover {
                assert!(loss.is_some_and(|loss| (0.0..=1.0).contains(&loss)), "a loss out of range");
                assert_eq!(*text_of.entry(set.clone()).or_insert(text.clone()), text, "one set, two texts");
                assert_eq!(*set_of.entry(text).or_insert(set.clone()), set, "one text, two sets");
            }
        }
    }
});
