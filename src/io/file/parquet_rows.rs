//! Parquet rows, decoded in small batches.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::datatypes::{DataType, Field as ArrowField, FieldRef, Fields, Schema, TimeUnit};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};
use parquet::basic::{Compression, Type as PhysicalType};
use parquet::errors::ParquetError;

use super::file_listing::files_or_self;
use super::schemaless_files::ColumnChoice;
use super::text_stream::open_file;
use super::{FileFormat, FileReadSettings, NextRecord, SourceError};
use throng_core::values::raw_batch::{RawBatch, RecordPosition};
use throng_formats::{ArrowCodec, ArrowRows, DecodeLimits, FieldPath, UnknownCellPolicy};

const PARQUET_BATCH_ROWS: usize = 1024;

/// Decodes only columns of the schema.
pub(super) struct ParquetRows {
    reader: ParquetRecordBatchReader,
    pub codec: ArrowCodec,
    rows: Option<ArrowRows>,
    next_row: usize,
    rows_at_hand: usize,
    /// Rows not yet returned.
    left: u64,
    groups: Vec<u64>,
    /// Name and type of every column that is read.
    pub types: Vec<(String, String)>,
    pub length: u64,
}

impl std::fmt::Debug for ParquetRows {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ParquetRows").field("length", &self.length).finish_non_exhaustive()
    }
}

impl ParquetRows {
    pub fn open(path: &Path, reading: &FileReadSettings) -> Result<Self, SourceError> {
        Self::of(path, open_parquet(path)?, &reading.fields, reading.limits, reading.unknown)
    }

    fn of(
        path: &Path,
        (file, length): (File, u64),
        fields: &[FieldPath],
        limits: DecodeLimits,
        unknown: UnknownCellPolicy,
    ) -> Result<Self, SourceError> {
        let damaged = |record, error: &ParquetError| parquet_error(path, record, error);
        let builder = builder_of(file).map_err(|error| damaged(0, &error))?;
        let found = u64::try_from(builder.metadata().file_metadata().num_rows()).unwrap_or(0);
        let rows_of = |group: &parquet::file::metadata::RowGroupMetaData| u64::try_from(group.num_rows()).unwrap_or(0);
        let groups = builder.metadata().row_groups().iter().map(rows_of).collect();
        let codec = ArrowCodec::new(builder.schema(), fields, limits, unknown)
            .map_err(|source| SourceError::Columns { path: path.into(), source })?;
        check_codecs(path, &builder, codec.roots())?;
        let projection = ProjectionMask::roots(builder.parquet_schema(), codec.roots().iter().copied());
        let read = codec.roots().iter().filter_map(|&root| builder.schema().fields().get(root));
        let types = read.map(|field| (field.name().clone(), field.data_type().to_string())).collect();
        let reader = builder
            .with_projection(projection)
            .with_batch_size(PARQUET_BATCH_ROWS)
            .build()
            .map_err(|error| damaged(0, &error))?;
        Ok(Self { reader, codec, rows: None, next_row: 0, rows_at_hand: 0, left: found, groups, types, length })
    }

    /// Opens a file without a schema: each struct member is a column.
    pub fn open_schemaless(
        path: &Path,
        limits: DecodeLimits,
        columns: ColumnChoice<'_>,
    ) -> Result<(Self, Vec<(String, FieldPath)>), SourceError> {
        let (file, length) = open_parquet(path)?;
        let copy = file.try_clone().map_err(|source| SourceError::Open { path: path.into(), source })?;
        let builder = builder_of(file).map_err(|error| parquet_error(path, 0, &error))?;
        let mut leaves = Vec::new();
        for field in builder.schema().fields() {
            leaves_of(field, &mut Vec::new(), &mut leaves);
        }
        let names = columns.choose(path, &leaves.iter().map(|leaf| leaf.join(".")).collect::<Vec<_>>())?;
        let pointer = |name: &String| leaves.iter().find(|leaf| leaf.join(".") == *name).cloned().unwrap_or_default();
        let fields: Vec<FieldPath> =
            names.iter().map(|name| FieldPath { pointer: pointer(name), elements: None }).collect();
        let rows = Self::of(path, (copy, length), &fields, limits, UnknownCellPolicy::Drop)?;
        Ok((rows, names.into_iter().zip(fields).collect()))
    }

    fn damaged_page_error(&self, path: &Path, coordinate: RecordPosition) -> SourceError {
        let row = self.groups.iter().sum::<u64>().saturating_sub(self.left);
        let ends = self.groups.iter().scan(0_u64, |end, rows| {
            *end += rows;
            Some(*end)
        });
        let before = ends.take_while(|end| *end <= row).count();
        let (group, groups) = ((before + 1).min(self.groups.len()), self.groups.len());
        let column = damaged_column(path, group.saturating_sub(1), self.codec.roots());
        let column = column.map_or_else(String::new, |name| format!(" of column \"{name}\""));
        SourceError::ParquetPage { path: path.into(), record: coordinate.offset.unsigned_abs(), column, group, groups }
    }

    /// Returns the next row and the bytes of its cells.
    pub fn next(
        &mut self,
        path: &Path,
        coordinate: RecordPosition,
        into: &mut RawBatch,
    ) -> Result<(NextRecord, u64), SourceError> {
        while self.next_row == self.rows_at_hand {
            let Some(batch) = self.reader.next() else { return Ok((NextRecord::End, 0)) };
            let batch = batch.map_err(|_| self.damaged_page_error(path, coordinate))?;
            let rows = self.codec.rows(&batch);
            self.rows = Some(rows.map_err(|source| SourceError::Columns { path: path.into(), source })?);
            self.rows_at_hand = batch.num_rows();
            self.next_row = 0;
        }
        let Some(rows) = &self.rows else { return Ok((NextRecord::End, 0)) };
        let row = self.next_row;
        self.next_row += 1;
        self.left = self.left.saturating_sub(1);
        Ok(match rows.decode(row, coordinate, into) {
            Ok(bytes) => (NextRecord::Record, bytes),
            Err(rejection) => (NextRecord::Rejected(rejection), 0),
        })
    }
}

