//! The audit of one table: which columns identify, which combinations of the others do, whom that puts at risk.
//!
//! [`audit`] joins the rooms of this wing: [`identifiers`](crate::identifiers) takes columns out,
//! [`qid`](crate::qid) searches the rest, [`exposure`](crate::exposure) says what that means for records and
//! people. A [`Report`] holds numbers and names of columns; values of the data are in it only where they were asked for.

mod column;
mod inferences;
mod parts;
mod prepare;
mod report;
mod run;

#[cfg(test)]
mod file_tests;
#[cfg(test)]
mod tests;

pub use column::{AuditColumn, GivenUp};
pub use prepare::{AuditError, AuditTable, ReadColumns, prepare};
pub use report::{
    AttributeReport, AuditQuestion, InferenceReport, QidReport, Report, RiskReport, RiskiestReport, RiskyRecord,
    Singletons, Step, Timings,
};
pub use run::audit;
