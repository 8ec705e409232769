//! Parquet: the rows of a file, some at a time.

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

use super::listing::all_of;
use super::stream::open_file;
use super::undescribed::ColumnChoice;
use super::{Format, Next, Reading, SourceError};
use throng_core::values::raw::{Coordinate, RawBatch};
use throng_formats::{ArrowCodec, ArrowRows, Field, Limits, Unknown};

/// Rows held decoded at a time.
const ROWS_AT_A_TIME: usize = 1024;

/// The rows of a Parquet file. Only the columns that the schema wants are read.
pub(super) struct ParquetRows {
    reader: ParquetRecordBatchReader,
    pub codec: ArrowCodec,
    rows: Option<ArrowRows>,
    next_row: usize,
    rows_at_hand: usize,
    /// Rows of the file that have not been given.
    left: u64,
    /// Rows of each row group.
    groups: Vec<u64>,
    /// Name and type of every column that is read.
    pub types: Vec<(String, String)>,
    /// Length of the file.
    pub length: u64,
}

impl std::fmt::Debug for ParquetRows {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ParquetRows").field("length", &self.length).finish_non_exhaustive()
    }
}

impl ParquetRows {
    /// The rows of a file.
    pub fn open(path: &Path, reading: &Reading) -> Result<Self, SourceError> {
        Self::of(path, opened(path)?, &reading.fields, reading.limits, reading.unknown)
    }

    fn of(
        path: &Path,
        (file, length): (File, u64),
        fields: &[Field],
        limits: Limits,
        unknown: Unknown,
    ) -> Result<Self, SourceError> {
        let damaged = |record, error: &ParquetError| fault(path, record, error);
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
            .with_batch_size(ROWS_AT_A_TIME)
            .build()
            .map_err(|error| damaged(0, &error))?;
        Ok(Self { reader, codec, rows: None, next_row: 0, rows_at_hand: 0, left: found, groups, types, length })
    }

    /// Every row, with the columns that the file's own schema names; a member of a struct is a column.
    pub fn open_undescribed(
        path: &Path,
        limits: Limits,
        columns: ColumnChoice<'_>,
    ) -> Result<(Self, Vec<(String, Field)>), SourceError> {
        let (file, length) = opened(path)?;
        let copy = file.try_clone().map_err(|source| SourceError::Open { path: path.into(), source })?;
        let builder = builder_of(file).map_err(|error| fault(path, 0, &error))?;
        let mut leaves = Vec::new();
        for field in builder.schema().fields() {
            leaves_of(field, &mut Vec::new(), &mut leaves);
        }
        let names = columns.choose(path, &leaves.iter().map(|leaf| leaf.join(".")).collect::<Vec<_>>())?;
        let pointer = |name: &String| leaves.iter().find(|leaf| leaf.join(".") == *name).cloned().unwrap_or_default();
        let fields: Vec<Field> = names.iter().map(|name| Field { pointer: pointer(name), elements: None }).collect();
        let rows = Self::of(path, (copy, length), &fields, limits, Unknown::Drop)?;
        Ok((rows, names.into_iter().zip(fields).collect()))
    }

    fn damaged(&self, path: &Path, coordinate: Coordinate) -> SourceError {
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

    /// The next row and the bytes of its cells.
    pub fn next(
        &mut self,
        path: &Path,
        coordinate: Coordinate,
        into: &mut RawBatch,
    ) -> Result<(Next, u64), SourceError> {
        while self.next_row == self.rows_at_hand {
            let Some(batch) = self.reader.next() else { return Ok((Next::End, 0)) };
            let batch = batch.map_err(|_| self.damaged(path, coordinate))?;
            let rows = self.codec.rows(&batch);
            self.rows = Some(rows.map_err(|source| SourceError::Columns { path: path.into(), source })?);
            self.rows_at_hand = batch.num_rows();
            self.next_row = 0;
        }
        let Some(rows) = &self.rows else { return Ok((Next::End, 0)) };
        let row = self.next_row;
        self.next_row += 1;
        self.left = self.left.saturating_sub(1);
        Ok(match rows.decode(row, coordinate, into) {
            Ok(bytes) => (Next::Record, bytes),
            Err(rejection) => (Next::Rejected(rejection), 0),
        })
    }
}

/// Opens a Parquet file. Timestamps of 96 bits are read to the millisecond: as nanoseconds in 64 bits, which is the default of the
/// library, moments outside the years 1677 to 2262 would wrap around to others.
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

/// The field with timestamps of 96 bits in milliseconds; `physical` are the types of its leaves and of those behind it.
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

/// Refuses a column that is read and whose pages are compressed in a way that nothing here undoes.
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

/// The first column of `roots` of which a page of the row group cannot be read; looked for where reading them together has failed.
fn damaged_column(path: &Path, group: usize, roots: &[usize]) -> Option<String> {
    roots.iter().find_map(|&root| {
        let builder = builder_of(opened(path).ok()?.0).ok()?;
        let name = builder.schema().fields().get(root)?.name().clone();
        let projection = ProjectionMask::roots(builder.parquet_schema(), [root]);
        let mut reader = builder.with_projection(projection).with_row_groups(vec![group]).build().ok()?;
        reader.any(|batch| batch.is_err()).then_some(name)
    })
}

/// The file and its length; 0 of what is no regular file.
fn opened(path: &Path) -> Result<(File, u64), SourceError> {
    if path == Path::new("-") {
        return Err(SourceError::ParquetOnStandardInput);
    }
    let (file, length) = open_file(path)?;
    Ok((file, length.unwrap_or(0)))
}

/// Files that are opened to know how many rows there are.
const COUNTED_FILES: usize = 1000;

/// Rows that the files of a path announce; none where one cannot be read, or where they are many.
pub fn rows_announced(path: &Path) -> Option<u64> {
    let files = all_of(path, Format::Parquet).ok()?;
    if files.len() > COUNTED_FILES {
        return None;
    }
    let rows = |file: &PathBuf| {
        let builder = ParquetRecordBatchReaderBuilder::try_new(opened(file).ok()?.0).ok()?;
        u64::try_from(builder.metadata().file_metadata().num_rows()).ok()
    };
    files.iter().map(rows).sum()
}

/// The way to every column that is no struct, from the top.
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

/// The kind of fault; the library's own text may quote what it found.
fn fault(path: &Path, record: u64, error: &ParquetError) -> SourceError {
    let fault = match error {
        ParquetError::NYI(_) => "it uses a feature that is not supported",
        ParquetError::EOF(_) | ParquetError::NeedMoreData(_) | ParquetError::NeedMoreDataRange(_) => "it is cut short",
        ParquetError::External(_) => "the file cannot be read",
        _ => "it is damaged or not Parquet",
    };
    SourceError::Parquet { path: path.into(), record, fault }
}

#[cfg(test)]
#[path = "parquet_rows_tests.rs"]
mod tests;
