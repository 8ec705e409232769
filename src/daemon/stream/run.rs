//! The daemon's main loop, over any source.
//!
//! The states of a batch are the engine's (`docs/exactly-once.md`); this loop decides what comes next: a batch from the
//! source, a revocation to settle, a rewind after an abort, or the end.

use super::idle::IdlePartitions;
use super::restore::{Restore, RestoreError};
use super::source::{Next, Notice, Source, SourceFailure};
use crate::daemon::engine::clock::StateClock;
use crate::daemon::engine::{BatchError, Engine, Settling, Turn};
use crate::daemon::erasure::ErasureRequests;
use crate::daemon::erasure::topic::{ErasureTopicError, TopicReader};
use crate::daemon::reload::NextConfig;
use crate::daemon::state::directory::StateError;
use crate::daemon::state::records::Intent;
use crate::faults::crash_point;
use crate::io::input::{Closed, Place, Ranges};
use crate::release::sink::Sink;
use crate::telemetry::{AbortReason, BatchAborted, Rebalanced, Telemetry, VerificationRefused};
use crossbeam_channel::Receiver;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use throng_core::values::raw::Coordinate;

/// Why the daemon stopped by itself.
#[derive(Debug, thiserror::Error)]
pub enum StreamError {
    /// The source cannot be read on, or not from where it should.
    #[error(transparent)]
    Source(#[from] SourceFailure),
    /// A batch did not leave, or must not be read again: trying again does not help.
    #[error(transparent)]
    Batch(#[from] BatchError),
    /// What only the memory knew could not be written to the state.
    #[error(transparent)]
    State(#[from] StateError),
    /// The erasure topic cannot be read on.
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

/// How far files have been read, for a progress bar.
pub trait Watcher: Sync {
    /// Called now and then with the bytes that have been read of all files.
    fn read(&self, bytes: u64);
}

/// Attempts at one batch before the daemon gives up and lets a supervisor start it afresh.
const ATTEMPTS: u32 = 20;

/// Attempts at settling in a row, before whatever else the source has to say is heard; and the time until the next ones. What the group
/// refuses to a member that it has expelled it refuses until the client has joined again.
const SETTLING_ATTEMPTS: u32 = 3;
const SETTLING_PAUSE: Duration = Duration::from_secs(1);

/// How long the loop waits for something to do before it looks around, and how long while the last batch is still to be
/// written to the state: the intent of a next one that comes at once saves a write of its own (decision 0006).
const IDLE: Duration = Duration::from_millis(100);
const BRIEFLY: Duration = Duration::from_millis(20);

/// How long the offsets of the last batch may take to stand: when partitions are taken away, a little less than the group
/// waits; at the end, as long as anything there.
const LETTING_GO: Duration = Duration::from_secs(100);
const PARTING: Duration = Duration::from_secs(15);

/// An instance that has no partition for so long is a standby.
const STANDBY: Duration = Duration::from_secs(30);

/// How often an instance without partitions asks whether somebody else has read on where its batch is to be repeated.
const ASKING: Duration = Duration::from_secs(10);

/// A stream, where it goes, and the loop's own state.
pub struct Run<'a> {
    /// Gives batches, and notices of partitions that come and go.
    pub source: &'a mut dyn Source,
    /// Treats and verifies them; goes on behind the last batch that left.
    pub engine: &'a mut Engine,
    /// Where they leave to: one transaction, or one flushed write, a batch.
    pub sink: &'a mut dyn Sink,
    /// Is told of aborts, refusals and rebalances.
    pub telemetry: &'a Telemetry,
    /// Gives each attempt its stamp, and the state its age.
    pub clock: StateClock,
    /// After this long without batches of a live source, held records are settled.
    pub max_age: Duration,
    /// A batch to repeat exactly.
    pub retry: Option<Intent>,
    /// Requests for erasures.
    pub erasures: &'a ErasureRequests,
    /// Reader of the erasure topic; none where there is no such topic.
    pub erasure_topic: Option<TopicReader>,
    /// Finds partitions that delay no bucket; none where no series come of topics.
    pub idle: Option<IdlePartitions>,
    /// Partitions that it reads.
    pub assigned: BTreeSet<Place>,
    /// Reads the state of partitions that come; none where the source is a file.
    pub restore: Option<Restore>,
    /// Holds the configuration for which this run is to end; none as long as it is to go on.
    pub next: &'a Receiver<NextConfig>,
    /// Set when the daemon is to end.
    pub stop: &'a AtomicBool,
}

/// What has become of a batch.
enum Done {
    /// It has left.
    Left,
    /// It was aborted, for a reason, and comes again.
    Again(String),
    /// The daemon is to end before it could begin: the next start reads it again.
    Unbegun,
}

fn ranges_of(intent: &Intent) -> Ranges {
    intent.ranges.iter().map(|r| ((r.topic, r.partition), (r.from, r.to))).collect()
}

impl Run<'_> {
    /// Runs until the source ends, or until something breaks that only a new start can mend.
    ///
    /// # Errors
    /// See [`StreamError`]. Nothing is half released: everything up to the last committed batch stays, and the next run
    /// continues behind it.
    pub fn run(mut self) -> Result<(), StreamError> {
        let outcome = self.stream().and_then(|()| Ok(self.engine.let_all_go()?));
        // Whatever ends us, somebody else reads on from the committed offsets; of a file there are none.
        let stood = if self.source.is_live() { self.stand(PARTING) } else { Ok(()) };
        match (outcome, stood) {
            (Err(error), Err(also)) => {
                tracing::error!(%also, "and it is not known whether the last batch's offsets are committed");
                Err(error)
            }
            (outcome, stood) => outcome.and(stood),
        }
    }

    /// Waits until the offsets of the last batch stand. Partitions are let go only then: their next owner begins there.
    fn stand(&mut self, patience: Duration) -> Result<(), StreamError> {
        self.sink.stand(patience).map_err(|e| BatchError::Fatal(e.to_string()).into())
    }

    fn stream(&mut self) -> Result<(), StreamError> {
        let mut attempts = 0;
        // What was read and not processed: it is read again.
        let mut is_dropped = false;
        let begun = Instant::now();
        // A batch without records only changes the changelog, and nobody has seen anything of it.
        let empty = self.retry.take_if(|retry| self.restore.is_some() && retry.places().is_empty());
        self.give_up(empty)?;
        let mut quiet_since = Instant::now();
        let (mut asked_at, mut settled_at) = (None, None);
        if let Some(ranges) = self.retry.as_ref().map(ranges_of).filter(|ranges| !ranges.is_empty()) {
            self.source.rewind(None, ranges)?;
        }
        loop {
            self.follow_partitions(&mut is_dropped)?;
            // An aborted settling may have been seen, and other records could take the held ones along: nothing comes before it.
            let pause = if self.restore.is_some() { SETTLING_PAUSE } else { Duration::ZERO };
            let is_time = settled_at.is_none_or(|at: Instant| at.elapsed() >= pause) && self.can_repeat();
            if let Some(intent) = self.retry.take_if(|retry| is_time && retry.ranges.is_empty()) {
                self.settle_again(intent)?;
                settled_at = self.retry.is_some().then(Instant::now);
                attempts = if self.retry.is_some() { attempts + 1 } else { 0 };
                if attempts >= ATTEMPTS {
                    return Err(
                        BatchError::Fatal("held records could not be settled, again and again".to_owned()).into()
                    );
                }
                // Without a changelog nothing that is read in between can be read again.
                if self.retry.is_some() && self.restore.is_none() && !self.stop.load(Ordering::Acquire) {
                    continue;
                }
            }
            if let Some(idle) = &mut self.idle
                && idle.is_time()
                && let Some(found) = idle.turn(&self.engine.series_wait_for(), self.engine.series_position())
            {
                self.engine.note_idle(found);
            }
            // A name that is acted on before partitions have come would be missed in them.
            let waits = self.restore.is_some() && self.assigned.is_empty() && begun.elapsed() < STANDBY;
            if self.has_state() && !waits {
                self.erase_requested()?;
            }
            // A batch that is to be repeated is repeated under the policy that it was tried with.
            if self.retry.is_none() && !self.next.is_empty() {
                crash_point("reload-begun");
                // What is held goes on waiting: the state keeps it.
                return Ok(self.engine.flush()?);
            }
            let next = self.source.next(if self.engine.is_behind() { BRIEFLY } else { IDLE });
            if next.is_err() && self.engine.is_behind() {
                // What has left must not be read again: what was read of a broken source may be gone when it is mended.
                self.engine.flush()?;
            }
            match next? {
                Next::Batch(turn, last) => {
                    is_dropped |= !self.is_admitted(&turn);
                    if is_dropped {
                        continue;
                    }
                    if turn.input.records() > 0 {
                        quiet_since = Instant::now();
                    }
                    attempts = match self.batch(turn, last)? {
                        Done::Left if last.is_none() => 0,
                        // What is held goes on waiting behind a batch that has not begun.
                        Done::Left | Done::Unbegun => return Ok(self.engine.flush()?),
                        Done::Again(why) if attempts + 1 >= ATTEMPTS => {
                            let said = format!("one batch was aborted {ATTEMPTS} times, the last time since {why}");
                            return Err(BatchError::Fatal(said).into());
                        }
                        Done::Again(_) => attempts + 1,
                    };
                }
                Next::Notice(notice) => self.hear(notice)?,
                Next::Nothing => {
                    self.give_up_what_others_have(begun, &mut asked_at)?;
                    if self.retry.is_none() {
                        self.engine.take_updates_between_batches()?;
                        self.close_series()?;
                    }
                    if self.engine.is_behind() {
                        self.engine.flush()?;
                    }
                    let silent = self.source.is_live() && quiet_since.elapsed() >= self.max_age;
                    if silent && self.has_state() && self.engine.has_due(self.clock.now()) {
                        self.settle(|_| true, Settling::Quiet, None)?;
                        quiet_since = Instant::now();
                    }
                }
                Next::End(settling) => {
                    let aborted = self.retry.take_if(|retry| self.source.has_passed(&ranges_of(retry)));
                    self.give_up(aborted)?;
                    if !self.has_state() {
                        return Ok(self.engine.flush()?);
                    }
                    return self.settle(|_| true, settling, None);
                }
            }
        }
    }

    /// Whether the state of all assigned partitions is known.
    fn has_state(&self) -> bool {
        self.restore.as_ref().is_none_or(|restore| restore.has_all(&self.assigned))
    }

    /// Returns true if all partitions of a pending retry are assigned and restored.
    fn can_repeat(&self) -> bool {
        self.retry.as_ref().is_some_and(|retry| retry.places().into_iter().all(|place| self.is_known(place)))
    }

    /// Returns true if a partition is assigned and restored.
    fn is_known(&self, place: Place) -> bool {
        self.restore.as_ref().is_none_or(|restore| self.assigned.contains(&place) && restore.has(place))
    }

    /// Takes over the state of partitions that have come. While a batch is to be repeated, the state of other partitions waits: the retry must
    /// find the same memory.
    fn follow_partitions(&mut self, is_dropped: &mut bool) -> Result<(), StreamError> {
        let waits = self.can_repeat();
        let Some(restore) = &mut self.restore else { return Ok(()) };
        let restored = restore.turn(&self.assigned, waits)?;
        // Where there is nothing to read for it, one that only settles waits for its partitions as the reader does for those of others.
        let is_elsewhere = self.retry.take_if(|retry| {
            retry.ranges.is_empty() && !self.assigned.is_empty() && !retry.places().is_subset(&self.assigned)
        });
        self.give_up(is_elsewhere)?;
        let settles = self.retry.as_ref().is_some_and(|retry| retry.ranges.is_empty());
        let mut reads_again = *is_dropped && !settles;
        if let Some((restored, places)) = restored {
            let is_to_repeat = self.retry.is_some();
            // Whoever has processed one of its partitions since may have tried its records in another batch.
            let assigned = &self.assigned;
            let engine = &self.engine;
            let is_ours =
                |of: &BTreeSet<Place>| of.is_subset(assigned) && engine.is_author(&(of & &places), &restored.progress);
            let moved = self.retry.take_if(|retry| !is_ours(&retry.places()));
            self.give_up(moved)?;
            // What has expired since counts for a batch that is repeated with its clock.
            let now = self.clock.now().age_ms;
            let age_ms = self.retry.as_ref().map_or(now, |retry| now.min(retry.after.age_ms));
            self.engine.take_partitions_over(restored, &places, age_ms)?;
            let settled = self.retry.take_if(|retry| !self.engine.has_all_waiting(retry));
            self.give_up(settled)?;
            self.source.start(&places);
            reads_again |= is_to_repeat;
        }
        if reads_again {
            *is_dropped = false;
            self.source.rewind(None, self.retry.as_ref().map(ranges_of).unwrap_or_default())?;
        }
        if self.retry.is_none() && self.has_state() && self.engine.has_pending_changes() {
            self.engine.make_pending_changes(self.sink, self.clock.now())?;
        }
        Ok(())
    }

    /// Closes buckets of series that wait for nothing but a batch.
    fn close_series(&mut self) -> Result<(), StreamError> {
        match self.engine.close_series(self.sink, self.clock.now()) {
            Ok(()) => {}
            Err(BatchError::Aborted { intent, .. }) => {
                BatchAborted { reason: AbortReason::Transaction }.emit(self.telemetry);
                self.retry = Some(*intent);
            }
            Err(error) => return Err(self.refused(error)),
        }
        Ok(())
    }

    /// Erases people who are named in a request. While a batch is to be repeated requests wait: that batch is what it was.
    fn erase_requested(&mut self) -> Result<(), StreamError> {
        if self.retry.is_some() {
            return Ok(());
        }
        let from_topic = self.erasure_topic.as_mut().map_or(Ok(None), TopicReader::next_request)?;
        for (request, answer) in from_topic.into_iter().chain(self.erasures.try_recv()) {
            // The client may have gone; it may ask again.
            drop(answer.send(self.engine.erase(request, self.sink, self.clock.now())?));
        }
        Ok(())
    }

    /// Whether a batch may be processed: not with records of partitions that are not ours or whose state is not known, which come where a
    /// partition goes and comes again quickly; nor before the one that is to be repeated. What is dropped is read again, and nothing that
    /// follows it is processed before.
    fn is_admitted(&self, turn: &Turn) -> bool {
        let repeats = |retry: &Intent| !retry.ranges.is_empty() && turn.input.closed == Closed::Replay;
        let is_next = self.restore.is_none() || self.retry.as_ref().is_none_or(repeats);
        is_next && turn.input.ranges.keys().all(|place| self.is_known(*place))
    }

    /// Processes one batch.
    fn batch(&mut self, mut turn: Turn, last: Option<Settling>) -> Result<Done, StreamError> {
        let input = &turn.input;
        let records = input.records();
        let retry = self.retry.take().filter(|_| input.closed == Closed::Replay);
        // A batch that settled what was held does so again: its bytes may have been seen. A pipe may be silent for too long.
        let again = retry.as_ref().is_some_and(|r| r.last) || records == 0 && input.closed == Closed::Settle;
        let at_the_end = retry.as_ref().is_some_and(|r| r.last && r.all) && !self.source.is_live();
        let settling = match last {
            Some(settling) => settling,
            None if at_the_end => Settling::EndOfStream,
            None if again => Settling::Quiet,
            None => Settling::No,
        };
        // What is repeated was joined to what was known then; everything else waits for what is known now.
        if retry.is_none() && !self.engine.read_profiles(self.stop)? {
            return Ok(Done::Unbegun);
        }
        let now = self.clock.now();
        let outcome = if records > 0 || !input.is_empty() {
            self.engine.process(&mut turn, settling, retry.as_ref(), self.sink, now, self.source)
        } else if settling == Settling::No {
            Ok(())
        } else {
            self.engine.settle(|_| true, settling, retry.as_ref(), self.sink, now)
        };
        match outcome {
            Ok(()) => Ok(Done::Left),
            Err(BatchError::Aborted { why, intent }) => {
                BatchAborted { reason: AbortReason::Transaction }.emit(self.telemetry);
                let ranges = ranges_of(&intent);
                self.retry = Some(*intent);
                self.source.rewind(Some((turn, last)), ranges)?;
                Ok(Done::Again(why))
            }
            Err(error) => Err(self.refused(error)),
        }
    }

    /// Tells of a batch that verification has refused.
    fn refused(&self, error: BatchError) -> StreamError {
        if matches!(error, BatchError::Refused(_)) {
            VerificationRefused { violations: 1 }.emit(self.telemetry);
        }
        error.into()
    }

    /// What the source says that is no batch.
    fn hear(&mut self, notice: Notice) -> Result<(), StreamError> {
        match notice {
            Notice::Revoked { places, is_lost, acknowledge } => {
                self.assigned.retain(|place| !places.contains(place));
                self.let_go(&places)?;
                // Nothing of lost ones may be under way in the next generation, either: it would be taken for ours.
                self.stand(LETTING_GO)?;
                let gone = places.len() as u64;
                let (revoked, lost) = if is_lost { (0, gone) } else { (gone, 0) };
                Rebalanced { assigned: 0, revoked, lost }.emit(self.telemetry);
                // A reader that has given up waiting has gone on without us: what we would still commit is fenced.
                if acknowledge.send(()).is_err() {
                    tracing::debug!("the reader does not wait for an acknowledgement any more");
                }
            }
            Notice::Assigned { places } => {
                Rebalanced { assigned: places.len() as u64, revoked: 0, lost: 0 }.emit(self.telemetry);
                // One that is ours already has come anew.
                let again: Vec<Place> = places.iter().filter(|place| self.assigned.contains(place)).copied().collect();
                self.let_go(&again)?;
                if self.restore.is_none() {
                    self.source.start(&places.iter().copied().collect());
                }
                self.assigned.extend(places);
            }
            Notice::CannotReplay { .. } => {
                // The reader repeats ranges: one without is not meant.
                let aborted = self.retry.take_if(|retry| !retry.ranges.is_empty());
                self.give_up(aborted)?;
            }
        }
        Ok(())
    }

    /// Forgets the state of partitions: others have them now, or they come anew. A batch with any of them is not repeated here, also where
    /// they come back: somebody may have tried its records in another batch.
    fn let_go(&mut self, places: &[Place]) -> Result<(), StreamError> {
        if let Some(restore) = &mut self.restore {
            restore.forget(places);
        }
        let is_gone = self.retry.take_if(|retry| retry.places().iter().any(|place| places.contains(place)));
        if is_gone.as_ref().is_some_and(|retry| !retry.ranges.is_empty()) {
            // The reader has a part of it, which would count as all of it when the partitions come back.
            self.source.rewind(None, Ranges::new())?;
        }
        self.give_up(is_gone)?;
        self.engine.let_partitions_go(&places.iter().copied().collect());
        Ok(())
    }

    /// A batch that is to be repeated waits for its partitions. Where all of them are with others, and stay there, it would wait for ever, and
    /// with it whatever is done between batches alone.
    fn give_up_what_others_have(&mut self, begun: Instant, asked_at: &mut Option<Instant>) -> Result<(), StreamError> {
        let waits = self.retry.is_some() && !self.source.has_partitions();
        if !waits || asked_at.is_some_and(|asked: Instant| asked.elapsed() < ASKING) {
            return Ok(());
        }
        *asked_at = Some(Instant::now());
        // One that only settles has no range to ask for.
        let is_standby = begun.elapsed() >= STANDBY;
        let passed = self.retry.take_if(|retry| {
            if retry.ranges.is_empty() { is_standby } else { self.source.has_passed(&ranges_of(retry)) }
        });
        if passed.is_some() {
            // Whatever the reader has of it is void.
            self.source.rewind(None, Ranges::new())?;
        }
        self.give_up(passed)
    }

    /// Nothing of an aborted batch that is not repeated here stays pending.
    fn give_up(&mut self, aborted: Option<Intent>) -> Result<(), StreamError> {
        Ok(aborted.map_or(Ok(()), |intent| self.engine.give_up(&intent))?)
    }

    /// Repeats a settling that was aborted, perhaps in the process before this one.
    fn settle_again(&mut self, intent: Intent) -> Result<(), StreamError> {
        let settled: BTreeSet<Coordinate> = intent.settled.iter().map(|(_, at)| *at).collect();
        let settling = if self.source.is_live() { Settling::Quiet } else { Settling::EndOfStream };
        self.settle(|c| settled.contains(&c), settling, Some(intent))
    }

    /// Settles what is held from the places that `of` names, and writes everything that is only in memory. What is held goes on
    /// waiting while a batch is to be repeated, for it comes along with that; and while the profiles of the start have not been read,
    /// for which nobody waits here.
    fn settle(
        &mut self,
        of: impl Fn(Coordinate) -> bool,
        settling: Settling,
        mut retry: Option<Intent>,
    ) -> Result<(), StreamError> {
        if retry.is_none() && (self.retry.is_some() || !self.engine.read_profiles(&AtomicBool::new(true))?) {
            return Ok(self.engine.flush()?);
        }
        let attempts = if settling == Settling::EndOfStream { ATTEMPTS } else { SETTLING_ATTEMPTS };
        for attempt in 1..=attempts {
            match self.engine.settle(&of, settling, retry.as_ref(), self.sink, self.clock.now()) {
                Ok(()) => {
                    retry = None;
                    break;
                }
                // At the end of a stream nothing comes that could settle it later.
                Err(error @ BatchError::Aborted { .. }) if attempt == ATTEMPTS => return Err(error.into()),
                Err(BatchError::Aborted { intent, .. }) => {
                    BatchAborted { reason: AbortReason::Transaction }.emit(self.telemetry);
                    retry = Some(*intent);
                }
                Err(error) => return Err(self.refused(error)),
            }
        }
        if retry.is_some() {
            // It stays held, for its offsets are ours, and leaves as it was tried or not at all.
            self.retry = retry;
            return Ok(());
        }
        Ok(self.engine.flush()?)
    }
}
