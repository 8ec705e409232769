//! Partial sums for the instance that owns the cohorts. They are independent of the distribution of records.

use super::state::{PartialSum, SourcePartition};
use super::terms::AllSeriesTerms;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Contributions of a source partition in a batch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PartitionContributions {
    /// Source partition.
    pub source: SourcePartition,
    /// State age when sent, in ms.
    pub sent_ms: i64,
    /// Next offset; only in the last part.
    pub next: Option<i64>,
    /// Records without subject or event time.
    pub unplaced: u64,
    /// Records ahead of the clock.
    pub early: u64,
    /// Latest times of distinct subjects; only in the last part.
    pub front: Vec<(u64, i64)>,
    /// Sums, ascending by subject.
    pub people: Vec<SubjectSums>,
}

/// Sums of one subject.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SubjectSums {
    /// Subject digest.
    pub subject: u64,
    /// Days with a record, in days since 1970, ascending.
    pub days: Vec<i64>,
    /// Stratum labels; empty if incomplete.
    pub labels: Vec<String>,
    /// Sums by series and bucket, ascending.
    pub buckets: Vec<BucketSums>,
}

/// Sums of a subject in a bucket.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BucketSums {
    /// Series index.
    pub series: u16,
    /// Bucket start.
    pub bucket: i64,
    /// Records of the subject.
    pub records: u32,
    /// Sums by signal index, ascending.
    pub partials: Vec<(u16, PartialSum)>,
}

/// Received contributions and partition status.
#[derive(Clone, Debug, Default)]
pub struct ReceivedContributions {
    /// Contributions in topic order.
    pub contributions: Vec<PartitionContributions>,
    /// All partitions of the source.
    pub sources: Vec<SourcePartition>,
    /// Partitions without unread records, and the offset of that observation. They delay no bucket at that offset.
    pub idle: BTreeMap<SourcePartition, i64>,
}

/// Returns true if a time has changed.
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
    /// Checks that all series and signals exist.
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
    /// Upper estimate in bytes.
    fn size(&self) -> usize {
        let labels: usize = self.labels.iter().map(|label| label.len() + 5).sum();
        24 + 10 * self.days.len() + labels + self.buckets.iter().map(BucketSums::size).sum::<usize>()
    }

    /// Splits off at least one bucket and at most `room` bytes.
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
    /// Splits into parts of about `most` bytes, or of one bucket.
    ///
    /// Only the last part has offset and times, so earlier parts close no bucket.
    #[must_use]
    pub fn split_by_size(mut self, most: usize) -> Vec<Self> {
        let mut parts = Vec::new();
        let (mut people, mut size) = (Vec::new(), 0);
        for mut person in std::mem::take(&mut self.people) {
            while person.size() > most.saturating_sub(size) {
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
