//! Request and report of an audit. `docs/evaluation.md` documents every JSON key of the report.

use crate::counting::{BackendChoice, DeviceUsage};
use crate::exposure::{ClassRiskSummary, ReachStep};
use crate::identifiers::{IdentifierReason, SafeHarborCategory};
use crate::linking::SubjectLinkReport;
use crate::qid::{QidSearchProgress, QidStrategy};
use std::collections::BTreeMap;
use std::time::Duration;

/// Treatment of rare single values before the search (docs/internals/methods.md §3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SingletonPolicy {
    /// Keeps them: a column with one rare value is a quasi-identifier.
    #[default]
    Include,
    /// Replaces every cell with `*` if its value alone has support below k.
    Mask,
}

/// Request of an audit.
#[derive(Clone, Debug)]
pub struct AuditRequest {
    /// Name of the input in the report.
    pub input: String,
    /// Required support, at least 2.
    pub k: u32,
    /// Treatment of rare single values.
    pub singletons: SingletonPolicy,
    /// Search strategy.
    pub strategy: QidStrategy,
    /// Number of threads, at least one.
    pub threads: usize,
    /// Backend for counting.
    pub backend: BackendChoice,
    /// Time limit for search and measurement together.
    pub budget: Option<Duration>,
    /// Memory limit in bytes, in addition to the table. For a table in files, it covers counting, witnesses and
    /// search.
    pub memory: Option<u64>,
    /// Number of records to list by score; 0 for no list.
    pub rows: usize,
    /// Duration of reading in seconds, for the report.
    pub read_seconds: f64,
}

/// Current step of an audit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuditStep {
    /// Search, with its progress.
    Searching(QidSearchProgress),
    /// Measurement: sets checked, and number of sets of this kind.
    Measuring(usize, usize),
}

/// Report of an audit.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct AuditReport {
    /// Name of the input, as given by the caller.
    pub input: String,
    /// Number of judged records.
    pub rows: u64,
    /// Number of subjects; null without a subject column.
    pub subjects: Option<u64>,
    /// Name of the subject column.
    pub subject: Option<String>,
    /// Likely subject column, if none was given: its name suggests a subject ID, and its values repeat.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub likely_subject: Option<String>,
    /// Required support.
    pub k: u32,
    /// Treatment of rare single values.
    pub singletons: SingletonPolicy,
    /// Search strategy.
    pub strategy: &'static str,
    /// Backend that counted: `cpu` or `cuda`.
    pub backend: &'static str,
    /// Use of the device, if one counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<DeviceUsage>,
    /// Number of search threads.
    pub threads: usize,
    /// False if the search ran out of time or memory.
    ///
    /// The lists then hold only proved sets. Treat a set as unsafe if it is not a subset of a maximal non-QID.
    pub complete: bool,
    /// Columns that identify a subject alone, sorted. They are not searched.
    pub standalone_identifiers: Vec<String>,
    /// Records that can be linked to subjects with known attributes, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link: Option<SubjectLinkReport>,
    /// Smallest sets of columns in which some combination of values has support in [1, k − 1].
    pub minimal_qids: Vec<Vec<String>>,
    /// Largest sets of columns in which none has.
    pub maximal_non_qids: Vec<Vec<String>>,
    /// Number of counted sets.
    pub evaluated: u64,
    /// Sets decided without counting.
    pub pruned: u64,
    /// Seconds from the start of reading to this report.
    pub seconds: f64,
    /// Durations of the three steps.
    pub timings: AuditTimings,
    /// Risk over all searched columns together.
    pub risk: RiskReport,
    /// Columns by the records that they put at risk, then by their involvement. Columns that were not searched come
    /// last.
    pub attributes: Vec<AttributeReport>,
    /// First minimal QIDs in canonical order, with measurements; `qids_measured` is their number.
    pub qids: Vec<QidReport>,
    /// Number of measured minimal QIDs.
    pub qids_measured: u64,
    /// Records with the highest risk, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub riskiest: Option<RiskiestReport>,
    /// Strongest inferences from one value to another, strongest first.
    ///
    /// Each ordered pair of searched columns contributes its strongest inference that is supported by at least k
    /// subjects. The list is limited in length.
    pub inferences: Vec<InferenceReport>,
    /// Number of column pairs that were checked for inferences.
    pub inference_pairs: u64,
    /// Number of all column pairs.
    pub inference_pairs_of: u64,
    /// Cells masked before the search (`singletons = mask`).
    pub masked_cells: u64,
    /// Records left out because they have no subject.
    pub without_subject: u64,
    /// Records left out because they could not be read, by reason.
    pub unreadable: BTreeMap<&'static str, u64>,
    /// Columns that were declared but occur in no record.
    pub absent: Vec<String>,
    /// Columns with array cells. Each array was judged as one text; its elements were not judged.
    pub arrays: Vec<String>,
    /// Cells in columns that the schema does not contain. These cells are not judged.
    pub unknown_cells: u64,
    /// Notes that a reader needs to interpret the numbers.
    pub notes: Vec<String>,
}

