//! Reports, metrics and the audit record of a batch.

pub mod audit;
pub(crate) mod batch_report;
