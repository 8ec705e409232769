//! A topic as the source of a stream.

use super::source::{Acknowledge, Next, Notice, Source, SourceFailure};
use crate::daemon::engine::{POLL_INTERVAL, Settling, Turn, Upcoming};
use crate::io::input::Ranges;
use crate::io::kafka::connection::Cluster;
use crate::io::kafka::feed::{self, Command, Feed};
use crate::io::kafka::health::Health;
use crate::io::kafka::offsets;
use crate::telemetry::{InputLost, SourceConnected, SourceLost, Telemetry};
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The group whose offsets tell how far its members have come.
pub struct Group<'a> {
    /// Its coordinator's cluster.
    pub cluster: &'a Cluster,
    /// Its name.
    pub name: &'a str,
    /// The topics that it reads, by number.
    pub topics: &'a [String],
}

/// How long the offsets of the group are waited for at the end.
const LAST_LOOK: Duration = Duration::from_secs(5);

/// What the reader of a topic has read, and what it is told.
pub struct KafkaSource<'a> {
    group: Group<'a>,
    feed: &'a Receiver<Feed>,
    commands: &'a Sender<Command>,
    health: &'a Arc<Health>,
    /// Of the brokers, as it is configured.
    address: &'a str,
    telemetry: &'a Telemetry,
    stop: &'a AtomicBool,
    /// Batches of older epochs are void.
    epoch: u64,
    /// What the reader has said and nobody has heard yet.
    next: Option<Said>,
    connected: bool,
}

/// A batch may be encoded before its turn.
enum Said {
    Batch(Turn),
    Notice(feed::Notice),
}

impl From<Feed> for Said {
    fn from(event: Feed) -> Self {
        match event {
            Feed::Batch(input) => Self::Batch(input.into()),
            Feed::Notice(notice) => Self::Notice(notice),
        }
    }
}

impl<'a> KafkaSource<'a> {
    /// The source of `group` whose reader speaks through `feed` and obeys `commands`; it ends when `stop` is set.
    #[must_use]
    pub fn new(
        group: Group<'a>,
        feed: &'a Receiver<Feed>,
        commands: &'a Sender<Command>,
        health: &'a Arc<Health>,
        address: &'a str,
        telemetry: &'a Telemetry,
        stop: &'a AtomicBool,
    ) -> Self {
        Self { group, feed, commands, health, address, telemetry, stop, epoch: 0, next: None, connected: false }
    }

    /// Says that the brokers are reached, or no longer.
    fn watch_connection(&mut self) {
        let (reachable, assigned) = (self.health.reachable(), self.health.assigned() > 0);
        self.telemetry.set_readiness(|r| {
            r.broker = reachable;
            r.assignment = assigned;
        });
        if reachable != self.connected {
            if reachable {
                SourceConnected.emit(self.telemetry);
            } else {
                SourceLost { address: self.address }.emit(self.telemetry);
            }
        }
        self.connected = reachable;
    }

    fn tell_of_loss(&self, gone: &Ranges) {
        for (&(number, partition), &(from, to)) in gone {
            let topic = self.group.topics.get(usize::from(number)).map_or("", String::as_str);
            InputLost { topic, partition, from, to }.emit();
        }
    }

    fn acknowledging(&self, acknowledge: Sender<()>) -> Acknowledge {
        let health = Arc::clone(self.health);
        Box::new(move || {
            if acknowledge.send(()).is_err() {
                // The reader has given up waiting; the group has moved on without us, and fences what we would still commit.
                health.note_error();
            }
        })
    }
}

impl Upcoming for KafkaSource<'_> {
    fn look(&mut self, over: &AtomicBool) -> Option<&mut Turn> {
        while self.next.is_none() {
            match self.feed.recv_timeout(POLL_INTERVAL) {
                Ok(event) => self.next = Some(event.into()),
                Err(RecvTimeoutError::Timeout) if !over.load(Ordering::Acquire) => {}
                Err(_) => return None,
            }
        }
        match &mut self.next {
            Some(Said::Batch(turn)) if turn.input.epoch == self.epoch => Some(turn),
            _ => None,
        }
    }
}

impl Source for KafkaSource<'_> {
    fn next(&mut self, wait: Duration) -> Result<Next, SourceFailure> {
        self.watch_connection();
        if self.stop.load(Ordering::Acquire) {
            return Ok(Next::End(Settling::Shutdown));
        }
        let said = match self.next.take() {
            Some(said) => said,
            None => match self.feed.recv_timeout(wait) {
                Ok(event) => event.into(),
                Err(RecvTimeoutError::Timeout) => return Ok(Next::Nothing),
                Err(RecvTimeoutError::Disconnected) => return Err(SourceFailure::ReaderGone),
            },
        };
        Ok(match said {
            Said::Batch(turn) if turn.input.epoch != self.epoch || turn.input.records() == 0 => Next::Nothing,
            Said::Batch(turn) => Next::Batch(turn, None),
            Said::Notice(feed::Notice::Assigned { places }) => Next::Notice(Notice::Assigned(places)),
            Said::Notice(feed::Notice::Revoked { places, acknowledge }) => {
                Next::Notice(Notice::Revoked(places, self.acknowledging(acknowledge)))
            }
            Said::Notice(feed::Notice::Lost { places, acknowledge }) => {
                Next::Notice(Notice::Lost(places, self.acknowledging(acknowledge)))
            }
            Said::Notice(feed::Notice::CannotReplay { gone }) => {
                self.tell_of_loss(&gone);
                Next::Notice(Notice::CannotReplay)
            }
            Said::Notice(feed::Notice::Failed(failure)) => return Err(failure.into()),
        })
    }

    /// The batch in hand is read again with the rest: a partition of it may have moved meanwhile.
    fn rewind(&mut self, _: Option<(Turn, Option<Settling>)>, ranges: Ranges) -> Result<(), SourceFailure> {
        self.epoch += 1;
        let replay = Some(ranges).filter(|ranges| !ranges.is_empty());
        self.commands.send(Command::Rewind { epoch: self.epoch, replay }).map_err(|_| SourceFailure::ReaderGone)
    }

    fn is_live(&self) -> bool {
        true
    }

    fn has_partitions(&self) -> bool {
        self.health.assigned() > 0
    }

    fn has_passed(&self, ranges: &Ranges) -> bool {
        let Group { cluster, name, topics } = self.group;
        let topic = |number: u16| topics.get(usize::from(number)).map_or("", String::as_str);
        let places: Vec<(&str, i32)> = ranges.keys().map(|(number, partition)| (topic(*number), *partition)).collect();
        // What cannot be learnt now the next start finds out.
        let committed = offsets::committed(cluster, name, &places, LAST_LOOK).unwrap_or_default();
        committed.iter().zip(ranges.values()).any(|(offset, range)| offset.is_some_and(|offset| offset > range.0))
    }
}
