//! Shared parts of the fuzz targets: a schema, a scratch file, and the check that a value survives serialization.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use serde::{Serialize, de::DeserializeOwned};
use throng_core::values::codebook::{ABSENT, Codebook, NULL, UNCOVERED};
use throng_core::values::digest::DigestKey;
use throng_core::values::raw_batch::RawToken;
use throng_core::values::schema::Schema;

/// One attribute per type, most with a hierarchy.
const SCHEMA: &str = r#"
name = "fuzz"
[[attribute]]
name = "name"
type = "string"
[[attribute]]
name = "age"
type = "integer"
hierarchy = { kind = "intervals", widths = [10, 50], min = 0, max = 100 }
[[attribute]]
name = "rate"
pointer = "/heart/rate"
type = "float"
round = 0.5
[[attribute]]
name = "born"
type = "date"
hierarchy = { kind = "truncate", levels = ["month", "year"] }
[[attribute]]
name = "at"
pointer = "/list/0"
type = "timestamp"
[[attribute]]
name = "smoker"
type = "boolean"
[[attribute]]
name = "place"
type = "coordinates"
round = 0.01
hierarchy = { kind = "grid", cells = [0.1, 1.0] }
[[attribute]]
name = "zip"
type = "string"
hierarchy = { kind = "prefix", keep = [3, 1] }
"#;

/// Parsed [`SCHEMA`].
pub static RECORD: LazyLock<Schema> =
    LazyLock::new(|| Schema::parse(SCHEMA, "fuzz.toml", Path::new("")).expect("a sound schema"));

/// Returns empty codebooks of a schema, for few values.
pub fn codebooks(schema: &Schema) -> Vec<Codebook> {
    let book = |attribute: &_| Codebook::new(std::sync::Arc::clone(attribute), &DigestKey([7; 32]), 100);
    schema.attributes.iter().map(|attribute| book(attribute).expect("few values fit")).collect()
}

/// Encodes a cell and checks the guarantees of every code. The code belongs to the codebook, and its cells lie
/// between exact and suppressed. Its canonical text maps back to it, also in a new codebook.
pub fn check_cell(book: &mut Codebook, fresh: &mut Codebook, token: RawToken<'_>) {
    let Ok(code) = book.encode(token) else { return };
    assert!((code as usize) < book.codes(), "a code of no value");
    for level in 0..book.levels() {
        let cell = book.cell(code, level);
        assert!((0.0..=1.0).contains(&book.loss(cell)), "a loss out of range");
        assert!(code == ABSENT || !book.text(cell).is_empty(), "a cell that prints nothing");
    }
    if [ABSENT, NULL, UNCOVERED].contains(&code) {
        return;
    }
    let canonical = book.canonical(code).to_owned();
    assert_eq!(book.encode_canonical(&canonical), code, "the canonical text has another code");
    let again = fresh.encode_canonical(&canonical);
    assert_eq!(fresh.canonical(again), canonical, "the canonical text is not canonical");
}

/// Returns a path for target input that must be read from a file. `./dev fuzz` sets `TMPDIR` to a folder that it
/// removes.
pub fn scratch(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("throng-fuzz-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder for scratch files");
    folder.join(name)
}

/// Deserializes `bytes`. Checks that the value serializes to the same bytes after a round trip.
pub fn survives<T: Serialize + DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    let value: T = postcard::from_bytes(bytes).ok()?;
    let written = postcard::to_stdvec(&value).expect("what was read can be written");
    let again: T = postcard::from_bytes(&written).expect("what was written can be read");
    assert_eq!(postcard::to_stdvec(&again).expect("as before"), written);
    Some(value)
}
