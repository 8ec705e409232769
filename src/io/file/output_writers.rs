//! Output files of a release.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, StringBuilder, UInt64Array};
use arrow::datatypes::{DataType, Field as ArrowField, Schema};
use arrow::record_batch::RecordBatch;
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;

use super::atomic_file::{self, OutputFileMode, UnfinishedFile};
use super::{FileFormat, SinkError};
use crate::config::{SinkConfig, UsedFile};
use throng_core::values::raw_batch::{RawBatch, RawToken, RecordPosition};
use throng_formats::{DecodeLimits, FieldPath, JsonCodec, UnknownCellPolicy};

const BUFFER_BYTES: usize = 1 << 20;

const MAX_BUFFERED_ROWS: usize = 1 << 16;
const MAX_BUFFERED_BYTES: usize = 64 << 20;

/// Type of a Parquet column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParquetColumnType {
    /// UTF-8.
    Text,
    /// UINT64.
    Count,
    /// DOUBLE.
    Number,
}

/// Columns of an attribute group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupColumns {
    /// Name: letters, digits, `-`, `_` and `.`.
    pub name: String,
    /// Column names in line order.
    pub columns: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OutputVisibility {
    /// All lines together, replacing the previous file.
    AtEnd,
    AsReleased,
}

#[derive(Debug)]
pub(super) enum OutputTarget {
    Unfinished(UnfinishedFile),
    Buffered(File),
    Appended(PathBuf, File),
    StandardOutput,
}

impl OutputTarget {
    pub fn open(path: &Path, visible: OutputVisibility, access: OutputFileMode) -> Result<Self, SinkError> {
        let fault = |source| SinkError::Open { path: path.into(), source };
        let is_dash = path == Path::new("-");
        match visible {
            OutputVisibility::AtEnd if is_dash => tempfile::tempfile().map(Self::Buffered).map_err(fault),
            OutputVisibility::AtEnd => UnfinishedFile::create(path, access).map(Self::Unfinished),
            OutputVisibility::AsReleased if is_dash => Ok(Self::StandardOutput),
            OutputVisibility::AsReleased => {
                atomic_file::reject_irregular(path)?;
                let mode = if access == OutputFileMode::Private { 0o600 } else { 0o666 };
                let mut options = OpenOptions::new();
                std::os::unix::fs::OpenOptionsExt::mode(options.append(true).create(true), mode);
                let file = options.open(path).map_err(fault)?;
                let found = file.metadata().map_err(fault)?;
                if access == OutputFileMode::Private {
                    atomic_file::make_private(&file, &found, path)?;
                }
                atomic_file::lock(&file, path, path)?;
                if found.len() > 0 {
                    return Err(SinkError::NotEmpty { path: path.into() });
                }
                Ok(Self::Appended(path.to_owned(), file))
            }
        }
    }

    pub fn check_place(&self) -> Result<(), SinkError> {
        if let Self::Unfinished(file) = self { file.check_place() } else { Ok(()) }
    }

    /// True even if a later step failed.
    pub fn is_named(&self) -> bool {
        matches!(self, Self::Unfinished(file) if file.is_named)
    }

    pub fn path(&self) -> &Path {
        match self {
            Self::Unfinished(file) => &file.path,
            Self::Appended(path, _) => path,
            Self::Buffered(_) | Self::StandardOutput => Path::new("standard output"),
        }
    }

    fn write_error(&self, source: io::Error) -> SinkError {
        let byte = if let Self::Unfinished(file) = self { file.written } else { 0 };
        SinkError::Write { path: self.path().into(), byte, source }
    }

    /// Renames the file or copies it to standard output.
    pub fn make_visible(&mut self) -> Result<(), SinkError> {
        match self {
            Self::Unfinished(file) => file.rename(),
            Self::Buffered(file) => {
                let copied = file.seek(SeekFrom::Start(0)).and_then(|_| {
                    let mut out = io::stdout().lock();
                    io::copy(file, &mut out)?;
                    out.flush()
                });
                copied.map_err(|source| self.write_error(source))
            }
            Self::Appended(..) | Self::StandardOutput => Ok(()),
        }
    }
}

