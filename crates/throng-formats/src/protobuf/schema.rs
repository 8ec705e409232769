//! A Protobuf schema: its text with those that it imports, or a set of descriptors, compiled once.

use super::read::ProtobufCodec;
use super::shape::BadProtobuf;
use crate::record::Fields;
use crate::{Limits, Unknown};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use prost_reflect::prost::Message as _;
use prost_reflect::prost_types::FileDescriptorProto;
use prost_reflect::{DescriptorPool, FileDescriptor, MessageDescriptor};
use protox::file::{ChainFileResolver, File, FileResolver, GoogleFileResolver, IncludeFileResolver};
use protox::{Compiler, Error};
use std::path::Path;

/// The longest schema, in bytes of all its texts.
const MOST_BYTES: usize = 1 << 20;

/// How deep braces may nest in a text: its reader goes down with them.
const MOST_NESTED: usize = 64;

/// What descriptors take in memory, as measured with short names: a message, a field of one, a name of an enum. A schema of 1 MiB takes up to
/// 180 MiB, and half as much again while it is compiled.
const BYTES_OF_MESSAGE: usize = 2_300;
const BYTES_OF_FIELD: usize = 1_900;
const BYTES_OF_SYMBOL: usize = 1_000;

/// The name of the text that is asked for. No import can have it.
const MAIN: &str = "<schema>";

/// The most numbers that lead to a message inside others.
pub const MOST_INDEXES: usize = 8;

/// Which message of a schema: as the frames of a registry's clients say it, the number of a message at the top, then of one
/// inside it, and so on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct MessageIndex {
    numbers: [u16; MOST_INDEXES],
    length: u8,
}

impl MessageIndex {
    /// The way in `numbers`; none where there are too many, or one is too large for any schema.
    #[must_use]
    pub fn new(numbers: &[u64]) -> Option<Self> {
        let mut index = Self { numbers: [0; MOST_INDEXES], length: u8::try_from(numbers.len()).ok()? };
        for (at, number) in numbers.iter().enumerate() {
            *index.numbers.get_mut(at)? = u16::try_from(*number).ok()?;
        }
        (index.length > 0).then_some(index)
    }
}

/// A compiled schema.
#[derive(Clone, Debug)]
pub struct ProtobufSchema {
    file: FileDescriptor,
}

impl ProtobufSchema {
    /// The schema `text`, which imports `parts`: names and texts. What Google's own files say is known.
    ///
    /// # Errors
    /// When one of the texts is no Protobuf schema, or something is not there, or imports run in a circle.
    pub fn of_texts(text: &str, parts: &[(String, String)]) -> Result<Self, BadProtobuf> {
        let all = || parts.iter().map(|(_, text)| text.as_str()).chain([text]);
        if all().map(str::len).sum::<usize>() > MOST_BYTES {
            return Err(BadProtobuf::new(&format!("its texts have more than {MOST_BYTES} bytes")));
        }
        if all().any(|text| nesting(text) > MOST_NESTED) {
            return Err(BadProtobuf::new(&format!("it nests deeper than {MOST_NESTED}")));
        }
        let mut resolver = ChainFileResolver::new();
        resolver.add(GoogleFileResolver::new());
        resolver.add(Texts { text: text.to_owned(), parts: parts.to_vec() });
        Self::compiled(Compiler::with_file_resolver(resolver), Path::new(MAIN))
    }

    /// The schema in the file `path`: a text (`.proto`), whose imports are beside it, or a set of descriptors as `protoc
    /// --descriptor_set_out --include_imports` writes it.
    ///
    /// # Errors
    /// When it cannot be read or is no schema.
    pub fn of_file(path: &Path) -> Result<Self, BadProtobuf> {
        let read = |error: std::io::Error| BadProtobuf::new(&format!("it cannot be read ({error})"));
        if path.extension().is_some_and(|extension| extension == "proto") {
            let text = std::fs::read_to_string(path).map_err(read)?;
            if text.len() > MOST_BYTES || nesting(&text) > MOST_NESTED {
                return Err(BadProtobuf::new("it is too long, or nests too deep"));
            }
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
            let mut resolver = ChainFileResolver::new();
            resolver.add(IncludeFileResolver::new(folder.to_owned()));
            resolver.add(GoogleFileResolver::new());
            return Self::compiled(Compiler::with_file_resolver(resolver), path);
        }
        let bytes = std::fs::read(path).map_err(read)?;
        let pool = DescriptorPool::decode(bytes.as_slice()).map_err(|error| BadProtobuf::new(&error.to_string()))?;
        // The files that a file imports come before it.
        let file = pool.files().last().ok_or_else(|| BadProtobuf::new("it describes no file"))?;
        Ok(Self { file })
    }

