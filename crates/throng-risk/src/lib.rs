//! Re-identification risk analysis of tables and streams: [`identifiers`], quasi-identifiers ([`qid`]), [`exposure`],
//! [`inferences`], the Bayesian [`adjacency`], and the [`audit`] of one table.

#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod adjacency;
pub mod audit;
pub mod counting;
pub mod exposure;
pub mod identifiers;
pub mod inferences;
pub mod linking;
pub mod multigrid;
pub mod qid;
