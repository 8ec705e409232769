//! `[sink]`: where released records go.

use super::{Format, Properties};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

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
    /// The Kafka topic of released records. Required with `kind = "kafka"`. With `{group}` in it each group has a topic of its own.
    #[schemars(example = &"wearable.sanitized")]
    pub topic: String,
    /// The Kafka topic of dead letters: coordinates and reason of a record that could not be read, never its payload.
    #[schemars(example = &"throng.dead-letters")]
    pub dead_letter_topic: String,
    /// The Kafka topic of audit records, where the sink is a topic: one plain JSON record for each committed batch, in the batch's own
    /// transaction, with the policy's digest, the counts and the verifier's result (`docs/operation.md`). Without it none are written.
    #[schemars(example = &"throng.audit")]
    pub audit_topic: String,
    /// Compacted topic with the state of each source partition and the marker of each instance's last batch. It needs one
    /// partition more than the source topic with the most partitions. With `[[series]]` a topic of this name and `.contributions` is used as
    /// well, of one partition.
    #[schemars(example = &"throng.changelog")]
    pub changelog_topic: String,
    /// The file to write, `-` for standard output (NDJSON of one group). Several groups write a file each, with the group's name before
    /// the extension (`out.motion.ndjson`), or where the path has `{group}`. A job over files writes beside it and replaces it at the
    /// end; lines of standard input leave as they are released, to a new file. Required with `kind = "file"`.
    #[schemars(example = &"out/sanitized.ndjson")]
    pub path: PathBuf,
    /// How records are written down. Default: by the extension of `path` for files, else `json`. With `registry.url` messages in Avro and
    /// Protobuf have the number of their schema before them, under which a registry's clients read them; `json_schema` needs one.
    #[schemars(example = Format::Json)]
    pub format: Option<Format>,
    /// What a line carries: `fragments`, the attributes of its group alone, or `joined`, every attribute that leaves, with null for
    /// those of other groups. Joined rows of all groups are one file or topic, whose `path` or `topic` has no `{group}`; an absent
    /// cell is null in them. A row is one fragment all the same: nothing says which rows were one record.
    #[schemars(example = Rows::Joined)]
    pub rows: Rows,
    /// The file of audit records (NDJSON) of a file sink. Without it none are written.
    #[schemars(example = &"out/audit.ndjson")]
    pub audit_file: Option<PathBuf>,
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
            topic: String::new(),
            dead_letter_topic: "throng.dead-letters".into(),
            audit_topic: String::new(),
            changelog_topic: "throng.changelog".into(),
            path: PathBuf::new(),
            format: None,
            rows: Rows::Fragments,
            audit_file: None,
            dead_letter_path: None,
            librdkafka: Properties::default(),
        }
    }
}

impl Sink {
    /// The format in force: `format`, or the extension's for files, or JSON.
    pub fn format(&self) -> Format {
        self.format.unwrap_or(match self.kind {
            SinkKind::File => Format::of_path(&self.path),
            SinkKind::Kafka | SinkKind::None => Format::Json,
        })
    }

    /// The topic of audit records; none where none are configured.
    pub fn audit(&self) -> Option<&str> {
        Some(self.audit_topic.as_str()).filter(|topic| !topic.is_empty())
    }

    /// Whether audit records are written.
    pub fn is_audited(&self) -> bool {
        match self.kind {
            SinkKind::Kafka => self.audit().is_some(),
            SinkKind::File => self.audit_file.is_some(),
            SinkKind::None => false,
        }
    }

    /// Whether lines spell an absent cell as a missing one: the format has no way to leave it out, or each row has every
    /// attribute.
    pub fn cannot_omit(&self) -> bool {
        self.rows == Rows::Joined || !self.format().is_json()
    }

    /// The file beside an output that says that numbers of it are those of others or means.
    pub fn mark_path(output: &Path) -> PathBuf {
        output.with_file_name(spelled(output, ".untruthful"))
    }

    /// The Kafka topic of each of these groups.
    pub fn topic_of(&self, group: &str) -> String {
        self.topic.replace(PLACE, group)
    }

    /// The file of a group; `alone` where there is no other group.
    ///
    /// The group's name stands where the path has `{group}`; else of several groups before the extension.
    pub fn file_of(path: &Path, group: &str, alone: bool) -> PathBuf {
        if has_place(path) {
            placed(path, group)
        } else if alone {
            path.to_owned()
        } else {
            with_part(path, group)
        }
    }
}

/// `path` with `part` before its extension, or behind it where it has none.
fn with_part(path: &Path, part: &str) -> PathBuf {
    let (stem, extension) = match (path.file_stem(), path.extension()) {
        (Some(stem), Some(extension)) => (stem, Some(extension)),
        _ => (path.file_name().unwrap_or_default(), None),
    };
    let mut name = stem.to_owned();
    name.push(".");
    name.push(part);
    if let Some(extension) = extension {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
}

/// Where the name of a group stands in a path or a topic.
const PLACE: &str = "{group}";

/// Whether the name of a group stands somewhere in `path`.
pub(super) fn has_place(path: &Path) -> bool {
    path.to_str().is_some_and(|text| text.contains(PLACE))
}

/// `path` with the name of a group in its place, where it has one.
pub fn placed(path: &Path, group: &str) -> PathBuf {
    if has_place(path) { path.to_string_lossy().replace(PLACE, group).into() } else { path.to_owned() }
}

/// The file name of a path with a part behind it.
fn spelled(path: &Path, after: &str) -> OsString {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(after);
    name
}

/// How the attributes of a line stand in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OutputShape {
    /// Side by side, under their names.
    #[default]
    Flat,
    /// One inside another, where their pointers lead.
    Nested,
}

/// What a released line looks like.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Output {
    /// `flat`: the attributes under their names, side by side. `nested`: where the pointers of the record schema lead, as the
    /// input was nested; an element of an exploded array is the one element of it. JSON lines and messages only, not for joined rows.
    #[schemars(example = OutputShape::Nested)]
    pub shape: OutputShape,
}
