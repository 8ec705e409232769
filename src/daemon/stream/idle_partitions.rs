//! Search for source partitions without unread records.

use crate::daemon::engine::IdleSources;
use crossbeam_channel::{Receiver, TryRecvError, bounded};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use throng_core::stream::input_batch::InputPartition;
use throng_kafka::connection::{KafkaCluster, KafkaFailure};
use throng_kafka::{offsets, unread_records};

const IDLE_QUERY_TIMEOUT: Duration = Duration::from_secs(10);

const IDLE_QUERY_INTERVAL: Duration = Duration::from_secs(1);

const UNREAD_LOG_INTERVAL: Duration = Duration::from_secs(60);

const LONG_UNREAD_WAIT: Duration = Duration::from_secs(300);

#[derive(Clone)]
struct IdleQuery {
    cluster: KafkaCluster,
    group: String,
    topics: Vec<String>,
}

/// Periodic query for partitions without unread records.
pub struct IdlePartitions {
    idle_query: IdleQuery,
    running: Option<Receiver<Result<IdleSources, KafkaFailure>>>,
    last_query: Option<Instant>,
    last_unread_log: Option<Instant>,
    waits_since: Option<Instant>,
}

impl IdlePartitions {
    /// Creates a query; the last of `topics` has the contributions.
    #[must_use]
    pub fn new(cluster: KafkaCluster, group: String, topics: Vec<String>) -> Self {
        let question = IdleQuery { cluster, group, topics };
        Self { idle_query: question, running: None, last_query: None, last_unread_log: None, waits_since: None }
    }

    /// Returns true for a possible answer or a due query.
    #[must_use]
    pub fn is_poll_due(&self) -> bool {
        self.running.is_some() || self.last_query.is_none_or(|asked| asked.elapsed() >= IDLE_QUERY_INTERVAL)
    }

    /// Queries periodically; returns an arrived answer: those of `places` without unread records. Contributions have
    /// been read up to `position`.
    pub fn poll_idle(&mut self, places: &BTreeMap<InputPartition, i64>, position: i64) -> Option<IdleSources> {
        if places.is_empty() {
            self.waits_since = None;
        } else {
            self.waits_since.get_or_insert_with(Instant::now);
        }
        if let Some(running) = &self.running {
            let answer = match running.try_recv() {
                Err(TryRecvError::Empty) => return None,
                Err(TryRecvError::Disconnected) => Err(KafkaFailure::ReaderPanicked),
                Ok(answer) => answer,
            };
            self.running = None;
            return match answer {
                Ok(idle) => {
                    self.log_unread_partitions(places, &idle);
                    Some(idle)
                }
                Err(failure) => {
                    if self.may_log_now() {
                        tracing::warn!(%failure, "buckets of series wait: cannot determine if other partitions have unread records");
                    }
                    None
                }
            };
        }
        if places.is_empty() || self.last_query.is_some_and(|asked| asked.elapsed() < IDLE_QUERY_INTERVAL) {
            return None;
        }
        self.last_query = Some(Instant::now());
        let (sender, running) = bounded(1);
        let (question, places) = (self.idle_query.clone(), places.clone());
        std::thread::spawn(move || {
            if sender.send(question.query_brokers(&places, position)).is_err() {
                tracing::debug!("discarding the answer about idle partitions: no longer needed");
            }
        });
        self.running = Some(running);
        None
    }

    fn may_log_now(&mut self) -> bool {
        let is_time = self.last_unread_log.is_none_or(|said| said.elapsed() >= UNREAD_LOG_INTERVAL);
        if is_time {
            self.last_unread_log = Some(Instant::now());
        }
        is_time
    }

    fn log_unread_partitions(&mut self, places: &BTreeMap<InputPartition, i64>, idle: &IdleSources) {
        let is_unread = |place: &InputPartition| !idle.now.contains_key(place) && !idle.later.contains_key(place);
        let unread: Vec<String> = places
            .iter()
            .filter(|(place, _)| is_unread(place))
            .map(|(place, next)| format!("{}/{} at {next}", self.idle_query.topic_name(*place), place.1))
            .collect();
        let is_long = self.waits_since.is_some_and(|since| since.elapsed() >= LONG_UNREAD_WAIT);
        if !unread.is_empty() && is_long && self.may_log_now() {
            let partitions = unread.join(", ");
            tracing::warn!(%partitions, "buckets of series wait for partitions with unread records (are all instances of the group running?)");
        }
    }
}

impl IdleQuery {
    fn topic_name(&self, place: InputPartition) -> &str {
        self.topics.get(usize::from(place.0)).map_or("", String::as_str)
    }

    /// Contributions of offsets beyond `places` may be unread. Such a partition is idle once they are read up to their
    /// current end.
    fn query_brokers(
        &self,
        places: &BTreeMap<InputPartition, i64>,
        position: i64,
    ) -> Result<IdleSources, KafkaFailure> {
        let asked = Instant::now();
        let named: Vec<(&str, i32)> = places.keys().map(|place| (self.topic_name(*place), place.1)).collect();
        let committed = offsets::committed_now(&self.cluster, &self.group, &named, IDLE_QUERY_TIMEOUT)?;
        let from: Vec<i64> =
            places.values().zip(&committed).map(|(next, committed)| committed.unwrap_or(0).max(*next)).collect();
        let is_beyond = places.values().zip(&from).any(|(next, from)| from > next);
        let contributions = self.topics.last().map_or("", String::as_str);
        let (end, is_read) = if is_beyond {
            unread_records::end_of(&self.cluster, contributions, 0, position)?
        } else {
            (position, true)
        };
        let asks: Vec<(&str, i32, i64)> =
            named.iter().zip(&from).map(|((topic, partition), from)| (*topic, *partition, *from)).collect();
        let without = unread_records::without_unread(&self.cluster, &asks)?;
        let mut idle = IdleSources { asked, now: BTreeMap::new(), read_to: end, later: BTreeMap::new() };
        for (((place, next), from), _) in places.iter().zip(&from).zip(&without).filter(|(_, is_idle)| **is_idle) {
            let of = if is_read || from <= next { &mut idle.now } else { &mut idle.later };
            of.insert(*place, *next);
        }
        Ok(idle)
    }
}
