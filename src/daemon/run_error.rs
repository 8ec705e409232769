//! Errors that stop a daemon at its start or while it runs.

use super::stream::stream_loop::StreamError;
use crate::config::ConfigProblem;
use crate::daemon::engine::build::assemble::AssemblyError;
use crate::daemon::erasure::erasure_topic_reader::ErasureTopicError;
use crate::daemon::http::HttpError;
use crate::daemon::state::directory::StateError;
use crate::io::file::SinkError;
use crate::io::profiles::ProfileReadError;
use crate::start::run_findings::RunFinding;
use std::path::PathBuf;
use throng_kafka::connection::KafkaFailure;

/// Error of a daemon that did not start, or ended early. Batches released before the error stay released, and the
/// next start continues after them. A job over files has released no batch.
#[allow(missing_docs, reason = "the messages document the cases")]
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The configuration, the schema or a file named by them is invalid.
    #[error("{} problem(s) in the configuration", .0.len())]
    Configuration(Vec<ConfigProblem>),
    #[error(transparent)]
    Assembly(AssemblyError),
    #[error(transparent)]
    State(#[from] StateError),
    #[error(transparent)]
    Http(#[from] HttpError),
    #[error(transparent)]
    Kafka(#[from] KafkaFailure),
    #[error(transparent)]
    Stream(#[from] StreamError),
    #[error(transparent)]
    Sink(#[from] SinkError),
    #[error(transparent)]
    Profiles(#[from] ProfileReadError),
    #[error(transparent)]
    ErasureTopic(#[from] ErasureTopicError),
    #[error(transparent)]
    Source(#[from] crate::io::file::SourceError),
    #[error(
        "{}: no column for {} (correct `column` or `pointer` of the attribute in the schema, or remove it from the schema)",
        .path.display(), .attributes.iter().map(|a| format!("attribute {a:?}")).collect::<Vec<_>>().join(", ")
    )]
    NoColumn { path: PathBuf, attributes: Vec<String> },
    #[error("interrupted before the end of the input; no output was replaced")]
    Interrupted,
    /// A job is refused because it has lost records. Contains the findings about its records.
    #[error("{what}; no output was replaced")]
    Lost { what: String, findings: Vec<RunFinding> },
    /// A job is refused because its release represents too few records. Contains the findings about its records.
    #[error("{what}; no output was replaced")]
    Unrepresented { what: String, findings: Vec<RunFinding> },
    #[error("{}: no records; no output was replaced (name the file with the records)", .path.display())]
    NoRecords { path: PathBuf },
    #[error(
        "{}: the state in {} already has this input (files with the same content) and would withhold its records; \
         no output was replaced (name the next file, or set another state.path to process this one again)",
        .path.display(), .state.display()
    )]
    SameInput { path: PathBuf, state: PathBuf },
    #[error("cannot start the thread of the HTTP pages: {0}")]
    Thread(std::io::Error),
    #[error("a thread of the daemon panicked; its unfinished work was not released")]
    Panicked,
}

impl From<AssemblyError> for RunError {
    fn from(error: AssemblyError) -> Self {
        Self::Assembly(error)
    }
}

impl RunError {
    /// Returns true if the operator must change something before another start can succeed.
    pub fn is_usage(&self) -> bool {
        if let Self::Sink(error) = self {
            return error.is_usage();
        }
        if let Self::Profiles(error) = self {
            return error.is_usage();
        }
        if let Self::ErasureTopic(error) | Self::Stream(StreamError::ErasureTopic(error)) = self {
            return error.is_usage();
        }
        if let Self::Kafka(error) = self {
            return error.is_usage();
        }
        if let Self::Assembly(AssemblyError::State(error))
        | Self::State(error)
        | Self::Stream(StreamError::State(error)) = self
        {
            return error.is_refusal();
        }
        matches!(
            self,
            Self::Configuration(_)
                | Self::NoColumn { .. }
                | Self::SameInput { .. }
                | Self::Http(_)
                | Self::Assembly(
                    AssemblyError::Codebook(_) | AssemblyError::Prime(_) | AssemblyError::OtherPolicy { .. }
                )
        )
    }
}
