//! Verification of series rows (docs/internals/methods.md §13).
//!
//! Claim. If [`verify_series`] returns `Ok`:
//!
//! 1. A contributor set is a union of whole atoms of an active cohort, locked at its first publication.
//! 2. Each atom has `crowd` members that are in no earlier atom.
//! 3. `crowd` members of the set contributed to the bucket.
//! 4. Numbers match the contributions and carried values, to half a rounding step.
//! 5. One or two members never dominate a mean, and values differ. Interval shares hold `crowd` members each, and all
//!    members together. Moments are means over members of the means over their rows.
//! 6. No closed bucket or epoch and no row is published twice.
//! 7. Rows of several cohorts follow from published rows.
//! 8. Rows with noise satisfy the claim of `verify_noise`.
//! 9. A series with moments publishes no bucket rows.
//!
//! Only the rows and the new cohorts are taken from the proposal.

use super::series_bins::{BinMember, verify_bins};
use super::series_means::{is_multiple, verify_mean, verify_population};
use super::series_moments::{MomentRecount, ShownMoment};
use super::series_nested::ShownMeans;
use super::series_noise::{BucketPlace, ClosingBuckets, SignalSums, verify_noise};
use super::series_sums::closing_sums;
use crate::series::PublishedMean;
use crate::series::{
    AllSeriesTerms, CARRIED_SHARE, CohortState, RowFormat, RowStatistic, SeriesProposal, SeriesReadings, SeriesRow,
    SeriesState, SeriesTerms, SharedSeriesState, SubjectChannelHistory,
};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

/// Reason for refused rows: an error in the proposal.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("verification refused the series {series:?}: {claim}")]
pub struct SeriesRefusal {
    /// Series name; empty for no single series.
    pub series: String,
    /// Violated claim.
    pub claim: &'static str,
}

/// Releasable rows, made by [`verify_series`] only.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct VerifiedSeries {
    terms: Option<Arc<AllSeriesTerms>>,
    rows: Vec<SeriesRow>,
}

impl VerifiedSeries {
    /// Rows in the order of release.
    #[must_use]
    pub fn rows(&self) -> &[SeriesRow] {
        &self.rows
    }

    /// Number of configured series.
    #[must_use]
    pub fn series(&self) -> usize {
        self.terms.as_ref().map_or(0, |terms| terms.series.len())
    }

    /// Means of the rows, for charts.
    pub fn means(&self) -> impl Iterator<Item = PublishedMean<'_>> {
        self.terms.iter().flat_map(|terms| self.rows.iter().filter_map(|row| row.published_mean(terms)))
    }

    /// Positions of series and signal in the rows, repeated.
    pub fn signals(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        self.rows.iter().flat_map(|row| {
            let with = if let RowStatistic::Moment(of) = &row.statistic { of.with } else { row.signal };
            [(row.series, row.signal), (row.series, with)]
        })
    }

    /// Name and explanation of each series with rows but no chart.
    pub fn undrawn(&self) -> impl Iterator<Item = (&str, String)> {
        let has_rows = |series: usize| self.rows.iter().any(|row| row.series == series);
        let series = self.terms.iter().flat_map(|terms| terms.series.iter().enumerate());
        series
            .filter(move |(at, _)| has_rows(*at))
            .filter_map(|(_, of)| Some((of.name.as_str(), of.sentence_without_chart()?)))
    }

    /// Formats the rows of one series.
    pub fn lines(&self, series: usize, format: RowFormat) -> impl Iterator<Item = Vec<u8>> + '_ {
        let rows = self.rows.iter().filter(move |row| row.series == series);
        self.terms.iter().flat_map(move |terms| {
            let strata = &terms.cohorts.strata_names;
            rows.clone().map(move |row| row.to_output_line(&terms.series[series], strata, format))
        })
    }
}

#[derive(Clone, Copy, Default)]
struct ChannelPast {
    values: f64,
    sum: f64,
    last: f64,
    bucket: i64,
}

impl ChannelPast {
    fn of(history: &SubjectChannelHistory) -> Self {
        let values = f64::from(history.values);
        Self { values, sum: history.mean * values, last: history.last, bucket: history.bucket }
    }
}

