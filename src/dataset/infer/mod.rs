//! A record schema proposed from records: what `throng schema infer` writes for a person to read and correct.
//!
//! The way goes from a table of texts over a [`Proposal`] to TOML, which the schema reader is asked about before anybody
//! sees it. Of the data only this stands in a proposal: names of columns, figures, labels that at least k people share,
//! and numbers rounded to few digits. When in doubt an attribute is an identifier and never leaves.
//!
//! | file | what it holds |
//! |---|---|
//! | `propose` | from a table to a proposal; `proposal`: what that is |
//! | `people` | who counts as a person: the column asked for, or the likeliest one |
//! | `codes` | columns that stand for people although no name says so |
//! | `tokens` | what a single text says |
//! | `values` | the different values of a column, and how many people hold each |
//! | `reading` | types and missing spellings; `dates`: formats of dates and times |
//! | `role` | what identifies, what is sensitive, and why; `names`: what a column's name says |
//! | `ladder` | what values may become; `numbers`: intervals and rounding; `labels`: groups of labels |
//! | `evidence` | changes within a person, and the quasi-identifiers an attribute is part of |
//! | `text` | a proposal as commented TOML |

mod codes;
mod dates;
mod evidence;
mod labels;
mod ladder;
mod names;
mod numbers;
mod people;
mod proposal;
mod propose;
mod reading;
mod role;
#[cfg(test)]
mod tests;
mod text;
mod tokens;
mod values;

pub use crate::anonymity::planner::pace::TooFewSteps;
pub use evidence::{Cadence, PersonDays};
pub use propose::{Asked, InferError, Inferred, infer};
