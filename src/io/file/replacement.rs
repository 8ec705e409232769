//! A release that is made at once, and what it takes the place of.
//!
//! What may be replaced is asked before the work; nothing but an earlier release is ever removed.

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use super::segments::{only_segments, remove_segments};
use super::sink::output_paths;
use super::{FileSink, Format, GroupColumns, SinkError, whole};
use crate::config::{self, Used};

/// The place of a release of one group, locked where something is there.
#[derive(Debug)]
pub struct Replacement {
    /// As it was given.
    path: PathBuf,
    format: Format,
    /// None for standard output.
    paths: Option<Paths>,
    _claimed: Option<File>,
}

#[derive(Clone, Debug)]
struct Paths {
    /// What gets the name: the file, or the group's directory of segments.
    to: PathBuf,
    /// What is filled: the file, or the directory of the group's directory.
    unfinished: PathBuf,
    /// What gets the name once it is filled.
    from: PathBuf,
    /// Where an earlier directory of segments lies while the new one gets its name.
    aside: Option<PathBuf>,
}

impl Paths {
    fn of(path: &Path, group: &str, format: Format) -> Result<Self, SinkError> {
        let fault = |source| SinkError::Open { path: path.to_owned(), source };
        let (place, unfinished) = whole::place_and_unfinished(path).map_err(fault)?;
        if format != Format::Parquet {
            return Ok(Self { to: place, from: unfinished.clone(), unfinished, aside: None });
        }
        let to = config::place(&place.join(group));
        let mut aside = OsString::from(".");
        aside.push(to.file_name().unwrap_or_default());
        aside.push(".replaced");
        let aside = Some(to.with_file_name(aside));
        Ok(Self { to, from: unfinished.join(group), unfinished, aside })
    }
}

impl Replacement {
    /// The files that a release at `path` would write or remove, for a comparison with those that are read.
    #[must_use]
    pub fn files(path: &Path, group: &str, format: Format) -> Vec<Used> {
        let Ok(paths) = Paths::of(path, group, format) else { return Vec::new() };
        if path == Path::new("-") {
            return Vec::new();
        }
        match &paths.aside {
            None => vec![Used::file("--output", path), Used::file("the unfinished file of --output", &paths.from)],
            Some(aside) => vec![
                Used::directory("--output", &paths.to),
                Used::directory("the unfinished directory of --output", &paths.unfinished),
                Used::directory("the replaced directory of --output", aside),
            ],
        }
    }

    /// Looks at what is there and locks it; nothing changes.
    ///
    /// # Errors
    /// When something else than an earlier release is there: a directory or a device where a file is written, anything but
    /// segments where a directory of them is. When another process writes it, or the path cannot be looked at.
    pub fn ready(path: &Path, group: &str, format: Format) -> Result<Self, SinkError> {
        let columns = GroupColumns { name: group.to_owned(), columns: Vec::new() };
        output_paths(path, &[columns], format)?;
        if path == Path::new("-") {
            return Ok(Self { path: path.to_owned(), format, paths: None, _claimed: None });
        }
        let paths = Paths::of(path, group, format)?;
        let found = fs::metadata(path).ok();
        if let Some(aside) = &paths.aside {
            if found.is_some_and(|found| !found.is_dir()) {
                return Err(SinkError::NotDirectory { path: path.to_owned() });
            }
            for directory in [&paths.to, aside, &paths.from] {
                only_segments(directory)?;
            }
        } else {
            if found.is_some_and(|found| !found.is_file()) {
                return Err(SinkError::NotRegular { path: path.to_owned() });
            }
            whole::has_parent(&paths.to).map_err(|source| SinkError::Open { path: path.to_owned(), source })?;
        }
        let claimed = whole::claim(&paths.to).map_err(|error| error.at(path))?;
        Ok(Self { path: path.to_owned(), format, paths: Some(paths), _claimed: claimed })
    }

    /// Writes the lines (each with its line break) whole or not at all, but on standard output: a disk that is full leaves
    /// what was there before.
    ///
    /// # Errors
    /// When writing fails, or another process has begun a release there.
    pub fn fill(self, columns: GroupColumns, lines: &[u8]) -> Result<(), SinkError> {
        self.fill_by(columns, |filling| {
            for line in lines.split_inclusive(|byte| *byte == b'\n') {
                filling.line(line, 1)?;
            }
            Ok(())
        })
    }

