//! Parquet file of released rows, from NDJSON lines.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{ArrayRef, Date32Array, Float64Array, Int64Array, StringBuilder, TimestampMillisecondArray};
use arrow::datatypes::{DataType, Field as ArrowField, Schema, TimeUnit};
use arrow::record_batch::RecordBatch;
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;

use super::SinkError;
use super::output_columns::{ColumnType, OutputColumn};
use super::output_writers::OutputTarget;
use throng_core::values::cell_bounds::{Bound, BoundType};
use throng_core::values::moment;
use throng_core::values::raw_batch::{RawBatch, RawToken, RecordPosition};
use throng_formats::{DecodeLimits, FieldPath, JsonCodec, UnknownCellPolicy};

const MAX_BUFFERED_ROWS: usize = 1 << 16;
const MAX_BUFFERED_BYTES: usize = 64 << 20;

/// Time zone of all timestamps.
const UTC: &str = "UTC";

/// Parquet rows; a missing cell is null.
pub(super) struct ParquetRowWriter {
    path: PathBuf,
    columns: Vec<OutputColumn>,
    schema: Arc<Schema>,
    decoder: JsonCodec,
    gathered: RawBatch,
    writer: ArrowWriter<OutputTarget>,
}

impl ParquetRowWriter {
    pub fn new(target: OutputTarget, columns: &[OutputColumn]) -> Result<Self, SinkError> {
        let fields: Vec<FieldPath> = columns.iter().map(|column| FieldPath::top_level(&column.name)).collect();
        let limits = DecodeLimits { max_record_bytes: usize::MAX, ..DecodeLimits::default() };
        let schema = Arc::new(Schema::new(columns.iter().flat_map(arrow_fields).collect::<Vec<_>>()));
        let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
        let path = target.path().to_owned();
        let writer = ArrowWriter::try_new(target, Arc::clone(&schema), Some(properties));
        let writer = writer.map_err(|error| encoding_error(&path, error))?;
        let decoder = JsonCodec::new(&fields, limits).with_unknown(UnknownCellPolicy::Refuse);
        let gathered = RawBatch::new(columns.len());
        Ok(Self { path, columns: columns.to_vec(), schema, decoder, gathered, writer })
    }

    pub fn append(&mut self, lines: &[u8]) -> Result<(), SinkError> {
        let nowhere = RecordPosition { topic: 0, partition: 0, offset: 0, element: 0 };
        for line in lines.split_inclusive(|&byte| byte == b'\n') {
            let decoded = self.decoder.decode(line, nowhere, &mut self.gathered);
            decoded.map_err(|reason| SinkError::UnexpectedLine { path: self.path.clone(), reason: reason.name() })?;
            if self.gathered.rows() >= MAX_BUFFERED_ROWS || self.gathered.arena_bytes() >= MAX_BUFFERED_BYTES {
                self.encode()?;
            }
        }
        Ok(())
    }

    fn encode(&mut self) -> Result<(), SinkError> {
        let rows = std::mem::replace(&mut self.gathered, RawBatch::new(self.columns.len()));
        let fault = |fault| SinkError::Parquet { path: self.path.clone(), fault };
        let arrays = arrays(&rows, &self.columns).map_err(fault)?;
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), arrays)
            .map_err(|_| fault("the records do not form columns"))?;
        self.writer.write(&batch).map_err(|error| encoding_error(&self.path, error))
    }

    pub fn finish(mut self) -> Result<OutputTarget, SinkError> {
        if self.gathered.rows() > 0 {
            self.encode()?;
        }
        self.writer.into_inner().map_err(|error| encoding_error(&self.path, error))
    }
}

fn arrow_fields(column: &OutputColumn) -> Vec<ArrowField> {
    let kind = match column.kind {
        ColumnType::Text | ColumnType::TextWithBounds(_) => DataType::Utf8,
        ColumnType::Count => DataType::Int64,
        ColumnType::Number => DataType::Float64,
        ColumnType::Time => bound_data_type(BoundType::Timestamp),
    };
    let mut fields = vec![ArrowField::new(&column.name, kind, true)];
    if let Some((kind, names)) = column.bounds() {
        let upper = match kind {
            BoundType::Float => "upper bound, included unless the text ends with )",
            BoundType::Integer | BoundType::Date | BoundType::Timestamp => "upper bound, included",
        };
        for (name, bound) in names.iter().zip(["lower bound, included", upper]) {
            // One entry only: the order of several is random, and equal releases have equal bytes.
            let metadata = HashMap::from([("throng".to_owned(), format!("{bound}, of {}", column.name))]);
            fields.push(ArrowField::new(name, bound_data_type(kind), true).with_metadata(metadata));
        }
    }
    fields
}

