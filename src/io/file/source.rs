//! Source of records from files or standard input.

use std::collections::VecDeque;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
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
use throng_core::values::row_filter::RowFilter;
use throng_core::values::schema::Attribute;
use throng_formats::{DecodeLimits, FieldPath, UnknownCellPolicy};

/// Result of one call of [`FileSource::read`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadOutcome {
    /// Rows, rejected, unselected records and tombstones.
    pub records: u64,
    /// Bytes of the text; for Parquet of the cells.
    pub bytes: u64,
    /// Dropped deletion markers (NDJSON `null`).
    pub tombstones: u64,
    /// Dropped records that the schema does not select.
    pub unselected: u64,
    /// Bytes of the rows in the batch, without other lines, elements and records.
    pub kept_bytes: u64,
    /// True at the end of the last file.
    pub end: bool,
    /// True if [`FileReadSettings::stop`] interrupted the read.
    pub stopped: bool,
}

/// Read position of a source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SourcePosition {
    /// Lines or rows read, including rejected ones.
    pub records: u64,
    /// Bytes of the text; for Parquet of the files.
    pub bytes: u64,
}

/// Source of records; coordinates are topic 0, partition 0 and the ordinal.
#[derive(Debug)]
pub struct FileSource {
    path: PathBuf,
    file: PathBuf,
    following: VecDeque<PathBuf>,
    reader: FormatReader,
    reading: FileReadSettings,
    records: u64,
    byte: u64,
    bytes_before: u64,
    opened: Vec<(PathBuf, u64)>,
    long: Option<LongRows>,
    names: Vec<String>,
    at_most: usize,
    filter: RowFilter,
}

impl FileSource {
    /// Drops the records that `attributes` do not select (`only`).
    ///
    /// # Errors
    /// For an attribute that differs by topic: a file has none.
    pub fn selecting(mut self, attributes: &[Arc<Attribute>]) -> Result<Self, SourceError> {
        if let Some(attribute) = attributes.iter().find(|attribute| attribute.selection.differs_by_topic()) {
            return Err(SourceError::DiffersByTopic { path: self.path, attribute: attribute.name.clone() });
        }
        self.filter = RowFilter::of(attributes.iter().map(AsRef::as_ref).enumerate());
        Ok(self)
    }

    /// Opens a file, a directory, a pattern, or `-` for standard input. Byte positions refer to the decompressed text.
    ///
    /// # Errors
    /// If the input cannot be opened, or its columns do not fit.
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

    /// Opens `path` with settings; see [`open`](Self::open).
    pub fn reading(path: &Path, reading: FileReadSettings) -> Result<Self, SourceError> {
        Self::reading_files(path, files_or_self(path, reading.format)?, reading)
    }

    /// Opens the listed `files` of `path`; see [`reading`](Self::reading).
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
            filter: RowFilter::default(),
        }
    }

    /// Opens a file without a schema, with one attribute per column of [`names`](Self::names). Nested columns are named
    /// `a.b`.
    ///
    /// # Errors
    /// If the input cannot be opened, or its columns are ambiguous, too many or missing.
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

    /// Appends the files of further paths.
    ///
    /// # Errors
    /// If a path has no readable file, or a file twice.
    pub fn followed_by(mut self, more: &[PathBuf]) -> Result<Self, SourceError> {
        if !more.is_empty() {
            let own: Vec<PathBuf> = std::iter::once(&self.file).chain(&self.following).cloned().collect();
            self.following.extend(files_after(&own, more, self.reading.format)?);
        }
        Ok(self)
    }

    /// Reads generated NDJSON lines; `named` appears in messages.
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

    /// Returns the columns of a file without a schema, found so far.
    pub fn names(&self) -> &[String] {
        match &self.reader {
            FormatReader::Ndjson(lines) => lines.names(),
            _ => &self.names,
        }
    }

    /// Returns the key path of a column of [`names`](Self::names).
    pub fn column_key_path(&self, column: usize) -> Vec<String> {
        let way = match &self.reader {
            FormatReader::Ndjson(lines) => lines.key_paths_by_column().get(column).cloned(),
            _ => self.reading.fields.get(column).map(|field| field.pointer.clone()),
        };
        way.unwrap_or_else(|| self.names().get(column).cloned().into_iter().collect())
    }

    /// Rejects `wanted` columns missing at the end of a file.
    ///
    /// # Errors
    /// For the first one.
    pub fn missing_columns(&self, wanted: &[String]) -> Result<(), SourceError> {
        reject_missing_columns(&display_name(&self.path), wanted, self.names())
    }

    /// Reads at least one record into `batch`, up to the limits, the end, or a pause of a pipe.
    ///
    /// # Errors
    /// If reading fails; earlier rows remain in `batch`.
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
            // Shared cells count for each element of a line.
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
            let mark = batch.mark();
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
                    records = (batch.rows() - mark.rows() + refused.len()) as u64;
                    rejected.extend(refused);
                    let removed = self.filter.remove_rows(batch, mark, bytes);
                    outcome.unselected += removed.rows;
                    outcome.kept_bytes += bytes - removed.bytes;
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

    /// Returns the position over all files.
    pub fn position(&self) -> SourcePosition {
        SourcePosition { records: self.records, bytes: self.bytes_before + self.byte }
    }

    /// Returns true for a regular file.
    pub fn is_regular(&mut self) -> bool {
        self.reader.stream().is_none_or(|stream| stream.is_regular())
    }

    /// Returns files opened since the last call, with their first record number.
    pub fn take_opened(&mut self) -> Vec<(PathBuf, u64)> {
        std::mem::take(&mut self.opened)
    }

    /// Returns rows since the last call that suggest an unclosed quote.
    pub fn take_long_rows(&mut self) -> Option<LongRows> {
        LongRows::and(self.long.take(), self.reader.take_long())
    }

    /// Returns true if the names of the files are those of people.
    pub fn names_people(&self) -> bool {
        self.reading.format == FileFormat::AppleHealth
    }

    /// Returns the attributes without a column, ascending; empty for NDJSON.
    pub fn absent_attributes(&self) -> Vec<usize> {
        self.reader.absent()
    }

    /// Returns columns outside the schema; empty for NDJSON, and for CSV without all attributes, whose first row may be
    /// data.
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
