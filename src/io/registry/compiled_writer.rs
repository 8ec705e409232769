//! Writer schemas, compiled for the wanted attributes.

use super::client::WriterSchema;
use super::lookup::SchemaLookup;
use crate::telemetry::{RejectionReason, SchemaOutcome, Telemetry, WriterSchemaMet, WrittenAs, printable};
use prost_reflect::prost::encoding::decode_varint;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use throng_core::values::canonical::AttributeType;
use throng_core::values::raw_batch::RawBatch;
use throng_formats::message::DecodeFailure;
use throng_formats::{
    AvroCodec, DecodeLimits, FieldPath, JsonCodec, JsonSchema, MessageIndex, ProtobufCodec, ProtobufSchema,
    RecordDecoder, SchemaFieldStatus, UnknownCellPolicy,
};

/// Encoding of framed records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameEncoding {
    /// Avro data.
    Avro,
    /// Protobuf messages, identified by the frame.
    Protobuf,
    /// JSON objects.
    Json,
}

impl FrameEncoding {
    /// Returns the registry's name of the schema type.
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

/// Fields to decode.
#[derive(Debug)]
pub struct WantedFields {
    /// Encoding of the records.
    pub format: FrameEncoding,
    /// Attributes with the position of their field.
    pub fields: Vec<(usize, FieldPath)>,
    /// Types of the attributes, in order; `None` accepts any.
    pub types: Vec<Option<AttributeType>>,
    /// Attributes that a schema may lack.
    pub optional: Vec<usize>,
    /// Limits of a record.
    pub limits: DecodeLimits,
    /// Treatment of fields without an attribute.
    pub unknown: UnknownCellPolicy,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SchemaRejection {
    pub reason: RejectionReason,
    pub attribute: Option<usize>,
}

impl From<RejectionReason> for SchemaRejection {
    fn from(reason: RejectionReason) -> Self {
        Self { reason, attribute: None }
    }
}

impl From<SchemaRejection> for DecodeFailure {
    fn from(SchemaRejection { reason, attribute }: SchemaRejection) -> Self {
        Self::Rejected { reason, attribute }
    }
}

const MAX_COMPILED_MESSAGES: usize = 64;

#[derive(Debug)]
pub(super) enum WriterDecoder {
    Avro(AvroCodec),
    Json(JsonCodec),
    Protobuf(ProtobufSchema, Mutex<CompiledMessages>),
}

#[derive(Debug, Default)]
pub(super) struct CompiledMessages {
    known: HashMap<MessageIndex, Result<Arc<ProtobufCodec>, SchemaRejection>>,
    bytes: usize,
}

impl CompiledMessages {
    /// Above a limit, all earlier messages are dropped; a single one may exceed `room` bytes.
    fn keep(&mut self, index: MessageIndex, found: Result<Arc<ProtobufCodec>, SchemaRejection>, room: usize) {
        let own = found.as_ref().map_or(0, |codec| codec.bytes());
        if self.known.len() >= MAX_COMPILED_MESSAGES || self.bytes + own > room {
            *self = Self::default();
        }
        self.bytes += own;
        self.known.insert(index, found);
    }
}

/// A quarter of the schema's memory holds all of its types twice.
fn message_memory(schema: &ProtobufSchema) -> usize {
    schema.bytes() / 4
}

impl WantedFields {
    /// A problem is logged once.
    pub(super) fn compile_schema(
        &self,
        id: u32,
        schema: &WriterSchema,
        telemetry: &Telemetry,
    ) -> Result<WriterDecoder, SchemaRejection> {
        let met = |outcome| WriterSchemaMet { format: self.format.written_as(), outcome }.emit(telemetry);
        if schema.kind != self.format.kind() {
            let kind = printable(&schema.kind);
            tracing::warn!(
                schema = id,
                kind,
                "schema type differs from the configured format: its records are dead letters"
            );
            met(SchemaOutcome::Unusable);
            return Err(RejectionReason::UnknownSchema.into());
        }
        let unusable = |error: &dyn std::fmt::Display| self.unusable(id, error, telemetry);
        match self.format {
            FrameEncoding::Avro => {
                let mut texts: Vec<String> = schema.parts.iter().map(|(_, text)| text.clone()).collect();
                texts.sort_unstable();
                texts.dedup();
                let codec = AvroCodec::with_schema_parts(&schema.text, &texts, &self.fields, self.limits, self.unknown);
                let codec = codec.map_err(|error| unusable(&error))?;
                self.check_required_fields(id, codec.missing(), codec.drops(), telemetry)?;
                Ok(WriterDecoder::Avro(codec))
            }
            FrameEncoding::Json => {
                let says = JsonSchema::new(&schema.text, &schema.parts).map_err(|error| unusable(&error))?;
                let (mut missing, mut retyped) = (Vec::new(), None);
                let typed = self.fields.iter().zip(&self.types).filter_map(|(field, kind)| Some((field, (*kind)?)));
                for ((attribute, field), kind) in typed {
                    match says.field_status(field, kind) {
                        SchemaFieldStatus::Missing => missing.push(*attribute),
                        SchemaFieldStatus::OtherType => retyped = retyped.or(Some(*attribute)),
                        SchemaFieldStatus::Fits => {}
                    }
                }
                if let Some(attribute) = retyped {
                    self.log_field_problem(
                        id,
                        attribute,
                        "schema has another type for an attribute: its records are dead letters",
                    );
                    met(SchemaOutcome::WrongType);
                    return Err(SchemaRejection { reason: RejectionReason::WrongType, attribute: Some(attribute) });
                }
                self.check_required_fields(id, &missing, false, telemetry)?;
                Ok(WriterDecoder::Json(
                    JsonCodec::for_message_part(&self.fields, self.limits).with_unknown(self.unknown),
                ))
            }
            FrameEncoding::Protobuf => {
                let schema = ProtobufSchema::compile_proto_texts(&schema.text, &schema.parts);
                Ok(WriterDecoder::Protobuf(schema.map_err(|error| unusable(&error))?, Mutex::default()))
            }
        }
    }

