//! The reader: polls the consumer on a thread of its own, decodes, closes batches and hands them over one at a time.
//!
//! It never holds more than one batch being filled and one waiting; while that one waits the partitions are paused and
//! the consumer is polled all the same, so that rebalances are served. Rebalance callbacks run inside `poll` on this
//! thread: a revocation is passed on and acknowledged by the daemon before the partitions are let go.

use super::connection::{Cluster, KafkaFailure};
use super::health::Health;
use crate::io::codec::JsonCodec;
use crate::io::input::{Closed, InputBatch};
use crate::records::raw::{Coordinate, Token};
use crate::release::sink::Rejected;
use crossbeam_channel::{Receiver, Sender, TrySendError};
use rdkafka::client::ClientContext;
use rdkafka::consumer::{BaseConsumer, Consumer, ConsumerContext, Rebalance};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{BorrowedMessage, Message};
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};
use rdkafka::{ClientConfig, Statistics};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// A partition by the index of its topic.
pub type Place = (u16, i32);

/// What the reader tells the daemon.
pub enum Feed {
    Batch(Box<InputBatch>),
    /// Partitions are being taken away: finish or abort, settle what they hold, then acknowledge.
    Revoked {
        places: Vec<Place>,
        acknowledge: Sender<()>,
    },
    /// Partitions are gone already: abort, then acknowledge.
    Lost {
        places: Vec<Place>,
        acknowledge: Sender<()>,
    },
    Assigned {
        places: Vec<Place>,
    },
    /// The batch that was to be repeated cannot be: one of its partitions is not ours any more, or has moved on.
    CannotReplay,
    Failed(KafkaFailure),
}

/// What the daemon tells the reader.
pub enum Command {
    /// Go back to the committed offsets; batches of older epochs are void. With `replay`, the next batch consists of
    /// exactly these ranges.
    Rewind { epoch: u64, replay: Option<Ranges> },
}

/// `[from, to)` by partition.
pub type Ranges = BTreeMap<Place, (i64, i64)>;

/// When a batch is closed.
#[derive(Clone, Debug)]
pub struct Closing {
    pub max_records: u64,
    pub max_bytes: u64,
    pub max_wait: Duration,
    pub max_age: Duration,
    /// Distinct subjects below which `max_wait` does not close a batch.
    pub min_subjects: usize,
    /// The attribute that names the subject.
    pub subject: Option<usize>,
}

/// The consumer with our callbacks.
pub type FeedConsumer = BaseConsumer<Callbacks>;

/// Callbacks of the consumer.
pub struct Callbacks {
    topics: Vec<String>,
    feed: Sender<Feed>,
    health: Arc<Health>,
    /// Partitions taken away since the reader last looked.
    gone: Mutex<Vec<Place>>,
    /// Set when the assignment has changed.
    changed: AtomicBool,
    /// After this nobody listens: callbacks must not wait.
    closing: Arc<AtomicBool>,
}

/// How long the daemon may take to let a partition go before the group would throw us out anyway.
const ACKNOWLEDGE: Duration = Duration::from_secs(120);

/// How long a closed batch waits before the partitions are paused.
const PATIENT: Duration = Duration::from_secs(2);

impl Callbacks {
    fn places(&self, list: &TopicPartitionList) -> Vec<Place> {
        list.elements()
            .iter()
            .filter_map(|e| {
                let topic = self.topics.iter().position(|t| t == e.topic())?;
                Some((u16::try_from(topic).ok()?, e.partition()))
            })
            .collect()
    }

    fn let_go(&self, places: Vec<Place>, lost: bool) {
        if places.is_empty() {
            return;
        }
        if !self.closing.load(Ordering::Acquire) {
            let (acknowledge, acknowledged) = crossbeam_channel::bounded(1);
            let event = if lost {
                Feed::Lost { places: places.clone(), acknowledge }
            } else {
                Feed::Revoked { places: places.clone(), acknowledge }
            };
            // What a daemon that does not answer in time still has in flight must not be committed any more.
            if self.feed.send(event).is_ok() && acknowledged.recv_timeout(ACKNOWLEDGE).is_err() {
                self.health.abandon();
            }
        }
        self.gone.lock().expect("no panic while the list is held").extend(places);
    }
}

