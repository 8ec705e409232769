//! Buffered text input of a file source.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::SourceError;
use super::decompression::{DecompressedInput, InputCompression};
use super::pipe_reader::{PipeReader, PipeTimeout, StopFlag};

const BUFFER_BYTES: usize = 256 << 10;
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

pub(super) struct TextStream {
    input: BufReader<DecompressedInput>,
    /// Position in the decompressed text.
    pub byte: u64,
    start: u64,
    /// Later data belongs to another run.
    end_seen: bool,
    pub stop: StopFlag,
    /// For pipes only.
    pipe_timeout: Option<PipeTimeout>,
}

impl std::fmt::Debug for TextStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stream").field("byte", &self.byte).finish_non_exhaustive()
    }
}

impl TextStream {
    pub fn open(path: &Path, stop: &StopFlag) -> Result<Self, SourceError> {
        let fault = |source| SourceError::Open { path: path.into(), source };
        let (input, is_regular) = if path == Path::new("-") {
            // The buffer of `std::io::stdin` cannot be polled.
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
        let pipe = PipeReader { input, read_timeout: Arc::clone(&patience), stop: stop.clone() };
        Ok(Self { stop, pipe_timeout: Some(patience), ..Self::of(Box::new(pipe)) })
    }

    pub fn of(text: Box<dyn Read + Send>) -> Self {
        let input = BufReader::with_capacity(BUFFER_BYTES, DecompressedInput::new(text));
        Self { input, byte: 0, start: 0, end_seen: false, stop: StopFlag::default(), pipe_timeout: None }
    }

    pub fn is_regular(&self) -> bool {
        self.pipe_timeout.is_none()
    }

    /// Returns buffered text; empty at the end.
    pub fn fill(&mut self) -> io::Result<&[u8]> {
        if self.end_seen {
            return Ok(&[]);
        }
        self.fill_buffer()?;
        if self.byte == 0 && self.input.buffer().starts_with(BYTE_ORDER_MARK) {
            self.start = BYTE_ORDER_MARK.len() as u64;
            self.consume(BYTE_ORDER_MARK.len());
            return self.fill();
        }
        self.end_seen = self.is_regular() && self.input.buffer().is_empty();
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

    pub fn is_at_start(&self) -> bool {
        self.byte == self.start
    }

    /// Consumes bytes returned by [`fill`](Self::fill).
    pub fn consume(&mut self, count: usize) {
        self.input.consume(count);
        self.byte += count as u64;
    }

    /// Returns true for data or the end within about `timeout`.
    pub fn is_ready_within(&mut self, timeout: Duration) -> io::Result<bool> {
        let Some(patience) = self.pipe_timeout.clone() else { return Ok(true) };
        let millis = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
        patience.store(millis, Ordering::Relaxed);
        let filled = self.fill_buffer();
        patience.store(u64::MAX, Ordering::Relaxed);
        match filled {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            filled => filled.map(|()| true),
        }
    }

    /// Appends a line of at most `limit` bytes; returns their number.
    pub fn take_line(&mut self, limit: usize, line: &mut Vec<u8>) -> io::Result<usize> {
        if self.fill()?.is_empty() {
            return Ok(0);
        }
        let taken = (&mut self.input).take(limit as u64).read_until(b'\n', line)?;
        self.byte += taken as u64;
        self.end_seen = self.is_regular() && taken < limit && line.last() != Some(&b'\n');
        Ok(taken)
    }

    /// Skips a line unless the stop flag is set: it may be arbitrarily long.
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

/// Opens the decompressed text of a file.
pub fn open_text(path: &Path) -> io::Result<impl Read + use<>> {
    Ok(DecompressedInput::new(Box::new(File::open(path)?)))
}

/// Returns the text length of a regular, uncompressed file.
pub fn plain_length(path: &Path) -> Option<u64> {
    // Opening and closing a pipe would break it for its writer.
    if !path.metadata().ok()?.is_file() {
        return None;
    }
    let (file, length) = open_file(path).ok()?;
    let mut start = Vec::new();
    file.take(4).read_to_end(&mut start).ok()?;
    length.filter(|_| InputCompression::of(&start).is_none())
}

pub(super) fn open_file(path: &Path) -> Result<(File, Option<u64>), SourceError> {
    let fault = |source| SourceError::Open { path: path.into(), source };
    let file = File::open(path).map_err(fault)?;
    let metadata = file.metadata().map_err(fault)?;
    Ok((file, metadata.is_file().then_some(metadata.len())))
}
