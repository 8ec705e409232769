//! `[sink]` and `[output]`: destination and layout of released records.

use super::{KafkaProperties, RecordFormat};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Kind of destination for released records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SinkKind {
    /// A Kafka topic, exactly once.
    #[default]
    Kafka,
    /// A file (one per group), or standard output.
    File,
    /// No output: the daemon only measures and reports the risk.
    None,
}

/// Content of an output line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RowContent {
    /// The attributes of its group.
    #[default]
    Fragments,
    /// Every released attribute, in the order of the schema, with null for those of other groups: the outer join of all
    /// groups. Lines of all groups are sorted as one set.
    Joined,
}

/// Name of the single output of joined rows.
pub const JOINED_OUTPUT: &str = "joined";

/// Sets the destination of released records.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SinkConfig {
    /// Selects the destination: `kafka`, `file` or `none`.
    #[schemars(example = SinkKind::Kafka)]
    pub kind: SinkKind,
    /// Sets the Kafka topic of released records. Required with `kind = "kafka"`. `{group}` in it gives each group a
    /// separate topic.
    #[schemars(example = &"wearable.sanitized")]
    pub topic: String,
    /// Sets the Kafka topic of dead letters: coordinates of an unreadable record and the reason, never its payload.
    #[schemars(example = &"throng.dead-letters")]
    pub dead_letter_topic: String,
    /// Sets the Kafka topic of audit records for a Kafka sink: one JSON record per batch, committed with it, with the
    /// policy's digest, the counts and the verifier's result (`docs/operation.md`). Without it none are written.
    #[schemars(example = &"throng.audit")]
    pub audit_topic: String,
    /// Sets the compacted topic with the state of each source partition and the marker of each instance's last batch.
    /// It needs one partition more than the largest source topic. `[[series]]` also use the topic with this name plus
    /// `.contributions`, with one partition.
    #[schemars(example = &"throng.changelog")]
    pub changelog_topic: String,
    /// Sets the output file, or `-` for standard output (NDJSON of one group). Several groups write one file each, with
    /// the group's name before the extension (`out.motion.ndjson`), or in place of `{group}`. A job over files replaces
    /// the outputs at the end. Lines of standard input are written to a new file as they are released. Required with
    /// `kind = "file"`.
    #[schemars(example = &"out/sanitized.ndjson")]
    pub path: PathBuf,
    /// Sets the encoding of records. Default: by the extension of `path`, else `json`. With `registry.url`, Avro and
    /// Protobuf messages start with the number of their schema; `json_schema` needs a registry.
    #[schemars(example = RecordFormat::Json)]
    pub format: Option<RecordFormat>,
    /// Selects the content of a line. Joined rows of all groups are one file or topic; its `path` or `topic` has no
    /// `{group}`. A row is still one fragment: rows of the same record are not linked.
    #[schemars(example = RowContent::Joined)]
    pub rows: RowContent,
    /// Sets the file of audit records (NDJSON) of a file sink. Without it none are written.
    #[schemars(example = &"out/audit.ndjson")]
    pub audit_file: Option<PathBuf>,
    /// Sets the file of dead letters (NDJSON) of a file sink. Without it they are only counted.
    #[schemars(example = &"out/dead-letters.ndjson")]
    pub dead_letter_path: Option<PathBuf>,
    /// Passes properties to librdkafka's producer; rules as for `source.librdkafka`.
    #[schemars(example = KafkaProperties::example())]
    pub librdkafka: KafkaProperties,
}

impl Default for SinkConfig {
    fn default() -> Self {
        Self {
            kind: SinkKind::Kafka,
            topic: String::new(),
            dead_letter_topic: "throng.dead-letters".into(),
            audit_topic: String::new(),
            changelog_topic: "throng.changelog".into(),
            path: PathBuf::new(),
            format: None,
            rows: RowContent::Fragments,
            audit_file: None,
            dead_letter_path: None,
            librdkafka: KafkaProperties::default(),
        }
    }
}

impl SinkConfig {
    /// Returns the effective format: `format`, else by file extension, else JSON.
    pub fn format(&self) -> RecordFormat {
        self.format.unwrap_or(match self.kind {
            SinkKind::File => RecordFormat::from_path(&self.path),
            SinkKind::Kafka | SinkKind::None => RecordFormat::Json,
        })
    }

    /// Returns the topic of audit records, if configured.
    pub fn audit(&self) -> Option<&str> {
        Some(self.audit_topic.as_str()).filter(|topic| !topic.is_empty())
    }

    /// Returns the topic of dead letters, if configured.
    pub fn dead_letters(&self) -> Option<&str> {
        Some(self.dead_letter_topic.as_str()).filter(|topic| !topic.is_empty())
    }

    /// Returns true if audit records are written.
    pub fn is_audited(&self) -> bool {
        match self.kind {
            SinkKind::Kafka => self.audit().is_some(),
            SinkKind::File => self.audit_file.is_some(),
            SinkKind::None => false,
        }
    }

    /// Returns true if an absent cell is written as a missing one: the format cannot omit it, or each row has every
    /// attribute.
    pub fn writes_absent_cells(&self) -> bool {
        self.rows == RowContent::Joined || !self.format().is_json()
    }

    /// Returns the path of the marker file of an output with possibly untruthful numbers.
    pub fn mark_path(output: &Path) -> PathBuf {
        output.with_file_name(file_name_with_suffix(output, ".untruthful"))
    }

    /// Returns the Kafka topic of a group.
    pub fn topic_of(&self, group: &str) -> String {
        self.topic.replace(GROUP_PLACEHOLDER, group)
    }

    /// Returns the file of a group; `alone` if there is no other. The group's name replaces `{group}`, else, with
    /// several groups, it precedes the extension.
    pub fn file_of(path: &Path, group: &str, alone: bool) -> PathBuf {
        if has_group_placeholder(path) {
            with_group_name(path, group)
        } else if alone {
            path.to_owned()
        } else {
            with_inserted_part(path, group)
        }
    }
}

fn with_inserted_part(path: &Path, part: &str) -> PathBuf {
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

const GROUP_PLACEHOLDER: &str = "{group}";

pub(super) fn has_group_placeholder(path: &Path) -> bool {
    path.to_str().is_some_and(|text| text.contains(GROUP_PLACEHOLDER))
}

/// Replaces `{group}` in `path` by the name of a group.
pub fn with_group_name(path: &Path, group: &str) -> PathBuf {
    if has_group_placeholder(path) {
        path.to_string_lossy().replace(GROUP_PLACEHOLDER, group).into()
    } else {
        path.to_owned()
    }
}

fn file_name_with_suffix(path: &Path, after: &str) -> OsString {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(after);
    name
}

/// Arrangement of the attributes in a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OutputShape {
    /// All attributes at the top level, under their names.
    #[default]
    Flat,
    /// Nested objects, at the pointers of the attributes.
    Nested,
}

/// Sets the layout of a released line.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct OutputConfig {
    /// Selects the layout. `nested`: as the input; an exploded array has its single element. JSON only, not for joined
    /// rows.
    #[schemars(example = OutputShape::Nested)]
    pub shape: OutputShape,
}
