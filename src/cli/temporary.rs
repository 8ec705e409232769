//! A directory that goes with the command.

use anyhow::Context;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// A directory of mode 0700, removed with all that is in it when it goes out of use.
pub struct TemporaryDirectory(PathBuf);

impl TemporaryDirectory {
    /// Makes one; `what` is part of its name.
    ///
    /// # Errors
    /// When the system gives none.
    pub fn make(what: &str) -> anyhow::Result<Self> {
        let path = std::env::temp_dir().join(format!("throng-{what}-{}", uuid::Uuid::new_v4()));
        std::fs::DirBuilder::new().mode(0o700).create(&path).context("no temporary directory can be made")?;
        Ok(Self(path))
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TemporaryDirectory {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0) {
            eprintln!("warning: {} stays behind: {error}", self.0.display());
        }
    }
}
