//! Partial sums of the records of a batch, by source partition.

use super::contributions::{BucketSums, Contributions, PersonSums, advance};
use super::intake::Readings;
use super::state::{Partial, SourcePartition};
use super::terms::{DAY_MS, Terms};
use std::collections::BTreeMap;

/// Sums of one person while a batch is read.
#[derive(Default)]
struct Gathering {
    days: Vec<i64>,
    latest_ms: i64,
    buckets: BTreeMap<(u16, i64), (u32, Vec<Partial>)>,
}

/// Sums up the records of a batch. `sources` names the partition of each record. Records ahead of `clock_ms` are counted and left out.
#[must_use]
pub fn sum_up(
    terms: &Terms,
    readings: &Readings,
    sources: &[SourcePartition],
    clock_ms: Option<i64>,
) -> BTreeMap<SourcePartition, Contributions> {
    let mut all: BTreeMap<SourcePartition, (Contributions, BTreeMap<u64, Gathering>)> = BTreeMap::new();
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
            let empty = || (0, vec![Partial::default(); series.signals.len()]);
            let (records, partials) = person.buckets.entry((number, series.bucket(time_ms))).or_insert_with(empty);
            *records += 1;
            for (partial, signal) in partials.iter_mut().zip(&series.signals) {
                partial.add(readings.values[signal.attribute][row], signal.range);
            }
        }
    }
    let finish =
        |(source, (mut contributions, people)): (SourcePartition, (Contributions, BTreeMap<u64, Gathering>))| {
            contributions.source = source;
            for (subject, person) in people {
                advance(&mut contributions.front, terms.cohorts.crowd, subject, person.latest_ms);
                let bucket = |((series, bucket), (records, partials)): ((u16, i64), (u32, Vec<Partial>))| {
                    let partials = (0u16..).zip(partials).filter(|(_, partial)| partial.count > 0).collect();
                    BucketSums { series, bucket, records, partials }
                };
                contributions.people.push(PersonSums {
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
