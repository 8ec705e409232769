//! Contributions of people to buckets, computed from the original.
//!
//! Nothing here is shared with the code that proposes rows: sums and means are added up from the records themselves.

use super::lineage::SeriesLineage;
use crate::anonymity::series::Terms;
use crate::evaluation::original::Original;
use std::collections::BTreeMap;
use throng_core::values::codebook::{Code, FIRST_VALUE};
use throng_core::values::json::unquoted;
use throng_core::values::moment;
use throng_core::values::subject::NO_SUBJECT;

/// A record with a person and a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlacedRecord {
    /// Row of the original.
    pub row: usize,
    /// Position of the person.
    pub person: usize,
    /// Event time in milliseconds since 1970.
    pub time_ms: i64,
    /// Series to which the record contributes nothing, as bits.
    pub dropped: u16,
}

/// What a person gives to a bucket.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Contribution {
    /// Number of records.
    pub records: u64,
    /// By signal: the mean of the values, each moved into the range of the signal; none without values.
    pub values: Vec<Option<f64>>,
}

/// By series and bucket, then by person.
pub type Contributions = BTreeMap<(usize, i64), BTreeMap<usize, Contribution>>;

/// Records of people, and the number of records without a person or a time.
pub(super) fn placed(
    original: &Original,
    terms: &Terms,
    people: &[u64],
    lineage: &SeriesLineage,
) -> (Vec<PlacedRecord>, u64) {
    let times = numbers(original, terms.cohorts.time, |text| unquoted(text).and_then(|text| moment::parse(&text)));
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

/// Contributions of all records that were not dropped.
pub(super) fn contributions(original: &Original, terms: &Terms, records: &[PlacedRecord]) -> Contributions {
    let mut values: BTreeMap<usize, Vec<Option<f64>>> = BTreeMap::new();
    for signal in terms.series.iter().flat_map(|series| &series.signals) {
        let finite = |text: &str| text.parse::<f64>().ok().filter(|value| value.is_finite());
        values.entry(signal.attribute).or_insert_with(|| numbers(original, signal.attribute, finite));
    }
    let mut contributions = Contributions::new();
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
            contributions.entry((number, bucket)).or_default().insert(person, Contribution { records, values });
        }
    }
    contributions
}

/// Labels of the stratum of each person, of the first record that has all of them.
pub(super) fn strata(original: &Original, terms: &Terms, people: &[u64]) -> Vec<Option<Vec<String>>> {
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

/// By code of an attribute, the number that its text spells.
fn numbers<T>(original: &Original, attribute: usize, read: impl Fn(&str) -> Option<T>) -> Vec<Option<T>> {
    let book = &original.books[attribute];
    let number = |code: Code| if code < FIRST_VALUE { None } else { read(book.canonical(code)) };
    (0..book.codes() as Code).map(number).collect()
}