impl ClientContext for Callbacks {
    fn stats(&self, statistics: Statistics) {
        self.health.set_reachable(statistics.brokers.values().any(|b| b.nodeid >= 0 && b.state == "UP"));
        let mut lag = None;
        for partition in statistics.topics.values().flat_map(|t| t.partitions.values()) {
            if partition.consumer_lag >= 0 && partition.fetch_state == "active" {
                lag = Some(lag.unwrap_or(0) + partition.consumer_lag);
            }
        }
        if let Some(lag) = lag {
            self.health.set_lag(lag);
        }
    }

    fn error(&self, error: KafkaError, _reason: &str) {
        self.health.note_error();
        if error.rdkafka_error_code() == Some(RDKafkaErrorCode::AllBrokersDown) {
            self.health.set_reachable(false);
        }
    }

    fn log(&self, _level: rdkafka::config::RDKafkaLogLevel, _facility: &str, _message: &str) {
        // The client's own lines may quote keys, hosts and settings; what matters of them is in `Health`.
    }
}

impl ConsumerContext for Callbacks {
    fn pre_rebalance(&self, consumer: &BaseConsumer<Self>, rebalance: &Rebalance<'_>) {
        match rebalance {
            Rebalance::Revoke(list) => self.let_go(self.places(list), consumer.assignment_lost()),
            Rebalance::Assign(_) => {}
            Rebalance::Error(_) => self.health.note_error(),
        }
    }

    fn post_rebalance(&self, consumer: &BaseConsumer<Self>, rebalance: &Rebalance<'_>) {
        if self.closing.load(Ordering::Acquire) {
            // The client's group is ending with this callback: a question to it may never be answered.
            self.health.set_assigned(0);
            return;
        }
        let assigned = consumer.assignment().map_or(0, |a| a.count());
        self.health.set_assigned(assigned as u64);
        self.changed.store(true, Ordering::Release);
        if let Rebalance::Assign(list) = rebalance {
            // A partition that was paused when it went is still paused when it comes back.
            if consumer.resume(list).is_err() {
                self.health.note_error();
            }
            let places = self.places(list);
            if !places.is_empty() && self.feed.send(Feed::Assigned { places }).is_err() {
                self.health.note_error();
            }
        }
    }
}

/// Makes the consumer and subscribes it.
///
/// # Errors
/// When the client refuses the settings.
pub fn subscribe(
    cluster: &Cluster,
    group: &str,
    topics: &[String],
    feed: Sender<Feed>,
    health: Arc<Health>,
    closing: Arc<AtomicBool>,
) -> Result<Arc<FeedConsumer>, KafkaFailure> {
    let callbacks = Callbacks {
        topics: topics.to_vec(),
        feed,
        health,
        gone: Mutex::new(Vec::new()),
        changed: AtomicBool::new(false),
        closing,
    };
    let config: ClientConfig = cluster.consumer(group);
    let consumer: FeedConsumer =
        config.create_with_context(callbacks).map_err(|e| cluster.failure("cannot create the consumer", e))?;
    let names: Vec<&str> = topics.iter().map(String::as_str).collect();
    consumer.subscribe(&names).map_err(|e| cluster.failure("cannot subscribe", e))?;
    Ok(Arc::new(consumer))
}

/// The reader itself; [`run`](Self::run) is its thread.
pub struct Reader {
    pub consumer: Arc<FeedConsumer>,
    pub cluster: Cluster,
    pub codec: JsonCodec,
    pub width: usize,
    pub closing: Closing,
    pub feed: Sender<Feed>,
    pub commands: Receiver<Command>,
    pub stop: Arc<AtomicBool>,
}

/// What has been read and not handed over.
struct Filling {
    batch: InputBatch,
    /// Tombstones by partition, so that a lost partition takes its own along.
    tombstones: BTreeMap<Place, u64>,
    /// Partitions read past the range to be replayed: what is missing of it has been deleted meanwhile.
    passed: BTreeSet<Place>,
    /// When the subjects of the batch were last counted.
    counted: Instant,
}

impl Filling {
    fn new(width: usize, epoch: u64) -> Self {
        Self {
            batch: InputBatch::new(width, epoch),
            tombstones: BTreeMap::new(),
            passed: BTreeSet::new(),
            counted: Instant::now(),
        }
    }

    fn is_empty(&self) -> bool {
        self.batch.ranges.is_empty()
    }

    fn forget(&mut self, place: Place) {
        let tombstones = self.tombstones.remove(&place).unwrap_or(0);
        self.batch.forget_partition(place.0, place.1, tombstones);
    }
}

