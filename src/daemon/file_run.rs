//! A file as the stream: read ahead on a thread of its own, treated here, ended at the end of the file.

use super::clock::StateClock;
use super::engine::{BatchError, Engine, GLANCE, Settling, Turn, Upcoming};
use super::state::records::Intent;
use crate::io::file::{FileSource, SourceError, SourcePosition};
use crate::io::input::{Closed, InputBatch};
use crate::records::raw::Coordinate;
use crate::release::sink::{Rejected, Sink};
use crossbeam_channel::{Receiver, RecvTimeoutError};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// When a batch of a file is closed. A regular file is always read until a batch is full, so that the batches of a file
/// are a function of the file; a pipe that pauses is closed by time as a topic is.
#[derive(Clone, Copy, Debug)]
pub struct FileClosing {
    pub max_records: usize,
    pub max_bytes: u64,
    pub max_wait: Duration,
    pub max_age: Duration,
    /// Distinct subjects below which `max_wait` does not close a batch.
    pub min_subjects: usize,
    /// The attribute that names the subject.
    pub subject: Option<usize>,
}

/// Attempts at one batch before the run gives up.
const ATTEMPTS: u32 = 20;

/// Why a run over a file ended early.
#[derive(Debug, thiserror::Error)]
pub enum FileRunError {
    #[error(transparent)]
    Source(#[from] SourceError),
    #[error(transparent)]
    Batch(#[from] BatchError),
    #[error(transparent)]
    State(#[from] super::state::directory::StateError),
    #[error("the reader ended without a word (this is a bug)")]
    ReaderGone,
}

/// How far the source has been read, for a progress bar.
pub trait Watcher: Sync {
    fn consumed(&self, records: u64, bytes: u64);
}

/// Runs until the end of the source, or until `stop`.
///
/// # Errors
/// See [`FileRunError`]; everything up to the last committed batch stays, and the next run continues behind it.
#[allow(clippy::too_many_arguments, reason = "a stream, where it goes, and the world around it")]
pub fn run(
    mut source: FileSource,
    width: usize,
    closing: FileClosing,
    engine: &mut Engine,
    mut replay: Option<Intent>,
    sink: &mut dyn Sink,
    clock: &mut StateClock,
    stop: &AtomicBool,
    watcher: &dyn Watcher,
) -> Result<(), FileRunError> {
    if let Some(intent) = replay.take_if(|i| i.ranges.is_empty()) {
        settle_again(engine, intent, sink, clock)?;
    }
    let (sender, receiver) = crossbeam_channel::bounded::<Read>(1);
    let replayed = replay.as_ref().and_then(|i| i.ranges.first().map(|r| r.to - r.from));
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let mut exactly = replayed.and_then(|n| usize::try_from(n).ok());
            loop {
                let read = read_batch(&mut source, width, closing, exactly.take(), stop);
                let over = read.as_ref().map_or(true, |(_, end)| *end);
                if sender.send(read).is_err() || over {
                    return;
                }
            }
        });
        let outcome = consume(&receiver, engine, &mut replay, sink, clock, stop, watcher);
        drop(receiver);
        outcome
    })
}

/// Repeats a settling that the process before this one did not finish, before anything is read: its bytes may have been
/// seen, and the file may have grown, so that the held records would leave with new ones.
fn settle_again(
    engine: &mut Engine,
    intent: Intent,
    sink: &mut dyn Sink,
    clock: &mut StateClock,
) -> Result<(), FileRunError> {
    let settled = engine.held_places(&intent.settled);
    let mut retry = intent;
    for attempt in 1.. {
        match engine.settle(|c| settled.contains(&c), Settling::EndOfStream, Some(&retry), sink, clock.now()) {
            // A topic as the sink may abort a transaction; files never do.
            Err(BatchError::Aborted { intent, .. }) if attempt < ATTEMPTS => retry = *intent,
            outcome => return Ok(outcome?),
        }
    }
    Ok(())
}

/// What the reader has read and the loop has not taken yet.
struct Ahead<'a> {
    receiver: &'a Receiver<Read>,
    next: Option<Result<(Turn, bool), SourceError>>,
}

impl Ahead<'_> {
    fn is_empty(&self) -> bool {
        self.next.is_none() && self.receiver.is_empty()
    }

    fn next(&mut self) -> Result<(Turn, bool), FileRunError> {
        let next = match self.next.take() {
            Some(next) => next,
            None => self.receiver.recv().map_err(|_| FileRunError::ReaderGone)?.map(turn),
        };
        Ok(next?)
    }
}

