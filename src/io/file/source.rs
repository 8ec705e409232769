//! The file source: records of files, or of standard input, in their order.

use std::collections::VecDeque;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::csv_rows::LongRows;
use super::listing::{all_of, behind, is_of_several};
use super::pipe::MOMENT;
use super::reader::Reader;
use super::stream::Stream;
use super::undescribed::{ColumnChoice, missing};
use super::{Format, Next, Reading, SourceError, StopFlag};
use crate::telemetry::RejectionReason;
use throng_core::values::raw::{Coordinate, RawBatch};
use throng_formats::{Field, Limits, Unknown};

/// What one call of [`FileSource::read`] consumed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadOutcome {
    /// Rows added + records rejected + tombstones.
    pub records: u64,
    /// NDJSON and CSV: bytes of the file; Parquet: bytes of the cells.
    pub bytes: u64,
    /// Records that only said that something is gone (NDJSON `null`); dropped.
    pub tombstones: u64,
    /// The end of the file has been reached.
    pub end: bool,
    /// The flag of [`Reading::stop`] was set in the middle of a record, which is not among them.
    pub stopped: bool,
}

/// How far a source has been read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SourcePosition {
    /// Lines or rows: records, what was rejected and tombstones alike. A line may be several records.
    pub records: u64,
    /// NDJSON and CSV: bytes of the text. Parquet: the lengths of the files.
    pub bytes: u64,
}

/// A file, several files one after the other, or standard input, as a source of records with the coordinates (topic 0,
/// partition 0, ordinal of the line or row over all files).
#[derive(Debug)]
pub struct FileSource {
    /// As it was given.
    path: PathBuf,
    /// The file that is being read, as messages name it, and those behind it.
    file: PathBuf,
    behind: VecDeque<PathBuf>,
    reader: Reader,
    reading: Reading,
    records: u64,
    /// The place behind the last record in the file that is being read.
    byte: u64,
    /// Bytes of the files before it.
    bytes_before: u64,
    /// Files that were opened since that was last asked, with the number of their first record.
    opened: Vec<(PathBuf, u64)>,
    /// Of files that have been read.
    long: Option<LongRows>,
    /// Where nobody described the file: its columns, as far as they are known without reading it.
    names: Vec<String>,
    at_most: usize,
}

impl FileSource {
    /// Opens `path` (`-`: standard input, NDJSON and CSV; a directory or a pattern: all its files, in the order of their names).
    ///
    /// Files that gzip or Zstandard has compressed are told by how they begin; their bytes are those of the text in them.
    ///
    /// # Errors
    /// When the input cannot be opened, and when its header or columns do not fit the fields.
    pub fn open(
        path: &Path,
        format: Format,
        fields: &[Field],
        limits: Limits,
        unknown: Unknown,
    ) -> Result<Self, SourceError> {
        let fields = fields.to_vec();
        Self::reading(path, Reading { format, fields, limits, unknown, stop: StopFlag::default() })
    }

    /// As [`open`](Self::open), read as `reading` says.
    pub fn reading(path: &Path, reading: Reading) -> Result<Self, SourceError> {
        Self::reading_files(path, all_of(path, reading.format)?, reading)
    }

    /// As [`reading`](Self::reading), where the `files` of `path` are known.
    pub fn reading_files(path: &Path, files: Vec<PathBuf>, reading: Reading) -> Result<Self, SourceError> {
        let reader = Reader::open(&files[0], &reading)?;
        let width = reading.fields.len();
        let mut source = Self::of(path, files, reader, reading, Vec::new(), width);
        if is_of_several(path) {
            source.opened.push((source.file.clone(), 0));
        }
        Ok(source)
    }

    fn of(
        path: &Path,
        files: Vec<PathBuf>,
        reader: Reader,
        reading: Reading,
        names: Vec<String>,
        at_most: usize,
    ) -> Self {
        let (byte, mut behind) = (reader.bytes(), VecDeque::from(files));
        let file = named(&behind.pop_front().unwrap_or_default());
        Self {
            path: path.into(),
            file,
            behind,
            reader,
            reading,
            records: 0,
            byte,
            bytes_before: 0,
            opened: Vec::new(),
            long: None,
            names,
            at_most,
        }
    }

