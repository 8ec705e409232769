//! Files that no schema describes: which of their columns are read, and how their fields are separated.

use std::collections::BTreeSet;
use std::path::Path;

use super::listing::all_of;
use super::separator::{most_frequent, separator_line};
use super::stream::Stream;
use super::{Format, SourceError, StopFlag, foreign};

/// Which columns of a file are read.
#[derive(Clone, Copy, Debug)]
pub struct ColumnChoice<'a> {
    /// All of them, or only these.
    pub wanted: Option<&'a [String]>,
    /// A file with more is refused.
    pub at_most: usize,
}

impl ColumnChoice<'_> {
    /// The columns to read of those that a file announces, in the order of the file.
    ///
    /// # Errors
    /// When a wanted column is not there, two columns have one name, or there are more than [`at_most`](Self::at_most).
    pub(super) fn choose(self, path: &Path, announced: &[String]) -> Result<Vec<String>, SourceError> {
        if let Some(wanted) = self.wanted {
            missing(path, wanted, announced)?;
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

/// Refuses wanted columns that are not among those of the file.
pub(super) fn missing(path: &Path, wanted: &[String], there: &[String]) -> Result<(), SourceError> {
    match wanted.iter().find(|name| !there.contains(name)) {
        None => Ok(()),
        Some(name) => {
            let plain = |name: &str| name.trim().to_lowercase();
            let near = there.iter().find(|other| plain(other) == plain(name));
            // A name of the file is shown where the user has given it but for blanks and case.
            let near =
                near.map_or_else(String::new, |near| format!(", but \"{near}\" (quotes keep blanks: '\"{near}\"')"));
            Err(SourceError::NoSuchColumn { path: path.into(), column: name.clone(), near })
        }
    }
}

/// The separator of a CSV file: of `,` `;` tab `|` the one that occurs most often outside quotes in its first line, the
/// comma where none does. An input that cannot be read twice is not opened: comma.
pub fn separator_of(path: &Path) -> Result<u8, SourceError> {
    if path == Path::new("-") {
        return Ok(b',');
    }
    let comma = Format::Csv { separator: b',' };
    let first = all_of(path, comma)?.swap_remove(0);
    let metadata = first.metadata().map_err(|source| SourceError::Open { path: first.clone(), source })?;
    if !metadata.is_file() {
        return Ok(b',');
    }
    let mut stream = Stream::open(&first, &StopFlag::default())?;
    let mut line = Vec::new();
    let read = stream.take_line(1 << 20, &mut line);
    read.map_err(|source| SourceError::Read { path: path.into(), byte: 0, source })?;
    Ok(separator_line(&line).0.unwrap_or_else(|| most_frequent(&line)))
}

/// The format of a file by its first bytes, for one whose name does not tell. What cannot be read twice is NDJSON.
///
/// # Errors
/// When the file cannot be read.
pub fn format_by_content(path: &Path) -> Result<Format, SourceError> {
    if !path.is_file() {
        return Ok(Format::Ndjson);
    }
    let mut stream = Stream::open(path, &StopFlag::default())?;
    let start = stream.fill().map_err(|source| SourceError::Read { path: path.into(), byte: 0, source })?;
    Ok(foreign::format_of(start))
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
        let padded = missing(Path::new("f"), &["Sex".to_owned()], &["age".to_owned(), " sex".to_owned()]);
        assert!(padded.unwrap_err().to_string().contains("but \" sex\""), "the likely name");
    }
}
