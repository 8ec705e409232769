//! Lines of the lineage file: the record of each fragment, and how the series were made. For the custodian only.

use crate::anonymity::series::{Cohort, RowFormat, SeriesRow, SeriesTerms, Terms};
use crate::release::sink::SeriesLineage;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// A released fragment and its source record. For the custodian's evaluation only.
#[derive(Clone, Debug, Serialize)]
pub struct FragmentEntry<'a> {
    /// Path of the source, partition, and number of the record, from 0.
    pub source: (&'a str, i32, i64),
    /// The index of the element that it is, where elements of an array are the records.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub element: Option<u32>,
    /// Sequence number of the batch.
    pub batch: u64,
    /// Stamp of the batch, milliseconds since 1970.
    pub time: i64,
    /// The group that the fragment left in.
    pub group: &'a str,
    /// Line of the group's output, from 0, without a header.
    pub line: u64,
    /// Keyed digest of the subject, in hexadecimal digits; none where the record names none.
    pub subject: Option<String>,
}

impl FragmentEntry<'_> {
    /// The entry as one line, with its line break.
    ///
    /// # Panics
    /// Never: numbers and texts always serialize.
    #[must_use]
    pub fn to_line(&self) -> Vec<u8> {
        let mut line = serde_json::to_vec(self).expect("plain values always serialize");
        line.push(b'\n');
        line
    }
}

/// One event of the series. The events of a batch come in the order of this list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", rename_all_fields = "snake_case", deny_unknown_fields)]
pub enum SeriesEntry {
    /// A cohort was formed.
    Cohort {
        /// Its number, ascending in the order of creation.
        number: u32,
        /// Its name in rows.
        token: String,
        /// Labels of its stratum.
        stratum: Vec<String>,
        /// Keyed digests of the members of each atom, in hexadecimal digits.
        atoms: Vec<Vec<String>>,
        /// Last 16 bits of the digests of members who were erased before this lineage.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        erased: Vec<u16>,
        /// An earlier run has formed it.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_older: bool,
    },
    /// A contributor set was locked.
    Set {
        /// Name of the series.
        series: String,
        /// The signal; none: the set of the moments.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signal: Option<String>,
        /// Slot of the cycle, 0 without one.
        slot: usize,
        /// Number of the cohort.
        cohort: u32,
        /// The atoms, by their position in the cohort.
        atoms: Vec<usize>,
    },
    /// A row of several cohorts whose members count together (`pooled = true`).
    Pooled {
        /// Name of the series.
        series: String,
        /// Line of the series' output, from 0, without a header.
        line: u64,
        /// Numbers of the cohorts.
        cohorts: Vec<u32>,
    },
    /// A record contributes nothing: its bucket was closed, its time is ahead of the clock, or there was no room.
    Dropped {
        /// Name of the series.
        series: String,
        /// Number of the record in the source, from 0.
        offset: i64,
        /// The index of the element that it is, where elements of an array are the records.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        element: Option<u32>,
    },
    /// Rows of a bucket were published.
    Rows {
        /// Name of the series.
        series: String,
        /// Start of the bucket, or of the epoch, in milliseconds since 1970.
        bucket: i64,
        /// Rows of moments.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_of_epoch: bool,
        /// Number of rows.
        rows: u64,
        /// SHA-256 of the rows as lines of JSON, in hexadecimal digits.
        sha256: String,
    },
    /// Buckets were closed.
    Closed {
        /// Name of the series.
        series: String,
        /// All buckets that end here or earlier, in milliseconds since 1970.
        until: i64,
        /// An earlier run has closed them.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_older: bool,
    },
    /// A cohort was retired: it publishes no later bucket.
    Retired {
        /// Number of the cohort.
        cohort: u32,
    },
}

/// What the lineage file already has of a cohort.
#[derive(Debug, Default)]
struct Recorded {
    sets: Vec<Option<u16>>,
    is_retired: bool,
}

/// Writes down how the series change from batch to batch.
#[derive(Debug, Default)]
pub(super) struct SeriesRecorder {
    has_started: bool,
    cohorts: BTreeMap<u32, Recorded>,
    closed_ms: Vec<i64>,
}

