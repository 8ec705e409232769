//! Records that come with the number of their schema.
//!
//! The frame is a zero byte and four bytes of the number, the highest first. A schema is asked for once and kept compiled. A record is
//! rejected where the registry has no usable schema for it, and waits where the registry does not answer.

use super::lookup::{Lookup, SchemaLookup};
use super::writer::{Refusal, WantedFields, Writer};
use crate::io::message::{Part, Undecoded};
use crate::telemetry::{RejectionReason, SchemaOutcome, Telemetry, WriterSchemaMet};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Instant;
use throng_core::values::raw::RawBatch;
use throng_formats::Decoder;

/// Schemas kept compiled. One that is needed again after that many others is asked for again.
const MAX_WRITERS: usize = 1_000;

/// Schemas kept that cannot be used.
const MAX_REFUSED: usize = 1 << 16;

/// Memory of compiled schemas, in bytes, roughly; one may be larger than that alone.
const MAX_BYTES: usize = 64 << 20;

/// Bytes of a compiled schema by those of its text, beside those that its codec counts.
const BYTES_BY_TEXT: usize = 16;

/// Decodes framed records.
#[derive(Debug)]
pub struct Framed {
    lookup: Arc<SchemaLookup>,
    wanted: WantedFields,
    telemetry: Telemetry,
    compiled: Mutex<CompiledSchemas>,
}

/// Schemas by their number, as they serve the wanted fields.
#[derive(Debug, Default)]
struct CompiledSchemas {
    /// With their memory in bytes.
    writers: HashMap<u32, (Arc<Writer>, usize)>,
    /// Sum of that memory.
    bytes: usize,
    /// Schemas that the registry has and that cannot be used.
    refused: HashMap<u32, Refusal>,
}

impl CompiledSchemas {
    fn keep_writer(&mut self, id: u32, writer: Arc<Writer>, bytes: usize) {
        if self.writers.len() >= MAX_WRITERS || self.bytes + bytes > MAX_BYTES {
            self.writers.clear();
            self.bytes = 0;
        }
        self.bytes += bytes;
        if let Some((_, before)) = self.writers.insert(id, (writer, bytes)) {
            self.bytes = self.bytes.saturating_sub(before);
        }
    }

    fn keep_refused(&mut self, id: u32, refusal: Refusal) {
        if self.refused.len() >= MAX_REFUSED {
            self.refused.clear();
        }
        self.refused.insert(id, refusal);
    }
}

impl Framed {
    /// A decoder of the fields `wanted` of framed records, which finds their schemas by `lookup`. A record whose schema lacks a field
    /// that is not optional is refused.
    #[must_use]
    pub fn new(lookup: Arc<SchemaLookup>, wanted: WantedFields, telemetry: Telemetry) -> Self {
        Self { lookup, wanted, telemetry, compiled: Mutex::default() }
    }

    fn writer(&self, id: u32) -> Result<Arc<Writer>, Undecoded> {
        let mut compiled = self.compiled.lock().expect("no panic while schemas are held");
        if let Some((writer, _)) = compiled.writers.get(&id) {
            self.lookup.pass();
            return Ok(Arc::clone(writer));
        }
        if let Some(refusal) = compiled.refused.get(&id) {
            self.lookup.pass();
            return Err((*refusal).into());
        }
        let (schema, asked) = match self.lookup.find(id) {
            Lookup::Found(schema, asked) => (schema, asked),
            Lookup::Unknown { is_new } => {
                if is_new {
                    self.met(SchemaOutcome::Unknown);
                }
                return Err(RejectionReason::UnknownSchema.into());
            }
            Lookup::Exhausted => {
                self.met(SchemaOutcome::NotAsked);
                return Err(RejectionReason::UnknownSchema.into());
            }
            Lookup::Wait => return Err(Undecoded::Wait),
        };
        let begun = Instant::now();
        let found = self.wanted.compiled(id, &schema, &self.telemetry);
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

    fn met(&self, outcome: SchemaOutcome) {
        WriterSchemaMet { format: self.wanted.format.written_as(), outcome }.emit(&self.telemetry);
    }
}

/// The number of the schema, and what is behind it.
pub(super) fn unframed(payload: &[u8]) -> Result<(u32, &[u8]), RejectionReason> {
    match payload {
        // Numbers are positive.
        [0, a, b, c, d, rest @ ..] if *a < 0x80 => Ok((u32::from_be_bytes([*a, *b, *c, *d]), rest)),
        _ => Err(RejectionReason::BrokenFrame),
    }
}

impl Part for Framed {
    fn fill(&self, payload: &[u8], into: &mut RawBatch) -> Result<(), Undecoded> {
        let (id, behind) = unframed(payload)?;
        Ok(self.writer(id)?.fill(id, behind, &self.wanted, &self.lookup, &self.telemetry, into)?)
    }
}

/// JSON behind a frame, whose schema nobody asks for.
#[derive(Debug)]
pub struct FramedJson<D>(pub D);

impl<D: Decoder> Part for FramedJson<D> {
    fn fill(&self, payload: &[u8], into: &mut RawBatch) -> Result<(), Undecoded> {
        Ok(Decoder::fill(&self.0, unframed(payload)?.1, into)?)
    }
}
