//! Errors of file sinks.

use std::io;
use std::path::PathBuf;

/// Error of a file that is written.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the message of a variant says what it is and names its fields")]
pub enum SinkError {
    #[error("cannot open {path} for writing: {source}; check that its directory exists and may be written")]
    Open { path: PathBuf, source: io::Error },
    #[error("{path} is not a regular file, and would not be replaced by one: name a file, or - for standard output")]
    NotRegular { path: PathBuf },
    #[error(
        "{path} is in the way: it is not a file that a killed run of this user has left there, and is neither written nor \
         removed; see who made it and remove it, or name an output in a directory that nobody else can write"
    )]
    ForeignFile { path: PathBuf },
    #[error(
        "{failed}; replaced before that: {}; the other outputs are as before: start again to replace all of them",
        .replaced.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
    )]
    PartlyReplaced { failed: Box<Self>, replaced: Vec<PathBuf> },
    #[error("cannot write {path} at byte {byte}: {source}; make room, then start again")]
    Write { path: PathBuf, byte: u64, source: io::Error },
    #[error("cannot bring {path} to the disk: {source}; check the disk, then start again")]
    Sync { path: PathBuf, source: io::Error },
    #[error(
        "{path} is open in another process, and two cannot write one file: end the other one, or name another file"
    )]
    Locked { path: PathBuf },
    #[error(
        "{path} holds something already, and the lines of a stream go to a new file: move it away, or name another"
    )]
    NotEmpty { path: PathBuf },
    #[error(
        "{path} holds something already, and the state goes on where an earlier job with series has ended: what it holds would be lost, \
         for no job writes it again: name another file (sink.path, --lineage, sink.dead_letter_path, sink.audit_file), or move this one away"
    )]
    WouldLoseRows { path: PathBuf },
    #[error(
        "a line for {path} is not a JSON object of the group's columns ({reason}): the sink was given another format"
    )]
    UnexpectedLine { path: PathBuf, reason: &'static str },
    #[error("cannot write {path} as Parquet ({fault})")]
    Parquet { path: PathBuf, fault: &'static str },
}

impl SinkError {
    /// Reports that the user must change something before a retry.
    pub fn is_usage(&self) -> bool {
        matches!(
            self,
            Self::NotEmpty { .. } | Self::WouldLoseRows { .. } | Self::NotRegular { .. } | Self::ForeignFile { .. }
        )
    }
}
