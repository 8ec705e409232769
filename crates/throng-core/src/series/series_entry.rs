//! Series entries of the lineage file.

use serde::{Deserialize, Serialize};

/// Series event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", rename_all_fields = "snake_case", deny_unknown_fields)]
pub enum SeriesEntry {
    /// Formation of a cohort.
    Cohort {
        /// Cohort number, ascending by creation.
        number: u32,
        /// Cohort name in rows.
        token: String,
        /// Stratum labels.
        stratum: Vec<String>,
        /// Member digests by atom, hexadecimal.
        atoms: Vec<Vec<String>>,
        /// Last 16 digest bits of members erased earlier.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        erased: Vec<u16>,
        /// True if from an earlier run.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_older: bool,
    },
    /// Locked contributor set.
    Set {
        /// Series name.
        series: String,
        /// Signal; none for moments.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signal: Option<String>,
        /// Cycle slot; 0 without a cycle.
        slot: usize,
        /// Cohort number.
        cohort: u32,
        /// Atom indices in the cohort.
        atoms: Vec<usize>,
    },
    /// Row over several cohorts (`pooled = true`).
    Pooled {
        /// Series name.
        series: String,
        /// Output line from 0, without header.
        line: u64,
        /// Cohort numbers.
        cohorts: Vec<u32>,
    },
    /// Late, early or over-limit record.
    Dropped {
        /// Series name.
        series: String,
        /// Record number in the source, from 0.
        offset: i64,
        /// Array index, if elements are records.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        element: Option<u32>,
    },
    /// Published rows of a bucket.
    Rows {
        /// Series name.
        series: String,
        /// Bucket or epoch, ms since 1970.
        bucket: i64,
        /// True for moments.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_of_epoch: bool,
        /// Number of rows.
        rows: u64,
        /// SHA-256 of the JSON lines, hexadecimal.
        sha256: String,
    },
    /// Closed buckets.
    Closed {
        /// Series name.
        series: String,
        /// End of the last closed bucket, ms since 1970.
        until: i64,
        /// True if from an earlier run.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_older: bool,
    },
    /// Retirement of a cohort.
    Retired {
        /// Cohort number.
        cohort: u32,
    },
}
