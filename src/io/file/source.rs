//! File source: reads records from files or standard input in order.

use std::collections::VecDeque;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::file_listing::{files_after, files_or_self, names_several_files};
use super::format_reader::FormatReader;
use super::pipe_reader::PIPE_POLL_INTERVAL;
use super::schemaless_files::{ColumnChoice, reject_missing_columns};
use super::text_stream::TextStream;
use super::{FileFormat, FileReadSettings, NextRecord, SourceError, StopFlag};
use crate::telemetry::RejectionReason;
use throng_core::stream::input_batch::LongRows;
use throng_core::values::raw_batch::{RawBatch, RecordPosition};
use throng_formats::{DecodeLimits, FieldPath, UnknownCellPolicy};

/// Result of one call of [`FileSource::read`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadOutcome {
    /// Rows added, records rejected and tombstones, together.
    pub records: u64,
    /// NDJSON and CSV: bytes of the text. Parquet: bytes of the cells.
    pub bytes: u64,
    /// Deletion markers (NDJSON `null`), which are dropped.
    pub tombstones: u64,
    /// True at the end of the last file.
    pub end: bool,
    /// True if the flag [`FileReadSettings::stop`] interrupted the read; an unfinished record is not counted.
    pub stopped: bool,
}

/// Read position of a source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SourcePosition {
    /// Lines or rows read, including rejected records and tombstones. One line may contain several records.
    pub records: u64,
    /// NDJSON and CSV: bytes of the text. Parquet: total length of the files read.
    pub bytes: u64,
}

/// Source of records from one file, a sequence of files, or standard input.
///
/// Coordinates are topic 0, partition 0 and the ordinal of the line or row across all files.
#[derive(Debug)]
pub struct FileSource {
    path: PathBuf,
    /// Current file under its display name, and the files that follow it.
    file: PathBuf,
    following: VecDeque<PathBuf>,
    reader: FormatReader,
    reading: FileReadSettings,
    records: u64,
    /// Byte position after the last record in the current file.
    byte: u64,
    /// Bytes of the files already finished.
    bytes_before: u64,
    /// Files opened since the last [`take_opened`](Self::take_opened), with the number of their first record.
    opened: Vec<(PathBuf, u64)>,
    /// Long rows of the files already finished.
    long: Option<LongRows>,
    /// For a file without a schema: columns known before its records are read.
    names: Vec<String>,
    at_most: usize,
}

impl FileSource {
    /// Opens `path`: a file, a directory, a pattern, or `-` for standard input (NDJSON and CSV only). The files of a
    /// directory or pattern are read in name order.
    ///
    /// Gzip and Zstandard are detected by the first bytes. Byte positions then refer to the decompressed text.
    ///
    /// # Errors
    /// When the input cannot be opened, and when its header or columns do not fit the fields.
    pub fn open(
        path: &Path,
        format: FileFormat,
        fields: &[FieldPath],
        limits: DecodeLimits,
        unknown: UnknownCellPolicy,
    ) -> Result<Self, SourceError> {
        let fields = fields.to_vec();
        Self::reading(path, FileReadSettings { format, fields, limits, unknown, stop: StopFlag::default() })
    }

    /// Opens `path` with the settings in `reading`; see [`open`](Self::open).
    pub fn reading(path: &Path, reading: FileReadSettings) -> Result<Self, SourceError> {
        Self::reading_files(path, files_or_self(path, reading.format)?, reading)
    }

    /// Opens `path` like [`reading`](Self::reading) when its `files` are already listed.
    pub fn reading_files(path: &Path, files: Vec<PathBuf>, reading: FileReadSettings) -> Result<Self, SourceError> {
        let reader = FormatReader::open(&files[0], &reading)?;
        let width = reading.fields.len();
        let mut source = Self::of(path, files, reader, reading, Vec::new(), width);
        if names_several_files(path) {
            source.opened.push((source.file.clone(), 0));
        }
        Ok(source)
    }