/// Durations of the three steps, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct AuditTimings {
    /// Reading and encoding.
    pub read: f64,
    /// Search for quasi-identifiers.
    pub search: f64,
    /// Measurement of the records and subjects below k.
    pub measure: f64,
}

/// Risk over all searched columns, and the reach of smaller sets.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct RiskReport {
    /// Number of searched columns.
    pub attributes: u64,
    /// Risk over all searched columns.
    #[serde(flatten)]
    pub risk: ClassRiskSummary,
    /// Records in a class below k for an attacker that knows a number of columns: 1, 2, … up to the largest checked
    /// number.
    ///
    /// For each record, the attacker knows the columns that identify it best.
    pub reach: Vec<ReachStep>,
    /// True if the last entry of `reach` has as many records as all columns together put below k.
    pub reach_exhausted: bool,
}

/// Report of one column.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct AttributeReport {
    /// Name in the input.
    pub name: String,
    /// Role from the schema; null without a schema.
    pub role: Option<&'static str>,
    /// True if the column was searched for quasi-identifiers.
    pub searched: bool,
    /// Number of distinct values, including a missing value.
    pub distinct: u64,
    /// Cells without a value.
    pub missing: u64,
    /// distinct / rows.
    pub cardinality: f64,
    /// Entropy of the value distribution, in nats.
    pub entropy: f64,
    /// Relative entropy to the uniform distribution, in nats.
    pub relative_entropy: f64,
    /// Reasons for which the column alone identifies a subject; empty if it does not.
    pub identifier: Vec<IdentifierReason>,
    /// HIPAA Safe Harbor category suggested by its values or its name.
    pub safe_harbor: Option<SafeHarborCategory>,
    /// Support of its rarest value.
    pub smallest_class: u64,
    /// Records with a value that alone has support below k.
    pub records_below_k: u64,
    /// Minimal QIDs that contain it.
    pub minimal_qids: u64,
    /// Share of the column in the minimal QIDs. Each set's weight is divided equally among its columns; all shares
    /// sum to 1.
    pub involvement: f64,
    /// Number of columns in the smallest minimal QID that contains it; null if none does.
    pub smallest_qid: Option<usize>,
    /// Records with a value in a minimal combination of values with support below k.
    ///
    /// Combinations have at most as many columns as `risk.reach` has entries. Without this column, at least k
    /// subjects would share such a combination.
    pub records_at_risk: u64,
}

/// Measurements of one quasi-identifier.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct QidReport {
    /// Names of its columns.
    pub attributes: Vec<String>,
    /// Support of its smallest class.
    pub smallest_class: u64,
    /// Highest risk of a record, 1 / `smallest_class`.
    pub highest: f64,
    /// Classes with support below k.
    pub classes_below_k: u64,
    /// Records in these classes.
    pub records_below_k: u64,
    /// Share of these records in all records, in [0, 1].
    pub share_below_k: f64,
    /// Subjects with such a record (records, without subjects).
    pub people_below_k: u64,
    /// Values of the first record below k, in the order of `attributes`; only on request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub example: Option<Vec<String>>,
}

/// Records with the highest risk.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct RiskiestReport {
    /// Largest number of columns of a checked combination: M of the score.
    pub largest: usize,
    /// True if all combinations of up to five columns were checked.
    pub complete: bool,
    /// Records with at least one combination.
    pub at_risk: u64,
    /// Records with the highest scores, highest first.
    pub records: Vec<RiskyRecord>,
}

/// Record at risk.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct RiskyRecord {
    /// Number in the input, counted from 1 without a header.
    pub record: u64,
    /// Sum over its combinations of `Π (searched columns − i)`, i from the size of the combination to `largest`.
    pub score: f64,
    /// Minimal sets of columns in which fewer than k share its values: smaller sets first, at most 100.
    pub combinations: Vec<Vec<String>>,
    /// Number of all such sets.
    pub combinations_of: u64,
}

/// Inference from a value of one column to a value of another.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct InferenceReport {
    /// Column of the known value.
    pub from: String,
    /// Column of the inferred value.
    pub to: String,
    /// Records with both values.
    pub records: u64,
    /// Subjects with such a record; null without a subject column.
    pub people: Option<u64>,
    /// Records with the value of `from`.
    pub given: u64,
    /// `records / given`, in (0, 1].
    pub probability: f64,
    /// Share of all records with the value of `to`: the probability of a correct guess without knowing `from`.
    pub expected: f64,
    /// The two values; only on request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub values: Option<[String; 2]>,
}
