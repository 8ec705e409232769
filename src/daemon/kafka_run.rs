//! A topic as the stream: the daemon's main loop.
//!
//! The states of a batch are the engine's (`docs/exactly-once.md`); this loop decides what comes next: a batch from the
//! reader, a revocation to settle, a rewind after an abort, or the end.

use super::clock::StateClock;
use super::engine::{BatchError, Engine, GLANCE, Settling, Turn, Upcoming};
use super::state::directory::StateError;
use super::state::records::Intent;
use crate::io::input::Closed;
use crate::io::kafka::connection::KafkaFailure;
use crate::io::kafka::feed::{Command, Feed, Notice, Place, Ranges};
use crate::io::kafka::health::Health;
use crate::records::raw::Coordinate;
use crate::release::sink::Sink;
use crate::telemetry::{
    AbortReason, BatchAborted, Rebalanced, SourceConnected, SourceLost, Telemetry, VerificationRefused,
};
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Why the daemon stopped by itself.
#[derive(Debug, thiserror::Error)]
pub enum KafkaRunError {
    #[error(transparent)]
    Kafka(#[from] KafkaFailure),
    #[error(transparent)]
    Batch(#[from] BatchError),
    #[error(transparent)]
    State(#[from] StateError),
    #[error("the reader ended without a word (this is a bug)")]
    ReaderGone,
}

/// Attempts at one batch before the daemon gives up and lets a supervisor start it afresh.
const ATTEMPTS: u32 = 20;

/// How long the loop waits for something to do before it looks around, and how long while the last batch is still to be
/// written to the state: the intent of a next one that comes at once saves a write of its own (decision 0006).
const IDLE: Duration = Duration::from_millis(100);
const BRIEFLY: Duration = Duration::from_millis(20);

/// How long the offsets of the last batch may take to stand: when partitions are taken away, a little less than the group
/// waits; at the end, as long as anything there.
const LETTING_GO: Duration = Duration::from_secs(100);
const PARTING: Duration = Duration::from_secs(15);

/// The loop's own state.
pub struct KafkaRun<'a> {
    pub engine: &'a mut Engine,
    pub sink: &'a mut dyn Sink,
    pub feed: &'a Receiver<Feed>,
    pub commands: &'a Sender<Command>,
    pub health: &'a Arc<Health>,
    /// Of the brokers, as it is configured.
    pub address: &'a str,
    pub telemetry: &'a Telemetry,
    pub stop: &'a AtomicBool,
    pub clock: StateClock,
    /// After this long without batches, held records are settled.
    pub max_age: Duration,
    /// A batch to repeat exactly.
    pub retry: Option<Intent>,
}

/// What the reader has said and the loop has not heard yet.
struct Ahead<'a> {
    feed: &'a Receiver<Feed>,
    /// Batches of older epochs are void.
    epoch: u64,
    next: Option<Next>,
}

/// A batch may be encoded before its turn.
enum Next {
    Batch(Turn),
    Notice(Notice),
}

impl From<Feed> for Next {
    fn from(event: Feed) -> Self {
        match event {
            Feed::Batch(input) => Self::Batch(input.into()),
            Feed::Notice(notice) => Self::Notice(notice),
        }
    }
}

impl Ahead<'_> {
    fn next(&mut self, wait: Duration) -> Result<Next, RecvTimeoutError> {
        match self.next.take() {
            Some(next) => Ok(next),
            None => self.feed.recv_timeout(wait).map(Next::from),
        }
    }
}

impl Upcoming for Ahead<'_> {
    fn look(&mut self, over: &AtomicBool) -> Option<&mut Turn> {
        while self.next.is_none() {
            match self.feed.recv_timeout(GLANCE) {
                Ok(event) => self.next = Some(event.into()),
                Err(RecvTimeoutError::Timeout) if !over.load(Ordering::Acquire) => {}
                Err(_) => return None,
            }
        }
        match &mut self.next {
            Some(Next::Batch(turn)) if turn.input.epoch == self.epoch => Some(turn),
            _ => None,
        }
    }
}

