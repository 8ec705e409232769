//! Which line came from which record: the custodian's file, read back.

use super::error::EvaluationError;
use super::original::Original;
use super::released::{Origin, ReleasedGroup};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

#[derive(Deserialize)]
struct Entry {
    source: (String, i32, i64),
    batch: u64,
    group: String,
    line: u64,
}

/// Reads the lineage that `throng run --lineage` wrote beside a release, and notes the origin of every line.
///
/// # Errors
/// When it cannot be read, or is not of this release and this original.
pub fn read(path: &Path, original: &Original, groups: &mut [ReleasedGroup]) -> Result<(), EvaluationError> {
    let lineage = |source| EvaluationError::Lineage { path: path.to_owned(), source };
    let numbers: BTreeMap<String, usize> = groups.iter().enumerate().map(|(n, g)| (g.name.clone(), n)).collect();
    let mut origins: Vec<Vec<Option<Origin>>> = groups.iter().map(|group| vec![None; group.lines]).collect();
    let mut entries = vec![0_u64; groups.len()];
    for (number, line) in (1..).zip(BufReader::new(File::open(path).map_err(lineage)?).lines()) {
        let refused =
            |why: &str| EvaluationError::LineageEntry { path: path.to_owned(), line: number, why: why.into() };
        let line = line.map_err(lineage)?;
        let entry: Entry = serde_json::from_str(&line).map_err(|_| refused("it is not spelled like one"))?;
        let group = *numbers.get(&entry.group).ok_or_else(|| refused("a group that the configuration has not"))?;
        let row = original.row_at(entry.source.2).ok_or_else(|| refused("a record that the original has not"))?;
        let place = usize::try_from(entry.line).ok().and_then(|line| origins[group].get_mut(line));
        let place = place.ok_or_else(|| refused("a line that the release has not"))?;
        *place = Some(Origin { row: row as u32, batch: entry.batch });
        entries[group] += 1;
    }
    for ((group, origins), entries) in groups.iter_mut().zip(origins).zip(entries) {
        let all: Option<Vec<Origin>> = origins.into_iter().collect();
        let all = all.filter(|all| all.len() as u64 == entries).ok_or_else(|| EvaluationError::OtherLineage {
            path: path.to_owned(),
            group: group.name.clone(),
            entries,
            lines: group.lines as u64,
        })?;
        group.origin = Some(all);
    }
    Ok(())
}
