//! Contributions on their way to the instance that has the cohorts: partial sums of the records of one batch, by source partition.
//!
//! Sums of one person, bucket and signal can be added in any order, so it does not matter over how many batches, partitions and
//! instances the records of a person are spread.

use super::state::{Partial, SourcePartition};
use super::terms::Terms;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What the records of one source partition in one batch contribute.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Contributions {
    /// The partition.
    pub source: SourcePartition,
    /// Age of the state with which the batch has left.
    pub sent_ms: i64,
    /// The offset behind the last record of the batch; none where more contributions of the same records follow.
    pub next: Option<i64>,
    /// Records without a subject or an event time.
    pub unplaced: u64,
    /// Records whose event time is ahead of the clock.
    pub early: u64,
    /// The latest event times of different people, at most `crowd` of them; empty where more contributions follow.
    pub front: Vec<(u64, i64)>,
    /// By subject digest, ascending.
    pub people: Vec<PersonSums>,
}

/// Partial sums of one person.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PersonSums {
    /// The subject digest.
    pub subject: u64,
    /// Days with a record, as days since 1970, ascending.
    pub days: Vec<i64>,
    /// Labels of the stratum; empty where no record has all of them.
    pub labels: Vec<String>,
    /// By series and bucket, ascending.
    pub buckets: Vec<BucketSums>,
}

/// Partial sums of one person in one bucket.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BucketSums {
    /// Position of the series.
    pub series: u16,
    /// The bucket.
    pub bucket: i64,
    /// Records of the person in it.
    pub records: u32,
    /// Signals with a value, by position, ascending.
    pub partials: Vec<(u16, Partial)>,
}

/// Contributions that have arrived, and what is known of the source partitions.
#[derive(Clone, Debug, Default)]
pub struct Received {
    /// In the order of their topic.
    pub contributions: Vec<Contributions>,
    /// All partitions of the source. A bucket closes when the event times of each have passed it.
    pub sources: Vec<SourcePartition>,
    /// Partitions without an unread record, each with the offset at which it was found so: they delay no bucket as long as they are
    /// there.
    pub idle: BTreeMap<SourcePartition, i64>,
}

/// Notes the latest event time of a person among those of at most `crowd` people. Returns whether a time has changed.
pub(super) fn advance(front: &mut Vec<(u64, i64)>, crowd: usize, subject: u64, time_ms: i64) -> bool {
    if let Some((_, latest)) = front.iter_mut().find(|(known, _)| *known == subject) {
        let is_later = time_ms > *latest;
        *latest = time_ms.max(*latest);
        return is_later;
    }
    if front.len() < crowd {
        front.push((subject, time_ms));
        return true;
    }
    match front.iter_mut().min_by_key(|(_, time)| *time) {
        Some(earliest) if time_ms > earliest.1 => {
            *earliest = (subject, time_ms);
            true
        }
        _ => false,
    }
}

impl Terms {
    /// Whether contributions are of series and signals that there are.
    #[must_use]
    pub fn fits(&self, contributions: &Contributions) -> bool {
        let sums = contributions.people.iter().flat_map(|person| &person.buckets);
        sums.into_iter().all(|sums| {
            let series = self.series.get(usize::from(sums.series));
            series.is_some_and(|series| sums.partials.iter().all(|(at, _)| usize::from(*at) < series.signals.len()))
        })
    }
}

impl PersonSums {
    /// About the bytes that the sums take in a message, the most that they can be.
    fn size(&self) -> usize {
        let labels: usize = self.labels.iter().map(|label| label.len() + 5).sum();
        24 + 10 * self.days.len() + labels + self.buckets.iter().map(BucketSums::size).sum::<usize>()
    }

    /// Takes as many buckets off as `room` bytes hold, one at least, with days and labels.
    fn split(&mut self, room: usize) -> Self {
        let mut taken = 24 + 10 * self.days.len() + self.labels.iter().map(|label| label.len() + 5).sum::<usize>();
        let fits = |bucket: &&BucketSums| {
            taken += bucket.size();
            taken <= room
        };
        let fitting = self.buckets.iter().take_while(fits).count().max(1).min(self.buckets.len());
        let rest = self.buckets.split_off(fitting);
        let buckets = std::mem::replace(&mut self.buckets, rest);
        let (days, labels) = (std::mem::take(&mut self.days), std::mem::take(&mut self.labels));
        Self { subject: self.subject, days, labels, buckets }
    }
}

impl BucketSums {
    fn size(&self) -> usize {
        24 + 16 * self.partials.len()
    }
}

impl Contributions {
    /// Divides contributions so that each takes about `most` bytes in a message, or has one bucket of one person. The last one has the
    /// offset and the front: before it has come, no bucket closes that the others belong to.
    #[must_use]
    pub fn divided(mut self, most: usize) -> Vec<Self> {
        let mut parts = Vec::new();
        let (mut people, mut size) = (Vec::new(), 0);
        for mut person in std::mem::take(&mut self.people) {
            while person.size() > most.saturating_sub(size) {
                // What does not fit into an empty message is split.
                if people.is_empty() && person.buckets.len() > 1 {
                    people.push(person.split(most));
                } else if people.is_empty() {
                    break;
                }
                let people = std::mem::take(&mut people);
                parts.push(Self { source: self.source, sent_ms: self.sent_ms, people, ..Self::default() });
                size = 0;
            }
            size += person.size();
            people.push(person);
        }
        parts.push(Self { people, ..self });
        parts
    }
}
