//! The file source: records of a file, a batch at a time, resumed exactly.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::csv_rows::{CsvRows, LongRows};
use super::ndjson_lines::NdjsonLines;
use super::parquet_rows::ParquetRows;
use super::position::{Next, SourcePosition};
use super::undescribed::{ColumnChoice, missing};
use super::{Format, SourceError};
use crate::codec::{Field, Limits, Unknown};
use crate::records::raw::{Coordinate, RawBatch};
use crate::telemetry::RejectionReason;

/// How long a silent pipe is waited for before the reader looks up: for a timer, for a signal.
const MOMENT: Duration = Duration::from_millis(50);

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
}

#[derive(Debug)]
enum Reader {
    Ndjson(NdjsonLines),
    Csv(Box<CsvRows>),
    Parquet(Box<ParquetRows>),
}

/// A file, or standard input, as a source of records with the coordinates (topic 0, partition 0, ordinal).
#[derive(Debug)]
pub struct FileSource {
    path: PathBuf,
    reader: Reader,
    records: u64,
    /// Where nobody described the file: its columns, as far as they are known without reading it.
    names: Vec<String>,
    /// By column of a Parquet file that nobody described, the way down to it.
    ways: Vec<Vec<String>>,
    at_most: usize,
}

impl FileSource {
    /// Opens `path` (`-`: standard input, NDJSON and CSV) after `start`.
    ///
    /// A regular file is sought to `start.bytes`; an input that cannot seek must be given from its beginning again,
    /// and its first `start.records` records are read and passed over.
    ///
    /// # Errors
    /// When the input cannot be opened, when its header or columns do not fit the fields, and when it is not the one
    /// that was read up to `start`: shorter, replaced, or with no record ending there.
    pub fn open(
        path: &Path,
        format: Format,
        fields: &[Field],
        limits: Limits,
        unknown: Unknown,
        start: SourcePosition,
    ) -> Result<Self, SourceError> {
        let reader = match format {
            Format::Ndjson => Reader::Ndjson(NdjsonLines::open(path, fields, limits, unknown, start)?),
            Format::Csv { separator } => {
                Reader::Csv(Box::new(CsvRows::open(path, separator, fields, limits, unknown, start)?))
            }
            Format::Parquet => Reader::Parquet(Box::new(ParquetRows::open(path, fields, limits, unknown, start)?)),
        };
        let mut source = Self {
            path: named(path),
            reader,
            records: start.records,
            names: vec![],
            ways: vec![],
            at_most: fields.len(),
        };
        if !source.sought(start) {
            source.records = 0;
            source.pass_over(start.records, fields.len())?;
        }
        Ok(source)
    }

