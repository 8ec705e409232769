//! Reports, metrics and the audit record of a batch.

pub mod audit;
pub(crate) mod batch_report;
pub(crate) mod group_choice_summary;
pub(crate) mod plan_summary;
