//! Proposes a record schema from records, for review by the operator. A proposal contains only column names, figures,
//! labels shared by at least k subjects, and numbers rounded to few digits. In doubt an attribute is an identifier,
//! which is never released. The schema reader checks the TOML.

mod column_names;
mod column_texts;
mod date_detection;
mod hierarchy_choice;
mod label_groups;
mod linear_dependence;
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
pub use linear_dependence::LinearDependence;
pub use number_correlation::NumberValues;
pub use schema_evidence::{SubjectCadence, SubjectDays};
pub use schema_inference::{InferenceError, InferenceOptions, InferredSchema, infer};

use crate::io::table::LoadedTable;
use column_names::ColumnName;

/// Returns the column with the name of a subject id and repeated values, if exactly one is likeliest.
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
