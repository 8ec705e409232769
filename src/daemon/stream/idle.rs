//! Which source partitions have no unread record. Buckets of series wait for partitions whose event times have not passed them; one that has
//! nothing unread would delay them until its next record.

use crate::daemon::engine::IdleSources;
use crate::io::input::Place;
use crate::io::kafka::connection::{Cluster, KafkaFailure};
use crate::io::kafka::{offsets, unread};
use crossbeam_channel::{Receiver, TryRecvError, bounded};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Time for one question to the brokers.
const ASKING: Duration = Duration::from_secs(10);

/// Time between two questions.
const INTERVAL: Duration = Duration::from_secs(1);

/// Time between two log lines about brokers that do not answer, or about partitions that nobody processes.
const SAYING: Duration = Duration::from_secs(60);

/// How long buckets wait for unread records until it is said.
const LONG: Duration = Duration::from_secs(300);

/// What can be asked.
#[derive(Clone)]
struct Question {
    cluster: Cluster,
    group: String,
    /// Consumed topics by number; the last one is that of contributions.
    topics: Vec<String>,
}

/// Asks for partitions without an unread record, on a thread of its own.
pub struct IdlePartitions {
    question: Question,
    running: Option<Receiver<Result<IdleSources, KafkaFailure>>>,
    asked: Option<Instant>,
    said: Option<Instant>,
    /// Since when buckets wait.
    waits_since: Option<Instant>,
}

impl IdlePartitions {
    /// Partitions of the consumed `topics`, the last of which is that of contributions; nothing has been asked.
    #[must_use]
    pub fn new(cluster: Cluster, group: String, topics: Vec<String>) -> Self {
        let question = Question { cluster, group, topics };
        Self { question, running: None, asked: None, said: None, waits_since: None }
    }

    /// Whether an answer may have come, or a question is due.
    #[must_use]
    pub fn is_time(&self) -> bool {
        self.running.is_some() || self.asked.is_none_or(|asked| asked.elapsed() >= INTERVAL)
    }

    /// Asks whether `places` have unread records at these offsets or later, once in a while, and gives those that have none as soon as that is
    /// known. Contributions have been read up to `position`.
    pub fn turn(&mut self, places: &BTreeMap<Place, i64>, position: i64) -> Option<IdleSources> {
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
                    self.tell_of_unread(places, &idle);
                    Some(idle)
                }
                Err(failure) => {
                    if self.is_time_to_say() {
                        tracing::warn!(%failure, "buckets of series wait: it is not known whether other partitions have unread records");
                    }
                    None
                }
            };
        }
        if places.is_empty() || self.asked.is_some_and(|asked| asked.elapsed() < INTERVAL) {
            return None;
        }
        self.asked = Some(Instant::now());
        let (sender, running) = bounded(1);
        let (question, places) = (self.question.clone(), places.clone());
        std::thread::spawn(move || {
            if sender.send(question.ask(&places, position)).is_err() {
                tracing::debug!("nobody waits for idle partitions any more");
            }
        });
        self.running = Some(running);
        None
    }

    fn is_time_to_say(&mut self) -> bool {
        let is_time = self.said.is_none_or(|said| said.elapsed() >= SAYING);
        if is_time {
            self.said = Some(Instant::now());
        }
        is_time
    }

    /// Names the partitions that buckets have long waited for: perhaps nobody reads them.
    fn tell_of_unread(&mut self, places: &BTreeMap<Place, i64>, idle: &IdleSources) {
        let is_unread = |place: &Place| !idle.now.contains_key(place) && !idle.later.contains_key(place);
        let unread: Vec<String> = places
            .iter()
            .filter(|(place, _)| is_unread(place))
            .map(|(place, next)| format!("{}/{} at {next}", self.question.topic(*place), place.1))
            .collect();
        let is_long = self.waits_since.is_some_and(|since| since.elapsed() >= LONG);
        if !unread.is_empty() && is_long && self.is_time_to_say() {
            let partitions = unread.join(", ");
            tracing::warn!(%partitions, "buckets of series wait for partitions with unread records: are all instances of the group running?");
        }
    }
}

impl Question {
    fn topic(&self, place: Place) -> &str {
        self.topics.get(usize::from(place.0)).map_or("", String::as_str)
    }

    /// Where the group stands beyond `places`, contributions are under way, or there never were any: what it has read counts as soon as
    /// contributions are read up to where they end now.
    fn ask(&self, places: &BTreeMap<Place, i64>, position: i64) -> Result<IdleSources, KafkaFailure> {
        let asked = Instant::now();
        let named: Vec<(&str, i32)> = places.keys().map(|place| (self.topic(*place), place.1)).collect();
        let committed = offsets::committed_now(&self.cluster, &self.group, &named, ASKING)?;
        let from: Vec<i64> =
            places.values().zip(&committed).map(|(next, committed)| committed.unwrap_or(0).max(*next)).collect();
        let is_beyond = places.values().zip(&from).any(|(next, from)| from > next);
        let contributions = self.topics.last().map_or("", String::as_str);
        let (end, is_read) =
            if is_beyond { unread::end_of(&self.cluster, contributions, 0, position)? } else { (position, true) };
        let asks: Vec<(&str, i32, i64)> =
            named.iter().zip(&from).map(|((topic, partition), from)| (*topic, *partition, *from)).collect();
        let without = unread::without_unread(&self.cluster, &asks)?;
        let mut idle = IdleSources { asked, now: BTreeMap::new(), read_to: end, later: BTreeMap::new() };
        for (((place, next), from), _) in places.iter().zip(&from).zip(&without).filter(|(_, is_idle)| **is_idle) {
            let of = if is_read || from <= next { &mut idle.now } else { &mut idle.later };
            of.insert(*place, *next);
        }
        Ok(idle)
    }
}
