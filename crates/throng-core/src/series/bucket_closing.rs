//! Closes buckets (docs/internals/methods.md §13).

use super::batch_step::{ChannelPreview, SeriesBatchStep, SubjectPreview};
use super::interval_bins::{MemberValue, shares_by_interval};
use super::moments::complete_row;
use super::nested_signals::reveals_small_rest;
use super::published_row::{RowStatistic, SeriesRow};
use super::state::{CohortMembership, OpenBucket, SubjectChannelHistory};
use super::statistics::{
    MeanStatistic, are_equal, is_dominated, mean, quartiles, rounded_statistic, standard_deviation,
};
use super::terms::{SeriesSignal, SeriesTerms};
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// Share of the distance from the mean that remains per missed bucket.
pub const CARRIED_SHARE: f64 = 0.5;

const PRESENCE_PARTS: usize = 128;
/// 4 bytes each, over all subjects.
const MAX_PRESENCE_FEATURES: usize = 1 << 24;

type BucketContributions = BTreeMap<u64, OpenBucket>;

/// End of the window, series, bucket.
type DueBucket = (i64, usize, i64);

#[derive(Default)]
struct BucketMembers<'a> {
    sets: Vec<(u32, u16)>,
    people: Vec<(u64, Option<&'a OpenBucket>)>,
    is_shown: Vec<bool>,
}

impl BucketMembers<'_> {
    fn shown(&self) -> impl Iterator<Item = u64> + '_ {
        self.people.iter().zip(&self.is_shown).filter(|(_, is_shown)| **is_shown).map(|((subject, _), _)| *subject)
    }
}

