//! Messages between reader and daemon, and rebalance callbacks, which run inside `poll`.

use super::connection::{KafkaCluster, KafkaFailure};
use super::health::ConsumerHealth;
use super::managed_client::{ManagedClient, member_id};
use super::paused::PausedPartitions;
use super::refusal_log::{RefusalLog, pass_log_line};
use crossbeam_channel::{Receiver, RecvTimeoutError, SendTimeoutError, Sender};
use rdkafka::Statistics;
use rdkafka::client::ClientContext;
use rdkafka::consumer::{BaseConsumer, Consumer, ConsumerContext, ConsumerGroupMetadata, Rebalance, RebalanceProtocol};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::topic_partition_list::TopicPartitionList;
use rdkafka::types::RDKafkaRespErr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use throng_core::stream::input_batch::{InputBatch, InputPartition, OffsetRanges};

/// Message from the reader to the daemon.
pub enum ReaderEvent {
    /// Closed batch.
    Batch(Box<InputBatch>),
    /// Change of the assignment, or an impossible replay.
    Notice(AssignmentNotice),
    /// Permanent failure of the client.
    Failed(KafkaFailure),
}

/// Change of the assignment, or an impossible replay.
pub enum AssignmentNotice {
    /// Partitions are being revoked. The daemon discards their state, waits for visible offsets, and acknowledges.
    Revoked {
        /// Revoked partitions.
        places: Vec<InputPartition>,
        /// True if another member may own them.
        is_lost: bool,
        /// Channel for the acknowledgement.
        acknowledge: Sender<()>,
    },
    /// Partitions were assigned; they start when restored ([`PausedPartitions`]).
    Assigned {
        /// Assigned partitions.
        places: Vec<InputPartition>,
    },
    /// A partition was revoked, passed by others, or has lost records.
    CannotReplay {
        /// Lost offset ranges.
        gone: OffsetRanges,
    },
}

/// Command to return to the committed offsets.
pub struct RewindCommand {
    /// Epoch of the following batches.
    pub epoch: u64,
    /// Offset ranges of a replay.
    pub replay: Option<OffsetRanges>,
}

/// Progress of a shutdown: daemon, reader, client.
#[derive(Debug, Default)]
pub struct ShutdownProgress {
    daemon_ended: AtomicBool,
    closing: AtomicBool,
    answered: AtomicBool,
}

impl ShutdownProgress {
    /// Records that the daemon has ended.
    pub fn mark_daemon_ended(&self) {
        self.daemon_ended.store(true, Ordering::Release);
    }

    /// Returns true once the daemon has ended.
    pub fn has_daemon_ended(&self) -> bool {
        self.daemon_ended.load(Ordering::Acquire)
    }

    /// Records that the reader has ended.
    pub fn mark_reader_ended(&self) {
        self.mark_daemon_ended();
        self.closing.store(true, Ordering::Release);
    }

    pub(super) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Acquire)
    }

    /// A closing client is answered once.
    pub(super) fn take_first_answer(&self) -> bool {
        !self.answered.swap(true, Ordering::AcqRel)
    }
}

/// Consumer with the callbacks of this module.
pub type SubscribedConsumer = ManagedClient<BaseConsumer<ConsumerCallbacks>>;

/// Rebalance, statistics and error callbacks.
pub struct ConsumerCallbacks {
    pub(super) topics: Vec<String>,
    reported_refusals: Arc<RefusalLog>,
    feed: Sender<ReaderEvent>,
    pub(super) health: Arc<ConsumerHealth>,
    revoked_places: Mutex<Vec<InputPartition>>,
    pub(super) paused: Arc<PausedPartitions>,
    changed: AtomicBool,
    member: Mutex<String>,
    ending: Arc<ShutdownProgress>,
}

const ACKNOWLEDGE_TIMEOUT: Duration = Duration::from_secs(120);

const LOCK_NOT_POISONED: &str = "no panic while it is held";

const END_CHECK_INTERVAL: Duration = Duration::from_millis(50);

impl ConsumerCallbacks {
    pub(super) fn places(&self, list: &TopicPartitionList) -> Vec<InputPartition> {
        list.elements().iter().filter_map(|e| self.place_of(e.topic(), e.partition())).collect()
    }

