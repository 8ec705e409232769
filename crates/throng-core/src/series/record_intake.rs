//! Adds records to open buckets.

use super::batch_step::SeriesBatchStep;
use super::contributions::{PartitionContributions, ReceivedContributions, note_latest_time};
use super::state::{OpenBucket, PartialSum, SourceFront, SubjectChannelHistory, SubjectState};
use super::terms::{DAY_MS, SeriesSignal};
use std::collections::BTreeMap;

/// Per subject and series in a stream, against clock jumps and floods.
const MAX_OPEN_BUCKETS: usize = 128;
/// Over all subjects, 16 bytes each.
const MAX_OPEN_CELLS: usize = 1 << 25;

/// Records of a batch, for series.
#[derive(Clone, Debug, Default)]
pub struct SeriesReadings {
    /// Subject digests; 0 without subject.
    pub subjects: Vec<u64>,
    /// Event times in ms since 1970.
    pub times: Vec<Option<i64>>,
    /// Values by attribute, NaN if missing; empty if unused.
    pub values: Vec<Vec<f64>>,
    /// Labels of subjects without a known stratum.
    pub strata: BTreeMap<u64, Vec<String>>,
    /// Contributions in place of records, if any.
    pub received: Option<ReceivedContributions>,
}

impl SeriesBatchStep<'_> {
    /// Adds records and closes buckets one by one, so rows do not depend on batches. Drops records after `clock_ms`.
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
                // With noise, a subject without a history counts as well.
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

    /// Adds contributions and closes buckets one by one, so rows do not depend on batches.
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
        // Earlier parts must not close a bucket.
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

    /// Returns false if the bucket is closed or a limit is reached.
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
    /// Adds a clipped value; ignores non-finite values.
    pub(super) fn add_clipped(&mut self, value: f64, (low, high): (f64, f64)) {
        if value.is_finite() {
            self.add_partial(Self { count: 1, sum: value.clamp(low, high) });
        }
    }

    pub(super) fn add_partial(&mut self, other: Self) {
        self.count = self.count.saturating_add(other.count);
        self.sum += other.sum;
    }

    /// Returns the mean of clipped values; none without values or on overflow.
    #[must_use]
    pub fn value(self, (low, high): (f64, f64)) -> Option<f64> {
        (self.count > 0 && self.sum.is_finite()).then(|| (self.sum / f64::from(self.count)).clamp(low, high))
    }
}

impl SubjectState {
    /// Checks if the stratum is known.
    #[must_use]
    pub fn has_stratum(&self, strata: usize) -> bool {
        self.stratum.len() == strata
    }
}