impl SeriesBatchStep<'_> {
    /// Closes buckets that end by the watermark; all with `is_end`.
    pub(super) fn close_due_buckets(&mut self, is_end: bool) {
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
        let mut due = self.take_due_buckets(&until);
        let mut until = until;
        if is_end {
            self.drop_unreached_buckets(&mut due);
            until = self.head.closed_ms.clone();
            for (end_ms, series, _) in due.keys() {
                until[*series] = until[*series].max(*end_ms);
            }
        }
        self.close_noisy_buckets(&mut due);
        if is_batch {
            self.preview_job(&due);
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
            self.publish_bucket(series, bucket, &contributions);
            self.mark_present_cohorts(end_ms, &contributions);
            self.update_histories(series, bucket, &contributions);
            if due.peek().is_none_or(|((next_ms, ..), _)| *next_ms != end_ms) {
                self.retire_idle_cohorts(end_ms);
            }
        }
        for (series, until) in until.into_iter().enumerate() {
            let closed_ms = until.max(self.head.closed_ms[series]);
            self.close_epoch(series, None, if is_end { i64::MAX } else { closed_ms });
            self.head.closed_ms[series] = closed_ms;
        }
    }

    fn watermark(&self, series: usize) -> i64 {
        let limits = self.source_limits.as_ref().map(|(sources, idle)| (&sources[..], idle));
        self.head.watermark(self.terms, series, limits)
    }

    /// Drops buckets that no crowd has reached: one subject's date must not close buckets for a later job.
    fn drop_unreached_buckets(&mut self, due: &mut BTreeMap<DueBucket, BucketContributions>) {
        let front = self.head.front.iter().map(|(_, time)| *time).min();
        let reached = front.filter(|_| self.head.front.len() == self.terms.cohorts.crowd);
        let terms = self.terms;
        let is_unreached = |(end_ms, series, _): &DueBucket| {
            let of_series = &terms.series[*series];
            reached.is_none_or(|time| *end_ms > of_series.end(of_series.bucket(time)))
        };
        let unreached: Vec<(DueBucket, BucketContributions)> = due.extract_if(.., |at, _| is_unreached(at)).collect();
        for ((_, series, _), contributions) in unreached {
            let (records, warming_up) = self.count_records(&contributions);
            self.head.counts[series].records += records;
            self.head.counts[series].warming_up += warming_up;
        }
    }

    fn take_due_buckets(&mut self, until: &[i64]) -> BTreeMap<DueBucket, BucketContributions> {
        let mut due: BTreeMap<DueBucket, BucketContributions> = BTreeMap::new();
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

    fn preview_job(&mut self, due: &BTreeMap<DueBucket, BucketContributions>) {
        let channels = self.terms.channels();
        let signals: BTreeSet<usize> =
            self.terms.series.iter().flat_map(|series| series.signals.iter().map(|signal| signal.attribute)).collect();
        let signals: Vec<usize> = signals.into_iter().collect();
        let (Some((first_ms, ..)), Some((last_ms, ..))) = (due.keys().next(), due.keys().next_back()) else { return };
        let people = self.contributors_of(due);
        let parts = (MAX_PRESENCE_FEATURES / (people * signals.len()).max(1)).clamp(1, PRESENCE_PARTS);
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
                if !self.previews.contains_key(&subject) {
                    let histories = self.person(subject).map_or(&[][..], |person| &person.histories);
                    let past = |at: usize| histories.get(at).map_or(0, |history| history.values);
                    let known = |at: usize| ChannelPreview { earlier_values: past(at), ..ChannelPreview::default() };
                    let known = SubjectPreview {
                        channels: (0..channels).map(known).collect(),
                        presence: vec![0.0; parts * signals.len()],
                        moments: Vec::new(),
                    };
                    self.previews.insert(subject, known);
                }
                let Some(known) = self.previews.get_mut(&subject) else { continue };
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
                        known.channels[first + terms.channel(*bucket, signal)].count_value(*bucket, value);
                    }
                }
                if let (Some(moments), Some(values)) = (&terms.moments, row) {
                    let place = (*series, self.terms.series.len());
                    let rows = known.add_preview_row(place, moments.epoch(*bucket), &values, terms.min_values);
                    let channel = &mut known.channels[first];
                    channel.count_value(*bucket, values[0]);
                    channel.values = rows;
                }
            }
        }
    }

    fn contributors_of(&self, due: &BTreeMap<DueBucket, BucketContributions>) -> usize {
        due.values().flat_map(|contributions| contributions.keys()).collect::<BTreeSet<_>>().len()
    }

    fn publish_bucket(&mut self, series: usize, bucket: i64, contributions: &BucketContributions) {
        let terms = &self.terms.series[series];
        if terms.moments.is_some() {
            return;
        }
        let first_row = self.rows.len();
        let mut represented: HashSet<u64> = HashSet::new();
        for block in self.cohort_blocks(terms) {
            let mut members = BucketMembers::default();
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
                    members = self.members_in_bucket(sets, contributions);
                }
                let values = self.member_values(&members, (series, bucket, signal), channel);
                let present = values.iter().filter(|member| !member.is_carried).count();
                let statistics = {
                    let same = means.iter().filter(|(sets, _)| *sets == members.sets).map(|(_, values)| values);
                    self.contributor_statistics((series, &terms.signals[signal]), &values, present, same)
                };
                if statistics.is_empty() {
                    continue;
                }
                if let [RowStatistic::Mean(_)] = &statistics[..] {
                    means.push((members.sets.clone(), values.iter().map(|member| member.value).collect()));
                }
                for statistic in statistics {
                    let people = (values.len(), present);
                    let row = self.contributor_row(&members.sets, (series, bucket, signal), people, statistic);
                    self.rows.push(row);
                }
                for (is_shown, member) in members.is_shown.iter_mut().zip(&values) {
                    *is_shown |= !member.is_carried;
                }
                self.lock_sets(&members.sets, channel);
            }
            represented.extend(members.shown());
        }
        let (records, warming_up) = self.count_records(contributions);
        let shown = contributions.iter().filter(|(subject, _)| represented.contains(subject));
        let totals = &mut self.head.counts[series];
        totals.records += records;
        totals.represented += shown.map(|(_, open)| u64::from(open.records)).sum::<u64>();
        totals.warming_up += warming_up;
        self.add_population_rows(series, first_row);
        self.head.counts[series].rows += (self.rows.len() - first_row) as u64;
    }

    /// Records, and those in warm-up.
    pub(super) fn count_records(&self, contributions: &BucketContributions) -> (u64, u64) {
        let warm_up = self.terms.cohorts.warm_up_days;
        let is_warming_up = |subject: &u64| self.person(*subject).is_some_and(|person| person.days < warm_up);
        contributions.iter().fold((0, 0), |(all, warming_up), (subject, open)| {
            let records = u64::from(open.records);
            (all + records, warming_up + if is_warming_up(subject) { records } else { 0 })
        })
    }

    pub(super) fn lock_sets(&mut self, sets: &[(u32, u16)], channel: usize) {
        for &(number, atoms) in sets.iter().filter(|(_, atoms)| *atoms != 0) {
            let cohort = self.cohorts.get_mut(&number).expect("a cohort of this step");
            if cohort.sets[channel].is_none() {
                cohort.sets[channel] = Some(atoms);
                self.changed_cohorts.insert(number);
            }
        }
    }

    pub(super) fn cohort_blocks(&self, terms: &SeriesTerms) -> Vec<Vec<u32>> {
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

    /// Locked set, or the atoms with enough values for all members (bits).
    pub(super) fn contributor_set(&self, terms: &SeriesTerms, cohort: u32, channel: usize) -> u16 {
        let cohort = &self.cohorts[&cohort];
        if let Some(locked) = cohort.sets[channel] {
            return locked;
        }
        let has_worn = |subject: &u64| {
            self.person(*subject).is_some_and(|person| self.has_enough_values(*subject, person, channel, terms))
        };
        let is_whole = |members: &[u64]| members.iter().all(has_worn);
        let whole = cohort.atoms.iter().enumerate().filter(|(_, atom)| is_whole(&atom.members));
        whole.fold(0, |bits, (index, _)| bits | 1 << index)
    }

    fn members_in_bucket<'a>(
        &self,
        sets: Vec<(u32, u16)>,
        contributions: &'a BucketContributions,
    ) -> BucketMembers<'a> {
        let subjects = sets.iter().flat_map(|(number, atoms)| self.cohorts[number].members(*atoms));
        let people: Vec<_> = subjects.map(|subject| (subject, contributions.get(&subject))).collect();
        BucketMembers { is_shown: vec![false; people.len()], sets, people }
    }

    fn member_values(
        &self,
        members: &BucketMembers<'_>,
        (series, bucket, signal): (usize, i64, usize),
        channel: usize,
    ) -> Vec<MemberValue> {
        let terms = &self.terms.series[series];
        let value = |(subject, open): &(u64, Option<&OpenBucket>)| {
            let own = open.and_then(|open| open.partials[signal].value(terms.signals[signal].range));
            let value = own.unwrap_or_else(|| self.carried_value(*subject, channel, terms, bucket));
            MemberValue { value, is_carried: own.is_none() }
        };
        members.people.iter().map(value).collect()
    }

    /// b + ρ^g (x − b) with mean b and last value x, g buckets ago.
    fn carried_value(&self, subject: u64, channel: usize, terms: &SeriesTerms, bucket: i64) -> f64 {
        let history =
            self.person(subject).and_then(|person| person.histories.get(channel)).copied().unwrap_or_default();
        if history.values == 0 {
            return self.previews.get(&subject).map_or(0.0, |known| known.channels[channel].first);
        }
        let missed = i32::try_from(terms.windows_between(history.bucket, bucket)).unwrap_or(i32::MAX);
        history.mean + CARRIED_SHARE.powi(missed) * (history.last - history.mean)
    }

    /// Mean, or interval shares if the sum would reveal a member, alone or with the means `before`. Empty if withheld.
    fn contributor_statistics<'v>(
        &mut self,
        (series, signal): (usize, &SeriesSignal),
        members: &[MemberValue],
        present: usize,
        mut before: impl Iterator<Item = &'v Vec<f64>>,
    ) -> Vec<RowStatistic> {
        let (crowd, colluders) = (self.terms.cohorts.crowd, self.terms.cohorts.colluders);
        if present < crowd {
            self.head.counts[series].too_few += u64::from(present > 0);
            return Vec::new();
        }
        let values: Vec<f64> = members.iter().map(|member| member.value).collect();
        let deviation = standard_deviation(&values);
        let is_withheld = are_equal(&values, deviation)
            || is_dominated(&values, signal.range, colluders)
            || before.any(|before| reveals_small_rest(before, &values, crowd, colluders));
        let quartiles = (values.len() >= 2 * crowd).then(|| quartiles(&values, crowd));
        let statistic = rounded_statistic(mean(&values), deviation, quartiles, values.len());
        let Some(statistic) = statistic.filter(|_| !is_withheld) else {
            let bins = signal.intervals.as_ref().and_then(|intervals| shares_by_interval(members, intervals, crowd));
            let totals = &mut self.head.counts[series];
            *(if bins.is_some() { &mut totals.binned } else { &mut totals.dominated }) += 1;
            return bins.into_iter().flatten().map(|(label, share)| RowStatistic::Bin { label, share }).collect();
        };
        vec![RowStatistic::Mean(statistic)]
    }

    pub(super) fn contributor_row(
        &self,
        sets: &[(u32, u16)],
        (series, bucket, signal): (usize, i64, usize),
        (members, present): (usize, usize),
        statistic: RowStatistic,
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

    /// Adds rows of strata and of all subjects, computed only from published rows.
    fn add_population_rows(&mut self, series: usize, first_row: usize) {
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
        let whole = parts.into_iter().map(|((_, stratum), rows)| roll_up_rows(&rows, stratum.map(<[String]>::to_vec)));
        let whole: Vec<SeriesRow> = whole.flatten().collect();
        self.rows.extend(whole);
    }

    fn mark_present_cohorts(&mut self, end_ms: i64, contributions: &BucketContributions) {
        let mut present: BTreeMap<u32, usize> = BTreeMap::new();
        for subject in contributions.keys() {
            if let Some(CohortMembership::Member(number)) = self.person(*subject).map(|person| person.membership) {
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

    fn update_histories(&mut self, series: usize, bucket: i64, contributions: &BucketContributions) {
        let terms = &self.terms.series[series];
        let (first, channels) = (self.terms.first_channel(series), self.terms.channels());
        for (&subject, open) in contributions {
            let person = self.person_mut(subject);
            person.histories.resize(channels, SubjectChannelHistory::default());
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

/// Combines rows, weighted by present subjects from rounded shares. None without rows or deviation.
fn roll_up_rows(rows: &[(&SeriesRow, MeanStatistic)], stratum: Option<Vec<String>>) -> Option<SeriesRow> {
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
        statistic: RowStatistic::Mean(statistic),
        sets: Vec::new(),
        filled: (filled * 10.0).round() / 10.0,
        ..rows[0].0.clone()
    })
}
