//! Violations and their positions, never a value.

use serde::Serialize;
use std::path::Path;

pub(super) struct RecountRequirements {
    /// Minimum subjects of a class in its batch.
    pub crowd: usize,
    /// Maximum lines per subject and batch; 0: unlimited.
    pub max_lines_per_batch: usize,
    /// True with a subject attribute.
    pub counts_subjects: bool,
}

/// Further violations are only counted.
const MAX_LISTED_VIOLATIONS: usize = 100;

/// Violated guarantee at a line or class.
#[derive(Clone, Debug, Serialize)]
pub struct RecountViolation {
    /// Guarantee.
    pub promise: &'static str,
    /// File.
    pub file: String,
    /// Line, from 1; for a class its first.
    pub line: u64,
    /// Attribute, if any.
    pub attribute: Option<String>,
    /// Counted number.
    pub found: Option<u64>,
    /// Required number.
    pub asked: Option<u64>,
}

/// Counts of one group.
#[derive(Clone, Debug, Serialize)]
pub struct GroupClassCounts {
    /// Group name.
    pub group: String,
    /// Number of lines.
    pub lines: u64,
    /// Number of equivalence classes.
    pub classes: u64,
    /// Smallest class of the release.
    pub smallest_class: u64,
    /// Smallest class in a batch, with a lineage.
    pub smallest_class_in_batch: Option<u64>,
}

/// Counts of one series.
#[derive(Clone, Debug, Serialize)]
pub struct SeriesRowCounts {
    /// Series name.
    pub series: String,
    /// Number of rows.
    pub rows: u64,
    /// Buckets with a row; epochs for moments.
    pub buckets: u64,
    /// Smallest contributor set.
    pub smallest_set: u64,
    /// Fewest present subjects, with the original.
    pub fewest_present: Option<u64>,
}

/// Result of a recount.
#[derive(Clone, Debug, Serialize)]
pub struct ReleaseRecount {
    /// True without violations.
    pub kept: bool,
    /// Unit of class sizes: `people` or `lines`.
    pub counted: &'static str,
    /// Required class size: k plus colluders.
    pub crowd: usize,
    /// Lines of all groups.
    pub lines: u64,
    /// Groups in configuration order.
    pub groups: Vec<GroupClassCounts>,
    /// Series in configuration order.
    pub series: Vec<SeriesRowCounts>,
    /// Number of violations.
    pub broken_in_all: u64,
    /// First violations.
    pub broken: Vec<RecountViolation>,
    /// Unchecked guarantees.
    pub not_checked: Vec<&'static str>,
}

#[derive(Default)]
pub(super) struct ViolationLog {
    listed_violations: Vec<RecountViolation>,
    violation_total: u64,
}

impl ViolationLog {
    /// `line` starts at 0.
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
