//! Reader thread: polls, decodes and closes batches; pauses the partitions while a closed batch waits.

use super::changelog::is_of_group;
use super::connection::{KafkaCluster, KafkaFailure};
use super::failure::is_final;
use super::subscription::{AssignmentNotice, ReaderEvent, RewindCommand, SubscribedConsumer};
use crossbeam_channel::{Receiver, Sender, TrySendError};
use open_batch::OpenBatch;
use partition_positions::{MessageContent, PartitionPositions, PositionCheck};
use rdkafka::consumer::Consumer;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{BorrowedMessage, Headers, Message};
use rewind::{BatchReplay, OffsetSeeker, ReplayProgress};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use throng_core::faults;
use throng_core::stream::input_batch::{BatchLimits, CloseReason, OffsetRanges};
use throng_core::stream::release_sink::RejectedRecord;
use throng_core::stream::subject_share::SubjectShare;
use throng_core::values::raw_batch::RecordPosition;
use throng_core::values::rejection::RejectionReason;
use throng_core::values::row_filter::RowFilter;
use throng_core::values::schema::SubjectAttribute;
use throng_formats::message::{self, DecodeFailure, MessageDecoder};

mod open_batch;
mod partition_positions;
mod rewind;

const PAUSE_AFTER: Duration = Duration::from_secs(2);

const CONTRIBUTION_MAX_AGE: Duration = Duration::from_secs(1);

/// Other partitions wait as well.
const REREAD_DELAY: Duration = Duration::from_millis(200);

/// Time without a partition until a warning (KIP-848).
const ASSIGNMENT_TIMEOUT: Duration = Duration::from_secs(20);

#[derive(Clone, Copy, PartialEq)]
enum FetchOutcome {
    AddedToBatch,
    RereadLater,
    WentBackwards,
}

/// Reader of the source topics; [`run`](Self::run) is its thread.
pub struct SourceTopicReader {
    /// Consumer, polled only by this thread.
    pub consumer: Arc<SubscribedConsumer>,
    /// Cluster, for errors.
    pub cluster: KafkaCluster,
    /// Decoders of messages and filters of their records, by topic.
    pub messages: Vec<(Arc<MessageDecoder>, RowFilter)>,
    /// Number of attributes per record.
    pub width: usize,
    /// Limits of a batch.
    pub closing: BatchLimits,
    /// Topic and group of contributions to series.
    pub contributions: Option<(String, String)>,
    /// Attribute that identifies the subject.
    pub subject: Option<SubjectAttribute>,
    /// Channel of batches and notices.
    pub feed: Sender<ReaderEvent>,
    /// Channel of commands.
    pub commands: Receiver<RewindCommand>,
    /// Set when the reader must end.
    pub stop: Arc<AtomicBool>,
}

/// Decoding must not compete with the treatment.
#[cfg(target_os = "linux")]
fn yield_to_treatment() {
    if rustix::process::setpriority_process(None, 10).is_err() {
        tracing::debug!("cannot lower the priority of the reader thread");
    }
}

#[cfg(not(target_os = "linux"))]
fn yield_to_treatment() {}

impl SourceTopicReader {
    /// Reads until stopped, or until the client fails permanently.
    pub fn run(self) {
        yield_to_treatment();
        // The daemon must receive the end, even after a panic of the client or a codec.
        let outcome = catch_unwind(AssertUnwindSafe(|| self.read()));
        if let Err(failure) = outcome.unwrap_or(Err(KafkaFailure::ReaderPanicked))
            && self.feed.send(ReaderEvent::Failed(failure)).is_err()
        {
            // The daemon has ended first.
        }
    }

