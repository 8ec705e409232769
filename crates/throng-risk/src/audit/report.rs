//! Request and report of an audit; `docs/evaluation.md` documents the JSON keys.

use crate::counting::{BackendChoice, DeviceUsage};
use crate::exposure::{ClassRiskSummary, ReachStep};
use crate::identifiers::{IdentifierReason, SafeHarborCategory};
use crate::linking::SubjectLinkReport;
use crate::qid::{QidSearchProgress, QidStrategy};
use std::collections::BTreeMap;
use std::time::Duration;

/// Treatment of values with support below k (docs/internals/methods.md §3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SingletonPolicy {
    /// Keeps them.
    #[default]
    Include,
    /// Replaces them with `*`.
    Mask,
}

/// Request of an audit.
#[derive(Clone, Debug)]
pub struct AuditRequest {
    /// Name of the input.
    pub input: String,
    /// Required support, at least 2.
    pub k: u32,
    /// Treatment of rare values.
    pub singletons: SingletonPolicy,
    /// Search strategy.
    pub strategy: QidStrategy,
    /// Number of threads, at least one.
    pub threads: usize,
    /// Backend for counting.
    pub backend: BackendChoice,
    /// Time limit of search and measurement.
    pub budget: Option<Duration>,
    /// Memory limit in bytes, in addition to a table in memory.
    pub memory: Option<u64>,
    /// Number of riskiest records to list.
    pub rows: usize,
    /// Duration of reading, in seconds.
    pub read_seconds: f64,
}

/// Current step of an audit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuditStep {
    /// Search, with its progress.
    Searching(QidSearchProgress),
    /// Measurement: sets checked, of all sets.
    Measuring(usize, usize),
}

/// Report of an audit.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct AuditReport {
    /// Name of the input.
    pub input: String,
    /// Judged records.
    pub rows: u64,
    /// Number of subjects, if known.
    pub subjects: Option<u64>,
    /// Name of the subject column.
    pub subject: Option<String>,
    /// Likely subject column, if none was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub likely_subject: Option<String>,
    /// Required support.
    pub k: u32,
    /// Treatment of rare values.
    pub singletons: SingletonPolicy,
    /// Search strategy.
    pub strategy: &'static str,
    /// Backend that counted: `cpu` or `cuda`.
    pub backend: &'static str,
    /// Use of the device, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<DeviceUsage>,
    /// Number of threads.
    pub threads: usize,
    /// False if time or memory ran out. Then treat sets outside all maximal non-QIDs as unsafe.
    pub complete: bool,
    /// Columns that alone identify a subject, sorted.
    pub standalone_identifiers: Vec<String>,
    /// Links to subjects with known attributes, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link: Option<SubjectLinkReport>,
    /// Minimal QIDs.
    pub minimal_qids: Vec<Vec<String>>,
    /// Maximal non-QIDs.
    pub maximal_non_qids: Vec<Vec<String>>,
    /// Counted sets.
    pub evaluated: u64,
    /// Sets decided without counting.
    pub pruned: u64,
    /// Duration in seconds, with reading.
    pub seconds: f64,
    /// Durations of the steps.
    pub timings: AuditTimings,
    /// Risk over all searched columns.
    pub risk: RiskReport,
    /// Columns by records at risk, then by involvement; then those not searched.
    pub attributes: Vec<AttributeReport>,
    /// Measurements of the first minimal QIDs.
    pub qids: Vec<QidReport>,
    /// Length of `qids`.
    pub qids_measured: u64,
    /// Records with the highest risk, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub riskiest: Option<RiskiestReport>,
    /// Strongest inference per ordered pair of searched columns, if any, strongest first.
    pub inferences: Vec<InferenceReport>,
    /// Column pairs checked for inferences.
    pub inference_pairs: u64,
    /// All column pairs.
    pub inference_pairs_of: u64,
    /// Cells masked before the search.
    pub masked_cells: u64,
    /// Records without a subject, left out.
    pub without_subject: u64,
    /// Unreadable records, left out, by reason.
    pub unreadable: BTreeMap<&'static str, u64>,
    /// Declared columns that occur in no record.
    pub absent: Vec<String>,
    /// Columns with array cells, each judged as one text.
    pub arrays: Vec<String>,
    /// Cells of columns outside the schema.
    pub unknown_cells: u64,
    /// Notes on the interpretation.
    pub notes: Vec<String>,
}

