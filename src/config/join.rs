//! `[[join]]`: profiles of people, which are kept and joined to their records.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::source::{Format, KeyFormat};

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
    #[must_use]
    pub fn format(&self) -> Format {
        self.format.unwrap_or_else(|| self.path.as_deref().map_or(Format::Json, Format::of_path))
    }

    /// What a state belongs to as far as this join goes. Another file takes the place of the one before; another topic has other people.
    #[must_use]
    pub fn identity(&self) -> String {
        match &self.topic {
            Some(topic) => format!("{:?} topic {topic:?}", self.name),
            None => format!("{:?} file", self.name),
        }
    }
}
