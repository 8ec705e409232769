//! Errors of a data set.

use crate::config::ConfigProblem;
use crate::io::file::{SinkError, SourceError};
use crate::io::profiles::ProfileReadError;
use crate::io::table::TableReadError as ReadingError;
use std::path::{Path, PathBuf};
use throng_core::domain::DomainError;
use throng_core::lattice::policy_check::PolicyTermsError;
use throng_core::lattice::recoding_passes::LocalRecodingError;
use throng_core::lattice::table::LatticeTableError;
use throng_core::release::parts::PartRefusal;
use throng_core::release::verify::DataSetRefusal;
use throng_core::treatment::ceiling::search::LatticeTooLarge;
use throng_core::values::codebook::CodebookError;

/// Error of an anonymization. Nothing is released then, unless writing failed ([`Self::Sink`]).
#[allow(missing_docs, reason = "the messages document the cases")]
#[derive(Debug, thiserror::Error)]
pub enum AnonymizeError {
    /// Invalid configuration, schema or file.
    #[error("{} problem(s) in the configuration", .0.len())]
    Configuration(Vec<ConfigProblem>),
    #[error(transparent)]
    Codebook(#[from] CodebookError),
    #[error(transparent)]
    Source(#[from] SourceError),
    #[error(transparent)]
    Profiles(#[from] ProfileReadError),
    #[error(transparent)]
    Sink(#[from] SinkError),
    #[error(
        "{}: no column for {} (correct `column` or `pointer` of the attribute in the schema, or remove it from the schema)",
        .path.display(), .attributes.iter().map(|a| format!("attribute {a:?}")).collect::<Vec<_>>().join(", ")
    )]
    NoColumn { path: PathBuf, attributes: Vec<String> },
    #[error(transparent)]
    Domain(#[from] DomainError),
    #[error(transparent)]
    Table(#[from] LatticeTableError),
    #[error(transparent)]
    Terms(#[from] PolicyTermsError),
    #[error(transparent)]
    Recode(#[from] LocalRecodingError),
    #[error(
        "{path}: {records} record(s) cannot be read or do not match the types of the schema, the first is number {first} ({why}); correct or remove them"
    )]
    Rejected { path: String, records: u64, first: i64, why: String },
    #[error(
        "no policy satisfies the models with at most {limit} of {records} records suppressed; {nearest}: raise anonymize.suppression_limit, or relax a model"
    )]
    Impossible { limit: u64, records: u64, nearest: String },
    #[error(
        "{suppressed} of {records} records are unreleased after {passes} passes, but at most {limit} may be suppressed; lower anonymize.pass_limit (at the value of anonymize.suppression_limit, the first pass already satisfies the limit), or raise anonymize.suppression_limit"
    )]
    LeftTooMany { passes: usize, suppressed: u64, records: u64, limit: u64 },
    #[error("the random number generator of the system failed: {0}")]
    Randomness(std::io::Error),
    #[error("no policy was found within anonymize.time_limit; raise it, or generalize attributes in the schema")]
    OutOfTime,
    #[error(
        "stopped before a policy was found; nothing was written (let the search run longer, or generalize attributes in the schema)"
    )]
    Stopped,
    #[error("stopped by a signal before a policy was found; nothing was written")]
    StoppedBefore,
    #[error("stopped by a signal while the release was verified and written; no output was replaced")]
    StoppedAfter,
    #[error(
        "the only policy that satisfies the models keeps no information of any quasi attribute; relax a model, raise anonymize.suppression_limit, or release fewer attributes"
    )]
    SaysNothing,
    #[error(
        "{path} needs more than {limit} after {records} records: keep it in a file (throng anonymize --temp), round or remove attributes, raise --memory, or use the daemon (throng run)", path = .path.display()
    )]
    TooLarge { path: PathBuf, records: u64, limit: String },
    #[error("{what} need {needed}, but only {left} of {limit} (--memory) are available; {remedy}")]
    NoRoom { what: String, needed: String, left: String, limit: String, remedy: &'static str },
    #[error("the data set cannot be stored in {directory}: {source}; name a directory with more space (--temp)", directory = .directory.display())]
    Temporary { directory: PathBuf, source: std::io::Error },
    #[error(transparent)]
    Reading(#[from] ReadingError),
    #[error("cannot start threads: {0}")]
    Threads(String),
    #[error(transparent)]
    Lattice(#[from] LatticeTooLarge),
    #[error(
        "no policy generalizes by at most {h:.4} and has undetectable counterfeits ({checked} policies checked); raise anonymize.ceiling.h, anonymize.ceiling.share or anonymize.suppression_limit, or lower anonymize.ceiling.lines"
    )]
    NoCeiling { h: f64, checked: u64 },
    #[error(transparent)]
    PartRefused(#[from] PartRefusal),
    #[error(transparent)]
    DataSetRefused(#[from] DataSetRefusal),
}

impl AnonymizeError {
    /// Returns true if configuration or input can be corrected.
    #[must_use]
    pub fn is_usage(&self) -> bool {
        match self {
            Self::Sink(error) => error.is_usage(),
            Self::Profiles(error) => error.is_usage(),
            Self::Configuration(_)
            | Self::Codebook(_)
            | Self::NoColumn { .. }
            | Self::Domain(_)
            | Self::Table(_)
            | Self::Terms(_)
            | Self::Recode(_)
            | Self::Lattice(_)
            | Self::Rejected { .. } => true,
            _ => false,
        }
    }
}

/// Returns an error about a correctable file.
pub fn operator_error(
    file: impl Into<String>,
    key: impl Into<String>,
    message: String,
    remedy: &str,
) -> AnonymizeError {
    let problem = ConfigProblem { file: file.into(), key: key.into(), message, remedy: remedy.to_owned() };
    AnonymizeError::Configuration(vec![problem])
}

pub(super) fn file_label(path: &Path) -> String {
    path.display().to_string()
}