/// Durations of the steps, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct AuditTimings {
    /// Reading and encoding.
    pub read: f64,
    /// Search for quasi-identifiers.
    pub search: f64,
    /// Measurement of the risk.
    pub measure: f64,
}

/// Risk over all searched columns, and reach of smaller sets.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct RiskReport {
    /// Number of searched columns.
    pub attributes: u64,
    /// Risk over all searched columns.
    #[serde(flatten)]
    pub risk: ClassRiskSummary,
    /// Records below k if an attacker knows the best 1, 2, … columns.
    pub reach: Vec<ReachStep>,
    /// True if larger sets put no further record below k.
    pub reach_exhausted: bool,
}

/// Report of one column.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct AttributeReport {
    /// Name in the input.
    pub name: String,
    /// Role from the schema, if any.
    pub role: Option<&'static str>,
    /// True if the column was searched.
    pub searched: bool,
    /// Distinct values, including a missing one.
    pub distinct: u64,
    /// Cells without a value.
    pub missing: u64,
    /// distinct / rows.
    pub cardinality: f64,
    /// Entropy of the value distribution, in nats.
    pub entropy: f64,
    /// Relative entropy to the uniform distribution, in nats.
    pub relative_entropy: f64,
    /// Reasons for being a standalone identifier.
    pub identifier: Vec<IdentifierReason>,
    /// HIPAA Safe Harbor category.
    pub safe_harbor: Option<SafeHarborCategory>,
    /// Support of its rarest value.
    pub smallest_class: u64,
    /// Records with a value of support below k.
    pub records_below_k: u64,
    /// Minimal QIDs that contain it.
    pub minimal_qids: u64,
    /// Share of the column in the minimal QIDs, in [0, 1].
    pub involvement: f64,
    /// Size of the smallest minimal QID that contains it.
    pub smallest_qid: Option<usize>,
    /// Records with a value in a minimal combination of support below k, of the sizes in `risk.reach`.
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
    /// Share of these records, in [0, 1].
    pub share_below_k: f64,
    /// Subjects in these classes.
    pub people_below_k: u64,
    /// Values of the first record below k, on request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub example: Option<Vec<String>>,
}

/// Records with the highest risk.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct RiskiestReport {
    /// Largest size of a checked combination.
    pub largest: usize,
    /// True if all combinations of up to five columns were checked.
    pub complete: bool,
    /// Records with a combination.
    pub at_risk: u64,
    /// Riskiest records, highest score first.
    pub records: Vec<RiskyRecord>,
}

/// Record at risk.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct RiskyRecord {
    /// Number in the input, from 1.
    pub record: u64,
    /// SUDA score (docs/internals/methods.md §3).
    pub score: f64,
    /// Smallest minimal sets of columns whose values have support below k, at most 100.
    pub combinations: Vec<Vec<String>>,
    /// Number of all such sets.
    pub combinations_of: u64,
}

/// Inference between values of two columns.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct InferenceReport {
    /// Column of the known value.
    pub from: String,
    /// Column of the inferred value.
    pub to: String,
    /// Records with both values.
    pub records: u64,
    /// Subjects with such a record, if known.
    pub people: Option<u64>,
    /// Records with the value of `from`.
    pub given: u64,
    /// `records / given`, in (0, 1].
    pub probability: f64,
    /// Share of all records with the value of `to`.
    pub expected: f64,
    /// Both values, on request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub values: Option<[String; 2]>,
}
