//! The text that a source reads.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::SourceError;
use super::inflate::{Compression, Inflated};
use super::pipe::{Patience, Pipe, StopFlag};

const BUFFER_BYTES: usize = 256 << 10;
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// A buffered input that knows its byte position and whether waiting for more may take long.
pub(super) struct Stream {
    input: BufReader<Inflated>,
    /// Bytes consumed from the start of the input, of the text that is in it where it is compressed.
    pub byte: u64,
    /// Where the text begins: behind a byte order mark.
    start: u64,
    /// Its end has been seen: what is written behind it since is of another run.
    over: bool,
    /// When a pipe is not waited for any more, and a long line not passed over to its end.
    pub stop: StopFlag,
    /// Of a pipe. What is regular is there at once or not at all.
    patience: Option<Patience>,
}

impl std::fmt::Debug for Stream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stream").field("byte", &self.byte).finish_non_exhaustive()
    }
}

impl Stream {
    /// The input at its start, after a byte order mark if there is one. `-` is standard input. A pipe is not waited for.
    pub fn open(path: &Path, stop: &StopFlag) -> Result<Self, SourceError> {
        let fault = |source| SourceError::Open { path: path.into(), source };
        let (input, is_regular) = if path == Path::new("-") {
            // Not the buffer of the process: what lies in it could not be asked for.
            (File::from(io::stdin().as_fd().try_clone_to_owned().map_err(fault)?), false)
        } else {
            let (file, length) = open_file(path)?;
            (file, length.is_some())
        };
        let stop = stop.clone();
        if is_regular {
            let mut stream = Self { stop, ..Self::of(Box::new(input)) };
            stream.fill().map_err(|source| SourceError::Read { path: path.into(), byte: 0, source })?;
            return Ok(stream);
        }
        let patience = Arc::new(AtomicU64::new(u64::MAX));
        let pipe = Pipe { input, patience: Arc::clone(&patience), stop: stop.clone() };
        Ok(Self { stop, patience: Some(patience), ..Self::of(Box::new(pipe)) })
    }

    /// Text that is there at once or not at all.
    pub fn of(text: Box<dyn Read + Send>) -> Self {
        let input = BufReader::with_capacity(BUFFER_BYTES, Inflated::new(text));
        Self { input, byte: 0, start: 0, over: false, stop: StopFlag::default(), patience: None }
    }

    /// Whether more of it is there at once or not at all.
    pub fn is_regular(&self) -> bool {
        self.patience.is_none()
    }

    /// The bytes at hand, after reading some if there were none; empty at the end of the input.
    pub fn fill(&mut self) -> io::Result<&[u8]> {
        if self.over {
            return Ok(&[]);
        }
        self.fill_buffer()?;
        if self.byte == 0 && self.input.buffer().starts_with(BYTE_ORDER_MARK) {
            self.start = BYTE_ORDER_MARK.len() as u64;
            self.consume(BYTE_ORDER_MARK.len());
            return self.fill();
        }
        self.over = self.is_regular() && self.input.buffer().is_empty();
        Ok(self.input.buffer())
    }

    fn fill_buffer(&mut self) -> io::Result<()> {
        loop {
            match self.input.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                filled => return filled.map(drop),
            }
        }
    }

    /// Whether nothing has been consumed yet but a byte order mark.
    pub fn is_at_start(&self) -> bool {
        self.byte == self.start
    }

    /// Passes over `count` of the bytes last given by [`fill`](Self::fill).
    pub fn consume(&mut self, count: usize) {
        self.input.consume(count);
        self.byte += count as u64;
    }

    /// Whether there is more text, or an end, to read: asked of a pipe for about `timeout`.
    pub fn comes_within(&mut self, timeout: Duration) -> io::Result<bool> {
        let Some(patience) = self.patience.clone() else { return Ok(true) };
        let millis = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
        patience.store(millis, Ordering::Relaxed);
        let filled = self.fill_buffer();
        patience.store(u64::MAX, Ordering::Relaxed);
        match filled {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            filled => filled.map(|()| true),
        }
    }

    /// Appends bytes to `line` up to and including a line break, at most `limit` of them; gives their number.
    pub fn take_line(&mut self, limit: usize, line: &mut Vec<u8>) -> io::Result<usize> {
        if self.fill()?.is_empty() {
            return Ok(0);
        }
        let taken = (&mut self.input).take(limit as u64).read_until(b'\n', line)?;
        self.byte += taken as u64;
        self.over = self.is_regular() && taken < limit && line.last() != Some(&b'\n');
        Ok(taken)
    }

    /// Passes over everything up to and including the next line break without keeping it.
    ///
    /// # Errors
    /// When reading fails, and when it is given up because the process is to end: a line may be longer than anybody waits for.
    pub fn skip_line(&mut self) -> io::Result<()> {
        loop {
            self.stop.check()?;
            let bytes = self.fill()?;
            let line_break = bytes.iter().position(|byte| *byte == b'\n');
            let count = line_break.map_or(bytes.len(), |at| at + 1);
            self.consume(count);
            if line_break.is_some() || count == 0 {
                return Ok(());
            }
        }
    }
}

/// The text of a file, also where it is compressed.
pub fn open_text(path: &Path) -> io::Result<impl Read + use<>> {
    Ok(Inflated::new(Box::new(File::open(path)?)))
}

/// The bytes of text in a file, where they are known without reading it: of one regular file that is not compressed.
pub fn plain_length(path: &Path) -> Option<u64> {
    // Whoever writes to a pipe has it broken by a reader that only looks.
    if !path.metadata().ok()?.is_file() {
        return None;
    }
    let (file, length) = open_file(path).ok()?;
    let mut start = Vec::new();
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
