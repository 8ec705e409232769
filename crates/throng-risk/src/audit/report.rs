//! The question of an audit and its report, as it is written to JSON: `docs/audit.md` names every key.

use crate::counting::{Used, Wanted};
use crate::exposure::{Reach, Risk};
use crate::identifiers::{Category, Reason};
use crate::linking::Linked;
use crate::qid::{Progress, Strategy};
use std::collections::BTreeMap;
use std::time::Duration;

/// What happens to rare single values before the search (docs/methods.md §3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Singletons {
    /// Nothing: a column with one rare value is a quasi-identifier by itself.
    #[default]
    Include,
    /// Every cell whose value alone has support below k becomes `*` first.
    Mask,
}

/// What is asked of a table.
#[derive(Clone, Debug)]
pub struct AuditQuestion {
    /// The input, as reports name it.
    pub input: String,
    /// At least 2.
    pub k: u32,
    /// What is done with rare single values.
    pub singletons: Singletons,
    /// How the search goes.
    pub strategy: Strategy,
    /// Threads, at least one.
    pub threads: usize,
    /// What counts.
    pub backend: Wanted,
    /// Time for search and measuring together.
    pub budget: Option<Duration>,
    /// Bytes that the search may hold beside the table; of a table in files, all that counting, witnesses and search may hold.
    pub memory: Option<u64>,
    /// Records to list by their score; 0 for no list.
    pub rows: usize,
    /// What reading took, for the report.
    pub read_seconds: f64,
}

/// What the audit is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The search, and how far it is.
    Searching(Progress),
    /// Sets looked at, and how many of this kind there are.
    Measuring(usize, usize),
}

/// The report of an audit.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Report {
    /// The input as it was named.
    pub input: String,
    /// Records judged.
    pub rows: u64,
    /// People behind them; null where no column counts people.
    pub subjects: Option<u64>,
    /// The column that counts them.
    pub subject: Option<String>,
    /// The column that is likely to, where none was named: its name is that of an id of people, and its values come back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub likely_subject: Option<String>,
    /// The support that was asked for.
    pub k: u32,
    /// What was done with rare single values.
    pub singletons: Singletons,
    /// How the search went.
    pub strategy: &'static str,
    /// `cpu` or `cuda`: what counted.
    pub backend: &'static str,
    /// What the device was used for, where one counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<Used>,
    /// Threads that searched.
    pub threads: usize,
    /// False: the time was up, or the memory. The lists then hold only what is proved, and whatever is not below a maximal non-QID is
    /// to be treated as unsafe.
    pub complete: bool,
    /// Columns that identify by themselves, sorted; not searched.
    pub standalone_identifiers: Vec<String>,
    /// Records that can be tied to people of whom something is known, where it was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link: Option<Linked>,
    /// Smallest sets of columns in which some value combination has support in [1, k − 1].
    pub minimal_qids: Vec<Vec<String>>,
    /// Largest sets of columns in which none has.
    pub maximal_non_qids: Vec<Vec<String>>,
    /// Sets whose classes were counted.
    pub evaluated: u64,
    /// Sets decided without counting.
    pub pruned: u64,
    /// From the start of reading to this report.
    pub seconds: f64,
    /// The three steps.
    pub timings: Timings,
    /// The risk over all searched columns together.
    pub risk: RiskReport,
    /// The columns by the records that they put at risk, then by their involvement; then those that are not searched.
    pub attributes: Vec<AttributeReport>,
    /// The first minimal QIDs in canonical order, measured; `qids_measured` says how many of all.
    pub qids: Vec<QidReport>,
    /// How many of the minimal QIDs were measured.
    pub qids_measured: u64,
    /// The records that are most at risk, where they were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub riskiest: Option<RiskiestReport>,
    /// Which value gives another one away, strongest first: the strongest of each ordered pair of searched columns that at
    /// least k people support, the first of them.
    pub inferences: Vec<InferenceReport>,
    /// Pairs of columns that were looked at for these, and how many there are.
    pub inference_pairs: u64,
    /// How many pairs of columns there are.
    pub inference_pairs_of: u64,
    /// Cells masked before the search (`singletons = mask`).
    pub masked_cells: u64,
    /// Records left out because they name nobody.
    pub without_subject: u64,
    /// Records left out because they could not be read, by reason.
    pub unreadable: BTreeMap<&'static str, u64>,
    /// Columns that were announced and that no record has.
    pub absent: Vec<String>,
    /// Columns with cells that are arrays: each array was judged as one text, and nothing is said of what is in it.
    pub arrays: Vec<String>,
    /// Cells of columns that the schema does not know; not judged.
    pub unknown_cells: u64,
    /// What a reader must know before trusting the numbers.
    pub notes: Vec<String>,
}

