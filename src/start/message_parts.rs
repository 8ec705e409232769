//! Configuration of a message key or value: wanted fields and decoder.

use super::record_formats::codec_limits;
use crate::config::{Config, ConfigProblem, KeyFormat, RecordFormat};
use crate::io::registry::{
    FrameEncoding, FramedDecoder, FramedJson, RegistryAccess, RegistryClient, SchemaLookup, WantedFields,
};
use crate::telemetry::Telemetry;
use std::path::Path;
use std::sync::Arc;
use throng_core::values::canonical::AttributeType;
use throng_formats::message::MessagePartDecoder;
use throng_formats::{AvroCodec, FieldPath, JsonCodec, NumberCodec, ProtobufSchema, TextCodec, UnknownCellPolicy};

#[derive(Clone, Copy, PartialEq)]
pub(super) enum PartFormat {
    Text,
    /// Number of this many bytes.
    Number(usize),
    Json,
    JsonSchema,
    Avro,
    Protobuf,
}

impl PartFormat {
    pub fn of_values(format: RecordFormat) -> Self {
        match format {
            RecordFormat::Avro => Self::Avro,
            RecordFormat::Protobuf => Self::Protobuf,
            RecordFormat::JsonSchema => Self::JsonSchema,
            // File formats are rejected for topics elsewhere.
            RecordFormat::Json | RecordFormat::Csv | RecordFormat::Parquet | RecordFormat::AppleHealth => Self::Json,
        }
    }

    pub fn of_keys(format: KeyFormat) -> Self {
        match format {
            KeyFormat::Text => Self::Text,
            KeyFormat::Int16 => Self::Number(2),
            KeyFormat::Int32 => Self::Number(4),
            KeyFormat::Int64 => Self::Number(8),
            KeyFormat::Json => Self::Json,
            KeyFormat::JsonSchema => Self::JsonSchema,
            KeyFormat::Avro => Self::Avro,
            KeyFormat::Protobuf => Self::Protobuf,
        }
    }

    /// Returns true if the part has no fields.
    pub fn is_one_value(self) -> bool {
        matches!(self, Self::Text | Self::Number(_))
    }

    /// Name in problems of a format that needs the writer's schema.
    fn schema_format_name(self) -> Option<&'static str> {
        match self {
            Self::Text | Self::Number(_) | Self::Json | Self::JsonSchema => None,
            Self::Avro => Some("Avro"),
            Self::Protobuf => Some("Protobuf"),
        }
    }

    fn framed_as(self) -> Option<FrameEncoding> {
        match self {
            Self::Text | Self::Number(_) | Self::Json => None,
            Self::JsonSchema => Some(FrameEncoding::Json),
            Self::Avro => Some(FrameEncoding::Avro),
            Self::Protobuf => Some(FrameEncoding::Protobuf),
        }
    }
}

/// Field wanted from a part.
#[derive(Clone)]
pub(super) struct PartField {
    /// Column in a row.
    pub at: usize,
    /// Name in messages.
    pub name: String,
    pub field: FieldPath,
    /// Type required in the writer's schema, if any.
    pub kind: Option<AttributeType>,
    /// The writer's schema may lack the field.
    pub optional: bool,
}

impl PartField {
    /// Takes the whole part as one cell.
    pub fn whole(at: usize) -> Self {
        Self {
            at,
            name: "the whole".to_owned(),
            field: FieldPath::from_segments(Vec::new()),
            kind: None,
            optional: false,
        }
    }
}

const SCHEMA_KEY: &str = "source.writer_schema";

pub(super) struct MessagePartConfig<'a> {
    pub format: PartFormat,
    /// Configuration key of the format.
    pub format_key: String,
    /// Schema file of plain (unframed) parts.
    pub writer_schema: Option<&'a Path>,
    /// Protobuf message of that schema.
    pub message: Option<&'a str>,
    /// True for values, which are decoded even without wanted fields: an unreadable value is no record.
    pub is_value: bool,
    pub wanted: Vec<PartField>,
    pub unknown: UnknownCellPolicy,
}

