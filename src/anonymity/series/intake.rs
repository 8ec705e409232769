//! Contributions: the records of a batch, added to the open buckets of their people.

use super::contributions::{Contributions, Received, advance};
use super::state::{History, OpenBucket, Partial, Participant, SourceFront};
use super::step::Step;
use super::terms::{DAY_MS, Signal};
use std::collections::BTreeMap;

/// Open buckets of one person in one series of a stream. More come from a clock that jumps, or from a flood.
const MAX_OPEN_BUCKETS: usize = 128;
/// Cells of open buckets over all people: 16 bytes each.
const MAX_OPEN_CELLS: usize = 1 << 25;

/// The records of a batch as the series need them.
#[derive(Clone, Debug, Default)]
pub struct Readings {
    /// Subject digests; 0: the record has no subject.
    pub subjects: Vec<u64>,
    /// Event times in milliseconds since 1970; none where a record has none.
    pub times: Vec<Option<i64>>,
    /// By attribute: the values, NaN where missing. Empty for attributes that no series needs.
    pub values: Vec<Vec<f64>>,
    /// Labels of the strata of people whose stratum is not known yet, in the order of the terms.
    pub strata: BTreeMap<u64, Vec<String>>,
    /// Contributions of records that other batches have read, in place of records; none where the records are taken in here.
    pub received: Option<Received>,
}

impl Step<'_> {
    /// Adds the records of a batch, and closes the buckets that their times complete, one record after the other: rows are a function of
    /// the order of the records and not of their batches. Records ahead of `clock_ms` are counted and dropped.
    pub fn take_in(&mut self, readings: &Readings, clock_ms: Option<i64>) {
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
            let has_advanced = has_room && advance(&mut self.head.front, crowd, subject, time_ms);
            if has_room {
                self.meet(subject, time_ms, readings.strata.get(&subject));
            }
            for series in 0..self.terms.series.len() {
                // A series with noise remembers nobody, so that no person takes the place of another.
                if !has_room && self.terms.series[series].noise.is_none() {
                    self.head.counts[series].over_limit += 1;
                    self.dropped.insert((row, series));
                    continue;
                }
                let bucket = self.terms.series[series].bucket(time_ms);
                let add = |partials: &mut [Partial], signals: &[Signal]| {
                    for (partial, signal) in partials.iter_mut().zip(signals) {
                        partial.add(readings.values[signal.attribute][row], signal.range);
                    }
                };
                if !self.contribute((series, bucket), subject, 1, add) {
                    self.dropped.insert((row, series));
                }
            }
            if has_advanced {
                self.close_due(false);
            }
        }
    }

    /// Notes that a record contributes to no series.
    fn drop_record(&mut self, row: usize) {
        self.dropped.extend((0..self.terms.series.len()).map(|series| (row, series)));
    }

    fn has_room_for(&self, subject: u64) -> bool {
        self.person(subject).is_some()
            || self.people_known() * self.terms.weight_of_person() < self.terms.cohorts.max_histories
    }

    /// Adds contributions that have arrived, and closes the buckets that they complete, one after the other: rows are a function of their
    /// order and not of the batches in which they arrive. What is dropped is noted under its position among all sums.
    pub(super) fn take_received(&mut self, received: &Received) {
        self.source_limits = Some((received.sources.clone(), received.idle.clone()));
        let mut position = 0;
        for contributions in &received.contributions {
            self.take_contributions(contributions, &mut position);
            self.close_due(false);
        }
        // A partition may have turned out to have nothing unread since the last contribution.
        self.close_due(false);
    }

    fn take_contributions(&mut self, contributions: &Contributions, position: &mut usize) {
        let Contributions { source, next, unplaced, early, front, people, sent_ms: _ } = contributions;
        for of_series in &mut self.head.counts {
            of_series.unplaced += unplaced;
            of_series.early += early;
        }
        for person in people {
            let subject = person.subject;
            let has_room = self.has_room_for(subject);
            if has_room {
                let labels = Some(&person.labels).filter(|labels| !labels.is_empty());
                person.days.iter().for_each(|day| self.meet(subject, day.saturating_mul(DAY_MS), labels));
            }
            for sums in &person.buckets {
                let series = usize::from(sums.series);
                let is_taken = if has_room || self.terms.series[series].noise.is_some() {
                    let add = |partials: &mut [Partial], _: &[Signal]| {
                        for (signal, sum) in &sums.partials {
                            partials[usize::from(*signal)].merge(*sum);
                        }
                    };
                    self.contribute((series, sums.bucket), subject, sums.records, add)
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
        // Only the last part says how far the partition has come: before it, the others are no reason to wait no longer.
        let Some(next) = next else { return };
        let crowd = self.terms.cohorts.crowd;
        let at = self.head.sources.iter().position(|known| known.source == *source).unwrap_or_else(|| {
            self.head.sources.push(SourceFront { source: *source, ..SourceFront::default() });
            self.head.sources.len() - 1
        });
        for (subject, time_ms) in front {
            if self.has_room_for(*subject) {
                advance(&mut self.head.front, crowd, *subject, *time_ms);
                advance(&mut self.head.sources[at].front, crowd, *subject, *time_ms);
            }
        }
        self.head.sources[at].next = *next;
    }

    /// Notes a day with data, and the stratum the first time that a record has all of its labels.
    fn meet(&mut self, subject: u64, time_ms: i64, labels: Option<&Vec<String>>) {
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
            person.histories = vec![History::default(); channels];
        }
        if let Some(labels) = labels.filter(|_| needs_stratum) {
            person.stratum.clone_from(labels);
        }
    }

    /// Adds records to the open bucket of their person; false where the bucket is closed or there is no room for another one.
    fn contribute(
        &mut self,
        (series, bucket): (usize, i64),
        subject: u64,
        records: u32,
        add: impl FnOnce(&mut [Partial], &[Signal]),
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
                let partials = vec![Partial::default(); width];
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

impl Partial {
    /// Adds a value, clipped to the range of its signal; nothing where it is no number.
    pub(super) fn add(&mut self, value: f64, (low, high): (f64, f64)) {
        if value.is_finite() {
            self.merge(Self { count: 1, sum: value.clamp(low, high) });
        }
    }

    /// Adds another sum.
    pub(super) fn merge(&mut self, other: Self) {
        self.count = self.count.saturating_add(other.count);
        self.sum += other.sum;
    }

    /// Value of a person, signal and bucket: the mean of the values, each clipped to the signal's range; none without values, or where
    /// their sum is beyond a double.
    #[must_use]
    pub fn value(self, (low, high): (f64, f64)) -> Option<f64> {
        (self.count > 0 && self.sum.is_finite()).then(|| (self.sum / f64::from(self.count)).clamp(low, high))
    }
}

impl Participant {
    /// Whether the stratum is known.
    #[must_use]
    pub fn has_stratum(&self, strata: usize) -> bool {
        self.stratum.len() == strata
    }
}