    fn compiled(mut compiler: Compiler, path: &Path) -> Result<Self, BadProtobuf> {
        let bad = |error: Error| BadProtobuf::new(&error.to_string());
        compiler.include_imports(true).include_source_info(false).open_file(path).map_err(bad)?;
        // A file is compiled behind all that it imports.
        let file = compiler.descriptor_pool().files().last().ok_or_else(|| BadProtobuf::new("it describes nothing"))?;
        Ok(Self { file })
    }

    /// Bytes of memory that the compiled schema takes, roughly; those of its names beside them.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let pool = self.file.parent_pool();
        let fields: usize =
            pool.all_messages().map(|message| BYTES_OF_MESSAGE + message.fields().len() * BYTES_OF_FIELD).sum();
        fields + pool.all_enums().map(|of| of.values().len() * BYTES_OF_SYMBOL).sum::<usize>()
    }

    /// The message that a frame names; none where there is no such one, or it is the entry of a map.
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

    /// The message called `name` at the top of the file.
    #[must_use]
    pub fn top(&self, name: &str) -> Option<ProtobufMessage> {
        self.file.messages().find(|message| message.name() == name).map(ProtobufMessage)
    }

    /// The message with this full name (`package.Message`); without one the only message at the top of the file.
    ///
    /// # Errors
    /// When there is none, or there are several.
    pub fn named(&self, name: Option<&str>) -> Result<ProtobufMessage, BadProtobuf> {
        let found = match name {
            Some(name) => self.file.parent_pool().get_message_by_name(name),
            None if self.file.messages().len() == 1 => self.file.messages().next(),
            None => {
                let message = format!("it has {} messages, and none of them is named", self.file.messages().len());
                return Err(BadProtobuf::new(&message));
            }
        };
        let missing = || BadProtobuf::new(&format!("it has no message {:?}", name.unwrap_or_default()));
        found.filter(|message| !message.is_map_entry()).map(ProtobufMessage).ok_or_else(missing)
    }
}

/// One message of a schema.
#[derive(Clone, Debug)]
pub struct ProtobufMessage(pub(crate) MessageDescriptor);

impl ProtobufMessage {
    /// A codec for records that are such messages.
    ///
    /// # Errors
    /// When it leads to more types than any schema of records has.
    pub fn codec(&self, fields: &Fields, limits: Limits, unknown: Unknown) -> Result<ProtobufCodec, BadProtobuf> {
        ProtobufCodec::of(&self.0, fields, limits, unknown)
    }

    /// The numbers of its fields by name.
    pub fn numbers(&self) -> impl Iterator<Item = (String, u32)> {
        self.0.fields().map(|field| (field.name().to_owned(), field.number())).collect::<Vec<_>>().into_iter()
    }

    /// Numbers that it says are given up.
    #[must_use]
    pub fn reserved(&self) -> Vec<std::ops::Range<u32>> {
        self.0.reserved_ranges().collect()
    }
}

/// Texts by the names under which they are imported.
struct Texts {
    text: String,
    parts: Vec<(String, String)>,
}

impl FileResolver for Texts {
    fn resolve_path(&self, path: &Path) -> Option<String> {
        (path == Path::new(MAIN)).then(|| MAIN.to_owned())
    }

    fn open_file(&self, name: &str) -> Result<File, Error> {
        if name == MAIN {
            return compiled_file(name, &self.text);
        }
        match self.parts.iter().find(|(known, _)| known == name) {
            Some((_, text)) => compiled_file(name, text),
            None => Err(Error::file_not_found(name)),
        }
    }
}

/// A file out of a schema's text. Some clients (Confluent's in Python) register a descriptor in Base64 instead, and some registries
/// give back what was registered.
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

/// How deep braces and brackets nest in a schema's text, outside of comments and texts.
pub(super) fn nesting(text: &str) -> usize {
    let bytes = text.as_bytes();
    let (mut at, mut depth, mut deepest) = (0, 0_usize, 0);
    while let Some(&byte) = bytes.get(at) {
        at += 1;
        match (byte, bytes.get(at)) {
            // In option texts of the text format `#` begins a comment: what it hides is counted, and `//` there is none.
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
