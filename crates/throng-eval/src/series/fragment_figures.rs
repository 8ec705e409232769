//! Series utility figures for a release of fragments.

use super::original_contributions::{compute_contributions, locate_records};
use super::release_utility::{PopulationBucket, ReleaseUtility, SignalSeries, median};
use super::series_lineage::SeriesLineage;
use crate::original::OriginalData;
use crate::released_lines::ReleasedGroup;
use std::collections::{BTreeMap, BTreeSet};
use throng_core::series::AllSeriesTerms;
use throng_core::values::codebook::CellId;
use throng_core::values::json::unquoted;
use throng_core::values::moment;
use throng_core::values::subject_digest::NO_SUBJECT;

/// Computes the figures; `daily` is a daily series of the numeric attributes. None without a lineage.
#[must_use]
pub fn fragment_utility(
    original: &OriginalData,
    groups: &[ReleasedGroup],
    daily: Option<&AllSeriesTerms>,
) -> Option<ReleaseUtility> {
    let mut rows: BTreeSet<u32> = BTreeSet::new();
    for group in groups {
        rows.extend(group.origin.as_ref()?.iter().map(|origin| origin.row));
    }
    let subjects = &original.batch.subjects;
    let is_person = |subject: &u64| *subject != NO_SUBJECT;
    let people: BTreeSet<u64> = subjects.iter().copied().filter(is_person).collect();
    let represented: BTreeSet<u64> = rows.iter().map(|row| subjects[*row as usize]).filter(is_person).collect();
    Some(ReleaseUtility {
        people: people.len() as u64,
        people_represented: represented.len() as u64,
        records: subjects.len() as u64 + original.rejected,
        unreadable: original.rejected,
        records_represented: rows.len() as u64,
        error_ratio: daily.and_then(|terms| daily_error_ratio(original, groups, terms, &people)),
    })
}

/// Over days, then signals.
fn daily_error_ratio(
    original: &OriginalData,
    groups: &[ReleasedGroup],
    terms: &AllSeriesTerms,
    people: &BTreeSet<u64>,
) -> Option<f64> {
    let people: Vec<u64> = people.iter().copied().collect();
    let (records, _) = locate_records(original, terms, &people, &SeriesLineage::default());
    let actual = compute_contributions(original, terms, &records);
    let series = terms.series.first()?;
    let signals = series.signals.iter().enumerate().filter_map(|(at, signal)| {
        let mut sums: BTreeMap<i64, (f64, f64)> = BTreeMap::new();
        for group in groups {
            let (Some(times), Some(cells)) = (group.column(terms.cohorts.time), group.column(signal.attribute)) else {
                continue;
            };
            let days = parse_cells(times, |cell| cell_time(original.books[terms.cohorts.time].text(cell)));
            let values = parse_cells(cells, |cell| cell_midpoint(original.books[signal.attribute].text(cell)));
            for (time, cell) in times.iter().zip(cells) {
                if let (Some(day), Some(value)) = (days[time], values[cell]) {
                    let sum = sums.entry(series.bucket(day)).or_default();
                    *sum = (sum.0 + 1.0, sum.1 + value);
                }
            }
        }
        let bucket = |(bucket, (lines, sum)): (i64, (f64, f64))| {
            let people = actual.get(&(0, bucket)).into_iter().flat_map(BTreeMap::values);
            let values: Vec<f64> = people.filter_map(|of| of.values[at]).collect();
            PopulationBucket::compare_with_values(bucket, sum / lines, &values)
        };
        SignalSeries { series: 0, signal: at, buckets: sums.into_iter().map(bucket).collect() }.error_ratio()
    });
    median(signals.collect())
}

fn parse_cells<T>(cells: &[CellId], read: impl Fn(CellId) -> Option<T>) -> BTreeMap<CellId, Option<T>> {
    let cells: BTreeSet<CellId> = cells.iter().copied().collect();
    let is_known = |cell: &CellId| !crate::released_lines::is_foreign(*cell);
    cells.into_iter().map(|cell| (cell, Some(cell).filter(is_known).and_then(&read))).collect()
}

/// None for longer periods.
fn cell_time(text: &str) -> Option<i64> {
    moment::parse(&unquoted(text)?)
}

/// Number, or interval middle of `30-34` or `[30,35)`.
fn cell_midpoint(text: &str) -> Option<f64> {
    let number = |text: &str| text.parse::<f64>().ok().filter(|value| value.is_finite());
    if let Some(value) = number(text) {
        return Some(value);
    }
    let label = unquoted(text)?;
    let (low, high) = match label.strip_prefix('[') {
        Some(interval) => interval.strip_suffix([')', ']'])?.split_once(',')?,
        // A leading minus may be a sign.
        None => {
            let (at, _) = label.char_indices().skip(1).find(|(_, c)| *c == '-')?;
            (&label[..at], &label[at + 1..])
        }
    };
    Some(f64::midpoint(number(low)?, number(high)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn midpoints_match_printed_intervals() {
        for (text, expected) in [
            ("7", Some(7.0)),
            ("-7.5", Some(-7.5)),
            ("\"30-34\"", Some(32.0)),
            ("\"-5--1\"", Some(-3.0)),
            ("\"-5-4\"", Some(-0.5)),
            ("\"[30,35)\"", Some(32.5)),
            ("\"[-1.5,0]\"", Some(-0.75)),
            ("\"*\"", None),
            ("\"a-b\"", None),
            ("null", None),
            ("", None),
        ] {
            assert_eq!(cell_midpoint(text), expected, "{text}");
        }
    }

    #[test]
    fn only_dates_and_times_have_a_day() {
        assert_eq!(cell_time("\"1970-01-02\""), Some(86_400_000));
        assert_eq!(cell_time("\"1970-01\""), None);
        assert_eq!(cell_time("\"*\""), None);
    }
}
