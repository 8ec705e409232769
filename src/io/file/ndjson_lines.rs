//! NDJSON lines: one JSON object per line.

use std::io;
use std::path::Path;

use super::format_detection::describe_non_ndjson;
use super::schemaless_files::ColumnChoice;
use super::text_stream::TextStream;
use super::{FileReadSettings, NextRecord, SourceError};
use crate::telemetry::RejectionReason;
use throng_core::values::raw_batch::{RawBatch, RecordPosition};
use throng_formats::{DecodeLimits, JsonCodec, SchemalessJsonCodec, SchemalessRefusal};

const MAX_BREAK_BYTES: usize = 2;

#[derive(Debug)]
enum NdjsonDecoder {
    Fields(JsonCodec),
    Keys(SchemalessJsonCodec),
}

/// Lines of an NDJSON input. A line over the limit is skipped without being held.
#[derive(Debug)]
pub(super) struct NdjsonLines {
    pub stream: TextStream,
    codec: NdjsonDecoder,
    max_record_bytes: usize,
    line: Vec<u8>,
}

impl NdjsonLines {
    pub fn open(path: &Path, reading: &FileReadSettings) -> Result<Self, SourceError> {
        let FileReadSettings { fields, limits, unknown, stop, .. } = reading;
        let stream = TextStream::open(path, stop)?;
        let codec = NdjsonDecoder::Fields(JsonCodec::new(fields, *limits).with_unknown(*unknown));
        Ok(Self { stream, codec, max_record_bytes: limits.max_record_bytes, line: Vec::new() })
    }

    /// Reads without a schema: each new key adds a column.
    pub fn schemaless(stream: TextStream, limits: DecodeLimits, columns: ColumnChoice<'_>) -> Self {
        let codec = NdjsonDecoder::Keys(SchemalessJsonCodec::new(limits, columns.wanted, columns.at_most));
        Self { stream, codec, max_record_bytes: limits.max_record_bytes, line: Vec::new() }
    }

    pub fn continue_with_file(&mut self, path: &Path) -> Result<(), SourceError> {
        self.stream = TextStream::open(path, &self.stream.stop)?;
        Ok(())
    }

    /// Columns found so far; empty with configured fields.
    pub fn names(&self) -> &[String] {
        match &self.codec {
            NdjsonDecoder::Fields(_) => &[],
            NdjsonDecoder::Keys(keys) => keys.names(),
        }
    }

    pub fn key_paths_by_column(&self) -> &[Vec<String>] {
        match &self.codec {
            NdjsonDecoder::Fields(_) => &[],
            NdjsonDecoder::Keys(keys) => keys.key_paths(),
        }
    }

    pub fn next(&mut self, coordinate: RecordPosition, into: &mut RawBatch) -> io::Result<NextRecord> {
        self.line.clear();
        if self.stream.is_at_start()
            && let Some(what) = describe_non_ndjson(self.stream.fill()?)
        {
            return Ok(NextRecord::Foreign(what));
        }
        let limit = self.max_record_bytes.saturating_add(MAX_BREAK_BYTES);
        let taken = self.stream.take_line(limit, &mut self.line)?;
        if taken == 0 {
            return Ok(NextRecord::End);
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
            return Ok(NextRecord::Rejected(RejectionReason::Oversized));
        }
        let trimmed = content.trim_ascii();
        if trimmed.is_empty() {
            return Ok(NextRecord::Blank);
        }
        if trimmed == b"null" {
            return Ok(NextRecord::Tombstone);
        }
        let done = match &mut self.codec {
            NdjsonDecoder::Fields(decoder) => {
                decoder.decode(content, coordinate, into).map_err(SchemalessRefusal::from)
            }
            NdjsonDecoder::Keys(keys) => keys.decode(content, coordinate, into),
        };
        Ok(match done {
            Ok(()) => NextRecord::Record,
            Err(SchemalessRefusal::Rejected(rejection)) => NextRecord::Rejected(rejection),
            Err(SchemalessRefusal::TooManyColumns) => NextRecord::TooManyColumns,
        })
    }

    #[cfg(test)]
    pub fn held_bytes(&self) -> usize {
        self.line.capacity()
    }
}
