//! What the consumer and the daemon tell each other, and the callbacks in which a rebalance is settled.
//!
//! Rebalance callbacks run inside `poll`, on the reader's thread: a revocation is passed on and acknowledged by the daemon
//! before the partitions are let go.

use super::connection::{Cluster, KafkaFailure};
use super::health::Health;
use super::hearing::Hearing;
use super::live::{Live, member_id};
use super::paused::PausedPartitions;
use crate::io::input::{InputBatch, Place, Ranges};
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

/// What the reader tells the daemon.
pub enum Feed {
    /// A closed batch.
    Batch(Box<InputBatch>),
    /// A change that the daemon must know of.
    Notice(Notice),
    /// The client has failed for good.
    Failed(KafkaFailure),
}

/// What the daemon must know of the assignment.
pub enum Notice {
    /// Partitions are being taken away: finish or abort, settle what they hold, then acknowledge.
    Revoked {
        /// The partitions.
        places: Vec<Place>,
        /// They are gone already: nothing of them can be settled any more.
        is_lost: bool,
        /// Where the acknowledgement goes.
        acknowledge: Sender<()>,
    },
    /// Partitions have come. The reader starts them when their state is restored ([`PausedPartitions`]).
    Assigned {
        /// The partitions.
        places: Vec<Place>,
    },
    /// The batch that was to be repeated cannot be: one of its partitions is not ours any more, has moved on, or has lost records.
    CannotReplay {
        /// The records that are gone.
        gone: Ranges,
    },
}

/// The daemon tells the reader to go back to the committed offsets; batches of older epochs are void.
pub struct Rewind {
    /// The epoch of the batches to come.
    pub epoch: u64,
    /// What the next batch consists of, exactly, where it repeats one.
    pub replay: Option<Ranges>,
}

/// Progress of a shutdown, for the callbacks of the consumer: first nobody listens, then nobody reads. From there on the client polls
/// itself while it closes.
#[derive(Debug, Default)]
pub struct Ending {
    deaf: AtomicBool,
    closing: AtomicBool,
    answered: AtomicBool,
}

impl Ending {
    /// The daemon has ended: callbacks must not wait for it.
    pub fn stop_listening(&self) {
        self.deaf.store(true, Ordering::Release);
    }

    /// Whether nobody listens any more.
    pub fn is_unheard(&self) -> bool {
        self.deaf.load(Ordering::Acquire)
    }

    /// The reader has ended as well.
    pub fn stop_reading(&self) {
        self.stop_listening();
        self.closing.store(true, Ordering::Release);
    }

    /// Whether the client is polled by its own end alone.
    pub(super) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Acquire)
    }

    /// Whether a client that closes is to be answered now: once.
    pub(super) fn takes_answer(&self) -> bool {
        !self.answered.swap(true, Ordering::AcqRel)
    }
}

/// The consumer with our callbacks.
pub type FeedConsumer = Live<BaseConsumer<Callbacks>>;

/// Callbacks of the consumer.
pub struct Callbacks {
    pub(super) topics: Vec<String>,
    hearing: Arc<Hearing>,
    feed: Sender<Feed>,
    pub(super) health: Arc<Health>,
    /// Partitions taken away since the reader last looked.
    gone: Mutex<Vec<Place>>,
    /// Assigned partitions that are paused until their state is restored.
    pub(super) paused: Arc<PausedPartitions>,
    /// Set when the assignment has changed.
    changed: AtomicBool,
    /// Id under which all partitions came that are ours.
    member: Mutex<String>,
    ending: Arc<Ending>,
}

/// How long the daemon may take to let a partition go before the group would throw us out anyway.
const ACKNOWLEDGE: Duration = Duration::from_secs(120);

/// Why a lock of these callbacks cannot be poisoned.
const HELD: &str = "no panic while it is held";

/// How often a callback that waits looks whether anybody is still there.
const LOOK: Duration = Duration::from_millis(50);

