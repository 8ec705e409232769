//! Adds the records of a batch to the open buckets of their subjects.

use super::batch_step::SeriesBatchStep;
use super::contributions::{PartitionContributions, ReceivedContributions, note_latest_time};
use super::state::{OpenBucket, PartialSum, SourceFront, SubjectChannelHistory, SubjectState};
use super::terms::{DAY_MS, SeriesSignal};
use std::collections::BTreeMap;

/// Largest number of open buckets per subject and series in a stream. A clock that jumps or a flood of records would
/// open more.
const MAX_OPEN_BUCKETS: usize = 128;
/// Largest number of cells of open buckets over all subjects, 16 bytes each.
const MAX_OPEN_CELLS: usize = 1 << 25;

/// Records of a batch in the form that the series need.
#[derive(Clone, Debug, Default)]
pub struct SeriesReadings {
    /// Subject digests; 0 if the record has no subject.
    pub subjects: Vec<u64>,
    /// Event times in milliseconds since 1970; none if the record has no event time.
    pub times: Vec<Option<i64>>,
    /// Values per attribute, NaN if missing. Empty for attributes that no series uses.
    pub values: Vec<Vec<f64>>,
    /// Labels of the strata of subjects with an unknown stratum, in the order of the settings.
    pub strata: BTreeMap<u64, Vec<String>>,
    /// Contributions received from other instances, in place of records; none if this instance reads the records.
    pub received: Option<ReceivedContributions>,
}