    pub(super) fn place_of(&self, topic: &str, partition: i32) -> Option<InputPartition> {
        let topic = self.topics.iter().position(|t| t == topic)?;
        Some((u16::try_from(topic).ok()?, partition))
    }

    pub(super) fn take_revoked(&self) -> Vec<InputPartition> {
        std::mem::take(&mut *self.revoked_places.lock().expect(LOCK_NOT_POISONED))
    }

    pub(super) fn restored_of(&self, list: &TopicPartitionList) -> TopicPartitionList {
        let mut restored = TopicPartitionList::new();
        for element in list.elements() {
            if self.place_of(element.topic(), element.partition()).is_none_or(|place| !self.paused.contains(place)) {
                restored.add_partition(element.topic(), element.partition());
            }
        }
        restored
    }

    fn pause_until_restored(&self, consumer: &BaseConsumer<Self>, places: &[InputPartition]) {
        let mut list = TopicPartitionList::new();
        for (topic, partition) in places {
            list.add_partition(&self.topics[usize::from(*topic)], *partition);
        }
        self.paused.add(places);
        // Messages delivered despite the pause are read again later.
        if consumer.pause(&list).is_err() {
            self.health.note_error();
        }
    }

    /// Partitions of another member id have no valid state.
    fn give_up_previous_member(&self, consumer: &BaseConsumer<Self>) -> Vec<InputPartition> {
        let id = member_id(consumer);
        if *self.member.lock().expect(LOCK_NOT_POISONED) == id {
            return Vec::new();
        }
        let kept = consumer.assignment().map(|assigned| self.places(&assigned)).unwrap_or_default();
        if !kept.is_empty() && !id.is_empty() {
            tracing::warn!(
                partitions = kept.len(),
                "the group removed this instance and it has rejoined: reading the state of its partitions again"
            );
        }
        self.give_up_partitions(kept.clone(), true);
        *self.member.lock().expect(LOCK_NOT_POISONED) = id;
        kept
    }

    pub(super) fn take_changed(&self) -> bool {
        self.changed.swap(false, Ordering::AcqRel)
    }

    /// False at the deadline or after the daemon's end.
    fn send_and_await(&self, notice: AssignmentNotice, acknowledged: &Receiver<()>) -> bool {
        let deadline = Instant::now() + ACKNOWLEDGE_TIMEOUT;
        let over = || self.ending.has_daemon_ended() || Instant::now() >= deadline;
        let mut event = ReaderEvent::Notice(notice);
        loop {
            match self.feed.send_timeout(event, END_CHECK_INTERVAL) {
                Ok(()) => break,
                Err(SendTimeoutError::Timeout(back)) if !over() => event = back,
                Err(_) => return false,
            }
        }
        loop {
            match acknowledged.recv_timeout(END_CHECK_INTERVAL) {
                Ok(()) => return true,
                Err(RecvTimeoutError::Timeout) if !over() => {}
                Err(_) => return false,
            }
        }
    }

    fn give_up_partitions(&self, places: Vec<InputPartition>, is_lost: bool) {
        if places.is_empty() {
            return;
        }
        if !self.ending.has_daemon_ended() {
            let (acknowledge, acknowledged) = crossbeam_channel::bounded(1);
            let notice = AssignmentNotice::Revoked { places: places.clone(), is_lost, acknowledge };
            // After a timeout, the batch in flight must not be committed.
            if !self.send_and_await(notice, &acknowledged) {
                self.health.abandoned.store(true, Ordering::Release);
            }
        }
        // Only after the acknowledgement: until then the daemon may restore them for the old assignment.
        self.paused.remove(&places);
        self.health.lags.revoke(&places);
        self.revoked_places.lock().expect(LOCK_NOT_POISONED).extend(places);
    }
}

impl ClientContext for ConsumerCallbacks {
    #[allow(clippy::disallowed_methods, reason = "each partition is updated on its own: the order has no effect")]
    fn stats(&self, statistics: Statistics) {
        let is_up = statistics.brokers.values().any(|b| b.nodeid >= 0 && b.state == "UP");
        self.health.reachable.store(is_up, Ordering::Relaxed);
        if is_up {
            self.reported_refusals.clear();
        }
        self.health.lags.update(statistics.topics.iter().flat_map(|(name, topic)| {
            topic
                .partitions
                .values()
                .filter_map(move |partition| Some((self.place_of(name, partition.partition)?, partition)))
        }));
    }