impl Callbacks {
    pub(super) fn places(&self, list: &TopicPartitionList) -> Vec<Place> {
        list.elements().iter().filter_map(|e| self.place_of(e.topic(), e.partition())).collect()
    }

    pub(super) fn place_of(&self, topic: &str, partition: i32) -> Option<Place> {
        let topic = self.topics.iter().position(|t| t == topic)?;
        Some((u16::try_from(topic).ok()?, partition))
    }

    /// The partitions taken away since this was last asked.
    pub(super) fn take_gone(&self) -> Vec<Place> {
        std::mem::take(&mut *self.gone.lock().expect(HELD))
    }

    /// Partitions of `list` whose state is restored.
    pub(super) fn restored_of(&self, list: &TopicPartitionList) -> TopicPartitionList {
        let mut restored = TopicPartitionList::new();
        for element in list.elements() {
            if self.place_of(element.topic(), element.partition()).is_none_or(|place| !self.paused.contains(place)) {
                restored.add_partition(element.topic(), element.partition());
            }
        }
        restored
    }

    /// Pauses newly assigned partitions until their state is restored. The other partitions are not affected.
    fn pause_until_restored(&self, consumer: &BaseConsumer<Self>, places: &[Place]) {
        let mut list = TopicPartitionList::new();
        for (topic, partition) in places {
            list.add_partition(&self.topics[usize::from(*topic)], *partition);
        }
        self.paused.add(places);
        // The reader ignores messages that are delivered in spite of the pause, and seeks back later.
        if consumer.pause(&list).is_err() {
            self.health.note_error();
        }
    }

    /// Lets partitions go that came under another id, and returns them: their state counts no more.
    fn leave_behind(&self, consumer: &BaseConsumer<Self>) -> Vec<Place> {
        let id = member_id(consumer);
        if *self.member.lock().expect(HELD) == id {
            return Vec::new();
        }
        let kept = consumer.assignment().map(|assigned| self.places(&assigned)).unwrap_or_default();
        if !kept.is_empty() && !id.is_empty() {
            tracing::warn!(
                partitions = kept.len(),
                "the group had expelled this instance and has taken it in again: the state of its partitions is read again"
            );
        }
        self.let_go(kept.clone(), true);
        *self.member.lock().expect(HELD) = id;
        kept
    }

    /// Whether the assignment has changed since this was last asked.
    pub(super) fn take_changed(&self) -> bool {
        self.changed.swap(false, Ordering::AcqRel)
    }

    /// Passes `notice` on and waits for its acknowledgement. A daemon that has ended leaves both where they are, so the wait
    /// looks for that as well.
    fn is_settled(&self, notice: Notice, acknowledged: &Receiver<()>) -> bool {
        let deadline = Instant::now() + ACKNOWLEDGE;
        let over = || self.ending.is_unheard() || Instant::now() >= deadline;
        let mut event = Feed::Notice(notice);
        loop {
            match self.feed.send_timeout(event, LOOK) {
                Ok(()) => break,
                Err(SendTimeoutError::Timeout(back)) if !over() => event = back,
                Err(_) => return false,
            }
        }
        loop {
            match acknowledged.recv_timeout(LOOK) {
                Ok(()) => return true,
                Err(RecvTimeoutError::Timeout) if !over() => {}
                Err(_) => return false,
            }
        }
    }

    fn let_go(&self, places: Vec<Place>, is_lost: bool) {
        if places.is_empty() {
            return;
        }
        if !self.ending.is_unheard() {
            let (acknowledge, acknowledged) = crossbeam_channel::bounded(1);
            let notice = Notice::Revoked { places: places.clone(), is_lost, acknowledge };
            // What a daemon that does not answer in time still has in flight must not be committed any more.
            if !self.is_settled(notice, &acknowledged) {
                self.health.abandoned.store(true, Ordering::Release);
            }
        }
        // Behind the acknowledgement: until then the daemon may have restored them for the assignment that ends.
        self.paused.remove(&places);
        self.gone.lock().expect(HELD).extend(places);
    }
}

