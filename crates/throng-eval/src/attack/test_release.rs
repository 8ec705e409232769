//! Small releases for tests of attacks.

use super::attack_input::{AttackInput, ReleaseGuarantees};
use crate::facts::AttributeFacts;
use crate::original::OriginalData;
use crate::released_lines::{LineOrigin, ReleasedGroup};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use throng_core::plan::GroupShape;
use throng_core::values::code_batch::CodeBatch;
use throng_core::values::codebook::{CellId, Codebook, SUPPRESSED};
use throng_core::values::digest::DigestKey;
use throng_core::values::raw_batch::{RawToken, RecordPosition};
use throng_core::values::schema::Schema;

/// Records with released lines.
pub struct TestRelease {
    original: OriginalData,
    facts: Vec<AttributeFacts>,
    shapes: Vec<GroupShape>,
    groups: Vec<ReleasedGroup>,
}

impl TestRelease {
    /// Reads NDJSON records; attribute 0 is the subject.
    pub fn new(schema: &str, records: &str) -> Self {
        let schema = Arc::new(Schema::parse(schema, "s.toml", Path::new(".")).expect("a schema"));
        let original = read_records(&schema, records);
        let facts = (0..schema.attributes.len()).map(|a| AttributeFacts::from_original(&original, a, &[])).collect();
        Self { original, facts, shapes: Vec::new(), groups: Vec::new() }
    }

    /// Adds a group; a line is (record, batch, level per attribute).
    pub fn with_group(mut self, quasi: &[usize], sensitive: &[usize], lines: &[(u32, u64, &[usize])]) -> Self {
        let attributes = [quasi, sensitive].concat();
        let cell = |at: usize, (row, _, levels): &(u32, u64, &[usize])| -> CellId {
            let book = &self.original.books[attributes[at]];
            let code = self.original.batch.columns[attributes[at]][*row as usize];
            if levels[at] >= book.levels() { SUPPRESSED } else { book.cell(code, levels[at]) }
        };
        let cells = (0..attributes.len()).map(|at| lines.iter().map(|line| cell(at, line)).collect()).collect();
        let name = format!("g{}", self.groups.len());
        let origin = lines.iter().map(|(row, batch, _)| LineOrigin { row: *row, batch: *batch }).collect();
        self.groups.push(ReleasedGroup {
            name: name.clone(),
            cells,
            lines: lines.len(),
            output_lines: None,
            attributes,
            origin: Some(origin),
        });
        let (quasi, sensitive) = (quasi.to_vec(), sensitive.to_vec());
        self.shapes.push(GroupShape { name, quasi, sensitive, insensitive: Vec::new(), ranges: false });
        self
    }

    /// Returns records, cell facts and groups.
    pub fn parts(&self) -> (&OriginalData, &[AttributeFacts], &[ReleasedGroup]) {
        (&self.original, &self.facts, &self.groups)
    }

    /// Returns the input of the attacks.
    pub fn release(&self, promises: ReleaseGuarantees) -> AttackInput<'_> {
        AttackInput::new(&self.original, &self.facts, &self.shapes, &self.groups, promises)
    }
}

fn read_records(schema: &Arc<Schema>, records: &str) -> OriginalData {
    let key = DigestKey([7; 32]);
    let subjects = key.keyed_digest("subject");
    let book = |attribute| Codebook::new(Arc::clone(attribute), &key, 100_000).expect("a codebook");
    let mut books: Vec<Codebook> = schema.attributes.iter().map(book).collect();
    let mut batch = CodeBatch::new(books.len());
    for (offset, line) in (0..).zip(records.lines()) {
        let record: BTreeMap<String, Value> = serde_json::from_str(line).expect("an object");
        for (at, attribute) in schema.attributes.iter().enumerate() {
            let code = match &record[&attribute.name] {
                Value::String(text) => books[at].encode(RawToken::Text(text)),
                number => books[at].encode(RawToken::Number(&number.to_string())),
            };
            batch.columns[at].push(code.expect("a value of the attribute"));
        }
        batch
            .subjects
            .push(subjects.digest(record[&schema.attributes[0].name].as_str().expect("a subject").as_bytes()) as u64);
        batch.coordinates.push(RecordPosition { topic: 0, partition: 0, offset, element: 0 });
    }
    OriginalData { schema: Arc::clone(schema), books, batch, rejected: 0, uncovered: BTreeMap::new() }
}

/// Returns guarantees with this k and limited repetition.
pub fn guarantees_for(k: usize) -> ReleaseGuarantees {
    ReleaseGuarantees { crowd: k, colluders: 0, has_one_line: true, limits_repetition: true }
}

/// Schema of the records; `age` is 0–99 in tens and fifties.
pub const SCHEMA: &str = "name = \"stage\"
[[attribute]]
name = \"person\"
type = \"string\"
role = \"subject\"
[[attribute]]
name = \"a\"
type = \"string\"
[[attribute]]
name = \"b\"
type = \"string\"
[[attribute]]
name = \"age\"
type = \"integer\"
[attribute.hierarchy]
kind = \"intervals\"
min = 0
max = 100
widths = [10, 50]
[[attribute]]
name = \"illness\"
type = \"string\"
role = \"sensitive\"
";

/// Formats a record of [`SCHEMA`].
pub fn record_line(person: usize, a: usize, b: usize, age: usize, illness: &str) -> String {
    format!("{{\"person\":\"p{person}\",\"a\":\"a{a}\",\"b\":\"b{b}\",\"age\":{age},\"illness\":\"{illness}\"}}\n")
}