    fn seeker(&self) -> OffsetSeeker<'_> {
        OffsetSeeker { consumer: &self.consumer, cluster: &self.cluster, stop: &self.stop }
    }

    fn filling(&self, epoch: u64) -> OpenBatch {
        OpenBatch::new(self.width, epoch, SubjectShare::new(self.subject.clone(), &self.closing))
    }

    fn read(&self) -> Result<(), KafkaFailure> {
        let mut epoch = 0;
        let mut filling = self.filling(epoch);
        // Separate batches: records do not wait for contributions, which need not wait for enough subjects.
        let mut contributed = self.filling(epoch);
        let mut followed = PartitionPositions::default();
        let mut replay: Option<BatchReplay> = None;
        let mut alone = self.cluster.has_consumer_protocol().then(Instant::now);
        while !self.stop.load(Ordering::Acquire) {
            let restored = self.consumer.context().paused.take_restored();
            restored.iter().for_each(|place| followed.forget(*place));
            self.seeker().start(&restored)?;
            while let Ok(RewindCommand { epoch: new, replay: ranges }) = self.commands.try_recv() {
                epoch = new;
                filling = self.filling(epoch);
                contributed = self.filling(epoch);
                replay = ranges.map(BatchReplay::new);
                followed.clear();
                if !self.seeker().rewind(replay.as_ref().map(|replay| &replay.ranges))? {
                    replay = None;
                    let notice = AssignmentNotice::CannotReplay { gone: OffsetRanges::new() };
                    if self.feed.send(ReaderEvent::Notice(notice)).is_err() {
                        return Ok(());
                    }
                }
            }
            self.warn_without_partitions(&mut alone);
            let before = Instant::now();
            let polled = self.consumer.poll(Duration::from_millis(if filling.is_empty() { 100 } else { 10 }));
            let now = Instant::now();
            filling.batch.read_seconds += (now - before).as_secs_f64();
            self.forget_revoked([&mut filling, &mut contributed], &mut followed);
            match polled {
                Some(Ok(message)) => {
                    for _ in 0..faults::number("messages-again").map_or(1, |_| 2) {
                        let ranges = replay.as_ref().map(|replay| &replay.ranges);
                        let is_apart = ranges.is_none() && self.is_contribution(&message);
                        let into = if is_apart { &mut contributed } else { &mut filling };
                        self.add_message(&message, ranges, into, &mut followed)?;
                    }
                }
                Some(Err(error)) => self.handle_client_error(error)?,
                None => {}
            }
            if let Some(repeated) = &mut replay {
                match self.seeker().check_replay(repeated, &filling) {
                    ReplayProgress::ReplayPending => continue,
                    ReplayProgress::Impossible(gone) => {
                        replay = None;
                        filling = self.filling(epoch);
                        contributed = self.filling(epoch);
                        followed.clear();
                        self.seeker().rewind(None)?;
                        if self.feed.send(ReaderEvent::Notice(AssignmentNotice::CannotReplay { gone })).is_err() {
                            return Ok(());
                        }
                        continue;
                    }
                    ReplayProgress::Complete => {
                        filling.batch.closed = CloseReason::Replay;
                        let done = std::mem::replace(&mut filling, self.filling(epoch));
                        self.seeker().resume_after(&repeated.ranges)?;
                        replay = None;
                        self.send_batch(done, &mut contributed, &mut followed)?;
                        continue;
                    }
                }
            }
            if self.is_contribution_batch_due(&contributed, now) {
                contributed.batch.closed = CloseReason::Time;
                let done = std::mem::replace(&mut contributed, self.filling(epoch));
                self.send_batch(done, &mut filling, &mut followed)?;
            }
            if let Some(closed) = self.close_reason(&filling, now) {
                filling.batch.closed = closed;
                let done = std::mem::replace(&mut filling, self.filling(epoch));
                self.send_batch(done, &mut contributed, &mut followed)?;
            }
        }
        Ok(())
    }

    /// Warns once if no partition is assigned: without the consumer protocol, brokers let the client wait without an
    /// error.
    fn warn_without_partitions(&self, alone: &mut Option<Instant>) {
        if alone.is_some() && self.consumer.context().health.assigned.load(Ordering::Relaxed) {
            *alone = None;
        }
        if alone.take_if(|since| since.elapsed() > ASSIGNMENT_TIMEOUT).is_some() {
            tracing::warn!(
                "no partition assigned: the brokers may be older than Kafka 4.0 (group.protocol = \"consumer\" requires it), or other instances have all partitions"
            );
        }
    }

    fn add_message(
        &self,
        message: &BorrowedMessage<'_>,
        replay: Option<&OffsetRanges>,
        filling: &mut OpenBatch,
        followed: &mut PartitionPositions,
    ) -> Result<(), KafkaFailure> {
        match self.consume_message(message, replay, filling, followed) {
            FetchOutcome::AddedToBatch => Ok(()),
            FetchOutcome::RereadLater => {
                self.seeker().seek_back_to(message)?;
                std::thread::sleep(REREAD_DELAY);
                Ok(())
            }
            FetchOutcome::WentBackwards => Err(self.offset_regression(message)),
        }
    }

    fn consume_message(
        &self,
        message: &BorrowedMessage<'_>,
        replay: Option<&OffsetRanges>,
        filling: &mut OpenBatch,
        followed: &mut PartitionPositions,
    ) -> FetchOutcome {
        let topics = &self.consumer.context().topics;
        let Some(topic) = topics.iter().position(|t| t == message.topic()) else { return FetchOutcome::AddedToBatch };
        let topic = u16::try_from(topic).expect("few topics");
        let coordinate = RecordPosition { topic, partition: message.partition(), offset: message.offset(), element: 0 };
        let place = (topic, message.partition());
        if self.consumer.context().paused.contains(place) {
            return FetchOutcome::AddedToBatch;
        }
        if let Some(ranges) = replay {
            let Some(range) = ranges.get(&place) else { return FetchOutcome::AddedToBatch };
            if coordinate.offset >= range.1 {
                filling.passed.insert(place);
            }
            if !(range.0..range.1).contains(&coordinate.offset) {
                return FetchOutcome::AddedToBatch;
            }
        }
        let content = MessageContent(message.timestamp().to_millis(), message.key(), message.payload());
        match followed.compare_position(place, coordinate.offset, content) {
            PositionCheck::NewMessage => {}
            PositionCheck::Redelivered => {
                let (partition, offset) = (message.partition(), message.offset());
                tracing::info!(partition, offset, "the client delivered a message twice: counting it once");
                return FetchOutcome::AddedToBatch;
            }
            PositionCheck::Regressed => return FetchOutcome::WentBackwards,
        }
        if let Some((_, group)) = self.contributions.as_ref().filter(|(name, _)| name == message.topic()) {
            if filling.is_empty() {
                filling.batch.opened = Instant::now();
            }
            filling.batch.consume(coordinate);
            followed.advance_position(place, coordinate.offset, content);
            if let Some(sealed) = message.payload().filter(|_| message.key().is_some_and(|key| is_of_group(key, group)))
            {
                filling.batch.contributions.push((place, sealed.to_vec()));
            }
            return FetchOutcome::AddedToBatch;
        }
        // Timing is expensive: one of 64 records is timed.
        let mark = filling.batch.raw.mark();
        let timed = (coordinate.offset % 64 == 0).then(Instant::now);
        let decoded = message.payload().map(|value| self.decode(message, value, coordinate, filling));
        if decoded == Some(Err(DecodeFailure::SchemaPending)) {
            return FetchOutcome::RereadLater;
        }
        if filling.is_empty() {
            filling.batch.opened = Instant::now();
        }
        let batch = &mut filling.batch;
        batch.consume(coordinate);
        followed.advance_position(place, coordinate.offset, content);
        let appended = message.timestamp().to_millis();
        batch.oldest_ms = batch.oldest_ms.into_iter().chain(appended).min();
        let Some(decoded) = decoded else {
            batch.count_tombstones(place, 1);
            return FetchOutcome::AddedToBatch;
        };
        let refused = batch.raw.take_refused().into_iter();
        batch.rejected.extend(refused.map(|(coordinate, reason)| RejectedRecord {
            coordinate,
            reason,
            attribute: None,
        }));
        let bytes = (message.key_len() + message.payload_len()) as u64;
        batch.bytes += bytes;
        match decoded {
            Err(DecodeFailure::Rejected { reason, attribute }) => {
                batch.rejected.push(RejectedRecord { coordinate, reason, attribute });
            }
            _ => {
                let (_, filter) = &self.messages[usize::from(place.0)];
                let removed = filter.remove_rows(&mut batch.raw, mark, bytes);
                batch.count_unselected(place, removed.rows);
                filling.share.admit(batch, mark, place, bytes - removed.bytes);
            }
        }
        if let Some(start) = timed {
            batch.decode_seconds += start.elapsed().as_secs_f64() * 64.0;
        }
        FetchOutcome::AddedToBatch
    }

    fn decode(
        &self,
        message: &BorrowedMessage<'_>,
        value: &[u8],
        coordinate: RecordPosition,
        filling: &mut OpenBatch,
    ) -> Result<(), DecodeFailure> {
        let (messages, _) = &self.messages[usize::from(coordinate.topic)];
        let headers: Vec<(&str, Option<&[u8]>)> = match message.headers() {
            // rdkafka panics on a header name that is not UTF-8.
            Some(headers) if messages.wants_headers() => {
                let named = || headers.iter().map(|h| (h.key, h.value)).collect();
                catch_unwind(AssertUnwindSafe(named)).map_err(|_| RejectionReason::NotUtf8)?
            }
            _ => Vec::new(),
        };
        let read = message::TopicMessage {
            topic: message.topic(),
            key: message.key(),
            value,
            headers: &headers,
            timestamp_ms: message.timestamp().to_millis(),
        };
        messages.decode(&read, coordinate, &mut filling.batch.raw)
    }

    fn handle_client_error(&self, error: KafkaError) -> Result<(), KafkaFailure> {
        if is_final(&error) {
            let ended = self
                .consumer
                .client()
                .fatal_error()
                .and_then(|(code, _)| KafkaFailure::of_member(code, &self.cluster.brokers()));
            if let Some(failure) = ended {
                return Err(failure);
            }
            let topics = &self.consumer.context().topics;
            let right = match error.rdkafka_error_code() {
                Some(RDKafkaErrorCode::GroupAuthorizationFailed) => {
                    "read as the group of source.group (Read)".to_owned()
                }
                _ => format!("read topic {} (Read)", topics.join(", ")),
            };
            return Err(self.cluster.failure_of("the consumer failed", right, error));
        }
        self.consumer.context().health.note_error();
        Ok(())
    }

    fn offset_regression(&self, message: &BorrowedMessage<'_>) -> KafkaFailure {
        let (brokers, topic) = (self.cluster.brokers(), message.topic().to_owned());
        KafkaFailure::WentBack { brokers, topic, partition: message.partition(), offset: message.offset() }
    }

    fn forget_revoked(&self, mut fillings: [&mut OpenBatch; 2], followed: &mut PartitionPositions) {
        let gone = self.consumer.context().take_revoked();
        for place in gone {
            fillings.iter_mut().for_each(|filling| filling.forget(place));
            followed.forget(place);
        }
    }

    fn is_contribution(&self, message: &BorrowedMessage<'_>) -> bool {
        self.contributions.as_ref().is_some_and(|(topic, _)| topic == message.topic())
    }

    fn is_contribution_batch_due(&self, OpenBatch { batch, .. }: &OpenBatch, now: Instant) -> bool {
        let is_full = || batch.contribution_bytes() >= self.closing.max_bytes;
        !batch.is_empty() && (now.saturating_duration_since(batch.opened) >= CONTRIBUTION_MAX_AGE || is_full())
    }

    fn close_reason(&self, filling: &OpenBatch, now: Instant) -> Option<CloseReason> {
        let OpenBatch { batch, share, .. } = filling;
        if batch.records() == 0 {
            return None;
        }
        let limits = self.closing;
        if share.is_full(batch, &limits) {
            return Some(CloseReason::Full);
        }
        let age = now.saturating_duration_since(batch.opened);
        if age >= limits.max_age {
            return Some(CloseReason::FinalFlush);
        }
        (age >= limits.max_wait && share.is_enough(batch)).then_some(CloseReason::Time)
    }

    /// The pause is delayed, because it discards prefetched messages.
    fn send_batch(
        &self,
        filling: OpenBatch,
        other: &mut OpenBatch,
        followed: &mut PartitionPositions,
    ) -> Result<(), KafkaFailure> {
        let mut waiting = ReaderEvent::Batch(Box::new(filling.batch));
        let mut paused = false;
        let since = Instant::now();
        loop {
            match self.feed.try_send(waiting) {
                Ok(()) | Err(TrySendError::Disconnected(_)) => break,
                Err(TrySendError::Full(back)) => waiting = back,
            }
            if self.stop.load(Ordering::Acquire) || !self.commands.is_empty() {
                // The daemon ends or rewinds: the batch is void.
                break;
            }
            if since.elapsed() < PAUSE_AFTER {
                std::thread::sleep(Duration::from_millis(1));
                continue;
            }
            if !paused || self.consumer.context().take_changed() {
                paused = self.pause();
            }
            if let Some(Ok(message)) = self.consumer.poll(Duration::from_millis(5)) {
                self.seeker().seek_back_to(&message)?;
            }
            let gone = self.consumer.context().take_revoked();
            for place in &gone {
                followed.forget(*place);
                other.forget(*place);
            }
            if let ReaderEvent::Batch(batch) = &mut waiting {
                for place in gone {
                    batch.forget_partition(place);
                }
            }
        }
        if paused {
            self.resume();
        }
        Ok(())
    }

    fn pause(&self) -> bool {
        self.consumer.assignment().and_then(|list| self.consumer.pause(&list)).is_ok()
    }

    fn resume(&self) {
        let resumed = self.consumer.assignment().map(|list| self.consumer.context().restored_of(&list));
        if resumed.and_then(|list| self.consumer.resume(&list)).is_err() {
            self.consumer.context().health.note_error();
        }
    }
}