    /// Opens a file that no schema describes, at its start: CSV has the columns of its header, Parquet those of its own
    /// schema (members of structs by `a.b`), NDJSON the keys that come (those of nested objects by `a.b`). Of several files the first
    /// one tells.
    ///
    /// A batch given to [`read`](Self::read) has one attribute a column of [`names`](Self::names); with NDJSON it gets
    /// wider when a new key comes.
    ///
    /// # Errors
    /// When the input cannot be opened or its columns cannot be told apart, are too many, or miss a wanted one (NDJSON
    /// tells that at its end, see [`missing_columns`](Self::missing_columns)).
    pub fn open_undescribed(
        path: &Path,
        format: Format,
        limits: Limits,
        columns: ColumnChoice<'_>,
    ) -> Result<Self, SourceError> {
        let files = all_of(path, format)?;
        let (reader, fields) = Reader::open_undescribed(&files[0], format, limits, columns)?;
        let (names, fields) = fields.into_iter().unzip();
        let reading = Reading { format, fields, limits, unknown: Unknown::Drop, stop: StopFlag::default() };
        Ok(Self::of(path, files, reader, reading, names, columns.at_most))
    }

    /// The same source with the files of further paths behind its own.
    ///
    /// # Errors
    /// When a path names no file, a directory cannot be read, or two names are of one file.
    pub fn followed_by(mut self, more: &[PathBuf]) -> Result<Self, SourceError> {
        if !more.is_empty() {
            let own: Vec<PathBuf> = std::iter::once(&self.file).chain(&self.behind).cloned().collect();
            self.behind.extend(behind(&own, more, self.reading.format)?);
        }
        Ok(self)
    }

    /// Lines of NDJSON that no schema describes and somebody else makes, `named` so in messages.
    pub fn of_lines(named: &Path, lines: Box<dyn Read + Send>, limits: Limits, columns: ColumnChoice<'_>) -> Self {
        let reader = Reader::lines(Stream::of(lines), limits, columns);
        let stop = StopFlag::default();
        let reading = Reading { format: Format::Ndjson, fields: Vec::new(), limits, unknown: Unknown::Drop, stop };
        Self::of(named, vec![named.into()], reader, reading, Vec::new(), columns.at_most)
    }

    /// The file that is being read, of several files one of them, as messages name it.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// The columns of a file opened by [`open_undescribed`](Self::open_undescribed), those known so far for NDJSON.
    pub fn names(&self) -> &[String] {
        match &self.reader {
            Reader::Ndjson(lines) => lines.names(),
            _ => &self.names,
        }
    }

    /// The keys from the top of a record down to column number `column` of [`names`](Self::names); its name alone in a file
    /// without nested records.
    pub fn way(&self, column: usize) -> Vec<String> {
        let way = match &self.reader {
            Reader::Ndjson(lines) => lines.ways().get(column).cloned(),
            _ => self.reading.fields.get(column).map(|field| field.pointer.clone()),
        };
        way.unwrap_or_else(|| self.names().get(column).cloned().into_iter().collect())
    }

    /// Refuses `wanted` columns that have not been seen; asked at the end of a file.
    ///
    /// # Errors
    /// Names the first of them.
    pub fn missing_columns(&self, wanted: &[String]) -> Result<(), SourceError> {
        missing(&named(&self.path), wanted, self.names())
    }

