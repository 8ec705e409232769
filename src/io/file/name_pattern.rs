//! Expansion of a file name pattern.

use std::collections::BTreeSet;
use std::fs::{DirEntry, FileType, Metadata};
use std::io;
use std::path::{Component, Path, PathBuf};

use super::SourceError;

/// `*` stays within one name and excludes hidden files.
const MATCH_OPTIONS: glob::MatchOptions =
    glob::MatchOptions { case_sensitive: true, require_literal_separator: true, require_literal_leading_dot: true };

const ANY_DEPTH: &str = "**";

/// Returns the files that match `path`, without duplicates. `**` matches any number of directories, without links,
/// which may form a cycle.
pub(super) fn expand_pattern(path: &Path) -> Result<Vec<PathBuf>, SourceError> {
    let unreadable = || SourceError::Pattern { path: path.into() };
    let parts: Vec<Component<'_>> = path.components().collect();
    // An empty path is the working directory.
    let mut at = BTreeSet::from([PathBuf::new()]);
    for (index, part) in parts.iter().enumerate() {
        if matches!(part, Component::CurDir) {
            continue;
        }
        let is_last = index + 1 == parts.len();
        let text = part.as_os_str().to_str().ok_or_else(unreadable)?;
        let is_pattern = matches!(part, Component::Normal(_)) && text.contains(['*', '?', '[']);
        let pattern = glob::Pattern::new(if is_pattern && text != ANY_DEPTH { text } else { "" });
        let pattern = pattern.map_err(|_| unreadable())?;
        // Two `**` may reach the same directory.
        let mut next = BTreeSet::new();
        for directory in at {
            match text {
                ANY_DEPTH => add_directories_below(directory, &mut next)?,
                _ if is_pattern => add_matching_entries(&directory, &pattern, is_last, &mut next)?,
                name => next.extend(existing_path(directory.join(name))?),
            }
        }
        at = next;
    }
    retain_files(at)
}

pub(super) fn retain_files(paths: impl IntoIterator<Item = PathBuf>) -> Result<Vec<PathBuf>, SourceError> {
    let file = |path: PathBuf| Ok(metadata(&path)?.is_file().then_some(path));
    paths.into_iter().filter_map(|path| file(path).transpose()).collect()
}

fn metadata(path: &Path) -> Result<Metadata, SourceError> {
    path.metadata().map_err(|source| SourceError::Open { path: path.into(), source })
}

fn directory_or_current(directory: &Path) -> &Path {
    if directory.as_os_str().is_empty() { Path::new(".") } else { directory }
}

fn existing_path(path: PathBuf) -> Result<Option<PathBuf>, SourceError> {
    match path.symlink_metadata() {
        Ok(_) => Ok(Some(path)),
        Err(error) if is_missing(&error) => Ok(None),
        Err(source) => Err(SourceError::Open { path, source }),
    }
}

fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotADirectory | io::ErrorKind::NotFound)
}

fn add_directories_below(directory: PathBuf, found: &mut BTreeSet<PathBuf>) -> Result<(), SourceError> {
    if !directory_or_current(&directory).is_dir() {
        return Ok(());
    }
    let mut open = vec![directory];
    while let Some(directory) = open.pop() {
        let inner = entries(&directory)?.into_iter().filter(|(_, kind)| kind.is_dir()).map(|(path, _)| path);
        open.extend(inner.filter(|path| !is_hidden(path)));
        found.insert(directory);
    }
    Ok(())
}

pub(super) fn is_hidden(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."))
}

fn add_matching_entries(
    directory: &Path,
    pattern: &glob::Pattern,
    is_last: bool,
    found: &mut BTreeSet<PathBuf>,
) -> Result<(), SourceError> {
    for (path, _) in entries(directory)? {
        let matches = path.file_name().is_some_and(|name| pattern.matches_with(&name.to_string_lossy(), MATCH_OPTIONS));
        if matches && (is_last || metadata(&path)?.is_dir()) {
            found.insert(path);
        }
    }
    Ok(())
}

fn entries(directory: &Path) -> Result<Vec<(PathBuf, FileType)>, SourceError> {
    let entries = match directory_or_current(directory).read_dir() {
        Err(error) if is_missing(&error) => return Ok(Vec::new()),
        entries => entries.and_then(|entries| {
            let one = |entry: DirEntry| Ok((directory.join(entry.file_name()), entry.file_type()?));
            entries.map(|entry| entry.and_then(one)).collect()
        }),
    };
    entries.map_err(|source| SourceError::Open { path: directory_or_current(directory).into(), source })
}

#[cfg(test)]
#[path = "pattern_tests.rs"]
mod tests;
