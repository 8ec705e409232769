//! The file sink: encoded lines of each group, appended to that group's file.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::segments::Segments;
use super::series::{Rotation, Series, Standing, group_of};
use super::{Format, SinkError};
use crate::config::{self, Sink};

/// A group of attributes that leave together, and the order of its columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupColumns {
    /// The name of the group: letters, digits, `-`, `_` and `.`.
    pub name: String,
    /// The names of its columns, in the order of a line.
    pub columns: Vec<String>,
}

#[derive(Debug)]
enum Output {
    Lines(Series),
    Segments(Segments),
    /// Bytes written so far: at least once, for what has been printed cannot be taken back.
    Printed(u64),
}

/// The files of all groups.
///
/// The protocol of a batch: [`append`](Self::append) the lines of every group, [`sync`](Self::sync), commit the
/// lengths that it gave beside the position of the source. When the commit fails, or to undo a batch,
/// [`truncate_to`](Self::truncate_to) the lengths of the last commit. A start opens with the committed lengths.
/// The lengths of the first sync, before any line, should be committed too: they say that the files are ours.
#[derive(Debug)]
pub struct FileSink {
    names: Vec<String>,
    outputs: Vec<Output>,
}

impl FileSink {
    /// Opens the outputs, locks them for as long as they are open, and truncates each to its committed length; a group
    /// without one starts at length 0, which **empties** what is there (a daemon asks [`Places::check`] before).
    ///
    /// [`Places::check`]: super::Places::check
    ///
    /// One group writes `PATH`, several write a file each ([`Sink::file_of`]); Parquet writes `PATH/GROUP/segment-00000000.parquet` and
    /// counts segments instead of bytes. `-` is standard output for NDJSON of one group, at least once.
    /// A CSV file starts with its header, which is part of its length.
    ///
    /// # Errors
    /// When an output cannot be opened, is open in another process, is shorter than committed or missing, or when names do
    /// not fit.
    pub fn open(
        path: &Path,
        groups: &[GroupColumns],
        format: Format,
        durable: &[(String, u64)],
    ) -> Result<Self, SinkError> {
        Self::rotated(path, groups, format, None, durable)
    }

    /// The same where the files of lines are rotated: `PATH` with a number before its extension. A group is committed with the number
    /// of its file beside the length, and a start removes the next one (a daemon asks [`Places::check_behind`] before).
    ///
    /// [`Places::check_behind`]: super::Places::check_behind
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn rotated(
        path: &Path,
        groups: &[GroupColumns],
        format: Format,
        rotation: Option<Rotation>,
        durable: &[(String, u64)],
    ) -> Result<Self, SinkError> {
        let paths = output_paths(path, groups, format)?;
        let names: Vec<String> = groups.iter().map(|group| group.name.clone()).collect();
        let standings = standings_of(&names, durable)?;
        let mut outputs = Vec::with_capacity(groups.len());
        for ((group, path), at) in groups.iter().zip(paths).zip(standings) {
            outputs.push(match (path, format) {
                (None, _) => Output::Printed(0),
                (Some(path), Format::Ndjson) => Output::Lines(Series::open(&path, Vec::new(), rotation, at)?),
                (Some(path), Format::Csv { separator }) => {
                    let header = header(&group.columns, separator);
                    Output::Lines(Series::open(&path, header, rotation, at)?)
                }
                (Some(path), Format::Parquet) => Output::Segments(Segments::open(&path, &group.columns, at.length)?),
            });
        }
        Ok(Self { names, outputs })
    }

    /// The names of the outputs, in their order.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Goes on with the next file of each group whose file is long or old enough. To be called before the first line of a batch with
    /// the stamp `clock_ms`, in milliseconds since 1970.
    ///
    /// # Errors
    /// When the next file cannot be made, or is there already.
    pub fn turn(&mut self, clock_ms: i64) -> Result<(), SinkError> {
        let clock_ms = u64::try_from(clock_ms).unwrap_or(0);
        self.outputs.iter_mut().try_for_each(|output| match output {
            Output::Lines(series) => series.turn(clock_ms),
            Output::Segments(_) | Output::Printed(_) => Ok(()),
        })
    }

    /// Appends complete lines of group number `group` (each with its line break). For Parquet they are NDJSON.
    ///
    /// # Errors
    /// When writing fails (a full disk) or the lines do not fit; the group then takes nothing until truncated.
    pub fn append(&mut self, group: usize, lines: &[u8]) -> Result<(), SinkError> {
        let groups = self.outputs.len();
        let output = self.outputs.get_mut(group).ok_or(SinkError::NoSuchGroup { group, groups })?;
        if lines.last().is_some_and(|&byte| byte != b'\n') {
            return Err(SinkError::UnfinishedLine { path: output.path().into() });
        }
        match output {
            Output::Lines(file) => file.append(lines),
            Output::Segments(segments) => segments.append(lines),
            Output::Printed(written) => {
                let byte = *written;
                *written += lines.len() as u64;
                let fault = |source| SinkError::Write { path: STANDARD_OUTPUT.into(), byte, source };
                io::stdout().lock().write_all(lines).map_err(fault)
            }
        }
    }