impl ClientContext for Callbacks {
    fn stats(&self, statistics: Statistics) {
        let is_up = statistics.brokers.values().any(|b| b.nodeid >= 0 && b.state == "UP");
        self.health.reachable.store(is_up, Ordering::Relaxed);
        if is_up {
            self.hearing.clear();
        }
        let partitions = statistics.topics.values().flat_map(|topic| topic.partitions.values());
        let known = partitions.filter(|p| p.consumer_lag >= 0 && p.fetch_state == "active").map(|p| p.consumer_lag);
        if let Some(lag) = known.reduce(|a, b| a + b) {
            self.health.lag.store(lag, Ordering::Relaxed);
        }
    }

    fn error(&self, error: KafkaError, reason: &str) {
        self.health.note_error();
        self.hearing.hear(&error, reason);
        if error.rdkafka_error_code() == Some(RDKafkaErrorCode::AllBrokersDown) {
            self.health.reachable.store(false, Ordering::Relaxed);
        }
    }

    fn log(&self, _level: rdkafka::config::RDKafkaLogLevel, _facility: &str, _message: &str) {
        // The client's own lines may quote keys, hosts and settings; what matters of them is in `Health`.
    }
}

impl ConsumerContext for Callbacks {
    /// As the client would do it, except at its end: there its group takes the first answer for the end of every assignment, and may be gone
    /// before a second one. Whatever asks it then is never answered. One event can wait already when the client adds another to close.
    fn rebalance(&self, consumer: &BaseConsumer<Self>, code: RDKafkaRespErr, list: &mut TopicPartitionList) {
        if self.ending.is_closing() {
            self.health.assigned.store(false, Ordering::Relaxed);
            if self.ending.takes_answer() && consumer.unassign().is_err() {
                self.health.note_error();
            }
            return;
        }
        let list: &TopicPartitionList = list;
        // The client joins again only after the answer: until then the id can go, and no other one comes.
        let left = self.leave_behind(consumer);
        let rebalance = match code {
            RDKafkaRespErr::RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS => Rebalance::Assign(list),
            RDKafkaRespErr::RD_KAFKA_RESP_ERR__REVOKE_PARTITIONS => Rebalance::Revoke(list),
            other => Rebalance::Error(KafkaError::Rebalance(other.into())),
        };
        if let Rebalance::Error(_) = rebalance {
            self.health.note_error();
        }
        let gone: Vec<Place> = match &rebalance {
            Rebalance::Revoke(list) => self.places(list),
            _ => Vec::new(),
        };
        self.let_go(gone.iter().filter(|place| !left.contains(place)).copied().collect(), consumer.assignment_lost());
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
        if self.ending.is_unheard() {
            // Nobody asks for more.
            self.health.assigned.store(false, Ordering::Relaxed);
            return;
        }
        let assigned = consumer.assignment().map_or(0, |a| a.count());
        self.health.assigned.store(assigned > 0, Ordering::Relaxed);
        self.changed.store(true, Ordering::Release);
        let mut places: Vec<Place> = left.into_iter().filter(|place| !gone.contains(place)).collect();
        if let Rebalance::Assign(list) = rebalance {
            places.extend(self.places(list));
        }
        if places.is_empty() {
            return;
        }
        self.pause_until_restored(consumer, &places);
        if self.feed.send(Feed::Notice(Notice::Assigned { places })).is_err() {
            self.health.note_error();
        }
    }
}

/// The group, for offsets that are committed for it; none where the consumer has not been a member without a break since its partitions
/// came.
///
/// Whoever is expelled and joins again gets another id. A static member of a cooperative group may keep its partitions then, although others
/// have had them meanwhile: librdkafka 2.12 does not call them lost. And a group takes transactional offsets in no member's name.
#[must_use]
pub fn membership(consumer: &FeedConsumer) -> Option<ConsumerGroupMetadata> {
    let metadata = consumer.group_metadata()?;
    // Asked after that: no id comes back.
    let id = member_id(consumer);
    let is_member = !id.is_empty() && *consumer.context().member.lock().expect(HELD) == id;
    (is_member && !consumer.assignment_lost()).then_some(metadata)
}

