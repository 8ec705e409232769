//! Where the files of one daemon lie, and whether those that are there are its own.

use std::fs::File;
use std::io;
use std::path::Path;

use super::delivery::{CERTIFICATES, DEAD_LETTERS, LINEAGE, committed, committed_fingerprint, lineage_is_whole};
use super::fingerprint::fingerprint;
use super::segments;
use super::series::{Standing, file_at, refuse_behind};
use super::sink::output_paths;
use super::{Format, GroupColumns, SinkError};
use crate::config;
use crate::release::sink::Lengths;

/// Everything that a run from file to file writes.
#[derive(Clone, Copy, Debug)]
pub struct Places<'a> {
    /// Where the fragments go.
    pub path: &'a Path,
    /// The groups that leave there.
    pub groups: &'a [GroupColumns],
    /// How they are written down.
    pub format: Format,
    /// Whether the files of lines are rotated.
    pub rotates: bool,
    /// The file of dead letters, if there is one.
    pub dead_letters: Option<&'a Path>,
    /// The file of certificates, if there is one.
    pub certificates: Option<&'a Path>,
    /// The lineage file, if there is one.
    pub lineage: Option<&'a Path>,
}

impl Places<'_> {
    /// Refuses what is not the daemon's own, before anything is opened: opening truncates.
    ///
    /// A file that has no committed length must be empty or missing. One that has must end there with what was written; while
    /// that length is 0 it must be the same file, or empty. A lineage must name every line that has left.
    ///
    /// # Errors
    /// [`SinkError::Occupied`], [`SinkError::Foreign`] or [`SinkError::PartialLineage`]; and as [`super::FileSink::open`]
    /// for names that do not fit, and when a path cannot be looked at.
    pub fn check(&self, lengths: &Lengths) -> Result<(), SinkError> {
        let outputs = output_paths(self.path, self.groups, self.format)?;
        for (group, path) in self.groups.iter().zip(outputs) {
            let Some(path) = path else { continue };
            let Some(at) = Standing::of(&group.name, lengths) else {
                self.check_new(&path, &group.name, lengths)?;
                continue;
            };
            if self.rotates != Standing::was_rotated(&group.name, lengths) {
                return Err(SinkError::Rotated { path, now: if self.rotates { "are" } else { "are not" } });
            }
            check(&file_at(&path, self.rotates, at.number), &group.name, lengths)?;
        }
        if let Some(path) = self.dead_letters {
            check(path, DEAD_LETTERS, lengths)?;
        }
        if let Some(path) = self.certificates {
            check(path, CERTIFICATES, lengths)?;
        }
        if let Some(path) = self.lineage {
            let groups: Vec<&str> = self.groups.iter().map(|group| group.name.as_str()).collect();
            if !lineage_is_whole(&groups, lengths) {
                return Err(SinkError::PartialLineage { path: path.into() });
            }
            check(path, LINEAGE, lengths)?;
        }
        Ok(())
    }

    /// Refuses files of a series behind the one that is committed. `repeats`: a batch was begun that did not leave, and may have gone on
    /// with the next file of each group; that one is removed when it is opened.
    ///
    /// # Errors
    /// [`SinkError::Occupied`], and when a directory cannot be read.
    pub fn check_behind(&self, lengths: &Lengths, repeats: bool) -> Result<(), SinkError> {
        if !self.rotates {
            return Ok(());
        }
        let outputs = output_paths(self.path, self.groups, self.format)?;
        for (group, path) in self.groups.iter().zip(outputs) {
            if let (Some(path), Some(at)) = (path, Standing::of(&group.name, lengths)) {
                refuse_behind(&path, at.number + u64::from(repeats))?;
            }
        }
        Ok(())
    }

    /// Of an output that nothing is committed of.
    fn check_new(&self, path: &Path, name: &str, lengths: &Lengths) -> Result<(), SinkError> {
        if !self.rotates {
            return check(path, name, lengths);
        }
        let files = config::series_of(path).map_err(|source| SinkError::Open { path: path.into(), source })?;
        files.values().try_for_each(|file| check(file, name, lengths))
    }
}

fn check(path: &Path, name: &str, lengths: &Lengths) -> Result<(), SinkError> {
    let fault = |source| SinkError::Unreadable { path: path.into(), source };
    let metadata = match std::fs::metadata(path) {
        // What is committed of it and missing, opening tells.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        metadata => metadata.map_err(|source| SinkError::Open { path: path.into(), source })?,
    };
    if !metadata.is_file() && !metadata.is_dir() {
        // Nor can it be opened as an output; reading it may wait for ever.
        return Err(SinkError::NotRegular { path: path.into() });
    }
    let opened = File::open(path).map_err(fault)?;
    let filled =
        if metadata.is_dir() { std::fs::read_dir(path).map_err(fault)?.next().is_some() } else { metadata.len() > 0 };
    let (Some(length), known) = (committed(lengths, name), committed_fingerprint(lengths, name)) else {
        return if filled { Err(SinkError::Occupied { path: path.into() }) } else { Ok(()) };
    };
    let found =
        if metadata.is_dir() { segments::fingerprint_of(&opened, path, length) } else { fingerprint(&opened, length) };
    match (found, known) {
        (Ok(found), Some(known)) if found != known && filled => Err(SinkError::Foreign { path: path.into() }),
        // What is shorter than committed, opening tells.
        (Err(error), _) if !matches!(error.kind(), io::ErrorKind::UnexpectedEof | io::ErrorKind::NotFound) => {
            Err(fault(error))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
#[path = "places_tests.rs"]
mod tests;