    fn unusable(&self, id: u32, error: &dyn std::fmt::Display, telemetry: &Telemetry) -> SchemaRejection {
        let error = printable(&error.to_string());
        tracing::warn!(schema = id, error, "unusable schema: its records are dead letters");
        WriterSchemaMet { format: self.format.written_as(), outcome: SchemaOutcome::Unusable }.emit(telemetry);
        RejectionReason::UnknownSchema.into()
    }

    fn check_required_fields(
        &self,
        id: u32,
        missing: &[usize],
        drops: bool,
        telemetry: &Telemetry,
    ) -> Result<(), SchemaRejection> {
        let met = |outcome| WriterSchemaMet { format: self.format.written_as(), outcome }.emit(telemetry);
        match missing.iter().find(|attribute| !self.optional.contains(attribute)) {
            Some(&attribute) => {
                let message =
                    "schema has no field for an attribute that is not `optional`: its records are dead letters";
                self.log_field_problem(id, attribute, message);
                met(SchemaOutcome::MissingField);
                Err(SchemaRejection { reason: RejectionReason::MissingField, attribute: Some(attribute) })
            }
            None => {
                met(if drops { SchemaOutcome::TakenInPart } else { SchemaOutcome::Taken });
                Ok(())
            }
        }
    }

    fn log_field_problem(&self, id: u32, attribute: usize, what: &str) {
        let place =
            self.fields.iter().find(|(known, _)| *known == attribute).map(|(_, field)| field.flat_column_name());
        tracing::warn!(schema = id, place, "{what}");
    }

    fn message(
        &self,
        id: u32,
        schema: &ProtobufSchema,
        index: &MessageIndex,
        telemetry: &Telemetry,
    ) -> Result<Arc<ProtobufCodec>, SchemaRejection> {
        let message = schema.message(index).ok_or(RejectionReason::BrokenFrame)?;
        let codec = message.codec(&self.fields, self.limits, self.unknown);
        let codec = codec.map_err(|error| self.unusable(id, &error, telemetry))?;
        self.check_required_fields(id, codec.missing(), codec.drops(), telemetry)?;
        Ok(Arc::new(codec))
    }
}

impl WriterDecoder {
    /// Approximate bytes, without the schema text's part.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Avro(codec) => codec.bytes(),
            Self::Protobuf(schema, _) => schema.bytes() + message_memory(schema),
            // Depends only on the operator's schema.
            Self::Json(_) => 0,
        }
    }

