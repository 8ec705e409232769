//! Audit of one table. An [`AuditReport`] holds values of the data only on request.

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
