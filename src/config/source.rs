//! `[source]` and `[schema]`: where records come from and what they are.

use super::properties::Properties;
use super::quantity;
use super::secret::{AccessError, secret_text};
use super::security::Security;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// What kind of source feeds the daemon.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SourceKind {
    /// Topics of a Kafka cluster, read as one member of a consumer group.
    #[default]
    Kafka,
    /// Files, which are read to the end as one job; or standard input, which is a stream.
    File,
}

/// How records are written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// One JSON object a message; in files one a line (NDJSON).
    Json,
    /// JSON behind the number of its JSON Schema in a registry (Confluent's serializers). Topics only.
    #[serde(rename = "json_schema")]
    JsonSchema,
    /// Separated values with a header row. Files only.
    Csv,
    /// Apache Parquet. Files only.
    Parquet,
    /// One Avro datum a message, behind the number of its schema in a registry, or plain. Topics only.
    Avro,
    /// One Protobuf message a message, behind the number of its schema in a registry, or plain. Topics only.
    Protobuf,
}

/// How the keys of messages are written down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum KeyFormat {
    /// The key is one text; a key with control characters, which is no text but a number or a frame, is a dead letter.
    #[default]
    Text,
    /// One number of two bytes, the most significant first (Kafka's `ShortSerializer`).
    Int16,
    /// One number of four bytes (`IntegerSerializer`).
    Int32,
    /// One number of eight bytes (`LongSerializer`). `UUIDSerializer` writes text.
    Int64,
    /// JSON: an object, or one value.
    Json,
    /// JSON behind the number of its JSON Schema in a registry.
    #[serde(rename = "json_schema")]
    JsonSchema,
    /// One Avro datum behind the number of its schema in a registry.
    Avro,
    /// One Protobuf message behind the number of its schema in a registry.
    Protobuf,
}

impl KeyFormat {
    /// Whether a key is one value, in which no field is looked for.
    pub fn is_one_value(self) -> bool {
        matches!(self, Self::Text | Self::Int16 | Self::Int32 | Self::Int64)
    }
}

impl Format {
    /// Whether single records are written down like this, and so the messages of a topic may be. The others are formats of
    /// whole files.
    pub fn is_of_records(self) -> bool {
        match self {
            Self::Json | Self::JsonSchema | Self::Avro | Self::Protobuf => true,
            Self::Csv | Self::Parquet => false,
        }
    }

    /// Whether it is JSON, with the number of a schema before it or without.
    pub fn is_json(self) -> bool {
        matches!(self, Self::Json | Self::JsonSchema)
    }

    /// Whether a cell may be a value of its attribute's type beside texts.
    pub fn has_types(self) -> bool {
        matches!(self, Self::Json | Self::JsonSchema | Self::Avro | Self::Protobuf)
    }

    /// Whether files are written down like this.
    pub fn is_of_files(self) -> bool {
        !matches!(self, Self::JsonSchema | Self::Avro | Self::Protobuf)
    }

    /// The format that a file's extension names: `csv`/`tsv`/`tab` and `parquet`, also before `gz` or `zst`; anything else is JSON.
    pub fn of_path(path: &Path) -> Self {
        Self::named_by(path).unwrap_or(Self::Json)
    }

    /// The format that a file's extension names, if it names one.
    pub fn named_by(path: &Path) -> Option<Self> {
        let path = if is_named_compressed(path) { &path.with_extension("") } else { path };
        match path.extension().and_then(|e| e.to_str()).map(str::to_ascii_lowercase).as_deref() {
            Some("csv" | "tsv" | "tab") => Some(Self::Csv),
            Some("parquet") => Some(Self::Parquet),
            Some("json" | "ndjson" | "jsonl") => Some(Self::Json),
            _ => None,
        }
    }
}

/// Whether a path is spelled like a pattern of names.
pub fn is_pattern(path: &Path) -> bool {
    path.as_os_str().as_encoded_bytes().iter().any(|byte| b"*?[".contains(byte))
}

/// Whether a path names several files: a directory, or a pattern with `*`, `?` or `[` that is no file itself.
pub fn is_of_several(path: &Path) -> bool {
    path != Path::new("-") && (path.is_dir() || is_pattern(path) && !path.exists())
}

/// Whether the extension of a path says that the file is compressed.
pub fn is_named_compressed(path: &Path) -> bool {
    path.extension().is_some_and(|e| ["gz", "zst", "zstd"].iter().any(|known| e.eq_ignore_ascii_case(known)))
}

/// One ASCII character that may separate fields, for the JSON Schema.
pub(super) const SEPARATOR: &str = "^[\u{1}-\t\u{b}\u{c}\u{e}-!#-\u{7f}]$";

/// Whether fields may be separated by it.
pub(super) fn is_separator(separator: char) -> bool {
    separator.is_ascii() && !matches!(separator, '"' | '\n' | '\r' | '\0')
}

/// What happens to an attribute in the data that the record schema does not know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Unknown {
    /// It is dropped and counted.
    #[default]
    Drop,
    /// It is an error at the start, and a dead letter later.
    Refuse,
}

