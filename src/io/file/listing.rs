//! The files behind a path that names several: a directory, or a pattern.

use std::path::{Path, PathBuf};

use super::{Format, SourceError};
use crate::config;

/// More files are refused: their names are held, and kept in the state.
const MOST_FILES: usize = 100_000;

/// How patterns match: letter by letter, `*` within one name, and no hidden file.
const MATCHING: glob::MatchOptions =
    glob::MatchOptions { case_sensitive: true, require_literal_separator: true, require_literal_leading_dot: true };

/// Whether a path names several files: a directory, or a pattern with `*`, `?` or `[` that is no file itself.
#[must_use]
pub fn is_of_several(path: &Path) -> bool {
    path != Path::new("-") && (path.is_dir() || config::is_pattern(path) && !path.exists())
}

/// Whether the records of a path can be read again and again: a regular file, or several.
#[must_use]
pub fn is_at_rest(path: &Path) -> bool {
    path.is_file() || is_of_several(path)
}

/// The files of a path in the order of their names, byte by byte; none where it names one file.
///
/// Of a directory these are the files with an extension of the format, its own folders left out; of a pattern those that match.
///
/// # Errors
/// When there is none, or too many, or when a directory cannot be read.
pub(super) fn files_of(path: &Path, format: Format) -> Result<Option<Vec<PathBuf>>, SourceError> {
    if !is_of_several(path) {
        return Ok(None);
    }
    let is_of_directory = path.is_dir();
    let files = if is_of_directory {
        let wanted = |file: &Path| extensions(format).contains(&extension(file).as_str());
        in_directory(path, wanted)?
    } else {
        matching(path)?
    };
    if files.is_empty() {
        let extensions = extensions(format).join(", .");
        let path = path.into();
        return Err(if is_of_directory {
            SourceError::NoFileIn { path, extensions }
        } else {
            SourceError::NoMatch { path }
        });
    }
    if files.len() > MOST_FILES {
        return Err(SourceError::TooManyFiles { path: path.into(), limit: MOST_FILES });
    }
    Ok(Some(files))
}

/// The file by which the format of a path is told: the path itself, or of a directory the first file with an extension of any format.
#[must_use]
pub fn telling(path: &Path) -> PathBuf {
    let known = |file: &Path| {
        [Format::Ndjson, Format::Csv { separator: b',' }, Format::Parquet]
            .into_iter()
            .any(|format| extensions(format).contains(&extension(file).as_str()))
    };
    let first = path.is_dir().then(|| in_directory(path, known).ok()?.into_iter().next());
    first.flatten().unwrap_or_else(|| path.to_owned())
}

fn in_directory(path: &Path, wanted: impl Fn(&Path) -> bool) -> Result<Vec<PathBuf>, SourceError> {
    let fault = |source| SourceError::Open { path: path.into(), source };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(path).map_err(fault)? {
        let entry = entry.map_err(fault)?;
        let hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
        if !hidden && wanted(&entry.path()) && entry.path().is_file() {
            files.push(entry.path());
        }
    }
    Ok(sorted(files))
}

fn matching(path: &Path) -> Result<Vec<PathBuf>, SourceError> {
    let pattern = path.to_str().ok_or_else(|| SourceError::Pattern { path: path.into() })?;
    let found = glob::glob_with(pattern, MATCHING).map_err(|_| SourceError::Pattern { path: path.into() })?;
    let mut files = Vec::new();
    for file in found {
        let file = file.map_err(|error| SourceError::Open { path: error.path().into(), source: error.into() })?;
        if file.is_file() {
            files.push(file);
        }
    }
    Ok(sorted(files))
}

fn sorted(mut files: Vec<PathBuf>) -> Vec<PathBuf> {
    files.sort_by(|a, b| a.as_os_str().as_encoded_bytes().cmp(b.as_os_str().as_encoded_bytes()));
    files.dedup();
    files
}

/// The extension of a file in small letters, that of a compression left out.
fn extension(file: &Path) -> String {
    let file = if config::is_named_compressed(file) { &file.with_extension("") } else { file };
    file.extension().map(|e| e.to_string_lossy().to_ascii_lowercase()).unwrap_or_default()
}

fn extensions(format: Format) -> &'static [&'static str] {
    match format {
        Format::Ndjson => &["ndjson", "jsonl", "json"],
        Format::Csv { .. } => &["csv", "tsv"],
        Format::Parquet => &["parquet"],
    }
}
