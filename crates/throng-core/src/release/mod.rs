//! Verification of the encoded lines of a batch before their release, without code of plans and treatments.
//!
//! Only [`verify::verify`] makes a [`verified_batch::ReleasableBatch`], the only type that the sinks accept.

pub mod aggregates;
pub mod ceiling;
pub mod forced_pairs;
mod group_recount;
mod hidden_cells;
mod identifier_forms;
pub mod invariants;
pub mod line_limits;
pub mod models;
pub mod narrowing;
pub mod parts;
pub mod population;
pub mod protected_attributes;
mod ranges;
pub mod series;
mod series_bins;
mod series_means;
mod series_moments;
mod series_nested;
mod series_noise;
pub mod series_sums;
mod shared_attributes;
mod subject_budgets;
pub mod verified_batch;
pub mod verifier_input;
pub mod verify;
mod violation;
