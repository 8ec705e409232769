//! A topic as the source of a stream.

use super::source::{Next, Notice, Source, SourceFailure};
use crate::daemon::engine::{POLL_INTERVAL, Settling, Turn, Upcoming};
use crate::io::input::{Place, Ranges};
use crate::io::kafka::connection::Cluster;
use crate::io::kafka::feed::{Feed, Rewind};
use crate::io::kafka::health::Health;
use crate::io::kafka::offsets;
use crate::io::kafka::paused::PausedPartitions;
use crate::telemetry::{InputLost, SourceConnected, SourceLost, Telemetry};
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};
use std::collections::BTreeSet;
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
    commands: &'a Sender<Rewind>,
    paused: &'a PausedPartitions,
    health: &'a Arc<Health>,
    /// Of the brokers, as it is configured.
    address: &'a str,
    telemetry: &'a Telemetry,
    stop: &'a AtomicBool,
    /// Batches of older epochs are void.
    epoch: u64,
    /// What the reader has said and nobody has heard yet.
    next: Option<Result<Next, SourceFailure>>,
    connected: bool,
}

/// A batch may be encoded before its turn.
fn next_of(event: Feed) -> Result<Next, SourceFailure> {
    match event {
        Feed::Batch(input) => Ok(Next::Batch(input.into(), None)),
        Feed::Notice(notice) => Ok(Next::Notice(notice)),
        Feed::Failed(failure) => Err(failure.into()),
    }
}

impl<'a> KafkaSource<'a> {
    /// The source of `group` whose reader speaks through `feed` and obeys `commands`, with its paused partitions; it ends when `stop` is set.
    pub fn new(
        group: Group<'a>,
        feed: &'a Receiver<Feed>,
        (commands, paused): (&'a Sender<Rewind>, &'a PausedPartitions),
        health: &'a Arc<Health>,
        address: &'a str,
        telemetry: &'a Telemetry,
        stop: &'a AtomicBool,
    ) -> Self {
        Self { group, feed, commands, paused, health, address, telemetry, stop, epoch: 0, next: None, connected: false }
    }

    /// Says that the brokers are reached, or no longer.
    fn watch_connection(&mut self) {
        let reachable = self.health.reachable.load(Ordering::Relaxed);
        match (self.connected, reachable) {
            (false, true) => SourceConnected.emit(self.telemetry),
            (true, false) => SourceLost { address: self.address }.emit(self.telemetry),
            _ => {}
        }
        self.connected = reachable;
    }

    fn tell_of_loss(&self, gone: &Ranges) {
        for (&(number, partition), &(from, to)) in gone {
            let topic = self.group.topics.get(usize::from(number)).map_or("", String::as_str);
            InputLost { topic, partition, from, to }.emit();
        }
    }
}

impl Upcoming for KafkaSource<'_> {
    fn look(&mut self, over: &AtomicBool) -> Option<&mut Turn> {
        while self.next.is_none() {
            match self.feed.recv_timeout(POLL_INTERVAL) {
                Ok(event) => self.next = Some(next_of(event)),
                Err(RecvTimeoutError::Timeout) if !over.load(Ordering::Acquire) => {}
                Err(_) => return None,
            }
        }
        match &mut self.next {
            Some(Ok(Next::Batch(turn, _))) if turn.input.epoch == self.epoch => Some(turn),
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
        let next = match self.next.take() {
            Some(next) => next?,
            None => match self.feed.recv_timeout(wait) {
                Ok(event) => next_of(event)?,
                Err(RecvTimeoutError::Timeout) => return Ok(Next::Nothing),
                Err(RecvTimeoutError::Disconnected) => return Err(SourceFailure::ReaderGone),
            },
        };
        match &next {
            Next::Batch(turn, _) if turn.input.epoch != self.epoch || turn.input.is_empty() => {
                return Ok(Next::Nothing);
            }
            Next::Notice(Notice::CannotReplay { gone }) => self.tell_of_loss(gone),
            _ => {}
        }
        Ok(next)
    }

    /// The batch in hand is read again with the rest: a partition of it may have moved meanwhile.
    fn rewind(&mut self, _: Option<(Turn, Option<Settling>)>, ranges: Ranges) -> Result<(), SourceFailure> {
        self.epoch += 1;
        let replay = Some(ranges).filter(|ranges| !ranges.is_empty());
        self.commands.send(Rewind { epoch: self.epoch, replay }).map_err(|_| SourceFailure::ReaderGone)
    }

    fn start(&mut self, places: &BTreeSet<Place>) {
        self.paused.mark_restored(places);
    }

    fn is_live(&self) -> bool {
        true
    }

    fn has_partitions(&self) -> bool {
        self.health.assigned.load(Ordering::Relaxed)
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
