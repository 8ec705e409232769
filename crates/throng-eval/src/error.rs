//! Errors of an evaluation.

use std::path::PathBuf;

/// Reason for a failed evaluation. Messages contain no data value.
#[allow(missing_docs, reason = "the messages document the cases")]
#[derive(Debug, thiserror::Error)]
pub enum EvaluationError {
    #[error(transparent)]
    Input(Box<dyn std::error::Error + Send + Sync>),
    #[error(
        "{}: no column for {} (correct `column` or `pointer` of the attribute in the schema)",
        .path.display(), .attributes.join(", ")
    )]
    NoColumn { path: PathBuf, attributes: Vec<String> },
    #[error("{}: no record can be read with the schema", .0.display())]
    Empty(PathBuf),
    #[error("{}: line {line} does not match the configured output ({why}); name the configuration of this release", .path.display())]
    Line { path: PathBuf, line: u64, why: String },
    #[error("{}: {source}", .path.display())]
    Release { path: PathBuf, source: std::io::Error },
    #[error("{}: {source}", .path.display())]
    Lineage { path: PathBuf, source: std::io::Error },
    #[error("{}: line {line} is not a valid lineage entry ({why}); give the file that `throng run --lineage` wrote for this release", .path.display())]
    LineageEntry { path: PathBuf, line: u64, why: String },
    #[error(
        "{}: no member of its cohorts is in the original (give the original of this run, and the configuration with its secret)", .path.display()
    )]
    ForeignSubjects { path: PathBuf },
    #[error(
        "{}: {entries} entries for group {group:?}, whose output has {lines} lines; lineage and release must come from the same run", .path.display()
    )]
    LineageMismatch { path: PathBuf, group: String, entries: u64, lines: u64 },
}