impl Reader {
    /// Reads until told to stop, or until the client fails for good.
    pub fn run(self) {
        if let Err(failure) = self.read() {
            if self.feed.send(Feed::Failed(failure)).is_err() {
                // Nobody listens any more: the daemon has ended first.
            }
        }
    }

    fn read(&self) -> Result<(), KafkaFailure> {
        let mut epoch = 0;
        let mut filling = Filling::new(self.width, epoch);
        let mut replay: Option<Ranges> = None;
        while !self.stop.load(Ordering::Acquire) {
            while let Ok(Command::Rewind { epoch: new, replay: ranges }) = self.commands.try_recv() {
                epoch = new;
                filling = Filling::new(self.width, epoch);
                replay = ranges;
                if !self.rewind(replay.as_ref())? {
                    replay = None;
                    if self.feed.send(Feed::CannotReplay).is_err() {
                        return Ok(());
                    }
                }
            }
            let before = Instant::now();
            let polled = self.consumer.poll(Duration::from_millis(if filling.is_empty() { 100 } else { 10 }));
            filling.batch.read_seconds += before.elapsed().as_secs_f64();
            self.forget_gone(&mut filling);
            match polled {
                Some(Ok(message)) => self.take(&message, replay.as_ref(), &mut filling),
                Some(Err(error)) => self.judge(error)?,
                None => {}
            }
            if let Some(ranges) = &replay {
                match self.replayed(ranges, &filling) {
                    Replayed::Going => continue,
                    Replayed::Impossible => {
                        replay = None;
                        filling = Filling::new(self.width, epoch);
                        self.rewind(None)?;
                        if self.feed.send(Feed::CannotReplay).is_err() {
                            return Ok(());
                        }
                        continue;
                    }
                    Replayed::Complete => {
                        filling.batch.closed = Closed::Replay;
                        let done = std::mem::replace(&mut filling, Filling::new(self.width, epoch));
                        self.resume_after(ranges)?;
                        replay = None;
                        self.hand_over(done)?;
                        continue;
                    }
                }
            }
            if let Some(closed) = self.closes(&mut filling) {
                filling.batch.closed = closed;
                let done = std::mem::replace(&mut filling, Filling::new(self.width, epoch));
                self.hand_over(done)?;
            }
        }
        Ok(())
    }

    /// Takes one message into the batch.
    fn take(&self, message: &BorrowedMessage<'_>, replay: Option<&Ranges>, filling: &mut Filling) {
        let topics = &self.consumer.context().topics;
        let Some(topic) = topics.iter().position(|t| t == message.topic()) else { return };
        let topic = u16::try_from(topic).expect("few topics");
        let coordinate = Coordinate { topic, partition: message.partition(), offset: message.offset() };
        let place = (topic, message.partition());
        if let Some(ranges) = replay {
            let Some(range) = ranges.get(&place) else { return };
            if coordinate.offset >= range.1 {
                filling.passed.insert(place);
            }
            if !(range.0..range.1).contains(&coordinate.offset) {
                return;
            }
        }
        if filling.is_empty() {
            filling.batch.opened = Instant::now();
        }
        let batch = &mut filling.batch;
        batch.consume(coordinate);
        let appended = message.timestamp().to_millis();
        batch.oldest_ms = batch.oldest_ms.into_iter().chain(appended).min();
        let Some(payload) = message.payload() else {
            batch.tombstones += 1;
            *filling.tombstones.entry(place).or_default() += 1;
            return;
        };
        batch.bytes += payload.len() as u64;
        // Timing every record would cost more than it tells: one in 64 stands for the others.
        let timed = (coordinate.offset % 64 == 0).then(Instant::now);
        if let Err(rejection) = self.codec.decode(payload, coordinate, &mut batch.raw) {
            batch.rejected.push(Rejected { coordinate, reason: rejection.reason(), attribute: None });
        }
        if let Some(start) = timed {
            batch.decode_seconds += start.elapsed().as_secs_f64() * 64.0;
        }
    }