    /// Brings everything to the disk, all groups at once: a file system settles several waiting files in one turn. Gives the
    /// length of every group, for the commit.
    ///
    /// # Errors
    /// When writing or syncing fails; nothing of it may be committed then.
    pub fn sync(&mut self) -> Result<Vec<(String, u64)>, SinkError> {
        let standings: Vec<Result<Standing, SinkError>> = if let [only] = &mut self.outputs[..] {
            vec![only.sync()]
        } else {
            std::thread::scope(|scope| {
                let syncing: Vec<_> = self.outputs.iter_mut().map(|output| scope.spawn(|| output.sync())).collect();
                syncing.into_iter().map(|thread| thread.join().expect("syncing does not panic")).collect()
            })
        };
        let mut lengths = Vec::new();
        for ((name, output), standing) in self.names.iter().zip(&self.outputs).zip(standings) {
            let rotated = matches!(output, Output::Lines(series) if series.is_rotated());
            standing?.told(name, rotated, &mut lengths);
        }
        Ok(lengths)
    }

    /// By what the file or directory of every group is known again, once it is synced. Standard output is by nothing.
    ///
    /// # Errors
    /// When one cannot be read.
    pub fn fingerprints(&self) -> Result<Vec<(String, u64)>, SinkError> {
        let fingerprint = |output: &Output| match output {
            Output::Lines(file) => file.fingerprint().map(Some),
            Output::Segments(segments) => segments.fingerprint().map(Some),
            Output::Printed(_) => Ok(None),
        };
        let of = |(name, output): (&String, &Output)| Ok(fingerprint(output)?.map(|found| (name.clone(), found)));
        self.names.iter().zip(&self.outputs).filter_map(|one| of(one).transpose()).collect()
    }

    /// Forgets everything after the given lengths, earlier failures included. Standard output forgets nothing.
    ///
    /// # Errors
    /// When a file is shorter than its length or cannot be truncated, or when a length is of no group here.
    pub fn truncate_to(&mut self, lengths: &[(String, u64)]) -> Result<(), SinkError> {
        for (output, at) in self.outputs.iter_mut().zip(standings_of(&self.names, lengths)?) {
            match output {
                Output::Lines(file) => file.truncate_to(at)?,
                Output::Segments(segments) => segments.truncate_to(at.length)?,
                Output::Printed(_) => {}
            }
        }
        Ok(())
    }
}

const STANDARD_OUTPUT: &str = "standard output";

impl Output {
    fn sync(&mut self) -> Result<Standing, SinkError> {
        let length = match self {
            Self::Lines(file) => return file.sync(),
            Self::Segments(segments) => segments.sync()?,
            Self::Printed(written) => {
                let fault = |source| SinkError::Sync { path: STANDARD_OUTPUT.into(), source };
                io::stdout().lock().flush().map_err(fault)?;
                *written
            }
        };
        Ok(Standing { length, ..Standing::default() })
    }

    fn path(&self) -> &Path {
        match self {
            Self::Lines(file) => file.path(),
            Self::Segments(segments) => segments.path(),
            Self::Printed(_) => Path::new(STANDARD_OUTPUT),
        }
    }
}

/// The file or directory of each group; none for standard output.
pub(super) fn output_paths(
    path: &Path,
    groups: &[GroupColumns],
    format: Format,
) -> Result<Vec<Option<PathBuf>>, SinkError> {
    for (index, group) in groups.iter().enumerate() {
        let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
        if group.name.is_empty() || group.name.starts_with('.') || !group.name.bytes().all(plain) {
            return Err(SinkError::GroupName { name: group.name.clone() });
        }
        if groups[..index].iter().any(|earlier| earlier.name == group.name) {
            return Err(SinkError::DuplicateGroup { name: group.name.clone() });
        }
    }
    if let Format::Csv { separator } = format
        && (!separator.is_ascii() || matches!(separator, b'"' | b'\n' | b'\r' | 0))
    {
        return Err(SinkError::Separator);
    }
    if groups.is_empty() {
        return Err(SinkError::NoGroup);
    }
    if path == Path::new("-") {
        let simple = groups.len() == 1 && format == Format::Ndjson;
        return if simple { Ok(vec![None]) } else { Err(SinkError::StandardOutput) };
    }
    let spelled = match format {
        Format::Ndjson => config::Format::Json,
        Format::Csv { .. } => config::Format::Csv,
        Format::Parquet => config::Format::Parquet,
    };
    let of_group = |group: &GroupColumns| Sink::file_of(path, spelled, &group.name, groups.len() == 1);
    Ok(groups.iter().map(|group| Some(of_group(group))).collect())
}

/// How far each named group is committed: not at all where nothing is given.
fn standings_of(names: &[String], lengths: &[(String, u64)]) -> Result<Vec<Standing>, SinkError> {
    let known = |name: &str| names.iter().any(|of| of == name);
    if let Some(name) = lengths.iter().map(|(name, _)| group_of(name)).find(|name| !known(name)) {
        return Err(SinkError::ForeignGroup { name: name.to_owned() });
    }
    Ok(names.iter().map(|name| Standing::of(name, lengths).unwrap_or_default()).collect())
}

/// The header line of a CSV file.
fn header(columns: &[String], separator: u8) -> Vec<u8> {
    let mut line = Vec::new();
    for (index, column) in columns.iter().enumerate() {
        if index > 0 {
            line.push(separator);
        }
        let special = |b: u8| b == separator || matches!(b, b'"' | b'\n' | b'\r');
        if column.is_empty() || column.bytes().any(special) {
            line.push(b'"');
            line.extend_from_slice(column.replace('"', "\"\"").as_bytes());
            line.push(b'"');
        } else {
            line.extend_from_slice(column.as_bytes());
        }
    }
    line.push(b'\n');
    line
}

#[cfg(test)]
#[path = "sink_tests.rs"]
mod tests;