/// 64-bit nanoseconds overflow outside 1677 to 2262, so 96-bit timestamps are read in milliseconds.
fn builder_of(file: File) -> Result<ParquetRecordBatchReaderBuilder<File>, ParquetError> {
    let metadata = ArrowReaderMetadata::load(&file, ArrowReaderOptions::new())?;
    let leaves = metadata.parquet_schema().columns();
    if leaves.iter().all(|leaf| leaf.physical_type() != PhysicalType::INT96) {
        return Ok(ParquetRecordBatchReaderBuilder::new_with_metadata(file, metadata));
    }
    let mut physical = leaves.iter().map(|leaf| leaf.physical_type());
    let fields: Fields = metadata.schema().fields().iter().map(|field| in_millis(field, &mut physical)).collect();
    let schema = Arc::new(Schema::new_with_metadata(fields, metadata.schema().metadata().clone()));
    let options = ArrowReaderOptions::new().with_schema(schema);
    let metadata = ArrowReaderMetadata::try_new(Arc::clone(metadata.metadata()), options)?;
    Ok(ParquetRecordBatchReaderBuilder::new_with_metadata(file, metadata))
}

/// `physical` yields leaf types.
fn in_millis(field: &FieldRef, physical: &mut impl Iterator<Item = PhysicalType>) -> FieldRef {
    let kind = match field.data_type() {
        DataType::Struct(members) => {
            DataType::Struct(members.iter().map(|member| in_millis(member, physical)).collect())
        }
        DataType::List(item) => DataType::List(in_millis(item, physical)),
        DataType::LargeList(item) => DataType::LargeList(in_millis(item, physical)),
        DataType::FixedSizeList(item, size) => DataType::FixedSizeList(in_millis(item, physical), *size),
        DataType::Map(entries, sorted) => DataType::Map(in_millis(entries, physical), *sorted),
        leaf => match (physical.next(), leaf) {
            (Some(PhysicalType::INT96), DataType::Timestamp(_, zone)) => {
                DataType::Timestamp(TimeUnit::Millisecond, zone.clone())
            }
            _ => leaf.clone(),
        },
    };
    Arc::new(field.as_ref().clone().with_data_type(kind))
}

fn check_codecs(
    path: &Path,
    builder: &ParquetRecordBatchReaderBuilder<File>,
    roots: &[usize],
) -> Result<(), SourceError> {
    let schema = builder.parquet_schema();
    for group in builder.metadata().row_groups() {
        for (leaf, column) in group.columns().iter().enumerate() {
            let is_read = roots.contains(&schema.get_column_root_idx(leaf));
            if is_read && matches!(column.compression(), Compression::LZO) {
                let column = column.column_path().string();
                return Err(SourceError::ParquetCodec { path: path.into(), column, codec: "LZO" });
            }
        }
    }
    Ok(())
}

fn damaged_column(path: &Path, group: usize, roots: &[usize]) -> Option<String> {
    roots.iter().find_map(|&root| {
        let builder = builder_of(open_parquet(path).ok()?.0).ok()?;
        let name = builder.schema().fields().get(root)?.name().clone();
        let projection = ProjectionMask::roots(builder.parquet_schema(), [root]);
        let mut reader = builder.with_projection(projection).with_row_groups(vec![group]).build().ok()?;
        reader.any(|batch| batch.is_err()).then_some(name)
    })
}

fn open_parquet(path: &Path) -> Result<(File, u64), SourceError> {
    if path == Path::new("-") {
        return Err(SourceError::ParquetOnStandardInput);
    }
    let (file, length) = open_file(path)?;
    Ok((file, length.unwrap_or(0)))
}

const MAX_COUNTED_FILES: usize = 1000;

/// Returns the declared number of rows, if readable.
pub fn declared_row_count(path: &Path) -> Option<u64> {
    let files = files_or_self(path, FileFormat::Parquet).ok()?;
    if files.len() > MAX_COUNTED_FILES {
        return None;
    }
    let rows = |file: &PathBuf| {
        let builder = ParquetRecordBatchReaderBuilder::try_new(open_parquet(file).ok()?.0).ok()?;
        u64::try_from(builder.metadata().file_metadata().num_rows()).ok()
    };
    files.iter().map(rows).sum()
}

fn leaves_of(field: &ArrowField, above: &mut Vec<String>, leaves: &mut Vec<Vec<String>>) {
    above.push(field.name().clone());
    match field.data_type() {
        DataType::Struct(members) if !members.is_empty() => {
            members.iter().for_each(|member| leaves_of(member, above, leaves));
        }
        _ => leaves.push(above.clone()),
    }
    above.pop();
}

/// The library's text may quote file content.
fn parquet_error(path: &Path, record: u64, error: &ParquetError) -> SourceError {
    let fault = match error {
        ParquetError::NYI(_) => "unsupported feature",
        ParquetError::EOF(_) | ParquetError::NeedMoreData(_) | ParquetError::NeedMoreDataRange(_) => "truncated file",
        ParquetError::External(_) => "read error",
        _ => "damaged, or not Parquet",
    };
    SourceError::Parquet { path: path.into(), record, fault }
}

#[cfg(test)]
#[path = "parquet_rows_tests.rs"]
mod tests;
