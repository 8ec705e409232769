//! Why a data set was not anonymized.

use crate::anonymity::domain::DomainError;
use crate::anonymity::lattice::check::TermsError;
use crate::anonymity::lattice::passes::PassesError;
use crate::anonymity::lattice::table::TableError;
use crate::anonymity::treatment::ceiling::search::TooLarge;
use crate::config::Problem;
use crate::io::file::{SinkError, SourceError};
use crate::io::profiles::ProfilesError;
use crate::io::table::TableError as ReadingError;
use crate::release::parts::PartRefusal;
use crate::release::verify::DataSetRefusal;
use std::path::{Path, PathBuf};
use throng_core::values::codebook::CodebookError;

/// Why a data set was not anonymized. Nothing has been released then, but where writing itself failed ([`Self::Sink`]).
#[allow(missing_docs, reason = "the messages document the cases")]
#[derive(Debug, thiserror::Error)]
pub enum AnonymizeError {
    /// The configuration, the schema or what they name is wrong.
    #[error("{} problem(s) in the configuration", .0.len())]
    Configuration(Vec<Problem>),
    #[error(transparent)]
    Codebook(#[from] CodebookError),
    #[error(transparent)]
    Source(#[from] SourceError),
    #[error(transparent)]
    Profiles(#[from] ProfilesError),
    #[error(transparent)]
    Sink(#[from] SinkError),
    #[error(
        "{}: no column for {} (correct `column` or `pointer` of the attribute in the schema, or take it out of the schema)",
        .path.display(), .attributes.iter().map(|a| format!("attribute {a:?}")).collect::<Vec<_>>().join(", ")
    )]
    NoColumn { path: PathBuf, attributes: Vec<String> },
    #[error(transparent)]
    Domain(#[from] DomainError),
    #[error(transparent)]
    Table(#[from] TableError),
    #[error(transparent)]
    Terms(#[from] TermsError),
    #[error(transparent)]
    Recode(#[from] PassesError),
    #[error(
        "{path}: {records} record(s) cannot be read or do not have the types of the schema, the first is number {first} ({why}); correct them, or take them out"
    )]
    Rejected { path: String, records: u64, first: i64, why: String },
    #[error(
        "no policy satisfies the models with at most {limit} of {records} records suppressed; {nearest}: raise anonymize.suppression_limit, or relax a model"
    )]
    Impossible { limit: u64, records: u64, nearest: String },
    #[error(
        "after {passes} passes {suppressed} of {records} records are left, and {limit} may be suppressed; lower anonymize.pass_limit (with that of anonymize.suppression_limit the first pass keeps the limit), or raise anonymize.suppression_limit"
    )]
    LeftTooMany { passes: usize, suppressed: u64, records: u64, limit: u64 },
    #[error("the system has no randomness to give: {0}")]
    Randomness(std::io::Error),
    #[error("no policy was found within anonymize.time_limit; raise it, or generalize attributes by their schema")]
    OutOfTime,
    #[error(
        "it was stopped before any policy was found, and nothing was written; let it search longer, or generalize attributes by their schema"
    )]
    Stopped,
    #[error("stopped by a signal before a policy was found; nothing was written")]
    StoppedBefore,
    #[error("stopped by a signal while the release was verified and written; no output was replaced")]
    StoppedAfter,
    #[error(
        "the only policy that satisfies the models says nothing of any quasi attribute; relax a model, raise anonymize.suppression_limit, or release fewer attributes"
    )]
    SaysNothing,
    #[error(
        "{path} needs more than {limit} after {records} records: keep it in a file (throng anonymize --temp), round or leave out attributes, allow more (--memory), or run it through the daemon (throng run)", path = .path.display()
    )]
    TooLarge { path: PathBuf, records: u64, limit: String },
    #[error("{what} need {needed}, of {limit} (--memory) {left} are left for them; {remedy}")]
    NoRoom { what: String, needed: String, left: String, limit: String, remedy: &'static str },
    #[error("the data set cannot be kept in {directory}: {source}; name a directory with more room (--temp)", directory = .directory.display())]
    Temporary { directory: PathBuf, source: std::io::Error },
    #[error(transparent)]
    Reading(#[from] ReadingError),
    #[error("no threads can be started: {0}")]
    Threads(String),
    #[error(transparent)]
    Lattice(#[from] TooLarge),
    #[error(
        "no policy generalizes by at most {h:.4} and has counterfeits that nobody can tell ({checked} were looked at); raise anonymize.ceiling.h, anonymize.ceiling.share or anonymize.suppression_limit, or lower anonymize.ceiling.lines"
    )]
    NoCeiling { h: f64, checked: u64 },
    #[error(transparent)]
    PartRefused(#[from] PartRefusal),
    #[error(transparent)]
    DataSetRefused(#[from] DataSetRefusal),
}

impl AnonymizeError {
    /// Whether the user can mend it in the configuration or the input.
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

/// A problem of a file that a person can mend.
pub fn problem(file: impl Into<String>, key: impl Into<String>, message: String, remedy: &str) -> AnonymizeError {
    let problem = Problem { file: file.into(), key: key.into(), message, remedy: remedy.to_owned() };
    AnonymizeError::Configuration(vec![problem])
}

/// The name of a file in messages.
pub(super) fn named(path: &Path) -> String {
    path.display().to_string()
}
