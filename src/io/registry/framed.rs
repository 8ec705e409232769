//! Records that come with the number of their schema.
//!
//! The frame is a zero byte and four bytes of the number, the highest first. A schema is asked for once and kept. What cannot
//! be decoded is a rejection as long as somebody has decided it: a registry that knows no such schema has, one that does not
//! answer has not, and its records wait.

use super::client::{Client, RegistryError, WriterSchema};
use crate::codec::{AvroCodec, Decoder, Field, Limits, Unknown};
use crate::io::message::{Part, Undecoded};
use crate::records::raw::RawBatch;
use crate::telemetry::RejectionReason;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Schemas kept. One that is needed again after that many others is asked for again.
const MOST_KEPT: usize = 1_000;

/// For how long it holds that a registry does not know a schema: it may learn of it.
const UNKNOWN_FOR: Duration = Duration::from_mins(1);

/// How long a registry that did not answer is left alone.
const PAUSE: Duration = Duration::from_secs(1);

/// For how long "unknown" is not believed: a registry of several nodes may be behind the producer who has just registered.
const DOUBTED_FOR: Duration = Duration::from_secs(3);

/// So many numbers are doubted in a while. More than that is noise, which must not hold a stream up.
const MOST_DOUBTED: usize = 8;

/// Decodes framed records.
#[derive(Debug)]
pub struct Framed {
    client: Arc<Client>,
    fields: Vec<(usize, Field)>,
    /// Attributes whose field a schema may lack.
    optional: Vec<usize>,
    limits: Limits,
    unknown: Unknown,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    schemas: HashMap<u32, Kept>,
    /// Not asked before.
    resting: Option<Instant>,
    /// Numbers that were unknown, and since when.
    doubted: Vec<(u32, Instant)>,
}

impl Known {
    /// Whether the registry may still learn of a schema that it does not know now.
    fn may_still_come(&mut self, id: u32, now: Instant) -> bool {
        self.doubted.retain(|(_, since)| now.saturating_duration_since(*since) < UNKNOWN_FOR);
        match self.doubted.iter().find(|(known, _)| *known == id) {
            Some((_, since)) => now.saturating_duration_since(*since) < DOUBTED_FOR,
            None if self.doubted.len() >= MOST_DOUBTED => false,
            None => {
                self.doubted.push((id, now));
                true
            }
        }
    }

    fn keep(&mut self, id: u32, kept: Kept) {
        if self.schemas.len() >= MOST_KEPT {
            self.schemas.retain(|_, kept| matches!(kept, Kept::Codec(_)));
        }
        if self.schemas.len() >= MOST_KEPT {
            self.schemas.clear();
        }
        self.schemas.insert(id, kept);
    }
}

#[derive(Clone, Debug)]
enum Kept {
    Codec(Arc<AvroCodec>),
    Refused { reason: RejectionReason, attribute: Option<usize>, until: Option<Instant> },
}

impl Framed {
    /// A decoder of the `fields` of Avro records, which asks `client` for their schemas. `optional` are attributes that a schema
    /// may lack; a record whose schema lacks another is refused.
    #[must_use]
    pub fn new(
        client: Arc<Client>,
        fields: Vec<(usize, Field)>,
        optional: Vec<usize>,
        limits: Limits,
        unknown: Unknown,
    ) -> Self {
        Self { client, fields, optional, limits, unknown, known: Mutex::default() }
    }

    fn kept(&self, id: u32) -> Result<Kept, Undecoded> {
        let mut known = self.known.lock().expect("no panic while schemas are held");
        let now = Instant::now();
        match known.schemas.get(&id) {
            Some(Kept::Refused { until: Some(until), .. }) if *until <= now => {}
            Some(kept) => return Ok(kept.clone()),
            None => {}
        }
        if known.resting.is_some_and(|until| until > now) {
            return Err(Undecoded::Wait);
        }
        let refused = |reason, attribute, until| Kept::Refused { reason, attribute, until };
        let kept = match self.client.schema(id) {
            Ok(schema) => self.compiled(id, &schema),
            Err(RegistryError::Unknown { .. }) => {
                let asked = Instant::now();
                if known.may_still_come(id, asked) {
                    known.resting = Some(asked + PAUSE);
                    return Err(Undecoded::Wait);
                }
                tracing::warn!(schema = id, "the registry knows no such schema: its records are dead letters");
                refused(RejectionReason::UnknownSchema, None, Some(asked + UNKNOWN_FOR))
            }
            // It has answered, and there is nothing to wait for.
            Err(error @ RegistryError::Refused { status, .. }) if !matches!(status, 300..=399 | 401 | 403) => {
                tracing::warn!(schema = id, error = %error, "a schema cannot be had: its records are dead letters");
                refused(RejectionReason::UnknownSchema, None, Some(Instant::now() + UNKNOWN_FOR))
            }
            Err(error) => {
                known.resting = Some(Instant::now() + PAUSE);
                tracing::warn!(error = %error, "records wait for the schema registry");
                return Err(Undecoded::Wait);
            }
        };
        known.keep(id, kept.clone());
        Ok(kept)
    }

    fn compiled(&self, id: u32, schema: &WriterSchema) -> Kept {
        let refused = |reason, attribute| Kept::Refused { reason, attribute, until: None };
        if schema.kind != "AVRO" {
            tracing::warn!(schema = id, kind = %schema.kind, "a schema is not of the configured format: its records are dead letters");
            return refused(RejectionReason::UnknownSchema, None);
        }
        let codec = match AvroCodec::of_parts(&schema.text, &schema.parts, &self.fields, self.limits, self.unknown) {
            Ok(codec) => codec,
            Err(error) => {
                tracing::warn!(schema = id, error = %error, "a schema cannot be used: its records are dead letters");
                return refused(RejectionReason::UnknownSchema, None);
            }
        };
        match codec.missing(&self.fields).into_iter().find(|attribute| !self.optional.contains(attribute)) {
            Some(attribute) => {
                let place = self.fields.iter().find(|(known, _)| *known == attribute).map(|(_, field)| field.column());
                tracing::warn!(
                    schema = id,
                    place,
                    "a schema has no field of an attribute that is not `optional`: its records are dead letters"
                );
                refused(RejectionReason::MissingField, Some(attribute))
            }
            None => Kept::Codec(Arc::new(codec)),
        }
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
        let (id, datum) = unframed(payload)?;
        match self.kept(id)? {
            Kept::Codec(codec) => Ok(codec.fill(datum, into)?),
            Kept::Refused { reason, attribute, .. } => Err(Undecoded::Rejected { reason, attribute }),
        }
    }
}

/// JSON behind a frame.
#[derive(Debug)]
pub struct FramedJson<D>(pub D);

impl<D: Decoder> Part for FramedJson<D> {
    fn fill(&self, payload: &[u8], into: &mut RawBatch) -> Result<(), Undecoded> {
        Ok(self.0.fill(unframed(payload)?.1, into)?)
    }
}
