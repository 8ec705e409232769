//! What can go wrong with a file that is written.

use std::io;
use std::path::{Path, PathBuf};

/// An error of a file sink. After a failed write or sync the file refuses everything but a truncation, because what
/// of the failed bytes is on the disk is not known.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the message of a variant says what it is and names its fields")]
pub enum SinkError {
    #[error("cannot open {path} for writing: {source}; check that its directory exists and may be written")]
    Open { path: PathBuf, source: io::Error },
    #[error(
        "{path} is not a regular file: a file sink must be able to truncate; name a file, or - for standard output"
    )]
    NotRegular { path: PathBuf },
    #[error("{path} is no directory, and Parquet is written as a directory of segments: name another path")]
    NotDirectory { path: PathBuf },
    #[error(
        "{path} holds \"{entry}\", which is no segment of a release, and would be removed with what the new release \
         replaces: move it away, or name another directory"
    )]
    NotOurs { path: PathBuf, entry: String },
    #[error("the new release is written, but what it replaced is still at {path}: {source}; look at it, and remove it")]
    Remains { path: PathBuf, source: io::Error },
    #[error("cannot write {path} at byte {byte}: {source}; make room, then start again")]
    Write { path: PathBuf, byte: u64, source: io::Error },
    #[error("cannot bring {path} to the disk: {source}; check the disk, then start again")]
    Sync { path: PathBuf, source: io::Error },
    #[error("cannot truncate {path} to {length} bytes: {source}; check its permissions")]
    Truncate { path: PathBuf, length: u64, source: io::Error },
    #[error("{path} failed before and takes nothing more: truncate it to its durable length, or start again")]
    Broken { path: PathBuf },
    #[error(
        "{path} is missing, but {durable} of it had been committed: restore it, or start with a new state directory"
    )]
    Missing { path: PathBuf, durable: u64 },
    #[error(
        "{path} has {length} bytes, but {durable} had been committed: it was cut or replaced; \
         restore it, or start with a new state directory"
    )]
    Shorter { path: PathBuf, length: u64, durable: u64 },
    #[error("{path} cannot be read back: {source}; make it readable by the daemon, then start again")]
    Unreadable { path: PathBuf, source: io::Error },
    #[error(
        "{path} is open in another process, and two cannot write one file: end the other one, or name another file"
    )]
    Locked { path: PathBuf },
    #[error(
        "{path} holds something already and this state has never written to it: move it away, \
         or continue with the state directory that belongs to it"
    )]
    Occupied { path: PathBuf },
    #[error(
        "{path} does not hold what this state has written there: it is another file, or was changed; restore it, \
         or start with a new state directory and another file"
    )]
    Foreign { path: PathBuf },
    #[error(
        "the lineage {path} would lack the lines that left without it: it must be given from the first record on; \
         start again with a new state directory and new files, or go on without --lineage"
    )]
    PartialLineage { path: PathBuf },
    #[error(
        "{path} says that batch {found} of this state has been written to the files beside it, but the state knows of \
         {known} as the last: the state directory is an older copy, and would release records a second time, perhaps \
         otherwise; restore the newer one, or accept it with --accept-rewind"
    )]
    OlderState { path: PathBuf, found: u64, known: u64 },
    #[error(
        "{path} is missing, damaged or of another state: it names the last batch that was written to the files beside it, \
         and without it nobody can tell whether the state directory is an older copy; restore it, or accept that with \
         --accept-rewind"
    )]
    NoMarker { path: PathBuf },
    #[error(
        "the files of {path} {now} rotated by the configuration, and were written otherwise before: restore sink.rotate, or start \
         with a new state directory and new files"
    )]
    Rotated { path: PathBuf, now: &'static str },
    #[error("a sink needs at least one group of columns")]
    NoGroup,
    #[error("the group name \"{name}\" cannot be part of a file name: use letters, digits, '-', '_' and inner '.'")]
    GroupName { name: String },
    #[error("two groups are named \"{name}\": rename one of them")]
    DuplicateGroup { name: String },
    #[error(
        "the state knows a length of group \"{name}\", which is not configured: restore the groups, \
         or start with a new state directory"
    )]
    ForeignGroup { name: String },
    #[error("there is no group number {group} in this sink, only {groups}")]
    NoSuchGroup { group: usize, groups: usize },
    #[error("standard output takes NDJSON of one group: name a file for other formats and more groups")]
    StandardOutput,
    #[error("the separator of a CSV file must be one ASCII byte that is neither a quote nor a line break")]
    Separator,
    #[error("lines for {path} do not end in a line break: every line handed to a sink must be complete")]
    UnfinishedLine { path: PathBuf },
    #[error(
        "a line for {path} is not a JSON object of the group's columns ({reason}): the sink was given another format"
    )]
    ForeignLine { path: PathBuf, reason: &'static str },
    #[error("cannot write {path} as Parquet ({fault})")]
    Parquet { path: PathBuf, fault: &'static str },
}

impl SinkError {
    /// Whether the user must change something before another attempt makes sense.
    #[must_use]
    pub fn is_usage(&self) -> bool {
        matches!(
            self,
            Self::Occupied { .. }
                | Self::Rotated { .. }
                | Self::NotRegular { .. }
                | Self::NotDirectory { .. }
                | Self::NotOurs { .. }
                | Self::StandardOutput
                | Self::Foreign { .. }
                | Self::PartialLineage { .. }
                | Self::OlderState { .. }
                | Self::NoMarker { .. }
        )
    }

    /// The same of the file at `place`: what failed was being written beside it.
    #[must_use]
    pub fn at(self, place: &Path) -> Self {
        let path = place.to_owned();
        match self {
            Self::Open { source, .. } => Self::Open { path, source },
            Self::Write { byte, source, .. } => Self::Write { path, byte, source },
            Self::Sync { source, .. } => Self::Sync { path, source },
            Self::Locked { .. } => Self::Locked { path },
            other => other,
        }
    }
}
