//! Columns, separator and format of files without a schema.

use std::collections::BTreeSet;
use std::path::Path;

use super::file_listing::files_or_self;
use super::separator::{most_frequent, separator_line};
use super::text_stream::TextStream;
use super::{FileFormat, SourceError, StopFlag, format_detection};

/// Selection of the columns to read.
#[derive(Clone, Copy, Debug)]
pub struct ColumnChoice<'a> {
    /// Columns to read; `None` for all.
    pub wanted: Option<&'a [String]>,
    /// Maximum number of columns in a file.
    pub at_most: usize,
}

impl ColumnChoice<'_> {
    pub(super) fn choose(self, path: &Path, announced: &[String]) -> Result<Vec<String>, SourceError> {
        if let Some(wanted) = self.wanted {
            reject_missing_columns(path, wanted, announced)?;
        }
        let is_wanted = |name: &String| self.wanted.is_none_or(|wanted| wanted.contains(name));
        let chosen: Vec<String> = announced.iter().filter(|name| is_wanted(name)).cloned().collect();
        let mut seen = BTreeSet::new();
        if let Some(repeated) = chosen.iter().find(|name| !seen.insert(*name)) {
            let places: Vec<usize> =
                (1..).zip(announced).filter(|(_, name)| *name == repeated).map(|(place, _)| place).collect();
            let (path, first, second) = (path.into(), places[0], places[1]);
            return Err(if repeated.trim().is_empty() {
                SourceError::NamelessColumns { path, first, second }
            } else {
                SourceError::RepeatedColumn { path, first, second }
            });
        }
        if chosen.len() > self.at_most {
            return Err(SourceError::TooManyColumns { path: path.into(), limit: self.at_most });
        }
        Ok(chosen)
    }
}

pub(super) fn reject_missing_columns(path: &Path, wanted: &[String], there: &[String]) -> Result<(), SourceError> {
    match wanted.iter().find(|name| !there.contains(name)) {
        None => Ok(()),
        Some(name) => {
            let plain = |name: &str| name.trim().to_lowercase();
            let near = there.iter().find(|other| plain(other) == plain(name));
            // A column name of the file is shown only if nearly equal.
            let near = near
                .map_or_else(String::new, |near| format!(", but \"{near}\" (quotes preserve spaces: '\"{near}\"')"));
            Err(SourceError::NoSuchColumn { path: path.into(), column: name.clone(), near })
        }
    }
}

/// Returns the separator of a `sep=` line, else the most frequent of `,` `;` tab `|` in the first line; comma by
/// default.
pub fn separator_of(path: &Path) -> Result<u8, SourceError> {
    if path == Path::new("-") {
        return Ok(b',');
    }
    let comma = FileFormat::Csv { separator: b',' };
    let first = files_or_self(path, comma)?.swap_remove(0);
    let metadata = first.metadata().map_err(|source| SourceError::Open { path: first.clone(), source })?;
    if !metadata.is_file() {
        return Ok(b',');
    }
    let mut stream = TextStream::open(&first, &StopFlag::default())?;
    let mut line = Vec::new();
    let read = stream.take_line(1 << 20, &mut line);
    read.map_err(|source| SourceError::Read { path: path.into(), byte: 0, source })?;
    Ok(separator_line(&line).0.unwrap_or_else(|| most_frequent(&line)))
}

/// Detects the format of a file by its first bytes; NDJSON by default.
///
/// # Errors
/// If the file cannot be read.
pub fn format_by_content(path: &Path) -> Result<FileFormat, SourceError> {
    if !path.is_file() {
        return Ok(FileFormat::Ndjson);
    }
    let mut stream = TextStream::open(path, &StopFlag::default())?;
    let start = stream.fill().map_err(|source| SourceError::Read { path: path.into(), byte: 0, source })?;
    Ok(format_detection::format_of(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_chosen_by_name() {
        let announced = || ["a", "b", "a", "c"].map(str::to_owned).to_vec();
        let choose = |wanted: Option<&[String]>, at_most| {
            ColumnChoice { wanted, at_most }.choose(Path::new("f"), &announced()).map_err(|error| error.to_string())
        };
        assert!(choose(None, 9).unwrap_err().contains("columns 1 and 3"));
        let wanted = ["c".to_owned(), "b".to_owned()];
        assert_eq!(choose(Some(&wanted), 2).unwrap(), ["b", "c"], "in the order of the file");
        assert!(choose(Some(&wanted), 1).unwrap_err().contains("more than 1 columns"));
        assert!(choose(Some(&["d".to_owned()]), 9).unwrap_err().contains("\"d\""));
        let padded =
            reject_missing_columns(Path::new("f"), &["Sex".to_owned()], &["age".to_owned(), " sex".to_owned()]);
        assert!(padded.unwrap_err().to_string().contains("but \" sex\""), "the likely name");
    }
}