    fn of(
        path: &Path,
        files: Vec<PathBuf>,
        reader: FormatReader,
        reading: FileReadSettings,
        names: Vec<String>,
        at_most: usize,
    ) -> Self {
        let (byte, mut behind) = (reader.bytes(), VecDeque::from(files));
        let file = display_name(&behind.pop_front().unwrap_or_default());
        Self {
            path: path.into(),
            file,
            following: behind,
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

    /// Opens a file without a schema at its start.
    ///
    /// CSV has the columns of its header. Parquet has those of its schema, with struct members named `a.b`. NDJSON
    /// has the keys found so far, with nested keys named `a.b`. With several files, the first one defines the
    /// columns.
    ///
    /// A batch passed to [`read`](Self::read) has one attribute per column of [`names`](Self::names). With NDJSON,
    /// each new key adds a column.
    ///
    /// # Errors
    /// When the input cannot be opened, or its columns are ambiguous, too many, or lack a wanted one. NDJSON reports
    /// missing columns at the end; see [`missing_columns`](Self::missing_columns).
    pub fn open_schemaless(
        path: &Path,
        format: FileFormat,
        limits: DecodeLimits,
        columns: ColumnChoice<'_>,
    ) -> Result<Self, SourceError> {
        let files = files_or_self(path, format)?;
        let (reader, fields) = FormatReader::open_schemaless(&files[0], format, limits, columns)?;
        let (names, fields) = fields.into_iter().unzip();
        let reading =
            FileReadSettings { format, fields, limits, unknown: UnknownCellPolicy::Drop, stop: StopFlag::default() };
        Ok(Self::of(path, files, reader, reading, names, columns.at_most))
    }

    /// Appends the files of further paths to this source.
    ///
    /// # Errors
    /// When a path names no file, a directory cannot be read, or two names refer to one file.
    pub fn followed_by(mut self, more: &[PathBuf]) -> Result<Self, SourceError> {
        if !more.is_empty() {
            let own: Vec<PathBuf> = std::iter::once(&self.file).chain(&self.following).cloned().collect();
            self.following.extend(files_after(&own, more, self.reading.format)?);
        }
        Ok(self)
    }

    /// Reads generated NDJSON lines without a schema; `display_name` appears in messages.
    pub fn of_lines(
        named: &Path,
        lines: Box<dyn Read + Send>,
        limits: DecodeLimits,
        columns: ColumnChoice<'_>,
    ) -> Self {
        let reader = FormatReader::lines(TextStream::of(lines), limits, columns);
        let stop = StopFlag::default();
        let reading = FileReadSettings {
            format: FileFormat::Ndjson,
            fields: Vec::new(),
            limits,
            unknown: UnknownCellPolicy::Drop,
            stop,
        };
        Self::of(named, vec![named.into()], reader, reading, Vec::new(), columns.at_most)
    }

    /// Returns the display name of the current file.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Columns of a file opened by [`open_schemaless`](Self::open_schemaless); for NDJSON those found so far.
    pub fn names(&self) -> &[String] {
        match &self.reader {
            FormatReader::Ndjson(lines) => lines.names(),
            _ => &self.names,
        }
    }

    /// Returns the key path of column number `column` of [`names`](Self::names): the name alone if the file has no
    /// nested records.
    pub fn column_key_path(&self, column: usize) -> Vec<String> {
        let way = match &self.reader {
            FormatReader::Ndjson(lines) => lines.key_paths_by_column().get(column).cloned(),
            _ => self.reading.fields.get(column).map(|field| field.pointer.clone()),
        };
        way.unwrap_or_else(|| self.names().get(column).cloned().into_iter().collect())
    }

    /// Rejects `wanted` columns that have not appeared; call it at the end of a file.
    ///
    /// # Errors
    /// Names the first missing column.
    pub fn missing_columns(&self, wanted: &[String]) -> Result<(), SourceError> {
        reject_missing_columns(&display_name(&self.path), wanted, self.names())
    }

    /// Reads records into `batch` until `max_records` or `max_bytes` are consumed or the input ends.
    ///
    /// Reads at least one record if one exists and `max_records` is not 0. A line with several records is read
    /// completely and may exceed the limit.
    ///
    /// On a pipe, the call returns when no more data is available, so a full batch may take several calls. It waits
    /// briefly for the first record, and without limit only for the rest of a record that has begun.
    ///
    /// # Errors
    /// When reading fails; rows added before the failure remain in `batch`.
    pub fn read(
        &mut self,
        batch: &mut RawBatch,
        max_records: usize,
        max_bytes: u64,
        rejected: &mut Vec<(RecordPosition, RejectionReason)>,
    ) -> Result<ReadOutcome, SourceError> {
        let mut outcome = ReadOutcome::default();
        let (before, repeated) = (self.records, batch.repeated_bytes());
        while outcome.records < max_records as u64 {
            // Cells shared by the elements of a line are counted again for each further element.
            let bytes = outcome.bytes + batch.repeated_bytes() - repeated;
            if outcome.records > 0 && bytes >= max_bytes {
                break;
            }
            let patience = if self.records > before { Duration::ZERO } else { PIPE_POLL_INTERVAL };
            let comes = self.reader.stream().map_or(Ok(true), |stream| stream.is_ready_within(patience));
            if !comes.map_err(|source| self.unreadable(source))? {
                break;
            }
            let offset = i64::try_from(self.records).unwrap_or(i64::MAX);
            let coordinate = RecordPosition { topic: 0, partition: 0, offset, element: 0 };
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
                NextRecord::Blank => {
                    if self.reading.stop.check().is_err() {
                        outcome.stopped = true;
                        break;
                    }
                    continue;
                }
                NextRecord::Record => {
                    let refused = batch.take_refused();
                    records = (batch.rows() - rows + refused.len()) as u64;
                    rejected.extend(refused);
                }
                NextRecord::Rejected(rejection) => rejected.push((coordinate, rejection)),
                NextRecord::Tombstone => outcome.tombstones += 1,
                NextRecord::Foreign(what) => return Err(SourceError::Foreign { path: self.file.clone(), what }),
                NextRecord::TooManyColumns => {
                    return Err(SourceError::TooManyColumns { path: self.file.clone(), limit: self.at_most });
                }
                NextRecord::End if self.open_next_file()? => continue,
                NextRecord::End => {
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

    fn open_next_file(&mut self) -> Result<bool, SourceError> {
        let Some(file) = self.following.pop_front() else { return Ok(false) };
        self.long = LongRows::and(self.long, self.reader.take_long());
        self.bytes_before += self.reader.bytes();
        self.reader.switch_file(&file, &self.file, &self.reading)?;
        self.byte = self.reader.bytes();
        self.opened.push((file.clone(), self.records));
        self.file = file;
        Ok(true)
    }

    /// Returns the number of lines or rows and bytes read so far, over all files.
    pub fn position(&self) -> SourcePosition {
        SourcePosition { records: self.records, bytes: self.bytes_before + self.byte }
    }

    /// Reports that the input is a regular file, not a pipe.
    pub fn is_regular(&mut self) -> bool {
        self.reader.stream().is_none_or(|stream| stream.is_regular())
    }

    /// Returns the files opened since the last call, each with the number of its first record; only for several
    /// files.
    pub fn take_opened(&mut self) -> Vec<(PathBuf, u64)> {
        std::mem::take(&mut self.opened)
    }

    /// Returns the CSV rows since the last call that span enough lines to suggest an unclosed quote.
    pub fn take_long_rows(&mut self) -> Option<LongRows> {
        LongRows::and(self.long.take(), self.reader.take_long())
    }

    /// Attributes without a column in this file, ascending; they are absent in every record. Empty for NDJSON, where
    /// only the records show it.
    pub fn absent_attributes(&self) -> Vec<usize> {
        self.reader.absent()
    }

    /// Columns that the schema does not contain. Empty for NDJSON because its keys may be data, and for CSV unless
    /// every attribute has a column: otherwise the first row may not be a header.
    pub fn unknown_columns(&self) -> &[String] {
        match &self.reader {
            FormatReader::Csv(rows) if !rows.codec.absent().is_empty() => &[],
            reader => reader.unknown(),
        }
    }
}

fn display_name(path: &Path) -> PathBuf {
    if path == Path::new("-") { PathBuf::from("standard input") } else { path.to_owned() }
}

#[cfg(test)]
#[path = "source_tests.rs"]
mod tests;
