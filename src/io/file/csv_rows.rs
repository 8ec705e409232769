//! CSV rows under a header.

use std::io;
use std::path::Path;
use throng_core::stream::input_batch::LongRows;

use csv_core::ReadRecordResult;

use super::format_detection::describe_non_csv;
use super::schemaless_files::ColumnChoice;
use super::separator::separator_line;
use super::text_stream::TextStream;
use super::{FileReadSettings, NextRecord, SourceError, StopFlag};
use crate::telemetry::RejectionReason;
use throng_core::values::raw_batch::{RawBatch, RecordPosition};
use throng_formats::{CsvCodec, CsvRow, DecodeLimits, FieldPath, UnknownCellPolicy};

enum ParsedRow {
    Row,
    Rejected(RejectionReason),
    End,
}

/// Rows of a CSV input, parsed by csv_core: the csv crate would keep the rest of a file in memory after a stray quote.
#[derive(Debug)]
pub(super) struct CsvRows {
    pub stream: TextStream,
    automaton: csv_core::Reader,
    pub codec: CsvCodec,
    max_record_bytes: usize,
    text: Vec<u8>,
    ends: Vec<usize>,
    text_len: usize,
    ends_len: usize,
    /// Line breaks read so far, without those between rows.
    line: u64,
    pub long: Option<LongRows>,
}

const SUSPICIOUS_LINES: u64 = 50;

impl CsvRows {
    pub fn open(path: &Path, separator: u8, reading: &FileReadSettings) -> Result<Self, SourceError> {
        let mut rows = Self::under_header(path, separator, reading.limits, &reading.stop)?;
        rows.codec = CsvCodec::new(rows.row(), &reading.fields, reading.unknown)
            .map_err(|source| SourceError::Header { path: path.into(), source })?;
        Ok(rows)
    }

    pub fn open_schemaless(
        path: &Path,
        separator: u8,
        limits: DecodeLimits,
        columns: ColumnChoice<'_>,
    ) -> Result<(Self, Vec<String>), SourceError> {
        let mut rows = Self::under_header(path, separator, limits, &StopFlag::default())?;
        let fault = |source| SourceError::Header { path: path.into(), source };
        let header = CsvCodec::names(rows.row()).map_err(fault)?;
        let names = columns.choose(path, &header)?;
        let fields: Vec<FieldPath> = names.iter().map(|name| FieldPath::top_level(name)).collect();
        rows.codec = CsvCodec::new(rows.row(), &fields, UnknownCellPolicy::Drop).map_err(fault)?;
        Ok((rows, names))
    }

    fn under_header(path: &Path, separator: u8, limits: DecodeLimits, stop: &StopFlag) -> Result<Self, SourceError> {
        if !separator.is_ascii() || matches!(separator, b'"' | b'\n' | b'\r' | 0) {
            return Err(SourceError::Separator);
        }
        let blank = CsvRow { text: &[], ends: &[] };
        let mut rows = Self {
            stream: TextStream::open(path, stop)?,
            automaton: csv_core::ReaderBuilder::new().delimiter(separator).build(),
            codec: CsvCodec::new(blank, &[], UnknownCellPolicy::Drop)
                .map_err(|source| SourceError::Header { path: path.into(), source })?,
            max_record_bytes: limits.max_record_bytes,
            text: vec![0; 4096],
            ends: vec![0; 64],
            text_len: 0,
            ends_len: 0,
            line: 0,
            long: None,
        };
        let unread = |source| SourceError::Read { path: path.into(), byte: 0, source };
        if let Some(what) = describe_non_csv(rows.stream.fill().map_err(unread)?) {
            return Err(SourceError::Foreign { path: path.into(), what });
        }
        let (named, length) = separator_line(rows.stream.fill().map_err(unread)?);
        if let Some(named) = named {
            if named != separator {
                let (named, given) = (char::from(named), char::from(separator));
                return Err(SourceError::OtherSeparator { path: path.into(), named, given });
            }
            rows.stream.consume(length);
            rows.line += 1;
        }
        match rows.parse().map_err(unread)? {
            ParsedRow::End => Err(SourceError::NoHeader { path: path.into() }),
            ParsedRow::Rejected(rejection) => Err(SourceError::UnreadableHeader { path: path.into(), rejection }),
            ParsedRow::Row => Ok(rows),
        }
    }

