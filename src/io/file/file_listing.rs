//! Files of a directory or pattern.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use super::apple_health::person_of;
use super::name_pattern::{expand_pattern, is_hidden, retain_files};
use super::{FileFormat, SourceError};
use crate::config;
pub use crate::config::names_several_files;
use sha2::{Digest, Sha256};

const MAX_FILES: usize = 100_000;

/// Returns true if a path can be read repeatedly.
pub fn is_rereadable(path: &Path) -> bool {
    path.is_file() || names_several_files(path)
}

/// Returns the files of a directory or pattern in byte order; `None` for a single file.
///
/// # Errors
/// If there is no file or too many, one is unreadable or has two names, or a name is not UTF-8.
pub fn files_of(path: &Path, format: FileFormat) -> Result<Option<Vec<PathBuf>>, SourceError> {
    let wanted = |file: &Path| extensions(format).contains(&extension(file).as_str());
    if !names_several_files(path) {
        return Ok(None);
    }
    let is_of_directory = path.is_dir();
    let mut files =
        if is_of_directory { retain_files(directory_entries(path, wanted)?)? } else { expand_pattern(path)? };
    if files.is_empty() {
        let extensions = extensions(format).join(", .");
        let path = path.into();
        return Err(if is_of_directory {
            SourceError::NoFileIn { path, extensions }
        } else {
            SourceError::NoMatch { path }
        });
    }
    if files.len() > MAX_FILES {
        return Err(SourceError::TooManyFiles { path: path.into(), limit: MAX_FILES });
    }
    files.sort_unstable_by(|a, b| bytes(a).cmp(bytes(b)));
    // Such names may be displayed alike.
    let is_text = |file: &Path| {
        let found = if is_of_directory { file.file_name().unwrap_or_default() } else { file.as_os_str() };
        found.to_str().is_some()
    };
    if let Some(path) = files.iter().find(|file| !is_text(file)) {
        return Err(SourceError::FileName { path: path.clone() });
    }
    refuse_links_to_one(&files)?;
    refuse_exports_of_one_name(&files, format)?;
    Ok(Some(files))
}

pub(super) fn files_or_self(path: &Path, format: FileFormat) -> Result<Vec<PathBuf>, SourceError> {
    Ok(files_of(path, format)?.unwrap_or_else(|| vec![path.to_owned()]))
}

pub(super) fn files_after(
    first: &[PathBuf],
    more: &[PathBuf],
    format: FileFormat,
) -> Result<Vec<PathBuf>, SourceError> {
    let mut files = first.to_vec();
    for path in more {
        files.extend(files_or_self(path, format)?);
    }
    if files.len() > MAX_FILES {
        return Err(SourceError::TooManyFiles { path: first[0].clone(), limit: MAX_FILES });
    }
    refuse_links_to_one(&files)?;
    refuse_exports_of_one_name(&files, format)?;
    Ok(files.split_off(first.len()))
}

/// A second name would repeat records and inflate the anonymity sets.
fn refuse_links_to_one(files: &[PathBuf]) -> Result<(), SourceError> {
    let mut seen = BTreeMap::new();
    for file in files {
        let found = file.metadata().map_err(|source| SourceError::Open { path: file.clone(), source })?;
        if let Some(first) = seen.insert((found.dev(), found.ino()), file) {
            return Err(SourceError::SameFile { path: file.clone(), first: first.clone() });
        }
    }
    Ok(())
}

/// The records of an export belong to the person of its name.
fn refuse_exports_of_one_name(files: &[PathBuf], format: FileFormat) -> Result<(), SourceError> {
    if format != FileFormat::AppleHealth {
        return Ok(());
    }
    let mut seen = BTreeMap::new();
    for file in files {
        if let Some(first) = seen.insert(person_of(file), file) {
            return Err(SourceError::SamePerson { path: file.clone(), first: first.clone() });
        }
    }
    Ok(())
}

/// Returns the digest of the concatenated `files`; `None` if stopped.
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

/// Returns the file that shows the format of a path.
pub fn format_sample_of(path: &Path) -> PathBuf {
    let known = |file: &Path| {
        [FileFormat::Ndjson, FileFormat::Csv { separator: b',' }, FileFormat::Parquet, FileFormat::AppleHealth]
            .into_iter()
            .any(|format| extensions(format).contains(&extension(file).as_str()))
    };
    let first = path.is_dir().then(|| {
        directory_entries(path, known)
            .ok()?
            .into_iter()
            .filter(|file| !file.is_dir())
            .min_by(|a, b| bytes(a).cmp(bytes(b)))
    });
    first.flatten().unwrap_or_else(|| path.to_owned())
}

fn directory_entries(path: &Path, wanted: impl Fn(&Path) -> bool) -> Result<Vec<PathBuf>, SourceError> {
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

fn extension(file: &Path) -> String {
    let file = if config::has_compressed_extension(file) { &file.with_extension("") } else { file };
    file.extension().map(|e| e.to_string_lossy().to_ascii_lowercase()).unwrap_or_default()
}

fn extensions(format: FileFormat) -> &'static [&'static str] {
    match format {
        FileFormat::Ndjson => &["ndjson", "jsonl", "json"],
        FileFormat::Csv { .. } => &["csv", "tsv"],
        FileFormat::Parquet => &["parquet"],
        FileFormat::AppleHealth => &["xml"],
    }
}

#[cfg(test)]
#[path = "listing_tests.rs"]
mod tests;
