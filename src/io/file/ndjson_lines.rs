//! NDJSON: one JSON object a line.

use std::io;
use std::path::Path;

use super::foreign::no_ndjson;
use super::stream::Stream;
use super::undescribed::ColumnChoice;
use super::{Next, Reading, SourceError};
use crate::telemetry::RejectionReason;
use throng_core::values::raw::{Coordinate, RawBatch};
use throng_formats::{JsonCodec, JsonKeys, Limits, Refusal};

/// Longest line break.
const BREAK_BYTES: usize = 2;

/// How a line becomes a row.
#[derive(Debug)]
enum Codec {
    Fields(JsonCodec),
    Keys(JsonKeys),
}

/// The lines of a file or of standard input.
///
/// A line longer than the limit is passed over without being held in memory. A line `null` is a tombstone. Blank lines are nothing,
/// as in CSV.
#[derive(Debug)]
pub(super) struct NdjsonLines {
    pub stream: Stream,
    codec: Codec,
    max_record_bytes: usize,
    line: Vec<u8>,
}

impl NdjsonLines {
    /// The lines of a file.
    pub fn open(path: &Path, reading: &Reading) -> Result<Self, SourceError> {
        let Reading { fields, limits, unknown, stop, .. } = reading;
        let stream = Stream::open(path, stop)?;
        let codec = Codec::Fields(JsonCodec::new(fields, *limits).with_unknown(*unknown));
        Ok(Self { stream, codec, max_record_bytes: limits.max_record_bytes, line: Vec::new() })
    }

    /// Every line, with the columns that come.
    pub fn undescribed(stream: Stream, limits: Limits, columns: ColumnChoice<'_>) -> Self {
        let codec = Codec::Keys(JsonKeys::new(limits, columns.wanted, columns.at_most));
        Self { stream, codec, max_record_bytes: limits.max_record_bytes, line: Vec::new() }
    }

    /// Goes on with the lines of another file.
    pub fn go_on(&mut self, path: &Path) -> Result<(), SourceError> {
        self.stream = Stream::open(path, &self.stream.stop)?;
        Ok(())
    }

    /// The columns that have come; none where they were given.
    pub fn names(&self) -> &[String] {
        match &self.codec {
            Codec::Fields(_) => &[],
            Codec::Keys(keys) => keys.names(),
        }
    }

    /// By column, the keys that lead to it.
    pub fn ways(&self) -> &[Vec<String>] {
        match &self.codec {
            Codec::Fields(_) => &[],
            Codec::Keys(keys) => keys.ways(),
        }
    }

    pub fn next(&mut self, coordinate: Coordinate, into: &mut RawBatch) -> io::Result<Next> {
        self.line.clear();
        if self.stream.is_at_start()
            && let Some(what) = no_ndjson(self.stream.fill()?)
        {
            return Ok(Next::Foreign(what));
        }
        let limit = self.max_record_bytes.saturating_add(BREAK_BYTES);
        let taken = self.stream.take_line(limit, &mut self.line)?;
        if taken == 0 {
            return Ok(Next::End);
        }
        let content = if let Some(content) = self.line.strip_suffix(b"\n") {
            content.strip_suffix(b"\r").unwrap_or(content)
        } else {
            if taken == limit {
                self.stream.skip_line()?;
            }
            &self.line
        };
        if content.len() > self.max_record_bytes {
            return Ok(Next::Rejected(RejectionReason::Oversized));
        }
        let trimmed = content.trim_ascii();
        if trimmed.is_empty() {
            return Ok(Next::Blank);
        }
        if trimmed == b"null" {
            return Ok(Next::Tombstone);
        }
        let done = match &mut self.codec {
            Codec::Fields(decoder) => decoder.decode(content, coordinate, into).map_err(Refusal::from),
            Codec::Keys(keys) => keys.decode(content, coordinate, into),
        };
        Ok(match done {
            Ok(()) => Next::Record,
            Err(Refusal::Rejected(rejection)) => Next::Rejected(rejection),
            Err(Refusal::TooManyColumns) => Next::TooManyColumns,
        })
    }

    /// Memory held for the current line.
    #[cfg(test)]
    pub fn held_bytes(&self) -> usize {
        self.line.capacity()
    }
}
