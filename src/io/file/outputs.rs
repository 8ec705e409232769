//! The files that the groups of a release are written to.

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

use super::whole::{self, Access, UnfinishedFile};
use super::{Format, SinkError};
use crate::config::{Sink, Used};
use throng_core::values::raw::{Coordinate, RawBatch, Token};
use throng_formats::{Field, JsonCodec, Limits, Unknown};

/// Bytes gathered before they are written.
const BUFFER_BYTES: usize = 1 << 20;

/// Rows of Parquet that are gathered before they are encoded, or bytes of their cells.
const GATHERED_ROWS: usize = 1 << 16;
const GATHERED_BYTES: usize = 64 << 20;

/// Type of a column of Parquet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnType {
    /// UTF-8.
    Text,
    /// UINT64.
    Count,
    /// DOUBLE.
    Number,
}

/// A group of attributes that leave together, and the order of its columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupColumns {
    /// The name of the group: letters, digits, `-`, `_` and `.`.
    pub name: String,
    /// The names of its columns, in the order of a line.
    pub columns: Vec<String>,
}

/// When lines can be seen by readers of an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Visible {
    /// All at once, when the output is complete: it replaces what was there before.
    AtTheEnd,
    /// As they are released; the output is a new file.
    AsReleased,
}

/// Where the bytes of an output go.
#[derive(Debug)]
pub(super) enum Target {
    /// To a file that gets its name at the end.
    Unfinished(UnfinishedFile),
    /// To a file without a name, and from there to standard output at the end.
    Spooled(File),
    /// To a file that grows.
    Growing(PathBuf, File),
    /// To standard output.
    Printed,
}

impl Target {
    /// Opens the file at `path`, or for `-` standard output.
    pub fn open(path: &Path, visible: Visible, access: Access) -> Result<Self, SinkError> {
        let fault = |source| SinkError::Open { path: path.into(), source };
        let is_dash = path == Path::new("-");
        match visible {
            Visible::AtTheEnd if is_dash => tempfile::tempfile().map(Self::Spooled).map_err(fault),
            Visible::AtTheEnd => UnfinishedFile::create(path, access).map(Self::Unfinished),
            Visible::AsReleased if is_dash => Ok(Self::Printed),
            Visible::AsReleased => {
                whole::regular(path)?;
                let mode = if access == Access::Private { 0o600 } else { 0o666 };
                let mut options = OpenOptions::new();
                std::os::unix::fs::OpenOptionsExt::mode(options.append(true).create(true), mode);
                let file = options.open(path).map_err(fault)?;
                let found = file.metadata().map_err(fault)?;
                if access == Access::Private {
                    whole::make_private(&file, &found, path)?;
                }
                whole::lock(&file, path, path)?;
                if found.len() > 0 {
                    return Err(SinkError::Occupied { path: path.into() });
                }
                Ok(Self::Growing(path.to_owned(), file))
            }
        }
    }

    /// Looks whether [`show`](Self::show) is likely to succeed.
    pub fn check_place(&self) -> Result<(), SinkError> {
        if let Self::Unfinished(file) = self { file.check_place() } else { Ok(()) }
    }

    /// Whether the file has its name, whatever came after.
    pub fn is_named(&self) -> bool {
        matches!(self, Self::Unfinished(file) if file.is_named)
    }

    pub fn path(&self) -> &Path {
        match self {
            Self::Unfinished(file) => &file.path,
            Self::Growing(path, _) => path,
            Self::Spooled(_) | Self::Printed => Path::new("standard output"),
        }
    }

    fn failed(&self, source: io::Error) -> SinkError {
        let byte = if let Self::Unfinished(file) = self { file.written } else { 0 };
        SinkError::Write { path: self.path().into(), byte, source }
    }

    /// Shows what was written to readers, where they have not seen it yet: puts a file in its place.
    pub fn show(&mut self) -> Result<(), SinkError> {
        match self {
            Self::Unfinished(file) => file.rename(),
            Self::Spooled(file) => {
                let copied = file.seek(SeekFrom::Start(0)).and_then(|_| {
                    let mut out = io::stdout().lock();
                    io::copy(file, &mut out)?;
                    out.flush()
                });
                copied.map_err(|source| self.failed(source))
            }
            Self::Growing(..) | Self::Printed => Ok(()),
        }
    }
}

