//! Contributions sent to the instance that owns the cohorts: partial sums of one batch, per source partition.
//!
//! Sums can be added in any order, so the distribution of records over batches, partitions and instances has no
//! effect.

use super::state::{PartialSum, SourcePartition};
use super::terms::AllSeriesTerms;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Contributions of the records of one source partition in one batch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PartitionContributions {
    /// The source partition.
    pub source: SourcePartition,
    /// Age of the state in milliseconds when the batch was sent.
    pub sent_ms: i64,
    /// Offset after the last record of the batch; none if more contributions of the same records follow.
    pub next: Option<i64>,
    /// Number of records without a subject or an event time.
    pub unplaced: u64,
    /// Number of records with an event time ahead of the clock.
    pub early: u64,
    /// Latest event times of distinct subjects, at most `crowd` entries; empty if more contributions follow.
    pub front: Vec<(u64, i64)>,
    /// Sums per subject, ascending by subject digest.
    pub people: Vec<SubjectSums>,
}

/// Partial sums of one subject.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SubjectSums {
    /// Subject digest.
    pub subject: u64,
    /// Days with a record, as days since 1970, ascending.
    pub days: Vec<i64>,
    /// Labels of the stratum; empty if no record has all of them.
    pub labels: Vec<String>,
    /// Sums per series and bucket, ascending.
    pub buckets: Vec<BucketSums>,
}

/// Partial sums of one subject in one bucket.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BucketSums {
    /// Position of the series.
    pub series: u16,
    /// Start of the bucket.
    pub bucket: i64,
    /// Number of the subject's records in the bucket.
    pub records: u32,
    /// Sums of the signals with a value, ascending by position of the signal.
    pub partials: Vec<(u16, PartialSum)>,
}

/// Received contributions, and the status of the source partitions.
#[derive(Clone, Debug, Default)]
pub struct ReceivedContributions {
    /// Contributions in the order of their topic.
    pub contributions: Vec<PartitionContributions>,
    /// All partitions of the source. A bucket closes after the event times of each partition have passed it.
    pub sources: Vec<SourcePartition>,
    /// Partitions without an unread record, each with the offset at which this was observed. They delay no bucket
    /// while they remain at that offset.
    pub idle: BTreeMap<SourcePartition, i64>,
}

/// Updates the latest event time of a subject in a list of at most `crowd` subjects. Returns true if a time has
/// changed.
pub(super) fn note_latest_time(front: &mut Vec<(u64, i64)>, crowd: usize, subject: u64, time_ms: i64) -> bool {
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

impl AllSeriesTerms {
    /// Returns true if the contributions refer only to existing series and signals.
    #[must_use]
    pub fn covers_contributions(&self, contributions: &PartitionContributions) -> bool {
        let sums = contributions.people.iter().flat_map(|person| &person.buckets);
        sums.into_iter().all(|sums| {
            let series = self.series.get(usize::from(sums.series));
            series.is_some_and(|series| sums.partials.iter().all(|(at, _)| usize::from(*at) < series.signals.len()))
        })
    }
}

impl SubjectSums {
    /// Upper estimate of the encoded size in a message, in bytes.
    fn size(&self) -> usize {
        let labels: usize = self.labels.iter().map(|label| label.len() + 5).sum();
        24 + 10 * self.days.len() + labels + self.buckets.iter().map(BucketSums::size).sum::<usize>()
    }

    /// Splits off the buckets that fit into `room` bytes, at least one, with the days and labels.
    fn split_off_buckets(&mut self, room: usize) -> Self {
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

impl PartitionContributions {
    /// Splits contributions into parts of about `most` bytes, or of one bucket of one subject.
    ///
    /// Only the last part carries the offset and the event times. No bucket of the earlier parts closes before it
    /// arrives.
    #[must_use]
    pub fn split_by_size(mut self, most: usize) -> Vec<Self> {
        let mut parts = Vec::new();
        let (mut people, mut size) = (Vec::new(), 0);
        for mut person in std::mem::take(&mut self.people) {
            while person.size() > most.saturating_sub(size) {
                // A subject that does not fit into an empty message is split.
                if people.is_empty() && person.buckets.len() > 1 {
                    people.push(person.split_off_buckets(most));
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
