//! Small hand-made releases for the tests of attacks.

use super::attack_input::{AttackInput, ReleaseGuarantees};
use crate::config::Config;
use crate::evaluation::facts::AttributeFacts;
use crate::evaluation::original::OriginalData;
use crate::evaluation::released_groups::{LineOrigin, ReleasedGroup};
use std::path::Path;
use std::sync::Arc;
use throng_core::plan::GroupShape;
use throng_core::values::codebook::{CellId, SUPPRESSED};
use throng_core::values::schema::Schema;

/// Records, and lines released from them.
pub struct TestRelease {
    original: OriginalData,
    facts: Vec<AttributeFacts>,
    shapes: Vec<GroupShape>,
    groups: Vec<ReleasedGroup>,
}

impl TestRelease {
    /// Reads records as NDJSON, of a schema with the subject as attribute 0.
    pub fn new(schema: &str, records: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("in.ndjson");
        std::fs::write(&path, records).expect("a file");
        let schema = Arc::new(Schema::parse(schema, "s.toml", Path::new(".")).expect("a schema"));
        let original = OriginalData::read(&Config::default(), &schema, "throng.toml", &path, None).expect("records");
        let facts = (0..schema.attributes.len()).map(|a| AttributeFacts::from_original(&original, a, &[])).collect();
        Self { original, facts, shapes: Vec::new(), groups: Vec::new() }
    }

    /// Adds a group of `quasi` and `sensitive` attributes. Each line has its record, its batch, and the level of each
    /// attribute.
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

    /// Returns the records, the facts about cells, and the groups.
    pub fn parts(&self) -> (&OriginalData, &[AttributeFacts], &[ReleasedGroup]) {
        (&self.original, &self.facts, &self.groups)
    }

    /// Returns the input of the attacks.
    pub fn release(&self, promises: ReleaseGuarantees) -> AttackInput<'_> {
        AttackInput::new(&self.original, &self.facts, &self.shapes, &self.groups, promises)
    }
}

/// Returns guarantees with this k and with limits on repetition.
pub fn guarantees_for(k: usize) -> ReleaseGuarantees {
    ReleaseGuarantees { crowd: k, colluders: 0, has_one_line: true, limits_repetition: true }
}

/// Schema with subject `person`, quasi-identifier texts `a` and `b`, quasi-identifier number `age` of 0 to 99 in tens
/// and fifties, and sensitive `illness`.
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

/// Formats one record of [`SCHEMA`] as a line.
pub fn record_line(person: usize, a: usize, b: usize, age: usize, illness: &str) -> String {
    format!("{{\"person\":\"p{person}\",\"a\":\"a{a}\",\"b\":\"b{b}\",\"age\":{age},\"illness\":\"{illness}\"}}\n")
}
