//! `[sink]`: where released records go.

use std::path::PathBuf;

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
    /// The Kafka topic of released records. Required with `kind = "kafka"`.
    #[schemars(example = &"wearable.sanitized")]
    pub topic: String,
    /// The Kafka topic of dead letters: coordinates and reason of a record that could not be read, never its payload.
    #[schemars(example = &"throng.dead-letters")]
    pub dead_letter_topic: String,
    /// The compacted Kafka topic of commit markers.
    #[schemars(example = &"throng.commits")]
    pub commits_topic: String,
    /// The file to write, `-` for standard output (NDJSON, at least once). With several groups each writes
    /// `PATH.GROUP`. Required with `kind = "file"`.
    #[schemars(example = &"out/sanitized.ndjson")]
    pub path: PathBuf,
    /// How records are written down. Default: by the extension of `path` for files, else `json`.
    #[schemars(example = Format::Json)]
    pub format: Option<Format>,
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
    /// `PATH.SUFFIX`.
    #[must_use]
    pub fn beside(&self, suffix: &str) -> PathBuf {
        let mut path = self.path.clone().into_os_string();
        path.push(".");
        path.push(suffix);
        path.into()
    }

    /// The file that says of a file sink's output that values are exchanged between its records.
    #[must_use]
    pub fn mark_path(&self) -> PathBuf {
        self.beside("untruthful")
    }

    /// The file beside a file sink's output that names the last batch written there; none for standard output. Its name begins
    /// with a dot, so that no pattern for the output takes it along.
    #[must_use]
    pub fn marker_path(&self) -> Option<PathBuf> {
        let mut name = std::ffi::OsString::from(".");
        name.push(self.path.file_name().filter(|_| self.kind == SinkKind::File && self.path.as_os_str() != "-")?);
        name.push(".marker");
        Some(self.path.with_file_name(name))
    }
}
