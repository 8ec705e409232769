//! Opening what a text source reads, and going to the place where it continues.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use super::SourceError;
use super::inflate::{Compression, Inflated, comes, skip};

const BUFFER_BYTES: usize = 256 << 10;

/// A buffered input that knows its byte position and whether waiting for more may take long.
pub(super) struct Stream {
    input: BufReader<Inflated>,
    /// Bytes consumed from the start of the input, of the text that is in it where it is compressed.
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
        let (file, length) = if path == Path::new("-") {
            // Not the buffer of the process: what lies in it could not be asked for.
            (File::from(io::stdin().as_fd().try_clone_to_owned().map_err(fault)?), None)
        } else {
            open_file(path)?
        };
        let pipe = |file: &File| file.try_clone().map(OwnedFd::from).map_err(fault);
        let (pipe, asked) = if length.is_some() { (None, None) } else { (Some(pipe(&file)?), Some(pipe(&file)?)) };
        let input = BufReader::with_capacity(BUFFER_BYTES, Inflated::new(Box::new(file), asked));
        let mut stream = Self { input, byte: 0, regular: pipe.is_none(), pipe, begun: false, marked: false };
        if stream.regular {
            stream.fill().map_err(|source| SourceError::Read { path: path.into(), byte: 0, source })?;
        }
        Ok(stream)
    }

    /// Text that somebody else makes, which is there at once or not at all.
    pub fn of(text: Box<dyn Read + Send>) -> Self {
        let input = BufReader::with_capacity(BUFFER_BYTES, Inflated::plain(text));
        Self { input, byte: 0, regular: true, pipe: None, begun: true, marked: false }
    }

    /// A regular file after its first `position` bytes, which end a record; `breaks` are the bytes that may. Of a compressed file these
    /// are bytes of the text in it, and everything before them is decompressed again.
    ///
    /// A last record without a line break may have got its line break since; that is passed over.
    pub fn resume(path: &Path, position: u64, breaks: &[u8]) -> Result<Self, SourceError> {
        let (mut file, length) = open_file(path)?;
        let length = length.unwrap_or(0);
        let fault = |source| SourceError::Read { path: path.into(), byte: position, source };
        let mut start = Vec::new();
        (&mut file).take(4).read_to_end(&mut start).map_err(fault)?;
        let compressed = Compression::of(&start).is_some();
        if !compressed && position > length {
            return Err(SourceError::Shrunk { path: path.into(), length, position });
        }
        let before = position - u64::from(position > 0);
        file.seek(SeekFrom::Start(if compressed { 0 } else { before })).map_err(fault)?;
        let file: Box<dyn Read + Send> = Box::new(file);
        let inflated = if compressed { Inflated::new(file, None) } else { Inflated::plain(file) };
        let mut input = BufReader::with_capacity(BUFFER_BYTES, inflated);
        if compressed {
            let length = skip(&mut input, before).map_err(fault)?;
            if length < before {
                return Err(SourceError::Shrunk { path: path.into(), length, position });
            }
        }
        let mut stream = Self { input, byte: before, regular: true, pipe: None, begun: true, marked: false };
        let last = if position > 0 { stream.take_byte().map_err(fault)? } else { Some(b'\n') };
        let Some(last) = last else {
            return Err(SourceError::Shrunk { path: path.into(), length: before, position });
        };
        if !breaks.contains(&last) {
            stream.take_break().map_err(fault)?.ok_or(SourceError::Changed { path: path.into(), byte: position })?;
        }
        Ok(stream)
    }

    fn take_byte(&mut self) -> io::Result<Option<u8>> {
        let byte = self.fill()?.first().copied();
        self.consume(usize::from(byte.is_some()));
        Ok(byte)
    }

    /// Passes over one line break; none where something else comes. The end is as good as one.
    fn take_break(&mut self) -> io::Result<Option<()>> {
        Ok(match self.take_byte()? {
            None | Some(b'\n') => Some(()),
            Some(b'\r') => (self.take_byte()? == Some(b'\n')).then_some(()),
            Some(_) => None,
        })
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

    /// Whether there is more, or an end, to read: asked of a pipe for at most `patience`.
    pub fn comes_within(&mut self, patience: Duration) -> io::Result<bool> {
        let Some(pipe) = self.pipe.as_ref().filter(|_| self.input.buffer().is_empty()) else { return Ok(true) };
        if self.input.get_ref().compression().is_none() {
            return comes(pipe, Some(patience));
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
                    if !comes(pipe, Some(patience.saturating_sub(begun.elapsed())))? {
                        return Ok(false);
                    }
                }
                Err(error) => return Err(error),
            }
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

/// Whether standard input has something to read, or its end: asked for at most `patience`.
///
/// # Errors
/// When it cannot be asked.
pub fn standard_input_comes(patience: Duration) -> io::Result<bool> {
    comes(&io::stdin(), Some(patience))
}

/// The bytes of text in a file, where they are known without reading it: of one regular file that is not compressed.
#[must_use]
pub fn plain_length(path: &Path) -> Option<u64> {
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
