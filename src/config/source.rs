//! `[source]`, `[schema]` and `[registry]`: origin and description of the records.

use super::kafka_properties::KafkaProperties;
use super::quantity;
use super::security::SecurityConfig;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use throng_kafka::secret_file::{AccessError, secret_text};
use zeroize::Zeroizing;

/// Kind of source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SourceKind {
    /// Topics of a Kafka cluster, read as one member of a consumer group.
    #[default]
    Kafka,
    /// Files, read to the end as one job; or standard input, a stream.
    File,
}

/// Encoding of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RecordFormat {
    /// One JSON object per message; in files one per line (NDJSON).
    Json,
    /// JSON with the number of its JSON Schema in a registry (Confluent's serializers). Topics only.
    #[serde(rename = "json_schema")]
    JsonSchema,
    /// Separated values with a header row. Files only.
    Csv,
    /// Apache Parquet. Files only.
    Parquet,
    /// Export of Apple's Health app, `export.xml`; the file name is the person. Source files only.
    #[serde(rename = "apple_health")]
    AppleHealth,
    /// One Avro datum per message, with the number of its schema in a registry, or plain. Topics only.
    Avro,
    /// One Protobuf message per Kafka message, with the number of its schema in a registry, or plain. Topics only.
    Protobuf,
}

/// Encoding of message keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum KeyFormat {
    /// One text. A key with control characters is not text, and its message is a dead letter.
    #[default]
    Text,
    /// One number of two bytes, big-endian (Kafka's `ShortSerializer`).
    Int16,
    /// One number of four bytes (`IntegerSerializer`).
    Int32,
    /// One number of eight bytes (`LongSerializer`).
    Int64,
    /// JSON: an object, or one value.
    Json,
    /// JSON with the number of its JSON Schema in a registry.
    #[serde(rename = "json_schema")]
    JsonSchema,
    /// One Avro datum with the number of its schema in a registry.
    Avro,
    /// One Protobuf message with the number of its schema in a registry.
    Protobuf,
}

impl KeyFormat {
    /// Returns true if a key is one value without fields.
    pub fn is_one_value(self) -> bool {
        matches!(self, Self::Text | Self::Int16 | Self::Int32 | Self::Int64)
    }
}

impl RecordFormat {
    /// Returns true if the format encodes single records; the others encode whole files.
    pub fn is_message_format(self) -> bool {
        match self {
            Self::Json | Self::JsonSchema | Self::Avro | Self::Protobuf => true,
            Self::Csv | Self::Parquet | Self::AppleHealth => false,
        }
    }

    /// Returns true for JSON, with or without a schema number.
    pub fn is_json(self) -> bool {
        matches!(self, Self::Json | Self::JsonSchema)
    }

    /// Returns true if cells have types, in addition to text.
    pub fn has_typed_cells(self) -> bool {
        matches!(self, Self::Json | Self::JsonSchema | Self::Avro | Self::Protobuf)
    }

    /// Returns true if files are read and written in the format.
    pub fn is_file_format(self) -> bool {
        matches!(self, Self::Json | Self::Csv | Self::Parquet)
    }

    /// Returns true if source files are read in the format.
    pub fn is_source_file_format(self) -> bool {
        self.is_file_format() || self == Self::AppleHealth
    }

    /// Returns the format for a file extension, also before `gz` or `zst`; JSON if unknown.
    pub fn from_path(path: &Path) -> Self {
        Self::from_known_extension(path).unwrap_or(Self::Json)
    }

    /// Returns the format for a known file extension; None for others.
    pub fn from_known_extension(path: &Path) -> Option<Self> {
        let path = if has_compressed_extension(path) { &path.with_extension("") } else { path };
        match path.extension().and_then(|e| e.to_str()).map(str::to_ascii_lowercase).as_deref() {
            Some("csv" | "tsv" | "tab") => Some(Self::Csv),
            Some("parquet") => Some(Self::Parquet),
            Some("xml") => Some(Self::AppleHealth),
            Some("json" | "ndjson" | "jsonl") => Some(Self::Json),
            _ => None,
        }
    }
}

/// Returns true if a path contains pattern characters.
pub fn is_pattern(path: &Path) -> bool {
    path.as_os_str().as_encoded_bytes().iter().any(|byte| b"*?[".contains(byte))
}

/// Returns true for a directory, or a pattern with `*`, `?` or `[` that is not an existing file.
pub fn names_several_files(path: &Path) -> bool {
    path != Path::new("-") && (path.is_dir() || is_pattern(path) && !path.exists())
}

/// Returns true if the extension marks the file as compressed.
pub fn has_compressed_extension(path: &Path) -> bool {
    path.extension().is_some_and(|e| ["gz", "zst", "zstd"].iter().any(|known| e.eq_ignore_ascii_case(known)))
}

/// JSON Schema pattern of the ASCII characters that may separate fields.
pub(super) const SEPARATOR: &str = "^[\u{1}-\t\u{b}\u{c}\u{e}-!#-\u{7f}]$";

pub(super) fn is_separator(separator: char) -> bool {
    separator.is_ascii() && !matches!(separator, '"' | '\n' | '\r' | '\0')
}

/// Handling of attributes that the record schema does not define.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum UnknownAttributes {
    /// Drops and counts the attribute.
    #[default]
    Drop,
    /// Fails at the start; later the record becomes a dead letter.
    Refuse,
}

