//! Input files of one table, and their format.

use super::outcome::Failure;
use crate::config;
use crate::io::file::{FileFormat, format_by_content, format_sample_of, separator_of};
use crate::io::table::TableReadError;
use anyhow::{Context, anyhow};
use std::path::{Path, PathBuf};
use throng_risk::counting::CodeWriter;

/// Lists all files in order.
pub fn input_paths<'a>(first: &'a Path, more: &'a [PathBuf]) -> impl Iterator<Item = &'a Path> {
    std::iter::once(first).chain(more.iter().map(PathBuf::as_path))
}

/// Refuses standard input with other files, and an unusable temporary directory.
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
    #[value(name = "apple_health")]
    AppleHealth,
}

/// Parses a separator.
pub fn separator_argument(text: &str) -> Result<u8, String> {
    match text {
        "tab" | "\\t" => Ok(b'\t'),
        _ => match text.as_bytes() {
            [one] if one.is_ascii() && !matches!(one, b'"' | b'\n' | b'\r' | 0) => Ok(*one),
            _ => Err("give one ASCII character other than a quote, or tab".to_owned()),
        },
    }
}

/// Parses a size.
pub fn size_argument(text: &str) -> Result<u64, String> {
    config::parse_size(text).ok_or("give a size such as 500MiB or 4GiB".to_owned())
}

/// Determines format and CSV separator: as asked, by extension, or by content.
pub fn detect_record_format(
    path: &Path,
    asked: Option<FormatArg>,
    separator: Option<u8>,
) -> Result<FileFormat, TableReadError> {
    let telling = format_sample_of(path);
    let named = asked.or_else(|| match config::RecordFormat::from_known_extension(&telling)? {
        config::RecordFormat::Csv => Some(FormatArg::Csv),
        config::RecordFormat::Parquet => Some(FormatArg::Parquet),
        config::RecordFormat::AppleHealth => Some(FormatArg::AppleHealth),
        // No extension names a message format.
        _ => Some(FormatArg::Json),
    });
    Ok(match named {
        Some(FormatArg::Csv) => FileFormat::Csv { separator: separator.map_or_else(|| separator_of(path), Ok)? },
        Some(FormatArg::Json) => FileFormat::Ndjson,
        Some(FormatArg::Parquet) => FileFormat::Parquet,
        Some(FormatArg::AppleHealth) => FileFormat::AppleHealth,
        None => match (format_by_content(&telling)?, separator) {
            (FileFormat::Csv { .. }, Some(separator)) => FileFormat::Csv { separator },
            (format, _) => format,
        },
    })
}
