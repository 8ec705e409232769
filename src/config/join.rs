//! `[[join]]`: profiles of people, which are kept and joined to their records.

use super::problem::{Complaints, is_name};
use super::source::{Format, KeyFormat, is_of_several};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Profiles: what changes slowly of a person, from a topic or a file. Attributes that are `from = "join:NAME"` in the record schema
/// get their cells from the profile of the record's subject.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(extend(
    "required" = ["name"],
    "allOf" = [{"oneOf": [{"required": ["topic"]}, {"required": ["path"]}]}],
))]
pub struct Join {
    /// Its name, by which the schema takes attributes from it: lower-case letters, digits, `_` and `-`. Required.
    #[schemars(example = &"profiles", extend("pattern" = "^[a-z0-9_-]{1,64}$"))]
    pub name: String,
    /// The compacted topic of the profiles, on the brokers of the source, whose message keys name the people. It is read whole at the
    /// start, and then as it changes; a null value removes a profile. For sources of kind `kafka`.
    #[schemars(example = &"profiles")]
    pub topic: Option<String>,
    /// The file of the profiles, one a row, instead of `topic`; no directory and no pattern. It is read at the start, and takes the
    /// place of what was known.
    #[schemars(example = &"data/profiles.csv")]
    pub path: Option<PathBuf>,
    /// How profiles are written down. Default: by the extension of `path`, else `json`. Avro and Protobuf need `registry.url`; fields of CSV are
    /// separated as those of the source are.
    #[schemars(example = Format::Json)]
    pub format: Option<Format>,
    /// Where a profile names its person: in the messages' keys (`topic`), or in its row (`path`). A JSON pointer, `""` for the whole
    /// key, or the name of a column. Default: where the schema has the subject (under its name, where that is in the elements of an array), and all of a key that is text.
    #[schemars(example = &"/userId")]
    pub key: Option<String>,
    /// How the keys of messages are written down.
    #[schemars(example = KeyFormat::Text)]
    pub key_format: KeyFormat,
    /// People of whom a profile is kept, at most, in memory and in the state. Of further ones none is taken: their cells are missing.
    #[schemars(example = 1_000_000, extend("minimum" = 1))]
    pub max_people: usize,
}

impl Default for Join {
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

impl Join {
    /// The format in force: `format`, or the extension's for files, or JSON.
    pub fn format(&self) -> Format {
        self.format.unwrap_or_else(|| self.path.as_deref().map_or(Format::Json, Format::of_path))
    }

    /// What a state belongs to as far as this join goes. Another file takes the place of the one before; another topic has other people.
    pub fn identity(&self) -> String {
        match &self.topic {
            Some(topic) => format!("{:?} topic {topic:?}", self.name),
            None => format!("{:?} file", self.name),
        }
    }
}

/// Joins at most: the table of each is kept under a number of two bytes, and nobody has so many places of profiles.
const MOST: usize = 16;

/// Complaints about the joins of a configuration whose treatments may be untruthful, and whose records may come from topics.
pub(super) fn joins(joins: &[Join], is_untruthful: bool, is_from_topics: bool, found: &mut Complaints) {
    found.unless(joins.len() <= MOST, "join", "these are too many", &format!("keep at most {MOST}"));
    let message = "cells of profiles are as they are when they leave, and treatments that alter values would be undone";
    let remedy = "choose treatments that generalize or suppress, or remove the joins";
    found.unless(joins.is_empty() || !is_untruthful, "join", message, remedy);
    let mut names = BTreeSet::new();
    for (index, join) in joins.iter().enumerate() {
        let key = |name: &str| format!("join[{index}].{name}");
        found.unless(
            is_name(&join.name),
            &key("name"),
            "this is no name of a join",
            "use a-z, 0-9, '_' and '-', at most 64",
        );
        found.unless(names.insert(&join.name), &key("name"), "two joins have this name", "name each once");
        let one = join.topic.is_some() != join.path.is_some();
        found.unless(one, &key("topic"), "profiles are in a topic or in a file", "set one of topic and path");
        found.unless(join.max_people > 0, &key("max_people"), "nobody would have a profile", "give at least 1");
        match (&join.topic, &join.path) {
            (Some(_), None) => of_topic(is_from_topics, join, &key, found),
            (None, Some(path)) => of_file(join, path, &key, found),
            _ => {}
        }
    }
}

fn of_topic(is_from_topics: bool, join: &Join, key: &dyn Fn(&str) -> String, found: &mut Complaints) {
    let message = "profiles in a topic go with records in topics, and these come from a file";
    found.unless(is_from_topics, &key("topic"), message, "write the profiles to a file and name it in path");
    let remedy = "set \"json\" or \"avro\", or remove the key";
    let message = "messages of a topic are not read in this format";
    found.unless(join.format().is_of_records(), &key("format"), message, remedy);
}

fn of_file(join: &Join, path: &Path, key: &dyn Fn(&str) -> String, found: &mut Complaints) {
    found.unless(!path.as_os_str().is_empty(), &key("path"), "no file is named", "name one");
    let dash = path == Path::new("-");
    found.unless(!dash, &key("path"), "standard input is read by the source alone", "name a file");
    let message = "profiles are read from one file, and this names a directory or a pattern";
    found.unless(!is_of_several(path), &key("path"), message, "name one file");
    let message = "a file is not read in this format";
    found.unless(join.format().is_of_files(), &key("format"), message, "set \"json\", \"csv\" or \"parquet\"");
    let whole = join.key.as_deref() == Some("");
    found.unless(!whole, &key("key"), "a row is no person: one of its columns names it", "name the column");
}
