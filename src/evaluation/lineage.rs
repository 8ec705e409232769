//! Which line came from which record: the custodian's file, read back.

use super::error::EvaluationError;
use super::original::Original;
use super::released::{Origin, ReleasedGroup};
use crate::anonymity::planner::GroupShape;
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

/// One line of the file.
#[derive(Deserialize)]
struct Spelled {
    source: (IgnoredAny, i32, i64),
    element: Option<u32>,
    batch: u64,
    group: String,
    line: u64,
}

/// What it says.
struct Entry {
    offset: i64,
    /// 0 where the record is all of its message, else the index of the element and 1.
    element: u32,
    batch: u64,
    /// Number of the group.
    group: usize,
    /// Line of the group's output.
    line: u64,
}

/// The lineage that `throng run --lineage` wrote beside a release.
pub struct Lineage {
    path: PathBuf,
    entries: Vec<Entry>,
}

impl Lineage {
    /// Reads the lineage of a release in groups of these `shapes`.
    ///
    /// # Errors
    /// When it cannot be read, or names another group.
    pub fn read(path: &Path, shapes: &[GroupShape]) -> Result<Self, EvaluationError> {
        let lineage = |source| EvaluationError::Lineage { path: path.to_owned(), source };
        let mut read = Self { path: path.to_owned(), entries: Vec::new() };
        for line in BufReader::new(File::open(path).map_err(lineage)?).lines() {
            let line = line.map_err(lineage)?;
            let refused = |why: &str| read.refused(read.entries.len(), why);
            let entry: Spelled = serde_json::from_str(&line).map_err(|_| refused("it is not spelled like one"))?;
            let group = shapes.iter().position(|shape| shape.name == entry.group);
            let group = group.ok_or_else(|| refused("a group that the configuration has not"))?;
            let (offset, element) = (entry.source.2, entry.element.map_or(0, |index| index.saturating_add(1)));
            read.entries.push(Entry { offset, element, batch: entry.batch, group, line: entry.line });
        }
        Ok(read)
    }

    fn refused(&self, entry: usize, why: &str) -> EvaluationError {
        EvaluationError::LineageEntry { path: self.path.clone(), line: entry as u64 + 1, why: why.into() }
    }

    /// Which group each line is of, where all groups leave as one output.
    #[must_use]
    pub fn groups(&self) -> BTreeMap<u64, usize> {
        self.entries.iter().map(|entry| (entry.line, entry.group)).collect()
    }

    /// Notes the origin of every line.
    ///
    /// # Errors
    /// When it is not of this release and this original.
    pub fn note(&self, original: &Original, groups: &mut [ReleasedGroup]) -> Result<(), EvaluationError> {
        let mut origins: Vec<Vec<Option<Origin>>> = groups.iter().map(|group| vec![None; group.lines]).collect();
        let mut entries = vec![0_u64; groups.len()];
        for (number, entry) in self.entries.iter().enumerate() {
            let refused = |why: &str| self.refused(number, why);
            let row = original.row_at(entry.offset, entry.element);
            let row = row.ok_or_else(|| refused("a record that the original has not"))?;
            let place = groups[entry.group].line_at(entry.line).and_then(|line| origins[entry.group].get_mut(line));
            let place = place.ok_or_else(|| refused("a line that the release has not, or that is another group's"))?;
            *place = Some(Origin { row: row as u32, batch: entry.batch });
            entries[entry.group] += 1;
        }
        for ((group, origins), entries) in groups.iter_mut().zip(origins).zip(entries) {
            let all: Option<Vec<Origin>> = origins.into_iter().collect();
            let all = all.filter(|all| all.len() as u64 == entries).ok_or_else(|| EvaluationError::OtherLineage {
                path: self.path.clone(),
                group: group.name.clone(),
                entries,
                lines: group.lines as u64,
            })?;
            group.origin = Some(all);
        }
        Ok(())
    }
}
