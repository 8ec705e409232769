//! Parquet output: a directory of segments, one a commit.
//!
//! A Parquet file cannot be continued, so every sync writes one file under a temporary name, brings it to the disk
//! and renames it. The durable length of the directory is its number of segments.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{ArrayRef, StringBuilder};
use arrow::datatypes::{DataType, Field as ArrowField, Schema};
use arrow::record_batch::RecordBatch;
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;

use super::SinkError;
use super::append::{lock, sync_directory};
use super::fingerprint::fingerprint;
use crate::codec::{Decoder, Encoding, Field, Limits, Unknown, decoder};
use crate::records::raw::{Coordinate, RawBatch, Token};

/// The segments of one group. Every column is text; null stands for a missing cell and for one that the line omits.
#[derive(Debug)]
pub(super) struct Segments {
    directory: PathBuf,
    /// Holds the lock.
    opened: File,
    schema: Arc<Schema>,
    decoder: Box<dyn Decoder>,
    pending: RawBatch,
    written: u64,
    broken: bool,
}

impl Segments {
    /// Opens the directory with its first `durable` segments, locks it for as long as it is open, and removes all later
    /// segments.
    pub fn open(directory: &Path, columns: &[String], durable: u64) -> Result<Self, SinkError> {
        if durable == 0 {
            fs::create_dir_all(directory).map_err(|source| SinkError::Open { path: directory.into(), source })?;
            if let Some(parent) = directory.parent() {
                sync_directory(parent)?;
            }
        }
        let opened = File::open(directory).map_err(|source| unopened(directory, durable, source))?;
        lock(&opened, directory)?;
        let fields: Vec<Field> = columns.iter().map(|name| Field::flat(name)).collect();
        let limits = Limits { max_record_bytes: usize::MAX, ..Limits::default() };
        let schema =
            Schema::new(columns.iter().map(|name| ArrowField::new(name, DataType::Utf8, true)).collect::<Vec<_>>());
        let mut opened = Self {
            directory: directory.into(),
            opened,
            schema: Arc::new(schema),
            decoder: decoder(Encoding::Json, &fields, limits, Unknown::Refuse),
            pending: RawBatch::new(columns.len()),
            written: 0,
            broken: false,
        };
        opened.truncate_to(durable)?;
        Ok(opened)
    }

    pub fn path(&self) -> &Path {
        &self.directory
    }

    /// Adds the records of complete NDJSON lines.
    pub fn append(&mut self, lines: &[u8]) -> Result<(), SinkError> {
        if self.broken {
            return Err(SinkError::Broken { path: self.directory.clone() });
        }
        let nowhere = Coordinate { topic: 0, partition: 0, offset: 0, element: 0 };
        for line in lines.split_inclusive(|&byte| byte == b'\n') {
            self.decoder.decode(line, nowhere, &mut self.pending).map_err(|reason| {
                self.broken = true;
                SinkError::ForeignLine { path: self.directory.clone(), reason: reason.name() }
            })?;
        }
        Ok(())
    }

    /// Writes the pending records, if any, as the next segment; gives the number of segments.
    pub fn sync(&mut self) -> Result<u64, SinkError> {
        if self.broken {
            return Err(SinkError::Broken { path: self.directory.clone() });
        }
        if self.pending.rows() > 0 {
            // Until the segment is in its place nothing is known of it.
            self.broken = true;
            self.write_segment()?;
            self.broken = false;
            self.written += 1;
            self.pending = RawBatch::new(self.schema.fields().len());
        }
        Ok(self.written)
    }

    /// By what the directory, synced, is known again.
    pub fn fingerprint(&self) -> Result<u64, SinkError> {
        let fault = |source| SinkError::Unreadable { path: self.directory.clone(), source };
        fingerprint_of(&self.opened, &self.directory, self.written).map_err(fault)
    }

    /// Forgets pending records and removes every segment after the first `segments`.
    pub fn truncate_to(&mut self, segments: u64) -> Result<(), SinkError> {
        let fault = |source| unopened(&self.directory, segments, source);
        let mut kept = BTreeSet::new();
        for entry in fs::read_dir(&self.directory).map_err(fault)? {
            let entry = entry.map_err(fault)?;
            let name = entry.file_name();
            let Some((number, complete)) = name.to_str().and_then(parse_name) else { continue };
            if complete && number < segments {
                kept.insert(number);
            } else {
                fs::remove_file(entry.path()).map_err(fault)?;
            }
        }
        if let Some(missing) = (0..segments).find(|number| !kept.contains(number)) {
            return Err(SinkError::Missing { path: self.directory.join(name_of(missing)), durable: segments });
        }
        sync_directory(&self.directory)?;
        self.pending = RawBatch::new(self.schema.fields().len());
        self.written = segments;
        self.broken = false;
        Ok(())
    }

