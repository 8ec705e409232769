//! Lineage of fragments and series, for the custodian only.

use serde::Serialize;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use throng_core::series::{AllSeriesTerms, CohortState, RowFormat, SeriesEntry, SeriesRow, SeriesTerms};
use throng_core::stream::release_sink::SeriesLineage;

/// Released fragment with its source record.
#[derive(Clone, Debug, Serialize)]
pub struct FragmentEntry<'a> {
    /// Path, partition and number of the record, from 0.
    pub source: (&'a str, i32, i64),
    /// Index of the array element, if elements are records.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub element: Option<u32>,
    /// Sequence number of the batch.
    pub batch: u64,
    /// Timestamp of the batch, in milliseconds since 1970.
    pub time: i64,
    /// Attribute group.
    pub group: &'a str,
    /// Line in the group's output, from 0, without the header.
    pub line: u64,
    /// Keyed digest of the subject, in hexadecimal digits.
    pub subject: Option<String>,
}

impl FragmentEntry<'_> {
    /// Serializes the entry as one line.
    ///
    /// # Panics
    /// Never.
    #[must_use]
    pub fn to_line(&self) -> Vec<u8> {
        let mut line = serde_json::to_vec(self).expect("plain values always serialize");
        line.push(b'\n');
        line
    }
}

#[derive(Debug, Default)]
struct RecordedCohort {
    sets: Vec<Option<u16>>,
    is_retired: bool,
}

#[derive(Debug, Default)]
pub(super) struct SeriesRecorder {
    has_started: bool,
    cohorts: BTreeMap<u32, RecordedCohort>,
    closed_ms: Vec<i64>,
}

impl SeriesRecorder {
    /// The first batch also records the state of an earlier run.
    pub fn entries(&mut self, batch: &SeriesLineage<'_>, rows: &[SeriesRow], lines: &[u64]) -> Vec<u8> {
        let mut text = Vec::new();
        if !self.has_started {
            self.has_started = true;
            let before = batch.before;
            self.closed_ms = vec![i64::MIN; batch.terms.series.len()];
            let cohorts = before.cohorts.iter().map(|(number, cohort)| (*number, cohort));
            self.append_cohorts(batch.terms, cohorts, true, &mut text);
            let cohorts = before.cohorts.iter().map(|(number, cohort)| (*number, cohort));
            self.append_ends(batch.terms, (&before.head.closed_ms, true), cohorts, &mut text);
        }
        let changed = || batch.changes.cohorts.iter().map(|(number, cohort)| (*number, cohort));
        self.append_cohorts(batch.terms, changed(), false, &mut text);
        append_pooled_rows(batch.terms, rows, lines, &mut text);
        append_published_rows(batch.terms, rows, &mut text);
        for &(coordinate, series) in batch.dropped {
            let series = batch.terms.series[series].name.clone();
            append(
                &SeriesEntry::Dropped { series, offset: coordinate.offset, element: coordinate.element_index() },
                &mut text,
            );
        }
        // An erasure between two batches can retire cohorts.
        let cohorts = batch.before.cohorts.iter().map(|(number, cohort)| (*number, cohort)).chain(changed());
        self.append_ends(batch.terms, (&batch.changes.head.closed_ms, false), cohorts, &mut text);
        text
    }

    fn append_cohorts<'a>(
        &mut self,
        terms: &AllSeriesTerms,
        cohorts: impl Iterator<Item = (u32, &'a CohortState)>,
        is_older: bool,
        text: &mut Vec<u8>,
    ) {
        for (number, cohort) in cohorts {
            let recorded = self.cohorts.entry(number).or_insert_with(|| {
                let (token, stratum) = (cohort.token.clone(), cohort.stratum.clone());
                let hex = |member: &u64| format!("{member:016x}");
                let atoms = cohort.atoms.iter().map(|atom| atom.members.iter().map(hex).collect()).collect();
                append(
                    &SeriesEntry::Cohort { number, token, stratum, atoms, erased: cohort.erased.clone(), is_older },
                    text,
                );
                RecordedCohort { sets: vec![None; cohort.sets.len()], is_retired: false }
            });
            for (channel, (set, known)) in cohort.sets.iter().zip(&mut recorded.sets).enumerate() {
                if let (Some(atoms), None) = (*set, *known) {
                    *known = Some(atoms);
                    let (series, signal, slot) = channel_position(terms, channel);
                    let atoms = (0..16).filter(|atom| atoms & 1 << atom != 0).collect();
                    let signal = signal.map(|signal| series.signals[signal].name.clone());
                    let series = series.name.clone();
                    append(&SeriesEntry::Set { series, signal, slot, cohort: number, atoms }, text);
                }
            }
        }
    }

