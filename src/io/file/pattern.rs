//! The paths that a pattern of names stands for.

use std::fs::{DirEntry, FileType, Metadata};
use std::io;
use std::path::{Component, Path, PathBuf};

use super::SourceError;

/// How patterns match: letter by letter, `*` within one name, and no hidden file.
const MATCHING: glob::MatchOptions =
    glob::MatchOptions { case_sensitive: true, require_literal_separator: true, require_literal_leading_dot: true };

/// All directories below one.
const ANY_DEPTH: &str = "**";

/// The files, links to files among them, that match `path`, in no order; none twice.
///
/// `*`, `?` and `[ ]` match within one name. `**` stands for any number of directories, none included; there links to directories
/// are not followed, for they lead to the same files again, or in a circle. Names that begin with a dot are matched by a dot alone.
///
/// # Errors
/// When the pattern cannot be read, when a directory cannot be, and when a link leads nowhere.
pub(super) fn matching(path: &Path) -> Result<Vec<PathBuf>, SourceError> {
    let unreadable = || SourceError::Pattern { path: path.into() };
    let parts: Vec<Component<'_>> = path.components().collect();
    // Where we have got to; an empty path is the working directory.
    let mut at = vec![PathBuf::new()];
    for (index, part) in parts.iter().enumerate() {
        if matches!(part, Component::CurDir) {
            continue;
        }
        let is_last = index + 1 == parts.len();
        let text = part.as_os_str().to_str().ok_or_else(unreadable)?;
        let mut next = Vec::new();
        if text == ANY_DEPTH {
            at.iter().try_for_each(|directory| below(directory, &mut next))?;
        } else if matches!(part, Component::Normal(_)) && text.contains(['*', '?', '[']) {
            let pattern = glob::Pattern::new(text).map_err(|_| unreadable())?;
            at.iter().try_for_each(|directory| named_like(directory, &pattern, is_last, &mut next))?;
        } else {
            at.iter().try_for_each(|directory| called(directory, text, &mut next))?;
        }
        // Two `**` may lead to one place.
        next.sort_unstable();
        next.dedup();
        at = next;
    }
    files_among(at)
}

/// Those that are regular files, or lead to one.
///
/// # Errors
/// When one leads nowhere.
pub(super) fn files_among(paths: Vec<PathBuf>) -> Result<Vec<PathBuf>, SourceError> {
    let file = |path: PathBuf| Ok(metadata(&path)?.is_file().then_some(path));
    paths.into_iter().filter_map(|path| file(path).transpose()).collect()
}

fn metadata(path: &Path) -> Result<Metadata, SourceError> {
    path.metadata().map_err(|source| SourceError::Open { path: path.into(), source })
}

/// The directory itself: an empty path is the working directory.
fn here(directory: &Path) -> &Path {
    if directory.as_os_str().is_empty() { Path::new(".") } else { directory }
}

/// What is called `name` in a directory, if it is there.
fn called(directory: &Path, name: &str, found: &mut Vec<PathBuf>) -> Result<(), SourceError> {
    let path = directory.join(name);
    match path.symlink_metadata() {
        Ok(_) => found.push(path),
        Err(error) if is_missing(&error) => {}
        Err(source) => return Err(SourceError::Open { path, source }),
    }
    Ok(())
}

fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotADirectory | io::ErrorKind::NotFound)
}

/// The directory and all directories below it, hidden ones left out.
fn below(directory: &Path, found: &mut Vec<PathBuf>) -> Result<(), SourceError> {
    if !here(directory).is_dir() {
        return Ok(());
    }
    let mut open = vec![directory.to_owned()];
    while let Some(directory) = open.pop() {
        for (path, kind) in entries(&directory)? {
            let hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
            if kind.is_dir() && !hidden {
                open.push(path);
            }
        }
        found.push(directory);
    }
    Ok(())
}

/// What is called like `pattern` in a directory: all of it at the end of a path, else only directories.
fn named_like(
    directory: &Path,
    pattern: &glob::Pattern,
    is_last: bool,
    found: &mut Vec<PathBuf>,
) -> Result<(), SourceError> {
    for (path, _) in entries(directory)? {
        // A name that is not UTF-8 is matched as it is shown: whether it is taken is for the caller to say.
        let matches = path.file_name().is_some_and(|name| pattern.matches_with(&name.to_string_lossy(), MATCHING));
        if matches && (is_last || metadata(&path)?.is_dir()) {
            found.push(path);
        }
    }
    Ok(())
}

/// What is in a directory; nothing in what is none.
fn entries(directory: &Path) -> Result<Vec<(PathBuf, FileType)>, SourceError> {
    let entries = match here(directory).read_dir() {
        Err(error) if is_missing(&error) => return Ok(Vec::new()),
        entries => entries.and_then(|entries| {
            let one = |entry: DirEntry| Ok((directory.join(entry.file_name()), entry.file_type()?));
            entries.map(|entry| entry.and_then(one)).collect()
        }),
    };
    entries.map_err(|source| SourceError::Open { path: here(directory).into(), source })
}

#[cfg(test)]
#[path = "pattern_tests.rs"]
mod tests;