    /// Sets the cells of the last row of `into`. A new Protobuf message is compiled within the time limit of `lookup`.
    pub(super) fn fill(
        &self,
        id: u32,
        behind: &[u8],
        wanted: &WantedFields,
        lookup: &SchemaLookup,
        telemetry: &Telemetry,
        into: &mut RawBatch,
    ) -> Result<(), SchemaRejection> {
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
                        // Invalid indexes are not kept: their number is unlimited.
                        if found.as_ref().err().is_none_or(|refusal| refusal.reason != RejectionReason::BrokenFrame) {
                            messages.keep(index, found.clone(), message_memory(schema));
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

/// Index: a length and zigzag numbers, or a single zero for the first message.
fn message_index(mut bytes: &[u8]) -> Result<(MessageIndex, &[u8]), RejectionReason> {
    const BROKEN: RejectionReason = RejectionReason::BrokenFrame;
    // Non-negative zigzag numbers are even.
    let number = |bytes: &mut &[u8]| match decode_varint(bytes) {
        Ok(value) if value & 1 == 0 => Ok(value >> 1),
        _ => Err(BROKEN),
    };
    let length = number(&mut bytes)?;
    if length == 0 {
        return Ok((MessageIndex::new(&[0]).ok_or(BROKEN)?, bytes));
    }
    let mut numbers = [0; throng_formats::MAX_MESSAGE_INDEXES];
    let length = usize::try_from(length).map_err(|_| BROKEN)?;
    for place in numbers.get_mut(..length).ok_or(BROKEN)? {
        *place = number(&mut bytes)?;
    }
    Ok((MessageIndex::new(&numbers[..length]).ok_or(BROKEN)?, bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compiled_messages_are_bounded_by_their_memory() {
        let fields: String = (1..2_000).map(|number| format!("int32 a{number} = {number};")).collect();
        let tops: String = (0..60).map(|number| format!("message T{number} {{ M m = 1; }}")).collect();
        let text = format!("syntax = \"proto3\"; message M {{ {fields} }} {tops}");
        let schema = ProtobufSchema::compile_proto_texts(&text, &[]).expect("a schema");
        let (mut messages, mut asked) = (CompiledMessages::default(), 0);
        for number in 1..60 {
            let index = MessageIndex::new(&[number]).expect("a message");
            let fields = [(0, FieldPath::from_segments(vec!["m".to_owned(), "a7".to_owned()]))];
            let message = schema.message(&index).expect("a message");
            let codec = message.codec(&fields, DecodeLimits::default(), UnknownCellPolicy::Drop).expect("a codec");
            assert!(codec.bytes() > 2_000 * 100 && codec.bytes() < message_memory(&schema), "{} bytes", codec.bytes());
            asked += codec.bytes();
            messages.keep(index, Ok(Arc::new(codec)), message_memory(&schema));
            let kept = messages.known.values().flatten().map(|codec| codec.bytes()).sum::<usize>();
            assert_eq!(messages.bytes, kept);
            assert!(
                kept <= message_memory(&schema) && messages.known.contains_key(&index),
                "{kept} bytes after {number}"
            );
        }
        assert!(asked > 4 * message_memory(&schema), "{asked} bytes are no test of {}", message_memory(&schema));
    }

    #[test]
    fn protobuf_frame_yields_message_index() {
        let index = |bytes: &[u8]| message_index(bytes).map(|(index, rest)| (index, rest.to_vec()));
        let first = MessageIndex::new(&[0]).expect("a message");
        assert_eq!(index(&[0, 8]), Ok((first, vec![8])), "the short form");
        assert_eq!(index(&[2, 0, 8]), Ok((first, vec![8])));
        assert_eq!(index(&[4, 2, 0]), Ok((MessageIndex::new(&[1, 0]).expect("a message"), vec![])));
        for broken in
            [&[][..], &[4, 2], &[1], &[2, 1], &[18, 0, 0, 0, 0, 0, 0, 0, 0, 0], &[0xff; 9], &[2, 0xff, 0xff, 0x7f]]
        {
            assert_eq!(index(broken), Err(RejectionReason::BrokenFrame), "{broken:?}");
        }
    }
}
