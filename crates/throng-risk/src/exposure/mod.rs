//! Exposure of the records of a table: re-identification risk, and the attributes that contribute most to it.
//!
//! The *risk* of a record is 1 / support of its class: the probability of picking the right subject among those that
//! share its values (\[POD] §3; prosecutor risk). Support is defined in docs/internals/methods.md §1.3: distinct subjects if the
//! table has them, otherwise records.

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
