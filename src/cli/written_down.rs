//! Files that a command reads as one table, and how their records are written down: as asked, or by its name and first line.

use super::outcome::Failure;
use crate::config;
use crate::io::file::{Format, format_by_content, separator_of, telling};
use crate::io::table::TableError;
use anyhow::{Context, anyhow};
use std::path::{Path, PathBuf};
use throng_risk::counting::CodeWriter;

/// Everything that is read as one table, in its order.
pub fn inputs<'a>(first: &'a Path, more: &'a [PathBuf]) -> impl Iterator<Item = &'a Path> {
    std::iter::once(first).chain(more.iter().map(PathBuf::as_path))
}

/// Refuses standard input beside other names, and a directory for temporary files that takes none.
///
/// # Errors
/// [`Failure::Usage`].
pub fn check_inputs(first: &Path, more: &[PathBuf], temp: Option<&Path>) -> Result<(), Failure> {
    if !more.is_empty() && inputs(first, more).any(|path| path == Path::new("-")) {
        return Err(Failure::Usage(anyhow!("-: standard input is read alone; leave the other names out")));
    }
    let Some(directory) = temp else { return Ok(()) };
    let unfit =
        || format!("--temp: no file can be made in {}: name a directory that can be written", directory.display());
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

/// A separator as the command line gives it.
pub fn separator(text: &str) -> Result<u8, String> {
    match text {
        "tab" | "\\t" => Ok(b'\t'),
        _ => match text.as_bytes() {
            [one] if one.is_ascii() && !matches!(one, b'"' | b'\n' | b'\r' | 0) => Ok(*one),
            _ => Err("give one ASCII character that is no quote, or tab".to_owned()),
        },
    }
}

/// A size as the command line gives it.
pub fn size(text: &str) -> Result<u64, String> {
    config::parse_size(text).ok_or("give a size such as 500MiB or 4GiB".to_owned())
}

/// The format of a file: `asked`, or by its extension, or by its content; the separator of CSV likewise, or by its first line.
pub fn format_of(path: &Path, asked: Option<FormatArg>, separator: Option<u8>) -> Result<Format, TableError> {
    let telling = telling(path);
    let named = asked.or_else(|| match config::Format::named_by(&telling)? {
        config::Format::Csv => Some(FormatArg::Csv),
        config::Format::Parquet => Some(FormatArg::Parquet),
        // No extension names a format of messages.
        _ => Some(FormatArg::Json),
    });
    Ok(match named {
        Some(FormatArg::Csv) => Format::Csv { separator: separator.map_or_else(|| separator_of(path), Ok)? },
        Some(FormatArg::Json) => Format::Ndjson,
        Some(FormatArg::Parquet) => Format::Parquet,
        None => match (format_by_content(&telling)?, separator) {
            (Format::Csv { .. }, Some(separator)) => Format::Csv { separator },
            (format, _) => format,
        },
    })
}