impl Write for OutputTarget {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Unfinished(file) => file.write(bytes),
            Self::Buffered(file) | Self::Appended(_, file) => file.write(bytes),
            Self::StandardOutput => io::stdout().lock().write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        if let Self::StandardOutput = self { io::stdout().lock().flush() } else { Ok(()) }
    }
}

pub(super) enum OutputWriter {
    Lines(BufWriter<OutputTarget>),
    Rows(Box<ParquetRowWriter>),
}

impl OutputWriter {
    pub fn of_lines(target: OutputTarget, header: &[u8]) -> Result<Self, SinkError> {
        let mut output = Self::Lines(BufWriter::with_capacity(BUFFER_BYTES, target));
        output.append(header)?;
        Ok(output)
    }

    pub fn of_group(target: OutputTarget, format: FileFormat, columns: &[String]) -> Result<Self, SinkError> {
        match format {
            FileFormat::Ndjson => Self::of_lines(target, b""),
            FileFormat::Csv { separator } => Self::of_lines(target, &header(columns, separator)),
            FileFormat::Parquet => {
                let texts: Vec<_> = columns.iter().map(|name| (name.clone(), ParquetColumnType::Text)).collect();
                Self::of_columns(target, &texts)
            }
        }
    }

    /// Creates a Parquet file of typed columns from NDJSON lines.
    pub fn of_columns(target: OutputTarget, columns: &[(String, ParquetColumnType)]) -> Result<Self, SinkError> {
        Ok(Self::Rows(Box::new(ParquetRowWriter::new(target, columns)?)))
    }

    /// Appends complete lines; those for Parquet are NDJSON.
    pub fn append(&mut self, lines: &[u8]) -> Result<(), SinkError> {
        match self {
            Self::Lines(writer) => writer.write_all(lines).map_err(|source| writer.get_ref().write_error(source)),
            Self::Rows(rows) => rows.append(lines),
        }
    }

    pub fn flush(&mut self) -> Result<(), SinkError> {
        match self {
            Self::Lines(writer) => writer.flush().map_err(|source| writer.get_ref().write_error(source)),
            Self::Rows(_) => Ok(()),
        }
    }

    /// Syncs a file that is renamed later.
    pub fn finish(self) -> Result<OutputTarget, SinkError> {
        let target = match self {
            Self::Lines(mut writer) => {
                writer.flush().map_err(|source| writer.get_ref().write_error(source))?;
                writer.into_parts().0
            }
            Self::Rows(rows) => rows.finish()?,
        };
        if let OutputTarget::Unfinished(file) = &target {
            file.sync()?;
        }
        Ok(target)
    }
}

/// Parquet rows; a missing cell is null.
pub(super) struct ParquetRowWriter {
    path: PathBuf,
    schema: Arc<Schema>,
    decoder: JsonCodec,
    gathered: RawBatch,
    writer: ArrowWriter<OutputTarget>,
}

impl ParquetRowWriter {
    fn new(target: OutputTarget, columns: &[(String, ParquetColumnType)]) -> Result<Self, SinkError> {
        let fields: Vec<FieldPath> = columns.iter().map(|(name, _)| FieldPath::top_level(name)).collect();
        let limits = DecodeLimits { max_record_bytes: usize::MAX, ..DecodeLimits::default() };
        let field = |(name, kind): &(String, ParquetColumnType)| {
            let kind = match kind {
                ParquetColumnType::Text => DataType::Utf8,
                ParquetColumnType::Count => DataType::UInt64,
                ParquetColumnType::Number => DataType::Float64,
            };
            ArrowField::new(name, kind, true)
        };
        let schema = Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>()));
        let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
        let path = target.path().to_owned();
        let writer = ArrowWriter::try_new(target, Arc::clone(&schema), Some(properties));
        let writer = writer.map_err(|error| encoding_error(&path, error))?;
        let decoder = JsonCodec::new(&fields, limits).with_unknown(UnknownCellPolicy::Refuse);
        Ok(Self { path, schema, decoder, gathered: RawBatch::new(columns.len()), writer })
    }

    fn append(&mut self, lines: &[u8]) -> Result<(), SinkError> {
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
        let rows = std::mem::replace(&mut self.gathered, RawBatch::new(self.schema.fields().len()));
        let fault = "the records do not form columns";
        let batch = columns(&rows, &self.schema).map_err(|_| SinkError::Parquet { path: self.path.clone(), fault })?;
        self.writer.write(&batch).map_err(|error| encoding_error(&self.path, error))
    }

    fn finish(mut self) -> Result<OutputTarget, SinkError> {
        if self.gathered.rows() > 0 {
            self.encode()?;
        }
        self.writer.into_inner().map_err(|error| encoding_error(&self.path, error))
    }
}