impl SeriesRecorder {
    /// The lines of a batch whose `rows` come behind as many `lines` of each series. Those of the first batch begin with the state that
    /// an earlier run has left.
    pub fn entries(&mut self, batch: &SeriesLineage<'_>, rows: &[SeriesRow], lines: &[u64]) -> Vec<u8> {
        let mut text = Vec::new();
        if !self.has_started {
            self.has_started = true;
            let before = batch.before;
            self.closed_ms = vec![i64::MIN; batch.terms.series.len()];
            let cohorts = before.cohorts.iter().map(|(number, cohort)| (*number, cohort));
            self.cohorts(batch.terms, cohorts, true, &mut text);
            let cohorts = before.cohorts.iter().map(|(number, cohort)| (*number, cohort));
            self.ends(batch.terms, (&before.head.closed_ms, true), cohorts, &mut text);
        }
        let changed = || batch.changes.cohorts.iter().map(|(number, cohort)| (*number, cohort));
        self.cohorts(batch.terms, changed(), false, &mut text);
        pooled(batch.terms, rows, lines, &mut text);
        published(batch.terms, rows, &mut text);
        for &(coordinate, series) in batch.dropped {
            let series = batch.terms.series[series].name.clone();
            append(&SeriesEntry::Dropped { series, offset: coordinate.offset, element: coordinate.index() }, &mut text);
        }
        // An erasure retires cohorts between two batches.
        let cohorts = batch.before.cohorts.iter().map(|(number, cohort)| (*number, cohort)).chain(changed());
        self.ends(batch.terms, (&batch.changes.head.closed_ms, false), cohorts, &mut text);
        text
    }

    /// New cohorts and newly locked sets.
    fn cohorts<'a>(
        &mut self,
        terms: &Terms,
        cohorts: impl Iterator<Item = (u32, &'a Cohort)>,
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
                Recorded { sets: vec![None; cohort.sets.len()], is_retired: false }
            });
            for (channel, (set, known)) in cohort.sets.iter().zip(&mut recorded.sets).enumerate() {
                if let (Some(atoms), None) = (*set, *known) {
                    *known = Some(atoms);
                    let (series, signal, slot) = place_of(terms, channel);
                    let atoms = (0..16).filter(|atom| atoms & 1 << atom != 0).collect();
                    let signal = signal.map(|signal| series.signals[signal].name.clone());
                    let series = series.name.clone();
                    append(&SeriesEntry::Set { series, signal, slot, cohort: number, atoms }, text);
                }
            }
        }
    }

    /// Closed buckets and retired cohorts.
    fn ends<'a>(
        &mut self,
        terms: &Terms,
        (closed_ms, is_older): (&[i64], bool),
        cohorts: impl Iterator<Item = (u32, &'a Cohort)>,
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

/// Cohorts of the rows that several cohorts make together.
fn pooled(terms: &Terms, rows: &[SeriesRow], lines: &[u64], text: &mut Vec<u8>) {
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

/// Number and digest of the rows of each bucket.
fn published(terms: &Terms, rows: &[SeriesRow], text: &mut Vec<u8>) {
    let mut buckets: BTreeMap<(usize, i64, bool), (u64, Sha256)> = BTreeMap::new();
    for row in rows {
        let (count, hash) = buckets.entry((row.series, row.bucket, row.is_of_epoch())).or_default();
        *count += 1;
        hash.update(row.written(&terms.series[row.series], &terms.cohorts.strata_names, RowFormat::Json));
        hash.update(b"\n");
    }
    for ((series, bucket, is_of_epoch), (rows, hash)) in buckets {
        let (series, sha256) = (terms.series[series].name.clone(), format!("{:x}", hash.finalize()));
        append(&SeriesEntry::Rows { series, bucket, is_of_epoch, rows, sha256 }, text);
    }
}

/// Series, signal and slot of a channel; no signal for the channel of the moments.
fn place_of(terms: &Terms, channel: usize) -> (&SeriesTerms, Option<usize>, usize) {
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
    fn an_entry_is_one_line() {
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