impl Write for Target {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Unfinished(file) => file.write(bytes),
            Self::Spooled(file) | Self::Growing(_, file) => file.write(bytes),
            Self::Printed => io::stdout().lock().write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        if let Self::Printed = self { io::stdout().lock().flush() } else { Ok(()) }
    }
}

/// An output of lines, or of the rows that the lines say.
pub(super) enum Output {
    Lines(BufWriter<Target>),
    Rows(Box<Rows>),
}

impl Output {
    /// An output of lines that begins with `header`.
    pub fn of_lines(target: Target, header: &[u8]) -> Result<Self, SinkError> {
        let mut output = Self::Lines(BufWriter::with_capacity(BUFFER_BYTES, target));
        output.append(header)?;
        Ok(output)
    }

    /// The output of a group.
    pub fn of_group(target: Target, format: Format, columns: &[String]) -> Result<Self, SinkError> {
        match format {
            Format::Ndjson => Self::of_lines(target, b""),
            Format::Csv { separator } => Self::of_lines(target, &header(columns, separator)),
            Format::Parquet => {
                let texts: Vec<_> = columns.iter().map(|name| (name.clone(), ColumnType::Text)).collect();
                Self::of_columns(target, &texts)
            }
        }
    }

    /// A Parquet file of typed columns, filled with NDJSON.
    pub fn of_columns(target: Target, columns: &[(String, ColumnType)]) -> Result<Self, SinkError> {
        Ok(Self::Rows(Box::new(Rows::new(target, columns)?)))
    }

    /// Appends complete lines, each with its line break. For Parquet they are NDJSON.
    pub fn append(&mut self, lines: &[u8]) -> Result<(), SinkError> {
        match self {
            Self::Lines(writer) => writer.write_all(lines).map_err(|source| writer.get_ref().failed(source)),
            Self::Rows(rows) => rows.append(lines),
        }
    }

    /// Hands on what was gathered: readers of a growing output have it now.
    pub fn flush(&mut self) -> Result<(), SinkError> {
        match self {
            Self::Lines(writer) => writer.flush().map_err(|source| writer.get_ref().failed(source)),
            Self::Rows(_) => Ok(()),
        }
    }

    /// Ends the output; brings it to the disk where it gets its name later.
    pub fn finish(self) -> Result<Target, SinkError> {
        let target = match self {
            Self::Lines(mut writer) => {
                writer.flush().map_err(|source| writer.get_ref().failed(source))?;
                writer.into_parts().0
            }
            Self::Rows(rows) => rows.finish()?,
        };
        if let Target::Unfinished(file) = &target {
            file.sync()?;
        }
        Ok(target)
    }
}

/// Rows of a Parquet file. Null stands for a missing cell and for one that the line omits.
pub(super) struct Rows {
    path: PathBuf,
    schema: Arc<Schema>,
    decoder: JsonCodec,
    gathered: RawBatch,
    writer: ArrowWriter<Target>,
}

impl Rows {
    fn new(target: Target, columns: &[(String, ColumnType)]) -> Result<Self, SinkError> {
        let fields: Vec<Field> = columns.iter().map(|(name, _)| Field::flat(name)).collect();
        let limits = Limits { max_record_bytes: usize::MAX, ..Limits::default() };
        let field = |(name, kind): &(String, ColumnType)| {
            let kind = match kind {
                ColumnType::Text => DataType::Utf8,
                ColumnType::Count => DataType::UInt64,
                ColumnType::Number => DataType::Float64,
            };
            ArrowField::new(name, kind, true)
        };
        let schema = Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>()));
        let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
        let path = target.path().to_owned();
        let writer = ArrowWriter::try_new(target, Arc::clone(&schema), Some(properties));
        let writer = writer.map_err(|error| unencoded(&path, error))?;
        let decoder = JsonCodec::new(&fields, limits).with_unknown(Unknown::Refuse);
        Ok(Self { path, schema, decoder, gathered: RawBatch::new(columns.len()), writer })
    }

    fn append(&mut self, lines: &[u8]) -> Result<(), SinkError> {
        let nowhere = Coordinate { topic: 0, partition: 0, offset: 0, element: 0 };
        for line in lines.split_inclusive(|&byte| byte == b'\n') {
            let decoded = self.decoder.decode(line, nowhere, &mut self.gathered);
            decoded.map_err(|reason| SinkError::ForeignLine { path: self.path.clone(), reason: reason.name() })?;
            if self.gathered.rows() >= GATHERED_ROWS || self.gathered.arena_bytes() >= GATHERED_BYTES {
                self.encode()?;
            }
        }
        Ok(())
    }

    fn encode(&mut self) -> Result<(), SinkError> {
        let rows = std::mem::replace(&mut self.gathered, RawBatch::new(self.schema.fields().len()));
        let fault = "the records do not form columns";
        let batch = columns(&rows, &self.schema).map_err(|_| SinkError::Parquet { path: self.path.clone(), fault })?;
        self.writer.write(&batch).map_err(|error| unencoded(&self.path, error))
    }

    fn finish(mut self) -> Result<Target, SinkError> {
        if self.gathered.rows() > 0 {
            self.encode()?;
        }
        self.writer.into_inner().map_err(|error| unencoded(&self.path, error))
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
                Token::Absent | Token::Null => cells.append_null(),
                Token::Bool(true) => cells.append_value("true"),
                Token::Bool(false) => cells.append_value("false"),
                Token::Text(text) | Token::Number(text) | Token::Structure(text) | Token::Untyped(text) => {
                    cells.append_value(text);
                }
            }
        }
        Arc::new(cells.finish()) as ArrayRef
    });
    RecordBatch::try_new(Arc::clone(schema), arrays.collect())
}