/// Where the raw records come from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Source {
    /// `kafka` or `file`.
    #[schemars(example = SourceKind::Kafka)]
    pub kind: SourceKind,
    /// Kafka bootstrap servers, comma-separated.
    #[schemars(example = &"kafka-1:9092,kafka-2:9092")]
    pub brokers: String,
    /// Kafka topics to read. Required with `kind = "kafka"`.
    #[schemars(example = ["wearable.raw"])]
    pub topics: Vec<String>,
    /// Kafka consumer group. Instances of one group share the partitions, and the group's name is part of the
    /// transactional id.
    #[schemars(example = &"throng")]
    pub group: String,
    /// How records are written down. Default: by the extension of `path` for files, else `json`.
    #[schemars(example = Format::Json)]
    pub format: Option<Format>,
    /// How the keys of messages are written down, where an attribute is `from = "key"`. Avro and Protobuf need `registry.url`.
    #[schemars(example = KeyFormat::Text)]
    pub key_format: KeyFormat,
    /// The schema under which plain Avro or Protobuf values were written. Without it values have the number of their schema in the
    /// registry before them, as a registry's clients write them. Of Avro a file in JSON; of Protobuf a text (`.proto`, with what it imports
    /// beside it) or a set of descriptors (`protoc --descriptor_set_out --include_imports`).
    #[schemars(example = &"schemas/heart-rate.avsc")]
    pub writer_schema: Option<PathBuf>,
    /// The full name of the Protobuf message in `writer_schema` that plain values are. Default: the only one at the top of that file.
    #[schemars(example = &"example.HeartRate")]
    pub message: Option<String>,
    /// The file to read; a directory, or a pattern of names (`data/*.parquet`): all its files, in the order of their names; `-` for
    /// standard input (NDJSON and CSV). What gzip or Zstandard has compressed is told by how it begins. Required with `kind = "file"`.
    #[schemars(example = &"data/daily.csv")]
    pub path: PathBuf,
    /// The separator of CSV fields, one ASCII character: in files of the source, of joins and of the sink.
    #[schemars(example = &";", extend("pattern" = SEPARATOR))]
    pub separator: char,
    /// The largest record that is read; a larger one is a dead letter with reason `oversized`.
    #[serde(with = "quantity::size")]
    #[schemars(with = "quantity::Size", example = &"1MiB")]
    pub max_record_bytes: u64,
    /// Properties passed to librdkafka's consumer as they are, names quoted (`"security.protocol" = "ssl"`). The ones
    /// that the exactly-once protocol depends on are refused; `"group.protocol" = "consumer"` lets brokers of Kafka 4.0 and later keep the
    /// members of the group apart (KIP-848), and they decide its times then; passwords and key material are accepted from the
    /// environment only (`THRONG__SOURCE__LIBRDKAFKA__SASL_PASSWORD`, an underscore standing for a dot).
    #[schemars(example = Properties::example())]
    pub librdkafka: Properties,
    /// Who we are to the brokers, and how we know them.
    pub security: Security,
}

impl Default for Source {
    fn default() -> Self {
        Self {
            kind: SourceKind::Kafka,
            brokers: "localhost:9092".into(),
            topics: Vec::new(),
            group: "throng".into(),
            format: None,
            key_format: KeyFormat::Text,
            writer_schema: None,
            message: None,
            path: PathBuf::new(),
            separator: ',',
            max_record_bytes: 1 << 20,
            librdkafka: Properties::default(),
            security: Security::default(),
        }
    }
}

impl Source {
    /// The name under which a state belongs to this source: it goes on under no other. That of a job goes on with any file.
    pub fn identity(&self) -> String {
        match self.kind {
            SourceKind::Kafka => format!("topics {:?}", self.topics),
            SourceKind::File if self.path == Path::new("-") => "standard input".to_owned(),
            SourceKind::File => "files".to_owned(),
        }
    }

    /// The format in force: `format`, or the extension's for files, or JSON.
    pub fn format(&self) -> Format {
        self.format.unwrap_or(match self.kind {
            SourceKind::Kafka => Format::Json,
            SourceKind::File => Format::of_path(&self.path),
        })
    }

    /// The format of a file of such records: that in force, or the extension's where that is one of messages alone.
    pub fn format_of_file(&self, path: &Path) -> Format {
        let format = self.format();
        if format.is_of_files() { format } else { Format::of_path(path) }
    }
}

/// What the records are.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Schema {
    /// The record schema: attributes, types, roles, hierarchies. Required.
    #[schemars(example = &"schemas/wearable.toml")]
    pub file: PathBuf,
    /// What happens to an attribute in the data that the schema does not know.
    #[schemars(example = Unknown::Drop)]
    pub unknown: Unknown,
}

/// A schema registry with the REST interface of Confluent's (Karapace and Apicurio have it too).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Registry {
    /// The registry's address. Without one, Avro and Protobuf records are plain: read under `source.writer_schema`, and written without the number of a schema.
    #[schemars(example = &"http://registry:8081")]
    pub url: Option<String>,
    /// The user of HTTP's basic authentication.
    #[schemars(example = &"throng")]
    pub user: Option<String>,
    /// A file whose content is the user's password (a last newline is not part of it). It may be readable by owner and group
    /// only.
    #[schemars(example = &"secret/registry.password")]
    pub password_file: Option<PathBuf>,
    /// A PEM file of the authorities that may vouch for an `https` registry, instead of the public ones.
    #[schemars(example = &"secret/ca.pem")]
    pub ca_file: Option<PathBuf>,
}

impl Registry {
    /// The user's password, where one is configured.
    ///
    /// # Errors
    /// When its file cannot be read, is empty, or is open to everybody.
    pub fn password(&self) -> Result<Option<Zeroizing<String>>, AccessError> {
        self.password_file.as_deref().map(secret_text).transpose()
    }
}
