//! What is read as one data set, and the room for it.

use std::path::{Path, PathBuf};

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
