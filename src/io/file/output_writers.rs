//! Output files of a release.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::atomic_file::{self, OutputFileMode, UnfinishedFile};
use super::output_columns::OutputColumn;
use super::parquet_writer::ParquetRowWriter;
use super::{FileFormat, SinkError};
use crate::config::{SinkConfig, UsedFile};

const BUFFER_BYTES: usize = 1 << 20;

/// Columns of an attribute group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupColumns {
    /// Name: letters, digits, `-`, `_` and `.`.
    pub name: String,
    /// Columns in line order.
    pub columns: Vec<OutputColumn>,
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

    pub fn of_columns(target: OutputTarget, format: FileFormat, columns: &[OutputColumn]) -> Result<Self, SinkError> {
        match format {
            // The configuration refuses input formats.
            FileFormat::Ndjson | FileFormat::AppleHealth => Self::of_lines(target, b""),
            FileFormat::Csv { separator } => Self::of_lines(target, &header(columns, separator)),
            FileFormat::Parquet => Ok(Self::Rows(Box::new(ParquetRowWriter::new(target, columns)?))),
        }
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

pub(super) fn output_paths(path: &Path, names: &[&str]) -> Vec<PathBuf> {
    if path == Path::new("-") {
        return vec![path.to_owned()];
    }
    names.iter().map(|name| SinkConfig::file_of(path, name, names.len() == 1)).collect()
}

fn header(columns: &[OutputColumn], separator: u8) -> Vec<u8> {
    let mut writer = csv::WriterBuilder::new().delimiter(separator).from_writer(Vec::new());
    let written = writer.write_record(columns.iter().map(|column| &column.name)).ok();
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
        columns: &[OutputColumn],
        write: impl FnOnce(&mut dyn FnMut(&[u8]) -> Result<(), SinkError>) -> Result<(), E>,
    ) -> Result<(), E> {
        let Self { path, format, _claimed: claimed } = self;
        // The new output takes the lock again.
        drop(claimed);
        let target = OutputTarget::open(&path, OutputVisibility::AtEnd, OutputFileMode::Shared)?;
        let mut output = OutputWriter::of_columns(target, format, columns)?;
        write(&mut |lines| output.append(lines))?;
        Ok(output.finish()?.make_visible()?)
    }
}

#[cfg(test)]
#[path = "outputs_tests.rs"]
mod tests;
