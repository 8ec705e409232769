//! Errors of file sinks.

use std::io;
use std::path::PathBuf;

/// Error of a file that is written.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "each variant has an error message")]
pub enum SinkError {
    #[error("cannot open {path} for writing: {source}; check that its directory exists and is writable")]
    Open { path: PathBuf, source: io::Error },
    #[error("{path} is not a regular file and is not replaced: name a file, or - for standard output")]
    NotRegular { path: PathBuf },
    #[error(
        "{path} already exists and was not left by a killed run of this user, so it is neither overwritten nor \
         removed: find its owner and remove it, or name an output in a directory that only this user can write"
    )]
    ForeignFile { path: PathBuf },
    #[error(
        "{failed}; already replaced: {}; other outputs unchanged: start again to replace all of them",
        .replaced.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
    )]
    PartlyReplaced { failed: Box<Self>, replaced: Vec<PathBuf> },
    #[error("cannot write {path} at byte {byte}: {source}; free disk space, then start again")]
    Write { path: PathBuf, byte: u64, source: io::Error },
    #[error("cannot sync {path} to disk: {source}; check the disk, then start again")]
    Sync { path: PathBuf, source: io::Error },
    #[error("{path} is locked by another process: stop that process, or name another file")]
    Locked { path: PathBuf },
    #[error("{path} is not empty, and a stream writes its lines to a new file: move it away, or name another file")]
    NotEmpty { path: PathBuf },
    #[error(
        "{path} is not empty, and the state continues an earlier job with series: its content would be lost, because \
         no job writes it again: name another file (sink.path, --lineage, sink.dead_letter_path, sink.audit_file), or \
         move this one away"
    )]
    WouldLoseRows { path: PathBuf },
    #[error("a line for {path} is not a JSON object with the group's columns ({reason}): the sink has another format")]
    UnexpectedLine { path: PathBuf, reason: &'static str },
    #[error("cannot write {path} as Parquet ({fault})")]
    Parquet { path: PathBuf, fault: &'static str },
}

impl SinkError {
    /// Returns true if a retry needs a change by the user.
    pub fn is_usage(&self) -> bool {
        matches!(
            self,
            Self::NotEmpty { .. } | Self::WouldLoseRows { .. } | Self::NotRegular { .. } | Self::ForeignFile { .. }
        )
    }
}