/// Makes the consumer and subscribes it.
pub fn subscribe(
    cluster: &Cluster,
    group: &str,
    topics: &[String],
    feed: Sender<Feed>,
    health: Arc<Health>,
    paused: Arc<PausedPartitions>,
    ending: Arc<Ending>,
) -> Result<Arc<FeedConsumer>, KafkaFailure> {
    let settings = cluster.member(group);
    let callbacks = Callbacks {
        hearing: settings.hearing(),
        topics: topics.to_vec(),
        feed,
        health,
        gone: Mutex::new(Vec::new()),
        paused,
        changed: AtomicBool::new(false),
        member: Mutex::default(),
        ending,
    };
    let consumer: FeedConsumer = settings.create("cannot create the consumer", callbacks)?;
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

    /// Longer than anything here takes on a busy machine.
    const PATIENCE: Duration = Duration::from_secs(60);

    /// A group that has expelled a static member takes it in again, and the client does not call its partitions lost.
    #[test]
    fn partitions_that_came_under_another_member_id_are_lost() {
        let broker = MockCluster::new(1).expect("librdkafka's mock cluster");
        broker.create_topic("raw", 2, 1).expect("a topic");
        let properties =
            [("group.instance.id", "one"), ("heartbeat.interval.ms", "100"), ("session.timeout.ms", "6000")];
        let properties: BTreeMap<String, String> =
            properties.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let cluster = Cluster::new(&broker.bootstrap_servers(), properties);
        let (feed_in, feed) = crossbeam_channel::bounded(1);
        let ending = Arc::new(Ending::default());
        let consumer = subscribe(
            &cluster,
            "group",
            &["raw".to_owned()],
            feed_in,
            Arc::default(),
            Arc::default(),
            Arc::clone(&ending),
        )
        .expect("a consumer");
        let over = AtomicBool::new(false);
        let began = Instant::now();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                // Also where the other thread has panicked.
                while !over.load(Ordering::Acquire) && began.elapsed() < 2 * PATIENCE {
                    drop(consumer.poll(Duration::from_millis(50)));
                }
            });
            let next = || match feed.recv_timeout(PATIENCE) {
                Ok(Feed::Notice(notice)) => notice,
                _ => panic!("no notice in time"),
            };
            let both = vec![(0, 0), (0, 1)];
            let Notice::Assigned { mut places } = next() else { panic!("nothing was assigned") };
            places.sort_unstable();
            assert_eq!(places, both);
            assert!(membership(&consumer).is_some());

            broker.request_errors(RDKafkaApiKey::JoinGroup, &[Refusal::RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID]);
            broker.request_errors(RDKafkaApiKey::Heartbeat, &[Refusal::RD_KAFKA_RESP_ERR_REBALANCE_IN_PROGRESS]);
            let Notice::Revoked { mut places, is_lost, acknowledge } = next() else { panic!("nothing was revoked") };
            places.sort_unstable();
            assert_eq!((places, is_lost), (both.clone(), true));
            assert!(!consumer.assignment_lost(), "the client knows it by itself now: all of this can go");
            assert!(membership(&consumer).is_none(), "a batch that is under way could be committed");
            acknowledge.send(()).expect("the callback waits");
            // What it keeps comes anew, now or when the group has forgotten the old id.
            let mut again = Vec::new();
            while again.len() < both.len() {
                match next() {
                    Notice::Assigned { places } => again.extend(places),
                    Notice::Revoked { places, acknowledge, .. } => {
                        again.retain(|place| !places.contains(place));
                        acknowledge.send(()).expect("the callback waits");
                    }
                    Notice::CannotReplay { .. } => panic!("nothing is repeated"),
                }
            }
            assert!(membership(&consumer).is_some());
            over.store(true, Ordering::Release);
        });
        ending.stop_reading();
    }
}
