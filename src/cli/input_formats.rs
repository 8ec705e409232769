//! Input files that form one table, and their format: as requested, by file name, or by content.

use super::outcome::Failure;
use crate::config;
use crate::io::file::{FileFormat, format_by_content, format_sample_of, separator_of};
use crate::io::table::TableReadError;
use anyhow::{Context, anyhow};
use std::path::{Path, PathBuf};
use throng_risk::counting::CodeWriter;

/// Lists all files of the table, in order.
pub fn input_paths<'a>(first: &'a Path, more: &'a [PathBuf]) -> impl Iterator<Item = &'a Path> {
    std::iter::once(first).chain(more.iter().map(PathBuf::as_path))
}

/// Refuses standard input combined with other files, and an unusable directory for temporary files.
///
/// # Errors
/// [`Failure::Usage`].
pub fn check_inputs(first: &Path, more: &[PathBuf], temp: Option<&Path>) -> Result<(), Failure> {
    if !more.is_empty() && input_paths(first, more).any(|path| path == Path::new("-")) {
        return Err(Failure::Usage(anyhow!("-: standard input cannot be combined with other files (remove them)")));
    }
    let Some(directory) = temp else { return Ok(()) };
    let unfit = || format!("--temp: cannot create a file in {}: name a writable directory", directory.display());
    CodeWriter::new(Some(directory), 0).with_context(unfit).map(drop).map_err(Failure::Usage)
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
#[allow(missing_docs, reason = "the formats by their names")]
pub enum FormatArg {
    Csv,
    #[value(alias = "ndjson")]
    Json,
    Parquet,
}

/// Parses a separator from the command line.
pub fn separator_argument(text: &str) -> Result<u8, String> {
    match text {
        "tab" | "\\t" => Ok(b'\t'),
        _ => match text.as_bytes() {
            [one] if one.is_ascii() && !matches!(one, b'"' | b'\n' | b'\r' | 0) => Ok(*one),
            _ => Err("give one ASCII character other than a quote, or tab".to_owned()),
        },
    }
}

/// Parses a size from the command line.
pub fn size_argument(text: &str) -> Result<u64, String> {
    config::parse_size(text).ok_or("give a size such as 500MiB or 4GiB".to_owned())
}

/// Determines the format of a file: `asked`, by its extension, or by its content. The CSV separator is found the same
/// way, or from the first line.
pub fn detect_record_format(
    path: &Path,
    asked: Option<FormatArg>,
    separator: Option<u8>,
) -> Result<FileFormat, TableReadError> {
    let telling = format_sample_of(path);
    let named = asked.or_else(|| match config::RecordFormat::from_known_extension(&telling)? {
        config::RecordFormat::Csv => Some(FormatArg::Csv),
        config::RecordFormat::Parquet => Some(FormatArg::Parquet),
        // No file extension names a message format.
        _ => Some(FormatArg::Json),
    });
    Ok(match named {
        Some(FormatArg::Csv) => FileFormat::Csv { separator: separator.map_or_else(|| separator_of(path), Ok)? },
        Some(FormatArg::Json) => FileFormat::Ndjson,
        Some(FormatArg::Parquet) => FileFormat::Parquet,
        None => match (format_by_content(&telling)?, separator) {
            (FileFormat::Csv { .. }, Some(separator)) => FileFormat::Csv { separator },
            (format, _) => format,
        },
    })
}