fn ranges_of(intent: &Intent) -> Ranges {
    intent.ranges.iter().map(|r| ((r.topic, r.partition), (r.from, r.to))).collect()
}

impl KafkaRun<'_> {
    /// Runs until `stop`, or until something breaks that only a new start can mend.
    ///
    /// # Errors
    /// See [`KafkaRunError`]. Nothing is half released: the open transaction dies with the process.
    pub fn run(mut self) -> Result<(), KafkaRunError> {
        let outcome = self.stream();
        // Whatever ends us, somebody else reads on from the committed offsets.
        let stood = self.stand(PARTING);
        match (outcome, stood) {
            (Err(error), Err(also)) => {
                tracing::error!(%also, "and it is not known whether the last batch's offsets are committed");
                Err(error)
            }
            (outcome, stood) => outcome.and(stood),
        }
    }

    /// Waits until the offsets of the last batch stand. Partitions are let go only then: their next owner begins there.
    fn stand(&mut self, patience: Duration) -> Result<(), KafkaRunError> {
        self.sink.stand(patience).map_err(|e| BatchError::Fatal(e.to_string()).into())
    }

    fn stream(&mut self) -> Result<(), KafkaRunError> {
        let mut ahead = Ahead { feed: self.feed, epoch: 0, next: None };
        let mut attempts = 0;
        let mut quiet_since = Instant::now();
        let mut connected = false;
        if let Some(intent) = self.retry.take_if(|r| r.ranges.is_empty()) {
            self.settle_again(intent)?;
        }
        if let Some(ranges) = self.retry.as_ref().map(ranges_of).filter(|r| !r.is_empty()) {
            ahead.epoch += 1;
            self.rewind(ahead.epoch, Some(ranges))?;
        }
        loop {
            connected = self.watch_connection(connected);
            if self.stop.load(Ordering::Acquire) {
                return self.shut_down();
            }
            match ahead.next(if self.engine.is_behind() { BRIEFLY } else { IDLE }) {
                Ok(Next::Batch(mut turn)) => {
                    quiet_since = Instant::now();
                    if turn.input.epoch != ahead.epoch || turn.input.records() == 0 {
                        continue;
                    }
                    if self.batch(&mut turn, &mut ahead)? {
                        attempts = 0;
                    } else {
                        attempts += 1;
                        if attempts >= ATTEMPTS {
                            return Err(BatchError::Fatal(format!("one batch was aborted {ATTEMPTS} times")).into());
                        }
                        ahead.epoch += 1;
                        let ranges = self.retry.as_ref().map(ranges_of);
                        self.rewind(ahead.epoch, ranges)?;
                    }
                }
                Ok(Next::Notice(notice)) => self.hear(notice)?,
                Err(RecvTimeoutError::Timeout) => {
                    if self.engine.is_behind() {
                        self.engine.flush()?;
                    }
                    if quiet_since.elapsed() >= self.max_age && self.engine.has_due(self.clock.now()) {
                        self.settle_all(Settling::Quiet)?;
                        quiet_since = Instant::now();
                    }
                }
                Err(RecvTimeoutError::Disconnected) => return Err(KafkaRunError::ReaderGone),
            }
        }
    }

    /// What the reader says that is no batch.
    fn hear(&mut self, notice: Notice) -> Result<(), KafkaRunError> {
        match notice {
            Notice::Revoked { places, acknowledge } => {
                self.settle_places(&places)?;
                self.stand(LETTING_GO)?;
                Rebalanced { assigned: 0, revoked: places.len() as u64, lost: 0 }.emit(self.telemetry);
                self.release(&acknowledge);
            }
            Notice::Lost { places, acknowledge } => {
                Rebalanced { assigned: 0, revoked: 0, lost: places.len() as u64 }.emit(self.telemetry);
                // Nothing of theirs may be under way in the next generation: it would be taken for ours.
                self.stand(LETTING_GO)?;
                self.release(&acknowledge);
            }
            Notice::Assigned { places } => {
                Rebalanced { assigned: places.len() as u64, revoked: 0, lost: 0 }.emit(self.telemetry);
            }
            Notice::CannotReplay => self.retry = None,
            Notice::Failed(failure) => return Err(failure.into()),
        }
        Ok(())
    }

    /// Processes one batch. False when it was aborted and is to be repeated.
    fn batch(&mut self, turn: &mut Turn, ahead: &mut Ahead<'_>) -> Result<bool, KafkaRunError> {
        let retry = self.retry.take().filter(|_| turn.input.closed == Closed::Replay);
        let last = retry.as_ref().is_some_and(|r| r.last);
        let settling = if last { Settling::Quiet } else { Settling::No };
        match self.engine.process(turn, settling, retry.as_ref(), self.sink, self.clock.now(), ahead) {
            Ok(()) => Ok(true),
            Err(BatchError::Aborted { intent, .. }) => {
                BatchAborted { reason: AbortReason::Transaction }.emit(self.telemetry);
                self.retry = Some(*intent);
                Ok(false)
            }
            Err(BatchError::Refused(refusal)) => {
                VerificationRefused { violations: 1 }.emit(self.telemetry);
                Err(BatchError::Refused(refusal).into())
            }
            Err(error) => Err(error.into()),
        }
    }

    fn rewind(&self, epoch: u64, replay: Option<Ranges>) -> Result<(), KafkaRunError> {
        let replay = replay.filter(|r| !r.is_empty());
        self.commands.send(Command::Rewind { epoch, replay }).map_err(|_| KafkaRunError::ReaderGone)
    }

    /// Releases or suppresses what is held from partitions that are being taken away, while they are still ours.
    fn settle_places(&mut self, places: &[Place]) -> Result<(), KafkaRunError> {
        let of = |c: Coordinate| places.contains(&(c.topic, c.partition));
        self.settle(of, Settling::Revoked, None)
    }

    fn settle_all(&mut self, settling: Settling) -> Result<(), KafkaRunError> {
        self.settle(|_| true, settling, None)
    }

    /// Repeats a settling that the process before this one did not finish, before anything else can take the held
    /// records along: its aborted attempt may have been read.
    fn settle_again(&mut self, intent: Intent) -> Result<(), KafkaRunError> {
        let settled = self.engine.held_places(&intent.settled);
        self.settle(|c| settled.contains(&c), Settling::Quiet, Some(intent))
    }

    fn settle(
        &mut self,
        of: impl Fn(Coordinate) -> bool,
        settling: Settling,
        mut retry: Option<Intent>,
    ) -> Result<(), KafkaRunError> {
        for _ in 0..3 {
            match self.engine.settle(&of, settling, retry.as_ref(), self.sink, self.clock.now()) {
                Ok(()) => break,
                Err(BatchError::Aborted { intent, .. }) => {
                    BatchAborted { reason: AbortReason::Revoked }.emit(self.telemetry);
                    retry = Some(*intent);
                }
                Err(error) => return Err(error.into()),
            }
        }
        // What could not be settled stays held: its offsets are ours, and it is settled with a later batch.
        self.engine.flush()?;
        Ok(())
    }

    fn release(&self, acknowledge: &Sender<()>) {
        if acknowledge.send(()).is_err() {
            // The reader has given up waiting; the group has moved on without us, and fences what we would still commit.
            self.health.note_error();
        }
    }

    fn watch_connection(&self, connected: bool) -> bool {
        let (reachable, assigned) = (self.health.reachable(), self.health.assigned() > 0);
        self.telemetry.set_readiness(|r| {
            r.broker = reachable;
            r.assignment = assigned;
        });
        if reachable != connected {
            if reachable {
                SourceConnected.emit(self.telemetry);
            } else {
                SourceLost { address: self.address }.emit(self.telemetry);
            }
        }
        reachable
    }

    /// Settles everything that is held and writes everything that is only in memory.
    fn shut_down(&mut self) -> Result<(), KafkaRunError> {
        self.settle_all(Settling::Shutdown)?;
        self.engine.flush()?;
        Ok(())
    }
}
