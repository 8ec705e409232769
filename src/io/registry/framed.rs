//! Records in frames: a zero byte and the schema number (four bytes, big-endian). A record without a usable schema is
//! rejected; it waits for a registry that does not answer.

use super::compiled_writer::{SchemaRejection, WantedFields, WriterDecoder};
use super::lookup::{LookupResult, SchemaLookup};
use crate::telemetry::{RejectionReason, SchemaOutcome, Telemetry, WriterSchemaMet};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Instant;
use throng_core::values::raw_batch::RawBatch;
use throng_formats::RecordDecoder;
use throng_formats::message::{DecodeFailure, MessagePartDecoder};

/// Beyond it, all are dropped.
const MAX_WRITERS: usize = 1_000;

const MAX_REFUSED: usize = 1 << 16;

/// Approximate bytes of compiled schemas; a single one may exceed it.
const MAX_BYTES: usize = 64 << 20;

const BYTES_BY_TEXT: usize = 16;

/// Decoder of framed records.
#[derive(Debug)]
pub struct FramedDecoder {
    lookup: Arc<SchemaLookup>,
    wanted: WantedFields,
    telemetry: Telemetry,
    compiled: Mutex<CompiledSchemas>,
}

#[derive(Debug, Default)]
struct CompiledSchemas {
    /// With their memory in bytes.
    writers: HashMap<u32, (Arc<WriterDecoder>, usize)>,
    bytes: usize,
    /// Unusable schemas of the registry.
    refused: HashMap<u32, SchemaRejection>,
}

impl CompiledSchemas {
    fn keep_writer(&mut self, id: u32, writer: Arc<WriterDecoder>, bytes: usize) {
        if self.writers.len() >= MAX_WRITERS || self.bytes + bytes > MAX_BYTES {
            self.writers.clear();
            self.bytes = 0;
        }
        self.bytes += bytes;
        if let Some((_, before)) = self.writers.insert(id, (writer, bytes)) {
            self.bytes = self.bytes.saturating_sub(before);
        }
    }

    fn keep_refused(&mut self, id: u32, refusal: SchemaRejection) {
        if self.refused.len() >= MAX_REFUSED {
            self.refused.clear();
        }
        self.refused.insert(id, refusal);
    }
}

impl FramedDecoder {
    /// Creates a decoder of `wanted` fields, which rejects schemas without a required one.
    #[must_use]
    pub fn new(lookup: Arc<SchemaLookup>, wanted: WantedFields, telemetry: Telemetry) -> Self {
        Self { lookup, wanted, telemetry, compiled: Mutex::default() }
    }

    fn writer(&self, id: u32) -> Result<Arc<WriterDecoder>, DecodeFailure> {
        let mut compiled = self.compiled.lock().expect("no panic while schemas are held");
        if let Some((writer, _)) = compiled.writers.get(&id) {
            self.lookup.note_known_schema();
            return Ok(Arc::clone(writer));
        }
        if let Some(refusal) = compiled.refused.get(&id) {
            self.lookup.note_known_schema();
            return Err((*refusal).into());
        }
        let (schema, asked) = match self.lookup.find(id) {
            LookupResult::Found(schema, asked) => (schema, asked),
            LookupResult::Unknown { is_new } => {
                if is_new {
                    self.report_schema(SchemaOutcome::Unknown);
                }
                return Err(RejectionReason::UnknownSchema.into());
            }
            LookupResult::Exhausted => {
                self.report_schema(SchemaOutcome::NotAsked);
                return Err(RejectionReason::UnknownSchema.into());
            }
            LookupResult::LookupPending => return Err(DecodeFailure::SchemaPending),
        };
        let begun = Instant::now();
        let found = self.wanted.compile_schema(id, &schema, &self.telemetry);
        self.lookup.spend(asked + begun.elapsed(), found.is_ok());
        match found {
            Ok(writer) => {
                let bytes = schema.bytes() * BYTES_BY_TEXT + writer.bytes();
                let writer = Arc::new(writer);
                compiled.keep_writer(id, Arc::clone(&writer), bytes);
                Ok(writer)
            }
            Err(refusal) => {
                compiled.keep_refused(id, refusal);
                Err(refusal.into())
            }
        }
    }

    fn report_schema(&self, outcome: SchemaOutcome) {
        WriterSchemaMet { format: self.wanted.format.written_as(), outcome }.emit(&self.telemetry);
    }
}

pub(super) fn split_frame(payload: &[u8]) -> Result<(u32, &[u8]), RejectionReason> {
    match payload {
        // Numbers are positive.
        [0, a, b, c, d, rest @ ..] if *a < 0x80 => Ok((u32::from_be_bytes([*a, *b, *c, *d]), rest)),
        _ => Err(RejectionReason::BrokenFrame),
    }
}

impl MessagePartDecoder for FramedDecoder {
    fn fill(&self, payload: &[u8], into: &mut RawBatch) -> Result<(), DecodeFailure> {
        let (id, behind) = split_frame(payload)?;
        Ok(self.writer(id)?.fill(id, behind, &self.wanted, &self.lookup, &self.telemetry, into)?)
    }
}

/// Framed JSON; its schema is not requested.
#[derive(Debug)]
pub struct FramedJson<D>(pub D);

impl<D: RecordDecoder> MessagePartDecoder for FramedJson<D> {
    fn fill(&self, payload: &[u8], into: &mut RawBatch) -> Result<(), DecodeFailure> {
        Ok(RecordDecoder::fill(&self.0, split_frame(payload)?.1, into)?)
    }
}
