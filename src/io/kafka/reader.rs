//! The reader: polls the consumer on a thread of its own, decodes, closes batches and hands them over one at a time.
//!
//! It never holds more than one batch being filled and one waiting; while that one waits the partitions are paused and
//! the consumer is polled all the same, so that rebalances are served.

use super::changelog::is_of_group;
use super::connection::{Cluster, KafkaFailure};
use super::failure::is_final;
use super::feed::{Feed, FeedConsumer, Notice, Rewind};
use crate::faults;
use crate::io::input::{Closed, Limits, Ranges};
use crate::io::message::{self, Messages, Undecoded};
use crate::io::subject_share::SubjectShare;
use crate::release::sink::Rejected;
use crate::telemetry::RejectionReason;
use crossbeam_channel::{Receiver, Sender, TrySendError};
use filling::Filling;
use followed::{Content, Followed, Step};
use rdkafka::consumer::Consumer;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{BorrowedMessage, Headers, Message};
use rewind::{Replay, Replayed, Seeker};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use throng_core::values::raw::Coordinate;
use throng_core::values::schema::SubjectAttribute;

mod filling;
mod followed;
mod rewind;

/// How long a closed batch waits before the partitions are paused.
const PATIENT: Duration = Duration::from_secs(2);

/// How long contributions to series wait for others.
const TOGETHER: Duration = Duration::from_secs(1);

/// How long a message waits that cannot be read now. Others wait with it: what is behind it in its partition must.
const LATER: Duration = Duration::from_millis(200);

/// How long a member of a group that the brokers keep apart waits for its first partition until it says so.
const ALONE: Duration = Duration::from_secs(20);

/// What became of a message.
#[derive(Clone, Copy, PartialEq)]
enum Taken {
    /// It is part of the batch, or none of its business.
    Now,
    /// It is to be read again.
    Later,
    /// It lies before what has been read of its partition.
    Back,
}

/// The reader itself; [`run`](Self::run) is its thread.
pub struct Reader {
    /// The consumer, which only this thread polls.
    pub consumer: Arc<FeedConsumer>,
    /// Where it consumes from, for messages.
    pub cluster: Cluster,
    /// From a message to a record.
    pub messages: Messages,
    /// Attributes of a record.
    pub width: usize,
    /// When a batch is closed.
    pub closing: Limits,
    /// The topic of contributions to series, whose messages are no records, and the group that they must be of.
    pub contributions: Option<(String, String)>,
    /// The attribute that names the subject.
    pub subject: Option<SubjectAttribute>,
    /// Where batches and notices go.
    pub feed: Sender<Feed>,
    /// What the daemon asks of the reader.
    pub commands: Receiver<Rewind>,
    /// Set when the reader is to end.
    pub stop: Arc<AtomicBool>,
}

/// Decoding has the whole time that the broker takes to commit, when the treatment waits; while that works it should not
/// have to share its cores. On Linux the niceness of a thread is its own.
#[cfg(target_os = "linux")]
fn yield_to_treatment() {
    if rustix::process::setpriority_process(None, 10).is_err() {
        tracing::debug!("the reader keeps the priority of the process");
    }
}

#[cfg(not(target_os = "linux"))]
fn yield_to_treatment() {}

impl Reader {
    /// Reads until told to stop, or until the client fails for good.
    pub fn run(self) {
        yield_to_treatment();
        // Whatever a message may bring about in a client or a codec, the daemon must hear of the end of its reader.
        let outcome = catch_unwind(AssertUnwindSafe(|| self.read()));
        if let Err(failure) = outcome.unwrap_or(Err(KafkaFailure::ReaderPanicked))
            && self.feed.send(Feed::Failed(failure)).is_err()
        {
            // Nobody listens any more: the daemon has ended first.
        }
    }

