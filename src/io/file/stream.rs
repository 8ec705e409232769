//! The text that a source reads.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use super::SourceError;
use super::inflate::{Compression, Inflated};
use super::waiting::{StopFlag, comes};

const BUFFER_BYTES: usize = 256 << 10;

/// A buffered input that knows its byte position and whether waiting for more may take long.
pub(super) struct Stream {
    input: BufReader<Inflated>,
    /// Bytes consumed from the start of the input, of the text that is in it where it is compressed.
    pub byte: u64,
    /// A regular file: more of it is there at once or not at all.
    pub regular: bool,
    /// Its end has been seen: what is written behind it since is of another run.
    over: bool,
    /// When a pipe is not waited for any more, and a long line not passed over to its end.
    pub stop: StopFlag,
    /// What to ask whether there is more; none for a regular file.
    pipe: Option<OwnedFd>,
    beginning: Beginning,
}

/// What is known of the start of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Beginning {
    Unseen,
    Plain,
    /// It has a byte order mark.
    Marked,
}

impl std::fmt::Debug for Stream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stream").field("byte", &self.byte).field("regular", &self.regular).finish_non_exhaustive()
    }
}

impl Stream {
    /// The input at its start, after a byte order mark if there is one. `-` is standard input. A pipe is not waited for.
    pub fn open(path: &Path, stop: &StopFlag) -> Result<Self, SourceError> {
        let fault = |source| SourceError::Open { path: path.into(), source };
        let (file, length) = if path == Path::new("-") {
            // Not the buffer of the process: what lies in it could not be asked for.
            (File::from(io::stdin().as_fd().try_clone_to_owned().map_err(fault)?), None)
        } else {
            open_file(path)?
        };
        let copy = file.try_clone().map_err(fault)?;
        let pipe = length.is_none().then(|| OwnedFd::from(copy));
        let asked = pipe.as_ref().map(OwnedFd::try_clone).transpose().map_err(fault)?;
        let inflated = Inflated::new(Box::new(file), asked, stop.clone()).map_err(fault)?;
        let regular = pipe.is_none();
        let stream = Self { pipe, beginning: Beginning::Unseen, stop: stop.clone(), ..Self::with(inflated, regular) };
        if stream.regular { stream.begun(path) } else { Ok(stream) }
    }

    /// Looks at its first bytes, which are there at once.
    fn begun(mut self, path: &Path) -> Result<Self, SourceError> {
        self.fill().map_err(|source| SourceError::Read { path: path.into(), byte: 0, source })?;
        Ok(self)
    }

    /// Text that somebody else makes, which is there at once or not at all.
    pub fn of(text: Box<dyn Read + Send>) -> Self {
        Self::with(Inflated::plain(text), true)
    }

    fn with(inflated: Inflated, regular: bool) -> Self {
        let input = BufReader::with_capacity(BUFFER_BYTES, inflated);
        let stop = StopFlag::default();
        Self { input, byte: 0, regular, over: false, stop, pipe: None, beginning: Beginning::Plain }
    }

    /// The bytes at hand, after reading some if there were none; empty at the end of the input.
    pub fn fill(&mut self) -> io::Result<&[u8]> {
        if self.over {
            return Ok(&[]);
        }
        loop {
            match self.input.fill_buf() {
                Ok(_) => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        if self.beginning == Beginning::Unseen {
            self.beginning = Beginning::Plain;
            if self.input.buffer().starts_with(b"\xef\xbb\xbf") {
                self.consume(3);
                self.beginning = Beginning::Marked;
                return self.fill();
            }
        }
        self.over = self.regular && self.input.buffer().is_empty();
        Ok(self.input.buffer())
    }

    /// Whether nothing has been consumed yet but a byte order mark.
    pub fn is_at_start(&self) -> bool {
        self.byte == 0 || self.byte == 3 && self.beginning == Beginning::Marked
    }

    /// Passes over `count` of the bytes last given by [`fill`](Self::fill).
    pub fn consume(&mut self, count: usize) {
        self.input.consume(count);
        self.byte += count as u64;
    }

    /// Whether there is more, or an end, to read: asked of a pipe for at most `patience`.
    pub fn comes_within(&mut self, patience: Duration) -> io::Result<bool> {
        let Some(pipe) = self.pipe.as_ref().filter(|_| self.input.buffer().is_empty()) else { return Ok(true) };
        if self.input.get_ref().compression().is_none() {
            return comes(pipe, patience);
        }
        let begun = Instant::now();
        loop {
            // What has come may give no text yet.
            self.input.get_mut().set_waiting(false);
            let filled = self.input.fill_buf().map(drop);
            self.input.get_mut().set_waiting(true);
            match filled {
                Ok(()) => return Ok(true),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if !comes(pipe, patience.saturating_sub(begun.elapsed()))? {
                        return Ok(false);
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Appends bytes to `line` up to and including a line break, at most `limit` of them; gives their number.
    pub fn take_line(&mut self, limit: usize, line: &mut Vec<u8>) -> io::Result<usize> {
        if self.fill()?.is_empty() {
            return Ok(0);
        }
        let taken = (&mut self.input).take(limit as u64).read_until(b'\n', line)?;
        self.byte += taken as u64;
        self.over = self.regular && taken < limit && line.last() != Some(&b'\n');
        Ok(taken)
    }

    /// Passes over everything up to and including the next line break without keeping it.
    ///
    /// # Errors
    /// When reading fails, and when it is given up because the process is to end: a line may be longer than anybody waits for.
    pub fn skip_line(&mut self) -> io::Result<()> {
        loop {
            self.stop.check()?;
            let (count, ended) = up_to_break(self.fill()?);
            self.consume(count);
            if ended || count == 0 {
                return Ok(());
            }
        }
    }
}

/// How many of the bytes are of the first line, and whether it ends among them.
fn up_to_break(bytes: &[u8]) -> (usize, bool) {
    bytes.iter().position(|byte| *byte == b'\n').map_or((bytes.len(), false), |at| (at + 1, true))
}

/// The text of a file, also where it is compressed.
///
/// # Errors
/// When the file cannot be opened.
pub fn open_text(path: &Path) -> io::Result<impl Read + use<>> {
    Inflated::new(Box::new(File::open(path)?), None, StopFlag::default())
}

/// The bytes of text in a file, where they are known without reading it: of one regular file that is not compressed.
#[must_use]
pub fn plain_length(path: &Path) -> Option<u64> {
    // Whoever writes to a pipe has it broken by a reader that only looks.
    if !path.metadata().ok()?.is_file() {
        return None;
    }
    let (file, length) = open_file(path).ok()?;
    let mut start = Vec::new();
    length?;
    file.take(4).read_to_end(&mut start).ok()?;
    length.filter(|_| Compression::of(&start).is_none())
}

/// The file, and its length if it is a regular one.
pub(super) fn open_file(path: &Path) -> Result<(File, Option<u64>), SourceError> {
    let fault = |source| SourceError::Open { path: path.into(), source };
    let file = File::open(path).map_err(fault)?;
    let metadata = file.metadata().map_err(fault)?;
    Ok((file, metadata.is_file().then_some(metadata.len())))
}

#[cfg(test)]
#[path = "stream_tests.rs"]
mod tests;