impl MessagePartConfig<'_> {
    /// The part starts with the number of its schema.
    fn is_framed(&self) -> bool {
        self.format.framed_as().is_some() && self.writer_schema.is_none()
    }

    fn fields(&self) -> Vec<(usize, FieldPath)> {
        self.wanted.iter().map(|wanted| (wanted.at, wanted.field.clone())).collect()
    }

    /// Returns problems of the part and of its files.
    pub fn problems(&self, config: &Config, file: &str) -> Vec<ConfigProblem> {
        let mut found = Vec::new();
        let mut problem = |key: &str, message: String, remedy: &str| {
            found.push(ConfigProblem::new(file, key, message, remedy));
        };
        let used = self.is_value || !self.wanted.is_empty();
        if self.message.is_some() && (self.format != PartFormat::Protobuf || self.is_framed()) {
            let message = "a message of plain Protobuf is named, but the source does not read plain Protobuf";
            problem("source.message", message.into(), "set its schema in source.writer_schema, or remove the key");
        }
        let Some(name) = self.format.schema_format_name().filter(|_| used) else {
            if self.writer_schema.is_some() {
                let message = "JSON is read without a writer schema";
                problem(SCHEMA_KEY, message.into(), "remove the key, or set source.format");
            }
            return found;
        };
        if self.is_framed() && config.registry.url.is_none() {
            let message = format!("{name} cannot be read without a writer schema");
            let remedy = if self.format_key == "source.format" {
                "name a registry (registry.url), or the file of the schema in source.writer_schema"
            } else {
                "name a registry (registry.url)"
            };
            problem(&self.format_key, message, remedy);
        }
        let Some(path) = self.writer_schema else { return found };
        match self.writer_schema_decoder(path, config) {
            Err(what) => problem(SCHEMA_KEY, what, "correct the file, or name another one"),
            Ok((_, missing)) => {
                for wanted in self.wanted.iter().filter(|w| !w.optional && missing.contains(&w.at)) {
                    let place = wanted.field.pointer.join("/");
                    let message = format!("the schema has no field /{place} for {}", wanted.name);
                    let remedy = "correct its place (`pointer` of an attribute in the schema)";
                    problem(SCHEMA_KEY, message, remedy);
                }
            }
        }
        found
    }

    /// Returns the decoder of plain records, and the cells missing in it.
    fn writer_schema_decoder(
        &self,
        path: &Path,
        config: &Config,
    ) -> Result<(Box<dyn MessagePartDecoder>, Vec<usize>), String> {
        let (limits, unknown, fields) = (codec_limits(config).0, self.unknown, self.fields());
        let wrong = |error: &dyn std::fmt::Display| format!("{} is {error}", path.display());
        if self.format == PartFormat::Protobuf {
            let codec = ProtobufSchema::compile_proto_file(path)
                .and_then(|schema| schema.message_by_name(self.message))
                .and_then(|message| message.codec(&fields, limits, unknown))
                .map_err(|error| wrong(&error))?;
            let missing = codec.missing().to_vec();
            return Ok((Box::new(codec), missing));
        }
        let text =
            std::fs::read_to_string(path).map_err(|error| format!("{} cannot be read ({error})", path.display()))?;
        let codec = AvroCodec::new(&text, &fields, limits, unknown).map_err(|error| wrong(&error))?;
        let missing = codec.missing().to_vec();
        Ok((Box::new(codec), missing))
    }

    /// Builds the decoder.
    ///
    /// # Errors
    /// Fails for problems of the writer's schema.
    pub fn decoder(
        &self,
        config: &Config,
        lookup: Option<&Arc<SchemaLookup>>,
        file: &str,
        telemetry: &Telemetry,
    ) -> Result<Box<dyn MessagePartDecoder>, ConfigProblem> {
        let (limits, unknown, fields) = (codec_limits(config).0, self.unknown, self.fields());
        let json = |fields: &[(usize, FieldPath)]| JsonCodec::for_message_part(fields, limits).with_unknown(unknown);
        if let (true, Some(lookup), Some(format)) = (self.is_framed(), lookup, self.format.framed_as()) {
            let types = self.wanted.iter().map(|wanted| wanted.kind).collect();
            let optional = self.wanted.iter().filter(|wanted| wanted.optional).map(|wanted| wanted.at).collect();
            let wanted = WantedFields { format, fields, types, optional, limits, unknown };
            return Ok(Box::new(FramedDecoder::new(Arc::clone(lookup), wanted, telemetry.clone())));
        }
        Ok(match self.format {
            PartFormat::Text => Box::new(TextCodec::new(&fields, limits)),
            PartFormat::Number(bytes) => Box::new(NumberCodec::new(&fields, bytes)),
            PartFormat::JsonSchema => Box::new(FramedJson(json(&fields))),
            PartFormat::Json => Box::new(json(&fields)),
            PartFormat::Avro | PartFormat::Protobuf => {
                let path = self.writer_schema.unwrap_or(Path::new(""));
                let found = self.writer_schema_decoder(path, config);
                found.map_err(|what| ConfigProblem::new(file, SCHEMA_KEY, what, "correct the file"))?.0
            }
        })
    }
}

/// Creates the client of the configured registry, if any.
pub fn registry_client(config: &Config, file: &str) -> Result<Option<RegistryClient>, ConfigProblem> {
    let registry = &config.registry;
    let Some(url) = &registry.url else { return Ok(None) };
    let password = registry.password().map_err(|error| {
        ConfigProblem::new(
            file,
            "registry.password_file",
            error.to_string(),
            "correct the path, or set the mode of the file to 0600",
        )
    })?;
    let password = password.as_deref().map_or("", String::as_str);
    let access = RegistryAccess {
        url,
        user: registry.user.as_deref().map(|user| (user, password)),
        authorities: registry.ca_file.as_deref(),
    };
    let client = RegistryClient::new(&access).map_err(|error| {
        ConfigProblem::new(file, "registry.ca_file", error.to_string(), "name a PEM file of certificates")
    })?;
    Ok(Some(client))
}

/// Creates the schema lookup, shared by all decoders of a source.
pub fn schema_lookup(
    config: &Config,
    file: &str,
    telemetry: &Telemetry,
) -> Result<Option<Arc<SchemaLookup>>, ConfigProblem> {
    Ok(registry_client(config, file)?.map(|client| Arc::new(SchemaLookup::new(client, telemetry.clone()))))
}
