//! Closing of buckets: fill, contributor sets, checks and rows (docs/methods.md §13). `moments` publishes series with moments.

use super::bins::{MemberValue, binned};
use super::moments::complete_row;
use super::nested::is_nested;
use super::row::{SeriesRow, Statistic};
use super::state::{History, Membership, OpenBucket};
use super::statistics::{
    MeanStatistic, are_equal, is_dominated, mean, quartiles, rounded_statistic, standard_deviation,
};
use super::step::{Foreknown, KnownChannel, Step};
use super::terms::{SeriesTerms, Signal};
use std::collections::{BTreeMap, BTreeSet, HashSet};

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

/// Members of contributor sets with what they contributed to one bucket: looked up once for all signals with the same sets.
#[derive(Default)]
struct Members<'a> {
    sets: Vec<(u32, u16)>,
    people: Vec<(u64, Option<&'a OpenBucket>)>,
    /// By member, whether a published row has a value of theirs.
    is_shown: Vec<bool>,
}

impl Members<'_> {
    /// Members of whom a value was published.
    fn shown(&self) -> impl Iterator<Item = u64> + '_ {
        self.people.iter().zip(&self.is_shown).filter(|(_, is_shown)| **is_shown).map(|((subject, _), _)| *subject)
    }
}

impl Step<'_> {
    /// Closes the buckets that end before the watermark less the lateness of their series; with `is_end` all.
    pub(super) fn close_due(&mut self, is_end: bool) {
        let is_batch = self.terms.cohorts.is_batch;
        if is_batch && !is_end {
            return;
        }
        let closing_time = |series: usize| if is_end { i64::MAX } else { self.watermark(series) };
        let until: Vec<i64> = (0..self.terms.series.len()).map(closing_time).collect();
        if until.iter().zip(&self.head.closed_ms).all(|(until, closed)| until <= closed) {
            return;
        }
        self.load_cohorts();
        let mut due = self.take_due(&until);
        let mut until = until;
        if is_end {
            self.leave_out_unreached(&mut due);
            // Buckets of a later job go on from here.
            until = self.head.closed_ms.clone();
            for (end_ms, series, _) in due.keys() {
                until[*series] = until[*series].max(*end_ms);
            }
        }
        self.close_with_noise(&until, &mut due);
        if is_batch {
            self.foresee(&due);
            self.form_cohorts(0);
        }
        let mut formed_ms = i64::MIN;
        let mut due = due.into_iter().peekable();
        while let Some(((end_ms, series, bucket), contributions)) = due.next() {
            self.close_epoch(series, Some(bucket), i64::MIN);
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
        for (series, until) in until.into_iter().enumerate() {
            let closed_ms = until.max(self.head.closed_ms[series]);
            self.close_epoch(series, None, if is_end { i64::MAX } else { closed_ms });
            self.head.closed_ms[series] = closed_ms;
        }
    }

    /// Time up to which the buckets of a series close in a stream: a crowd of people has passed it, and every source partition with
    /// unread records.
    fn watermark(&self, series: usize) -> i64 {
        let limits = self.source_limits.as_ref().map(|(sources, idle)| (&sources[..], idle));
        self.head.watermark(self.terms, series, limits)
    }

    /// Leaves out buckets behind the last one that a crowd of people reach: at the end of a job one person's date would close the
    /// buckets before it to everybody. A later job with the state may have the others' records of them.
    fn leave_out_unreached(&mut self, due: &mut BTreeMap<Due, Contributions>) {
        let front = self.head.front.iter().map(|(_, time)| *time).min();
        let reached = front.filter(|_| self.head.front.len() == self.terms.cohorts.crowd);
        let terms = self.terms;
        let is_unreached = |(end_ms, series, _): &Due| {
            let of_series = &terms.series[*series];
            reached.is_none_or(|time| *end_ms > of_series.end(of_series.bucket(time)))
        };
        let unreached: Vec<(Due, Contributions)> = due.extract_if(.., |at, _| is_unreached(at)).collect();
        for ((_, series, _), contributions) in unreached {
            let (records, warming_up) = self.records_of(&contributions);
            self.head.counts[series].records += records;
            self.head.counts[series].warming_up += warming_up;
        }
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
                if !self.foreknown.contains_key(&subject) {
                    let histories = self.person(subject).map_or(&[][..], |person| &person.histories);
                    let past = |at: usize| histories.get(at).map_or(0, |history| history.values);
                    let known = |at: usize| KnownChannel { past: past(at), ..KnownChannel::default() };
                    let known = Foreknown {
                        channels: (0..channels).map(known).collect(),
                        presence: vec![0.0; parts * signals.len()],
                        moments: Vec::new(),
                    };
                    self.foreknown.insert(subject, known);
                }
                let Some(known) = self.foreknown.get_mut(&subject) else { continue };
                let row = complete_row(terms, open);
                if terms.moments.is_some() && row.is_none() {
                    continue;
                }
                for (signal, partial) in open.partials.iter().enumerate() {
                    let Some(value) = partial.value(terms.signals[signal].range) else { continue };
                    let attribute = signals.iter().position(|at| *at == terms.signals[signal].attribute).unwrap_or(0);
                    let buckets = &per_part[&(*series, part(terms.end(*bucket)))];
                    known.presence[part(terms.end(*bucket)) * signals.len() + attribute] += 1.0 / *buckets as f32;
                    if row.is_none() {
                        known.channels[first + terms.channel(*bucket, signal)].note(*bucket, value);
                    }
                }
                if let (Some(moments), Some(values)) = (&terms.moments, row) {
                    let place = (*series, self.terms.series.len());
                    let rows = known.note_row(place, moments.epoch(*bucket), &values, terms.min_values);
                    let channel = &mut known.channels[first];
                    channel.note(*bucket, values[0]);
                    channel.values = rows;
                }
            }
        }
    }

    fn contributors_of(&self, due: &BTreeMap<Due, Contributions>) -> usize {
        due.values().flat_map(|contributions| contributions.keys()).collect::<BTreeSet<_>>().len()
    }

    fn publish(&mut self, series: usize, bucket: i64, contributions: &Contributions) {
        let terms = &self.terms.series[series];
        if terms.moments.is_some() {
            return;
        }
        let first_row = self.rows.len();
        let mut represented: HashSet<u64> = HashSet::new();
        for block in self.blocks(terms) {
            let mut members = Members::default();
            let mut means: Vec<(Vec<(u32, u16)>, Vec<f64>)> = Vec::new();
            for signal in 0..terms.signals.len() {
                let channel = self.terms.first_channel(series) + terms.channel(bucket, signal);
                let sets: Vec<(u32, u16)> =
                    block.iter().map(|&cohort| (cohort, self.contributor_set(terms, cohort, channel))).collect();
                if sets.iter().all(|(_, atoms)| *atoms == 0) {
                    continue;
                }
                if members.sets != sets {
                    represented.extend(members.shown());
                    members = self.members(sets, contributions);
                }
                let values = self.values_of(&members, (series, bucket, signal), channel);
                let present = values.iter().filter(|member| !member.is_carried).count();
                let statistics = {
                    let same = means.iter().filter(|(sets, _)| *sets == members.sets).map(|(_, values)| values);
                    self.statistics((series, &terms.signals[signal]), &values, present, same)
                };
                if statistics.is_empty() {
                    continue;
                }
                if let [Statistic::Mean(_)] = &statistics[..] {
                    means.push((members.sets.clone(), values.iter().map(|member| member.value).collect()));
                }
                for statistic in statistics {
                    let people = (values.len(), present);
                    let row = self.row_of(&members.sets, (series, bucket, signal), people, statistic);
                    self.rows.push(row);
                }
                for (is_shown, member) in members.is_shown.iter_mut().zip(&values) {
                    *is_shown |= !member.is_carried;
                }
                self.lock(&members.sets, channel);
            }
            represented.extend(members.shown());
        }
        let (records, warming_up) = self.records_of(contributions);
        let shown = contributions.iter().filter(|(subject, _)| represented.contains(subject));
        let totals = &mut self.head.counts[series];
        totals.records += records;
        totals.represented += shown.map(|(_, open)| u64::from(open.records)).sum::<u64>();
        totals.warming_up += warming_up;
        self.add_population(series, first_row);
        self.head.counts[series].rows += (self.rows.len() - first_row) as u64;
    }

    /// Number of the records of a closed bucket, and of those of people in their warm-up.
    pub(super) fn records_of(&self, contributions: &Contributions) -> (u64, u64) {
        let warm_up = self.terms.cohorts.warm_up_days;
        let is_warming_up = |subject: &u64| self.person(*subject).is_some_and(|person| person.days < warm_up);
        contributions.iter().fold((0, 0), |(all, warming_up), (subject, open)| {
            let records = u64::from(open.records);
            (all + records, warming_up + if is_warming_up(subject) { records } else { 0 })
        })
    }

    /// Locks contributor sets that have been published.
    pub(super) fn lock(&mut self, sets: &[(u32, u16)], channel: usize) {
        for &(number, atoms) in sets.iter().filter(|(_, atoms)| *atoms != 0) {
            let cohort = self.cohorts.get_mut(&number).expect("a cohort of this step");
            if cohort.sets[channel].is_none() {
                cohort.sets[channel] = Some(atoms);
                self.changed_cohorts.insert(number);
            }
        }
    }

    /// Cohorts whose rows are made together: each by itself, or all of a stratum.
    pub(super) fn blocks(&self, terms: &SeriesTerms) -> Vec<Vec<u32>> {
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
    pub(super) fn contributor_set(&self, terms: &SeriesTerms, cohort: u32, channel: usize) -> u16 {
        let cohort = &self.cohorts[&cohort];
        if let Some(locked) = cohort.sets[channel] {
            return locked;
        }
        let has_worn =
            |subject: &u64| self.person(*subject).is_some_and(|person| self.has_worn(*subject, person, channel, terms));
        let is_whole = |members: &[u64]| members.iter().all(has_worn);
        let whole = cohort.atoms.iter().enumerate().filter(|(_, atom)| is_whole(&atom.members));
        whole.fold(0, |bits, (index, _)| bits | 1 << index)
    }

    fn members<'a>(&self, sets: Vec<(u32, u16)>, contributions: &'a Contributions) -> Members<'a> {
        let subjects = sets.iter().flat_map(|(number, atoms)| self.cohorts[number].members(*atoms));
        let people: Vec<_> = subjects.map(|subject| (subject, contributions.get(&subject))).collect();
        Members { is_shown: vec![false; people.len()], sets, people }
    }

    /// Value of every member: the contribution, or the carried value of an absent one.
    fn values_of(
        &self,
        members: &Members<'_>,
        (series, bucket, signal): (usize, i64, usize),
        channel: usize,
    ) -> Vec<MemberValue> {
        let terms = &self.terms.series[series];
        let value = |(subject, open): &(u64, Option<&OpenBucket>)| {
            let own = open.and_then(|open| open.partials[signal].value(terms.signals[signal].range));
            let value = own.unwrap_or_else(|| self.carried(*subject, channel, terms, bucket));
            MemberValue { value, is_carried: own.is_none() }
        };
        members.people.iter().map(value).collect()
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

    /// Statistics of a contributor set: one of location and spread, or the shares of intervals where one member could be told from it, or
    /// from it and the means of the same members in `before`; none where too few are present.
    fn statistics<'v>(
        &mut self,
        (series, signal): (usize, &Signal),
        members: &[MemberValue],
        present: usize,
        mut before: impl Iterator<Item = &'v Vec<f64>>,
    ) -> Vec<Statistic> {
        let (crowd, colluders) = (self.terms.cohorts.crowd, self.terms.cohorts.colluders);
        if present < crowd {
            self.head.counts[series].too_few += u64::from(present > 0);
            return Vec::new();
        }
        let values: Vec<f64> = members.iter().map(|member| member.value).collect();
        let deviation = standard_deviation(&values);
        let is_withheld = are_equal(&values, deviation)
            || is_dominated(&values, signal.range, colluders)
            || before.any(|before| is_nested(before, &values, crowd, colluders));
        let quartiles = (values.len() >= 2 * crowd).then(|| quartiles(&values, crowd));
        let statistic = rounded_statistic(mean(&values), deviation, quartiles, values.len());
        let Some(statistic) = statistic.filter(|_| !is_withheld) else {
            let bins = signal.intervals.as_ref().and_then(|intervals| binned(members, intervals, crowd));
            let totals = &mut self.head.counts[series];
            *(if bins.is_some() { &mut totals.binned } else { &mut totals.dominated }) += 1;
            return bins.into_iter().flatten().map(|(label, share)| Statistic::Bin { label, share }).collect();
        };
        vec![Statistic::Mean(statistic)]
    }

    /// A row of a contributor set of `members` people, of whom `present` have a value.
    pub(super) fn row_of(
        &self,
        sets: &[(u32, u16)],
        (series, bucket, signal): (usize, i64, usize),
        (members, present): (usize, usize),
        statistic: Statistic,
    ) -> SeriesRow {
        let is_pooled = self.terms.series[series].pooled;
        let first = &self.cohorts[&sets[0].0];
        SeriesRow {
            series,
            cohort: (!is_pooled).then(|| first.token.clone()),
            stratum: Some(first.stratum.clone()),
            bucket,
            signal,
            sets: sets.iter().copied().filter(|(_, atoms)| *atoms != 0).collect(),
            n: members as u64,
            statistic,
            filled: ((members - present) as f64 / members as f64 * 10.0).round() / 10.0,
        }
    }

    /// Adds the rows of whole strata and of everybody: functions of the rows from `first_row` on alone.
    fn add_population(&mut self, series: usize, first_row: usize) {
        let is_stratified = !self.terms.cohorts.strata.is_empty();
        let terms = &self.terms.series[series];
        let mut parts: BTreeMap<(usize, Option<&[String]>), Vec<(&SeriesRow, MeanStatistic)>> = BTreeMap::new();
        for row in &self.rows[first_row..] {
            let Some(statistic) = row.mean_statistic() else { continue };
            if !terms.pooled {
                parts.entry((row.signal, row.stratum.as_deref())).or_default().push((row, statistic));
            }
            if is_stratified {
                parts.entry((row.signal, None)).or_default().push((row, statistic));
            }
        }
        let whole = parts.into_iter().map(|((_, stratum), rows)| rolled_up(&rows, stratum.map(<[String]>::to_vec)));
        let whole: Vec<SeriesRow> = whole.flatten().collect();
        self.rows.extend(whole);
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
            for (signal, partial) in open.partials.iter().enumerate().filter(|_| terms.moments.is_none()) {
                if let Some(value) = partial.value(terms.signals[signal].range) {
                    let history = &mut person.histories[first + terms.channel(bucket, signal)];
                    history.values += 1;
                    history.mean += (value - history.mean) / f64::from(history.values);
                    (history.last, history.bucket) = (value, bucket);
                }
            }
        }
        self.add_to_moments(series, bucket, contributions);
    }
}

