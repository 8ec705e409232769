//! Proposes a record schema from records: the output of `throng schema infer`, which the operator reviews and
//! corrects.
//!
//! A table of texts becomes a [`Proposal`], then TOML, which the schema reader parses as a check. A proposal contains
//! only these parts of the data: column names, figures, labels shared by at least k subjects, and numbers rounded to
//! few digits. In case of doubt an attribute is an identifier, which is never released.
//!
//! | file | content |
//! |---|---|
//! | `propose` | from a table to a proposal; `proposal`: its types |
//! | `subjects` | subjects of the records: the given column, or the likeliest one |
//! | `codes` | columns that identify subjects although their name does not show it |
//! | `tokens` | meaning of a single text |
//! | `values` | distinct values of a column, and subjects per value |
//! | `reading` | types and missing spellings; `dates`: formats of dates and times |
//! | `role` | identifying and sensitive columns, with reasons; `names`: hints in column names |
//! | `ladder` | hierarchies; `numbers`: intervals and rounding; `labels`: groups of labels |
//! | `collinear` | correlation of numbers over the records |
//! | `evidence` | changes within a subject, and quasi-identifiers of an attribute |
//! | `text` | a proposal as commented TOML |

mod column_names;
mod column_texts;
mod date_detection;
mod hierarchy_choice;
mod label_groups;
mod number_correlation;
mod number_intervals;
mod proposal_toml;
mod role_choice;
mod schema_evidence;
mod schema_inference;
mod schema_proposal;
mod subject_choice;
mod subject_code_detection;
#[cfg(test)]
mod tests;
mod text_values;
mod type_detection;

pub use crate::planner::change_rates::TooFewSteps;
pub use number_correlation::NumberValues;
pub use schema_evidence::{SubjectCadence, SubjectDays};
pub use schema_inference::{InferenceError, InferenceOptions, InferredSchema, infer};

use crate::io::table::LoadedTable;
use column_names::ColumnName;

/// Returns the column with the name of a subject id and with repeated values; `None` if there is no such column, or
/// several are equally likely.
#[must_use]
pub fn likely_subject(table: &LoadedTable) -> Option<&str> {
    let comes_back = |distinct: u64| distinct >= 2 && table.rows * 10 >= distinct * 11;
    let called = table.columns.iter().filter(|column| column.given_up.is_none());
    let called = called.filter(|column| comes_back(column.dictionary.values() as u64));
    let ranked: Vec<(u8, &str)> =
        called.map(|column| (ColumnName::new(&column.name).subject_rank(), column.name.as_str())).collect();
    let best = ranked.iter().map(|(rank, _)| *rank).max().filter(|rank| *rank > 0)?;
    let mut likely = ranked.iter().filter(|(rank, _)| *rank == best);
    likely.next().filter(|_| likely.next().is_none()).map(|(_, name)| *name)
}