    fn error(&self, error: KafkaError, reason: &str) {
        self.health.note_error();
        self.reported_refusals.classify_error(&error, reason);
        if error.rdkafka_error_code() == Some(RDKafkaErrorCode::AllBrokersDown) {
            self.health.reachable.store(false, Ordering::Relaxed);
        }
    }

    fn log(&self, level: rdkafka::config::RDKafkaLogLevel, facility: &str, message: &str) {
        pass_log_line(level, facility, message);
    }
}

impl ConsumerContext for ConsumerCallbacks {
    /// Like the default callback, except during a close. The client then takes the first answer as the end of every
    /// assignment, and a later call would never return.
    fn rebalance(&self, consumer: &BaseConsumer<Self>, code: RDKafkaRespErr, list: &mut TopicPartitionList) {
        if self.ending.is_closing() {
            self.health.assigned.store(false, Ordering::Relaxed);
            self.health.lags.revoke_all();
            if self.ending.take_first_answer() && consumer.unassign().is_err() {
                self.health.note_error();
            }
            return;
        }
        let list: &TopicPartitionList = list;
        // The client rejoins only after this callback. Until then the member id may disappear but is not replaced.
        let left = self.give_up_previous_member(consumer);
        let rebalance = match code {
            RDKafkaRespErr::RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS => Rebalance::Assign(list),
            RDKafkaRespErr::RD_KAFKA_RESP_ERR__REVOKE_PARTITIONS => Rebalance::Revoke(list),
            other => Rebalance::Error(KafkaError::Rebalance(other.into())),
        };
        if let Rebalance::Error(_) = rebalance {
            self.health.note_error();
        }
        let gone: Vec<InputPartition> = match &rebalance {
            Rebalance::Revoke(list) => self.places(list),
            _ => Vec::new(),
        };
        self.give_up_partitions(
            gone.iter().filter(|place| !left.contains(place)).copied().collect(),
            consumer.assignment_lost(),
        );
        let by_step = matches!(consumer.rebalance_protocol(), RebalanceProtocol::Cooperative);
        let outcome = match (&rebalance, by_step) {
            (Rebalance::Assign(list), true) => consumer.incremental_assign(list),
            (Rebalance::Assign(list), false) => consumer.assign(list),
            (_, true) => consumer.incremental_unassign(list),
            (_, false) => consumer.unassign(),
        };
        if outcome.is_err() {
            self.health.note_error();
        }
        if self.ending.has_daemon_ended() {
            self.health.assigned.store(false, Ordering::Relaxed);
            return;
        }
        let assigned = consumer.assignment().map_or(0, |a| a.count());
        self.health.assigned.store(assigned > 0, Ordering::Relaxed);
        self.changed.store(true, Ordering::Release);
        let mut places: Vec<InputPartition> = left.into_iter().filter(|place| !gone.contains(place)).collect();
        if let Rebalance::Assign(list) = rebalance {
            places.extend(self.places(list));
        }
        if places.is_empty() {
            return;
        }
        self.pause_until_restored(consumer, &places);
        self.health.lags.assign(&places);
        if self.feed.send(ReaderEvent::Notice(AssignmentNotice::Assigned { places })).is_err() {
            self.health.note_error();
        }
    }
}

/// Returns the group metadata for commits; `None` if the membership was interrupted since the assignment.
///
/// A readmitted static member may keep partitions that others have owned: librdkafka 2.12 does not report them as lost.
/// The coordinator accepts transactional offsets without a member.
#[must_use]
pub fn group_metadata_of_member(consumer: &SubscribedConsumer) -> Option<ConsumerGroupMetadata> {
    let metadata = consumer.group_metadata()?;
    // A member id is never reused.
    let id = member_id(consumer);
    let is_member = !id.is_empty() && *consumer.context().member.lock().expect(LOCK_NOT_POISONED) == id;
    (is_member && !consumer.assignment_lost()).then_some(metadata)
}

