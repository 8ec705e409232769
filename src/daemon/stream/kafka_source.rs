//! A topic as the source of a stream.

use super::source::{AssignmentNotice, BatchSource, SourceEvent, SourceFailure};
use crate::daemon::engine::{NextBatchSource, POLL_INTERVAL, QueuedBatch};
use crate::daemon::state::records::Flush;
use crate::telemetry::{InputLost, SourceConnected, SourceLost, Telemetry};
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use throng_core::stream::input_batch::{InputPartition, OffsetRanges};
use throng_kafka::connection::KafkaCluster;
use throng_kafka::health::ConsumerHealth;
use throng_kafka::offsets;
use throng_kafka::paused::PausedPartitions;
use throng_kafka::subscription::{ReaderEvent, RewindCommand};

/// Consumer group; its committed offsets are the progress.
pub struct SourceGroup<'a> {
    /// Cluster of its coordinator.
    pub cluster: &'a KafkaCluster,
    /// Name of the group.
    pub name: &'a str,
    /// Consumed topics, by number.
    pub topics: &'a [String],
}

const FINAL_OFFSET_TIMEOUT: Duration = Duration::from_secs(5);

/// Source that reads a topic.
pub struct KafkaSource<'a> {
    group: SourceGroup<'a>,
    feed: &'a Receiver<ReaderEvent>,
    commands: &'a Sender<RewindCommand>,
    paused: &'a PausedPartitions,
    health: &'a Arc<ConsumerHealth>,
    address: &'a str,
    telemetry: &'a Telemetry,
    stop: &'a AtomicBool,
    /// Batches of older epochs are void.
    epoch: u64,
    next: Option<Result<SourceEvent, SourceFailure>>,
    connected: bool,
}

fn source_event(event: ReaderEvent) -> Result<SourceEvent, SourceFailure> {
    match event {
        ReaderEvent::Batch(input) => Ok(SourceEvent::Batch(input.into(), None)),
        ReaderEvent::Notice(notice) => Ok(SourceEvent::Notice(notice)),
        ReaderEvent::Failed(failure) => Err(failure.into()),
    }
}

impl<'a> KafkaSource<'a> {
    /// Creates the source of `group` from its reader's channels.
    pub fn new(
        group: SourceGroup<'a>,
        feed: &'a Receiver<ReaderEvent>,
        (commands, paused): (&'a Sender<RewindCommand>, &'a PausedPartitions),
        health: &'a Arc<ConsumerHealth>,
        address: &'a str,
        telemetry: &'a Telemetry,
        stop: &'a AtomicBool,
    ) -> Self {
        Self { group, feed, commands, paused, health, address, telemetry, stop, epoch: 0, next: None, connected: false }
    }

    fn report_connection(&mut self) {
        let reachable = self.health.reachable.load(Ordering::Relaxed);
        match (self.connected, reachable) {
            (false, true) => SourceConnected.emit(self.telemetry),
            (true, false) => SourceLost { address: self.address }.emit(self.telemetry),
            _ => {}
        }
        self.connected = reachable;
    }

    fn report_lost_ranges(&self, gone: &OffsetRanges) {
        for (&(number, partition), &(from, to)) in gone {
            let topic = self.group.topics.get(usize::from(number)).map_or("", String::as_str);
            InputLost { topic, partition, from, to }.emit();
        }
    }
}

impl NextBatchSource for KafkaSource<'_> {
    fn look(&mut self, over: &AtomicBool) -> Option<&mut QueuedBatch> {
        while self.next.is_none() {
            match self.feed.recv_timeout(POLL_INTERVAL) {
                Ok(event) => self.next = Some(source_event(event)),
                Err(RecvTimeoutError::Timeout) if !over.load(Ordering::Acquire) => {}
                Err(_) => return None,
            }
        }
        match &mut self.next {
            Some(Ok(SourceEvent::Batch(turn, _))) if turn.input.epoch == self.epoch => Some(turn),
            _ => None,
        }
    }
}

impl BatchSource for KafkaSource<'_> {
    fn next_event(&mut self, wait: Duration) -> Result<SourceEvent, SourceFailure> {
        self.report_connection();
        if self.stop.load(Ordering::Acquire) {
            return Ok(SourceEvent::End(Flush::Shutdown));
        }
        let next = match self.next.take() {
            Some(next) => next?,
            None => match self.feed.recv_timeout(wait) {
                Ok(event) => source_event(event)?,
                Err(RecvTimeoutError::Timeout) => return Ok(SourceEvent::TimedOut),
                Err(RecvTimeoutError::Disconnected) => return Err(SourceFailure::ReaderThreadEnded),
            },
        };
        match &next {
            SourceEvent::Batch(turn, _) if turn.input.epoch != self.epoch || turn.input.is_empty() => {
                return Ok(SourceEvent::TimedOut);
            }
            SourceEvent::Notice(AssignmentNotice::CannotReplay { gone }) => self.report_lost_ranges(gone),
            _ => {}
        }
        Ok(next)
    }

    /// One of the batch's partitions may have been revoked.
    fn rewind(&mut self, _: Option<(QueuedBatch, Option<Flush>)>, ranges: OffsetRanges) -> Result<(), SourceFailure> {
        self.epoch += 1;
        let replay = Some(ranges).filter(|ranges| !ranges.is_empty());
        self.commands.send(RewindCommand { epoch: self.epoch, replay }).map_err(|_| SourceFailure::ReaderThreadEnded)
    }

    fn start_partitions(&mut self, places: &BTreeSet<InputPartition>) {
        self.paused.mark_restored(places);
    }

    fn is_live(&self) -> bool {
        true
    }

    fn has_partitions(&self) -> bool {
        self.health.assigned.load(Ordering::Relaxed)
    }

    fn is_passed_by_others(&self, ranges: &OffsetRanges) -> bool {
        let SourceGroup { cluster, name, topics } = self.group;
        let topic = |number: u16| topics.get(usize::from(number)).map_or("", String::as_str);
        let places: Vec<(&str, i32)> = ranges.keys().map(|(number, partition)| (topic(*number), *partition)).collect();
        // If the query fails, the next start determines it.
        let committed = offsets::committed(cluster, name, &places, FINAL_OFFSET_TIMEOUT).unwrap_or_default();
        committed.iter().zip(ranges.values()).any(|(offset, range)| offset.is_some_and(|offset| offset > range.0))
    }
}
