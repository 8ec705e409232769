//! One file, in whatever format.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::csv_rows::{CsvRows, LongRows};
use super::ndjson_lines::NdjsonLines;
use super::parquet_rows::ParquetRows;
use super::stream::Stream;
use super::undescribed::ColumnChoice;
use super::{Format, Next, Reading, SourceError, StopFlag};
use throng_core::values::raw::{Coordinate, RawBatch};
use throng_formats::{Field, Limits};

/// A file that is being read.
#[derive(Debug)]
pub(super) enum Reader {
    Ndjson(Box<NdjsonLines>),
    Csv(Box<CsvRows>),
    Parquet(Box<ParquetRows>),
}

/// What a file announces of its columns. Two files of one source announce the same.
#[derive(Debug, PartialEq, Eq)]
struct Columns {
    absent: Vec<usize>,
    /// Those that the schema does not know, and of Parquet those that are read, with their types.
    types: BTreeMap<String, Option<String>>,
}

impl Columns {
    /// The first difference of two Parquet files: names of columns are of their schemas, and no values.
    fn unlike(&self, first: &Self) -> String {
        let names: BTreeSet<&String> = self.types.keys().chain(first.types.keys()).collect();
        let difference = names.into_iter().find_map(|name| match (self.types.get(name), first.types.get(name)) {
            (Some(Some(own)), Some(Some(theirs))) if own != theirs => {
                Some(format!(" (\"{name}\" is {own}, not {theirs})"))
            }
            (None, _) => Some(format!(" (without \"{name}\")")),
            (_, None) => Some(format!(" (with \"{name}\")")),
            _ => None,
        });
        format!("columns or types{}", difference.unwrap_or_default())
    }
}

impl Reader {
    /// The file at its beginning.
    pub fn open(path: &Path, reading: &Reading) -> Result<Self, SourceError> {
        if reading.format != Format::Ndjson && reading.fields.iter().any(|field| field.elements.is_some()) {
            return Err(SourceError::Exploded { path: path.into() });
        }
        Ok(match reading.format {
            Format::Ndjson => Self::Ndjson(Box::new(NdjsonLines::open(path, reading)?)),
            Format::Csv { separator } => Self::Csv(Box::new(CsvRows::open(path, separator, reading)?)),
            Format::Parquet => Self::Parquet(Box::new(ParquetRows::open(path, reading)?)),
        })
    }

    /// A file that no schema describes, at its start, and its columns as far as it announces them.
    pub fn open_undescribed(
        path: &Path,
        format: Format,
        limits: Limits,
        columns: ColumnChoice<'_>,
    ) -> Result<(Self, Vec<(String, Field)>), SourceError> {
        Ok(match format {
            Format::Ndjson => (Self::lines(Stream::open(path, &StopFlag::default())?, limits, columns), Vec::new()),
            Format::Csv { separator } => {
                let (rows, names) = CsvRows::open_undescribed(path, separator, limits, columns)?;
                let flat = |name: String| (name.clone(), Field::flat(&name));
                (Self::Csv(Box::new(rows)), names.into_iter().map(flat).collect())
            }
            Format::Parquet => {
                let (rows, fields) = ParquetRows::open_undescribed(path, limits, columns)?;
                (Self::Parquet(Box::new(rows)), fields)
            }
        })
    }

    /// NDJSON that no schema describes.
    pub fn lines(stream: Stream, limits: Limits, columns: ColumnChoice<'_>) -> Self {
        Self::Ndjson(Box::new(NdjsonLines::undescribed(stream, limits, columns)))
    }

    /// Goes on with another file, of the same columns.
    ///
    /// # Errors
    /// As [`open`](Self::open), and when it announces other columns.
    pub fn go_on(&mut self, path: &Path, first: &Path, reading: &Reading) -> Result<(), SourceError> {
        if let Self::Ndjson(lines) = self {
            // The keys that have come stay known where nobody described them.
            return lines.go_on(path);
        }
        let next = Self::open(path, reading)?;
        let (own, theirs) = (next.columns(), self.columns());
        if own != theirs {
            let columns = if let Self::Parquet(_) = next { own.unlike(&theirs) } else { "columns".into() };
            return Err(SourceError::OtherColumns { path: path.into(), first: first.into(), columns });
        }
        *self = next;
        Ok(())
    }

    fn columns(&self) -> Columns {
        let unknown = self.unknown().iter().map(|name| (name.clone(), None));
        let types = if let Self::Parquet(rows) = self { rows.types.as_slice() } else { &[] };
        let read = types.iter().map(|(name, kind)| (name.clone(), Some(kind.clone())));
        Columns { absent: self.absent(), types: unknown.chain(read).collect() }
    }

    /// Columns that the schema does not know; none for NDJSON.
    pub fn unknown(&self) -> &[String] {
        match self {
            Self::Ndjson(_) => &[],
            Self::Csv(rows) => rows.codec.unknown(),
            Self::Parquet(rows) => rows.codec.unknown(),
        }
    }

    /// Attributes that the file has no column for; none for NDJSON.
    pub fn absent(&self) -> Vec<usize> {
        match self {
            Self::Ndjson(_) => Vec::new(),
            Self::Csv(rows) => rows.codec.absent().to_vec(),
            Self::Parquet(rows) => rows.codec.absent(),
        }
    }

    /// The text of the file; none of Parquet.
    pub fn stream(&mut self) -> Option<&mut Stream> {
        match self {
            Self::Ndjson(lines) => Some(&mut lines.stream),
            Self::Csv(rows) => Some(&mut rows.stream),
            Self::Parquet(_) => None,
        }
    }

    /// Bytes of the text before the next record; of Parquet the length of the file.
    pub fn bytes(&self) -> u64 {
        match self {
            Self::Ndjson(lines) => lines.stream.byte,
            Self::Csv(rows) => rows.stream.byte,
            Self::Parquet(rows) => rows.length,
        }
    }

    pub fn take_long(&mut self) -> Option<LongRows> {
        if let Self::Csv(rows) = self { rows.long.take() } else { None }
    }

    /// The next record and the bytes that it takes.
    pub fn next(
        &mut self,
        path: &Path,
        coordinate: Coordinate,
        batch: &mut RawBatch,
    ) -> Result<(Next, u64), SourceError> {
        let before = self.bytes();
        let next = match self {
            Self::Ndjson(lines) => lines.next(coordinate, batch),
            Self::Csv(rows) => rows.next(coordinate, batch),
            Self::Parquet(rows) => return rows.next(path, coordinate, batch),
        };
        let byte = self.bytes();
        let next = next.map_err(|source| SourceError::Read { path: path.into(), byte, source })?;
        Ok((next, byte - before))
    }
}
