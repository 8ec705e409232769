//! Files and standard input, read ahead on a separate thread.

use super::source::{BatchSource, SourceEvent, SourceFailure};
use super::stream_loop::ReadProgressWatcher;
use crate::daemon::engine::{NextBatchSource, POLL_INTERVAL, QueuedBatch};
use crate::daemon::state::records::Flush;
use crate::io::file::{FileSource, SourceError};
use crate::telemetry::{FileDivided, FileOpened, RejectionReason};
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use throng_core::stream::input_batch::{BatchLimits, CloseReason, InputBatch, InputPartition, OffsetRanges};
use throng_core::stream::release_sink::RejectedRecord;
use throng_core::stream::subject_share::SubjectShare;
use throng_core::values::raw_batch::RecordPosition;
use throng_core::values::schema::SubjectAttribute;

const FILE_PARTITION: InputPartition = (0, 0);

const RECORDS_PER_READ: usize = 10_000;

/// Reader of files or standard input; only the latter closes batches by time.
pub struct FileReader<'a> {
    pub source: FileSource,
    /// Number of attributes.
    pub width: usize,
    pub limits: BatchLimits,
    /// Attribute that names the subject.
    pub subject: Option<SubjectAttribute>,
    /// Attributes set by joins; the file's values are ignored.
    pub joined: Vec<usize>,
    /// True if the files must be one batch, memory permitting.
    pub is_whole: bool,
    pub watcher: &'a dyn ReadProgressWatcher,
    /// Set when the run must end.
    pub stop: &'a AtomicBool,
}

/// Batch; true at the end of the source.
pub type FileBatch = Result<(InputBatch, bool), SourceError>;

type QueuedFileBatch = (QueuedBatch, Option<Flush>);

/// Source of the batches read by the reader thread.
pub struct FileReadAhead<'a> {
    receiver: Receiver<FileBatch>,
    stop: &'a AtomicBool,
    is_job: bool,
    next: Option<Result<QueuedFileBatch, SourceError>>,
}

impl<'a> FileReadAhead<'a> {
    /// Creates the source of the batches in `receiver`.
    pub fn new(receiver: Receiver<FileBatch>, is_job: bool, stop: &'a AtomicBool) -> Self {
        Self { receiver, stop, is_job, next: None }
    }
}

fn queued_batch((input, end): (InputBatch, bool)) -> QueuedFileBatch {
    (Box::new(input).into(), end.then_some(Flush::EndOfStream))
}

impl NextBatchSource for FileReadAhead<'_> {
    fn look(&mut self, over: &AtomicBool) -> Option<&mut QueuedBatch> {
        while self.next.is_none() {
            match self.receiver.recv_timeout(POLL_INTERVAL) {
                Ok(read) => self.next = Some(read.map(queued_batch)),
                Err(RecvTimeoutError::Timeout) if !over.load(Ordering::Acquire) => {}
                Err(_) => return None,
            }
        }
        self.next.as_mut()?.as_mut().ok().map(|(turn, _)| turn)
    }
}

impl BatchSource for FileReadAhead<'_> {
    fn next_event(&mut self, wait: Duration) -> Result<SourceEvent, SourceFailure> {
        if self.is_job && self.stop.load(Ordering::Acquire) {
            return Err(SourceFailure::Stopped);
        }
        let (turn, last) = match self.next.take() {
            Some(next) => next?,
            None => match self.receiver.recv_timeout(wait) {
                Ok(read) => read.map(queued_batch)?,
                Err(RecvTimeoutError::Timeout) => return Ok(SourceEvent::TimedOut),
                Err(RecvTimeoutError::Disconnected) => return Err(SourceFailure::ReaderThreadEnded),
            },
        };
        match self.stop.load(Ordering::Acquire) {
            // The reader may have closed the batch early.
            true if self.is_job => Err(SourceFailure::Stopped),
            // Standard input cannot be read again: release before the stop.
            true => Ok(SourceEvent::Batch(turn, Some(Flush::Shutdown))),
            false => Ok(SourceEvent::Batch(turn, last)),
        }
    }

    fn rewind(&mut self, aborted: Option<QueuedFileBatch>, _: OffsetRanges) -> Result<(), SourceFailure> {
        if let Some((mut turn, last)) = aborted {
            turn.input.closed = CloseReason::Replay;
            self.next = Some(Ok((turn, last)));
        }
        Ok(())
    }

    fn is_live(&self) -> bool {
        false
    }
}

impl FileReader<'_> {
    /// Reads batches until the end, the stop flag or a closed channel.
    pub fn read_all(mut self, sender: &Sender<FileBatch>) {
        let mut is_first = true;
        loop {
            let read = self.read_batch();
            let over = read.as_ref().map_or(true, |(_, end)| *end);
            if self.is_whole && is_first && !over {
                let BatchLimits { max_records, max_bytes, .. } = self.limits;
                FileDivided { path: self.source.file(), max_records, max_bytes }.emit();
            }
            is_first = false;
            if sender.send(read).is_err() || over {
                return;
            }
        }
    }

    fn read_batch(&mut self) -> FileBatch {
        let Self { source, stop, .. } = self;
        let mut batch = InputBatch::new(self.width, 0);
        let mut share = SubjectShare::new(self.subject.clone(), &self.limits);
        let mut rejected: Vec<(RecordPosition, RejectionReason)> = Vec::new();
        let BatchLimits { max_records, max_bytes, max_wait, max_age, .. } = self.limits;
        let max_records = usize::try_from(max_records).unwrap_or(usize::MAX);
        let (start, from) = (Instant::now(), source.position().records);
        let end = loop {
            let bytes = max_bytes - batch.weight().min(max_bytes - 1);
            let left = max_records.saturating_sub(batch.raw.rows() + batch.rejected.len()).max(1);
            let mark = batch.raw.mark();
            let outcome = source.read(&mut batch.raw, RECORDS_PER_READ.min(left), bytes, &mut rejected)?;
            batch.bytes += outcome.bytes;
            share.admit(&mut batch, mark, FILE_PARTITION, outcome.kept_bytes);
            let refused = rejected.drain(..);
            batch.rejected.extend(refused.map(|(coordinate, reason)| RejectedRecord {
                coordinate,
                reason,
                attribute: None,
            }));
            batch.count_tombstones(FILE_PARTITION, outcome.tombstones);
            batch.count_unselected(FILE_PARTITION, outcome.unselected);
            self.watcher.bytes_read(source.position().bytes);
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
                batch.closed = CloseReason::FinalFlush;
                break false;
            }
            if age >= max_wait && share.is_enough(&batch) {
                batch.closed = CloseReason::Time;
                break false;
            }
        };
        self.joined.iter().for_each(|attribute| batch.raw.clear(*attribute));
        batch.decode_seconds = start.elapsed().as_secs_f64();
        let names_people = source.names_people();
        // The positions of such files would tell how many records a person has.
        for (path, first_record) in source.take_opened().into_iter().filter(|_| !names_people) {
            FileOpened { path: &path, first_record }.emit();
        }
        batch.long_rows = source.take_long_rows();
        let to = source.position().records;
        if to > from {
            let range = (i64::try_from(from).unwrap_or(i64::MAX), i64::try_from(to).unwrap_or(i64::MAX));
            batch.ranges.insert(FILE_PARTITION, range);
        }
        Ok((batch, end))
    }
}
