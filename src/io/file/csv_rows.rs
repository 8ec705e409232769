//! CSV: rows under a header, with quoted fields that may hold line breaks.

use std::io;
use std::path::Path;

use csv_core::ReadRecordResult;
use serde::{Deserialize, Serialize};

use super::foreign::no_csv;
use super::separator::separator_line;
use super::stream::Stream;
use super::undescribed::ColumnChoice;
use super::{Next, Reading, SourceError, StopFlag};
use crate::telemetry::RejectionReason;
use throng_core::values::raw::{Coordinate, RawBatch};
use throng_formats::{CsvCodec, Field, Limits, Row, Unknown};

/// What the next stretch of the file is.
enum Parsed {
    /// A row, now in `text` and `ends`.
    Row,
    Rejected(RejectionReason),
    End,
}

/// The rows of a file or of standard input. Blank lines are nothing.
///
/// The csv crate's own reader keeps a whole record in memory, and a stray quote makes the rest of a file one record.
/// So its automaton is driven here, and a row longer than the limit is passed over in bounded memory.
#[derive(Debug)]
pub(super) struct CsvRows {
    pub stream: Stream,
    automaton: csv_core::Reader,
    pub codec: CsvCodec,
    max_record_bytes: usize,
    text: Vec<u8>,
    ends: Vec<usize>,
    text_len: usize,
    ends_len: usize,
    /// Line breaks read so far, those between rows left out.
    line: u64,
    /// Rows since this was last taken that span suspiciously many lines.
    pub long: Option<LongRows>,
}

/// Rows that span so many lines that a quote is likely to be open by mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LongRows {
    /// Number of the first such record, from 0.
    pub first: i64,
    /// Lines that these rows span, all together.
    pub lines: u64,
    /// How many they are.
    pub rows: u64,
}

impl LongRows {
    /// These rows and later ones.
    pub fn and(before: Option<Self>, more: Option<Self>) -> Option<Self> {
        match (before, more) {
            (Some(a), Some(b)) => Some(Self { first: a.first, lines: a.lines + b.lines, rows: a.rows + b.rows }),
            (one, other) => one.or(other),
        }
    }
}

/// Lines of a readable row from which on it is suspect. One that cannot be read is suspect from two lines on.
const SUSPECT_LINES: u64 = 50;

impl CsvRows {
    /// The rows under the header.
    pub fn open(path: &Path, separator: u8, reading: &Reading) -> Result<Self, SourceError> {
        let mut rows = Self::under_header(path, separator, reading.limits, &reading.stop)?;
        rows.codec = CsvCodec::new(rows.row(), &reading.fields, reading.unknown)
            .map_err(|source| SourceError::Header { path: path.into(), source })?;
        Ok(rows)
    }

    /// Every row, with the columns that the header names.
    pub fn open_undescribed(
        path: &Path,
        separator: u8,
        limits: Limits,
        columns: ColumnChoice<'_>,
    ) -> Result<(Self, Vec<String>), SourceError> {
        let mut rows = Self::under_header(path, separator, limits, &StopFlag::default())?;
        let fault = |source| SourceError::Header { path: path.into(), source };
        let header = CsvCodec::names(rows.row()).map_err(fault)?;
        let names = columns.choose(path, &header)?;
        let fields: Vec<Field> = names.iter().map(|name| Field::flat(name)).collect();
        rows.codec = CsvCodec::new(rows.row(), &fields, Unknown::Drop).map_err(fault)?;
        Ok((rows, names))
    }

    /// The file after its header row, which is the current row then.
    fn under_header(path: &Path, separator: u8, limits: Limits, stop: &StopFlag) -> Result<Self, SourceError> {
        if !separator.is_ascii() || matches!(separator, b'"' | b'\n' | b'\r' | 0) {
            return Err(SourceError::Separator);
        }
        let blank = Row { text: &[], ends: &[] };
        let mut rows = Self {
            stream: Stream::open(path, stop)?,
            automaton: csv_core::ReaderBuilder::new().delimiter(separator).build(),
            codec: CsvCodec::new(blank, &[], Unknown::Drop)
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
        if let Some(what) = no_csv(rows.stream.fill().map_err(unread)?) {
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
            Parsed::End => Err(SourceError::NoHeader { path: path.into() }),
            Parsed::Rejected(rejection) => Err(SourceError::UnreadableHeader { path: path.into(), rejection }),
            Parsed::Row => Ok(rows),
        }
    }

    pub fn next(&mut self, coordinate: Coordinate, into: &mut RawBatch) -> io::Result<Next> {
        let line = self.line;
        let next = match self.parse()? {
            Parsed::End => Next::End,
            Parsed::Rejected(rejection) => Next::Rejected(rejection),
            Parsed::Row => match self.codec.decode(self.row(), coordinate, into) {
                Ok(()) => Next::Record,
                Err(rejection) => Next::Rejected(rejection),
            },
        };
        let lines = self.line - line;
        let enough = if matches!(next, Next::Rejected(_)) { 2 } else { SUSPECT_LINES };
        if lines >= enough {
            let long = self.long.get_or_insert(LongRows { first: coordinate.offset, lines: 0, rows: 0 });
            (long.lines, long.rows) = (long.lines + lines, long.rows + 1);
        }
        Ok(next)
    }

    fn row(&self) -> Row<'_> {
        Row { text: &self.text[..self.text_len], ends: &self.ends[..self.ends_len] }
    }

    fn parse(&mut self) -> io::Result<Parsed> {
        if self.skip_blank_lines()? {
            return Ok(Parsed::End);
        }
        (self.text_len, self.ends_len) = (0, 0);
        let (mut size, mut last) = (0_usize, 0_u8);
        loop {
            if size > self.max_record_bytes {
                // It may be longer than anybody waits for.
                self.stream.stop.check()?;
            }
            let input = self.stream.fill()?;
            // At the end of the file a line break stands in for the missing one: it ends a row, unless a quote is open.
            let ended = input.is_empty();
            let input = if ended { b"\n" } else { input };
            let (result, read, written, fields) =
                self.automaton.read_record(input, &mut self.text[self.text_len..], &mut self.ends[self.ends_len..]);
            self.text_len += written;
            self.ends_len += fields;
            // The line break that stands in ends no line where the file has one there.
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
                    return Ok(if fits { Parsed::Row } else { Parsed::Rejected(RejectionReason::Oversized) });
                }
                ReadRecordResult::InputEmpty if ended => {
                    self.automaton.reset();
                    let fits = size <= self.max_record_bytes;
                    let reason = if fits { RejectionReason::MalformedRow } else { RejectionReason::Oversized };
                    return Ok(Parsed::Rejected(reason));
                }
                // `End` answers empty input alone, which is never given.
                ReadRecordResult::InputEmpty | ReadRecordResult::End => {}
                // A row that is too long is passed over in the room that there is.
                ReadRecordResult::OutputFull if size > self.max_record_bytes => self.text_len = 0,
                ReadRecordResult::OutputFull => self.text.resize(self.text.len() * 2, 0),
                ReadRecordResult::OutputEndsFull if size > self.max_record_bytes => self.ends_len = 0,
                ReadRecordResult::OutputEndsFull => self.ends.resize(self.ends.len() * 2, 0),
            }
        }
    }

    /// Passes over line breaks; true at the end of the file.
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

    /// Memory held for the current row.
    #[cfg(test)]
    pub fn held_bytes(&self) -> usize {
        self.text.capacity() + size_of::<usize>() * self.ends.capacity()
    }
}
