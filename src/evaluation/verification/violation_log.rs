//! Violations and their positions: files, line numbers and counts, never a value.

use serde::Serialize;
use std::path::Path;

/// Requirements of the configuration.
pub(super) struct RecountRequirements {
    /// Minimum number of subjects of a class in its batch.
    pub crowd: usize,
    /// Maximum number of lines of a subject in a batch; 0: unlimited.
    pub max_lines_per_batch: usize,
    /// True if the schema has a subject attribute.
    pub counts_subjects: bool,
}

/// Maximum number of listed violations; further ones are only counted.
const MAX_LISTED_VIOLATIONS: usize = 100;

/// Guarantee that a line or a class violates.
#[derive(Clone, Debug, Serialize)]
pub struct RecountViolation {
    /// The guarantee, as text.
    pub promise: &'static str,
    /// File of the violation.
    pub file: String,
    /// Line number, from 1; for a class, its first line.
    pub line: u64,
    /// Name of the attribute, if the violation concerns one.
    pub attribute: Option<String>,
    /// Counted number, if there is one.
    pub found: Option<u64>,
    /// Required number.
    pub asked: Option<u64>,
}

/// Counts of one group.
#[derive(Clone, Debug, Serialize)]
pub struct GroupClassCounts {
    /// Name of the group.
    pub group: String,
    /// Number of lines.
    pub lines: u64,
    /// Number of equivalence classes, by the quasi-identifier cells.
    pub classes: u64,
    /// Subjects (or lines) of the smallest class, over the whole release.
    pub smallest_class: u64,
    /// Size of the smallest class inside a batch; none without a lineage.
    pub smallest_class_in_batch: Option<u64>,
}

/// Counts of one series.
#[derive(Clone, Debug, Serialize)]
pub struct SeriesRowCounts {
    /// Name of the series.
    pub series: String,
    /// Number of rows.
    pub rows: u64,
    /// Number of buckets with a row; number of epochs for a series with moments.
    pub buckets: u64,
    /// Number of subjects in the smallest contributor set.
    pub smallest_set: u64,
    /// Fewest subjects present in a published bucket or epoch; none without the original.
    pub fewest_present: Option<u64>,
}

/// Result of a recount.
#[derive(Clone, Debug, Serialize)]
pub struct ReleaseRecount {
    /// True if no checked guarantee is violated.
    pub kept: bool,
    /// Unit of class sizes: `subjects` or `max_lines_per_batch`.
    pub counted: &'static str,
    /// Required class size: k plus the colluders.
    pub crowd: usize,
    /// Number of lines of all groups.
    pub lines: u64,
    /// Groups, in the order of the configuration.
    pub groups: Vec<GroupClassCounts>,
    /// Series, in the order of the configuration.
    pub series: Vec<SeriesRowCounts>,
    /// Total number of violations.
    pub broken_in_all: u64,
    /// The first violations.
    pub broken: Vec<RecountViolation>,
    /// Guarantees that could not be checked, as text.
    pub not_checked: Vec<&'static str>,
}

/// Collector of violations.
#[derive(Default)]
pub(super) struct ViolationLog {
    listed_violations: Vec<RecountViolation>,
    violation_total: u64,
}

impl ViolationLog {
    /// Records a violation of `promise` at a line (from 0).
    pub(super) fn add_violation(
        &mut self,
        promise: &'static str,
        file: &Path,
        line: usize,
        attribute: Option<&str>,
        counts: Option<[usize; 2]>,
    ) {
        self.violation_total += 1;
        if self.listed_violations.len() < MAX_LISTED_VIOLATIONS {
            self.listed_violations.push(RecountViolation {
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
        self.violation_total == 0
    }

    pub(super) fn violation_count(&self) -> u64 {
        self.violation_total
    }

    pub(super) fn into_listed(self) -> Vec<RecountViolation> {
        self.listed_violations
    }
}
