//! How exposed the records of a table are: re-identification risk, and which attributes weigh most.
//!
//! The *risk* of a record is 1 / support of its class (the chance of picking the right person among those who share its
//! values; [POD] §3, the prosecutor's view of the disclosure literature). Support is that of docs/methods.md §1.3:
//! distinct subjects where the table has them, records otherwise.

mod reach;
mod risk;
mod riskiest;
mod walk;
mod weights;

#[cfg(test)]
mod tests;

pub use reach::{Reach, Reached, reach};
pub use risk::{Bin, Risk};
pub use riskiest::{Riskiest, riskiest};
pub use weights::{AttributeWeight, SetRisk, involvement, measure};