impl SeriesBatchStep<'_> {
    /// Adds the records of a batch, and after each one closes the buckets that it completes. Rows therefore depend on
    /// the order of the records, not on their batches. Records with an event time after `clock_ms` are dropped.
    pub fn add_records(&mut self, readings: &SeriesReadings, clock_ms: Option<i64>) {
        for (row, (&subject, &time)) in readings.subjects.iter().zip(&readings.times).enumerate() {
            let Some(time_ms) = time.filter(|_| subject != 0) else {
                self.head.counts.iter_mut().for_each(|of_series| of_series.unplaced += 1);
                continue;
            };
            if clock_ms.is_some_and(|clock| time_ms > clock) {
                self.head.counts.iter_mut().for_each(|of_series| of_series.early += 1);
                self.drop_record(row);
                continue;
            }
            let has_room = self.has_room_for(subject);
            let crowd = self.terms.cohorts.crowd;
            let has_advanced = has_room && note_latest_time(&mut self.head.front, crowd, subject, time_ms);
            if has_room {
                self.note_day_and_stratum(subject, time_ms, readings.strata.get(&subject));
            }
            for series in 0..self.terms.series.len() {
                // A series with noise counts subjects beyond the limit as well, so that no subject displaces another.
                if !has_room && self.terms.series[series].noise.is_none() {
                    self.head.counts[series].over_limit += 1;
                    self.dropped.insert((row, series));
                    continue;
                }
                let bucket = self.terms.series[series].bucket(time_ms);
                let add = |partials: &mut [PartialSum], signals: &[SeriesSignal]| {
                    for (partial, signal) in partials.iter_mut().zip(signals) {
                        partial.add_clipped(readings.values[signal.attribute][row], signal.range);
                    }
                };
                if !self.add_to_bucket((series, bucket), subject, 1, add) {
                    self.dropped.insert((row, series));
                }
            }
            if has_advanced {
                self.close_due_buckets(false);
            }
        }
    }

    fn drop_record(&mut self, row: usize) {
        self.dropped.extend((0..self.terms.series.len()).map(|series| (row, series)));
    }

    fn has_room_for(&self, subject: u64) -> bool {
        self.person(subject).is_some()
            || self.known_subjects_bound() * self.terms.histories_per_subject() < self.terms.cohorts.max_histories
    }

    /// Adds received contributions, and after each one closes the buckets that it completes. Rows therefore depend on
    /// the order of the contributions, not on their batches. Dropped sums are recorded by position.
    pub(super) fn add_received(&mut self, received: &ReceivedContributions) {
        self.source_limits = Some((received.sources.clone(), received.idle.clone()));
        let mut position = 0;
        for contributions in &received.contributions {
            self.add_partition_contributions(contributions, &mut position);
            self.close_due_buckets(false);
        }
        // A partition may now be idle.
        self.close_due_buckets(false);
    }

    fn add_partition_contributions(&mut self, contributions: &PartitionContributions, position: &mut usize) {
        let PartitionContributions { source, next, unplaced, early, front, people, sent_ms: _ } = contributions;
        for of_series in &mut self.head.counts {
            of_series.unplaced += unplaced;
            of_series.early += early;
        }
        for person in people {
            let subject = person.subject;
            let has_room = self.has_room_for(subject);
            if has_room {
                let labels = Some(&person.labels).filter(|labels| !labels.is_empty());
                person
                    .days
                    .iter()
                    .for_each(|day| self.note_day_and_stratum(subject, day.saturating_mul(DAY_MS), labels));
            }
            for sums in &person.buckets {
                let series = usize::from(sums.series);
                let is_taken = if has_room || self.terms.series[series].noise.is_some() {
                    let add = |partials: &mut [PartialSum], _: &[SeriesSignal]| {
                        for (signal, sum) in &sums.partials {
                            partials[usize::from(*signal)].add_partial(*sum);
                        }
                    };
                    self.add_to_bucket((series, sums.bucket), subject, sums.records, add)
                } else {
                    self.head.counts[series].over_limit += u64::from(sums.records);
                    false
                };
                if !is_taken {
                    self.dropped.insert((*position, series));
                }
                *position += 1;
            }
        }
        // Only the last part carries the progress of the partition. Earlier parts must not close a bucket.
        let Some(next) = next else { return };
        let crowd = self.terms.cohorts.crowd;
        let at = self.head.sources.iter().position(|known| known.source == *source).unwrap_or_else(|| {
            self.head.sources.push(SourceFront { source: *source, ..SourceFront::default() });
            self.head.sources.len() - 1
        });
        for (subject, time_ms) in front {
            if self.has_room_for(*subject) {
                note_latest_time(&mut self.head.front, crowd, *subject, *time_ms);
                note_latest_time(&mut self.head.sources[at].front, crowd, *subject, *time_ms);
            }
        }
        self.head.sources[at].next = *next;
    }

    /// Records a day with data, and the stratum when a record first has all of its labels.
    fn note_day_and_stratum(&mut self, subject: u64, time_ms: i64, labels: Option<&Vec<String>>) {
        let day = time_ms.div_euclid(DAY_MS);
        let known = self.person(subject);
        let strata = self.terms.cohorts.strata.len();
        let needs_stratum = labels.is_some() && known.is_none_or(|person| !person.has_stratum(strata));
        if known.is_some_and(|person| person.last_day >= day && person.days > 0) && !needs_stratum {
            return;
        }
        let channels = self.terms.channels();
        let person = self.person_mut(subject);
        if person.days == 0 || day > person.last_day {
            person.days += 1;
            person.last_day = day;
        }
        if person.histories.is_empty() {
            person.histories = vec![SubjectChannelHistory::default(); channels];
        }
        if let Some(labels) = labels.filter(|_| needs_stratum) {
            person.stratum.clone_from(labels);
        }
    }

    /// Adds records to the open bucket of their subject. Returns false if the bucket is closed or the limit of open
    /// buckets is reached.
    fn add_to_bucket(
        &mut self,
        (series, bucket): (usize, i64),
        subject: u64,
        records: u32,
        add: impl FnOnce(&mut [PartialSum], &[SeriesSignal]),
    ) -> bool {
        let terms = &self.terms.series[series];
        if terms.end(bucket) <= self.head.closed_ms[series] {
            self.head.counts[series].late += u64::from(records);
            return false;
        }
        let width = terms.signals.len();
        let series_number = u16::try_from(series).expect("few series");
        let is_batch = self.terms.cohorts.is_batch;
        let room = self.cells + width <= MAX_OPEN_CELLS;
        let buckets = self.open_mut(subject);
        let at = match buckets.iter().position(|open| open.series == series_number && open.bucket == bucket) {
            Some(at) => at,
            None if !room
                || !is_batch
                    && buckets.iter().filter(|open| open.series == series_number).count() >= MAX_OPEN_BUCKETS =>
            {
                self.head.counts[series].over_limit += u64::from(records);
                return false;
            }
            None => {
                let partials = vec![PartialSum::default(); width];
                buckets.push(OpenBucket { series: series_number, bucket, records: 0, partials });
                buckets.len() - 1
            }
        };
        let open = &mut buckets[at];
        let is_new = open.records == 0;
        open.records = open.records.saturating_add(records);
        add(&mut open.partials, &terms.signals);
        self.cells += if is_new { width } else { 0 };
        true
    }
}

impl PartialSum {
    /// Adds a value, clipped to the range of its signal. Ignores a value that is not finite.
    pub(super) fn add_clipped(&mut self, value: f64, (low, high): (f64, f64)) {
        if value.is_finite() {
            self.add_partial(Self { count: 1, sum: value.clamp(low, high) });
        }
    }

    pub(super) fn add_partial(&mut self, other: Self) {
        self.count = self.count.saturating_add(other.count);
        self.sum += other.sum;
    }

    /// Value of a subject, signal and bucket: the mean of the clipped values. None without values, or if the sum
    /// overflows.
    #[must_use]
    pub fn value(self, (low, high): (f64, f64)) -> Option<f64> {
        (self.count > 0 && self.sum.is_finite()).then(|| (self.sum / f64::from(self.count)).clamp(low, high))
    }
}

impl SubjectState {
    /// Returns true if the stratum is known.
    #[must_use]
    pub fn has_stratum(&self, strata: usize) -> bool {
        self.stratum.len() == strata
    }
}
