//! The audit of one table: which columns identify, which combinations of the others do, whom that puts at risk.
//!
//! [`audit`] joins the rooms of this wing: [`identifiers`](crate::risk::identifiers) takes columns out,
//! [`qid`](crate::risk::qid) searches the rest, [`exposure`](crate::risk::exposure) says what that means for records and
//! people. A [`Report`] holds numbers and names of columns; values of the data are in it only where they were asked for.

mod column;
mod error;
mod examples;
mod given_up;
mod inferences;
mod judged;
mod outgrown;
mod parts;
mod prepare;
mod question;
mod report;
mod riskiest;
mod run;

#[cfg(test)]
mod file_tests;
#[cfg(test)]
mod tests;

pub use column::{AuditColumn, GivenUp};
pub use error::AuditError;
pub use prepare::{AuditTable, ReadColumns, prepare};
pub use question::{AuditQuestion, Step};
pub use report::{
    AttributeReport, InferenceReport, QidReport, Report, RiskReport, RiskiestReport, RiskyRecord, Singletons, Timings,
};
pub use run::audit;