fn columns(rows: &RawBatch, schema: &Arc<Schema>) -> Result<RecordBatch, arrow::error::ArrowError> {
    let arrays = schema.fields().iter().enumerate().map(|(column, field)| {
        let tokens = (0..rows.rows()).map(|row| rows.token(row, column));
        match field.data_type() {
            DataType::UInt64 => return Arc::new(tokens.map(number::<u64>).collect::<UInt64Array>()) as ArrayRef,
            DataType::Float64 => return Arc::new(tokens.map(number::<f64>).collect::<Float64Array>()) as ArrayRef,
            _ => {}
        }
        let mut cells = StringBuilder::new();
        for row in 0..rows.rows() {
            match rows.token(row, column) {
                RawToken::Absent | RawToken::Null => cells.append_null(),
                RawToken::Bool(true) => cells.append_value("true"),
                RawToken::Bool(false) => cells.append_value("false"),
                RawToken::Text(text) | RawToken::Number(text) | RawToken::Structure(text) | RawToken::Untyped(text) => {
                    cells.append_value(text);
                }
            }
        }
        Arc::new(cells.finish()) as ArrayRef
    });
    RecordBatch::try_new(Arc::clone(schema), arrays.collect())
}

fn number<T: std::str::FromStr>(token: RawToken<'_>) -> Option<T> {
    let RawToken::Number(text) = token else { return None };
    text.parse().ok()
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

pub(super) fn output_paths(path: &Path, names: &[&str]) -> Vec<PathBuf> {
    if path == Path::new("-") {
        return vec![path.to_owned()];
    }
    names.iter().map(|name| SinkConfig::file_of(path, name, names.len() == 1)).collect()
}

fn header(columns: &[String], separator: u8) -> Vec<u8> {
    let mut writer = csv::WriterBuilder::new().delimiter(separator).from_writer(Vec::new());
    let written = writer.write_record(columns).ok();
    written.and_then(|()| writer.into_inner().ok()).expect("writing to a vector cannot fail")
}

/// Target of a release in one pass.
#[derive(Debug)]
pub struct ReleaseTarget {
    path: PathBuf,
    format: FileFormat,
    _claimed: Option<File>,
}

impl ReleaseTarget {
    /// Returns the files written at `path`, for comparison with the inputs.
    pub fn files(path: &Path) -> Vec<UsedFile> {
        if path == Path::new("-") {
            return Vec::new();
        }
        let Ok((_, unfinished)) = atomic_file::place_and_unfinished(path) else { return Vec::new() };
        vec![UsedFile::file("--output", path), UsedFile::file("the unfinished file of --output", &unfinished)]
    }

    /// Checks and locks the target.
    ///
    /// # Errors
    /// If it is not regular, or in use.
    pub fn claim_target(path: &Path, format: FileFormat) -> Result<Self, SinkError> {
        let claimed = if path == Path::new("-") {
            None
        } else {
            atomic_file::reject_irregular(path)?;
            atomic_file::lock_output_place(path)?
        };
        Ok(Self { path: path.to_owned(), format, _claimed: claimed })
    }

    /// Writes the lines passed by `write` atomically.
    ///
    /// # Errors
    /// If writing fails, or the target is in use; errors of `write`.
    pub fn write_release<E: From<SinkError>>(
        self,
        columns: &[String],
        write: impl FnOnce(&mut dyn FnMut(&[u8]) -> Result<(), SinkError>) -> Result<(), E>,
    ) -> Result<(), E> {
        let Self { path, format, _claimed: claimed } = self;
        // The new output takes the lock again.
        drop(claimed);
        let target = OutputTarget::open(&path, OutputVisibility::AtEnd, OutputFileMode::Shared)?;
        let mut output = OutputWriter::of_group(target, format, columns)?;
        write(&mut |lines| output.append(lines))?;
        Ok(output.finish()?.make_visible()?)
    }
}

#[cfg(test)]
#[path = "outputs_tests.rs"]
mod tests;
