//! Protobuf schema from a text with imports or a descriptor set.

use super::message_reader::ProtobufCodec;
use super::message_types::ProtobufSchemaError;
use crate::record_decoder::NumberedFields;
use crate::{DecodeLimits, UnknownCellPolicy};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use prost_reflect::prost::Message as _;
use prost_reflect::prost_types::FileDescriptorProto;
use prost_reflect::{DescriptorPool, FileDescriptor, MessageDescriptor};
use protox::file::{ChainFileResolver, File, FileResolver, GoogleFileResolver, IncludeFileResolver};
use protox::{Compiler, Error};
use std::path::Path;

/// Bytes of all texts of a schema.
const MAX_SCHEMA_TEXT_BYTES: usize = 1 << 20;

/// The parser is recursive.
const MAX_BRACKET_NESTING: usize = 64;

/// Memory per message, field and enum value. A schema of 1 MiB takes up to 180 MiB, and half as much again during
/// compilation.
const BYTES_OF_MESSAGE: usize = 2_300;
const BYTES_OF_FIELD: usize = 1_900;
const BYTES_OF_SYMBOL: usize = 1_000;

/// Name of the main text, which no import can have.
const MAIN_FILE_NAME: &str = "<schema>";

/// Maximum number of indexes of a nested message.
pub const MAX_MESSAGE_INDEXES: usize = 8;

/// Message in a registry frame: index of a top-level message, then of nested ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct MessageIndex {
    numbers: [u16; MAX_MESSAGE_INDEXES],
    length: u8,
}

impl MessageIndex {
    /// Creates the index; `None` if empty, too long or too large.
    #[must_use]
    pub fn new(numbers: &[u64]) -> Option<Self> {
        let mut index = Self { numbers: [0; MAX_MESSAGE_INDEXES], length: u8::try_from(numbers.len()).ok()? };
        for (at, number) in numbers.iter().enumerate() {
            *index.numbers.get_mut(at)? = u16::try_from(*number).ok()?;
        }
        (index.length > 0).then_some(index)
    }
}

/// Compiled schema.
#[derive(Clone, Debug)]
pub struct ProtobufSchema {
    file: FileDescriptor,
}

impl ProtobufSchema {
    /// Compiles the schema `text`, which imports `parts` (names and texts). Google's standard files are built in.
    ///
    /// # Errors
    /// Fails for an invalid text, a missing definition, or circular imports.
    pub fn compile_proto_texts(text: &str, parts: &[(String, String)]) -> Result<Self, ProtobufSchemaError> {
        let all = || parts.iter().map(|(_, text)| text.as_str()).chain([text]);
        if all().map(str::len).sum::<usize>() > MAX_SCHEMA_TEXT_BYTES {
            return Err(ProtobufSchemaError::new(&format!("its texts have more than {MAX_SCHEMA_TEXT_BYTES} bytes")));
        }
        if all().any(|text| nesting(text) > MAX_BRACKET_NESTING) {
            return Err(ProtobufSchemaError::new(&format!("it nests deeper than {MAX_BRACKET_NESTING}")));
        }
        let mut resolver = ChainFileResolver::new();
        resolver.add(GoogleFileResolver::new());
        resolver.add(SchemaTextResolver { text: text.to_owned(), parts: parts.to_vec() });
        Self::compiled(Compiler::with_file_resolver(resolver), Path::new(MAIN_FILE_NAME))
    }

    /// Compiles a `.proto` file with imports from its folder, or a descriptor set of `protoc --descriptor_set_out
    /// --include_imports`.
    ///
    /// # Errors
    /// Fails if the file is unreadable or no schema.
    pub fn compile_proto_file(path: &Path) -> Result<Self, ProtobufSchemaError> {
        let read = |error: std::io::Error| ProtobufSchemaError::new(&format!("it cannot be read ({error})"));
        if path.extension().is_some_and(|extension| extension == "proto") {
            let text = std::fs::read_to_string(path).map_err(read)?;
            if text.len() > MAX_SCHEMA_TEXT_BYTES || nesting(&text) > MAX_BRACKET_NESTING {
                return Err(ProtobufSchemaError::new("it is too long, or nested too deeply"));
            }
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
            let mut resolver = ChainFileResolver::new();
            resolver.add(IncludeFileResolver::new(folder.to_owned()));
            resolver.add(GoogleFileResolver::new());
            return Self::compiled(Compiler::with_file_resolver(resolver), path);
        }
        let bytes = std::fs::read(path).map_err(read)?;
        let pool =
            DescriptorPool::decode(bytes.as_slice()).map_err(|error| ProtobufSchemaError::new(&error.to_string()))?;
        // A file's imports precede it.
        let file = pool.files().last().ok_or_else(|| ProtobufSchemaError::new("it describes no file"))?;
        Ok(Self { file })
    }

    fn compiled(mut compiler: Compiler, path: &Path) -> Result<Self, ProtobufSchemaError> {
        let bad = |error: Error| ProtobufSchemaError::new(&error.to_string());
        compiler.include_imports(true).include_source_info(false).open_file(path).map_err(bad)?;
        let file = compiler.descriptor_pool().files().last().ok_or_else(|| ProtobufSchemaError::new("it is empty"))?;
        Ok(Self { file })
    }