/// Sums are none without a record.
#[derive(Default)]
struct ContributorSums<'a> {
    members: Vec<u64>,
    sums: Vec<Option<&'a SignalSums>>,
}

struct SeriesRecount<'a> {
    terms: &'a AllSeriesTerms,
    before: &'a SeriesState,
    cohorts: BTreeMap<u32, &'a CohortState>,
    closing: BTreeMap<BucketPlace, BTreeMap<u64, SignalSums>>,
    /// Subjects with values in the closing buckets so far.
    past: HashMap<u64, Vec<ChannelPast>>,
    /// Only in jobs over files.
    first: HashMap<(u64, usize), f64>,
    moments: BTreeMap<usize, MomentRecount<'a>>,
    /// Unverified epochs with rows.
    open_epochs: Vec<Option<i64>>,
    moment_rows: BTreeMap<(usize, i64), Vec<&'a SeriesRow>>,
}

/// Recounts the rows of `proposal`.
///
/// # Errors
/// The first violated claim.
pub fn verify_series(
    terms: &Arc<AllSeriesTerms>,
    before: &SeriesState,
    readings: &SeriesReadings,
    clock_ms: Option<i64>,
    proposal: &SeriesProposal,
) -> Result<VerifiedSeries, SeriesRefusal> {
    let claim = |claim| SeriesRefusal { series: String::new(), claim };
    let changes = &proposal.changes;
    verify_cohorts(terms, before, &changes.cohorts).map_err(claim)?;
    if proposal.rows.is_empty() {
        return Ok(VerifiedSeries { terms: Some(Arc::clone(terms)), rows: Vec::new() });
    }
    let mut cohorts: BTreeMap<u32, &CohortState> =
        before.cohorts.iter().map(|(number, cohort)| (*number, cohort)).collect();
    cohorts.extend(changes.cohorts.iter().map(|(number, cohort)| (*number, cohort)));
    let mut closing = closing_sums(terms, before, readings, clock_ms, proposal);
    let has_noise = |series: usize| terms.series[series].noise.is_some();
    let of_noise: ClosingBuckets = closing.extract_if(.., |(_, series, _), _| has_noise(*series)).collect();
    let mut noisy: Vec<&SeriesRow> = Vec::new();
    let mut recount = SeriesRecount {
        terms,
        before,
        cohorts,
        closing,
        past: HashMap::new(),
        first: HashMap::new(),
        moments: BTreeMap::new(),
        open_epochs: before.head.epochs.iter().map(|epochs| epochs.open).collect(),
        moment_rows: BTreeMap::new(),
    };
    recount.begin_moments();
    let mut rows: BTreeMap<BucketPlace, Vec<&SeriesRow>> = BTreeMap::new();
    for row in &proposal.rows {
        let named = |claim| SeriesRefusal { series: String::new(), claim };
        let series = terms.series.get(row.series).ok_or_else(|| named("a row belongs to no series"))?;
        if has_noise(row.series) {
            noisy.push(row);
            continue;
        }
        let is_moment = matches!(row.statistic, RowStatistic::Moment(_));
        if is_moment != series.moments.is_some() {
            let claim = "a series with moments publishes them and no rows of buckets, and no other series has moments";
            return Err(SeriesRefusal { series: series.name.clone(), claim });
        }
        if is_moment {
            recount.moment_rows.entry((row.series, row.bucket)).or_default().push(row);
            continue;
        }
        let place = (series.end(row.bucket), row.series, row.bucket);
        rows.entry(place).or_default().push(row);
    }
    let named =
        |(series, claim): (usize, &'static str)| SeriesRefusal { series: terms.series[series].name.clone(), claim };
    verify_noise(terms, &before.head, &changes.head, &noisy, &of_noise).map_err(named)?;
    recount.record_first_values();
    let places: Vec<BucketPlace> = recount.closing.keys().copied().collect();
    if let Some((_, series, _)) = rows.keys().find(|place| !recount.closing.contains_key(place)) {
        return Err(SeriesRefusal {
            series: terms.series[*series].name.clone(),
            claim: "a row belongs to a bucket that does not close with this batch",
        });
    }
    // No later bucket needs these values in the histories.
    let last: BTreeMap<usize, BucketPlace> = places.iter().map(|place| (place.1, *place)).collect();
    for place in places {
        let name = || terms.series[place.1].name.clone();
        let of_bucket = rows.get(&place).map_or(&[][..], Vec::as_slice);
        let refusal = |claim| SeriesRefusal { series: name(), claim };
        recount.verify_epochs_before(place, &changes.head).map_err(refusal)?;
        recount.verify_bucket(place, of_bucket).map_err(refusal)?;
        recount.add_to_moments(place);
        let people = recount.closing.remove(&place).unwrap_or_default();
        if last[&place.1] != place {
            recount.add_to_histories(place, &people);
        }
    }
    recount.verify_last_epochs(&changes.head).map_err(claim)?;
    Ok(VerifiedSeries { terms: Some(Arc::clone(terms)), rows: proposal.rows.clone() })
}

/// Claims (1) and (2), for new and changed cohorts.
fn verify_cohorts(
    terms: &AllSeriesTerms,
    before: &SeriesState,
    changed: &[(u32, CohortState)],
) -> Result<(), &'static str> {
    let crowd = terms.cohorts.crowd;
    let mut newest = before.cohorts.last_key_value().map(|(number, _)| *number);
    let has_new = changed.iter().any(|(number, _)| !before.cohorts.contains_key(number));
    let old: &BTreeMap<u32, CohortState> = if has_new { &before.cohorts } else { &BTreeMap::new() };
    let atoms = old.values().flat_map(|cohort| &cohort.atoms);
    let mut known: HashSet<u64> = atoms.flat_map(|atom| atom.members.iter().copied()).collect();
    let erased: BTreeSet<u16> = old.values().flat_map(|cohort| cohort.erased.iter().copied()).collect();
    for (number, cohort) in changed {
        if cohort.sets.len() != terms.channels() || cohort.atoms.is_empty() || cohort.atoms.len() > 16 {
            return Err("a cohort does not fit the series");
        }
        let old = before.cohorts.get(number);
        if old.is_none() {
            if newest.is_some_and(|newest| *number <= newest) {
                return Err("a new cohort has the number of an older one, or a lower one");
            }
            newest = Some(*number);
        }
        let mut own: BTreeSet<u64> = BTreeSet::new();
        for atom in &cohort.atoms {
            // A returning erased subject is not new.
            let is_new = |member: &&u64| !known.contains(*member) && !erased.contains(&(**member as u16));
            let fresh = atom.members.iter().filter(is_new).count();
            // An erasure shrinks complete atoms.
            if fresh < crowd && old.is_none() {
                return Err("an atom has fewer new members than required");
            }
            if !atom.members.iter().all(|member| own.insert(*member)) {
                return Err("a person appears twice in a cohort");
            }
        }
        known.extend(own);
        let within = u16::try_from((1u32 << cohort.atoms.len()) - 1).unwrap_or(u16::MAX);
        if cohort.sets.iter().flatten().any(|set| *set == 0 || set & !within != 0) {
            return Err("a contributor set is not a union of atoms");
        }
        if let Some(old) = old {
            let kept = old.sets.iter().zip(&cohort.sets).all(|(old, new)| old.is_none() || old == new);
            if old.atoms != cohort.atoms || old.erased != cohort.erased || old.token != cohort.token || !kept {
                return Err("a locked cohort has changed");
            }
            if old.is_retired && (!cohort.is_retired || old.sets != cohort.sets) {
                return Err("a retired cohort publishes rows");
            }
        }
    }
    Ok(())
}

