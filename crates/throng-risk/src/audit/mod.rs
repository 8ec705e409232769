//! Audit of one table: identifying columns, quasi-identifiers among the other columns, and the resulting risk.
//!
//! [`audit`] combines three modules. [`identifiers`](crate::identifiers) removes identifying columns.
//! [`qid`](crate::qid) searches the remaining columns. [`exposure`](crate::exposure) measures the risk for records
//! and subjects. A [`AuditReport`] holds numbers and column names; it holds values of the data only on request.

mod column;
mod inference_list;
mod prepare;
mod report;
mod report_builder;
mod run;

#[cfg(test)]
mod file_tests;
#[cfg(test)]
mod tests;

pub use column::{AuditColumn, PartialColumnCounts};
pub use prepare::{AuditError, AuditTable, ReadColumns, prepare};
pub use report::{
    AttributeReport, AuditReport, AuditRequest, AuditStep, AuditTimings, InferenceReport, QidReport, RiskReport,
    RiskiestReport, RiskyRecord, SingletonPolicy,
};
pub use run::audit;