    fn judge(&self, error: KafkaError) -> Result<(), KafkaFailure> {
        match error.rdkafka_error_code() {
            Some(
                RDKafkaErrorCode::Fatal
                | RDKafkaErrorCode::TopicAuthorizationFailed
                | RDKafkaErrorCode::GroupAuthorizationFailed
                | RDKafkaErrorCode::SaslAuthenticationFailed,
            ) => Err(self.cluster.failure("the consumer failed", error)),
            // Everything else the client retries by itself, with back-off.
            _ => {
                self.consumer.context().health.note_error();
                Ok(())
            }
        }
    }

    fn forget_gone(&self, filling: &mut Filling) {
        let gone = std::mem::take(&mut *self.consumer.context().gone.lock().expect("no panic while the list is held"));
        for place in gone {
            filling.forget(place);
        }
    }

    fn closes(&self, filling: &mut Filling) -> Option<Closed> {
        let batch = &filling.batch;
        let records = batch.records();
        if records == 0 {
            return None;
        }
        if records >= self.closing.max_records || batch.bytes >= self.closing.max_bytes {
            return Some(Closed::Full);
        }
        let age = batch.opened.elapsed();
        if age >= self.closing.max_age {
            return Some(Closed::Settle);
        }
        // Counting subjects reads the whole batch: not at every message of a stream of few people.
        if age < self.closing.max_wait || filling.counted.elapsed() < Duration::from_millis(20) {
            return None;
        }
        let enough = self.has_enough_subjects(batch);
        filling.counted = Instant::now();
        enough.then_some(Closed::Time)
    }

    /// Whether a batch that is not full has enough subjects to be worth closing.
    fn has_enough_subjects(&self, batch: &InputBatch) -> bool {
        let Some(subject) = self.closing.subject else { return batch.raw.rows() >= self.closing.min_subjects };
        let mut seen: HashSet<&str> = HashSet::new();
        for row in 0..batch.raw.rows() {
            if let Token::Text(s) | Token::Number(s) | Token::Untyped(s) = batch.raw.token(row, subject) {
                seen.insert(s);
                if seen.len() >= self.closing.min_subjects {
                    return true;
                }
            }
        }
        false
    }