    pub fn next(&mut self, coordinate: RecordPosition, into: &mut RawBatch) -> io::Result<NextRecord> {
        let line = self.line;
        let next = match self.parse()? {
            ParsedRow::End => NextRecord::End,
            ParsedRow::Rejected(rejection) => NextRecord::Rejected(rejection),
            ParsedRow::Row => match self.codec.decode(self.row(), coordinate, into) {
                Ok(()) => NextRecord::Record,
                Err(rejection) => NextRecord::Rejected(rejection),
            },
        };
        let lines = self.line - line;
        let enough = if matches!(next, NextRecord::Rejected(_)) { 2 } else { SUSPICIOUS_LINES };
        if lines >= enough {
            let long = self.long.get_or_insert(LongRows { first: coordinate.offset, lines: 0, rows: 0 });
            (long.lines, long.rows) = (long.lines + lines, long.rows + 1);
        }
        Ok(next)
    }

    fn row(&self) -> CsvRow<'_> {
        CsvRow { text: &self.text[..self.text_len], ends: &self.ends[..self.ends_len] }
    }

    fn parse(&mut self) -> io::Result<ParsedRow> {
        if self.skip_blank_lines()? {
            return Ok(ParsedRow::End);
        }
        (self.text_len, self.ends_len) = (0, 0);
        let (mut size, mut last) = (0_usize, 0_u8);
        loop {
            if size > self.max_record_bytes {
                // The row may be arbitrarily long.
                self.stream.stop.check()?;
            }
            let input = self.stream.fill()?;
            // A supplied line break ends the last row, unless a quote is open.
            let ended = input.is_empty();
            let input = if ended { b"\n" } else { input };
            let (result, read, written, fields) =
                self.automaton.read_record(input, &mut self.text[self.text_len..], &mut self.ends[self.ends_len..]);
            self.text_len += written;
            self.ends_len += fields;
            // Not counted if the file ends with one.
            if !(ended && last == b'\n') {
                self.line += input[..read].iter().filter(|byte| **byte == b'\n').count() as u64;
            }
            last = input[..read].last().copied().unwrap_or(last);
            if !ended {
                self.stream.consume(read);
                size += read;
            }
            match result {
                ReadRecordResult::Record => {
                    let content = if ended { size } else { size - 1 };
                    let fits = content <= self.max_record_bytes;
                    return Ok(if fits { ParsedRow::Row } else { ParsedRow::Rejected(RejectionReason::Oversized) });
                }
                ReadRecordResult::InputEmpty if ended => {
                    self.automaton.reset();
                    let fits = size <= self.max_record_bytes;
                    let reason = if fits { RejectionReason::MalformedRow } else { RejectionReason::Oversized };
                    return Ok(ParsedRow::Rejected(reason));
                }
                // `End` requires empty input, which is never passed.
                ReadRecordResult::InputEmpty | ReadRecordResult::End => {}
                // A row over the limit reuses the buffer.
                ReadRecordResult::OutputFull if size > self.max_record_bytes => self.text_len = 0,
                ReadRecordResult::OutputFull => self.text.resize(self.text.len() * 2, 0),
                ReadRecordResult::OutputEndsFull if size > self.max_record_bytes => self.ends_len = 0,
                ReadRecordResult::OutputEndsFull => self.ends.resize(self.ends.len() * 2, 0),
            }
        }
    }

    fn skip_blank_lines(&mut self) -> io::Result<bool> {
        loop {
            let buffer = self.stream.fill()?;
            if buffer.is_empty() {
                return Ok(true);
            }
            let blanks = buffer.iter().take_while(|b| matches!(b, b'\r' | b'\n')).count();
            let more = blanks < buffer.len();
            self.stream.consume(blanks);
            if more {
                return Ok(false);
            }
            self.stream.stop.check()?;
        }
    }

    #[cfg(test)]
    pub fn held_bytes(&self) -> usize {
        self.text.capacity() + size_of::<usize>() * self.ends.capacity()
    }
}
