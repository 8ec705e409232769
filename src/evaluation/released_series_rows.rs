//! Strict reader of released series rows: rewriting a row must reproduce its bytes or typed columns.

use crate::config::{Config, SinkConfig};
use crate::io::file::{FileFormat, open_text};
use crate::start::record_formats::file_format;
use arrow::array::{Array, AsArray};
use arrow::datatypes::{DataType, Float64Type, Int64Type, TimeUnit, TimestampMillisecondType};
use arrow::record_batch::RecordBatch;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::{Map, Value};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use throng_core::series::{
    AllSeriesTerms, ColumnType, MeanStatistic, MomentStatistic, NoisyStatistic, RowFormat, RowStatistic, SeriesRow,
    SeriesTerms, SlotCycle, bucket_label, decode_csv_text, series_columns,
};
use throng_core::values::moment;
use throng_eval::error::EvaluationError;

/// Released line.
#[derive(Clone, Debug, PartialEq)]
pub struct ReleasedSeriesRow {
    /// Series position.
    pub series: usize,
    /// Row number in the file, from 0, without headers.
    pub number: u64,
    /// Row, or reason for its rejection.
    pub row: Result<SeriesRow, &'static str>,
}

/// Files of a release.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReleasedSeriesFiles {
    /// Path per series.
    pub files: Vec<PathBuf>,
    /// Header lines (CSV).
    pub header_lines: u64,
    /// Rows by series.
    pub rows: Vec<ReleasedSeriesRow>,
}

const SPELLING_DIFFERS: &str = "the row does not have the format of this series";

impl ReleasedSeriesFiles {
    /// Reads all series at `path`.
    ///
    /// # Errors
    ///
    /// When a file is unreadable, or header or column types do not match.
    pub fn read(config: &Config, terms: &AllSeriesTerms, path: &Path) -> Result<Self, EvaluationError> {
        let alone = config.output_names().len() == 1;
        let format = file_format(config.sink.format(), config.source.separator);
        let mut read = Self { header_lines: u64::from(matches!(format, FileFormat::Csv { .. })), ..Self::default() };
        for (number, series) in terms.series.iter().enumerate() {
            let file = SinkConfig::file_of(path, &series.name, alone);
            let reader =
                SeriesRowReader { file: &file, series: number, terms: series, strata: &terms.cohorts.strata_names };
            let rows = match format {
                // The configuration refuses input formats.
                FileFormat::Ndjson | FileFormat::AppleHealth => reader.ndjson(),
                FileFormat::Csv { separator } => reader.csv(separator),
                FileFormat::Parquet => reader.parquet(),
            }?;
            let rows = (0..).zip(rows).map(|(line, row)| ReleasedSeriesRow { series: number, number: line, row });
            read.rows.extend(rows);
            read.files.push(file);
        }
        Ok(read)
    }

    /// Returns a row's file and line, from 1.
    #[must_use]
    pub fn file_and_line(&self, series: usize, number: u64) -> (&Path, u64) {
        (&self.files[series], number + 1 + self.header_lines)
    }
}

type ParsedRows = Vec<Result<SeriesRow, &'static str>>;

struct SeriesRowReader<'a> {
    file: &'a Path,
    series: usize,
    terms: &'a SeriesTerms,
    strata: &'a [String],
}