    fn append_ends<'a>(
        &mut self,
        terms: &AllSeriesTerms,
        (closed_ms, is_older): (&[i64], bool),
        cohorts: impl Iterator<Item = (u32, &'a CohortState)>,
        text: &mut Vec<u8>,
    ) {
        for ((series, &until), known) in terms.series.iter().zip(closed_ms).zip(&mut self.closed_ms) {
            if until > *known {
                *known = until;
                append(&SeriesEntry::Closed { series: series.name.clone(), until, is_older }, text);
            }
        }
        for (number, _) in cohorts.filter(|(_, cohort)| cohort.is_retired) {
            let recorded = self.cohorts.entry(number).or_default();
            if !recorded.is_retired {
                recorded.is_retired = true;
                append(&SeriesEntry::Retired { cohort: number }, text);
            }
        }
    }
}

fn append_pooled_rows(terms: &AllSeriesTerms, rows: &[SeriesRow], lines: &[u64], text: &mut Vec<u8>) {
    let mut lines = lines.to_vec();
    for row in rows {
        let series = &terms.series[row.series];
        if series.pooled && !row.sets.is_empty() {
            let cohorts = row.sets.iter().map(|(cohort, _)| *cohort).collect();
            append(&SeriesEntry::Pooled { series: series.name.clone(), line: lines[row.series], cohorts }, text);
        }
        lines[row.series] += 1;
    }
}

fn append_published_rows(terms: &AllSeriesTerms, rows: &[SeriesRow], text: &mut Vec<u8>) {
    let mut buckets: BTreeMap<(usize, i64, bool), (u64, Sha256)> = BTreeMap::new();
    for row in rows {
        let (count, hash) = buckets.entry((row.series, row.bucket, row.is_of_epoch())).or_default();
        *count += 1;
        hash.update(row.to_output_line(&terms.series[row.series], &terms.cohorts.strata_names, RowFormat::Json));
        hash.update(b"\n");
    }
    for ((series, bucket, is_of_epoch), (rows, hash)) in buckets {
        let (series, sha256) = (terms.series[series].name.clone(), format!("{:x}", hash.finalize()));
        append(&SeriesEntry::Rows { series, bucket, is_of_epoch, rows, sha256 }, text);
    }
}

fn channel_position(terms: &AllSeriesTerms, channel: usize) -> (&SeriesTerms, Option<usize>, usize) {
    let mut within = channel;
    for series in &terms.series {
        if within < series.channels() {
            if series.moments.is_some() {
                return (series, None, 0);
            }
            return (series, Some(within % series.signals.len()), within / series.signals.len());
        }
        within -= series.channels();
    }
    unreachable!("a state has as many channels as its terms")
}

fn append(entry: &SeriesEntry, text: &mut Vec<u8>) {
    text.extend(serde_json::to_vec(entry).expect("plain values always serialize"));
    text.push(b'\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lineage_entry_is_one_line() {
        let entry = FragmentEntry {
            source: ("wearable.ndjson", 0, 70),
            element: None,
            batch: 5,
            time: 1_700_000_000_000,
            group: "main",
            line: 9,
            subject: Some(format!("{:016x}", 0xab01)),
        };
        let line = |entry: FragmentEntry<'_>| String::from_utf8(entry.to_line()).unwrap();
        let expected = "{\"source\":[\"wearable.ndjson\",0,70],\"batch\":5,\"time\":1700000000000,\"group\":\"main\",\"line\":9,\"subject\":\"000000000000ab01\"}\n";
        assert_eq!(line(entry.clone()), expected);
        let element = expected.replace("70],", "70],\"element\":2,");
        assert_eq!(line(FragmentEntry { element: Some(2), ..entry.clone() }), element);
        assert!(line(FragmentEntry { subject: None, ..entry }).ends_with("\"subject\":null}\n"));
    }
}
