//! `[sink]`: where released records go.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Format, Properties};

/// What kind of sink takes the released records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SinkKind {
    /// A Kafka topic, exactly once.
    #[default]
    Kafka,
    /// A file (one a group), or standard output.
    File,
    /// Nothing is released: the daemon measures the risk and reports it.
    None,
}

/// What a line of the output carries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Rows {
    /// The attributes of its group.
    #[default]
    Fragments,
    /// Every attribute that leaves, in the order of the schema, with null for those of other groups: the outer join of all
    /// groups. Lines of all groups leave together, sorted as one.
    Joined,
}

/// What the one output of joined rows is called where the outputs of fragments have the names of their groups.
pub const JOINED: &str = "joined";

/// Where released records go.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Sink {
    /// `kafka`, `file` or `none`.
    #[schemars(example = SinkKind::Kafka)]
    pub kind: SinkKind,
    /// Kafka bootstrap servers, comma-separated. Default: the source's. With a Kafka source this must be the same
    /// cluster (a start asks both for their names): one transaction carries outputs and consumed offsets.
    #[schemars(example = &"kafka-1:9092")]
    pub brokers: Option<String>,
    /// The Kafka topic of released records. Required with `kind = "kafka"`. With `{group}` in it each group has a topic of its own.
    #[schemars(example = &"wearable.sanitized")]
    pub topic: String,
    /// The Kafka topic of dead letters: coordinates and reason of a record that could not be read, never its payload.
    #[schemars(example = &"throng.dead-letters")]
    pub dead_letter_topic: String,
    /// The compacted Kafka topic of commit markers.
    #[schemars(example = &"throng.commits")]
    pub commits_topic: String,
    /// The file to write, `-` for standard output (NDJSON, at least once). Several groups write a file each, with the group's
    /// name before the extension (`out.motion.ndjson`), or where the path has `{group}`. Required with `kind = "file"`.
    #[schemars(example = &"out/sanitized.ndjson")]
    pub path: PathBuf,
    /// How records are written down. Default: by the extension of `path` for files, else `json`.
    #[schemars(example = Format::Json)]
    pub format: Option<Format>,
    /// What a line carries: `fragments`, the attributes of its group alone, or `joined`, every attribute that leaves, with null for
    /// those of other groups. Joined rows of all groups are one file or topic, whose `path` or `topic` has no `{group}`; an absent
    /// cell is null in them. A row is one fragment all the same: nothing says which rows were one record.
    #[schemars(example = Rows::Joined)]
    pub rows: Rows,
    /// The separator of CSV fields, one ASCII character.
    #[schemars(example = &";")]
    pub separator: char,
    /// The file of dead letters (NDJSON) of a file sink. Without it they are counted only.
    #[schemars(example = &"out/dead-letters.ndjson")]
    pub dead_letter_path: Option<PathBuf>,
    /// Properties passed to librdkafka's producer as they are; the same rules as for `source.librdkafka`.
    #[schemars(example = Properties::example())]
    pub librdkafka: Properties,
}

impl Default for Sink {
    fn default() -> Self {
        Self {
            kind: SinkKind::Kafka,
            brokers: None,
            topic: String::new(),
            dead_letter_topic: "throng.dead-letters".into(),
            commits_topic: "throng.commits".into(),
            path: PathBuf::new(),
            format: None,
            rows: Rows::Fragments,
            separator: ',',
            dead_letter_path: None,
            librdkafka: Properties::default(),
        }
    }
}

impl Sink {
    /// The format in force: `format`, or the extension's for files, or JSON.
    #[must_use]
    pub fn format(&self) -> Format {
        self.format.unwrap_or(match self.kind {
            SinkKind::File => Format::of_path(&self.path),
            SinkKind::Kafka | SinkKind::None => Format::Json,
        })
    }

    /// Whether lines spell an absent cell as a missing one: the format has no way to leave it out, or each row has every
    /// attribute.
    #[must_use]
    pub fn cannot_omit(&self) -> bool {
        self.rows == Rows::Joined || self.format() != Format::Json
    }

    /// The file that says of a file sink's output that values are exchanged between its records; `first` is the name of the first
    /// group, which stands for all where the path has `{group}`.
    #[must_use]
    pub fn mark_path(&self, first: &str) -> PathBuf {
        let path = placed(&self.path, first);
        path.with_file_name(spelled(&path, "", ".untruthful"))
    }

    /// The file beside a file sink's output that names the last batch written there; none for standard output. Its name begins
    /// with a dot, so that no pattern for the output takes it along. `first` as for [`mark_path`](Self::mark_path).
    #[must_use]
    pub fn marker_path(&self, first: &str) -> Option<PathBuf> {
        let path = placed(&self.path, first);
        let is_file = self.kind == SinkKind::File && self.path.as_os_str() != "-" && path.file_name().is_some();
        is_file.then(|| path.with_file_name(spelled(&path, ".", ".marker")))
    }

    /// The Kafka topic of each of these groups.
    #[must_use]
    pub fn topic_of(&self, group: &str) -> String {
        self.topic.replace(PLACE, group)
    }

    /// The file of a group, or for formats of several files its directory; `alone` where there is no other group.
    ///
    /// The group's name stands where the path has `{group}`; else of several groups before the extension of a file, and below a
    /// directory.
    #[must_use]
    pub fn file_of(path: &Path, format: Format, group: &str, alone: bool) -> PathBuf {
        if has_place(path) {
            return placed(path, group);
        }
        if format == Format::Parquet {
            return path.join(group);
        }
        if alone {
            return path.to_owned();
        }
        match (path.file_stem(), path.extension()) {
            (Some(stem), Some(extension)) => {
                let mut name = stem.to_owned();
                for part in [OsStr::new("."), OsStr::new(group), OsStr::new("."), extension] {
                    name.push(part);
                }
                path.with_file_name(name)
            }
            _ => {
                let mut name = path.as_os_str().to_owned();
                name.push(".");
                name.push(group);
                name.into()
            }
        }
    }
}

/// Where the name of a group stands in a path or a topic.
const PLACE: &str = "{group}";

/// Whether the name of a group stands somewhere in `path`.
pub(super) fn has_place(path: &Path) -> bool {
    path.to_str().is_some_and(|text| text.contains(PLACE))
}

/// `path` with the name of a group in its place, where it has one.
#[must_use]
pub fn placed(path: &Path, group: &str) -> PathBuf {
    if has_place(path) { path.to_string_lossy().replace(PLACE, group).into() } else { path.to_owned() }
}

/// The file name of a path between two parts.
fn spelled(path: &Path, before: &str, after: &str) -> OsString {
    let mut name = OsString::from(before);
    name.push(path.file_name().unwrap_or_default());
    name.push(after);
    name
}