/// The row of several published rows of one signal and bucket; none without rows. Each weighs as much as it has people who were present, as far as its
/// rounded share says.
fn rolled_up(rows: &[(&SeriesRow, MeanStatistic)], stratum: Option<Vec<String>>) -> Option<SeriesRow> {
    let weight = |row: &SeriesRow| row.n as f64 * (1.0 - row.filled).max(0.1);
    let total: f64 = rows.iter().map(|(row, _)| weight(row)).sum();
    let mean = rows.iter().map(|(row, of)| of.mean * weight(row)).sum::<f64>() / total;
    let square = |of: &MeanStatistic| of.sd.powi(2) + (of.mean - mean).powi(2);
    let variance = rows.iter().map(|(row, of)| square(of) * weight(row)).sum::<f64>() / total;
    let n: u64 = rows.iter().map(|(row, _)| row.n).sum();
    let filled = rows.iter().map(|(row, _)| row.filled * row.n as f64).sum::<f64>() / n as f64;
    let statistic = rounded_statistic(mean, variance.sqrt(), None, usize::try_from(n).unwrap_or(usize::MAX))?;
    Some(SeriesRow {
        cohort: None,
        stratum,
        n,
        statistic: Statistic::Mean(statistic),
        sets: Vec::new(),
        filled: (filled * 10.0).round() / 10.0,
        ..rows[0].0.clone()
    })
}