fn bound_data_type(kind: BoundType) -> DataType {
    match kind {
        BoundType::Integer => DataType::Int64,
        BoundType::Float => DataType::Float64,
        BoundType::Date => DataType::Date32,
        BoundType::Timestamp => DataType::Timestamp(TimeUnit::Millisecond, Some(UTC.into())),
    }
}

fn arrays(rows: &RawBatch, columns: &[OutputColumn]) -> Result<Vec<ArrayRef>, &'static str> {
    let mut arrays: Vec<ArrayRef> = Vec::with_capacity(columns.len());
    for (position, column) in columns.iter().enumerate() {
        let tokens = (0..rows.rows()).map(|row| rows.token(row, position));
        match column.kind {
            ColumnType::Text => arrays.push(text_array(tokens)),
            ColumnType::TextWithBounds(kind) => {
                let bounds: Vec<Option<[Bound; 2]>> = tokens.clone().map(|token| cell_bounds(kind, token)).collect();
                arrays.push(text_array(tokens));
                arrays
                    .extend([0, 1].map(|end| bound_array(kind, bounds.iter().map(|ends| ends.map(|ends| ends[end])))));
            }
            ColumnType::Count => {
                let value = |token| typed(token, |text| text.parse::<i64>().ok(), "a count is not a 64-bit integer");
                arrays.push(Arc::new(tokens.map(value).collect::<Result<Int64Array, _>>()?));
            }
            ColumnType::Number => {
                let finite = |text: &str| text.parse::<f64>().ok().filter(|value| value.is_finite());
                let value = |token| typed(token, finite, "a statistic is not a finite number");
                arrays.push(Arc::new(tokens.map(value).collect::<Result<Float64Array, _>>()?));
            }
            ColumnType::Time => {
                let value = |token| typed(token, moment::parse, "the start of a bucket is not a time");
                let times = tokens.map(value).collect::<Result<TimestampMillisecondArray, _>>()?;
                arrays.push(Arc::new(times.with_timezone(UTC)));
            }
        }
    }
    Ok(arrays)
}

fn text_array<'a>(tokens: impl Iterator<Item = RawToken<'a>>) -> ArrayRef {
    let mut cells = StringBuilder::new();
    for token in tokens {
        match token {
            RawToken::Absent | RawToken::Null => cells.append_null(),
            RawToken::Bool(true) => cells.append_value("true"),
            RawToken::Bool(false) => cells.append_value("false"),
            RawToken::Text(text) | RawToken::Number(text) | RawToken::Structure(text) | RawToken::Untyped(text) => {
                cells.append_value(text);
            }
        }
    }
    Arc::new(cells.finish())
}

/// Returns the bounds of a released cell; none for missing and suppressed ones.
pub fn cell_bounds(kind: BoundType, token: RawToken<'_>) -> Option<[Bound; 2]> {
    match token {
        RawToken::Text(text) | RawToken::Number(text) | RawToken::Untyped(text) => kind.bounds(text),
        RawToken::Absent | RawToken::Null | RawToken::Bool(_) | RawToken::Structure(_) => None,
    }
}

fn bound_array(kind: BoundType, bounds: impl Iterator<Item = Option<Bound>>) -> ArrayRef {
    let whole = |bound: Option<Bound>| bound.and_then(Bound::whole);
    match kind {
        BoundType::Integer => Arc::new(bounds.map(whole).collect::<Int64Array>()),
        BoundType::Float => Arc::new(bounds.map(|bound| bound.and_then(Bound::real)).collect::<Float64Array>()),
        // Days of the years 1 to 9999 have 32 bits.
        BoundType::Date => {
            let day = |bound| whole(bound).and_then(|day| i32::try_from(day).ok());
            Arc::new(bounds.map(day).collect::<Date32Array>())
        }
        BoundType::Timestamp => Arc::new(bounds.map(whole).collect::<TimestampMillisecondArray>().with_timezone(UTC)),
    }
}

fn typed<T>(
    token: RawToken<'_>,
    parse: impl Fn(&str) -> Option<T>,
    fault: &'static str,
) -> Result<Option<T>, &'static str> {
    match token {
        RawToken::Absent | RawToken::Null => Ok(None),
        RawToken::Text(text) | RawToken::Number(text) | RawToken::Untyped(text) => parse(text).map(Some).ok_or(fault),
        RawToken::Bool(_) | RawToken::Structure(_) => Err(fault),
    }
}

fn encoding_error(path: &Path, error: ParquetError) -> SinkError {
    let path = path.to_owned();
    match error {
        ParquetError::External(inner) => match inner.downcast::<io::Error>() {
            Ok(source) => SinkError::Write { path, byte: 0, source: *source },
            Err(_) => SinkError::Parquet { path, fault: "the file could not be written" },
        },
        _ => SinkError::Parquet { path, fault: "the records could not be encoded" },
    }
}

#[cfg(test)]
#[path = "parquet_writer_tests.rs"]
mod tests;