/// The number of a token; none where it is another kind of token.
fn number<T: std::str::FromStr>(token: Token<'_>) -> Option<T> {
    let Token::Number(text) = token else { return None };
    text.parse().ok()
}

/// The library wraps the error of the file; only its kind is kept, for a full disk must be told.
fn unencoded(path: &Path, error: ParquetError) -> SinkError {
    let path = path.to_owned();
    match error {
        ParquetError::External(inner) => match inner.downcast::<io::Error>() {
            Ok(source) => SinkError::Write { path, byte: 0, source: *source },
            Err(_) => SinkError::Parquet { path, fault: "the file could not be written" },
        },
        _ => SinkError::Parquet { path, fault: "the records could not be encoded" },
    }
}

/// The file of each group; `-` for standard output.
pub(super) fn output_paths(path: &Path, names: &[&str]) -> Vec<PathBuf> {
    if path == Path::new("-") {
        return vec![path.to_owned()];
    }
    names.iter().map(|name| Sink::file_of(path, name, names.len() == 1)).collect()
}

/// The header line of a CSV file.
fn header(columns: &[String], separator: u8) -> Vec<u8> {
    let mut writer = csv::WriterBuilder::new().delimiter(separator).from_writer(Vec::new());
    let written = writer.write_record(columns).ok();
    written.and_then(|()| writer.into_inner().ok()).expect("a vector takes every row")
}

/// The place of a release that is made at once.
#[derive(Debug)]
pub struct Replacement {
    path: PathBuf,
    format: Format,
    _claimed: Option<File>,
}

impl Replacement {
    /// The files that a release at `path` would write, for a comparison with those that are read.
    pub fn files(path: &Path) -> Vec<Used> {
        if path == Path::new("-") {
            return Vec::new();
        }
        let Ok((_, unfinished)) = whole::place_and_unfinished(path) else { return Vec::new() };
        vec![Used::file("--output", path), Used::file("the unfinished file of --output", &unfinished)]
    }

    /// Looks at what is there and locks it; nothing changes.
    ///
    /// # Errors
    /// When something else than a regular file is there, and when another process writes it.
    pub fn ready(path: &Path, format: Format) -> Result<Self, SinkError> {
        let claimed = if path == Path::new("-") {
            None
        } else {
            whole::regular(path)?;
            whole::claim_place(path)?
        };
        Ok(Self { path: path.to_owned(), format, _claimed: claimed })
    }

    /// Writes the lines (each with its line break) whole or not at all: a disk that is full leaves what was there before.
    ///
    /// # Errors
    /// When writing fails, or another process has begun a release there; those of `write`, which hands on the lines one after the other.
    pub fn fill<E: From<SinkError>>(
        self,
        columns: &[String],
        write: impl FnOnce(&mut dyn FnMut(&[u8]) -> Result<(), SinkError>) -> Result<(), E>,
    ) -> Result<(), E> {
        let Self { path, format, _claimed: claimed } = self;
        // What was locked is locked once more by what is written.
        drop(claimed);
        let target = Target::open(&path, Visible::AtTheEnd, Access::Shared)?;
        let mut output = Output::of_group(target, format, columns)?;
        write(&mut |lines| output.append(lines))?;
        Ok(output.finish()?.show()?)
    }
}

#[cfg(test)]
#[path = "outputs_tests.rs"]
mod tests;
