//! `[[test]]`: input records with required and forbidden output.

use std::collections::BTreeSet;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::problem::ProblemCollector;

/// More would make the test a full run.
const MOST_PEOPLE: usize = 10_000;

/// Tests the policy: `throng check` and every reload run these records through the real pipeline and compare the
/// output.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(extend(
    "required" = ["name"],
    "allOf" = [{"oneOf": [{"required": ["input"]}, {"required": ["file"]}]}],
))]
pub struct PolicyTest {
    /// Names the test in reports. Required.
    #[schemars(example = &"an age that 20 people share is released")]
    pub name: String,
    /// Lists the records, JSON objects as text, in order of arrival. Use invented records only.
    #[schemars(example = ["{\"user\": \"anna\", \"age\": 34}"])]
    pub input: Vec<String>,
    /// Reads the records from this file instead of `input`: CSV, NDJSON or Parquet, by extension.
    #[schemars(example = &"tests/crowd.ndjson")]
    pub file: Option<PathBuf>,
    /// Repeats every record of `input` for this many invented subjects, at most 10000, which replace the record's
    /// subject. 0: the records arrive as written.
    #[schemars(example = 20, extend("maximum" = MOST_PEOPLE))]
    pub people: usize,
    /// Lists required output as JSON objects of cells. For each object, some line of one group must show all of its
    /// cells, as written in the output; other attributes are not checked.
    #[schemars(example = ["{\"age\": 34}"])]
    pub expect: Vec<String>,
    /// Lists forbidden output, dead letters included. A JSON object: no line shows all of its cells. Any other text: it
    /// occurs nowhere in the output, not even inside a longer text.
    #[schemars(example = ["person 1", "{\"age\": \"34\"}"])]
    pub never: Vec<String>,
    /// Requires exactly this number of released records.
    #[schemars(example = Some(20))]
    pub released: Option<u64>,
}

impl PolicyTest {
    /// Returns the cells of an item of `expect` or `never`; None for other text.
    pub fn cells(item: &str) -> Option<serde_json::Map<String, Value>> {
        match serde_json::from_str(item) {
            Ok(Value::Object(cells)) => Some(cells),
            Ok(_) | Err(_) => None,
        }
    }

    fn has_expectation(&self) -> bool {
        !self.expect.is_empty() || !self.never.is_empty() || self.released.is_some()
    }
}

pub(super) fn check_policy_tests(tests: &[PolicyTest], found: &mut ProblemCollector) {
    let mut names = BTreeSet::new();
    for (index, test) in tests.iter().enumerate() {
        let key = |name: &str| format!("test[{index}].{name}");
        let named = !test.name.trim().is_empty() && !test.name.contains(char::is_control);
        found.require(named, &key("name"), "invalid test name", "give one line of text");
        found.require(names.insert(&test.name), &key("name"), "duplicate test name", "give each test its own name");
        let one = test.input.is_empty() == test.file.is_some();
        found.require(one, &key("input"), "records come from input or from file", "give one of input and file");
        let objects = test.input.iter().all(|record| PolicyTest::cells(record).is_some());
        found.require(objects, &key("input"), "not a JSON object", "write each as '{\"attribute\": value}'");
        let few = test.people <= MOST_PEOPLE;
        found.require(few, &key("people"), "too many people", "give at most 10000, or the records in a file");
        let own = test.people == 0 || test.file.is_none();
        let remedy = "remove the key, or give the records in input";
        found.require(own, &key("people"), "the records of a file name their own people", remedy);
        let asks = test.has_expectation();
        let remedy = "give expect, never or released";
        found.require(asks, &format!("test[{index}]"), "the test has no expectation: it could not fail", remedy);
        let shown = test.expect.iter().all(|item| PolicyTest::cells(item).is_some_and(|cells| !cells.is_empty()));
        let remedy = "write the cells of a line as '{\"attribute\": \"cell\"}'";
        found.require(shown, &key("expect"), "not a JSON object of cells", remedy);
        let said = |item: &String| PolicyTest::cells(item).map_or(!item.is_empty(), |cells| !cells.is_empty());
        let remedy = "write a text, or cells as '{\"attribute\": \"cell\"}'";
        found.require(test.never.iter().all(said), &key("never"), "no text and no cells are given", remedy);
        let cut = |item: &String| item.trim_start().starts_with('{') && PolicyTest::cells(item).is_none();
        let remedy = "correct the JSON of the cells: as text it would hardly ever match";
        found.require(!test.never.iter().any(cut), &key("never"), "starts like cells and is not a JSON object", remedy);
    }
}
