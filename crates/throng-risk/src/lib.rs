//! Re-identification risk analysis of tables and streams.
//!
//! | module | contents |
//! |---|---|
//! | [`adjacency`] | Bayesian model of the stream: value and pair counts, cycle inference, triage |
//! | [`audit`] | risk report of one table |
//! | [`counting`] | group counting, on a CPU or a GPU |
//! | [`exposure`] | exposure of records and subjects, attribute weights |
//! | [`identifiers`] | columns that each identify a subject |
//! | [`inferences`] | values that reveal other values |
//! | [`linking`] | records that can be linked to subjects with known attributes |
//! | [`multigrid`] | aggregation of correlated attributes and values, with equal answers |
//! | [`qid`] | Find-QID: minimal quasi-identifiers and maximal sets that are not quasi-identifiers |

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
