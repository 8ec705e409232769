//! Verification of contributions before they leave for the instance that has the cohorts (docs/methods.md §13).
//!
//! Claim. If [`verify_sums`] returns `Ok`, then each record with a subject and a time that is not ahead of the clock is part of one sum of
//! its person, series and bucket, of the source partition that it came from, with each of its values clipped to the range of the signal;
//! and days and latest times are those of records.

use super::series::SeriesRefusal;
use super::series_noise::Sums;
use crate::anonymity::series::{Contributions, DAY_MS, Readings, SourcePartition, Terms};
use std::collections::{BTreeMap, BTreeSet};

/// Source partition, person, series and bucket.
type Cell = (SourcePartition, u64, usize, i64);

/// Recounts `contributions` from the records. `sources` names the partition of each record.
///
/// # Errors
/// The claim that does not hold.
pub fn verify_sums<'a>(
    terms: &Terms,
    readings: &Readings,
    sources: &[SourcePartition],
    clock_ms: Option<i64>,
    contributions: impl Iterator<Item = &'a Contributions>,
) -> Result<(), SeriesRefusal> {
    let refusal = |claim| Err(SeriesRefusal { series: String::new(), claim });
    let mut cells: BTreeMap<Cell, (u32, Sums)> = BTreeMap::new();
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
                return refusal("the days of a person are not those of the records");
            }
            for sums in &person.buckets {
                let cell = (source, person.subject, usize::from(sums.series), sums.bucket);
                let Some((records, mut own)) = cells.remove(&cell) else {
                    return refusal("a sum has no record, or leaves twice");
                };
                for (signal, partial) in &sums.partials {
                    let Some(sum) = own.get_mut(usize::from(*signal)) else {
                        return refusal("a sum is of no signal");
                    };
                    *sum = (sum.0.wrapping_sub(partial.count), sum.1 - partial.sum);
                }
                // Both add the values in the order of the records.
                if records != sums.records || own.iter().any(|(count, sum)| *count != 0 || *sum != 0.0) {
                    return refusal("a sum is not that of the records");
                }
            }
        }
        let is_latest = |(subject, time): &(u64, i64)| {
            times.get(&(source, *subject)).and_then(BTreeSet::last).is_some_and(|latest| latest == time)
        };
        if !of_source.front.iter().all(is_latest) {
            return refusal("a latest time is not that of the records");
        }
    }
    if cells.is_empty() { Ok(()) } else { refusal("a record is part of no sum") }
}
