//! Treatment: computes from the codes of a batch a proposal of the release.
//!
//! `release::verify` checks every proposal and shares none of this code.

pub mod batch_treatment;
pub mod ceiling;
pub mod cell_hiding;
pub mod forced_pairs;
pub mod group_digests;
pub mod group_mask;
pub mod hold_selection;
pub mod local_recoding;
pub mod number_alteration;
pub mod proposal;
pub mod ranges;
mod stream_models;
pub mod subject_counting;
pub mod support_budget;
