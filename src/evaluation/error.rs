//! Errors of an evaluation.

use crate::config::ConfigProblem;
use crate::io::file::SourceError;
use crate::start::sampling::SamplingError;
use std::path::PathBuf;

/// Reason for which a release cannot be evaluated. No message repeats a value of the data.
#[allow(missing_docs, reason = "the messages document the cases")]
#[derive(Debug, thiserror::Error)]
pub enum EvaluationError {
    #[error("{} problem(s) in the configuration", .0.len())]
    Configuration(Vec<ConfigProblem>),
    #[error(transparent)]
    Sampling(#[from] SamplingError),
    #[error(transparent)]
    Source(#[from] SourceError),
    #[error(
        "{}: no column for {} (correct `column` or `pointer` of the attribute in the schema)",
        .path.display(), .attributes.join(", ")
    )]
    NoColumn { path: PathBuf, attributes: Vec<String> },
    #[error("{}: no record of it can be read by the schema", .0.display())]
    Empty(PathBuf),
    #[error("{}: a line is not as the configuration says that lines leave (line {line}: {why}); name the configuration that made it", .path.display())]
    Line { path: PathBuf, line: u64, why: String },
    #[error("{}: {source}", .path.display())]
    Release { path: PathBuf, source: std::io::Error },
    #[error("{}: {source}", .path.display())]
    Lineage { path: PathBuf, source: std::io::Error },
    #[error("{}: line {line} is no entry of a lineage ({why}); give the file that `throng run --lineage` wrote beside this release", .path.display())]
    LineageEntry { path: PathBuf, line: u64, why: String },
    #[error(
        "{}: nobody in a cohort of it is in the original (give the original of this run, and the configuration with its secret)", .path.display()
    )]
    ForeignSubjects { path: PathBuf },
    #[error(
        "{}: {entries} entries for group {group:?}, whose output has {lines} lines; a lineage and its release are one run's", .path.display()
    )]
    LineageMismatch { path: PathBuf, group: String, entries: u64, lines: u64 },
}
