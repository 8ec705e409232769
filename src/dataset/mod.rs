//! Anonymizes one complete data set: reads, searches for a policy, applies it, verifies the result and writes it.
//!
//! The release verifier checks the output bytes in the same way as for a batch of the daemon. Nothing is written
//! before.
//!
//! Codes are kept in memory or, when they do not fit, in an unnamed file. The same code reads them block by block in
//! both cases, and the release is the same byte for byte. Features that need the records in memory are refused for a
//! data set in a file, with the key named.
//!
//! | file | content |
//! |---|---|
//! | `anonymize`, `frontier` | the two entry points |
//! | `source`, `room`, `refusals` | input and callbacks, memory budget, limits of a data set in a file |
//! | `read`, `codes`, `data` | from the source to codes, and to the distinct records of the search |
//! | `models`, `search` | privacy models of every class, and the search for a policy |
//! | `kept`, `aggregate`, `support`, `hide` | released classes, their aggregates, and suppression of sensitive cells |
//! | `ceiling` | search under an h-ceiling with counterfeits |
//! | `parts`, `claims`, `release`, `lines` | release in parts that fit in memory: verified, then written in order |
//! | `truthful` | reconstruction of a release with counterfeits by its catalog |
//! | [`infer`] | record schema proposed from records |
//! | `summary`, `error` | report figures and errors |

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
