//! Opening what a text source reads, and going to the place where it continues.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};

use super::SourceError;

const BUFFER_BYTES: usize = 256 << 10;

/// A buffered input that knows its byte position and whether waiting for more may take long.
pub(super) struct Stream {
    input: BufReader<Box<dyn Read + Send>>,
    /// Bytes consumed from the start of the input.
    pub byte: u64,
    /// A regular file: it can be sought, and more of it is there at once or not at all.
    pub regular: bool,
    /// What to ask whether there is more; none for a regular file.
    pipe: Option<OwnedFd>,
    /// Whether the start has been looked at for a byte order mark.
    begun: bool,
    /// There was one.
    marked: bool,
}

impl std::fmt::Debug for Stream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stream").field("byte", &self.byte).field("regular", &self.regular).finish_non_exhaustive()
    }
}

impl Stream {
    /// The input at its start, after a byte order mark if there is one. `-` is standard input. A pipe is not waited for.
    pub fn open(path: &Path) -> Result<Self, SourceError> {
        let fault = |source| SourceError::Open { path: path.into(), source };
        let (input, pipe): (Box<dyn Read + Send>, Option<OwnedFd>) = if path == Path::new("-") {
            let pipe = io::stdin().as_fd().try_clone_to_owned().map_err(fault)?;
            (Box::new(io::stdin()), Some(pipe))
        } else {
            let (file, length) = open_file(path)?;
            let pipe = if length.is_some() { None } else { Some(file.try_clone().map_err(fault)?.into()) };
            (Box::new(file), pipe)
        };
        let input = BufReader::with_capacity(BUFFER_BYTES, input);
        let mut stream = Self { input, byte: 0, regular: pipe.is_none(), pipe, begun: false, marked: false };
        if stream.regular {
            stream.fill().map_err(|source| SourceError::Read { path: path.into(), byte: 0, source })?;
        }
        Ok(stream)
    }

    /// A regular file after its first `position` bytes, which end a record; `breaks` are the bytes that may.
    ///
    /// A last record without a line break may have got its line break since; that is passed over.
    pub fn resume(path: &Path, position: u64, breaks: &[u8]) -> Result<Self, SourceError> {
        let (mut file, length) = open_file(path)?;
        let length = length.unwrap_or(0);
        if position > length {
            return Err(SourceError::Shrunk { path: path.into(), length, position });
        }
        let fault = |source| SourceError::Read { path: path.into(), byte: position, source };
        let mut around = [b'\n'; 3];
        let before = usize::from(position > 0);
        file.seek(SeekFrom::Start(position - before as u64)).map_err(fault)?;
        let after = length.saturating_sub(position).min(2) as usize;
        file.read_exact(&mut around[1 - before..=after]).map_err(fault)?;
        let [last, next, second] = around;
        let mut byte = position;
        if !breaks.contains(&last) && after > 0 {
            byte += match (next, second) {
                (b'\n', _) => 1,
                (b'\r', b'\n') if after == 2 => 2,
                _ => return Err(SourceError::Changed { path: path.into(), byte: position }),
            };
        }
        file.seek(SeekFrom::Start(byte)).map_err(fault)?;
        let input = BufReader::with_capacity(BUFFER_BYTES, Box::new(file) as Box<dyn Read + Send>);
        Ok(Self { input, byte, regular: true, pipe: None, begun: true, marked: false })
    }

    /// The bytes at hand, after reading some if there were none; empty at the end of the input.
    pub fn fill(&mut self) -> io::Result<&[u8]> {
        loop {
            match self.input.fill_buf() {
                Ok(_) => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        if !std::mem::replace(&mut self.begun, true) && self.input.buffer().starts_with(b"\xef\xbb\xbf") {
            self.consume(3);
            self.marked = true;
            return self.fill();
        }
        Ok(self.input.buffer())
    }

    /// Whether nothing has been consumed yet but a byte order mark.
    pub fn is_at_start(&self) -> bool {
        self.byte == 0 || self.byte == 3 && self.marked
    }

    /// Passes over `count` of the bytes last given by [`fill`](Self::fill).
    pub fn consume(&mut self, count: usize) {
        self.input.consume(count);
        self.byte += count as u64;
    }

    /// Whether the next record may have to be waited for, as on a pipe whose writer is slow.
    pub fn would_wait(&self) -> bool {
        !self.regular && self.input.buffer().is_empty()
    }

    /// Whether there is more, or an end, to read: asked of a pipe for at most `patience`.
    pub fn comes_within(&self, patience: Duration) -> io::Result<bool> {
        let Some(pipe) = self.pipe.as_ref().filter(|_| self.would_wait()) else { return Ok(true) };
        let mut asked = [PollFd::new(pipe, PollFlags::IN)];
        let patience = patience.try_into().map_err(|_| io::ErrorKind::InvalidInput)?;
        match poll(&mut asked, Some(&patience)) {
            Ok(answers) => Ok(answers > 0),
            Err(rustix::io::Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Appends bytes to `line` up to and including a line break, at most `limit` of them; gives their number.
    pub fn take_line(&mut self, limit: usize, line: &mut Vec<u8>) -> io::Result<usize> {
        self.fill()?;
        let taken = (&mut self.input).take(limit as u64).read_until(b'\n', line)?;
        self.byte += taken as u64;
        Ok(taken)
    }

    /// Passes over everything up to and including the next line break without keeping it.
    pub fn skip_line(&mut self) -> io::Result<usize> {
        let skipped = self.input.skip_until(b'\n')?;
        self.byte += skipped as u64;
        Ok(skipped)
    }
}

/// The file, and its length if it is a regular one.
pub(super) fn open_file(path: &Path) -> Result<(File, Option<u64>), SourceError> {
    let fault = |source| SourceError::Open { path: path.into(), source };
    let file = File::open(path).map_err(fault)?;
    let metadata = file.metadata().map_err(fault)?;
    if metadata.is_dir() {
        return Err(SourceError::Directory { path: path.into() });
    }
    Ok((file, metadata.is_file().then_some(metadata.len())))
}
