//! Contributions: the records of a batch, added to the open buckets of their people.

use super::state::{History, OpenBucket, Partial, Participant};
use super::step::Step;
use super::terms::DAY_MS;
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
            let has_room = self.person(subject).is_some()
                || self.people_known() * self.terms.weight_of_person() < self.terms.cohorts.max_histories;
            let has_advanced = has_room && self.advance_front(subject, time_ms);
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
                let value = |attribute: usize| readings.values[attribute][row];
                if !self.contribute(series, subject, time_ms, value) {
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

    /// Keeps the latest event times of `crowd` different people: fewer than that many cannot close a bucket for the others. Returns
    /// whether a time has changed.
    fn advance_front(&mut self, subject: u64, time_ms: i64) -> bool {
        let front = &mut self.head.front;
        if let Some((_, latest)) = front.iter_mut().find(|(known, _)| *known == subject) {
            let is_later = time_ms > *latest;
            *latest = time_ms.max(*latest);
            return is_later;
        }
        if front.len() < self.terms.cohorts.crowd {
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

    /// Adds a record to the open bucket of its person; false where the bucket is closed or there is no room for another one.
    fn contribute(&mut self, series: usize, subject: u64, time_ms: i64, value: impl Fn(usize) -> f64) -> bool {
        let terms = &self.terms.series[series];
        let bucket = terms.bucket(time_ms);
        if terms.end(bucket) <= self.head.closed_ms[series] {
            self.head.counts[series].late += 1;
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
                self.head.counts[series].over_limit += 1;
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
        open.records += 1;
        for (partial, signal) in open.partials.iter_mut().zip(&terms.signals) {
            let value = value(signal.attribute);
            if value.is_finite() {
                partial.count += 1;
                partial.sum += value.clamp(signal.range.0, signal.range.1);
            }
        }
        self.cells += if is_new { width } else { 0 };
        true
    }
}

impl Partial {
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
