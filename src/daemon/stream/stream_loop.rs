//! The daemon's main loop, for any source (`docs/internals/exactly-once.md`).

use super::changelog_restore::{PartitionRestore, RestoreError};
use super::idle_partitions::IdlePartitions;
use super::source::{AssignmentNotice, BatchSource, SourceEvent, SourceFailure};
use crate::daemon::engine::{BatchError, Engine, QueuedBatch};
use crate::daemon::erasure::ErasureReceiver;
use crate::daemon::erasure::erasure_topic_reader::{ErasureTopicError, TopicReader};
use crate::daemon::reload::NextConfig;
use crate::daemon::state::clock::StateClock;
use crate::daemon::state::directory::StateError;
use crate::daemon::state::records::BatchIntent;
use crate::daemon::state::records::Flush;
use crate::telemetry::{AbortReason, BatchAborted, PartitionsChanged, Telemetry, VerificationRefused};
use crossbeam_channel::Receiver;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use throng_core::faults::crash_point;
use throng_core::stream::input_batch::{CloseReason, InputPartition, OffsetRanges};
use throng_core::stream::release_sink::BatchSink;
use throng_core::values::raw_batch::RecordPosition;

/// Error that ended the daemon.
#[derive(Debug, thiserror::Error)]
pub enum StreamError {
    /// The source cannot be read further.
    #[error(transparent)]
    Source(#[from] SourceFailure),
    /// A batch was not released; a retry does not help.
    #[error(transparent)]
    Batch(#[from] BatchError),
    /// The state could not be written.
    #[error(transparent)]
    State(#[from] StateError),
    /// The erasure topic cannot be read further.
    #[error(transparent)]
    ErasureTopic(#[from] ErasureTopicError),
}

impl From<RestoreError> for StreamError {
    fn from(error: RestoreError) -> Self {
        match error {
            RestoreError::Kafka(failure) => Self::Source(failure.into()),
            RestoreError::State(error) => Self::State(error),
        }
    }
}

/// Receiver of the progress of reading files.
pub trait ReadProgressWatcher: Sync {
    /// Receives the number of bytes read.
    fn bytes_read(&self, bytes: u64);
}

const MAX_BATCH_ATTEMPTS: u32 = 20;

/// Attempts before the next event of the source: an expelled member must first join again.
const MAX_SETTLEMENT_ATTEMPTS: u32 = 3;
const SETTLEMENT_RETRY_DELAY: Duration = Duration::from_secs(1);

/// Shorter while an effect is unwritten: the next intent saves its write (decision 0006).
const SOURCE_POLL_INTERVAL: Duration = Duration::from_millis(100);
const UNWRITTEN_POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Timeouts for visible offsets on a revocation (group: 120 s), and at the end.
const REVOCATION_TIMEOUT: Duration = Duration::from_secs(100);
const FINAL_COMMIT_TIMEOUT: Duration = Duration::from_secs(15);

/// Time without a partition after which others are taken for the owners of all.
const UNASSIGNED_DELAY: Duration = Duration::from_secs(30);

const PASSED_CHECK_INTERVAL: Duration = Duration::from_secs(10);

/// Main loop with its source, engine and sink.
pub struct StreamLoop<'a> {
    /// Source of batches and assignment changes.
    pub source: &'a mut dyn BatchSource,
    /// Engine, which continues after the last released batch.
    pub engine: &'a mut Engine,
    /// Output of the batches.
    pub sink: &'a mut dyn BatchSink,
    /// Receiver of aborts, refusals and rebalances.
    pub telemetry: &'a Telemetry,
    /// Clock of attempts and of the state's age.
    pub clock: StateClock,
    /// Pause of a live source until held records are settled.
    pub max_age: Duration,
    /// Batch that must be repeated exactly.
    pub retry: Option<BatchIntent>,
    /// Receiver of erasure requests.
    pub erasures: &'a ErasureReceiver,
    /// Reader of the erasure topic.
    pub erasure_topic: Option<TopicReader>,
    /// Search for partitions that delay no bucket.
    pub idle: Option<IdlePartitions>,
    /// Assigned partitions.
    pub assigned: BTreeSet<InputPartition>,
    /// Restore of assigned partitions; `None` for files.
    pub restore: Option<PartitionRestore>,
    /// Receiver of the configuration that ends this run.
    pub next: &'a Receiver<NextConfig>,
    /// Set when the daemon must end.
    pub stop: &'a AtomicBool,
}

/// Progress of the loop between its events.
struct LoopProgress {
    begun: Instant,
    /// Consecutive aborts.
    attempts: u32,
    /// True if dropped batches must be read again.
    is_dropped: bool,
    quiet_since: Instant,
    /// Last check for a retry that other instances have passed.
    asked_at: Option<Instant>,
    /// Last aborted settlement.
    settled_at: Option<Instant>,
}

enum BatchStepOutcome {
    OutputReleased,
    /// Aborted for this reason.
    WillRepeat(String),
    /// The next start reads the batch again.
    NotBegun,
}

fn ranges_of(intent: &BatchIntent) -> OffsetRanges {
    intent.ranges.iter().map(|r| ((r.topic, r.partition), (r.from, r.to))).collect()
}

impl StreamLoop<'_> {
    /// Runs until the source ends, or an error requires a new start.
    ///
    /// # Errors
    /// No batch is partly released.
    pub fn run(mut self) -> Result<(), StreamError> {
        let outcome = self.run_loop().and_then(|()| Ok(self.engine.drop_all_partitions()?));
        // Another consumer continues at the committed offsets.
        let stood = if self.source.is_live() { self.wait_for_offsets(FINAL_COMMIT_TIMEOUT) } else { Ok(()) };
        match (outcome, stood) {
            (Err(error), Err(also)) => {
                tracing::error!(%also, "offset commit status of the last batch is unknown");
                Err(error)
            }
            (outcome, stood) => outcome.and(stood),
        }
    }

    /// The next owner of a partition begins at these offsets.
    fn wait_for_offsets(&mut self, patience: Duration) -> Result<(), StreamError> {
        self.sink.wait_until_visible(patience).map_err(|e| BatchError::Fatal(e.to_string()).into())
    }

    fn run_loop(&mut self) -> Result<(), StreamError> {
        let now = Instant::now();
        let mut progress = LoopProgress {
            begun: now,
            attempts: 0,
            is_dropped: false,
            quiet_since: now,
            asked_at: None,
            settled_at: None,
        };
        // No consumer has seen a batch without records.
        let empty = self.retry.take_if(|retry| self.restore.is_some() && retry.affected_partitions().is_empty());
        self.discard_retry(empty)?;
        if let Some(ranges) = self.retry.as_ref().map(ranges_of).filter(|ranges| !ranges.is_empty()) {
            self.source.rewind(None, ranges)?;
        }
        loop {
            self.restore_partitions(&mut progress.is_dropped)?;
            if self.repeat_due_settlement(&mut progress)? {
                continue;
            }
            if let Some(idle) = &mut self.idle
                && idle.is_poll_due()
                && let Some(found) =
                    idle.poll_idle(&self.engine.partitions_delaying_series(), self.engine.series_position())
            {
                self.engine.note_idle(found);
            }
            // The erasure would miss entries of later assignments.
            let waits =
                self.restore.is_some() && self.assigned.is_empty() && progress.begun.elapsed() < UNASSIGNED_DELAY;
            if self.is_fully_restored() && !waits {
                self.process_erasure_requests()?;
            }
            // A retry keeps its policy.
            if self.retry.is_none() && !self.next.is_empty() {
                crash_point("reload-begun");
                return Ok(self.engine.flush()?);
            }
            let next = self.source.next_event(if self.engine.is_behind() {
                UNWRITTEN_POLL_INTERVAL
            } else {
                SOURCE_POLL_INTERVAL
            });
            if next.is_err() && self.engine.is_behind() {
                // A broken source may lose input after its repair.
                self.engine.flush()?;
            }
            match next? {
                SourceEvent::Batch(turn, last) => {
                    progress.is_dropped |= !self.is_admitted(&turn);
                    if progress.is_dropped {
                        continue;
                    }
                    if turn.input.records() > 0 {
                        progress.quiet_since = Instant::now();
                    }
                    progress.attempts = match self.process_next_batch(turn, last)? {
                        BatchStepOutcome::OutputReleased if last.is_none() => 0,
                        BatchStepOutcome::OutputReleased | BatchStepOutcome::NotBegun => {
                            return Ok(self.engine.flush()?);
                        }
                        BatchStepOutcome::WillRepeat(why) if progress.attempts + 1 >= MAX_BATCH_ATTEMPTS => {
                            let said = format!(
                                "one batch was aborted {MAX_BATCH_ATTEMPTS} times, the last time because {why}"
                            );
                            return Err(BatchError::Fatal(said).into());
                        }
                        BatchStepOutcome::WillRepeat(_) => progress.attempts + 1,
                    };
                }
                SourceEvent::Notice(notice) => self.handle_notice(notice)?,
                SourceEvent::TimedOut => self.work_while_idle(&mut progress)?,
                SourceEvent::End(flush) => {
                    let aborted = self.retry.take_if(|retry| self.source.is_passed_by_others(&ranges_of(retry)));
                    self.discard_retry(aborted)?;
                    if !self.is_fully_restored() {
                        return Ok(self.engine.flush()?);
                    }
                    return self.settle_held(|_| true, flush, None);
                }
            }
        }
    }

    /// Repeats an aborted settlement before anything else: its output may have been seen, and other batches could
    /// include its records. Returns true if the loop must not read meanwhile.
    fn repeat_due_settlement(&mut self, progress: &mut LoopProgress) -> Result<bool, StreamError> {
        let pause = if self.restore.is_some() { SETTLEMENT_RETRY_DELAY } else { Duration::ZERO };
        let is_time = progress.settled_at.is_none_or(|at| at.elapsed() >= pause) && self.can_repeat();
        let Some(intent) = self.retry.take_if(|retry| is_time && retry.ranges.is_empty()) else { return Ok(false) };
        self.repeat_settlement(intent)?;
        progress.settled_at = self.retry.is_some().then(Instant::now);
        progress.attempts = if self.retry.is_some() { progress.attempts + 1 } else { 0 };
        if progress.attempts >= MAX_BATCH_ATTEMPTS {
            let why = format!("release or suppression of held records was aborted {MAX_BATCH_ATTEMPTS} times");
            return Err(BatchError::Fatal(why).into());
        }
        // Without a changelog, records read meanwhile cannot be read again.
        Ok(self.retry.is_some() && self.restore.is_none() && !self.stop.load(Ordering::Acquire))
    }

    fn work_while_idle(&mut self, progress: &mut LoopProgress) -> Result<(), StreamError> {
        self.give_up_passed_retry(progress)?;
        if self.retry.is_none() {
            self.engine.receive_updates_while_idle()?;
            self.close_due_series()?;
        }
        if self.engine.is_behind() {
            self.engine.flush()?;
        }
        let silent = self.source.is_live() && progress.quiet_since.elapsed() >= self.max_age;
        if silent && self.is_fully_restored() && self.engine.has_due(self.clock.now()) {
            self.settle_held(|_| true, Flush::Quiet, None)?;
            progress.quiet_since = Instant::now();
        }
        Ok(())
    }

    fn is_fully_restored(&self) -> bool {
        self.restore.as_ref().is_none_or(|restore| restore.are_all_restored(&self.assigned))
    }

    fn can_repeat(&self) -> bool {
        self.retry.as_ref().is_some_and(|retry| {
            retry.affected_partitions().into_iter().all(|place| self.is_assigned_and_restored(place))
        })
    }

    fn is_assigned_and_restored(&self, place: InputPartition) -> bool {
        self.restore.as_ref().is_none_or(|restore| self.assigned.contains(&place) && restore.is_restored(place))
    }

    /// Other partitions wait during a retry, which needs unchanged memory.
    fn restore_partitions(&mut self, is_dropped: &mut bool) -> Result<(), StreamError> {
        let waits = self.can_repeat();
        let Some(restore) = &mut self.restore else { return Ok(()) };
        let restored = restore.poll_restore(&self.assigned, waits)?;
        // A retry without ranges waits only for its own partitions.
        let is_elsewhere = self.retry.take_if(|retry| {
            retry.ranges.is_empty()
                && !self.assigned.is_empty()
                && !retry.affected_partitions().is_subset(&self.assigned)
        });
        self.discard_retry(is_elsewhere)?;
        let settles = self.retry.as_ref().is_some_and(|retry| retry.ranges.is_empty());
        let mut reads_again = *is_dropped && !settles;
        if let Some((restored, places)) = restored {
            let is_to_repeat = self.retry.is_some();
            // Another owner may have tried its records in another batch.
            let assigned = &self.assigned;
            let engine = &self.engine;
            let is_ours = |of: &BTreeSet<InputPartition>| {
                of.is_subset(assigned) && engine.is_author(&(of & &places), &restored.progress)
            };
            let moved = self.retry.take_if(|retry| !is_ours(&retry.affected_partitions()));
            self.discard_retry(moved)?;
            // A repeated batch keeps its timestamp, so support that has expired since counts for it.
            let now = self.clock.now().age_ms;
            let age_ms = self.retry.as_ref().map_or(now, |retry| now.min(retry.after.age_ms));
            self.engine.adopt_partitions(restored, &places, age_ms)?;
            let settled = self.retry.take_if(|retry| !self.engine.has_all_waiting(retry));
            self.discard_retry(settled)?;
            self.source.start_partitions(&places);
            reads_again |= is_to_repeat;
        }
        if reads_again {
            *is_dropped = false;
            self.source.rewind(None, self.retry.as_ref().map(ranges_of).unwrap_or_default())?;
        }
        if self.retry.is_none() && self.is_fully_restored() && self.engine.has_pending_changes() {
            self.engine.make_pending_changes(self.sink, self.clock.now())?;
        }
        Ok(())
    }

    fn close_due_series(&mut self) -> Result<(), StreamError> {
        match self.engine.close_series(self.sink, self.clock.now()) {
            Ok(()) => {}
            Err(BatchError::Aborted { intent, .. }) => {
                BatchAborted { reason: AbortReason::Transaction }.emit(self.telemetry);
                self.retry = Some(*intent);
            }
            Err(error) => return Err(self.report_refusal(error)),
        }
        Ok(())
    }

    /// Requests wait during a retry, which must not change.
    fn process_erasure_requests(&mut self) -> Result<(), StreamError> {
        if self.retry.is_some() {
            return Ok(());
        }
        let from_topic = self.erasure_topic.as_mut().map_or(Ok(None), TopicReader::next_request)?;
        for (request, answer) in from_topic.into_iter().chain(self.erasures.try_recv()) {
            // The client may have disconnected.
            drop(answer.send(self.engine.erase(request, self.sink, self.clock.now())?));
        }
        Ok(())
    }

    /// Refuses batches before a retry, and records of partitions without restored state. They and their successors are
    /// read again.
    fn is_admitted(&self, turn: &QueuedBatch) -> bool {
        let repeats = |retry: &BatchIntent| !retry.ranges.is_empty() && turn.input.closed == CloseReason::Replay;
        let is_next = self.restore.is_none() || self.retry.as_ref().is_none_or(repeats);
        is_next && turn.input.ranges.keys().all(|place| self.is_assigned_and_restored(*place))
    }

    fn process_next_batch(
        &mut self,
        mut turn: QueuedBatch,
        last: Option<Flush>,
    ) -> Result<BatchStepOutcome, StreamError> {
        let input = &turn.input;
        let records = input.records();
        let retry = self.retry.take().filter(|_| input.closed == CloseReason::Replay);
        let by_age = || match input.closed {
            // A flush by age settles even if a pipe sent no records.
            CloseReason::FinalFlush if records == 0 => Flush::Quiet,
            CloseReason::FinalFlush => Flush::Age,
            CloseReason::Full | CloseReason::Time | CloseReason::Replay => Flush::No,
        };
        // A repeated batch flushes the same rows, because its output may have been seen.
        let flush = retry.as_ref().map(|retry| retry.flush).or(last).unwrap_or_else(by_age);
        // A repeated batch uses the profiles of its first attempt; every other batch waits for the current profiles.
        if retry.is_none() && !self.engine.read_profiles(self.stop)? {
            return Ok(BatchStepOutcome::NotBegun);
        }
        let now = self.clock.now();
        let outcome = if records > 0 || !input.is_empty() {
            self.engine.process(&mut turn, flush, retry.as_ref(), self.sink, now, self.source)
        } else if flush == Flush::No {
            Ok(())
        } else {
            self.engine.settle(|_| true, flush, retry.as_ref(), self.sink, now)
        };
        match outcome {
            Ok(()) => Ok(BatchStepOutcome::OutputReleased),
            Err(BatchError::Aborted { why, intent }) => {
                BatchAborted { reason: AbortReason::Transaction }.emit(self.telemetry);
                let ranges = ranges_of(&intent);
                self.retry = Some(*intent);
                self.source.rewind(Some((turn, last)), ranges)?;
                Ok(BatchStepOutcome::WillRepeat(why))
            }
            Err(error) => Err(self.report_refusal(error)),
        }
    }

    fn report_refusal(&self, error: BatchError) -> StreamError {
        if matches!(error, BatchError::Refused(_)) {
            VerificationRefused { violations: 1 }.emit(self.telemetry);
        }
        error.into()
    }

    fn handle_notice(&mut self, notice: AssignmentNotice) -> Result<(), StreamError> {
        match notice {
            AssignmentNotice::Revoked { places, is_lost, acknowledge } => {
                self.assigned.retain(|place| !places.contains(place));
                self.discard_partition_state(&places)?;
                // In the next generation they would be taken for offsets of this member.
                self.wait_for_offsets(REVOCATION_TIMEOUT)?;
                let gone = places.len() as u64;
                let (revoked, lost) = if is_lost { (0, gone) } else { (gone, 0) };
                PartitionsChanged { assigned: 0, revoked, lost }.emit(self.telemetry);
                // After its timeout the reader has continued; later commits are fenced.
                if acknowledge.send(()).is_err() {
                    tracing::debug!("the reader no longer waits for an acknowledgement");
                }
            }
            AssignmentNotice::Assigned { places } => {
                PartitionsChanged { assigned: places.len() as u64, revoked: 0, lost: 0 }.emit(self.telemetry);
                let again: Vec<InputPartition> =
                    places.iter().filter(|place| self.assigned.contains(place)).copied().collect();
                self.discard_partition_state(&again)?;
                if self.restore.is_none() {
                    self.source.start_partitions(&places.iter().copied().collect());
                }
                self.assigned.extend(places);
            }
            AssignmentNotice::CannotReplay { .. } => {
                // The reader repeats ranges only.
                let aborted = self.retry.take_if(|retry| !retry.ranges.is_empty());
                self.discard_retry(aborted)?;
            }
        }
        Ok(())
    }

    /// Also gives up a pending retry of these partitions: another instance may have tried its records in another batch.
    fn discard_partition_state(&mut self, places: &[InputPartition]) -> Result<(), StreamError> {
        if let Some(restore) = &mut self.restore {
            restore.discard_places(places);
        }
        let is_gone =
            self.retry.take_if(|retry| retry.affected_partitions().iter().any(|place| places.contains(place)));
        if is_gone.as_ref().is_some_and(|retry| !retry.ranges.is_empty()) {
            // The reader has read only a part of the retry.
            self.source.rewind(None, OffsetRanges::new())?;
        }
        self.discard_retry(is_gone)?;
        self.engine.drop_partitions(&places.iter().copied().collect());
        Ok(())
    }

    /// Gives up a retry if all its partitions are assigned elsewhere: it would wait forever.
    fn give_up_passed_retry(&mut self, progress: &mut LoopProgress) -> Result<(), StreamError> {
        let waits = self.retry.is_some() && !self.source.has_partitions();
        if !waits || progress.asked_at.is_some_and(|asked| asked.elapsed() < PASSED_CHECK_INTERVAL) {
            return Ok(());
        }
        progress.asked_at = Some(Instant::now());
        // A retry without ranges has no offsets to query.
        let is_late = progress.begun.elapsed() >= UNASSIGNED_DELAY;
        let passed = self.retry.take_if(|retry| {
            if retry.ranges.is_empty() { is_late } else { self.source.is_passed_by_others(&ranges_of(retry)) }
        });
        if passed.is_some() {
            self.source.rewind(None, OffsetRanges::new())?;
        }
        self.discard_retry(passed)
    }

    fn discard_retry(&mut self, aborted: Option<BatchIntent>) -> Result<(), StreamError> {
        Ok(aborted.map_or(Ok(()), |intent| self.engine.discard_aborted(&intent))?)
    }

    fn repeat_settlement(&mut self, intent: BatchIntent) -> Result<(), StreamError> {
        let settled: BTreeSet<RecordPosition> = intent.settled.iter().map(|(_, at)| *at).collect();
        self.settle_held(|c| settled.contains(&c), intent.flush, Some(intent))
    }

    /// Held records wait during a pending retry, which includes them, and for the initial profiles.
    fn settle_held(
        &mut self,
        of: impl Fn(RecordPosition) -> bool,
        flush: Flush,
        mut retry: Option<BatchIntent>,
    ) -> Result<(), StreamError> {
        if retry.is_none() && (self.retry.is_some() || !self.engine.read_profiles(&AtomicBool::new(true))?) {
            return Ok(self.engine.flush()?);
        }
        let is_final = flush == Flush::EndOfStream || !self.source.is_live();
        let attempts = if is_final { MAX_BATCH_ATTEMPTS } else { MAX_SETTLEMENT_ATTEMPTS };
        for attempt in 1..=attempts {
            match self.engine.settle(&of, flush, retry.as_ref(), self.sink, self.clock.now()) {
                Ok(()) => {
                    retry = None;
                    break;
                }
                // No later event could settle it.
                Err(error @ BatchError::Aborted { .. }) if attempt == MAX_BATCH_ATTEMPTS => return Err(error.into()),
                Err(BatchError::Aborted { intent, .. }) => {
                    BatchAborted { reason: AbortReason::Transaction }.emit(self.telemetry);
                    retry = Some(*intent);
                }
                Err(error) => return Err(self.report_refusal(error)),
            }
        }
        if retry.is_some() {
            // The records are released exactly as attempted, or not at all.
            self.retry = retry;
            return Ok(());
        }
        Ok(self.engine.flush()?)
    }
}