/// Sets the source of the raw records.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SourceConfig {
    /// Selects the kind of source: `kafka` or `file`.
    #[schemars(example = SourceKind::Kafka)]
    pub kind: SourceKind,
    /// Lists the Kafka bootstrap servers, comma-separated.
    #[schemars(example = &"kafka-1:9092,kafka-2:9092")]
    pub brokers: String,
    /// Lists the Kafka topics to read. Required with `kind = "kafka"`.
    #[schemars(example = ["wearable.raw"])]
    pub topics: Vec<String>,
    /// Sets the Kafka consumer group. Its instances share the partitions. Part of the transactional id.
    #[schemars(example = &"throng")]
    pub group: String,
    /// Sets the encoding of records. Default: by the extension of `path`, else `json`.
    #[schemars(example = RecordFormat::Json)]
    pub format: Option<RecordFormat>,
    /// Sets the encoding of message keys, for attributes with `from = "key"`. Avro and Protobuf need `registry.url`.
    #[schemars(example = KeyFormat::Text)]
    pub key_format: KeyFormat,
    /// Sets the schema of plain Avro or Protobuf values. Without it values start with the number of their schema in the
    /// registry. For Avro a JSON file. For Protobuf a text (`.proto`, with its imports in the same directory) or a
    /// descriptor set (`protoc --descriptor_set_out --include_imports`).
    #[schemars(example = &"schemas/heart-rate.avsc")]
    pub writer_schema: Option<PathBuf>,
    /// Sets the full name of the Protobuf message in `writer_schema`. Default: the only top-level message of that file.
    #[schemars(example = &"example.HeartRate")]
    pub message: Option<String>,
    /// Sets the file to read; a directory or pattern (`data/*.parquet`): all its files, ordered by name; `-` for
    /// standard input (not Parquet). gzip and Zstandard are detected by the first bytes. Required with `kind =
    /// "file"`.
    #[schemars(example = &"data/daily.csv")]
    pub path: PathBuf,
    /// Sets the separator of CSV fields, one ASCII character, for source, joins and sink.
    #[schemars(example = &";", extend("pattern" = SEPARATOR))]
    pub separator: char,
    /// Limits the size of a record; a larger one is a dead letter with reason `oversized`.
    #[serde(with = "quantity::size")]
    #[schemars(with = "quantity::Size", example = &"1MiB")]
    pub max_record_bytes: u64,
    /// Passes properties to librdkafka's consumer, names quoted (`"security.protocol" = "ssl"`). Those that the
    /// exactly-once protocol depends on are refused. With `"group.protocol" = "consumer"` brokers of Kafka 4.0 and
    /// later assign the partitions (KIP-848) and set the group's timeouts. Passwords and keys are accepted from the
    /// environment only (`THRONG__SOURCE__LIBRDKAFKA__SASL_PASSWORD`, with an underscore for each dot).
    #[schemars(example = KafkaProperties::example())]
    pub librdkafka: KafkaProperties,
    /// Sets the credentials for the brokers, and their certificate authorities.
    pub security: SecurityConfig,
}

impl Default for SourceConfig {
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
            librdkafka: KafkaProperties::default(),
            security: SecurityConfig::default(),
        }
    }
}

impl SourceConfig {
    /// Identifies the source in the state, which continues only with the same source. All jobs over files share one
    /// identity.
    pub fn identity(&self) -> String {
        match self.kind {
            SourceKind::Kafka => format!("topics {:?}", self.topics),
            SourceKind::File if self.path == Path::new("-") => "standard input".to_owned(),
            SourceKind::File => "files".to_owned(),
        }
    }

    /// Returns the effective format: `format`, else by file extension, else JSON.
    pub fn format(&self) -> RecordFormat {
        self.format.unwrap_or(match self.kind {
            SourceKind::Kafka => RecordFormat::Json,
            SourceKind::File => RecordFormat::from_path(&self.path),
        })
    }

    /// Returns the format of a file of such records: the effective one, or by extension if that is for messages only.
    pub fn format_of_file(&self, path: &Path) -> RecordFormat {
        let format = self.format();
        if format.is_source_file_format() { format } else { RecordFormat::from_path(path) }
    }
}

/// Describes the records.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SchemaConfig {
    /// Sets the file of the record schema: attributes, types, roles, hierarchies. Required.
    #[schemars(example = &"schemas/wearable.toml")]
    pub file: PathBuf,
    /// Selects the handling of attributes that the record schema does not define.
    #[schemars(example = UnknownAttributes::Drop)]
    pub unknown: UnknownAttributes,
}

/// Sets the schema registry, with Confluent's REST interface (also Karapace and Apicurio).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RegistryConfig {
    /// Sets the registry's address. Without it, Avro and Protobuf records are plain: read with `source.writer_schema`,
    /// written without a schema number.
    #[schemars(example = &"http://registry:8081")]
    pub url: Option<String>,
    /// Sets the user of HTTP basic authentication.
    #[schemars(example = &"throng")]
    pub user: Option<String>,
    /// Sets the file with the user's password (a last newline does not count), readable by owner and group only.
    #[schemars(example = &"secret/registry.password")]
    pub password_file: Option<PathBuf>,
    /// Sets a PEM file of the authorities for an `https` registry, instead of the public ones.
    #[schemars(example = &"secret/ca.pem")]
    pub ca_file: Option<PathBuf>,
}

impl RegistryConfig {
    /// Returns the user's password, if configured.
    ///
    /// # Errors
    /// Fails if the file cannot be read, is empty, or is open to other users.
    pub fn password(&self) -> Result<Option<Zeroizing<String>>, AccessError> {
        self.password_file.as_deref().map(secret_text).transpose()
    }
}
