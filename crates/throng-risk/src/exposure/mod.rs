//! Exposure of records. The *risk* of a record is 1 / support of its class (\[POD] §3; prosecutor risk). Without
//! subjects, each record counts as one (docs/internals/methods.md §1.3).

mod qid_measurement;
mod reach;
mod risk;
mod riskiest;
mod subset_walk;

#[cfg(test)]
mod tests;

pub use qid_measurement::{AttributeWeight, SetRisk, involvement, measure_qids};
pub use reach::{ReachStep, SubsetReach, subset_reach};
pub use risk::{ClassRiskSummary, SupportBin};
pub use riskiest::{RiskiestRecords, riskiest_records};
