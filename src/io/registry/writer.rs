//! The schemas of writers, compiled for the attributes that are wanted.

use super::client::WriterSchema;
use super::lookup::SchemaLookup;
use crate::io::message::Undecoded;
use crate::telemetry::{RejectionReason, SchemaOutcome, Telemetry, WriterSchemaMet, WrittenAs, printable};
use prost_reflect::prost::encoding::decode_varint;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use throng_core::values::canonical::Type;
use throng_core::values::raw::RawBatch;
use throng_formats::{
    AvroCodec, Decoder, Field, JsonCodec, JsonSchema, Limits, MessageIndex, ProtobufCodec, ProtobufSchema, Said,
    Unknown,
};

/// How records behind a frame are written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FramedAs {
    /// Avro data.
    Avro,
    /// Protobuf messages; the frame says which message of the schema.
    Protobuf,
    /// JSON objects.
    Json,
}

impl FramedAs {
    /// What a registry calls the kind of their schemas.
    #[must_use]
    pub fn kind(self) -> &'static str {
        match self {
            Self::Avro => "AVRO",
            Self::Protobuf => "PROTOBUF",
            Self::Json => "JSON",
        }
    }

    pub(super) fn written_as(self) -> WrittenAs {
        match self {
            Self::Avro => WrittenAs::Avro,
            Self::Protobuf => WrittenAs::Protobuf,
            Self::Json => WrittenAs::Json,
        }
    }
}

/// What is wanted of framed records.
#[derive(Debug)]
pub struct WantedFields {
    /// How the records are written down.
    pub format: FramedAs,
    /// Where the attributes are.
    pub fields: Vec<(usize, Field)>,
    /// The types of these attributes, in the same order; none where any will do.
    pub types: Vec<Option<Type>>,
    /// Attributes whose field a schema may lack.
    pub optional: Vec<usize>,
    /// Limits of a record.
    pub limits: Limits,
    /// What becomes of fields that no attribute leads to.
    pub unknown: Unknown,
}

/// Why the records of a schema are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub reason: RejectionReason,
    pub attribute: Option<usize>,
}

impl From<RejectionReason> for Refusal {
    fn from(reason: RejectionReason) -> Self {
        Self { reason, attribute: None }
    }
}

impl From<Refusal> for Undecoded {
    fn from(Refusal { reason, attribute }: Refusal) -> Self {
        Self::Rejected { reason, attribute }
    }
}

/// Messages of one schema that are kept compiled.
const MOST_MESSAGES: usize = 64;

/// A schema whose records can be read.
#[derive(Debug)]
pub(super) enum Writer {
    Avro(AvroCodec),
    Json(JsonCodec),
    Protobuf(ProtobufSchema, Mutex<Messages>),
}

/// The messages of a schema that were met, compiled.
#[derive(Debug, Default)]
pub(super) struct Messages {
    known: HashMap<MessageIndex, Result<Arc<ProtobufCodec>, Refusal>>,
    /// Their memory.
    bytes: usize,
}

impl Messages {
    /// Keeps one, which alone may take more than `room` bytes; all others go where they are too many, or too much.
    fn keep(&mut self, index: MessageIndex, found: Result<Arc<ProtobufCodec>, Refusal>, room: usize) {
        let own = found.as_ref().map_or(0, |codec| codec.bytes());
        if self.known.len() >= MOST_MESSAGES || self.bytes + own > room {
            *self = Self::default();
        }
        self.bytes += own;
        self.known.insert(index, found);
    }
}

/// Memory for the compiled messages of a schema: a quarter of its own holds all of its types twice.
fn room(schema: &ProtobufSchema) -> usize {
    schema.bytes() / 4
}

