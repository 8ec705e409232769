//! Records that come with the number of their schema.
//!
//! The frame is a zero byte and four bytes of the number, the highest first. A schema is asked for once and kept. What cannot
//! be decoded is a rejection as long as somebody has decided it: a registry that knows no such schema has, one that does not
//! answer has not, and its records wait.

use super::client::{Client, RegistryError};
use super::writer::{Refusal, WantedFields, Writer};
use crate::codec::Decoder;
use crate::io::message::{Part, Undecoded};
use crate::records::raw::RawBatch;
use crate::telemetry::{
    RegistryAnswered, RegistryLost, RejectionReason, SchemaOutcome, Telemetry, WriterSchemaMet, foreign,
};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Schemas kept. One that is needed again after that many others is asked for again.
const MOST_KEPT: usize = 1_000;

/// Memory of compiled schemas, in bytes, roughly; one may be larger than that alone.
const MOST_KEPT_BYTES: usize = 64 << 20;

/// Bytes of a compiled schema by those of its text, beside what its codec says.
const BYTES_BY_TEXT: usize = 16;

/// For how long it holds that a registry does not know a schema: it may learn of it.
const UNKNOWN_FOR: Duration = Duration::from_mins(1);

/// How long a registry that did not answer is left alone.
const PAUSE: Duration = Duration::from_secs(1);

/// For how long "unknown" is not believed: a registry of several nodes may be behind the producer who has just registered.
const DOUBTED_FOR: Duration = Duration::from_secs(3);

/// So many numbers are doubted in a while. More than that is noise, which must not hold a stream up.
const MOST_DOUBTED: usize = 8;

/// After so long without another question a registry that did not answer is waited for no more: its records have gone elsewhere.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(10);

/// Decodes framed records.
#[derive(Debug)]
pub struct Framed {
    client: Arc<Client>,
    wanted: WantedFields,
    telemetry: Telemetry,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    schemas: HashMap<u32, Kept>,
    /// Their memory.
    bytes: usize,
    /// Not asked before.
    resting: Option<Instant>,
    /// When it last did not answer, while that is told.
    lost: Option<Instant>,
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

    fn has_writer(&self, id: u32) -> bool {
        matches!(self.schemas.get(&id), Some(Kept::Writer(..)))
    }

    fn keep(&mut self, id: u32, kept: Kept) {
        if self.schemas.len() >= MOST_KEPT {
            self.schemas.retain(|_, kept| matches!(kept, Kept::Writer(..)));
        }
        let own = kept.bytes();
        if self.schemas.len() >= MOST_KEPT || self.bytes + own > MOST_KEPT_BYTES {
            self.schemas.clear();
            self.bytes = 0;
        }
        self.bytes += own;
        if let Some(before) = self.schemas.insert(id, kept) {
            self.bytes = self.bytes.saturating_sub(before.bytes());
        }
    }
}

#[derive(Clone, Debug)]
enum Kept {
    /// With its memory in bytes.
    Writer(Arc<Writer>, usize),
    Refused {
        refusal: Refusal,
        until: Option<Instant>,
    },
}

impl Kept {
    fn bytes(&self) -> usize {
        match self {
            Self::Writer(_, bytes) => *bytes,
            Self::Refused { .. } => 0,
        }
    }
}

impl Framed {
    /// A decoder of what is `wanted` of framed records, which asks `client` for their schemas. A record whose schema lacks a field
    /// that is not optional is refused.
    #[must_use]
    pub fn new(client: Arc<Client>, wanted: WantedFields, telemetry: Telemetry) -> Self {
        Self { client, wanted, telemetry, known: Mutex::default() }
    }

    fn kept(&self, id: u32) -> Result<Kept, Undecoded> {
        let mut known = self.known.lock().expect("no panic while schemas are held");
        let now = if known.lost.is_some() || !known.has_writer(id) { Some(Instant::now()) } else { None };
        if known.lost.zip(now).is_some_and(|(lost, now)| now.saturating_duration_since(lost) > FORGOTTEN_AFTER) {
            self.answered(&mut known);
        }
        match known.schemas.get(&id) {
            Some(Kept::Refused { until: Some(until), .. }) if now.is_some_and(|now| *until <= now) => {}
            Some(kept) => return Ok(kept.clone()),
            None => {}
        }
        if known.resting.zip(now).is_some_and(|(until, now)| until > now) {
            return Err(Undecoded::Wait);
        }
        let answer = self.client.schema(id);
        let asked = Instant::now();
        if is_answer(&answer) {
            self.answered(&mut known);
        }
        let met = |outcome| WriterSchemaMet { format: self.wanted.format.written_as(), outcome }.emit(&self.telemetry);
        let refused = |until| Kept::Refused { refusal: RejectionReason::UnknownSchema.into(), until: Some(until) };
        let kept = match answer {
            Ok(schema) => match self.wanted.compiled(id, &schema, &self.telemetry) {
                Ok(writer) => {
                    let bytes = schema.bytes() * BYTES_BY_TEXT + writer.bytes();
                    Kept::Writer(Arc::new(writer), bytes)
                }
                Err(refusal) => Kept::Refused { refusal, until: None },
            },
            Err(RegistryError::Unknown { .. }) => {
                if known.may_still_come(id, asked) {
                    known.resting = Some(asked + PAUSE);
                    return Err(Undecoded::Wait);
                }
                if known.doubted.len() < MOST_DOUBTED {
                    tracing::warn!(schema = id, "the registry knows no such schema: its records are dead letters");
                } else {
                    // Many of them are noise, and are counted.
                    tracing::debug!(schema = id, "the registry knows no such schema either");
                }
                met(SchemaOutcome::Unknown);
                refused(asked + UNKNOWN_FOR)
            }
            Err(error) if is_decided(&error) => {
                let error = foreign(&error.to_string());
                tracing::warn!(schema = id, error, "a schema cannot be had: its records are dead letters");
                met(SchemaOutcome::Unusable);
                refused(asked + UNKNOWN_FOR)
            }
            Err(error) => {
                known.resting = Some(asked + PAUSE);
                known.lost = Some(asked);
                RegistryLost { error: &error }.emit(&self.telemetry);
                return Err(Undecoded::Wait);
            }
        };
        known.keep(id, kept.clone());
        Ok(kept)
    }

    fn answered(&self, known: &mut Known) {
        if known.lost.take().is_some() {
            RegistryAnswered.emit(&self.telemetry);
        }
    }
}

/// It has answered, and there is nothing to wait for: all refusals but those of us.
fn is_decided(error: &RegistryError) -> bool {
    matches!(error, RegistryError::Refused { status, .. } if !matches!(status, 300..=399 | 401 | 403))
}

fn is_answer<T>(answer: &Result<T, RegistryError>) -> bool {
    match answer {
        Ok(_) | Err(RegistryError::Unknown { .. }) => true,
        Err(error) => is_decided(error),
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
        let refused = |Refusal { reason, attribute }| Undecoded::Rejected { reason, attribute };
        match self.kept(id)? {
            Kept::Writer(writer, _) => writer.fill(id, behind, &self.wanted, &self.telemetry, into).map_err(refused),
            Kept::Refused { refusal, .. } => Err(refused(refusal)),
        }
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
