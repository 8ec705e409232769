//! The files behind a path that names several: a directory, or a pattern.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use super::pattern::{files_among, is_hidden, matching};
use super::{Format, SourceError};
use crate::config;
pub use crate::config::is_of_several;
use sha2::{Digest, Sha256};

/// More files are refused: their names are held.
const MOST_FILES: usize = 100_000;

/// Whether the records of a path can be read again and again: a regular file, or several.
pub fn is_at_rest(path: &Path) -> bool {
    path.is_file() || is_of_several(path)
}

/// The files of a path in the order of their names, byte by byte; none where it names one file.
///
/// Of a directory these are the files with an extension of the format, its own folders left out; of a pattern those that match.
///
/// # Errors
/// When there is none, or too many, when a directory cannot be read or a link leads nowhere, when two names are of one file, and when a
/// name is not UTF-8.
pub fn files_of(path: &Path, format: Format) -> Result<Option<Vec<PathBuf>>, SourceError> {
    let wanted = |file: &Path| extensions(format).contains(&extension(file).as_str());
    if !is_of_several(path) {
        return Ok(None);
    }
    let is_of_directory = path.is_dir();
    let mut files = if is_of_directory { files_among(named_in(path, wanted)?)? } else { matching(path)? };
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
    files.sort_unstable_by(|a, b| bytes(a).cmp(bytes(b)));
    // Two that are shown alike could not be told apart.
    let is_text = |file: &Path| {
        let found = if is_of_directory { file.file_name().unwrap_or_default() } else { file.as_os_str() };
        found.to_str().is_some()
    };
    if let Some(path) = files.iter().find(|file| !is_text(file)) {
        return Err(SourceError::FileName { path: path.clone() });
    }
    refuse_links_to_one(&files)?;
    Ok(Some(files))
}

/// The files of a path, of one file that one.
pub(super) fn all_of(path: &Path, format: Format) -> Result<Vec<PathBuf>, SourceError> {
    Ok(files_of(path, format)?.unwrap_or_else(|| vec![path.to_owned()]))
}

/// The files of further paths, path after path as they are given, to be read behind `first`.
///
/// # Errors
/// As [`files_of`]; when a path is not there, and when two names are of one file, among `first` too.
pub(super) fn behind(first: &[PathBuf], more: &[PathBuf], format: Format) -> Result<Vec<PathBuf>, SourceError> {
    let mut files = first.to_vec();
    for path in more {
        files.extend(all_of(path, format)?);
    }
    if files.len() > MOST_FILES {
        return Err(SourceError::TooManyFiles { path: first[0].clone(), limit: MOST_FILES });
    }
    refuse_links_to_one(&files)?;
    Ok(files.split_off(first.len()))
}

/// Refuses two names of one file, by symbolic or hard links: its records would be read twice, and a person would be a crowd of her own.
fn refuse_links_to_one(files: &[PathBuf]) -> Result<(), SourceError> {
    let mut seen = BTreeMap::new();
    for file in files {
        let found = file.metadata().map_err(|source| SourceError::Open { path: file.clone(), source })?;
        if let Some(first) = seen.insert((found.dev(), found.ino()), file) {
            return Err(SourceError::OneFile { path: file.clone(), first: first.clone() });
        }
    }
    Ok(())
}

/// A digest of all bytes of `files`, one after the other; none where `stop` came before.
pub fn content_digest_of(files: &[PathBuf], stop: &AtomicBool) -> Result<Option<[u8; 32]>, SourceError> {
    let mut digest = Sha256::new();
    let mut bytes = vec![0; 1 << 20];
    for file in files {
        let mut open = File::open(file).map_err(|source| SourceError::Open { path: file.clone(), source })?;
        loop {
            match open.read(&mut bytes) {
                _ if stop.load(Ordering::Acquire) => return Ok(None),
                Ok(0) => break,
                Ok(count) => digest.update(&bytes[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => return Err(SourceError::Open { path: file.clone(), source }),
            }
        }
    }
    Ok(Some(digest.finalize().into()))
}

/// The file by which the format of a path is told: the path itself, or of a directory the first file with an extension of any format.
pub fn telling(path: &Path) -> PathBuf {
    let known = |file: &Path| {
        [Format::Ndjson, Format::Csv { separator: b',' }, Format::Parquet]
            .into_iter()
            .any(|format| extensions(format).contains(&extension(file).as_str()))
    };
    let first = path.is_dir().then(|| {
        named_in(path, known).ok()?.into_iter().filter(|file| !file.is_dir()).min_by(|a, b| bytes(a).cmp(bytes(b)))
    });
    first.flatten().unwrap_or_else(|| path.to_owned())
}

/// What is called so in a directory, hidden names left out.
fn named_in(path: &Path, wanted: impl Fn(&Path) -> bool) -> Result<Vec<PathBuf>, SourceError> {
    let fault = |source| SourceError::Open { path: path.into(), source };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(path).map_err(fault)? {
        let path = entry.map_err(fault)?.path();
        if !is_hidden(&path) && wanted(&path) {
            files.push(path);
        }
    }
    Ok(files)
}

fn bytes(path: &Path) -> &[u8] {
    path.as_os_str().as_encoded_bytes()
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

#[cfg(test)]
#[path = "listing_tests.rs"]
mod tests;
