//! What a data set became, for the report.

use super::aggregate::Aggregated;
use super::ceiling::Ceiled;
use super::summary::{People, RawRisk};
use crate::anonymity::lattice::passes::Recoded;
use crate::anonymity::lattice::search::Strategy;
use crate::anonymity::quality::Measure;
use crate::config::Transformation;
use crate::release::verified::Risk;

/// What a data set became.
#[derive(Debug)]
pub struct Anonymized {
    /// Records that were read.
    pub rows: u64,
    /// Those of them that `anonymize.released` marks; all where it names no attribute.
    pub to_release: u64,
    /// Lines that a quote left open has swallowed: records that were read as part of another one.
    pub swallowed: u64,
    /// Names of the quasi attributes, in the order of the schema and of every policy.
    pub quasi: Vec<String>,
    /// By quasi attribute and level: what it shows, in words.
    pub labels: Vec<Vec<String>>,
    /// As configured: one policy for all records, or one a pass.
    pub transformation: Transformation,
    /// The policies, and how many records are suppressed.
    pub recoded: Recoded,
    /// The measure that the search has optimized.
    pub measure: Measure,
    /// The way through the lattice, as configured.
    pub strategy: Strategy,
    /// Number of policies; approximate, since there may be more than 128 bits can count.
    pub lattice: f64,
    /// Of the lines that leave, as verification has counted them.
    pub risk: Risk,
    /// Of the records to be released, were they to leave as they are.
    pub risk_before: RawRisk,
    /// None where every record counts for itself.
    pub people: Option<People>,
    /// Sensitive cells that leave as `*`: those of rare values, and those that hide them.
    pub rare_sensitive_cells: u64,
    /// Attributes whose cells are aggregates, not truths.
    pub aggregated: Vec<Aggregated>,
    /// What a ceiling came to, where one was asked for. Everything else here is of true records alone.
    pub ceiled: Option<Ceiled>,
    /// What the schema says twice.
    pub warnings: Vec<String>,
    /// Wall time of all of it, reading and writing included.
    pub seconds: f64,
}
