//! Partial sums of a batch by source partition.

use super::contributions::{BucketSums, PartitionContributions, SubjectSums, note_latest_time};
use super::record_intake::SeriesReadings;
use super::state::{PartialSum, SourcePartition};
use super::terms::{AllSeriesTerms, DAY_MS};
use std::collections::BTreeMap;

#[derive(Default)]
struct SubjectBatchSums {
    days: Vec<i64>,
    latest_ms: i64,
    buckets: BTreeMap<(u16, i64), (u32, Vec<PartialSum>)>,
}

/// Sums up records, with partitions `sources`. Records after `clock_ms` are only counted.
#[must_use]
pub fn sum_contributions(
    terms: &AllSeriesTerms,
    readings: &SeriesReadings,
    sources: &[SourcePartition],
    clock_ms: Option<i64>,
) -> BTreeMap<SourcePartition, PartitionContributions> {
    let mut all: BTreeMap<SourcePartition, (PartitionContributions, BTreeMap<u64, SubjectBatchSums>)> = BTreeMap::new();
    for (row, ((&subject, &time), &source)) in readings.subjects.iter().zip(&readings.times).zip(sources).enumerate() {
        let (contributions, people) = all.entry(source).or_default();
        let Some(time_ms) = time.filter(|_| subject != 0) else {
            contributions.unplaced += 1;
            continue;
        };
        if clock_ms.is_some_and(|clock| time_ms > clock) {
            contributions.early += 1;
            continue;
        }
        let is_new = !people.contains_key(&subject);
        let person = people.entry(subject).or_default();
        person.latest_ms = if is_new { time_ms } else { person.latest_ms.max(time_ms) };
        let day = time_ms.div_euclid(DAY_MS);
        if let Err(at) = person.days.binary_search(&day) {
            person.days.insert(at, day);
        }
        for (number, series) in (0u16..).zip(&terms.series) {
            let empty = || (0, vec![PartialSum::default(); series.signals.len()]);
            let (records, partials) = person.buckets.entry((number, series.bucket(time_ms))).or_insert_with(empty);
            *records += 1;
            for (partial, signal) in partials.iter_mut().zip(&series.signals) {
                partial.add_clipped(readings.values[signal.attribute][row], signal.range);
            }
        }
    }
    let finish = |(source, (mut contributions, people)): (
        SourcePartition,
        (PartitionContributions, BTreeMap<u64, SubjectBatchSums>),
    )| {
        contributions.source = source;
        for (subject, person) in people {
            note_latest_time(&mut contributions.front, terms.cohorts.crowd, subject, person.latest_ms);
            let bucket = |((series, bucket), (records, partials)): ((u16, i64), (u32, Vec<PartialSum>))| {
                let partials = (0u16..).zip(partials).filter(|(_, partial)| partial.count > 0).collect();
                BucketSums { series, bucket, records, partials }
            };
            contributions.people.push(SubjectSums {
                subject,
                days: person.days,
                labels: readings.strata.get(&subject).cloned().unwrap_or_default(),
                buckets: person.buckets.into_iter().map(bucket).collect(),
            });
        }
        (source, contributions)
    };
    all.into_iter().map(finish).collect()
}
