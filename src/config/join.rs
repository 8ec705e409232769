//! `[[join]]`: stored profiles of subjects.

use super::problem::{ProblemCollector, is_name};
use super::source::{KeyFormat, RecordFormat, names_several_files};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Joins profiles, the slowly changing attributes of a subject, from a topic or a file. Attributes with `from =
/// "join:NAME"` in the record schema take their cells from the profile of the record's subject.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(extend(
    "required" = ["name"],
    "allOf" = [{"oneOf": [{"required": ["topic"]}, {"required": ["path"]}]}],
))]
pub struct JoinConfig {
    /// Names the join for `from = "join:NAME"`: lower-case letters, digits, `_` and `-`. Required.
    #[schemars(example = &"profiles", extend("pattern" = "^[a-z0-9_-]{1,64}$"))]
    pub name: String,
    /// Reads profiles from this compacted topic on the brokers of the source, keyed by subject. It is read completely
    /// at the start and then followed; a null value removes a profile. For sources of kind `kafka`.
    #[schemars(example = &"profiles")]
    pub topic: Option<String>,
    /// Reads profiles from this file instead of `topic`, one per row; no directory or pattern. At the start it replaces
    /// all earlier profiles.
    #[schemars(example = &"data/profiles.csv")]
    pub path: Option<PathBuf>,
    /// Sets the encoding of profiles. Default: by the extension of `path`, else `json`. Avro and Protobuf need
    /// `registry.url`. CSV fields are separated by `source.separator`.
    #[schemars(example = RecordFormat::Json)]
    pub format: Option<RecordFormat>,
    /// Locates the subject of a profile in the message key (`topic`) or in the row (`path`): a JSON pointer, `""` for
    /// the whole key, or a column name. Default: the pointer of the subject in the schema (its name, if inside array
    /// elements), and the whole key if it is text.
    #[schemars(example = &"/userId")]
    pub key: Option<String>,
    /// Sets the encoding of message keys.
    #[schemars(example = KeyFormat::Text)]
    pub key_format: KeyFormat,
    /// Limits the subjects with a stored profile, in memory and in the state. Cells of further subjects are missing.
    #[schemars(example = 1_000_000, extend("minimum" = 1))]
    pub max_people: usize,
}

impl Default for JoinConfig {
    fn default() -> Self {
        Self {
            name: String::new(),
            topic: None,
            path: None,
            format: None,
            key: None,
            key_format: KeyFormat::Text,
            max_people: 1_000_000,
        }
    }
}

impl JoinConfig {
    /// Returns the effective format: `format`, else by file extension, else JSON.
    pub fn format(&self) -> RecordFormat {
        self.format.unwrap_or_else(|| self.path.as_deref().map_or(RecordFormat::Json, RecordFormat::from_path))
    }

    /// Identifies this join in the state. Another file replaces the profiles; another topic has other subjects.
    pub fn identity(&self) -> String {
        match &self.topic {
            Some(topic) => format!("{:?} topic {topic:?}", self.name),
            None => format!("{:?} file", self.name),
        }
    }
}

/// The state stores each join under a two-byte number.
const MOST: usize = 16;

/// Checks the joins.
pub(super) fn check_joins(
    joins: &[JoinConfig],
    is_untruthful: bool,
    is_from_topics: bool,
    found: &mut ProblemCollector,
) {
    found.require(joins.len() <= MOST, "join", "too many joins", &format!("keep at most {MOST}"));
    let message = "profile cells are released unaltered, and treatments that alter values would be undone";
    let remedy = "choose treatments that generalize or suppress, or remove the joins";
    found.require(joins.is_empty() || !is_untruthful, "join", message, remedy);
    let mut names = BTreeSet::new();
    for (index, join) in joins.iter().enumerate() {
        let key = |name: &str| format!("join[{index}].{name}");
        found.require(is_name(&join.name), &key("name"), "invalid join name", "use a-z, 0-9, '_' and '-', at most 64");
        found.require(names.insert(&join.name), &key("name"), "duplicate join name", "give each join its own name");
        let one = join.topic.is_some() != join.path.is_some();
        found.require(one, &key("topic"), "profiles are read from a topic or from a file", "set one of topic and path");
        found.require(join.max_people > 0, &key("max_people"), "no subject would have a profile", "give at least 1");
        match (&join.topic, &join.path) {
            (Some(_), None) => check_topic_join(is_from_topics, join, &key, found),
            (None, Some(path)) => check_file_join(join, path, &key, found),
            _ => {}
        }
    }
}

fn check_topic_join(
    is_from_topics: bool,
    join: &JoinConfig,
    key: &dyn Fn(&str) -> String,
    found: &mut ProblemCollector,
) {
    let message = "profiles in a topic require records in topics, but the source is a file";
    found.require(is_from_topics, &key("topic"), message, "write the profiles to a file and name it in path");
    let remedy = "set \"json\" or \"avro\", or remove the key";
    let message = "messages of a topic cannot be read in this format";
    found.require(join.format().is_message_format(), &key("format"), message, remedy);
}

fn check_file_join(join: &JoinConfig, path: &Path, key: &dyn Fn(&str) -> String, found: &mut ProblemCollector) {
    found.require(!path.as_os_str().is_empty(), &key("path"), "no file is named", "name one");
    let dash = path == Path::new("-");
    found.require(!dash, &key("path"), "only the source can read standard input", "name a file");
    let message = "profiles are read from one file, but this is a directory or a pattern";
    found.require(!names_several_files(path), &key("path"), message, "name one file");
    let message = "a file cannot be read in this format";
    found.require(join.format().is_file_format(), &key("format"), message, "set \"json\", \"csv\" or \"parquet\"");
    let whole = join.key.as_deref() == Some("");
    found.require(!whole, &key("key"), "a row is not a person: a column identifies it", "name the column");
}