impl WantedFields {
    /// Compiles schema number `id`. What is wrong with it is said once.
    pub(super) fn compiled(&self, id: u32, schema: &WriterSchema, telemetry: &Telemetry) -> Result<Writer, Refusal> {
        let met = |outcome| WriterSchemaMet { format: self.format.written_as(), outcome }.emit(telemetry);
        if schema.kind != self.format.kind() {
            let kind = printable(&schema.kind);
            tracing::warn!(schema = id, kind, "a schema is not of the configured format: its records are dead letters");
            met(SchemaOutcome::Unusable);
            return Err(RejectionReason::UnknownSchema.into());
        }
        let unusable = |error: &dyn std::fmt::Display| self.unusable(id, error, telemetry);
        match self.format {
            FramedAs::Avro => {
                let mut texts: Vec<String> = schema.parts.iter().map(|(_, text)| text.clone()).collect();
                texts.sort_unstable();
                texts.dedup();
                let codec = AvroCodec::of_parts(&schema.text, &texts, &self.fields, self.limits, self.unknown);
                let codec = codec.map_err(|error| unusable(&error))?;
                self.complete(id, codec.missing(), codec.drops(), telemetry)?;
                Ok(Writer::Avro(codec))
            }
            FramedAs::Json => {
                let says = JsonSchema::new(&schema.text, &schema.parts).map_err(|error| unusable(&error))?;
                let (mut missing, mut retyped) = (Vec::new(), None);
                let typed = self.fields.iter().zip(&self.types).filter_map(|(field, kind)| Some((field, (*kind)?)));
                for ((attribute, field), kind) in typed {
                    match says.says(field, kind) {
                        Said::Missing => missing.push(*attribute),
                        Said::OtherType => retyped = retyped.or(Some(*attribute)),
                        Said::Fits => {}
                    }
                }
                if let Some(attribute) = retyped {
                    self.tell(
                        id,
                        attribute,
                        "a schema has another type for an attribute: its records are dead letters",
                    );
                    met(SchemaOutcome::WrongType);
                    return Err(Refusal { reason: RejectionReason::WrongType, attribute: Some(attribute) });
                }
                self.complete(id, &missing, false, telemetry)?;
                Ok(Writer::Json(JsonCodec::of_part(&self.fields, self.limits).with_unknown(self.unknown)))
            }
            FramedAs::Protobuf => {
                let schema = ProtobufSchema::of_texts(&schema.text, &schema.parts);
                Ok(Writer::Protobuf(schema.map_err(|error| unusable(&error))?, Mutex::default()))
            }
        }
    }

    fn unusable(&self, id: u32, error: &dyn std::fmt::Display, telemetry: &Telemetry) -> Refusal {
        let error = printable(&error.to_string());
        tracing::warn!(schema = id, error, "a schema cannot be used: its records are dead letters");
        WriterSchemaMet { format: self.format.written_as(), outcome: SchemaOutcome::Unusable }.emit(telemetry);
        RejectionReason::UnknownSchema.into()
    }

    /// Refuses a schema that lacks a field which is not optional.
    fn complete(&self, id: u32, missing: &[usize], drops: bool, telemetry: &Telemetry) -> Result<(), Refusal> {
        let met = |outcome| WriterSchemaMet { format: self.format.written_as(), outcome }.emit(telemetry);
        match missing.iter().find(|attribute| !self.optional.contains(attribute)) {
            Some(&attribute) => {
                let message =
                    "a schema has no field of an attribute that is not `optional`: its records are dead letters";
                self.tell(id, attribute, message);
                met(SchemaOutcome::MissingField);
                Err(Refusal { reason: RejectionReason::MissingField, attribute: Some(attribute) })
            }
            None => {
                met(if drops { SchemaOutcome::TakenInPart } else { SchemaOutcome::Taken });
                Ok(())
            }
        }
    }

    /// Says where the attribute is that a schema is wrong about. The place is the record schema's own.
    fn tell(&self, id: u32, attribute: usize, what: &str) {
        let place = self.fields.iter().find(|(known, _)| *known == attribute).map(|(_, field)| field.column());
        tracing::warn!(schema = id, place, "{what}");
    }

    fn message(
        &self,
        id: u32,
        schema: &ProtobufSchema,
        index: &MessageIndex,
        telemetry: &Telemetry,
    ) -> Result<Arc<ProtobufCodec>, Refusal> {
        let message = schema.message(index).ok_or(RejectionReason::BrokenFrame)?;
        let codec = message.codec(&self.fields, self.limits, self.unknown);
        let codec = codec.map_err(|error| self.unusable(id, &error, telemetry))?;
        self.complete(id, codec.missing(), codec.drops(), telemetry)?;
        Ok(Arc::new(codec))
    }
}

