//! A file as the source of a stream: read ahead on a thread of its own, ended at the end of the file.

use super::source::{Next, Source, SourceFailure};
use crate::daemon::engine::{POLL_INTERVAL, Settling, Turn, Upcoming};
use crate::io::closing::{Limits, SharedLimits};
use crate::io::file::{FileSource, SourceError, SourcePosition};
use crate::io::input::{Closed, InputBatch, Ranges};
use crate::records::raw::Coordinate;
use crate::release::sink::Rejected;
use crate::telemetry::FileOpened;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// When a batch of a file is closed. A regular file is always read until a batch is full, so that the batches of a file
/// are a function of the file; a pipe that pauses is closed by time as a topic is.
#[derive(Clone, Debug)]
pub struct FileClosing {
    pub limits: SharedLimits,
    /// The attribute that names the subject.
    pub subject: Option<usize>,
    /// Attributes that joins bring: what the file has of them is not looked at.
    pub joined: Vec<usize>,
}

/// A batch as it was read, and whether the file has ended with it.
pub type Read = Result<(InputBatch, bool), SourceError>;

/// A batch that waits for its turn, and how the stream ends with it.
type Ahead = (Turn, Option<Settling>);

/// What the thread that reads the file has read.
pub struct FileReadAhead<'a> {
    receiver: Receiver<Read>,
    stop: &'a AtomicBool,
    /// Batches in hand: one that has not left, and one that was looked at.
    next: VecDeque<Result<Ahead, SourceError>>,
}

/// Reads `source` to its end, or until nobody listens or `stop` is set, batch by batch. The first consists of exactly
/// `replayed` lines or rows, where that is given.
pub fn read_all(
    mut source: FileSource,
    width: usize,
    closing: &FileClosing,
    replayed: Option<u64>,
    stop: &AtomicBool,
    sender: &Sender<Read>,
) {
    let mut exactly = replayed;
    loop {
        let read = read_batch(&mut source, width, closing, exactly.take(), stop);
        let over = read.as_ref().map_or(true, |(_, end)| *end);
        if sender.send(read).is_err() || over {
            return;
        }
    }
}

impl<'a> FileReadAhead<'a> {
    /// The source of what `receiver` gets from [`read_all`].
    #[must_use]
    pub fn new(receiver: Receiver<Read>, stop: &'a AtomicBool) -> Self {
        Self { receiver, stop, next: VecDeque::new() }
    }
}

fn ahead((input, end): (InputBatch, bool)) -> Ahead {
    (Box::new(input).into(), end.then_some(Settling::EndOfStream))
}

impl Upcoming for FileReadAhead<'_> {
    fn look(&mut self, over: &AtomicBool) -> Option<&mut Turn> {
        while self.next.is_empty() {
            match self.receiver.recv_timeout(POLL_INTERVAL) {
                Ok(read) => self.next.push_back(read.map(ahead)),
                Err(RecvTimeoutError::Timeout) if !over.load(Ordering::Acquire) => {}
                Err(_) => return None,
            }
        }
        self.next.front_mut()?.as_mut().ok().map(|(turn, _)| turn)
    }
}

impl Source for FileReadAhead<'_> {
    fn next(&mut self, wait: Duration) -> Result<Next, SourceFailure> {
        let (turn, last) = match self.next.pop_front() {
            Some(next) => next?,
            None => match self.receiver.recv_timeout(wait) {
                Ok(read) => read.map(ahead)?,
                Err(RecvTimeoutError::Timeout) => return Ok(Next::Nothing),
                Err(RecvTimeoutError::Disconnected) => return Err(SourceFailure::ReaderGone),
            },
        };
        // What has been read of a pipe cannot be read again: it leaves before the stop.
        let last = if self.stop.load(Ordering::Acquire) { Some(Settling::Shutdown) } else { last };
        Ok(Next::Batch(turn, last))
    }

    /// The batch in hand comes again as it is. At a start the thread that reads has been told what the first one is.
    fn rewind(&mut self, aborted: Option<Ahead>, _: Ranges) -> Result<(), SourceFailure> {
        if let Some((mut turn, last)) = aborted {
            turn.input.closed = Closed::Replay;
            self.next.push_front(Ok((turn, last)));
        }
        Ok(())
    }

    fn is_live(&self) -> bool {
        false
    }
}

/// Reads one batch; true when the source has ended.
fn read_batch(
    source: &mut FileSource,
    width: usize,
    closing: &FileClosing,
    exactly: Option<u64>,
    stop: &AtomicBool,
) -> Result<(InputBatch, bool), SourceError> {
    let mut batch = InputBatch::new(width, 0);
    let mut rejected: Vec<(Coordinate, crate::telemetry::RejectionReason)> = Vec::new();
    let Limits { max_records, max_bytes, max_wait, max_age, min_subjects } = closing.limits.get();
    let max_records = usize::try_from(max_records).unwrap_or(usize::MAX);
    let start = Instant::now();
    let SourcePosition { records: from, bytes: bytes_before } = source.position();
    let (mut records, mut messages) = (0usize, 0);
    let end = loop {
        let outcome = match exactly {
            Some(replayed) => source.read_messages(&mut batch.raw, replayed - messages, &mut rejected)?,
            None => {
                let bytes = max_bytes - batch.weight().min(max_bytes - 1);
                source.read(&mut batch.raw, max_records - records, bytes, &mut rejected)?
            }
        };
        messages += outcome.messages;
        records += usize::try_from(outcome.records).unwrap_or(usize::MAX);
        batch.bytes += outcome.bytes;
        batch.tombstones += outcome.tombstones;
        if outcome.stopped {
            // A pipe leaves what it has given, for it cannot be read again. The batches of a file stay a function of the file: this one
            // is read again.
            if exactly.is_some() {
                return Err(source.given_up());
            }
            if source.is_regular() {
                return Ok((InputBatch { source_bytes: bytes_before, ..InputBatch::new(width, 0) }, true));
            }
            break true;
        }
        if outcome.end {
            break true;
        }
        let full = match exactly {
            Some(replayed) => messages >= replayed,
            None => records >= max_records || batch.weight() >= max_bytes,
        };
        if full || stop.load(Ordering::Acquire) {
            break false;
        }
        // Only a pipe comes here: it has nothing more at hand.
        let age = start.elapsed();
        if age >= max_age {
            batch.closed = Closed::Settle;
            break false;
        }
        if age >= max_wait && batch.has_subjects(closing.subject, min_subjects) {
            batch.closed = Closed::Time;
            break false;
        }
    };
    closing.joined.iter().for_each(|attribute| batch.raw.clear(*attribute));
    batch.decode_seconds = start.elapsed().as_secs_f64();
    if exactly.is_some() {
        batch.closed = Closed::Replay;
    }
    batch.rejected =
        rejected.into_iter().map(|(coordinate, reason)| Rejected { coordinate, reason, attribute: None }).collect();
    let SourcePosition { records: to, bytes } = source.position();
    batch.source_bytes = bytes;
    batch.begun = source.take_begun();
    for file in batch.begun.iter().filter(|file| file.ended.is_none()) {
        FileOpened { path: &file.name, first_record: file.first }.emit();
    }
    batch.long_rows = source.take_long_rows();
    if to > from {
        let range = (i64::try_from(from).unwrap_or(i64::MAX), i64::try_from(to).unwrap_or(i64::MAX));
        batch.ranges.insert((0, 0), range);
    }
    Ok((batch, end))
}