    /// As [`fill`](Self::fill), by whoever has the lines one after the other.
    ///
    /// # Errors
    /// As [`fill`](Self::fill), and those of `write`.
    pub fn fill_by<E: From<SinkError>>(
        self,
        columns: GroupColumns,
        write: impl FnOnce(&mut Filling) -> Result<(), E>,
    ) -> Result<(), E> {
        let segments = self.format == Format::Parquet;
        let filling = |sink, place| Filling { sink, place, lines: 0, bytes: 0, pending: Vec::new(), segments };
        let Some(paths) = &self.paths else {
            let mut filling = filling(FileSink::open(&self.path, &[columns], self.format, &[])?, None);
            write(&mut filling)?;
            return Ok(filling.finish()?);
        };
        // It is locked until it has its name: without the lock it is somebody else's, and stays.
        let sink = FileSink::open(&paths.unfinished, &[columns], self.format, &[]).map_err(|e| e.at(&self.path))?;
        let mut filling = filling(sink, Some(self.path.clone()));
        let written = write(&mut filling).and_then(|()| Ok(filling.finish().and_then(|()| self.name(paths))?));
        match &paths.aside {
            None if written.is_err() => whole::forget(&paths.unfinished),
            None => {}
            Some(_) => {
                // What is left is of a release that has failed; the error that led here is the one to tell.
                let (Ok(()) | Err(_)) = remove_segments(&paths.from).and(fs::remove_dir(&paths.unfinished));
            }
        }
        // What is left behind is forgotten by whoever has the lock.
        drop(filling);
        written
    }

    fn name(&self, paths: &Paths) -> Result<(), SinkError> {
        let fault = |source| SinkError::Write { path: self.path.clone(), byte: 0, source };
        let Some(aside) = &paths.aside else { return whole::name(&paths.from, &paths.to).map_err(fault) };
        if let Some(parent) = paths.to.parent() {
            fs::create_dir_all(parent).map_err(fault)?;
        }
        // It may have changed while the release was made.
        only_segments(&paths.to)?;
        let replaces = paths.to.is_dir();
        if replaces {
            remove_segments(aside).and_then(|()| fs::rename(&paths.to, aside)).map_err(fault)?;
        }
        if let Err(error) = whole::name(&paths.from, &paths.to) {
            if replaces {
                fs::rename(aside, &paths.to).map_err(fault)?;
            }
            return Err(fault(error));
        }
        remove_segments(aside).map_err(|source| SinkError::Remains { path: aside.clone(), source })
    }
}

/// A release that is being written.
#[derive(Debug)]
pub struct Filling {
    sink: FileSink,
    /// The place as it was given, where the file beside it is filled.
    place: Option<PathBuf>,
    /// Lines since a segment was begun, and their bytes.
    lines: u64,
    bytes: usize,
    pending: Vec<u8>,
    segments: bool,
}

/// Bytes of lines that are written at once.
const AT_ONCE: usize = 1 << 20;

/// Lines of a segment, or bytes of lines: it is held until it is written.
const SEGMENT: u64 = 1 << 20;
const SEGMENT_BYTES: usize = 64 << 20;

impl Filling {
    /// Writes a line, with its line break, so many times.
    ///
    /// # Errors
    /// When writing fails.
    pub fn line(&mut self, line: &[u8], times: u32) -> Result<(), SinkError> {
        for _ in 0..times {
            self.pending.extend_from_slice(line);
            self.lines += 1;
            self.bytes += line.len();
            let is_full = self.segments && (self.lines == SEGMENT || self.bytes >= SEGMENT_BYTES);
            if is_full || self.pending.len() >= AT_ONCE {
                self.append()?;
            }
            if is_full {
                self.sync()?;
                (self.lines, self.bytes) = (0, 0);
            }
        }
        Ok(())
    }

    fn append(&mut self) -> Result<(), SinkError> {
        self.sink.append(0, &self.pending).map_err(|error| self.told(error))?;
        self.pending.clear();
        Ok(())
    }

    fn sync(&mut self) -> Result<(), SinkError> {
        self.sink.sync().map(drop).map_err(|error| self.told(error))
    }

    fn told(&self, error: SinkError) -> SinkError {
        match &self.place {
            Some(place) => error.at(place),
            None => error,
        }
    }

    fn finish(&mut self) -> Result<(), SinkError> {
        self.append()?;
        self.sync()
    }
}

#[cfg(test)]
#[path = "replacement_tests.rs"]
mod tests;
