//! Which line came from which record: the custodian's file, read back.

use super::error::EvaluationError;
use super::original::Original;
use super::released::{Origin, ReleasedGroup};
use crate::anonymity::planner::GroupShape;
use crate::io::file::lineage::SeriesEntry;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

/// One line of the file.
#[derive(Deserialize)]
pub(super) struct Entry {
    pub source: (String, i32, i64),
    pub element: Option<u32>,
    pub batch: u64,
    /// Stamp of the batch, milliseconds since 1970.
    pub time: Option<i64>,
    pub group: String,
    /// Line of the group's output.
    pub line: u64,
    pub subject: Option<String>,
}

/// One line of either kind.
enum Line {
    Fragment(Entry),
    Series(SeriesEntry),
}

type Numbered<T> = Result<(u64, T), EvaluationError>;

/// Reads all lines of a lineage, with their numbers from 1.
fn lines(path: &Path) -> Result<impl Iterator<Item = Numbered<Line>> + use<>, EvaluationError> {
    let path = path.to_owned();
    let lineage = |path: &Path, source| EvaluationError::Lineage { path: path.to_owned(), source };
    let lines = BufReader::new(File::open(&path).map_err(|source| lineage(&path, source))?).lines();
    Ok((1..).zip(lines).map(move |(at, line)| {
        let line = line.map_err(|source| lineage(&path, source))?;
        let fragment = serde_json::from_str(&line).map(Line::Fragment);
        let entry = fragment.or_else(|_| serde_json::from_str(&line).map(Line::Series));
        Ok((at, entry.map_err(|_| refused(&path, at, "it is not spelled like one"))?))
    }))
}

/// Reads the entries of fragments, with the numbers of their lines from 1.
pub(super) fn entries(path: &Path) -> Result<impl Iterator<Item = Numbered<Entry>> + use<>, EvaluationError> {
    Ok(lines(path)?.filter_map(|line| match line {
        Ok((at, Line::Fragment(entry))) => Some(Ok((at, entry))),
        Ok((_, Line::Series(_))) => None,
        Err(error) => Some(Err(error)),
    }))
}

/// Reads the entries of series, with the numbers of their lines from 1.
pub(super) fn series_entries(
    path: &Path,
) -> Result<impl Iterator<Item = Numbered<SeriesEntry>> + use<>, EvaluationError> {
    Ok(lines(path)?.filter_map(|line| match line {
        Ok((_, Line::Fragment(_))) => None,
        Ok((at, Line::Series(entry))) => Some(Ok((at, entry))),
        Err(error) => Some(Err(error)),
    }))
}

pub(super) fn refused(path: &Path, line: u64, why: &str) -> EvaluationError {
    EvaluationError::LineageEntry { path: path.to_owned(), line, why: why.into() }
}

/// Returns the entries of a group by line, where each line has one.
pub(super) fn complete<T>(
    path: &Path,
    group: &str,
    lines: Vec<Option<T>>,
    entries: u64,
) -> Result<Vec<T>, EvaluationError> {
    let count = lines.len() as u64;
    let all: Option<Vec<T>> = lines.into_iter().collect();
    all.filter(|_| entries == count).ok_or_else(|| EvaluationError::OtherLineage {
        path: path.to_owned(),
        group: group.to_owned(),
        entries,
        lines: count,
    })
}

/// The lineage that `throng run --lineage` wrote beside a release.
pub struct Lineage {
    path: PathBuf,
    /// Each with its line, from 1, and the number of its group.
    entries: Vec<(u64, usize, Entry)>,
}

impl Lineage {
    /// Reads the lineage of a release in groups of these `shapes`.
    pub fn read(path: &Path, shapes: &[GroupShape]) -> Result<Self, EvaluationError> {
        let mut read = Self { path: path.to_owned(), entries: Vec::new() };
        for entry in entries(path)? {
            let (at, mut entry) = entry?;
            let group = shapes.iter().position(|shape| shape.name == entry.group);
            let group = group.ok_or_else(|| refused(path, at, "a group that the configuration has not"))?;
            // Numbers are kept, texts are not.
            (entry.source.0, entry.group, entry.subject) = (String::new(), String::new(), None);
            read.entries.push((at, group, entry));
        }
        Ok(read)
    }

    /// Which group each line is of, where all groups leave as one output.
    pub fn groups(&self) -> BTreeMap<u64, usize> {
        self.entries.iter().map(|(_, group, entry)| (entry.line, *group)).collect()
    }

    /// Notes the origin of every line.
    pub fn note(&self, original: &Original, groups: &mut [ReleasedGroup]) -> Result<(), EvaluationError> {
        let mut origins: Vec<Vec<Option<Origin>>> = groups.iter().map(|group| vec![None; group.lines]).collect();
        let mut entries = vec![0_u64; groups.len()];
        for (number, group, entry) in &self.entries {
            let refused = |why: &str| refused(&self.path, *number, why);
            // 0 where the record is all of its message, else the index of the element and 1.
            let element = entry.element.map_or(0, |index| index.saturating_add(1));
            let row = original.row_at(entry.source.2, element);
            let row = row.ok_or_else(|| refused("a record that the original has not"))?;
            let place = groups[*group].line_at(entry.line).and_then(|line| origins[*group].get_mut(line));
            let place = place.ok_or_else(|| refused("a line that the release has not, or that is another group's"))?;
            *place = Some(Origin { row: row as u32, batch: entry.batch });
            entries[*group] += 1;
        }
        for ((group, origins), entries) in groups.iter_mut().zip(origins).zip(entries) {
            group.origin = Some(complete(&self.path, &group.name, origins, entries)?);
        }
        Ok(())
    }
}
