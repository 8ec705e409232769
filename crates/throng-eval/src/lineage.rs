//! Reader of the lineage, the custodian's file that maps each released line to its record.

use super::error::EvaluationError;
use super::original::OriginalData;
use crate::released_lines::{LineOrigin, ReleasedGroup};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use throng_core::plan::GroupShape;
use throng_core::series::SeriesEntry;

/// One fragment entry of the file.
#[derive(Deserialize)]
pub struct FragmentLineage {
    /// Path or topic of the source, partition, and offset of the record.
    pub source: (String, i32, i64),
    /// Index of the array element, if elements are the records.
    pub element: Option<u32>,
    /// Sequence number of the batch.
    pub batch: u64,
    /// Timestamp of the batch, milliseconds since 1970.
    pub time: Option<i64>,
    /// Name of the group.
    pub group: String,
    /// Line number in the output of the group, from 0.
    pub line: u64,
    /// Keyed digest of the subject, in hexadecimal digits.
    pub subject: Option<String>,
}

enum LineageRecord {
    Fragment(FragmentLineage),
    Series(SeriesEntry),
}

type NumberedResult<T> = Result<(u64, T), EvaluationError>;

fn read_lineage_lines(
    path: &Path,
) -> Result<impl Iterator<Item = NumberedResult<LineageRecord>> + use<>, EvaluationError> {
    let path = path.to_owned();
    let lineage = |path: &Path, source| EvaluationError::Lineage { path: path.to_owned(), source };
    let lines = BufReader::new(File::open(&path).map_err(|source| lineage(&path, source))?).lines();
    Ok((1..).zip(lines).map(move |(at, line)| {
        let line = line.map_err(|source| lineage(&path, source))?;
        let fragment = serde_json::from_str(&line).map(LineageRecord::Fragment);
        let entry = fragment.or_else(|_| serde_json::from_str(&line).map(LineageRecord::Series));
        Ok((at, entry.map_err(|_| lineage_entry_error(&path, at, "unknown format"))?))
    }))
}

/// Reads the fragment entries, with their line numbers from 1.
pub fn fragment_entries(
    path: &Path,
) -> Result<impl Iterator<Item = NumberedResult<FragmentLineage>> + use<>, EvaluationError> {
    Ok(read_lineage_lines(path)?.filter_map(|line| match line {
        Ok((at, LineageRecord::Fragment(entry))) => Some(Ok((at, entry))),
        Ok((_, LineageRecord::Series(_))) => None,
        Err(error) => Some(Err(error)),
    }))
}

/// Reads the series entries, with their line numbers from 1.
pub fn series_entries(
    path: &Path,
) -> Result<impl Iterator<Item = NumberedResult<SeriesEntry>> + use<>, EvaluationError> {
    Ok(read_lineage_lines(path)?.filter_map(|line| match line {
        Ok((_, LineageRecord::Fragment(_))) => None,
        Ok((at, LineageRecord::Series(entry))) => Some(Ok((at, entry))),
        Err(error) => Some(Err(error)),
    }))
}

/// Returns the error of an invalid entry at `line`, from 1.
pub fn lineage_entry_error(path: &Path, line: u64, why: &str) -> EvaluationError {
    EvaluationError::LineageEntry { path: path.to_owned(), line, why: why.into() }
}

/// Returns the entries of a group by line.
///
/// # Errors
/// When a line has no entry, or when there are more entries than lines.
pub fn complete_lineage<T>(
    path: &Path,
    group: &str,
    lines: Vec<Option<T>>,
    entries: u64,
) -> Result<Vec<T>, EvaluationError> {
    let count = lines.len() as u64;
    let all: Option<Vec<T>> = lines.into_iter().collect();
    all.filter(|_| entries == count).ok_or_else(|| EvaluationError::LineageMismatch {
        path: path.to_owned(),
        group: group.to_owned(),
        entries,
        lines: count,
    })
}

/// Lineage that `throng run --lineage` wrote with a release.
pub struct Lineage {
    path: PathBuf,
    /// Each entry with its line number, from 1, and the index of its group.
    entries: Vec<(u64, usize, FragmentLineage)>,
}

impl Lineage {
    /// Reads the lineage of a release with groups of these `shapes`.
    pub fn read(path: &Path, shapes: &[GroupShape]) -> Result<Self, EvaluationError> {
        let mut read = Self { path: path.to_owned(), entries: Vec::new() };
        for entry in fragment_entries(path)? {
            let (at, mut entry) = entry?;
            let group = shapes.iter().position(|shape| shape.name == entry.group);
            let group = group.ok_or_else(|| lineage_entry_error(path, at, "its group is not in the configuration"))?;
            // Drop the texts to save memory; only the numbers are used.
            (entry.source.0, entry.group, entry.subject) = (String::new(), String::new(), None);
            read.entries.push((at, group, entry));
        }
        Ok(read)
    }

    /// Returns the group of each line, for a release with all groups in one output.
    pub fn groups_by_line(&self) -> BTreeMap<u64, usize> {
        self.entries.iter().map(|(_, group, entry)| (entry.line, *group)).collect()
    }

    /// Sets the origin of every line.
    pub fn assign_origins(&self, original: &OriginalData, groups: &mut [ReleasedGroup]) -> Result<(), EvaluationError> {
        let mut origins: Vec<Vec<Option<LineOrigin>>> = groups.iter().map(|group| vec![None; group.lines]).collect();
        let mut entries = vec![0_u64; groups.len()];
        for (number, group, entry) in &self.entries {
            let refused = |why: &str| lineage_entry_error(&self.path, *number, why);
            // 0 if the record is the whole message, else the index of the element plus 1.
            let element = entry.element.map_or(0, |index| index.saturating_add(1));
            let row = original.row_at(entry.source.2, element);
            let row = row.ok_or_else(|| refused("its record is not in the original"))?;
            let place = groups[*group].line_at(entry.line).and_then(|line| origins[*group].get_mut(line));
            let place = place.ok_or_else(|| refused("its line is not in the release, or is of another group"))?;
            *place = Some(LineOrigin { row: row as u32, batch: entry.batch });
            entries[*group] += 1;
        }
        for ((group, origins), entries) in groups.iter_mut().zip(origins).zip(entries) {
            group.origin = Some(complete_lineage(&self.path, &group.name, origins, entries)?);
        }
        Ok(())
    }
}