/// Creates the consumer and subscribes it to `topics`.
pub fn subscribe(
    cluster: &KafkaCluster,
    group: &str,
    topics: &[String],
    feed: Sender<ReaderEvent>,
    health: Arc<ConsumerHealth>,
    paused: Arc<PausedPartitions>,
    ending: Arc<ShutdownProgress>,
) -> Result<Arc<SubscribedConsumer>, KafkaFailure> {
    let settings = cluster.member(group);
    let callbacks = ConsumerCallbacks {
        reported_refusals: settings.shared_refusals(),
        topics: topics.to_vec(),
        feed,
        health,
        revoked_places: Mutex::new(Vec::new()),
        paused,
        changed: AtomicBool::new(false),
        member: Mutex::default(),
        ending,
    };
    let consumer: SubscribedConsumer = settings.create("cannot create the consumer", callbacks)?;
    let names: Vec<&str> = topics.iter().map(String::as_str).collect();
    consumer.subscribe(&names).map_err(|e| cluster.failure("cannot subscribe", e))?;
    Ok(Arc::new(consumer))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdkafka::bindings::rd_kafka_resp_err_t as Refusal;
    use rdkafka::mocking::MockCluster;
    use rdkafka::types::RDKafkaApiKey;
    use std::collections::BTreeMap;

    const PATIENCE: Duration = Duration::from_secs(60);

    #[test]
    fn rejoin_with_new_member_id_loses_partitions() {
        let broker = MockCluster::new(1).expect("librdkafka's mock cluster");
        broker.create_topic("raw", 2, 1).expect("a topic");
        let properties =
            [("group.instance.id", "one"), ("heartbeat.interval.ms", "100"), ("session.timeout.ms", "6000")];
        let properties: BTreeMap<String, String> =
            properties.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let cluster = KafkaCluster::new(&broker.bootstrap_servers(), properties);
        let (feed_in, feed) = crossbeam_channel::bounded(1);
        let ending = Arc::new(ShutdownProgress::default());
        let health = Arc::<ConsumerHealth>::default();
        let consumer = subscribe(
            &cluster,
            "group",
            &["raw".to_owned()],
            feed_in,
            Arc::clone(&health),
            Arc::default(),
            Arc::clone(&ending),
        )
        .expect("a consumer");
        let over = AtomicBool::new(false);
        let began = Instant::now();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                // Ends if the other thread has panicked.
                while !over.load(Ordering::Acquire) && began.elapsed() < 2 * PATIENCE {
                    drop(consumer.poll(Duration::from_millis(50)));
                }
            });
            let next = || match feed.recv_timeout(PATIENCE) {
                Ok(ReaderEvent::Notice(notice)) => notice,
                _ => panic!("no notice in time"),
            };
            let both = vec![(0, 0), (0, 1)];
            let AssignmentNotice::Assigned { mut places } = next() else { panic!("nothing was assigned") };
            places.sort_unstable();
            assert_eq!(places, both);
            assert!(health.lags.by_partition().into_keys().eq(both.iter().copied()));
            assert!(group_metadata_of_member(&consumer).is_some());

            broker.request_errors(RDKafkaApiKey::JoinGroup, &[Refusal::RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID]);
            broker.request_errors(RDKafkaApiKey::Heartbeat, &[Refusal::RD_KAFKA_RESP_ERR_REBALANCE_IN_PROGRESS]);
            let AssignmentNotice::Revoked { mut places, is_lost, acknowledge } = next() else {
                panic!("nothing was revoked")
            };
            places.sort_unstable();
            assert_eq!((places, is_lost), (both.clone(), true));
            assert!(!consumer.assignment_lost(), "the client knows it by itself now: all of this can go");
            assert!(group_metadata_of_member(&consumer).is_none(), "a batch that is under way could be committed");
            acknowledge.send(()).expect("the callback waits");
            let mut again = Vec::new();
            while again.len() < both.len() {
                match next() {
                    AssignmentNotice::Assigned { places } => again.extend(places),
                    AssignmentNotice::Revoked { places, acknowledge, .. } => {
                        again.retain(|place| !places.contains(place));
                        acknowledge.send(()).expect("the callback waits");
                    }
                    AssignmentNotice::CannotReplay { .. } => panic!("nothing is repeated"),
                }
            }
            assert!(group_metadata_of_member(&consumer).is_some());
            over.store(true, Ordering::Release);
        });
        ending.mark_reader_ended();
    }
}
