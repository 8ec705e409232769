//! One file, in whatever format.

use std::io;
use std::path::Path;
use std::time::Duration;

use super::csv_rows::{CsvRows, LongRows};
use super::ndjson_lines::NdjsonLines;
use super::parquet_rows::ParquetRows;
use super::position::Next;
use super::stream::Stream;
use super::undescribed::ColumnChoice;
use super::waiting::StopFlag;
use super::{Format, SourceError};
use crate::codec::{Field, Limits, Unknown};
use crate::records::raw::{Coordinate, RawBatch};

/// How the files of a source are read.
#[derive(Clone, Debug)]
pub struct Reading {
    /// How they are written down.
    pub format: Format,
    /// What is read of a record.
    pub fields: Vec<Field>,
    /// What a record may cost.
    pub limits: Limits,
    /// What becomes of everything else in it.
    pub unknown: Unknown,
    /// When what takes long is given up.
    pub stop: StopFlag,
}

/// A file that is being read.
#[derive(Debug)]
pub(super) enum Reader {
    Ndjson(Box<NdjsonLines>),
    Csv(Box<CsvRows>),
    Parquet(Box<ParquetRows>),
}

/// What a file announces of its columns. Two files of one source announce the same.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Columns {
    absent: Vec<usize>,
    unknown: Vec<String>,
    /// Of Parquet, the types of the columns that are read.
    types: Vec<(String, String)>,
}

impl Columns {
    /// What the first difference of two Parquet files is: names of columns are of their schemas, and no values.
    fn unlike(&self, first: &Self) -> String {
        let name = |(name, _): &(String, String)| name.clone();
        let of = |columns: &Self, wanted: &str| {
            columns.types.iter().find(|(name, _)| name == wanted).map(|(_, t)| t.clone())
        };
        let mut names: Vec<String> = self.types.iter().chain(&first.types).map(name).collect();
        names.extend(self.unknown.iter().chain(&first.unknown).cloned());
        names.sort_unstable();
        let has = |columns: &Self, name: &String| of(columns, name).is_some() || columns.unknown.contains(name);
        for name in names {
            let what = match (of(self, &name), of(first, &name)) {
                (Some(own), Some(theirs)) if own != theirs => format!("\"{name}\" is {own}, not {theirs}"),
                _ if !has(self, &name) => format!("without \"{name}\""),
                _ if !has(first, &name) => format!("with \"{name}\""),
                _ => continue,
            };
            return format!("columns or types ({what})");
        }
        "columns or types".to_owned()
    }
}

impl Reader {
    /// The file at its beginning.
    pub fn open(path: &Path, reading: &Reading) -> Result<Self, SourceError> {
        let Reading { format, fields, limits, unknown, stop } = reading;
        let (limits, unknown) = (*limits, *unknown);
        if *format != Format::Ndjson && fields.iter().any(|field| field.elements.is_some()) {
            return Err(SourceError::Exploded { path: path.into() });
        }
        Ok(match *format {
            Format::Ndjson => Self::Ndjson(Box::new(NdjsonLines::open(path, fields, limits, unknown, stop)?)),
            Format::Csv { separator } => {
                Self::Csv(Box::new(CsvRows::open(path, separator, fields, limits, unknown, stop)?))
            }
            Format::Parquet => Self::Parquet(Box::new(ParquetRows::open(path, fields, limits, unknown)?)),
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
        if next.columns() != self.columns() {
            let columns =
                if let Self::Parquet(_) = next { next.columns().unlike(&self.columns()) } else { "columns".into() };
            return Err(SourceError::OtherColumns { path: path.into(), first: first.into(), columns });
        }
        *self = next;
        Ok(())
    }

    fn columns(&self) -> Columns {
        let types = if let Self::Parquet(rows) = self { rows.types().to_vec() } else { Vec::new() };
        let mut unknown = self.unknown().to_vec();
        unknown.sort_unstable();
        Columns { absent: self.absent(), unknown, types }
    }

    /// Columns that the schema does not know; none for NDJSON.
    pub fn unknown(&self) -> &[String] {
        match self {
            Self::Ndjson(_) => &[],
            Self::Csv(rows) => rows.unknown(),
            Self::Parquet(rows) => rows.unknown(),
        }
    }

    /// Attributes that the file has no column for; none for NDJSON.
    pub fn absent(&self) -> Vec<usize> {
        match self {
            Self::Ndjson(_) => Vec::new(),
            Self::Csv(rows) => rows.absent().to_vec(),
            Self::Parquet(rows) => rows.absent(),
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
        match self {
            Self::Csv(rows) => rows.take_long(),
            Self::Ndjson(_) | Self::Parquet(_) => None,
        }
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

    pub fn comes_within(&mut self, patience: Duration) -> io::Result<bool> {
        match self {
            Self::Ndjson(lines) => lines.stream.comes_within(patience),
            Self::Csv(rows) => rows.stream.comes_within(patience),
            Self::Parquet(_) => Ok(true),
        }
    }

    /// Whether what is read can be read again.
    pub fn is_regular(&self) -> bool {
        match self {
            Self::Ndjson(lines) => lines.stream.regular,
            Self::Csv(rows) => rows.stream.regular,
            Self::Parquet(_) => true,
        }
    }
}
