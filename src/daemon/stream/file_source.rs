//! Files and standard input as the source of a run: read ahead on a thread of its own, ended at their end.

use super::run::Watcher;
use super::source::{Next, Source, SourceFailure};
use crate::daemon::engine::{POLL_INTERVAL, Settling, Turn, Upcoming};
use crate::io::file::{FileSource, SourceError};
use crate::io::input::{Closed, InputBatch, Limits, Place, Ranges};
use crate::io::subject_share::SubjectShare;
use crate::release::sink::Rejected;
use crate::telemetry::{FileDivided, FileOpened, RejectionReason};
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use throng_core::values::raw::Coordinate;
use throng_core::values::schema::SubjectAttribute;

/// Files are one partition.
const PLACE: Place = (0, 0);

/// Records read between two looks at the flag that ends the run.
const AT_A_TIME: usize = 10_000;

/// Reads files, or standard input, on a thread of its own. A file is always read until a batch is full, so that its batches are a function
/// of the file; standard input that pauses is closed by time as a topic is.
pub struct FileReader<'a> {
    pub source: FileSource,
    /// Attributes of a record.
    pub width: usize,
    pub limits: Limits,
    /// The attribute that names the subject.
    pub subject: Option<SubjectAttribute>,
    /// Attributes that joins bring: what the file has of them is not looked at.
    pub joined: Vec<usize>,
    /// The files are one batch, as far as memory goes.
    pub is_whole: bool,
    pub watcher: &'a dyn Watcher,
    /// Set when the run is to end.
    pub stop: &'a AtomicBool,
}

/// A batch as it was read, and whether the source has ended with it.
pub type Read = Result<(InputBatch, bool), SourceError>;

/// A batch that waits for its turn, and how the stream ends with it.
type Ahead = (Turn, Option<Settling>);

/// The batches that the reading thread has read.
pub struct FileReadAhead<'a> {
    receiver: Receiver<Read>,
    stop: &'a AtomicBool,
    /// The input is files at rest: a run that is stopped replaces nothing.
    is_job: bool,
    /// A batch in hand, which was looked at or has not left.
    next: Option<Result<Ahead, SourceError>>,
}

impl<'a> FileReadAhead<'a> {
    /// The source of what `receiver` gets from [`read_all`].
    pub fn new(receiver: Receiver<Read>, is_job: bool, stop: &'a AtomicBool) -> Self {
        Self { receiver, stop, is_job, next: None }
    }
}

fn ahead((input, end): (InputBatch, bool)) -> Ahead {
    (Box::new(input).into(), end.then_some(Settling::EndOfStream))
}

impl Upcoming for FileReadAhead<'_> {
    fn look(&mut self, over: &AtomicBool) -> Option<&mut Turn> {
        while self.next.is_none() {
            match self.receiver.recv_timeout(POLL_INTERVAL) {
                Ok(read) => self.next = Some(read.map(ahead)),
                Err(RecvTimeoutError::Timeout) if !over.load(Ordering::Acquire) => {}
                Err(_) => return None,
            }
        }
        self.next.as_mut()?.as_mut().ok().map(|(turn, _)| turn)
    }
}

impl Source for FileReadAhead<'_> {
    fn next(&mut self, wait: Duration) -> Result<Next, SourceFailure> {
        if self.is_job && self.stop.load(Ordering::Acquire) {
            return Err(SourceFailure::Stopped);
        }
        let (turn, last) = match self.next.take() {
            Some(next) => next?,
            None => match self.receiver.recv_timeout(wait) {
                Ok(read) => read.map(ahead)?,
                Err(RecvTimeoutError::Timeout) => return Ok(Next::Nothing),
                Err(RecvTimeoutError::Disconnected) => return Err(SourceFailure::ReaderGone),
            },
        };
        match self.stop.load(Ordering::Acquire) {
            // The stop came while the batch was waited for; the reader may have ended it early.
            true if self.is_job => Err(SourceFailure::Stopped),
            // What came through standard input cannot be read again: it leaves before the stop.
            true => Ok(Next::Batch(turn, Some(Settling::Shutdown))),
            false => Ok(Next::Batch(turn, last)),
        }
    }

    /// The batch in hand comes again as it is.
    fn rewind(&mut self, aborted: Option<Ahead>, _: Ranges) -> Result<(), SourceFailure> {
        if let Some((mut turn, last)) = aborted {
            turn.input.closed = Closed::Replay;
            self.next = Some(Ok((turn, last)));
        }
        Ok(())
    }

    fn is_live(&self) -> bool {
        false
    }
}

impl FileReader<'_> {
    /// Reads batch by batch to the end, or until nobody listens or the run is to end.
    pub fn read_all(mut self, sender: &Sender<Read>) {
        let mut is_first = true;
        loop {
            let read = self.read_batch();
            let over = read.as_ref().map_or(true, |(_, end)| *end);
            if self.is_whole && is_first && !over {
                let Limits { max_records, max_bytes, .. } = self.limits;
                FileDivided { path: self.source.file(), max_records, max_bytes }.emit();
            }
            is_first = false;
            if sender.send(read).is_err() || over {
                return;
            }
        }
    }

    /// Reads one batch; true when the source has ended.
    fn read_batch(&mut self) -> Read {
        let Self { source, stop, .. } = self;
        let mut batch = InputBatch::new(self.width, 0);
        let mut share = SubjectShare::new(self.subject.clone(), &self.limits);
        let mut rejected: Vec<(Coordinate, RejectionReason)> = Vec::new();
        let Limits { max_records, max_bytes, max_wait, max_age, .. } = self.limits;
        let max_records = usize::try_from(max_records).unwrap_or(usize::MAX);
        let (start, from) = (Instant::now(), source.position().records);
        let end = loop {
            let bytes = max_bytes - batch.weight().min(max_bytes - 1);
            let left = max_records.saturating_sub(batch.raw.rows() + batch.rejected.len()).max(1);
            let mark = batch.raw.mark();
            let outcome = source.read(&mut batch.raw, AT_A_TIME.min(left), bytes, &mut rejected)?;
            batch.bytes += outcome.bytes;
            share.admit(&mut batch, mark, PLACE, outcome.bytes);
            let refused = rejected.drain(..);
            batch.rejected.extend(refused.map(|(coordinate, reason)| Rejected { coordinate, reason, attribute: None }));
            if outcome.tombstones > 0 {
                *batch.tombstones.entry(PLACE).or_default() += outcome.tombstones;
            }
            self.watcher.read(source.position().bytes);
            if outcome.stopped || outcome.end {
                break true;
            }
            if share.is_full(&batch, &self.limits) || stop.load(Ordering::Acquire) {
                break false;
            }
            if source.is_regular() {
                continue;
            }
            let age = start.elapsed();
            if age >= max_age {
                batch.closed = Closed::Settle;
                break false;
            }
            if age >= max_wait && share.is_enough(&batch) {
                batch.closed = Closed::Time;
                break false;
            }
        };
        self.joined.iter().for_each(|attribute| batch.raw.clear(*attribute));
        batch.decode_seconds = start.elapsed().as_secs_f64();
        for (path, first_record) in source.take_opened() {
            FileOpened { path: &path, first_record }.emit();
        }
        batch.long_rows = source.take_long_rows();
        let to = source.position().records;
        if to > from {
            let range = (i64::try_from(from).unwrap_or(i64::MAX), i64::try_from(to).unwrap_or(i64::MAX));
            batch.ranges.insert(PLACE, range);
        }
        Ok((batch, end))
    }
}