    /// Returns the approximate memory in bytes, without names.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let pool = self.file.parent_pool();
        let fields: usize =
            pool.all_messages().map(|message| BYTES_OF_MESSAGE + message.fields().len() * BYTES_OF_FIELD).sum();
        fields + pool.all_enums().map(|of| of.values().len() * BYTES_OF_SYMBOL).sum::<usize>()
    }

    /// Returns the message of a frame, unless missing or a map entry.
    #[must_use]
    pub fn message(&self, index: &MessageIndex) -> Option<ProtobufMessage> {
        let numbers = &index.numbers[..usize::from(index.length)];
        let (first, inner) = numbers.split_first()?;
        let mut message = self.file.messages().nth(usize::from(*first))?;
        for number in inner {
            let child = message.child_messages().nth(usize::from(*number))?;
            message = child;
        }
        (!message.is_map_entry()).then_some(ProtobufMessage(message))
    }

    /// Returns the top-level message `name`.
    #[must_use]
    pub fn top_level_message(&self, name: &str) -> Option<ProtobufMessage> {
        self.file.messages().find(|message| message.name() == name).map(ProtobufMessage)
    }

    /// Returns the message with this full name, or the only top-level message.
    ///
    /// # Errors
    /// Fails if there is no such message, or several without a name.
    pub fn message_by_name(&self, name: Option<&str>) -> Result<ProtobufMessage, ProtobufSchemaError> {
        let found = match name {
            Some(name) => self.file.parent_pool().get_message_by_name(name),
            None if self.file.messages().len() == 1 => self.file.messages().next(),
            None => {
                let message = format!("it has {} messages, and none is selected by name", self.file.messages().len());
                return Err(ProtobufSchemaError::new(&message));
            }
        };
        let missing = || ProtobufSchemaError::new(&format!("it has no message {:?}", name.unwrap_or_default()));
        found.filter(|message| !message.is_map_entry()).map(ProtobufMessage).ok_or_else(missing)
    }
}

/// Message type of a schema.
#[derive(Clone, Debug)]
pub struct ProtobufMessage(pub(crate) MessageDescriptor);

impl ProtobufMessage {
    /// Creates a codec for this message type.
    ///
    /// # Errors
    /// Fails for too many types or fields.
    pub fn codec(
        &self,
        fields: &NumberedFields,
        limits: DecodeLimits,
        unknown: UnknownCellPolicy,
    ) -> Result<ProtobufCodec, ProtobufSchemaError> {
        ProtobufCodec::of(&self.0, fields, limits, unknown)
    }

    /// Returns field names and numbers.
    pub fn numbers(&self) -> impl Iterator<Item = (String, u32)> {
        self.0.fields().map(|field| (field.name().to_owned(), field.number())).collect::<Vec<_>>().into_iter()
    }

    /// Returns reserved ranges of field numbers.
    #[must_use]
    pub fn reserved(&self) -> Vec<std::ops::Range<u32>> {
        self.0.reserved_ranges().collect()
    }
}

struct SchemaTextResolver {
    text: String,
    parts: Vec<(String, String)>,
}

impl FileResolver for SchemaTextResolver {
    fn resolve_path(&self, path: &Path) -> Option<String> {
        (path == Path::new(MAIN_FILE_NAME)).then(|| MAIN_FILE_NAME.to_owned())
    }

    fn open_file(&self, name: &str) -> Result<File, Error> {
        if name == MAIN_FILE_NAME {
            return compiled_file(name, &self.text);
        }
        match self.parts.iter().find(|(known, _)| known == name) {
            Some((_, text)) => compiled_file(name, text),
            None => Err(Error::file_not_found(name)),
        }
    }
}

/// Accepts a Base64 descriptor, as Confluent's Python client registers it.
fn compiled_file(name: &str, text: &str) -> Result<File, Error> {
    let descriptor = STANDARD.decode(text.trim()).ok().filter(|bytes| !bytes.is_empty());
    match descriptor.map(|bytes| FileDescriptorProto::decode(bytes.as_slice())) {
        Some(Ok(descriptor)) => {
            let name = Some(name.to_owned());
            Ok(File::from_file_descriptor_proto(FileDescriptorProto { name, source_code_info: None, ..descriptor }))
        }
        Some(Err(_)) | None => File::from_source(name, text),
    }
}

/// Ignores comments and string literals.
pub(super) fn nesting(text: &str) -> usize {
    let bytes = text.as_bytes();
    let (mut at, mut depth, mut deepest) = (0, 0_usize, 0);
    while let Some(&byte) = bytes.get(at) {
        at += 1;
        match (byte, bytes.get(at)) {
            // Only option values have these comments, so opening brackets count, and nothing else on the line.
            (b'#', _) => {
                while let Some(&inner) = bytes.get(at).filter(|inner| **inner != b'\n') {
                    at += 1;
                    depth += usize::from(matches!(inner, b'{' | b'[' | b'<' | b'('));
                }
                deepest = deepest.max(depth);
            }
            (b'/', Some(b'/')) => at += bytes[at..].iter().position(|b| *b == b'\n').unwrap_or(bytes.len() - at),
            (b'/', Some(b'*')) => {
                at += 1;
                at += bytes[at..].windows(2).position(|pair| pair == b"*/").map_or(bytes.len() - at, |end| end + 2);
            }
            (b'"' | b'\'', _) => {
                while let Some(&inner) = bytes.get(at) {
                    at += if inner == b'\\' { 2 } else { 1 };
                    if inner == byte || inner == b'\n' {
                        break;
                    }
                }
            }
            (b'{' | b'[' | b'<' | b'(', _) => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            (b'}' | b']' | b'>' | b')', _) => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}
