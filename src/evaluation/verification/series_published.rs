//! Check that each bucket has exactly the rows published by the run, in order.

use super::violation_log::ViolationLog;
use crate::evaluation::released_series_rows::ReleasedSeriesFiles;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use throng_core::series::{AllSeriesTerms, RowFormat};
use throng_eval::series::{RowsDigest, SeriesLineage};

/// Series, start, and true for an epoch.
type PublishedKey = (usize, i64, bool);

#[derive(Default)]
struct FileBucketRows {
    first: u64,
    rows: u64,
    hash: Sha256,
}

pub(super) fn check_published(
    terms: &AllSeriesTerms,
    lineage: &SeriesLineage,
    read: &ReleasedSeriesFiles,
    findings: &mut ViolationLog,
) {
    let mut found: BTreeMap<PublishedKey, FileBucketRows> = BTreeMap::new();
    for at in &read.rows {
        let Ok(row) = &at.row else { continue };
        let of_bucket = found
            .entry((row.series, row.bucket, row.is_of_epoch()))
            .or_insert_with(|| FileBucketRows { first: at.number, ..FileBucketRows::default() });
        of_bucket.rows += 1;
        of_bucket.hash.update(row.to_output_line(
            &terms.series[row.series],
            &terms.cohorts.strata_names,
            RowFormat::Json,
        ));
        of_bucket.hash.update(b"\n");
    }
    let keys: BTreeSet<PublishedKey> = found.keys().chain(lineage.published.keys()).copied().collect();
    // Line of a violation: the first row, or the position of a missing bucket.
    let mut next: BTreeMap<usize, u64> = BTreeMap::new();
    for at in &read.rows {
        next.insert(at.series, at.number + 1);
    }
    for key in keys.into_iter().rev() {
        let of_file = found.get(&key);
        let number = of_file.map_or_else(|| next.get(&key.0).copied().unwrap_or(0), |of_file| of_file.first);
        next.insert(key.0, number);
        if let Some((promise, counts)) = bucket_violation(of_file, lineage.published.get(&key)) {
            let (file, line) = read.file_and_line(key.0, number);
            findings.add_violation(promise, file, usize::try_from(line - 1).unwrap_or(usize::MAX), None, counts);
        }
    }
}

fn bucket_violation(
    found: Option<&FileBucketRows>,
    published: Option<&RowsDigest>,
) -> Option<(&'static str, Option<[usize; 2]>)> {
    let count = |rows: u64| usize::try_from(rows).unwrap_or(usize::MAX);
    let counts = [found.map_or(0, |found| count(found.rows)), published.map_or(0, |published| count(published.rows))];
    if counts[0] != counts[1] {
        return Some(("a bucket has the rows that the run has published", Some(counts)));
    }
    let (found, published) = (found?, published?);
    let is_same = format!("{:x}", found.hash.clone().finalize()) == published.sha256;
    (!is_same).then_some(("rows of a bucket are those that the run has published, in their order", None))
}