fn value_of(sums: Option<&SignalSums>, signal: usize, terms: &SeriesTerms) -> Option<f64> {
    let (count, sum) = *sums?.get(signal)?;
    let (low, high) = terms.signals[signal].range;
    (count > 0 && sum.is_finite()).then(|| (sum / f64::from(count)).max(low).min(high))
}

impl SeriesRecount<'_> {
    fn record_first_values(&mut self) {
        if !self.terms.cohorts.is_batch {
            return;
        }
        for ((_, series, bucket), people) in &self.closing {
            let terms = &self.terms.series[*series];
            if terms.moments.is_some() {
                continue;
            }
            for (subject, sums) in people {
                for signal in 0..terms.signals.len() {
                    if let Some(value) = value_of(Some(sums), signal, terms) {
                        let channel = self.terms.first_channel(*series) + terms.channel(*bucket, signal);
                        self.first.entry((*subject, channel)).or_insert(value);
                    }
                }
            }
        }
    }

    fn complete_rows(&self, place: BucketPlace) -> Vec<(u64, Vec<f64>)> {
        let terms = &self.terms.series[place.1];
        let row = |(subject, sums): (&u64, &SignalSums)| {
            let values = (0..terms.signals.len()).map(|at| value_of(Some(sums), at, terms));
            Some((*subject, values.collect::<Option<Vec<f64>>>()?))
        };
        self.closing[&place].iter().filter_map(row).collect()
    }

    fn begin_moments(&mut self) {
        let with_moments = self.terms.series.iter().enumerate().filter(|(_, terms)| terms.moments.is_some());
        for (series, _) in with_moments {
            self.moments.insert(series, MomentRecount::new(series, self.terms, self.before));
        }
        if !self.terms.cohorts.is_batch {
            return;
        }
        for place in self.closing.keys().copied().collect::<Vec<BucketPlace>>() {
            let Some(moments) = &self.terms.series[place.1].moments else { continue };
            let rows = self.complete_rows(place);
            if let Some(recount) = self.moments.get_mut(&place.1) {
                rows.iter()
                    .for_each(|(subject, values)| recount.record_first_rows(*subject, moments.epoch(place.2), values));
            }
        }
    }

    fn verify_epochs_before(&mut self, place: BucketPlace, after: &SharedSeriesState) -> Result<(), &'static str> {
        let (_, series, bucket) = place;
        let Some(moments) = &self.terms.series[series].moments else { return Ok(()) };
        match self.open_epochs[series] {
            Some(open) if moments.epoch(bucket) > open => self.verify_epoch(series, open, after),
            _ => Ok(()),
        }
    }

    /// Also refuses other rows of moments.
    fn verify_last_epochs(&mut self, after: &SharedSeriesState) -> Result<(), &'static str> {
        for series in self.moments.keys().copied().collect::<Vec<usize>>() {
            if let Some(open) = self.open_epochs[series].filter(|open| *open < after.epochs[series].closed_ms) {
                self.verify_epoch(series, open, after)?;
            }
        }
        if self.moment_rows.is_empty() {
            Ok(())
        } else {
            Err("moments belong to an epoch that does not close with this batch")
        }
    }

    fn verify_epoch(&mut self, series: usize, epoch: i64, after: &SharedSeriesState) -> Result<(), &'static str> {
        self.open_epochs[series] = None;
        let Some(rows) = self.moment_rows.remove(&(series, epoch)) else { return Ok(()) };
        if epoch < self.before.head.epochs[series].closed_ms || epoch >= after.epochs[series].closed_ms {
            return Err("moments belong to an epoch that was closed before, or stays open");
        }
        let terms = &self.terms.series[series];
        // One contributor set for all signals.
        let channel = self.terms.first_channel(series);
        let mut blocks: BTreeMap<_, Vec<&SeriesRow>> = BTreeMap::new();
        for row in rows {
            blocks.entry((&row.cohort, &row.stratum)).or_default().push(row);
        }
        for block in blocks.values() {
            let row = block[0];
            if block.iter().any(|other| (other.n, &other.sets) != (row.n, &row.sets) || other.filled != row.filled) {
                return Err("moments of one cohort cover different people");
            }
            let members = self.members_of(row, terms, channel)?.ok_or("moments cover several cohorts")?;
            let shown = block.iter().filter_map(|row| match row.statistic {
                RowStatistic::Moment(statistic) => Some(ShownMoment { signal: row.signal, statistic }),
                RowStatistic::Mean(_) | RowStatistic::Bin { .. } | RowStatistic::Noisy(_) => None,
            });
            let shown: Vec<ShownMoment> = shown.collect();
            let present = self.moments[&series].verify(epoch, &members, &shown, self.terms.cohorts.crowd)?;
            Self::verify_people(row, members.len(), present)?;
        }
        Ok(())
    }

    fn verify_people(row: &SeriesRow, members: usize, present: usize) -> Result<(), &'static str> {
        let filled = (members - present) as f64 / members as f64;
        if row.n != members as u64 || (row.filled - filled).abs() > 0.050_001 || !is_multiple(row.filled, 0.1) {
            return Err("the number of people or the filled share does not match the contributions");
        }
        Ok(())
    }

    fn past(&self, subject: u64, channel: usize) -> ChannelPast {
        if let Some(past) = self.past.get(&subject) {
            return past[channel];
        }
        let person = self.before.people.get(&subject);
        person.and_then(|person| person.histories.get(channel)).map_or_else(ChannelPast::default, ChannelPast::of)
    }

    fn add_to_moments(&mut self, place: BucketPlace) {
        let (_, series, bucket) = place;
        let terms = &self.terms.series[series];
        if let Some(moments) = &terms.moments {
            let epoch = moments.epoch(bucket);
            let rows = self.complete_rows(place);
            if let Some(recount) = self.moments.get_mut(&series)
                && epoch >= self.before.head.epochs[series].closed_ms
            {
                self.open_epochs[series] = Some(epoch);
                rows.iter().for_each(|(subject, values)| recount.add(*subject, epoch, values));
            }
        }
    }

    fn add_to_histories(&mut self, (_, series, bucket): BucketPlace, people: &BTreeMap<u64, SignalSums>) {
        let terms = &self.terms.series[series];
        let (first, channels) = (self.terms.first_channel(series), self.terms.channels());
        for (&subject, sums) in people {
            let before = || {
                let person = self.before.people.get(&subject);
                let mut past: Vec<ChannelPast> =
                    person.iter().flat_map(|person| &person.histories).map(ChannelPast::of).collect();
                past.resize(channels, ChannelPast::default());
                past
            };
            let past = self.past.entry(subject).or_insert_with(before);
            for signal in 0..terms.signals.len() {
                let Some(value) = value_of(Some(sums), signal, terms) else { continue };
                let ChannelPast { values, sum, .. } = past[first + terms.channel(bucket, signal)];
                past[first + terms.channel(bucket, signal)] =
                    ChannelPast { values: values + 1.0, sum: sum + value, last: value, bucket };
            }
        }
    }

    fn carried(&self, subject: u64, channel: usize, terms: &SeriesTerms, bucket: i64) -> Option<f64> {
        let past = self.past(subject, channel);
        if past.values == 0.0 {
            return self.first.get(&(subject, channel)).copied();
        }
        let center = past.sum / past.values;
        let mut distance = past.last - center;
        for _ in 0..terms.windows_between(past.bucket, bucket).min(4_000) {
            distance *= CARRIED_SHARE;
        }
        Some(center + distance)
    }

    fn verify_bucket(&self, place: BucketPlace, rows: &[&SeriesRow]) -> Result<(), &'static str> {
        let terms = &self.terms.series[place.1];
        let mut blocks: BTreeMap<_, Vec<&SeriesRow>> = BTreeMap::new();
        for row in rows {
            if row.signal >= terms.signals.len() {
                return Err("a row belongs to no signal");
            }
            blocks.entry((&row.cohort, &row.stratum, row.signal)).or_default().push(row);
        }
        let mut contributed = ContributorSums::default();
        let mut means: BTreeMap<_, ShownMeans> = BTreeMap::new();
        blocks.iter().try_for_each(|((cohort, stratum, _), block)| {
            let means = means.entry((cohort, stratum)).or_default();
            self.verify_block(place, block, rows, &mut contributed, means)
        })
    }

    /// Expects one row of means, or the shares of all intervals.
    fn verify_block<'b>(
        &'b self,
        place: BucketPlace,
        block: &[&SeriesRow],
        rows: &[&SeriesRow],
        contributed: &mut ContributorSums<'b>,
        means: &mut ShownMeans,
    ) -> Result<(), &'static str> {
        let (_, series, bucket) = place;
        let terms = &self.terms.series[series];
        let row = block[0];
        let channel = self.terms.first_channel(series) + terms.channel(bucket, row.signal);
        if block.iter().any(|other| (other.n, &other.sets) != (row.n, &row.sets) || other.filled != row.filled) {
            return Err("rows of one cohort and signal cover different people");
        }
        let Some(members) = self.members_of(row, terms, channel)? else {
            return match (&row.statistic, block.len()) {
                (RowStatistic::Mean(statistic), 1) => verify_population(row, *statistic, rows),
                _ => Err("a row of several cohorts is published twice, or is not a mean"),
            };
        };
        if contributed.members != members {
            let people = &self.closing[&place];
            let sums = members.iter().map(|subject| people.get(subject)).collect();
            *contributed = ContributorSums { members, sums };
        }
        let (values, present) = self.values_of(contributed, place, row.signal, channel)?;
        Self::verify_people(row, values.len(), present)?;
        if let (RowStatistic::Mean(statistic), 1) = (&row.statistic, block.len()) {
            let values: Vec<f64> = values.iter().map(|(value, _)| *value).collect();
            verify_mean(statistic, &values, terms.signals[row.signal].range, &self.terms.cohorts)?;
            let cohorts = &self.terms.cohorts;
            return means.record_means(&contributed.members, values, cohorts.crowd, cohorts.colluders);
        }
        let shares = block.iter().map(|row| match &row.statistic {
            RowStatistic::Bin { label, share } => Some((label.as_str(), *share)),
            RowStatistic::Mean(_) | RowStatistic::Moment(_) | RowStatistic::Noisy(_) => None,
        });
        let shares: Option<Vec<(&str, f64)>> = shares.collect();
        let shares = shares.ok_or("a row is published twice, or with shares of intervals")?;
        let intervals = terms.signals[row.signal].intervals.as_ref().ok_or("a signal has no intervals")?;
        verify_bins(&values, &shares, intervals, self.terms.cohorts.crowd)
    }

    /// Also returns the present members, at least `crowd`.
    fn values_of(
        &self,
        contributed: &ContributorSums<'_>,
        place: BucketPlace,
        signal: usize,
        channel: usize,
    ) -> Result<(Vec<BinMember>, usize), &'static str> {
        let terms = &self.terms.series[place.1];
        let own: Vec<Option<f64>> = contributed.sums.iter().map(|sums| value_of(*sums, signal, terms)).collect();
        let present = own.iter().flatten().count();
        if present < self.terms.cohorts.crowd {
            return Err("fewer members than required are present");
        }
        let value = |(subject, own): (&u64, Option<f64>)| match own {
            Some(value) => Some((value, false)),
            None => self.carried(*subject, channel, terms, place.2).map(|value| (value, true)),
        };
        let values: Option<Vec<BinMember>> = contributed.members.iter().zip(own).map(value).collect();
        Ok((values.ok_or("a member has no value and no history")?, present))
    }

    /// None if the row combines published rows.
    fn members_of(
        &self,
        row: &SeriesRow,
        terms: &SeriesTerms,
        channel: usize,
    ) -> Result<Option<Vec<u64>>, &'static str> {
        if row.sets.is_empty() {
            return Ok(None);
        }
        if terms.pooled != row.cohort.is_none() || !terms.pooled && row.sets.len() != 1 {
            return Err("a row of one cohort covers several cohorts, or a row of several cohorts names one");
        }
        let mut members = Vec::new();
        let mut seen = BTreeSet::new();
        for &(number, atoms) in &row.sets {
            let cohort = self.cohorts.get(&number).ok_or("a row belongs to no cohort")?;
            let was_retired = self.before.cohorts.get(&number).is_some_and(|cohort| cohort.is_retired);
            if was_retired || row.stratum.as_ref() != Some(&cohort.stratum) || !seen.insert(number) {
                return Err("a row belongs to a retired cohort, to one cohort twice, or to another stratum");
            }
            if cohort.sets[channel] != Some(atoms) {
                return Err("a row belongs to a set that is not locked");
            }
            if row.cohort.as_ref().is_some_and(|token| *token != cohort.token) {
                return Err("a row has the name of another cohort");
            }
            members.extend(cohort.members(atoms));
        }
        Ok(Some(members))
    }
}

#[cfg(test)]
#[path = "series_tests.rs"]
mod tests;
