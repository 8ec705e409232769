//! Reader of one file in any format.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::apple_health::AppleHealthRecords;
use super::csv_rows::CsvRows;
use super::ndjson_lines::NdjsonLines;
use super::parquet_rows::ParquetRows;
use super::schemaless_files::ColumnChoice;
use super::text_stream::TextStream;
use super::{FileFormat, FileReadSettings, NextRecord, SourceError, StopFlag};
use throng_core::stream::input_batch::LongRows;
use throng_core::values::raw_batch::{RawBatch, RecordPosition};
use throng_formats::{DecodeLimits, FieldPath};

#[derive(Debug)]
pub(super) enum FormatReader {
    Ndjson(Box<NdjsonLines>),
    Csv(Box<CsvRows>),
    Parquet(Box<ParquetRows>),
    AppleHealth(Box<AppleHealthRecords>),
}

#[derive(Debug, PartialEq, Eq)]
struct DeclaredColumns {
    absent: Vec<usize>,
    /// Unknown columns (no type), and for Parquet those read.
    types: BTreeMap<String, Option<String>>,
}

impl DeclaredColumns {
    /// Names only columns, which are not values.
    fn describe_difference(&self, first: &Self) -> String {
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

impl FormatReader {
    pub fn open(path: &Path, reading: &FileReadSettings) -> Result<Self, SourceError> {
        if reading.format != FileFormat::Ndjson && reading.fields.iter().any(|field| field.elements.is_some()) {
            return Err(SourceError::ExplodeUnsupported { path: path.into() });
        }
        Ok(match reading.format {
            FileFormat::Ndjson => Self::Ndjson(Box::new(NdjsonLines::open(path, reading)?)),
            FileFormat::Csv { separator } => Self::Csv(Box::new(CsvRows::open(path, separator, reading)?)),
            FileFormat::Parquet => Self::Parquet(Box::new(ParquetRows::open(path, reading)?)),
            FileFormat::AppleHealth => Self::AppleHealth(Box::new(AppleHealthRecords::open(path, reading)?)),
        })
    }

    pub fn open_schemaless(
        path: &Path,
        format: FileFormat,
        limits: DecodeLimits,
        columns: ColumnChoice<'_>,
    ) -> Result<(Self, Vec<(String, FieldPath)>), SourceError> {
        let flat = |name: String| (name.clone(), FieldPath::top_level(&name));
        Ok(match format {
            FileFormat::Ndjson => {
                (Self::lines(TextStream::open(path, &StopFlag::default())?, limits, columns), Vec::new())
            }
            FileFormat::Csv { separator } => {
                let (rows, names) = CsvRows::open_schemaless(path, separator, limits, columns)?;
                (Self::Csv(Box::new(rows)), names.into_iter().map(flat).collect())
            }
            FileFormat::Parquet => {
                let (rows, fields) = ParquetRows::open_schemaless(path, limits, columns)?;
                (Self::Parquet(Box::new(rows)), fields)
            }
            FileFormat::AppleHealth => {
                let (records, names) = AppleHealthRecords::open_schemaless(path, limits, columns)?;
                (Self::AppleHealth(Box::new(records)), names.into_iter().map(flat).collect())
            }
        })
    }

    pub fn lines(stream: TextStream, limits: DecodeLimits, columns: ColumnChoice<'_>) -> Self {
        Self::Ndjson(Box::new(NdjsonLines::schemaless(stream, limits, columns)))
    }

    /// Continues with another file of the same columns.
    pub fn switch_file(&mut self, path: &Path, first: &Path, reading: &FileReadSettings) -> Result<(), SourceError> {
        if let Self::Ndjson(lines) = self {
            // Keys of earlier files stay known.
            return lines.continue_with_file(path);
        }
        let next = Self::open(path, reading)?;
        let (own, theirs) = (next.columns(), self.columns());
        if own != theirs {
            let columns = if let Self::Parquet(_) = next { own.describe_difference(&theirs) } else { "columns".into() };
            return Err(SourceError::OtherColumns { path: path.into(), first: first.into(), columns });
        }
        *self = next;
        Ok(())
    }

    fn columns(&self) -> DeclaredColumns {
        let unknown = self.unknown().iter().map(|name| (name.clone(), None));
        let types = if let Self::Parquet(rows) = self { rows.types.as_slice() } else { &[] };
        let read = types.iter().map(|(name, kind)| (name.clone(), Some(kind.clone())));
        DeclaredColumns { absent: self.absent(), types: unknown.chain(read).collect() }
    }

    pub fn unknown(&self) -> &[String] {
        match self {
            Self::Ndjson(_) | Self::AppleHealth(_) => &[],
            Self::Csv(rows) => rows.codec.unknown(),
            Self::Parquet(rows) => rows.codec.unknown(),
        }
    }

    pub fn absent(&self) -> Vec<usize> {
        match self {
            Self::Ndjson(_) => Vec::new(),
            Self::Csv(rows) => rows.codec.absent().to_vec(),
            Self::Parquet(rows) => rows.codec.absent(),
            Self::AppleHealth(records) => records.absent().to_vec(),
        }
    }

    pub fn stream(&mut self) -> Option<&mut TextStream> {
        match self {
            Self::Ndjson(lines) => Some(&mut lines.stream),
            Self::Csv(rows) => Some(&mut rows.stream),
            Self::Parquet(_) => None,
            Self::AppleHealth(records) => Some(records.stream()),
        }
    }

    pub fn bytes(&self) -> u64 {
        match self {
            Self::Ndjson(lines) => lines.stream.byte,
            Self::Csv(rows) => rows.stream.byte,
            Self::Parquet(rows) => rows.length,
            Self::AppleHealth(records) => records.bytes(),
        }
    }

    pub fn take_long(&mut self) -> Option<LongRows> {
        if let Self::Csv(rows) = self { rows.long.take() } else { None }
    }

    /// Returns the next record and its bytes.
    pub fn next(
        &mut self,
        path: &Path,
        coordinate: RecordPosition,
        batch: &mut RawBatch,
    ) -> Result<(NextRecord, u64), SourceError> {
        let before = self.bytes();
        let next = match self {
            Self::Ndjson(lines) => lines.next(coordinate, batch),
            Self::Csv(rows) => rows.next(coordinate, batch),
            Self::Parquet(rows) => return rows.next(path, coordinate, batch),
            Self::AppleHealth(records) => records.next(coordinate, batch),
        };
        let byte = self.bytes();
        let next = next.map_err(|source| SourceError::Read { path: path.into(), byte, source })?;
        Ok((next, byte - before))
    }
}
