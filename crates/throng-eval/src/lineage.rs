//! Reader of the lineage.

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

/// Fragment entry.
#[derive(Deserialize)]
pub struct FragmentLineage {
    /// Source path or topic, partition, and record offset.
    pub source: (String, i32, i64),
    /// Array element, if elements are records.
    pub element: Option<u32>,
    /// Batch sequence number.
    pub batch: u64,
    /// Batch time, milliseconds since 1970.
    pub time: Option<i64>,
    /// Group name.
    pub group: String,
    /// Line in the group's output, from 0.
    pub line: u64,
    /// Keyed subject digest, in hexadecimal.
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

/// Reads fragment entries with line numbers, from 1.
pub fn fragment_entries(
    path: &Path,
) -> Result<impl Iterator<Item = NumberedResult<FragmentLineage>> + use<>, EvaluationError> {
    Ok(read_lineage_lines(path)?.filter_map(|line| match line {
        Ok((at, LineageRecord::Fragment(entry))) => Some(Ok((at, entry))),
        Ok((_, LineageRecord::Series(_))) => None,
        Err(error) => Some(Err(error)),
    }))
}

/// Reads series entries with line numbers, from 1.
pub fn series_entries(
    path: &Path,
) -> Result<impl Iterator<Item = NumberedResult<SeriesEntry>> + use<>, EvaluationError> {
    Ok(read_lineage_lines(path)?.filter_map(|line| match line {
        Ok((_, LineageRecord::Fragment(_))) => None,
        Ok((at, LineageRecord::Series(entry))) => Some(Ok((at, entry))),
        Err(error) => Some(Err(error)),
    }))
}

/// Returns the error of an invalid entry; `line` starts at 1.
pub fn lineage_entry_error(path: &Path, line: u64, why: &str) -> EvaluationError {
    EvaluationError::LineageEntry { path: path.to_owned(), line, why: why.into() }
}

/// Returns a group's entries by line.
///
/// # Errors
///
/// When a line has no entry, or an entry no line.
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

/// Lineage written by `throng run --lineage`.
pub struct Lineage {
    path: PathBuf,
    entries: Vec<(u64, usize, FragmentLineage)>,
}

impl Lineage {
    /// Reads a lineage of groups with these `shapes`.
    pub fn read(path: &Path, shapes: &[GroupShape]) -> Result<Self, EvaluationError> {
        let mut read = Self { path: path.to_owned(), entries: Vec::new() };
        for entry in fragment_entries(path)? {
            let (at, mut entry) = entry?;
            let group = shapes.iter().position(|shape| shape.name == entry.group);
            let group = group.ok_or_else(|| lineage_entry_error(path, at, "its group is not in the configuration"))?;
            // Save memory: only the numbers are used.
            (entry.source.0, entry.group, entry.subject) = (String::new(), String::new(), None);
            read.entries.push((at, group, entry));
        }
        Ok(read)
    }

    /// Returns each line's group, for a single output.
    pub fn groups_by_line(&self) -> BTreeMap<u64, usize> {
        self.entries.iter().map(|(_, group, entry)| (entry.line, *group)).collect()
    }

    /// Sets the origin of every line.
    pub fn assign_origins(&self, original: &OriginalData, groups: &mut [ReleasedGroup]) -> Result<(), EvaluationError> {
        let mut origins: Vec<Vec<Option<LineOrigin>>> = groups.iter().map(|group| vec![None; group.lines]).collect();
        let mut entries = vec![0_u64; groups.len()];
        for (number, group, entry) in &self.entries {
            let refused = |why: &str| lineage_entry_error(&self.path, *number, why);
            // 0: whole message.
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
