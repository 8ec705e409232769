//! What is broken, and where: files, line numbers and counts, never a value.

use serde::Serialize;
use std::path::Path;

/// What the configuration asks for.
pub(super) struct Asked {
    /// People of a class in its batch.
    pub crowd: usize,
    /// Lines of a person in a batch; 0: any number.
    pub lines: usize,
    /// The schema names people.
    pub people: bool,
}

/// Findings that are listed one by one; the others are counted.
const LISTED: usize = 100;

/// A promise that a line, or a class, breaks.
#[derive(Clone, Debug, Serialize)]
pub struct Broken {
    /// What is promised, in words.
    pub promise: &'static str,
    /// The file.
    pub file: String,
    /// The line, from 1; of a class its first one.
    pub line: u64,
    /// The attribute, where it is one's.
    pub attribute: Option<String>,
    /// What was counted, where something was.
    pub found: Option<u64>,
    /// What is asked for.
    pub asked: Option<u64>,
}

/// One group as it was counted.
#[derive(Clone, Debug, Serialize)]
pub struct GroupCount {
    /// The group.
    pub group: String,
    /// Its lines.
    pub lines: u64,
    /// Classes of its quasi cells.
    pub classes: u64,
    /// People (or lines) of the smallest one, over the whole release.
    pub smallest_class: u64,
    /// The same inside a batch; none without a lineage.
    pub smallest_class_in_batch: Option<u64>,
}

/// One series as it was counted.
#[derive(Clone, Debug, Serialize)]
pub struct SeriesCount {
    /// The series.
    pub series: String,
    /// Its rows.
    pub rows: u64,
    /// Buckets with a row; of a series with moments epochs.
    pub buckets: u64,
    /// People of the smallest contributor set.
    pub smallest_set: u64,
    /// The fewest people that were present in a published bucket or epoch; none without the original.
    pub fewest_present: Option<u64>,
}

/// A release as an auditor finds it.
#[derive(Clone, Debug, Serialize)]
pub struct Recount {
    /// Nothing that was checked is broken.
    pub kept: bool,
    /// What crowds are counted in: `people` or `lines`.
    pub counted: &'static str,
    /// The crowd of the configuration: k and the colluders.
    pub crowd: usize,
    /// Lines of all groups.
    pub lines: u64,
    /// The groups, in the order of the configuration.
    pub groups: Vec<GroupCount>,
    /// The series, in the order of the configuration.
    pub series: Vec<SeriesCount>,
    /// Promises that are broken, as often as they are.
    pub broken_in_all: u64,
    /// The first of them.
    pub broken: Vec<Broken>,
    /// What could not be checked, in words.
    pub not_checked: Vec<&'static str>,
}

/// Findings as they are made.
#[derive(Default)]
pub(super) struct Findings {
    first: Vec<Broken>,
    in_all: u64,
}

impl Findings {
    /// Notes that `promise` is broken at a line (from 0).
    pub(super) fn note(
        &mut self,
        promise: &'static str,
        file: &Path,
        line: usize,
        attribute: Option<&str>,
        counts: Option<[usize; 2]>,
    ) {
        self.in_all += 1;
        if self.first.len() < LISTED {
            self.first.push(Broken {
                promise,
                file: file.display().to_string(),
                line: line as u64 + 1,
                attribute: attribute.map(str::to_owned),
                found: counts.map(|[found, _]| found as u64),
                asked: counts.map(|[_, asked]| asked as u64),
            });
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.in_all == 0
    }

    pub(super) fn in_all(&self) -> u64 {
        self.in_all
    }

    pub(super) fn into_first(self) -> Vec<Broken> {
        self.first
    }
}
