//! The paths that a pattern of names stands for.

use std::collections::BTreeSet;
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
pub(super) fn matching(path: &Path) -> Result<Vec<PathBuf>, SourceError> {
    let unreadable = || SourceError::Pattern { path: path.into() };
    let parts: Vec<Component<'_>> = path.components().collect();
    // Where we have got to; an empty path is the working directory.
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
        // Two `**` may lead to one place.
        let mut next = BTreeSet::new();
        for directory in at {
            match text {
                ANY_DEPTH => below(directory, &mut next)?,
                _ if is_pattern => named_like(&directory, &pattern, is_last, &mut next)?,
                name => next.extend(there(directory.join(name))?),
            }
        }
        at = next;
    }
    files_among(at)
}

/// Those that are regular files, or lead to one.
pub(super) fn files_among(paths: impl IntoIterator<Item = PathBuf>) -> Result<Vec<PathBuf>, SourceError> {
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

/// The path, if anything is there.
fn there(path: PathBuf) -> Result<Option<PathBuf>, SourceError> {
    match path.symlink_metadata() {
        Ok(_) => Ok(Some(path)),
        Err(error) if is_missing(&error) => Ok(None),
        Err(source) => Err(SourceError::Open { path, source }),
    }
}

fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotADirectory | io::ErrorKind::NotFound)
}

/// The directory and all directories below it, hidden ones left out.
fn below(directory: PathBuf, found: &mut BTreeSet<PathBuf>) -> Result<(), SourceError> {
    if !here(&directory).is_dir() {
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

/// Whether a name begins with a dot.
pub(super) fn is_hidden(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."))
}

/// What is called like `pattern` in a directory: all of it at the end of a path, else only directories.
fn named_like(
    directory: &Path,
    pattern: &glob::Pattern,
    is_last: bool,
    found: &mut BTreeSet<PathBuf>,
) -> Result<(), SourceError> {
    for (path, _) in entries(directory)? {
        // A name that is not UTF-8 is matched as it is shown: whether it is taken is for the caller to say.
        let matches = path.file_name().is_some_and(|name| pattern.matches_with(&name.to_string_lossy(), MATCHING));
        if matches && (is_last || metadata(&path)?.is_dir()) {
            found.insert(path);
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