    /// Hands a closed batch over. While the daemon stays busy the partitions are paused and rebalances still served; not at
    /// once, since a pause throws away what the client has fetched ahead.
    fn hand_over(&self, filling: Filling) -> Result<(), KafkaFailure> {
        let tombstones = filling.tombstones;
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
            if !paused || self.consumer.context().changed.swap(false, Ordering::AcqRel) {
                paused = self.pause();
            }
            if let Some(Ok(message)) = self.consumer.poll(Duration::from_millis(5)) {
                self.step_back(&message)?;
            }
            let gone =
                std::mem::take(&mut *self.consumer.context().gone.lock().expect("no panic while the list is held"));
            if let Feed::Batch(batch) = &mut waiting {
                for place in gone {
                    batch.forget_partition(place.0, place.1, tombstones.get(&place).copied().unwrap_or(0));
                }
            }
        }
        if paused {
            self.resume();
        }
        Ok(())
    }

    /// A message that slipped past the pause is read again later.
    fn step_back(&self, message: &BorrowedMessage<'_>) -> Result<(), KafkaFailure> {
        let sought = self.consumer.seek(
            message.topic(),
            message.partition(),
            Offset::Offset(message.offset()),
            Duration::from_secs(10),
        );
        let place = self.consumer.context().places_of(message.topic(), message.partition());
        let ours = self
            .consumer
            .assignment()
            .is_ok_and(|a| place.is_some_and(|p| self.consumer.context().places(&a).contains(&p)));
        match sought {
            // Whoever has the partition now reads the message.
            Err(e) if ours => Err(self.cluster.failure("cannot step back to a message", e)),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    fn pause(&self) -> bool {
        self.consumer.assignment().and_then(|list| self.consumer.pause(&list)).is_ok()
    }

    fn resume(&self) {
        if self.consumer.assignment().and_then(|list| self.consumer.resume(&list)).is_err() {
            self.consumer.context().health.note_error();
        }
    }

    /// Goes back to the committed offsets of everything assigned. False when these are not where the ranges to be
    /// replayed begin: the partition was somebody else's meanwhile.
    fn rewind(&self, replay: Option<&Ranges>) -> Result<bool, KafkaFailure> {
        let failed = |e| self.cluster.failure("cannot go back to the committed offsets", e);
        let assignment = self.consumer.assignment().map_err(failed)?;
        if assignment.count() == 0 {
            return Ok(true);
        }
        let committed = self.committed(&assignment)?;
        let mut target = TopicPartitionList::new();
        let mut where_it_began = true;
        for element in committed.elements() {
            let place = self.consumer.context().places_of(element.topic(), element.partition());
            let range = replay.and_then(|r| place.and_then(|p| r.get(&p)));
            let offset = match (element.offset(), range) {
                (Offset::Offset(n), range) => {
                    where_it_began &= range.is_none_or(|r| r.0 == n);
                    Offset::Offset(n)
                }
                // Nothing is committed yet: the first batch of all.
                (_, Some(range)) => Offset::Offset(range.0),
                (_, None) => Offset::Beginning,
            };
            target.add_partition_offset(element.topic(), element.partition(), offset).map_err(failed)?;
        }
        self.seek(target)?;
        Ok(where_it_began)
    }

    /// Seeks every partition of `target`, or fails: reading on from elsewhere would lose records.
    fn seek(&self, target: TopicPartitionList) -> Result<(), KafkaFailure> {
        let failed = |e| self.cluster.failure("cannot go back to where a batch began", e);
        let sought = self.consumer.seek_partitions(target, Duration::from_secs(30)).map_err(failed)?;
        sought.elements().iter().try_for_each(|element| element.error().map_err(failed))
    }

    fn committed(&self, assignment: &TopicPartitionList) -> Result<TopicPartitionList, KafkaFailure> {
        let mut attempts = 0;
        loop {
            match self.consumer.committed_offsets(assignment.clone(), Duration::from_secs(10)) {
                Ok(list) => return Ok(list),
                Err(_) if attempts < 30 && !self.stop.load(Ordering::Acquire) => attempts += 1,
                Err(e) => return Err(self.cluster.failure("cannot read the committed offsets", e)),
            }
        }
    }

    /// Whether the ranges to be replayed have been read.
    fn replayed(&self, ranges: &Ranges, filling: &Filling) -> Replayed {
        let Ok(assignment) = self.consumer.assignment() else { return Replayed::Going };
        if assignment.count() == 0 {
            return Replayed::Going;
        }
        let assigned: HashSet<Place> = self.consumer.context().places(&assignment).into_iter().collect();
        if ranges.keys().any(|place| !assigned.contains(place)) {
            return Replayed::Impossible;
        }
        if self.consumer.context().changed.swap(false, Ordering::AcqRel) {
            // The first look at this assignment: has anyone moved on past where the batch began?
            let Ok(committed) = self.committed(&assignment) else { return Replayed::Impossible };
            for element in committed.elements() {
                let place = self.consumer.context().places_of(element.topic(), element.partition());
                let Some(range) = place.and_then(|p| ranges.get(&p)) else { continue };
                if matches!(element.offset(), Offset::Offset(n) if n != range.0) {
                    return Replayed::Impossible;
                }
            }
        }
        let complete = ranges.iter().all(|(place, range)| {
            filling.batch.ranges.get(place).is_some_and(|read| read.1 >= range.1) || filling.passed.contains(place)
        });
        match complete {
            false => Replayed::Going,
            true if filling.is_empty() => Replayed::Impossible,
            true => Replayed::Complete,
        }
    }

    /// Continues behind the replayed ranges; whatever was read past them meanwhile is read again.
    fn resume_after(&self, ranges: &Ranges) -> Result<(), KafkaFailure> {
        let failed = |e| self.cluster.failure("cannot continue behind a repeated batch", e);
        let assignment = self.consumer.assignment().map_err(failed)?;
        let committed = self.committed(&assignment)?;
        let mut target = TopicPartitionList::new();
        for element in committed.elements() {
            let place = self.consumer.context().places_of(element.topic(), element.partition());
            let offset = match (place.and_then(|p| ranges.get(&p)), element.offset()) {
                (Some(range), _) => Offset::Offset(range.1),
                (None, Offset::Offset(n)) => Offset::Offset(n),
                (None, _) => Offset::Beginning,
            };
            target.add_partition_offset(element.topic(), element.partition(), offset).map_err(failed)?;
        }
        self.seek(target)
    }
}

impl Callbacks {
    fn places_of(&self, topic: &str, partition: i32) -> Option<Place> {
        let topic = self.topics.iter().position(|t| t == topic)?;
        Some((u16::try_from(topic).ok()?, partition))
    }
}

enum Replayed {
    Going,
    Complete,
    Impossible,
}
