//! The marker beside output files: which batch of which state has last begun to leave to them.
//!
//! The commit point of files is the state itself, so that an older copy of the state would take back what has been read and
//! release it once more, perhaps otherwise. The marker lies beside the files and not in the state directory. A batch is named
//! in it after its intent is durable and before anything of it is written: a state that does not know what the marker
//! says is not the one that wrote the files last.
//!
//! Two lines of a fixed length, written in turn: one that was torn leaves the other one, which says what was said before.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::SinkError;
use super::append::{lock, sync_directory};
use crate::faults::crash_point;
use crate::release::sink::Mark;

const LINE: usize = 128;
const WORD: &str = "throng";

/// What a line says.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Said {
    state: String,
    mark: Mark,
    /// Rises with every line; the greatest was written last.
    round: u64,
}

/// The open, locked marker.
#[derive(Debug)]
pub struct FileMarker {
    path: PathBuf,
    file: File,
    state: String,
    round: u64,
    found: Option<Mark>,
}

impl FileMarker {
    /// Opens the marker, or makes it, and locks it for as long as it is open. `state` names the state; `expected` is what it
    /// knows that the marker may say of it (`None`: nothing yet).
    ///
    /// # Errors
    /// [`SinkError::OlderState`] or [`SinkError::NoMarker`] when the marker says something else, or nothing, unless
    /// `accept` is given; nothing has changed then. When it cannot be opened, or is open in another process.
    pub fn open(path: &Path, state: &str, expected: &[Option<Mark>], accept: bool) -> Result<Self, SinkError> {
        let fault = |source| SinkError::Open { path: path.into(), source };
        let mut options = OpenOptions::new();
        options.read(true).write(true).mode(0o600);
        let new_is_fine = accept || expected.contains(&None);
        let file = match options.open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && new_is_fine => {
                options.create(true).open(path).map_err(fault)?
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(SinkError::NoMarker { path: path.into() });
            }
            opened => opened.map_err(fault)?,
        };
        if !file.metadata().map_err(fault)?.is_file() {
            return Err(SinkError::NotRegular { path: path.into() });
        }
        lock(&file, path)?;
        let said = read(&file).map_err(|source| SinkError::Unreadable { path: path.into(), source })?;
        let ours = said.iter().filter(|line| line.state == state);
        let found = ours.max_by_key(|line| line.round).map(|line| line.mark);
        if !accept && !expected.contains(&found) {
            return Err(match found {
                Some(Mark { sequence, .. }) => SinkError::OlderState {
                    path: path.into(),
                    found: sequence,
                    known: expected.iter().flatten().map(|mark| mark.sequence).max().unwrap_or(0),
                },
                None => SinkError::NoMarker { path: path.into() },
            });
        }
        let round = said.iter().map(|line| line.round).max().unwrap_or(0);
        sync_directory(path.parent().unwrap_or(Path::new(".")))?;
        Ok(Self { path: path.into(), file, state: state.to_owned(), round, found })
    }

    /// What it was found to say of the state.
    #[must_use]
    pub fn found(&self) -> Option<Mark> {
        self.found
    }

    /// Says that `mark` begins to leave, durably.
    ///
    /// # Errors
    /// When it cannot be written; nothing of the batch may be then.
    pub fn write(&mut self, mark: Mark) -> Result<(), SinkError> {
        let said = Said { state: self.state.clone(), mark, round: self.round + 1 };
        let at = (said.round % 2) * LINE as u64;
        let fault = |source| SinkError::Write { path: self.path.clone(), byte: at, source };
        self.file.write_all_at(&line_of(&said), at).map_err(fault)?;
        crash_point("file-unmarked");
        self.file.sync_data().map_err(|source| SinkError::Sync { path: self.path.clone(), source })?;
        self.round += 1;
        crash_point("file-marked");
        Ok(())
    }
}

fn digest(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

fn line_of(said: &Said) -> Vec<u8> {
    let Said { state, mark: Mark { sequence, attempt }, round } = said;
    let text = format!("{WORD} {state} {sequence} {attempt:016x} {round}");
    let mut line = format!("{text} {}", digest(&text)).into_bytes();
    line.resize(LINE - 1, b' ');
    line.push(b'\n');
    line
}

/// What a whole line says; none where it was torn or never written.
fn said_by(line: &[u8]) -> Option<Said> {
    let text = std::str::from_utf8(line).ok()?.trim_end();
    let (text, check) = text.rsplit_once(' ')?;
    if digest(text) != check {
        return None;
    }
    let words: Vec<&str> = text.split(' ').collect();
    let [WORD, state, sequence, attempt, round] = words[..] else { return None };
    let mark = Mark { sequence: sequence.parse().ok()?, attempt: u64::from_str_radix(attempt, 16).ok()? };
    Some(Said { state: state.to_owned(), mark, round: round.parse().ok()? })
}

fn read(file: &File) -> io::Result<Vec<Said>> {
    let length = usize::try_from(file.metadata()?.len()).unwrap_or(usize::MAX).min(2 * LINE);
    let mut bytes = vec![0; length];
    file.read_exact_at(&mut bytes, 0)?;
    Ok(bytes.chunks(LINE).filter_map(said_by).collect())
}

#[cfg(test)]
#[path = "marker_tests.rs"]
mod tests;
