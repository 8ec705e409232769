//! Closing of buckets: fill, contributor sets, checks and rows (docs/methods.md §13).

use super::intake::contribution;
use super::row::SeriesRow;
use super::state::{History, Membership, OpenBucket, Partial};
use super::statistics::{is_dominated, mean, quartiles, rounded, rounding_step, standard_deviation};
use super::step::{Foreknown, KnownChannel, Step};
use super::terms::SeriesTerms;
use std::collections::{BTreeMap, BTreeSet};

/// Share of the last value's distance from the person's mean that a missed bucket keeps.
pub const CARRY: f64 = 0.5;

/// Parts into which the whole time of a job is divided to compare when people wore what.
const TIME_PARTS: usize = 128;
/// Presence features over all people at most: 4 bytes each.
const MAX_FEATURES: usize = 1 << 24;

/// Contributions to a bucket by subject.
type Contributions = BTreeMap<u64, OpenBucket>;

/// A bucket that closes: end of its window, position of its series, the bucket.
type Due = (i64, usize, i64);

/// Values of a contributor set in one bucket.
struct SetValues {
    values: Vec<f64>,
    present: Vec<u64>,
}

impl Step<'_> {
    /// Closes the buckets that end before the watermark less the lateness of their series; at the end of a job all.
    pub(super) fn close_due(&mut self, is_end: bool) {
        let is_batch = self.terms.cohorts.is_batch;
        if is_batch && !is_end {
            return;
        }
        let is_passed = |series: usize| self.closing_time(series) > self.head.closed_ms[series];
        if !is_batch && !(0..self.terms.series.len()).any(is_passed) {
            return;
        }
        let until: Vec<i64> = (0..self.terms.series.len()).map(|series| self.closing_time(series)).collect();
        self.load_cohorts();
        let due = self.take_due(&until);
        if is_batch {
            self.foresee(&due);
            self.form_cohorts(0);
        }
        let mut until = until;
        if is_batch {
            // Buckets of a later job go on from here.
            until = self.head.closed_ms.clone();
            for (end_ms, series, _) in due.keys() {
                until[*series] = until[*series].max(*end_ms);
            }
        }
        let mut formed_ms = i64::MIN;
        let mut due = due.into_iter().peekable();
        while let Some(((end_ms, series, bucket), contributions)) = due.next() {
            if !is_batch && formed_ms != end_ms {
                self.form_cohorts(end_ms);
                formed_ms = end_ms;
            }
            self.publish(series, bucket, &contributions);
            self.note_seen(end_ms, &contributions);
            self.remember(series, bucket, &contributions);
            if due.peek().is_none_or(|((next_ms, ..), _)| *next_ms != end_ms) {
                self.retire_idle(end_ms);
            }
        }
        for (closed, until) in self.head.closed_ms.iter_mut().zip(until) {
            *closed = until.max(*closed);
        }
    }

    /// Time up to which the buckets of a series close.
    fn closing_time(&self, series: usize) -> i64 {
        let terms = &self.terms.series[series];
        if self.terms.cohorts.is_batch {
            return i64::MAX;
        }
        let front = &self.head.front;
        let watermark = front.iter().map(|(_, time)| *time).min().filter(|_| front.len() == self.terms.cohorts.crowd);
        watermark.map_or(i64::MIN, |time| terms.window(time.saturating_sub(terms.lateness_ms)))
    }

    /// Takes the open buckets that end by `until`, by series.
    fn take_due(&mut self, until: &[i64]) -> BTreeMap<Due, Contributions> {
        let mut due: BTreeMap<Due, Contributions> = BTreeMap::new();
        for subject in self.contributors() {
            let end = |open: &OpenBucket| self.terms.series[usize::from(open.series)].end(open.bucket);
            let is_due = |open: &OpenBucket| end(open) <= until[usize::from(open.series)];
            let terms = self.terms;
            let has_due = self.open_of(subject).iter().any(is_due);
            if !has_due {
                continue;
            }
            let buckets = self.open_mut(subject);
            for open in buckets.extract_if(.., |open| {
                terms.series[usize::from(open.series)].end(open.bucket) <= until[usize::from(open.series)]
            }) {
                let series = usize::from(open.series);
                let key = (terms.series[series].end(open.bucket), series, open.bucket);
                due.entry(key).or_default().insert(subject, open);
            }
        }
        due
    }

    /// Notes the number and the first of everybody's values, where all are known beforehand.
    fn foresee(&mut self, due: &BTreeMap<Due, Contributions>) {
        let channels = self.terms.channels();
        let signals: BTreeSet<usize> =
            self.terms.series.iter().flat_map(|series| series.signals.iter().map(|signal| signal.attribute)).collect();
        let signals: Vec<usize> = signals.into_iter().collect();
        let (Some((first_ms, ..)), Some((last_ms, ..))) = (due.keys().next(), due.keys().next_back()) else { return };
        let people = self.contributors_of(due);
        let parts = (MAX_FEATURES / (people * signals.len()).max(1)).clamp(1, TIME_PARTS);
        let span = (last_ms - first_ms).max(1) as f64;
        let part = |end_ms: i64| (((end_ms - first_ms) as f64 / span * parts as f64) as usize).min(parts - 1);
        let mut per_part: BTreeMap<(usize, usize), u32> = BTreeMap::new();
        for (end_ms, series, _) in due.keys() {
            *per_part.entry((*series, part(*end_ms))).or_default() += 1;
        }
        for ((_, series, bucket), contributions) in due {
            let first = self.terms.first_channel(*series);
            let terms = &self.terms.series[*series];
            for (&subject, open) in contributions {
                let known = self.foreknown.entry(subject).or_insert_with(|| Foreknown {
                    channels: vec![KnownChannel::default(); channels],
                    presence: vec![0.0; parts * signals.len()],
                });
                for (signal, partial) in open.partials.iter().enumerate() {
                    let Some(value) = contribution(*partial, terms.signals[signal].range) else { continue };
                    let attribute = signals.iter().position(|at| *at == terms.signals[signal].attribute).unwrap_or(0);
                    let buckets = &per_part[&(*series, part(terms.end(*bucket)))];
                    known.presence[part(terms.end(*bucket)) * signals.len() + attribute] += 1.0 / *buckets as f32;
                    let channel = &mut known.channels[first + terms.channel(*bucket, signal)];
                    if channel.values == 0 {
                        (channel.first, channel.bucket) = (value, *bucket);
                    }
                    channel.values += 1;
                }
            }
        }
    }

    fn contributors_of(&self, due: &BTreeMap<Due, Contributions>) -> usize {
        due.values().flat_map(|contributions| contributions.keys()).collect::<BTreeSet<_>>().len()
    }

    fn publish(&mut self, series: usize, bucket: i64, contributions: &Contributions) {
        let terms = &self.terms.series[series];
        let first_row = self.rows.len();
        let mut represented: BTreeSet<u64> = BTreeSet::new();
        for block in self.blocks(terms) {
            for signal in 0..terms.signals.len() {
                let channel = self.terms.first_channel(series) + terms.channel(bucket, signal);
                let sets: Vec<(u32, u16)> =
                    block.iter().map(|&cohort| (cohort, self.contributor_set(cohort, channel))).collect();
                if sets.iter().all(|(_, atoms)| *atoms == 0) {
                    continue;
                }
                let set = self.set_values(&sets, (series, bucket, signal), channel, contributions);
                let Some(row) = self.row(&sets, (series, bucket, signal), channel, &set) else { continue };
                self.rows.push(row);
                represented.extend(set.present);
                for (number, atoms) in sets.into_iter().filter(|(_, atoms)| *atoms != 0) {
                    let cohort = self.cohorts.get_mut(&number).expect("a cohort of this step");
                    if cohort.sets[channel].is_none() {
                        cohort.sets[channel] = Some(atoms);
                        self.changed_cohorts.insert(number);
                    }
                }
            }
        }
        let totals = &mut self.head.totals;
        for (subject, open) in contributions {
            totals.records += u64::from(open.records);
            totals.represented += if represented.contains(subject) { u64::from(open.records) } else { 0 };
        }
        self.add_population(series, bucket, first_row);
        self.head.totals.rows += (self.rows.len() - first_row) as u64;
    }

    /// Cohorts whose rows are made together: each by itself, or all of a stratum.
    fn blocks(&self, terms: &SeriesTerms) -> Vec<Vec<u32>> {
        let active = self.cohorts.iter().filter(|(_, cohort)| !cohort.is_retired);
        if !terms.pooled {
            return active.map(|(number, _)| vec![*number]).collect();
        }
        let mut strata: BTreeMap<&[String], Vec<u32>> = BTreeMap::new();
        for (number, cohort) in active {
            strata.entry(&cohort.stratum).or_default().push(*number);
        }
        strata.into_values().collect()
    }

    /// Atoms of the contributor set as bits: the locked ones, or those all of whose members have enough values.
    fn contributor_set(&self, cohort: u32, channel: usize) -> u16 {
        let cohort = &self.cohorts[&cohort];
        if let Some(locked) = cohort.sets[channel] {
            return locked;
        }
        let is_whole = |members: &[u64]| {
            members
                .iter()
                .all(|subject| self.person(*subject).is_some_and(|person| self.worn(*subject, person)[channel]))
        };
        let whole = cohort.atoms.iter().enumerate().filter(|(_, atom)| is_whole(&atom.members));
        whole.fold(0, |bits, (index, _)| bits | 1 << index)
    }

    /// Value of every member: the contribution, or the carried value of an absent one.
    fn set_values(
        &self,
        sets: &[(u32, u16)],
        (series, bucket, signal): (usize, i64, usize),
        channel: usize,
        contributions: &Contributions,
    ) -> SetValues {
        let terms = &self.terms.series[series];
        let (mut values, mut present) = (Vec::new(), Vec::new());
        for &(number, atoms) in sets {
            for subject in self.cohorts[&number].members(atoms) {
                let partial = contributions.get(&subject).map_or(Partial::default(), |open| open.partials[signal]);
                match contribution(partial, terms.signals[signal].range) {
                    Some(value) => {
                        values.push(value);
                        present.push(subject);
                    }
                    None => values.push(self.carried(subject, channel, terms, bucket)),
                }
            }
        }
        SetValues { values, present }
    }

    /// b + ρ^g (x − b) of the person's mean b and last value x, g buckets ago.
    fn carried(&self, subject: u64, channel: usize, terms: &SeriesTerms, bucket: i64) -> f64 {
        let history =
            self.person(subject).and_then(|person| person.histories.get(channel)).copied().unwrap_or_default();
        if history.values == 0 {
            return self.foreknown.get(&subject).map_or(0.0, |known| known.channels[channel].first);
        }
        let missed = i32::try_from(terms.windows_between(history.bucket, bucket)).unwrap_or(i32::MAX);
        history.mean + CARRY.powi(missed) * (history.last - history.mean)
    }

    /// The row of a contributor set; none where too few are present, or where one member can be told from it.
    fn row(
        &mut self,
        sets: &[(u32, u16)],
        (series, bucket, signal): (usize, i64, usize),
        channel: usize,
        set: &SetValues,
    ) -> Option<SeriesRow> {
        let SetValues { values, present } = set;
        let crowd = self.terms.cohorts.crowd;
        if present.len() < crowd {
            self.head.totals.too_few += u64::from(!present.is_empty());
            return None;
        }
        let deviation = standard_deviation(values);
        let step = self.head.steps[channel].or_else(|| rounding_step(deviation, values.len()));
        let Some(step) = step.filter(|step| rounded(deviation, *step) > 0.0 && !is_dominated(values)) else {
            self.head.totals.dominated += 1;
            return None;
        };
        self.head.steps[channel] = Some(step);
        let is_pooled = self.terms.series[series].pooled;
        let first = &self.cohorts[&sets[0].0];
        let missing = (values.len() - present.len()) as f64;
        Some(SeriesRow {
            series,
            cohort: (!is_pooled).then(|| first.token.clone()),
            stratum: Some(first.stratum.clone()),
            bucket,
            signal,
            sets: sets.iter().copied().filter(|(_, atoms)| *atoms != 0).collect(),
            n: values.len() as u64,
            mean: rounded(mean(values), step),
            sd: rounded(deviation, step),
            quartiles: (values.len() >= 2 * crowd).then(|| quartiles(values).map(|quartile| rounded(quartile, step))),
            filled: (missing / values.len() as f64 * 10.0).round() / 10.0,
        })
    }

    /// Adds the rows of whole strata and of everybody: functions of the rows from `first_row` on alone.
    fn add_population(&mut self, series: usize, bucket: i64, first_row: usize) {
        let is_stratified = !self.terms.cohorts.strata.is_empty();
        let terms = &self.terms.series[series];
        let published = self.rows[first_row..].to_vec();
        for signal in 0..terms.signals.len() {
            let Some(step) = self.head.steps[self.terms.first_channel(series) + terms.channel(bucket, signal)] else {
                continue;
            };
            let rows: Vec<&SeriesRow> = published.iter().filter(|row| row.signal == signal).collect();
            let mut strata: BTreeMap<Option<&[String]>, Vec<&SeriesRow>> = BTreeMap::new();
            for row in &rows {
                if !terms.pooled {
                    strata.entry(row.stratum.as_deref()).or_default().push(row);
                }
                if is_stratified {
                    strata.entry(None).or_default().push(row);
                }
            }
            for (stratum, rows) in strata {
                self.rows.push(rolled_up(&rows, stratum.map(<[String]>::to_vec), step));
            }
        }
    }

    /// Notes the cohorts of which enough members were present.
    fn note_seen(&mut self, end_ms: i64, contributions: &Contributions) {
        let mut present: BTreeMap<u32, usize> = BTreeMap::new();
        for subject in contributions.keys() {
            if let Some(Membership::Member(number)) = self.person(*subject).map(|person| person.membership) {
                *present.entry(number).or_default() += 1;
            }
        }
        for (number, members) in present {
            let cohort = self.cohorts.get_mut(&number).expect("members have a cohort");
            if members >= self.terms.cohorts.crowd && cohort.seen_ms < end_ms {
                cohort.seen_ms = end_ms;
                self.changed_cohorts.insert(number);
            }
        }
    }

    /// Adds the values of a closed bucket to the histories.
    fn remember(&mut self, series: usize, bucket: i64, contributions: &Contributions) {
        let terms = &self.terms.series[series];
        let (first, channels) = (self.terms.first_channel(series), self.terms.channels());
        for (&subject, open) in contributions {
            let person = self.person_mut(subject);
            person.histories.resize(channels, History::default());
            for (signal, partial) in open.partials.iter().enumerate() {
                if let Some(value) = contribution(*partial, terms.signals[signal].range) {
                    let history = &mut person.histories[first + terms.channel(bucket, signal)];
                    history.values += 1;
                    history.mean += (value - history.mean) / f64::from(history.values);
                    (history.last, history.bucket) = (value, bucket);
                }
            }
        }
    }
}

/// The row of several published rows of one signal and bucket. Each weighs as much as it has people who were present, as far as its
/// rounded share says.
fn rolled_up(rows: &[&SeriesRow], stratum: Option<Vec<String>>, step: f64) -> SeriesRow {
    let weight = |row: &SeriesRow| row.n as f64 * (1.0 - row.filled).max(0.1);
    let total: f64 = rows.iter().map(|row| weight(row)).sum();
    let mean = rows.iter().map(|row| row.mean * weight(row)).sum::<f64>() / total;
    let variance =
        rows.iter().map(|row| (row.sd.powi(2) + (row.mean - mean).powi(2)) * weight(row)).sum::<f64>() / total;
    let people: f64 = rows.iter().map(|row| row.n as f64).sum();
    let filled = rows.iter().map(|row| row.filled * row.n as f64).sum::<f64>() / people;
    SeriesRow {
        cohort: None,
        stratum,
        n: rows.iter().map(|row| row.n).sum(),
        mean: rounded(mean, step),
        sd: rounded(variance.sqrt(), step),
        quartiles: None,
        sets: Vec::new(),
        filled: (filled * 10.0).round() / 10.0,
        ..rows[0].clone()
    }
}