    /// Reads records into `batch` until `max_records` or `max_bytes` are consumed or the file ends; at least one
    /// record, if there is one and `max_records` is not 0. A line of several records is read as a whole, and may bring more.
    ///
    /// On an input that may have to be waited for (a pipe), it returns as soon as nothing more is at hand, so a
    /// batch is full only when the sum of several calls says so. The first record of a call is waited for a moment;
    /// only a record that has begun is waited for until it ends.
    ///
    /// # Errors
    /// When reading fails; rows added before remain in `batch`.
    pub fn read(
        &mut self,
        batch: &mut RawBatch,
        max_records: usize,
        max_bytes: u64,
        rejected: &mut Vec<(Coordinate, RejectionReason)>,
    ) -> Result<ReadOutcome, SourceError> {
        let mut outcome = ReadOutcome::default();
        let (before, repeated) = (self.records, batch.repeated_bytes());
        while outcome.records < max_records as u64 {
            // Cells that the elements of a line have in common count beyond the first time.
            let bytes = outcome.bytes + batch.repeated_bytes() - repeated;
            if outcome.records > 0 && bytes >= max_bytes {
                break;
            }
            let patience = if self.records > before { Duration::ZERO } else { MOMENT };
            let comes = self.reader.stream().map_or(Ok(true), |stream| stream.comes_within(patience));
            if !comes.map_err(|source| self.unreadable(source))? {
                break;
            }
            let offset = i64::try_from(self.records).unwrap_or(i64::MAX);
            let coordinate = Coordinate { topic: 0, partition: 0, offset, element: 0 };
            let rows = batch.rows();
            let (next, bytes) = match self.reader.next(&self.file, coordinate, batch) {
                Err(error) if error.is_stop() => {
                    outcome.stopped = true;
                    break;
                }
                read => read?,
            };
            self.byte = self.reader.bytes();
            outcome.bytes += bytes;
            let mut records = 1;
            match next {
                Next::Blank => {
                    if self.reading.stop.check().is_err() {
                        outcome.stopped = true;
                        break;
                    }
                    continue;
                }
                Next::Record => {
                    let refused = batch.take_refused();
                    records = (batch.rows() - rows + refused.len()) as u64;
                    rejected.extend(refused);
                }
                Next::Rejected(rejection) => rejected.push((coordinate, rejection)),
                Next::Tombstone => outcome.tombstones += 1,
                Next::Foreign(what) => return Err(SourceError::Foreign { path: self.file.clone(), what }),
                Next::TooManyColumns => {
                    return Err(SourceError::TooManyColumns { path: self.file.clone(), limit: self.at_most });
                }
                Next::End if self.go_on()? => continue,
                Next::End => {
                    outcome.end = true;
                    break;
                }
            }
            outcome.records += records;
            self.records += 1;
        }
        Ok(outcome)
    }

    fn unreadable(&self, source: io::Error) -> SourceError {
        SourceError::Read { path: self.file.clone(), byte: self.byte, source }
    }

    /// Goes on with the next file; false where there is none.
    fn go_on(&mut self) -> Result<bool, SourceError> {
        let Some(file) = self.behind.pop_front() else { return Ok(false) };
        self.long = LongRows::and(self.long, self.reader.take_long());
        self.bytes_before += self.reader.bytes();
        self.reader.go_on(&file, &self.file, &self.reading)?;
        self.byte = self.reader.bytes();
        self.opened.push((file.clone(), self.records));
        self.file = file;
        Ok(true)
    }

    /// Lines or rows read so far, and bytes, of all files.
    pub fn position(&self) -> SourcePosition {
        SourcePosition { records: self.records, bytes: self.bytes_before + self.byte }
    }

    /// Whether what is read is a file at rest, and no pipe.
    pub fn is_regular(&mut self) -> bool {
        self.reader.stream().is_none_or(|stream| stream.is_regular())
    }

    /// Of several files, those that were opened since the last call, each with the number of its first record.
    pub fn take_opened(&mut self) -> Vec<(PathBuf, u64)> {
        std::mem::take(&mut self.opened)
    }

    /// CSV rows since the last call that span so many lines that a quote is likely to be open by mistake.
    pub fn take_long_rows(&mut self) -> Option<LongRows> {
        LongRows::and(self.long.take(), self.reader.take_long())
    }

    /// Attributes that this file has no column for, ascending: absent in every record. Empty for NDJSON, where only
    /// the records can tell.
    pub fn absent_attributes(&self) -> Vec<usize> {
        self.reader.absent()
    }

    /// Columns of the file that the schema does not know, by name; none for NDJSON, whose keys may be data. Only where
    /// every attribute has a column is a header sure to be one.
    pub fn unknown_columns(&self) -> &[String] {
        match &self.reader {
            Reader::Csv(rows) if !rows.codec.absent().is_empty() => &[],
            reader => reader.unknown(),
        }
    }
}

/// The path as messages name it.
fn named(path: &Path) -> PathBuf {
    if path == Path::new("-") { PathBuf::from("standard input") } else { path.to_owned() }
}

#[cfg(test)]
#[path = "source_tests.rs"]
mod tests;