impl Upcoming for Ahead<'_> {
    fn look(&mut self, over: &AtomicBool) -> Option<&mut Turn> {
        while self.next.is_none() {
            match self.receiver.recv_timeout(GLANCE) {
                Ok(read) => self.next = Some(read.map(turn)),
                Err(RecvTimeoutError::Timeout) if !over.load(Ordering::Acquire) => {}
                Err(_) => return None,
            }
        }
        self.next.as_mut()?.as_mut().ok().map(|(turn, _)| turn)
    }
}

/// A batch as it was read, and whether the source has ended with it.
type Read = Result<(InputBatch, bool), SourceError>;

fn turn((input, end): (InputBatch, bool)) -> (Turn, bool) {
    (Box::new(input).into(), end)
}

fn consume(
    receiver: &Receiver<Read>,
    engine: &mut Engine,
    replay: &mut Option<Intent>,
    sink: &mut dyn Sink,
    clock: &mut StateClock,
    stop: &AtomicBool,
    watcher: &dyn Watcher,
) -> Result<(), FileRunError> {
    let mut ahead = Ahead { receiver, next: None };
    loop {
        if engine.is_behind() && ahead.is_empty() {
            engine.flush()?;
        }
        let (mut turn, end) = ahead.next()?;
        let input = &turn.input;
        let records = input.records();
        let bytes = input.source_bytes;
        let silent = input.closed == Closed::Settle;
        let stopping = stop.load(Ordering::Acquire);
        let mut retry = replay.take();
        let settling = match (end, stopping) {
            (_, true) => Settling::Shutdown,
            (true, false) => Settling::EndOfStream,
            // A batch that settled what was held does so again: its bytes may have been seen.
            (false, false) if retry.as_ref().is_some_and(|r| r.last) => Settling::Quiet,
            // A pipe has been silent for too long.
            (false, false) if silent && records == 0 => Settling::Quiet,
            (false, false) => Settling::No,
        };
        for attempt in 1.. {
            let outcome = if records > 0 {
                engine.process(&mut turn, settling, retry.as_ref(), sink, clock.now(), &mut ahead)
            } else if settling == Settling::No {
                Ok(())
            } else {
                engine.settle(|_| true, settling, retry.as_ref(), sink, clock.now())
            };
            match outcome {
                Ok(()) => break,
                // A topic as the sink may abort a transaction; files never do.
                Err(BatchError::Aborted { intent, .. }) if attempt < ATTEMPTS => retry = Some(*intent),
                Err(error) => return Err(error.into()),
            }
        }
        watcher.consumed(records, bytes);
        if end || stopping {
            engine.flush()?;
            return Ok(());
        }
    }
}

/// Reads one batch; true when the source has ended.
fn read_batch(
    source: &mut FileSource,
    width: usize,
    closing: FileClosing,
    exactly: Option<usize>,
    stop: &AtomicBool,
) -> Result<(InputBatch, bool), SourceError> {
    let mut batch = InputBatch::new(width, 0);
    let mut rejected: Vec<(Coordinate, crate::io::codec::Rejection)> = Vec::new();
    let (max_records, max_bytes) = match exactly {
        Some(records) => (records, u64::MAX),
        None => (closing.max_records, closing.max_bytes),
    };
    let start = Instant::now();
    let from = source.position().records;
    let mut records = 0usize;
    let end = loop {
        let outcome = source.read(
            &mut batch.raw,
            max_records - records,
            max_bytes - batch.bytes.min(max_bytes - 1),
            &mut rejected,
        )?;
        records += usize::try_from(outcome.records).unwrap_or(usize::MAX);
        batch.bytes += outcome.bytes;
        batch.tombstones += outcome.tombstones;
        if outcome.end {
            break true;
        }
        if records >= max_records || batch.bytes >= max_bytes || stop.load(Ordering::Acquire) {
            break false;
        }
        // Only a pipe comes here: it has nothing more at hand.
        let age = start.elapsed();
        if age >= closing.max_age {
            batch.closed = Closed::Settle;
            break false;
        }
        if age >= closing.max_wait && batch.has_subjects(closing.subject, closing.min_subjects) {
            batch.closed = Closed::Time;
            break false;
        }
    };
    batch.decode_seconds = start.elapsed().as_secs_f64();
    if exactly.is_some() {
        batch.closed = Closed::Replay;
    }
    batch.rejected = rejected
        .into_iter()
        .map(|(coordinate, rejection)| Rejected { coordinate, reason: rejection.reason(), attribute: None })
        .collect();
    let SourcePosition { records: to, bytes } = source.position();
    batch.source_bytes = bytes;
    batch.long_rows = source.take_long_rows();
    if to > from {
        let range = (i64::try_from(from).unwrap_or(i64::MAX), i64::try_from(to).unwrap_or(i64::MAX));
        batch.ranges.insert((0, 0), range);
    }
    Ok((batch, end))
}

/// Milliseconds since 1970 by the wall clock; 0 before. For lag and latency; ages go by [`StateClock`].
#[must_use]
pub fn now_ms() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
