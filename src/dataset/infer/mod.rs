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
//! | `collinear` | correlation of numbers over the records |
//! | `evidence` | changes within a person, and the quasi-identifiers an attribute is part of |
//! | `text` | a proposal as commented TOML |

mod codes;
mod collinear;
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
pub use collinear::NumberValues;
pub use evidence::{Cadence, PersonDays};
pub use propose::{Asked, InferError, Inferred, infer};

use crate::io::table::WholeTable;
use names::Name;

/// Returns the column that is called like the id of a person and whose values come back; none where no column is, or several are equally
/// likely.
#[must_use]
pub fn likely_subject(table: &WholeTable) -> Option<&str> {
    let comes_back = |distinct: u64| distinct >= 2 && table.rows * 10 >= distinct * 11;
    let called = table.columns.iter().filter(|column| column.given_up.is_none());
    let called = called.filter(|column| comes_back(column.dictionary.values() as u64));
    let ranked: Vec<(u8, &str)> =
        called.map(|column| (Name::new(&column.name).counts_people(), column.name.as_str())).collect();
    let best = ranked.iter().map(|(rank, _)| *rank).max().filter(|rank| *rank > 0)?;
    let mut likely = ranked.iter().filter(|(rank, _)| *rank == best);
    likely.next().filter(|_| likely.next().is_none()).map(|(_, name)| *name)
}
