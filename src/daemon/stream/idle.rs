//! Which source partitions have no unread record. Buckets of series wait for partitions whose event times have not passed them; one that has
//! nothing unread would delay them until its next record.

use crate::io::input::Place;
use crate::io::kafka::connection::{Cluster, KafkaFailure};
use crate::io::kafka::unread;
use crossbeam_channel::{Receiver, TryRecvError, bounded};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Time between two questions.
const INTERVAL: Duration = Duration::from_secs(1);

/// Time between two log lines about brokers that do not answer.
const SAYING: Duration = Duration::from_secs(60);

/// Asks for partitions without an unread record, on a thread of its own.
pub struct IdlePartitions {
    cluster: Cluster,
    /// Topics of the source, by number.
    topics: Vec<String>,
    running: Option<Receiver<Result<BTreeMap<Place, i64>, KafkaFailure>>>,
    asked: Option<Instant>,
    said: Option<Instant>,
}

impl IdlePartitions {
    /// Partitions of `topics`; nothing has been asked.
    #[must_use]
    pub fn new(cluster: Cluster, topics: Vec<String>) -> Self {
        Self { cluster, topics, running: None, asked: None, said: None }
    }

    /// Asks whether `places` have unread records at these offsets or later, once in a while, and gives those that have none as soon as that is
    /// known.
    pub fn turn(&mut self, places: &BTreeMap<Place, i64>) -> Option<BTreeMap<Place, i64>> {
        if let Some(running) = &self.running {
            let answer = match running.try_recv() {
                Err(TryRecvError::Empty) => return None,
                Err(TryRecvError::Disconnected) => Err(KafkaFailure::ReaderPanicked),
                Ok(answer) => answer,
            };
            self.running = None;
            return match answer {
                Ok(idle) => Some(idle),
                Err(failure) => {
                    if self.said.is_none_or(|said| said.elapsed() >= SAYING) {
                        self.said = Some(Instant::now());
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
        let (cluster, topics, places) = (self.cluster.clone(), self.topics.clone(), places.clone());
        std::thread::spawn(move || {
            let topic = |place: &Place| topics.get(usize::from(place.0)).map_or("", String::as_str);
            let named: Vec<(&str, i32, i64)> = places.iter().map(|(place, next)| (topic(place), place.1, *next)).collect();
            let idle = unread::without_unread(&cluster, &named).map(|without| {
                places.into_iter().zip(without).filter(|(_, is_idle)| *is_idle).map(|(place, _)| place).collect()
            });
            if sender.send(idle).is_err() {
                tracing::debug!("nobody waits for idle partitions any more");
            }
        });
        self.running = Some(running);
        None
    }
}
