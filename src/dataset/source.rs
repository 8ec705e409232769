//! What is read as one data set, the room for it, and who attends while it is anonymized.

use super::error::AnonymizeError;
use crate::anonymity::lattice::search::Progress;
use crate::start::findings::Finding;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

/// The files beside `source.path`, the memory that all of it may take, and where it lies.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// Further files, directories or patterns, read behind `source.path` as one table.
    pub more: &'a [PathBuf],
    /// Bytes that may be held.
    pub memory: u64,
    /// The codes go to a file without a name in this directory; none: they are held.
    pub temp: Option<&'a Path>,
    /// Records of a part of the release at most; none: as many as memory allows. With a file only.
    pub part: Option<usize>,
}

impl Source<'static> {
    /// `source.path` alone, held whatever it takes.
    #[must_use]
    pub fn held() -> Self {
        Self { more: &[], memory: u64::MAX, temp: None, part: None }
    }
}

/// What is watched while the search runs.
pub type Watch<'a> = &'a (dyn Fn(&Progress) + Sync);

/// Hears how far the work is; an error ends it.
pub type OnStep<'a> = &'a dyn Fn(Step) -> Result<(), AnonymizeError>;

/// Who attends while a data set is anonymized.
#[derive(Clone, Copy)]
pub struct Attended<'a> {
    /// Hears every now and then how far the search is, and how much time is left.
    pub watch: Watch<'a>,
    /// Once set, the search ends with the best that it has found.
    pub stop: &'a AtomicBool,
    /// Hears what the data lack, before the search.
    pub note: &'a dyn Fn(&Finding),
    /// Hears how far everything else is, and may end it.
    pub step: OnStep<'a>,
}

/// What is being done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "counts of what their names say")]
pub enum Step {
    /// Records are read.
    Reading { records: u64 },
    /// Records are gone through once more, for their classes or their people.
    Counting { records: u64, of: u64 },
    /// The search begins, or begins again.
    Searching,
    /// Records that leave are divided into parts.
    Dividing { records: u64, of: u64 },
    /// Parts of the release are made and verified.
    Verifying { part: u64, of: u64 },
    /// Verified lines are written.
    Writing { lines: u64, of: u64 },
}