    fn seeker(&self) -> Seeker<'_> {
        Seeker { consumer: &self.consumer, cluster: &self.cluster, stop: &self.stop }
    }

    fn filling(&self, epoch: u64) -> Filling {
        Filling::new(self.width, epoch, SubjectShare::new(self.subject.clone(), &self.closing))
    }

    fn read(&self) -> Result<(), KafkaFailure> {
        let mut epoch = 0;
        let mut filling = self.filling(epoch);
        // Contributions are batches of their own: records need not wait for them, nor they for a crowd.
        let mut contributed = self.filling(epoch);
        let mut followed = Followed::default();
        let mut replay: Option<Replay> = None;
        let mut alone = self.cluster.has_consumer_protocol().then(Instant::now);
        while !self.stop.load(Ordering::Acquire) {
            let restored = self.consumer.context().paused.take_restored();
            restored.iter().for_each(|place| followed.forget(*place));
            self.seeker().start(&restored)?;
            while let Ok(Rewind { epoch: new, replay: ranges }) = self.commands.try_recv() {
                epoch = new;
                filling = self.filling(epoch);
                contributed = self.filling(epoch);
                replay = ranges.map(Replay::new);
                followed.clear();
                if !self.seeker().rewind(replay.as_ref().map(|replay| &replay.ranges))? {
                    replay = None;
                    if self.feed.send(Feed::Notice(Notice::CannotReplay { gone: Ranges::new() })).is_err() {
                        return Ok(());
                    }
                }
            }
            if alone.is_some() && self.consumer.context().health.assigned.load(Ordering::Relaxed) {
                alone = None;
            }
            // Brokers that do not have the protocol at all leave the client waiting without a word.
            if alone.take_if(|since| since.elapsed() > ALONE).is_some() {
                tracing::warn!(
                    "no partition has come: are the brokers of Kafka 4.0 or later (group.protocol = \"consumer\"), and has another instance all of them?"
                );
            }
            let before = Instant::now();
            let polled = self.consumer.poll(Duration::from_millis(if filling.is_empty() { 100 } else { 10 }));
            let now = Instant::now();
            filling.batch.read_seconds += (now - before).as_secs_f64();
            self.forget_gone([&mut filling, &mut contributed], &mut followed);
            match polled {
                Some(Ok(message)) => {
                    for _ in 0..faults::number("messages-again").map_or(1, |_| 2) {
                        let ranges = replay.as_ref().map(|replay| &replay.ranges);
                        let is_apart = ranges.is_none() && self.is_contribution(&message);
                        let into = if is_apart { &mut contributed } else { &mut filling };
                        match self.take(&message, ranges, into, &mut followed) {
                            Taken::Now => {}
                            Taken::Later => {
                                self.seeker().step_back(&message)?;
                                std::thread::sleep(LATER);
                            }
                            Taken::Back => return Err(self.went_back(&message)),
                        }
                    }
                }
                Some(Err(error)) => self.weigh(error)?,
                None => {}
            }
            if let Some(repeated) = &mut replay {
                match self.seeker().replayed(repeated, &filling) {
                    Replayed::Going => continue,
                    Replayed::Impossible(gone) => {
                        replay = None;
                        filling = self.filling(epoch);
                        contributed = self.filling(epoch);
                        followed.clear();
                        self.seeker().rewind(None)?;
                        if self.feed.send(Feed::Notice(Notice::CannotReplay { gone })).is_err() {
                            return Ok(());
                        }
                        continue;
                    }
                    Replayed::Complete => {
                        filling.batch.closed = Closed::Replay;
                        let done = std::mem::replace(&mut filling, self.filling(epoch));
                        self.seeker().resume_after(&repeated.ranges)?;
                        replay = None;
                        self.hand_over(done, &mut contributed, &mut followed)?;
                        continue;
                    }
                }
            }
            if self.has_contributed(&contributed, now) {
                contributed.batch.closed = Closed::Time;
                let done = std::mem::replace(&mut contributed, self.filling(epoch));
                self.hand_over(done, &mut filling, &mut followed)?;
            }
            if let Some(closed) = self.closes(&filling, now) {
                filling.batch.closed = closed;
                let done = std::mem::replace(&mut filling, self.filling(epoch));
                self.hand_over(done, &mut contributed, &mut followed)?;
            }
        }
        Ok(())
    }

    /// Takes one message into the batch.
    fn take(
        &self,
        message: &BorrowedMessage<'_>,
        replay: Option<&Ranges>,
        filling: &mut Filling,
        followed: &mut Followed,
    ) -> Taken {
        let topics = &self.consumer.context().topics;
        let Some(topic) = topics.iter().position(|t| t == message.topic()) else { return Taken::Now };
        let topic = u16::try_from(topic).expect("few topics");
        let coordinate = Coordinate { topic, partition: message.partition(), offset: message.offset(), element: 0 };
        let place = (topic, message.partition());
        if self.consumer.context().paused.contains(place) {
            return Taken::Now;
        }
        if let Some(ranges) = replay {
            let Some(range) = ranges.get(&place) else { return Taken::Now };
            if coordinate.offset >= range.1 {
                filling.passed.insert(place);
            }
            if !(range.0..range.1).contains(&coordinate.offset) {
                return Taken::Now;
            }
        }
        let content = Content(message.timestamp().to_millis(), message.key(), message.payload());
        match followed.step(place, coordinate.offset, content) {
            Step::On => {}
            Step::Again => {
                let (partition, offset) = (message.partition(), message.offset());
                tracing::info!(partition, offset, "the client has handed out a message twice; it counts once");
                return Taken::Now;
            }
            Step::Back => return Taken::Back,
        }
        if let Some((_, group)) = self.contributions.as_ref().filter(|(name, _)| name == message.topic()) {
            if filling.is_empty() {
                filling.batch.opened = Instant::now();
            }
            filling.batch.consume(coordinate);
            followed.take(place, coordinate.offset, content);
            if let Some(sealed) = message.payload().filter(|_| message.key().is_some_and(|key| is_of_group(key, group)))
            {
                filling.batch.contributions.push((place, sealed.to_vec()));
            }
            return Taken::Now;
        }
        // Timing every record would cost more than it tells: one in 64 stands for the others.
        let mark = filling.batch.raw.mark();
        let timed = (coordinate.offset % 64 == 0).then(Instant::now);
        let decoded = message.payload().map(|value| self.decode(message, value, coordinate, filling));
        if decoded == Some(Err(Undecoded::Wait)) {
            return Taken::Later;
        }
        if filling.is_empty() {
            filling.batch.opened = Instant::now();
        }
        let batch = &mut filling.batch;
        batch.consume(coordinate);
        followed.take(place, coordinate.offset, content);
        let appended = message.timestamp().to_millis();
        batch.oldest_ms = batch.oldest_ms.into_iter().chain(appended).min();
        let Some(decoded) = decoded else {
            *batch.tombstones.entry(place).or_default() += 1;
            return Taken::Now;
        };
        let refused = batch.raw.take_refused().into_iter();
        batch.rejected.extend(refused.map(|(coordinate, reason)| Rejected { coordinate, reason, attribute: None }));
        let bytes = (message.key_len() + message.payload_len()) as u64;
        batch.bytes += bytes;
        match decoded {
            Err(Undecoded::Rejected { reason, attribute }) => {
                batch.rejected.push(Rejected { coordinate, reason, attribute });
            }
            _ => filling.share.admit(batch, mark, place, bytes),
        }
        if let Some(start) = timed {
            batch.decode_seconds += start.elapsed().as_secs_f64() * 64.0;
        }
        Taken::Now
    }

    fn decode(
        &self,
        message: &BorrowedMessage<'_>,
        value: &[u8],
        coordinate: Coordinate,
        filling: &mut Filling,
    ) -> Result<(), Undecoded> {
        let headers: Vec<(&str, Option<&[u8]>)> = match message.headers() {
            // The client's reading of a name that is no text is a panic.
            Some(headers) if self.messages.wants_headers() => {
                let named = || headers.iter().map(|h| (h.key, h.value)).collect();
                catch_unwind(AssertUnwindSafe(named)).map_err(|_| RejectionReason::NotUtf8)?
            }
            _ => Vec::new(),
        };
        let read = message::Message {
            topic: message.topic(),
            key: message.key(),
            value,
            headers: &headers,
            timestamp_ms: message.timestamp().to_millis(),
        };
        self.messages.decode(&read, coordinate, &mut filling.batch.raw)
    }

    /// An error that the client cannot recover from ends the reader; the others are noted.
    fn weigh(&self, error: KafkaError) -> Result<(), KafkaFailure> {
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
        // Everything else the client retries by itself, with back-off.
        self.consumer.context().health.note_error();
        Ok(())
    }

    /// The end, where a partition begins again without having been sought.
    fn went_back(&self, message: &BorrowedMessage<'_>) -> KafkaFailure {
        let (brokers, topic) = (self.cluster.brokers(), message.topic().to_owned());
        KafkaFailure::WentBack { brokers, topic, partition: message.partition(), offset: message.offset() }
    }

    fn forget_gone(&self, mut fillings: [&mut Filling; 2], followed: &mut Followed) {
        let gone = self.consumer.context().take_gone();
        for place in gone {
            fillings.iter_mut().for_each(|filling| filling.forget(place));
            followed.forget(place);
        }
    }

    fn is_contribution(&self, message: &BorrowedMessage<'_>) -> bool {
        self.contributions.as_ref().is_some_and(|(topic, _)| topic == message.topic())
    }

    /// Whether contributions have waited for others long enough, or fill a batch.
    fn has_contributed(&self, Filling { batch, .. }: &Filling, now: Instant) -> bool {
        let is_full = || batch.contribution_bytes() >= self.closing.max_bytes;
        !batch.is_empty() && (now.saturating_duration_since(batch.opened) >= TOGETHER || is_full())
    }

    fn closes(&self, filling: &Filling, now: Instant) -> Option<Closed> {
        let Filling { batch, share, .. } = filling;
        if batch.records() == 0 {
            return None;
        }
        let limits = self.closing;
        if share.is_full(batch, &limits) {
            return Some(Closed::Full);
        }
        let age = now.saturating_duration_since(batch.opened);
        if age >= limits.max_age {
            return Some(Closed::Settle);
        }
        (age >= limits.max_wait && share.is_enough(batch)).then_some(Closed::Time)
    }

    /// Hands a closed batch over. While the daemon stays busy the partitions are paused and rebalances still served; not at
    /// once, since a pause throws away what the client has fetched ahead. `other` is what is being read beside it.
    fn hand_over(&self, filling: Filling, other: &mut Filling, followed: &mut Followed) -> Result<(), KafkaFailure> {
        let mut waiting = Feed::Batch(Box::new(filling.batch));
        let mut paused = false;
        let since = Instant::now();
        loop {
            match self.feed.try_send(waiting) {
                Ok(()) | Err(TrySendError::Disconnected(_)) => break,
                Err(TrySendError::Full(back)) => waiting = back,
            }
            if self.stop.load(Ordering::Acquire) || !self.commands.is_empty() {
                // The daemon ends, or rewinds: this batch is void either way.
                break;
            }
            if since.elapsed() < PATIENT {
                std::thread::sleep(Duration::from_millis(1));
                continue;
            }
            if !paused || self.consumer.context().take_changed() {
                paused = self.pause();
            }
            if let Some(Ok(message)) = self.consumer.poll(Duration::from_millis(5)) {
                self.seeker().step_back(&message)?;
            }
            let gone = self.consumer.context().take_gone();
            for place in &gone {
                followed.forget(*place);
                other.forget(*place);
            }
            if let Feed::Batch(batch) = &mut waiting {
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