/// Seconds of the three steps.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct Timings {
    /// Reading and encoding.
    pub read: f64,
    /// The search for quasi-identifiers.
    pub search: f64,
    /// Counting what they leave below k.
    pub measure: f64,
}

/// Risk over all searched columns, and how far smaller sets reach.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct RiskReport {
    /// How many columns that is.
    pub attributes: u64,
    /// The risk.
    #[serde(flatten)]
    pub risk: Risk,
    /// Records in a crowd below k for somebody who knows so many columns, for each record the ones that give it away
    /// soonest: 1, 2, … as far as was looked.
    pub reach: Vec<Reach>,
    /// The last entry of `reach` is as many records as all columns together leave below k.
    pub reach_exhausted: bool,
}

/// One column.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct AttributeReport {
    /// Its name in the input.
    pub name: String,
    /// The schema's role; null without a schema.
    pub role: Option<&'static str>,
    /// Was it searched for quasi-identifiers?
    pub searched: bool,
    /// Different values, a missing one included.
    pub distinct: u64,
    /// Cells without a value.
    pub missing: u64,
    /// distinct / rows.
    pub cardinality: f64,
    /// Of the value distribution, in nats.
    pub entropy: f64,
    /// Against the uniform distribution, in nats.
    pub relative_entropy: f64,
    /// Why it identifies by itself; empty: it does not.
    pub identifier: Vec<Reason>,
    /// The HIPAA Safe Harbor category that its values or its name point to.
    pub safe_harbor: Option<Category>,
    /// Support of its rarest value.
    pub smallest_class: u64,
    /// Records whose value alone has support below k.
    pub records_below_k: u64,
    /// Minimal QIDs that it is part of.
    pub minimal_qids: u64,
    /// Its share of them, each set's vote divided among its members; all shares sum to 1.
    pub involvement: f64,
    /// Columns in the smallest of them; null where it is part of none.
    pub smallest_qid: Option<usize>,
    /// Records with its value in a minimal combination of values of support below k, of as many columns as
    /// `risk.reach` has entries: without this column, that combination would be shared by k and more.
    pub records_at_risk: u64,
}

/// One measured quasi-identifier.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct QidReport {
    /// Its columns, by name.
    pub attributes: Vec<String>,
    /// Support of its smallest class.
    pub smallest_class: u64,
    /// The highest risk of a record, 1 / `smallest_class`.
    pub highest: f64,
    /// Classes of a support below k.
    pub classes_below_k: u64,
    /// Records in them.
    pub records_below_k: u64,
    /// Their share of all records, in [0, 1].
    pub share_below_k: f64,
    /// People with such a record (the records where the table names no people).
    pub people_below_k: u64,
    /// Values of the first record below k, in the order of `attributes`; only where they were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub example: Option<Vec<String>>,
}

/// The records that are most at risk.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct RiskiestReport {
    /// Columns of a combination, as far as was looked: M of the score.
    pub largest: usize,
    /// All combinations of up to five columns were looked at.
    pub complete: bool,
    /// Records with a combination.
    pub at_risk: u64,
    /// Those of them of highest score, highest first.
    pub records: Vec<RiskyRecord>,
}

/// One record.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct RiskyRecord {
    /// Its number in the input, counted from 1; a header is no record.
    pub record: u64,
    /// The sum over its combinations of `Π (searched columns − i)`, i from the size of the combination to `largest`.
    pub score: f64,
    /// The smallest sets of columns whose values together are shared by fewer than k: smaller sets first, at most 100.
    pub combinations: Vec<Vec<String>>,
    /// How many there are.
    pub combinations_of: u64,
}

/// A value of one column that gives away one of another.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct InferenceReport {
    /// The column of the value that is known.
    pub from: String,
    /// The column of the value that it gives away.
    pub to: String,
    /// Records with both values: the support.
    pub records: u64,
    /// People behind them; null where no column counts people.
    pub people: Option<u64>,
    /// Records with the value of `from`.
    pub given: u64,
    /// `records / given`, in (0, 1].
    pub probability: f64,
    /// The share of all records that has the value of `to`: what a guess is worth without knowing `from`.
    pub expected: f64,
    /// The two values; only where they were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub values: Option<[String; 2]>,
}
