//! `[sink]`: where released records go.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Format, Properties, Security, quantity};

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
    /// The Kafka topic in which the instances of `source.group` tell each other what they have released, sealed with the group's secret:
    /// what one has released then supports what the others release. Without it each instance counts its own releases alone. Needs
    /// topics as source and sink, one secret for all instances (`state.secret_file`), and `recoding = "ladder"` or a `batch_crowd` of
    /// `k`, with which it changes nothing. The topic keeps records (`cleanup.policy = delete`) for `privacy.support_window` and
    /// `ledger_skew` at least.
    #[schemars(example = &"throng.ledger")]
    pub ledger_topic: String,
    /// How far the clocks of two instances may be apart: what another one has released counts as so much older than its stamp says, and
    /// stamps that lie further in the future are ignored. Below `privacy.support_window`.
    #[serde(with = "quantity::duration")]
    #[schemars(with = "quantity::DurationText", example = &"1m")]
    pub ledger_skew: Duration,
    /// The Kafka topic through which the instances of `source.group` hand each other records that find no crowd where they are, sealed
    /// with the group's secret: one of them pools them with others' and releases or suppresses them. Without it such records are
    /// suppressed where they are. Needs topics as source and sink, one secret for all instances (`state.secret_file`), and
    /// `recoding = "ladder"`. The topic keeps records (`cleanup.policy = delete`) for `residue_age` at least.
    #[schemars(example = &"throng.residue")]
    pub residue_topic: String,
    /// How old such a record may be, from the batch that handed it on to the batch that takes it up; an older one is suppressed.
    #[serde(with = "quantity::duration")]
    #[schemars(with = "quantity::DurationText", example = &"10m")]
    pub residue_age: Duration,
    /// The file to write, `-` for standard output (NDJSON, at least once). Several groups write a file each, with the group's
    /// name before the extension (`out.motion.ndjson`), or where the path has `{group}`. Required with `kind = "file"`.
    #[schemars(example = &"out/sanitized.ndjson")]
    pub path: PathBuf,
    /// How records are written down. Default: by the extension of `path` for files, else `json`.
    #[schemars(example = Format::Json)]
    pub format: Option<Format>,
    /// Whether each message has the number of its schema in the registry before it, under which a registry's clients read it.
    /// Default: with `registry.url` for Avro and Protobuf, and never for JSON. Topics only.
    #[schemars(example = Some(true))]
    pub framed: Option<bool>,
    /// What a line carries: `fragments`, the attributes of its group alone, or `joined`, every attribute that leaves, with null for
    /// those of other groups. Joined rows of all groups are one file or topic, whose `path` or `topic` has no `{group}`; an absent
    /// cell is null in them. A row is one fragment all the same: nothing says which rows were one record.
    #[schemars(example = Rows::Joined)]
    pub rows: Rows,
    /// The separator of CSV fields, one ASCII character.
    #[schemars(example = &";", extend("pattern" = super::source::SEPARATOR))]
    pub separator: char,
    /// The file of dead letters (NDJSON) of a file sink. Without it they are counted only.
    #[schemars(example = &"out/dead-letters.ndjson")]
    pub dead_letter_path: Option<PathBuf>,
    /// When a file of lines is followed by another one.
    pub rotate: Rotate,
    /// Properties passed to librdkafka's producer as they are; the same rules as for `source.librdkafka`.
    #[schemars(example = Properties::example())]
    pub librdkafka: Properties,
    /// Who we are to the brokers of the sink, and how we know them. Default: `source.security`, where the brokers are the same.
    pub security: Option<Security>,
}

/// When a file of released lines is followed by another one: `out.00000000.ndjson`, `out.00000001.ndjson`, … Either is enough. A file holds
/// whole batches, and is complete once the next one has a committed batch. Segments of Parquet are files of their own without this.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Rotate {
    /// From this length on; `0B`: whatever its length.
    #[serde(with = "quantity::size")]
    #[schemars(with = "quantity::Size", example = &"256MiB")]
    pub size: u64,
    /// This long after its first batch, by the clock of the batches; `0s`: however old. Looked at when a batch leaves.
    #[serde(with = "quantity::duration")]
    #[schemars(with = "quantity::DurationText", example = &"1h")]
    pub age: Duration,
}

impl Rotate {
    /// Whether files are rotated at all.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.size > 0 || !self.age.is_zero()
    }
}

impl Default for Sink {
    fn default() -> Self {
        Self {
            kind: SinkKind::Kafka,
            brokers: None,
            topic: String::new(),
            dead_letter_topic: "throng.dead-letters".into(),
            commits_topic: "throng.commits".into(),
            ledger_topic: String::new(),
            ledger_skew: Duration::from_mins(1),
            residue_topic: String::new(),
            residue_age: Duration::from_mins(10),
            path: PathBuf::new(),
            format: None,
            framed: None,
            rows: Rows::Fragments,
            separator: ',',
            dead_letter_path: None,
            rotate: Rotate::default(),
            librdkafka: Properties::default(),
            security: None,
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

    /// The topic in which instances tell each other what they have released; none where each counts its own alone.
    #[must_use]
    pub fn shared_ledger(&self) -> Option<&str> {
        Some(self.ledger_topic.as_str()).filter(|topic| !topic.is_empty())
    }

    /// The topic through which instances hand each other records that find no crowd; none where they are suppressed.
    #[must_use]
    pub fn residue(&self) -> Option<&str> {
        Some(self.residue_topic.as_str()).filter(|topic| !topic.is_empty())
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
        with_part(path, group)
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

/// File number `number` of an output that is rotated.
#[must_use]
pub fn numbered(path: &Path, number: u64) -> PathBuf {
    with_part(path, &format!("{number:08}"))
}

/// The number of the file that is called `name` among those of an output that is rotated; none of another file.
pub(super) fn number_in_series(path: &Path, name: &OsStr) -> Option<u64> {
    let mut numbers = name.to_str()?.split('.').filter_map(|part| part.parse().ok());
    numbers.find(|number| numbered(path, *number).file_name() == Some(name))
}

/// The files that are there of an output that is rotated, by their numbers.
///
/// # Errors
/// When the directory cannot be read; one that is not there has none.
pub fn series_of(path: &Path) -> io::Result<BTreeMap<u64, PathBuf>> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let entries = match std::fs::read_dir(parent) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
        entries => entries?,
    };
    let mut files = BTreeMap::new();
    for entry in entries {
        let name = entry?.file_name();
        if let Some(number) = number_in_series(path, &name) {
            files.insert(number, path.with_file_name(&name));
        }
    }
    Ok(files)
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
