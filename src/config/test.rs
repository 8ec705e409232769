//! `[[test]]`: records that a configuration is tried on, and what must and must never come of them.

use std::collections::BTreeSet;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::problem::Complaints;

/// Invented people a test may have: more would make a run of what is a test.
const MOST_PEOPLE: usize = 10_000;

/// A test of the policy: `throng check` and every reload run its records through the real pipeline, and compare what leaves.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(extend(
    "required" = ["name"],
    "allOf" = [{"oneOf": [{"required": ["input"]}, {"required": ["file"]}]}],
))]
pub struct PolicyTest {
    /// Its name, in reports. Required.
    #[schemars(example = &"an age alone is shown in tens")]
    pub name: String,
    /// The records, each a JSON object as text, in the order in which they arrive. Invented ones: a configuration is no place for
    /// anybody's records.
    #[schemars(example = ["{\"user\": \"anna\", \"age\": 34}"])]
    pub input: Vec<String>,
    /// A file of records instead of `input`: CSV, NDJSON or Parquet, by its extension.
    #[schemars(example = &"tests/crowd.ndjson")]
    pub file: Option<PathBuf>,
    /// Makes a crowd: every record of `input` arrives once for each of so many invented people, whose names take the place of its
    /// subject, at most 10000. 0: the records arrive as they are written.
    #[schemars(example = 20, extend("maximum" = MOST_PEOPLE))]
    pub people: usize,
    /// What must leave: JSON objects of cells. For each of them some line of one group shows all of its cells, as they are written in the
    /// output; attributes that it does not name are free.
    #[schemars(example = ["{\"age\": \"[30, 40)\"}"])]
    pub expect: Vec<String>,
    /// What must never leave, dead letters included. A JSON object: no line shows all of its cells. Any other text: it occurs in nothing
    /// that leaves, not even as a part of a longer text.
    #[schemars(example = ["person 1", "{\"age\": \"34\"}"])]
    pub never: Vec<String>,
    /// How many records are released, exactly; without it any number.
    #[schemars(example = Some(20))]
    pub released: Option<u64>,
}

impl PolicyTest {
    /// The cells of an item of `expect` or `never`; none where it is any other text.
    pub fn cells(item: &str) -> Option<serde_json::Map<String, Value>> {
        match serde_json::from_str(item) {
            Ok(Value::Object(cells)) => Some(cells),
            Ok(_) | Err(_) => None,
        }
    }

    fn asks_for_something(&self) -> bool {
        !self.expect.is_empty() || !self.never.is_empty() || self.released.is_some()
    }
}

/// Complaints about the tests.
pub(super) fn tests(tests: &[PolicyTest], found: &mut Complaints) {
    let mut names = BTreeSet::new();
    for (index, test) in tests.iter().enumerate() {
        let key = |name: &str| format!("test[{index}].{name}");
        let named = !test.name.trim().is_empty() && !test.name.contains(char::is_control);
        found.unless(named, &key("name"), "this is no name of a test", "give a line of text");
        found.unless(names.insert(&test.name), &key("name"), "two tests have this name", "name each once");
        let one = test.input.is_empty() == test.file.is_some();
        found.unless(one, &key("input"), "a test has records of its own or in a file", "give one of input and file");
        let objects = test.input.iter().all(|record| PolicyTest::cells(record).is_some());
        found.unless(objects, &key("input"), "a record is no JSON object", "write each as '{\"attribute\": value}'");
        let few = test.people <= MOST_PEOPLE;
        found.unless(few, &key("people"), "these are too many", "give at most 10000, or the records in a file");
        let own = test.people == 0 || test.file.is_none();
        let remedy = "remove the key, or give the records in input";
        found.unless(own, &key("people"), "the people of a file are those of its records", remedy);
        let asks = test.asks_for_something();
        let remedy = "give expect, never or released";
        found.unless(asks, &format!("test[{index}]"), "the test asks for nothing: it could not fail", remedy);
        let shown = test.expect.iter().all(|item| PolicyTest::cells(item).is_some_and(|cells| !cells.is_empty()));
        let remedy = "write what a line must show as '{\"attribute\": \"cell\"}'";
        found.unless(shown, &key("expect"), "this is no JSON object of cells", remedy);
        let said = |item: &String| PolicyTest::cells(item).map_or(!item.is_empty(), |cells| !cells.is_empty());
        let remedy = "write a text, or cells as '{\"attribute\": \"cell\"}'";
        found.unless(test.never.iter().all(said), &key("never"), "nothing is named that must never leave", remedy);
        let cut = |item: &String| item.trim_start().starts_with('{') && PolicyTest::cells(item).is_none();
        let remedy = "correct it: as a text it would hardly occur anywhere";
        found.unless(!test.never.iter().any(cut), &key("never"), "this begins as cells and is no JSON object", remedy);
    }
}
