//! Completeness of released rows: each bucket has the rows that the run has published, in their order, and no others.

use super::finding::Findings;
use crate::anonymity::series::{RowFormat, Terms};
use crate::evaluation::series::{PublishedRows, ReadRows, SeriesLineage};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};

/// Series, start of a bucket or an epoch, and whether it is of an epoch.
type Key = (usize, i64, bool);

/// Rows of a bucket that a file has.
#[derive(Default)]
struct FoundRows {
    /// Number of the first one in its file, from 0.
    first: u64,
    rows: u64,
    hash: Sha256,
}

/// Compares number, content and order of the rows of each bucket with the lineage.
pub(super) fn judge_published(terms: &Terms, lineage: &SeriesLineage, read: &ReadRows, findings: &mut Findings) {
    let mut found: BTreeMap<Key, FoundRows> = BTreeMap::new();
    for at in &read.rows {
        let Ok(row) = &at.row else { continue };
        let of_bucket = found
            .entry((row.series, row.bucket, row.is_of_epoch()))
            .or_insert_with(|| FoundRows { first: at.number, ..FoundRows::default() });
        of_bucket.rows += 1;
        of_bucket.hash.update(row.written(&terms.series[row.series], &terms.cohorts.strata_names, RowFormat::Json));
        of_bucket.hash.update(b"\n");
    }
    let keys: BTreeSet<Key> = found.keys().chain(lineage.published.keys()).copied().collect();
    // Findings lie at the first row of the bucket; of a missing bucket where its rows would be.
    let mut next: BTreeMap<usize, u64> = BTreeMap::new();
    for at in &read.rows {
        next.insert(at.series, at.number + 1);
    }
    for key in keys.into_iter().rev() {
        let of_file = found.get(&key);
        let number = of_file.map_or_else(|| next.get(&key.0).copied().unwrap_or(0), |of_file| of_file.first);
        next.insert(key.0, number);
        if let Some((promise, counts)) = broken(of_file, lineage.published.get(&key)) {
            let (file, line) = read.place(key.0, number);
            findings.note(promise, file, usize::try_from(line - 1).unwrap_or(usize::MAX), None, counts);
        }
    }
}

/// The promise that the rows of a bucket break.
fn broken(found: Option<&FoundRows>, published: Option<&PublishedRows>) -> Option<(&'static str, Option<[usize; 2]>)> {
    let count = |rows: u64| usize::try_from(rows).unwrap_or(usize::MAX);
    let counts = [found.map_or(0, |found| count(found.rows)), published.map_or(0, |published| count(published.rows))];
    if counts[0] != counts[1] {
        return Some(("a bucket has the rows that the run has published", Some(counts)));
    }
    let (found, published) = (found?, published?);
    let is_same = format!("{:x}", found.hash.clone().finalize()) == published.sha256;
    (!is_same).then_some(("rows of a bucket are those that the run has published, in their order", None))
}