    fn write_segment(&self) -> Result<(), SinkError> {
        let path = self.directory.join(name_of(self.written));
        let temporary = self.directory.join(format!("{}{TEMPORARY}", name_of(self.written)));
        let failed = |source| SinkError::Write { path: path.clone(), byte: 0, source };
        let refused = |error: parquet::errors::ParquetError| match error {
            // The library wraps the error of the file; only its kind is kept, for a full disk must be told.
            parquet::errors::ParquetError::External(inner) => match inner.downcast::<std::io::Error>() {
                Ok(source) => failed(*source),
                Err(_) => SinkError::Parquet { path: path.clone(), fault: "the file could not be written" },
            },
            _ => SinkError::Parquet { path: path.clone(), fault: "the records could not be encoded" },
        };
        let batch = self
            .columns()
            .map_err(|_| SinkError::Parquet { path: path.clone(), fault: "the records do not form columns" })?;
        let file = File::create(&temporary).map_err(failed)?;
        let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
        let mut writer = ArrowWriter::try_new(file, self.schema.clone(), Some(properties)).map_err(refused)?;
        writer.write(&batch).map_err(refused)?;
        let file = writer.into_inner().map_err(refused)?;
        file.sync_all().map_err(|source| SinkError::Sync { path: temporary.clone(), source })?;
        fs::rename(&temporary, &path).map_err(failed)?;
        sync_directory(&self.directory)
    }

    fn columns(&self) -> Result<RecordBatch, arrow::error::ArrowError> {
        let rows = self.pending.rows();
        let arrays = (0..self.schema.fields().len()).map(|column| {
            let mut cells = StringBuilder::new();
            for row in 0..rows {
                match self.pending.token(row, column) {
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
        RecordBatch::try_new(self.schema.clone(), arrays.collect())
    }
}

fn unopened(directory: &Path, durable: u64, source: std::io::Error) -> SinkError {
    match source.kind() {
        std::io::ErrorKind::NotFound if durable > 0 => SinkError::Missing { path: directory.into(), durable },
        _ => SinkError::Open { path: directory.into(), source },
    }
}

/// The fingerprint of a directory with this many segments: that of the last one.
pub(super) fn fingerprint_of(opened: &File, directory: &Path, segments: u64) -> std::io::Result<u64> {
    let Some(last) = segments.checked_sub(1) else { return fingerprint(opened, 0) };
    let segment = File::open(directory.join(name_of(last)))?;
    let length = segment.metadata()?.len();
    fingerprint(&segment, length)
}

/// Refuses a directory that holds anything but segments, finished or not: it would be removed. None is fine.
pub(super) fn only_segments(directory: &Path) -> Result<(), SinkError> {
    let fault = |source| SinkError::Open { path: directory.into(), source };
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => {
            return Err(SinkError::NotDirectory { path: directory.into() });
        }
        entries => entries.map_err(fault)?,
    };
    for entry in entries {
        let entry = entry.map_err(fault)?;
        let name = entry.file_name();
        let ours = name.to_str().and_then(parse_name).is_some() && entry.file_type().map_err(fault)?.is_file();
        if !ours {
            return Err(SinkError::NotOurs { path: directory.into(), entry: name.to_string_lossy().into_owned() });
        }
    }
    Ok(())
}

/// Removes a directory of segments, if it is there. Whatever else is in it stays, and is an error.
pub(super) fn remove_segments(directory: &Path) -> std::io::Result<()> {
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        if entry.file_name().to_str().and_then(parse_name).is_some() && entry.file_type()?.is_file() {
            fs::remove_file(entry.path())?;
        }
    }
    fs::remove_dir(directory)
}

const PREFIX: &str = "segment-";
const SUFFIX: &str = ".parquet";
const TEMPORARY: &str = ".partial";

fn name_of(number: u64) -> String {
    format!("{PREFIX}{number:08}{SUFFIX}")
}

/// The number in the name of a segment, and whether the segment is complete; none for a foreign file.
fn parse_name(name: &str) -> Option<(u64, bool)> {
    let (name, complete) = match name.strip_suffix(TEMPORARY) {
        Some(name) => (name, false),
        None => (name, true),
    };
    let digits = name.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?;
    let number = digits.parse().ok()?;
    (name_of(number) == name).then_some((number, complete))
}

#[cfg(test)]
#[path = "segments_tests.rs"]
mod tests;
