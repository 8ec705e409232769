//! Anonymizes one complete data set: reads, searches for a policy, verifies the output bytes like a batch of the
//! daemon, and writes.
//!
//! Codes are in memory or in an unnamed file, read block by block by the same code, so the release is the same byte for
//! byte. Features that need the records in memory are refused for a file. [`infer`] proposes a record schema from
//! records.

mod anonymization_report;
mod anonymize;
mod ceiling_release;
mod class_lookup;
mod code_store;
mod dataset_source;
mod encoded_dataset;
mod error;
mod file_mode_refusals;
mod frontier;
pub mod infer;
mod input_encoding;
mod microaggregated_cells;
mod model_claims;
mod policy_search;
mod privacy_models;
mod release_parts;
mod release_writer;
mod run_memory;
mod sensitive_masks;
mod sensitive_support;
#[cfg(test)]
mod tests;
mod truthful;
mod verified_lines;

pub use anonymization_report::{AnonymizationReport, RawRisk, SubjectCounts};
pub use anonymize::anonymize;
pub use ceiling_release::CeilingReport;
pub use dataset_source::{AnonymizationStep, DatasetSource, RunCallbacks, SearchCallback, StepCallback};
pub use error::AnonymizeError;
pub use frontier::{FrontierPoint, frontier};
pub use microaggregated_cells::MicroaggregationReport;
pub use release_writer::{DATASET_GROUP, output_files as files_written};
pub use truthful::{CatalogApplyError, ReconstructionReport, apply_catalog};