impl SeriesRowReader<'_> {
    fn text(&self) -> Result<Vec<u8>, EvaluationError> {
        let unreadable = |source| EvaluationError::Release { path: self.file.to_owned(), source };
        let mut text = Vec::new();
        open_text(self.file).and_then(|mut file| file.read_to_end(&mut text)).map_err(unreadable)?;
        Ok(text)
    }

    fn ndjson(&self) -> Result<ParsedRows, EvaluationError> {
        let text = self.text()?;
        let row = |line: &[u8]| {
            let line = line.strip_suffix(b"\n").ok_or("the last line is truncated")?;
            let Ok(Value::Object(members)) = serde_json::from_slice(line) else {
                return Err("the line is not a JSON object");
            };
            self.parse_exact_row(line, &members, RowFormat::Json)
        };
        Ok(text.split_inclusive(|byte| *byte == b'\n').map(row).collect())
    }

    fn csv(&self, separator: u8) -> Result<ParsedRows, EvaluationError> {
        let text = self.text()?;
        let columns = series_columns(self.terms, self.strata);
        let mut reader =
            csv::ReaderBuilder::new().delimiter(separator).has_headers(false).flexible(true).from_reader(&*text);
        let (mut record, mut rows, mut is_header) = (csv::ByteRecord::new(), ParsedRows::new(), true);
        loop {
            let from = usize::try_from(reader.position().byte()).unwrap_or(usize::MAX);
            let is_read = reader.read_byte_record(&mut record);
            if matches!(is_read, Ok(false)) {
                return Ok(rows);
            }
            let to = usize::try_from(reader.position().byte()).unwrap_or(usize::MAX);
            if std::mem::take(&mut is_header) {
                if !record.iter().eq(columns.iter().map(|(name, _)| name.as_bytes())) {
                    return Err(self.refused("the header does not match this series"));
                }
                continue;
            }
            let line = text.get(from..to).and_then(|line| line.strip_suffix(b"\n"));
            rows.push(match (is_read, line) {
                (Ok(_), Some(line)) => self.csv_row(line, &record, &columns, separator),
                _ => Err("the last line is truncated"),
            });
        }
    }

    fn csv_row(
        &self,
        line: &[u8],
        record: &csv::ByteRecord,
        columns: &[(String, ColumnType)],
        separator: u8,
    ) -> Result<SeriesRow, &'static str> {
        let mut members = Map::new();
        for ((name, kind), field) in columns.iter().zip(record) {
            let text = std::str::from_utf8(field).map_err(|_| "a field is not UTF-8")?;
            let value = match kind {
                _ if text.is_empty() => Value::Null,
                ColumnType::Text | ColumnType::Time => Value::from(decode_csv_text(text)),
                ColumnType::Count | ColumnType::Number => {
                    serde_json::from_str(text).map_err(|_| "a field is not a number")?
                }
            };
            members.insert(name.clone(), value);
        }
        self.parse_exact_row(line, &members, RowFormat::Csv(separator))
    }

    fn parquet(&self) -> Result<ParsedRows, EvaluationError> {
        let path = || self.file.to_owned();
        let file = File::open(self.file).map_err(|source| EvaluationError::Release { path: path(), source })?;
        let damaged = |why: &dyn ToString| EvaluationError::Line { path: path(), line: 1, why: why.to_string() };
        let builder = ParquetRecordBatchReaderBuilder::try_new(file).map_err(|error| damaged(&error))?;
        let columns = series_columns(self.terms, self.strata);
        let kind = |kind: ColumnType| match kind {
            ColumnType::Text => DataType::Utf8,
            ColumnType::Count => DataType::Int64,
            ColumnType::Number => DataType::Float64,
            ColumnType::Time => DataType::Timestamp(TimeUnit::Millisecond, Some("UTC".into())),
        };
        let expected = columns.iter().map(|(name, of)| (name.as_str(), kind(*of)));
        let found = builder.schema().fields().iter().map(|field| (field.name().as_str(), field.data_type().clone()));
        if !expected.eq(found) {
            return Err(self.refused("the columns do not match this series"));
        }
        let mut rows = ParsedRows::new();
        for batch in builder.build().map_err(|error| damaged(&error))? {
            let batch = batch.map_err(|error| damaged(&error))?;
            rows.extend((0..batch.num_rows()).map(|row| self.parquet_row(&batch, row, &columns)));
        }
        Ok(rows)
    }

    fn parquet_row(
        &self,
        batch: &RecordBatch,
        row: usize,
        columns: &[(String, ColumnType)],
    ) -> Result<SeriesRow, &'static str> {
        let mut members = Map::new();
        for ((name, kind), column) in columns.iter().zip(batch.columns()) {
            let value = match kind {
                _ if column.is_null(row) => Value::Null,
                ColumnType::Text => column.as_string::<i32>().value(row).into(),
                ColumnType::Count => column.as_primitive::<Int64Type>().value(row).into(),
                ColumnType::Number => number(column.as_primitive::<Float64Type>().value(row)),
                ColumnType::Time => {
                    bucket_label(self.terms, column.as_primitive::<TimestampMillisecondType>().value(row)).into()
                }
            };
            members.insert(name.clone(), value);
        }
        let line = Value::Object(members.clone()).to_string();
        self.parse_exact_row(line.as_bytes(), &members, RowFormat::FlatJson)
    }

    fn refused(&self, why: &str) -> EvaluationError {
        EvaluationError::Line { path: self.file.to_owned(), line: 1, why: why.to_owned() }
    }

    /// Requires the exact spelling of `line`.
    fn parse_exact_row(
        &self,
        line: &[u8],
        members: &Map<String, Value>,
        format: RowFormat,
    ) -> Result<SeriesRow, &'static str> {
        let row = self.parse_members(members).ok_or(SPELLING_DIFFERS)?;
        if row.to_output_line(self.terms, self.strata, format) == line { Ok(row) } else { Err(SPELLING_DIFFERS) }
    }

    fn parse_members(&self, members: &Map<String, Value>) -> Option<SeriesRow> {
        let text = |name: &str| members.get(name).and_then(Value::as_str);
        let number = |name: &str| members.get(name).and_then(Value::as_f64);
        if text("series")? != self.terms.name {
            return None;
        }
        let window = moment::parse(text("bucket")?)?;
        let slot = if self.terms.cycle.is_some() { members.get("slot")?.as_i64()? } else { 0 };
        let step = match self.terms.cycle {
            Some(SlotCycle::HourOfDay) => 3_600_000,
            Some(SlotCycle::DayOfWeek) => 86_400_000,
            None => 0,
        };
        let bucket = window.checked_add(slot.checked_mul(step)?)?;
        let is_start = match &self.terms.moments {
            Some(moments) => moments.epoch(bucket) == bucket,
            None => self.terms.window(bucket) == window && self.terms.bucket(bucket) == bucket,
        };
        if !is_start {
            return None;
        }
        let signal = text("signal")?;
        let position = |name: &str| self.terms.signals.iter().position(|known| known.name == name);
        let statistic = match text("bin") {
            _ if self.terms.moments.is_some() => RowStatistic::Moment(MomentStatistic {
                with: position(text("with")?)?,
                mean: number("mean"),
                covariance: number("covariance")?,
            }),
            Some(label) => RowStatistic::Bin { label: label.to_owned(), share: number("share")? },
            None if self.terms.noise.is_some() => RowStatistic::Noisy(NoisyStatistic { mean: number("mean")?, sum: 0 }),
            None => RowStatistic::Mean(Self::parse_mean(number)?),
        };
        Some(SeriesRow {
            series: self.series,
            cohort: text("cohort").map(str::to_owned),
            stratum: self.parse_stratum(members)?,
            bucket,
            signal: position(signal)?,
            sets: Vec::new(),
            n: members.get("n")?.as_u64()?,
            statistic,
            filled: if self.terms.noise.is_some() { 0.0 } else { number("filled")? },
        })
    }

    fn parse_mean<'a>(number: impl Fn(&'a str) -> Option<f64>) -> Option<MeanStatistic> {
        let quartiles = match ["q25", "q50", "q75"].map(&number) {
            [Some(q25), Some(q50), Some(q75)] => Some([q25, q50, q75]),
            [None, None, None] => None,
            _ => return None,
        };
        Some(MeanStatistic { mean: number("mean")?, sd: number("sd")?, quartiles })
    }

    /// The outer option is none if only some labels are missing.
    fn parse_stratum(&self, members: &Map<String, Value>) -> Option<Option<Vec<String>>> {
        let label = |name: &String| match members.get("stratum") {
            Some(labels) => labels.get(name),
            None => members.get(&format!("stratum_{name}")),
        };
        let labels: Vec<Option<String>> =
            self.strata.iter().map(|name| label(name).and_then(Value::as_str).map(str::to_owned)).collect();
        if !labels.is_empty() && labels.iter().all(Option::is_none) {
            return Some(None);
        }
        labels.into_iter().collect::<Option<Vec<String>>>().map(Some)
    }
}

fn number(value: f64) -> Value {
    if value.fract() == 0.0 && value.abs() < 1e15 { Value::from(value as i64) } else { Value::from(value) }
}