impl Writer {
    /// Bytes of memory that it takes beyond what the length of its schema says, roughly.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Avro(codec) => codec.bytes(),
            Self::Protobuf(schema, _) => schema.bytes() + room(schema),
            // As large as the schema of the records, which is the operator's own; and of its text.
            Self::Json(_) => 0,
        }
    }

    /// Sets the cells of the row of `into` that was opened last from the bytes behind the number of the schema. A Protobuf message that is
    /// met for the first time is compiled within the time of `lookup`.
    pub(super) fn fill(
        &self,
        id: u32,
        behind: &[u8],
        wanted: &WantedFields,
        lookup: &SchemaLookup,
        telemetry: &Telemetry,
        into: &mut RawBatch,
    ) -> Result<(), Refusal> {
        match self {
            Self::Avro(codec) => Ok(codec.fill(behind, into)?),
            Self::Json(codec) => Ok(codec.fill(behind, into)?),
            Self::Protobuf(schema, messages) => {
                let (index, datum) = message_index(behind)?;
                let mut messages = messages.lock().expect("no panic while messages are held");
                let known = match messages.known.get(&index) {
                    Some(known) => known.clone(),
                    None => {
                        let found = lookup.compile(|| wanted.message(id, schema, &index, telemetry));
                        let found = found.ok_or(RejectionReason::UnknownSchema)?;
                        // Ways to nowhere are not kept: there is no end of them.
                        if found.as_ref().err().is_none_or(|refusal| refusal.reason != RejectionReason::BrokenFrame) {
                            messages.keep(index, found.clone(), room(schema));
                        }
                        found
                    }
                };
                drop(messages);
                Ok(known?.fill(datum, into)?)
            }
        }
    }
}

/// Which message a Protobuf frame names, and the message itself. The way is a list of zigzag numbers behind its length; a zero
/// alone stands for the first message.
fn message_index(mut bytes: &[u8]) -> Result<(MessageIndex, &[u8]), RejectionReason> {
    const BROKEN: RejectionReason = RejectionReason::BrokenFrame;
    // Zigzag numbers that are not negative are even.
    let number = |bytes: &mut &[u8]| match decode_varint(bytes) {
        Ok(value) if value & 1 == 0 => Ok(value >> 1),
        _ => Err(BROKEN),
    };
    let length = number(&mut bytes)?;
    if length == 0 {
        return Ok((MessageIndex::new(&[0]).ok_or(BROKEN)?, bytes));
    }
    let mut numbers = [0; throng_formats::MOST_INDEXES];
    let length = usize::try_from(length).map_err(|_| BROKEN)?;
    for place in numbers.get_mut(..length).ok_or(BROKEN)? {
        *place = number(&mut bytes)?;
    }
    Ok((MessageIndex::new(&numbers[..length]).ok_or(BROKEN)?, bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whoever names every message of a large schema fills no memory with what it is compiled to.
    #[test]
    fn compiled_messages_are_bounded_by_their_memory() {
        let fields: String = (1..2_000).map(|number| format!("int32 a{number} = {number};")).collect();
        let tops: String = (0..60).map(|number| format!("message T{number} {{ M m = 1; }}")).collect();
        let text = format!("syntax = \"proto3\"; message M {{ {fields} }} {tops}");
        let schema = ProtobufSchema::of_texts(&text, &[]).expect("a schema");
        let (mut messages, mut asked) = (Messages::default(), 0);
        for number in 1..60 {
            let index = MessageIndex::new(&[number]).expect("a message");
            let fields = [(0, Field::at(vec!["m".to_owned(), "a7".to_owned()]))];
            let message = schema.message(&index).expect("a message");
            let codec = message.codec(&fields, Limits::default(), Unknown::Drop).expect("a codec");
            assert!(codec.bytes() > 2_000 * 100 && codec.bytes() < room(&schema), "{} bytes", codec.bytes());
            asked += codec.bytes();
            messages.keep(index, Ok(Arc::new(codec)), room(&schema));
            let kept = messages.known.values().flatten().map(|codec| codec.bytes()).sum::<usize>();
            assert_eq!(messages.bytes, kept);
            assert!(kept <= room(&schema) && messages.known.contains_key(&index), "{kept} bytes after {number}");
        }
        assert!(asked > 4 * room(&schema), "{asked} bytes are no test of {}", room(&schema));
    }

    #[test]
    fn frames_of_protobuf_name_a_message() {
        let index = |bytes: &[u8]| message_index(bytes).map(|(index, rest)| (index, rest.to_vec()));
        let first = MessageIndex::new(&[0]).expect("a message");
        assert_eq!(index(&[0, 8]), Ok((first, vec![8])), "the short form");
        assert_eq!(index(&[2, 0, 8]), Ok((first, vec![8])));
        assert_eq!(index(&[4, 2, 0]), Ok((MessageIndex::new(&[1, 0]).expect("a message"), vec![])));
        // Nothing, a length without its numbers, negative ones, too many, varints without an end.
        for broken in
            [&[][..], &[4, 2], &[1], &[2, 1], &[18, 0, 0, 0, 0, 0, 0, 0, 0, 0], &[0xff; 9], &[2, 0xff, 0xff, 0x7f]]
        {
            assert_eq!(index(broken), Err(RejectionReason::BrokenFrame), "{broken:?}");
        }
    }
}
