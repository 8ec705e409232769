//! Contributions of subjects to buckets, independent of the code that proposes rows.

use super::series_lineage::SeriesLineage;
use crate::original::OriginalData;
use std::collections::BTreeMap;
use throng_core::series::AllSeriesTerms;
use throng_core::values::codebook::{Code, FIRST_VALUE};
use throng_core::values::json::unquoted;
use throng_core::values::moment;
use throng_core::values::subject_digest::NO_SUBJECT;

/// Record with subject and event time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlacedRecord {
    /// Row of the original.
    pub row: usize,
    /// Subject position.
    pub person: usize,
    /// Event time, milliseconds since 1970.
    pub time_ms: i64,
    /// Series without a contribution, as bits.
    pub dropped: u16,
}

/// Contribution of a subject to a bucket.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SubjectContribution {
    /// Number of records.
    pub records: u64,
    /// Clipped mean by signal; none without values.
    pub values: Vec<Option<f64>>,
}

/// Contributions by series and bucket, then subject.
pub type OriginalContributions = BTreeMap<(usize, i64), BTreeMap<usize, SubjectContribution>>;

/// Also returns the number of others.
pub(super) fn locate_records(
    original: &OriginalData,
    terms: &AllSeriesTerms,
    people: &[u64],
    lineage: &SeriesLineage,
) -> (Vec<PlacedRecord>, u64) {
    let times = parse_codes(original, terms.cohorts.time, |text| unquoted(text).and_then(|text| moment::parse(&text)));
    let batch = &original.batch;
    let mut records = Vec::with_capacity(batch.rows());
    for (row, &subject) in batch.subjects.iter().enumerate() {
        let uncovered = || original.uncovered.get(&(terms.cohorts.time, row)).map(|time| *time as i64);
        let time = times[batch.columns[terms.cohorts.time][row] as usize].or_else(uncovered);
        let person = people.binary_search(&subject).ok().filter(|_| subject != NO_SUBJECT);
        if let (Some(person), Some(time_ms)) = (person, time) {
            let place = batch.coordinates[row];
            let is_dropped = |series: &usize| lineage.dropped.contains(&(place.offset, place.element, *series));
            let dropped = (0..terms.series.len()).filter(is_dropped).fold(0, |bits, series| bits | 1 << series);
            records.push(PlacedRecord { row, person, time_ms, dropped });
        }
    }
    let unplaced = batch.rows() - records.len();
    (records, unplaced as u64)
}

pub(super) fn compute_contributions(
    original: &OriginalData,
    terms: &AllSeriesTerms,
    records: &[PlacedRecord],
) -> OriginalContributions {
    let mut values: BTreeMap<usize, Vec<Option<f64>>> = BTreeMap::new();
    for signal in terms.series.iter().flat_map(|series| &series.signals) {
        let finite = |text: &str| text.parse::<f64>().ok().filter(|value| value.is_finite());
        values.entry(signal.attribute).or_insert_with(|| parse_codes(original, signal.attribute, finite));
    }
    let mut contributions = OriginalContributions::new();
    for (number, series) in terms.series.iter().enumerate() {
        let mut sums: BTreeMap<(i64, usize), (u64, Vec<(f64, f64)>)> = BTreeMap::new();
        for record in records.iter().filter(|record| record.dropped & 1 << number == 0) {
            let empty = || (0, vec![(0.0, 0.0); series.signals.len()]);
            let (count, sums) = sums.entry((series.bucket(record.time_ms), record.person)).or_insert_with(empty);
            *count += 1;
            for (signal, sum) in series.signals.iter().zip(sums) {
                let code = original.batch.columns[signal.attribute][record.row] as usize;
                let uncovered = || original.uncovered.get(&(signal.attribute, record.row)).copied();
                if let Some(value) = values[&signal.attribute][code].or_else(uncovered) {
                    *sum = (sum.0 + 1.0, sum.1 + value.max(signal.range.0).min(signal.range.1));
                }
            }
        }
        for ((bucket, person), (records, sums)) in sums {
            let value = |(count, sum): (f64, f64)| (count > 0.0 && sum.is_finite()).then_some(sum / count);
            let values = sums.into_iter().map(value).collect();
            contributions.entry((number, bucket)).or_default().insert(person, SubjectContribution { records, values });
        }
    }
    contributions
}

/// From the first complete record.
pub(super) fn subject_strata(
    original: &OriginalData,
    terms: &AllSeriesTerms,
    people: &[u64],
) -> Vec<Option<Vec<String>>> {
    let mut strata: Vec<Option<Vec<String>>> = vec![None; people.len()];
    for (row, subject) in original.batch.subjects.iter().enumerate() {
        let Ok(person) = people.binary_search(subject) else { continue };
        if strata[person].is_none() {
            let label = |&(attribute, level): &(usize, usize)| {
                let (code, book) = (original.batch.columns[attribute][row], &original.books[attribute]);
                let text = (code >= FIRST_VALUE).then(|| book.text(book.cell(code, level)))?;
                Some(unquoted(text).unwrap_or_else(|| text.to_owned()))
            };
            strata[person] = terms.cohorts.strata.iter().map(label).collect();
        }
    }
    strata
}

fn parse_codes<T>(original: &OriginalData, attribute: usize, read: impl Fn(&str) -> Option<T>) -> Vec<Option<T>> {
    let book = &original.books[attribute];
    let number = |code: Code| if code < FIRST_VALUE { None } else { read(book.canonical(code)) };
    (0..book.codes() as Code).map(number).collect()
}
