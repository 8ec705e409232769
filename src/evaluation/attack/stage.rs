//! Small releases for the tests of attacks: records, and lines made of them by hand.

use super::release::{Promises, Release};
use crate::anonymity::planner::GroupShape;
use crate::config::Config;
use crate::evaluation::facts::AttributeFacts;
use crate::evaluation::original::Original;
use crate::evaluation::released::{Origin, ReleasedGroup};
use std::path::Path;
use std::sync::Arc;
use throng_core::values::codebook::{CellId, SUPPRESSED};
use throng_core::values::schema::Schema;

/// Records, and what left of them.
pub struct Stage {
    original: Original,
    facts: Vec<AttributeFacts>,
    shapes: Vec<GroupShape>,
    groups: Vec<ReleasedGroup>,
}

impl Stage {
    /// Records of a schema whose attribute 0 is the person, as NDJSON.
    pub fn new(schema: &str, records: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("in.ndjson");
        std::fs::write(&path, records).expect("a file");
        let schema = Arc::new(Schema::parse(schema, "s.toml", Path::new(".")).expect("a schema"));
        let original = Original::read(&Config::default(), &schema, "throng.toml", &path, None).expect("records");
        let facts = (0..schema.attributes.len()).map(|a| AttributeFacts::of(&original, a, &[])).collect();
        Self { original, facts, shapes: Vec::new(), groups: Vec::new() }
    }

    /// Adds a group of `quasi` and `sensitive` attributes: by line its record, its batch, and the level of each attribute.
    pub fn group(mut self, quasi: &[usize], sensitive: &[usize], lines: &[(u32, u64, &[usize])]) -> Self {
        let attributes = [quasi, sensitive].concat();
        let cell = |at: usize, (row, _, levels): &(u32, u64, &[usize])| -> CellId {
            let book = &self.original.books[attributes[at]];
            let code = self.original.batch.columns[attributes[at]][*row as usize];
            if levels[at] >= book.levels() { SUPPRESSED } else { book.cell(code, levels[at]) }
        };
        let cells = (0..attributes.len()).map(|at| lines.iter().map(|line| cell(at, line)).collect()).collect();
        let name = format!("g{}", self.groups.len());
        let origin = lines.iter().map(|(row, batch, _)| Origin { row: *row, batch: *batch }).collect();
        self.groups.push(ReleasedGroup {
            name: name.clone(),
            cells,
            lines: lines.len(),
            places: None,
            attributes,
            origin: Some(origin),
        });
        let (quasi, sensitive) = (quasi.to_vec(), sensitive.to_vec());
        self.shapes.push(GroupShape { name, quasi, sensitive, insensitive: Vec::new(), ranges: false });
        self
    }

    /// The records, what cells stand for, and the lines.
    pub fn parts(&self) -> (&Original, &[AttributeFacts], &[ReleasedGroup]) {
        (&self.original, &self.facts, &self.groups)
    }

    /// What attacks are run on.
    pub fn release(&self, promises: Promises) -> Release<'_> {
        Release::new(&self.original, &self.facts, &self.shapes, &self.groups, promises)
    }
}

/// k, with limits on repetition.
pub fn promised(k: usize) -> Promises {
    Promises { crowd: k, colluders: 0, one_line: true, repetition: true }
}

/// `person`, quasi texts `a` and `b`, quasi number `age` of 0 to 99 in tens and fifties, sensitive `illness`.
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

/// One record of [`SCHEMA`], as a line.
pub fn record(person: usize, a: usize, b: usize, age: usize, illness: &str) -> String {
    format!("{{\"person\":\"p{person}\",\"a\":\"a{a}\",\"b\":\"b{b}\",\"age\":{age},\"illness\":\"{illness}\"}}\n")
}
