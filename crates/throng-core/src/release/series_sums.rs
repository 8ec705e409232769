//! Sums of closing buckets, and verification of contributions (docs/internals/methods.md §13).
//!
//! Claim. If [`verify_sums`] returns `Ok`, each record with a subject and a time up to the clock is in exactly one sum
//! of its subject, series, bucket and partition, clipped to the signal range. Days and latest times are those of
//! records.

use super::series_noise::{BucketPlace, SignalSums};
use crate::series::{
    AllSeriesTerms, BucketSums, DAY_MS, PartialSum, PartitionContributions, SeriesProposal, SeriesReadings,
    SeriesState, SourcePartition,
};
use std::collections::{BTreeMap, BTreeSet};

type SumKey = (SourcePartition, u64, usize, i64);

/// Recounts `contributions`; `sources` is the partition of each record.
///
/// # Errors
/// The violated claim.
pub fn verify_sums<'a>(
    terms: &AllSeriesTerms,
    readings: &SeriesReadings,
    sources: &[SourcePartition],
    clock_ms: Option<i64>,
    contributions: impl Iterator<Item = &'a PartitionContributions>,
) -> Result<(), &'static str> {
    let mut cells: BTreeMap<SumKey, (u32, SignalSums)> = BTreeMap::new();
    let mut times: BTreeMap<(SourcePartition, u64), BTreeSet<i64>> = BTreeMap::new();
    for (row, source) in sources.iter().enumerate() {
        let (subject, Some(time)) = (readings.subjects[row], readings.times[row]) else { continue };
        if subject == 0 || clock_ms.is_some_and(|clock| time > clock) {
            continue;
        }
        times.entry((*source, subject)).or_default().insert(time);
        for (series, of_series) in terms.series.iter().enumerate() {
            let empty = || (0, vec![(0, 0.0); of_series.signals.len()]);
            let cell = (*source, subject, series, of_series.bucket(time));
            let (records, sums) = cells.entry(cell).or_insert_with(empty);
            *records += 1;
            for (sum, signal) in sums.iter_mut().zip(&of_series.signals) {
                let value = readings.values[signal.attribute][row];
                if value.is_finite() {
                    let (low, high) = signal.range;
                    *sum = (sum.0 + 1, sum.1 + value.max(low).min(high));
                }
            }
        }
    }
    for of_source in contributions {
        let source = of_source.source;
        for person in &of_source.people {
            let known = times.get(&(source, person.subject));
            let days: BTreeSet<i64> = known.into_iter().flatten().map(|time| time.div_euclid(DAY_MS)).collect();
            if !days.iter().eq(&person.days) {
                return Err("the days of a person do not match the records");
            }
            for sums in &person.buckets {
                let cell = (source, person.subject, usize::from(sums.series), sums.bucket);
                let Some((records, own)) = cells.remove(&cell) else {
                    return Err("a sum has no record, or is sent twice");
                };
                let shown: BTreeMap<usize, &PartialSum> =
                    sums.partials.iter().map(|(signal, partial)| (usize::from(*signal), partial)).collect();
                // Overflow is NaN on both sides.
                let is_same = |(signal, (count, sum)): (usize, &(u32, f64))| match shown.get(&signal) {
                    None => *count == 0,
                    Some(partial) => {
                        partial.count == *count && (partial.sum == *sum || partial.sum.is_nan() && sum.is_nan())
                    }
                };
                let is_of_signals = shown.len() == sums.partials.len() && shown.keys().all(|at| *at < own.len());
                if records != sums.records || !is_of_signals || !own.iter().enumerate().all(is_same) {
                    return Err("a sum does not match the records");
                }
            }
        }
        let is_latest = |(subject, time): &(u64, i64)| {
            times.get(&(source, *subject)).and_then(BTreeSet::last).is_some_and(|latest| latest == time)
        };
        if !of_source.front.iter().all(is_latest) {
            return Err("a latest time does not match the records");
        }
    }
    if cells.is_empty() { Ok(()) } else { Err("a record is part of no sum") }
}

fn received_sums(readings: &SeriesReadings) -> impl Iterator<Item = (usize, usize, u64, &BucketSums)> {
    let people = readings.received.iter().flat_map(|received| &received.contributions).flat_map(|of| &of.people);
    let sums = people.flat_map(|person| person.buckets.iter().map(|sums| (person.subject, sums)));
    sums.enumerate().map(|(position, (subject, sums))| (position, usize::from(sums.series), subject, sums))
}

/// From state, records and received contributions.
pub(super) fn closing_sums(
    terms: &AllSeriesTerms,
    before: &SeriesState,
    readings: &SeriesReadings,
    clock_ms: Option<i64>,
    proposal: &SeriesProposal,
) -> BTreeMap<BucketPlace, BTreeMap<u64, SignalSums>> {
    let mut closing: BTreeMap<BucketPlace, BTreeMap<u64, SignalSums>> = BTreeMap::new();
    let closed_ms = &proposal.changes.head.closed_ms;
    let place = |series: usize, bucket: i64| -> Option<BucketPlace> {
        let end = terms.series[series].end(bucket);
        (end > before.head.closed_ms[series] && end <= closed_ms[series]).then_some((end, series, bucket))
    };
    for (subject, buckets) in &before.open {
        for open in buckets {
            if let Some(place) = place(usize::from(open.series), open.bucket) {
                let sums = open.partials.iter().map(|partial| (partial.count, partial.sum)).collect();
                closing.entry(place).or_default().insert(*subject, sums);
            }
        }
    }
    for (row, time) in readings.times.iter().enumerate() {
        let (subject, Some(time)) = (readings.subjects[row], *time) else { continue };
        if subject == 0 || clock_ms.is_some_and(|clock| time > clock) {
            continue;
        }
        for (series, of_series) in terms.series.iter().enumerate() {
            let Some(place) = place(series, of_series.bucket(time)) else { continue };
            if proposal.dropped.contains(&(row, series)) {
                continue;
            }
            let empty = || vec![(0, 0.0); of_series.signals.len()];
            let sums = closing.entry(place).or_default().entry(subject).or_insert_with(empty);
            for (sum, signal) in sums.iter_mut().zip(&of_series.signals) {
                let value = readings.values[signal.attribute][row];
                if !value.is_nan() {
                    let (low, high) = signal.range;
                    *sum = (sum.0 + 1, sum.1 + value.max(low).min(high));
                }
            }
        }
    }
    for (position, series, subject, sums) in received_sums(readings) {
        let Some(place) = place(series, sums.bucket).filter(|_| !proposal.dropped.contains(&(position, series))) else {
            continue;
        };
        let empty = || vec![(0, 0.0); terms.series[series].signals.len()];
        let all = closing.entry(place).or_default().entry(subject).or_insert_with(empty);
        sums.partials.iter().for_each(|(signal, partial)| {
            let sum = &mut all[usize::from(*signal)];
            *sum = (sum.0 + partial.count, sum.1 + partial.sum);
        });
    }
    closing
}
