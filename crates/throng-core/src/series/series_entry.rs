//! Entries of series in the lineage file, for the custodian only.

use serde::{Deserialize, Serialize};

/// Event of a series. The events of one batch appear in the order of this list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", rename_all_fields = "snake_case", deny_unknown_fields)]
pub enum SeriesEntry {
    /// A cohort was formed.
    Cohort {
        /// Cohort number, ascending in the order of creation.
        number: u32,
        /// Name of the cohort in output rows.
        token: String,
        /// Labels of the stratum.
        stratum: Vec<String>,
        /// Keyed digests of the members of each atom, in hexadecimal digits.
        atoms: Vec<Vec<String>>,
        /// Last 16 bits of the digests of members erased before this lineage began.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        erased: Vec<u16>,
        /// True if an earlier run formed the cohort.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_older: bool,
    },
    /// A contributor set was locked.
    Set {
        /// Name of the series.
        series: String,
        /// Signal of the set; none for the set of the moments.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signal: Option<String>,
        /// Slot of the cycle; 0 without a cycle.
        slot: usize,
        /// Number of the cohort.
        cohort: u32,
        /// Positions of the atoms in the cohort.
        atoms: Vec<usize>,
    },
    /// A row combines the members of several cohorts (`pooled = true`).
    Pooled {
        /// Name of the series.
        series: String,
        /// Line in the output of the series, from 0, without the header.
        line: u64,
        /// Numbers of the cohorts.
        cohorts: Vec<u32>,
    },
    /// A record contributes nothing: its bucket was closed, its time is ahead of the clock, or capacity was
    /// exhausted.
    Dropped {
        /// Name of the series.
        series: String,
        /// Number of the record in the source, from 0.
        offset: i64,
        /// Index of the array element, if elements are the records.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        element: Option<u32>,
    },
    /// Rows of a bucket were published.
    Rows {
        /// Name of the series.
        series: String,
        /// Start of the bucket or epoch, in milliseconds since 1970.
        bucket: i64,
        /// True for rows of moments, which cover an epoch.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_of_epoch: bool,
        /// Number of rows.
        rows: u64,
        /// SHA-256 of the rows as JSON lines, in hexadecimal digits.
        sha256: String,
    },
    /// Buckets were closed.
    Closed {
        /// Name of the series.
        series: String,
        /// End of the last closed bucket, in milliseconds since 1970; all earlier buckets are closed as well.
        until: i64,
        /// True if an earlier run closed them.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_older: bool,
    },
    /// A cohort was retired and publishes no later bucket.
    Retired {
        /// Number of the cohort.
        cohort: u32,
    },
}