    /// Opens a file that no schema describes, at its start: CSV has the columns of its header, Parquet those of its own
    /// schema (members of structs by `a.b`), NDJSON the keys that come (those of nested objects by `a.b`).
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
        let (reader, names, ways) = match format {
            Format::Ndjson => (Reader::Ndjson(NdjsonLines::open_undescribed(path, limits, columns)?), vec![], vec![]),
            Format::Csv { separator } => {
                let (rows, names) = CsvRows::open_undescribed(path, separator, limits, columns)?;
                (Reader::Csv(Box::new(rows)), names, Vec::new())
            }
            Format::Parquet => {
                let (rows, names, ways) = ParquetRows::open_undescribed(path, limits, columns)?;
                (Reader::Parquet(Box::new(rows)), names, ways)
            }
        };
        Ok(Self { path: named(path), reader, records: 0, names, ways, at_most: columns.at_most })
    }

    /// The columns of a file opened by [`open_undescribed`](Self::open_undescribed), those known so far for NDJSON.
    #[must_use]
    pub fn names(&self) -> &[String] {
        match &self.reader {
            Reader::Ndjson(lines) => lines.names(),
            _ => &self.names,
        }
    }

    /// The keys from the top of a record down to column number `column` of [`names`](Self::names); its name alone in a file
    /// without nested records.
    #[must_use]
    pub fn way(&self, column: usize) -> Vec<String> {
        let ways = match &self.reader {
            Reader::Ndjson(lines) => lines.ways(),
            _ => &self.ways,
        };
        ways.get(column).cloned().unwrap_or_else(|| self.names().get(column).cloned().into_iter().collect())
    }

    /// Refuses `wanted` columns that have not been seen; asked at the end of a file.
    ///
    /// # Errors
    /// Names the first of them.
    pub fn missing_columns(&self, wanted: &[String]) -> Result<(), SourceError> {
        missing(&self.path, wanted, self.names())
    }

    /// Reads records into `batch` until `max_records` or `max_bytes` are consumed or the file ends; at least one
    /// record, if there is one and `max_records` is not 0.
    ///
    /// On an input that may have to be waited for (a pipe), it returns as soon as nothing more is at hand, so a
    /// batch is full only when the sum of several calls says so. The first record of a call is waited for a moment;
    /// only a record that has begun is waited for until it ends.
    ///
    /// # Errors
    /// When reading fails; rows added before remain in `batch`, and [`position`](Self::position) counts them.
    pub fn read(
        &mut self,
        batch: &mut RawBatch,
        max_records: usize,
        max_bytes: u64,
        rejected: &mut Vec<(Coordinate, RejectionReason)>,
    ) -> Result<ReadOutcome, SourceError> {
        let mut outcome = ReadOutcome::default();
        while outcome.records < max_records as u64 && (outcome.records == 0 || outcome.bytes < max_bytes) {
            let patience = if outcome.records > 0 { Duration::ZERO } else { MOMENT };
            let byte = self.position().bytes;
            let comes = self.comes_within(patience);
            if !comes.map_err(|source| SourceError::Read { path: self.path.clone(), byte, source })? {
                break;
            }
            let offset = i64::try_from(self.records).unwrap_or(i64::MAX);
            let coordinate = Coordinate { topic: 0, partition: 0, offset };
            let (next, bytes) = self.next(coordinate, batch)?;
            outcome.bytes += bytes;
            match next {
                Next::Record => {}
                Next::Rejected(rejection) => rejected.push((coordinate, rejection)),
                Next::Tombstone => outcome.tombstones += 1,
                Next::Foreign(what) => return Err(SourceError::Foreign { path: self.path.clone(), what }),
                Next::TooManyColumns => {
                    return Err(SourceError::TooManyColumns { path: self.path.clone(), limit: self.at_most });
                }
                Next::End => {
                    outcome.end = true;
                    break;
                }
            }
            outcome.records += 1;
            self.records += 1;
        }
        Ok(outcome)
    }

    /// The place after the last record read.
    #[must_use]
    pub fn position(&self) -> SourcePosition {
        let bytes = match &self.reader {
            Reader::Ndjson(lines) => lines.stream.byte,
            Reader::Csv(rows) => rows.stream.byte,
            Reader::Parquet(rows) => rows.length,
        };
        SourcePosition { records: self.records, bytes }
    }

    /// CSV rows since the last call that span so many lines that a quote is likely to be open by mistake.
    #[must_use]
    pub fn take_long_rows(&mut self) -> Option<LongRows> {
        match &mut self.reader {
            Reader::Csv(rows) => rows.take_long(),
            Reader::Ndjson(_) | Reader::Parquet(_) => None,
        }
    }

    /// Attributes that this file has no column for, ascending: absent in every record. Empty for NDJSON, where only
    /// the records can tell.
    #[must_use]
    pub fn absent_attributes(&self) -> Vec<usize> {
        match &self.reader {
            Reader::Ndjson(_) => Vec::new(),
            Reader::Csv(rows) => rows.absent().to_vec(),
            Reader::Parquet(rows) => rows.absent(),
        }
    }

    /// Columns of the file that the schema does not know, by name; none for NDJSON, whose keys may be data. Only where
    /// every attribute has a column is a header sure to be one.
    #[must_use]
    pub fn unknown_columns(&self) -> &[String] {
        match &self.reader {
            Reader::Csv(rows) if rows.absent().is_empty() => rows.unknown(),
            Reader::Parquet(rows) => rows.unknown(),
            _ => &[],
        }
    }

    fn next(&mut self, coordinate: Coordinate, batch: &mut RawBatch) -> Result<(Next, u64), SourceError> {
        let before = self.position().bytes;
        let next = match &mut self.reader {
            Reader::Ndjson(lines) => lines.next(coordinate, batch),
            Reader::Csv(rows) => rows.next(coordinate, batch),
            Reader::Parquet(rows) => return rows.next(&self.path, coordinate, batch),
        };
        let byte = self.position().bytes;
        let next = next.map_err(|source| SourceError::Read { path: self.path.clone(), byte, source })?;
        Ok((next, byte - before))
    }

    fn comes_within(&self, patience: Duration) -> io::Result<bool> {
        match &self.reader {
            Reader::Ndjson(lines) => lines.stream.comes_within(patience),
            Reader::Csv(rows) => rows.stream.comes_within(patience),
            Reader::Parquet(_) => Ok(true),
        }
    }

    /// Whether opening has already gone to `start`.
    fn sought(&self, start: SourcePosition) -> bool {
        match &self.reader {
            Reader::Ndjson(lines) => start.records == 0 || lines.stream.regular && start.bytes > 0,
            Reader::Csv(rows) => start.records == 0 || rows.stream.regular && start.bytes > 0,
            Reader::Parquet(_) => true,
        }
    }

    fn pass_over(&mut self, records: u64, width: usize) -> Result<(), SourceError> {
        while self.records < records {
            let mut batch = RawBatch::new(width);
            let some = usize::try_from((records - self.records).min(1000)).unwrap_or(1000);
            let outcome = self.read(&mut batch, some, u64::MAX, &mut Vec::new())?;
            if outcome.end {
                let (path, found) = (self.path.clone(), self.records);
                return Err(SourceError::TooFewRecords { path, found, position: records });
            }
        }
        Ok(())
    }
}

/// The path as messages name it.
fn named(path: &Path) -> PathBuf {
    if path == Path::new("-") { PathBuf::from("standard input") } else { path.to_owned() }
}

#[cfg(test)]
#[path = "source_tests.rs"]
mod tests;
