//! Computes the time up to which the buckets of a stream close.

use super::state::{SharedSeriesState, SourceFront, SourcePartition};
use super::terms::AllSeriesTerms;
use std::collections::BTreeMap;

/// Largest delay of buckets by a partition, in windows: half of the open buckets allowed per subject.
const MAX_DELAY_WINDOWS: i64 = 64;

/// All source partitions, and those without an unread record, each with the offset of that observation.
pub(super) type PartitionStatus<'a> = (&'a [SourcePartition], &'a BTreeMap<SourcePartition, i64>);

fn earliest_time(front: &[(u64, i64)]) -> Option<i64> {
    front.iter().map(|(_, time_ms)| *time_ms).min()
}

impl SourceFront {
    /// Time passed by the subjects of the partition; none without subjects.
    ///
    /// It is the earliest time of a crowd, so that a few fast clocks do not make the records of others late. With
    /// fewer subjects in the last two windows it is the latest time, so that a subject that has stopped delays no
    /// bucket.
    fn passed_time(&self, crowd: usize, every_ms: i64) -> Option<i64> {
        let latest = self.front.iter().map(|(_, time_ms)| *time_ms).max()?;
        let of_crowd = earliest_time(&self.front).filter(|time_ms| {
            self.front.len() == crowd && *time_ms >= latest.saturating_sub(every_ms.saturating_mul(2))
        });
        Some(of_crowd.unwrap_or(latest))
    }
}

impl SharedSeriesState {
    /// Time up to which the buckets of a series close. A crowd of subjects has passed it, so that a few fast clocks
    /// close no bucket. With `sources`, each partition has also passed it, is idle at its current offset, or is far
    /// behind.
    pub(super) fn watermark(&self, terms: &AllSeriesTerms, series: usize, sources: Option<PartitionStatus<'_>>) -> i64 {
        let of_series = &terms.series[series];
        let Some(crowd) = earliest_time(&self.front).filter(|_| self.front.len() == terms.cohorts.crowd) else {
            return i64::MIN;
        };
        let least = crowd.saturating_sub(of_series.every_ms.saturating_mul(MAX_DELAY_WINDOWS));
        let mut passed = crowd;
        if let Some((all, idle)) = sources {
            let known: BTreeMap<SourcePartition, &SourceFront> =
                self.sources.iter().map(|source| (source.source, source)).collect();
            for source in all {
                let front = known.get(source);
                if idle.get(source) == Some(&front.map_or(0, |front| front.next)) {
                    continue;
                }
                // A partition that has read records but no subjects delays no bucket.
                let limit = front.map_or(i64::MIN, |front| {
                    front.passed_time(terms.cohorts.crowd, of_series.every_ms).unwrap_or(i64::MAX)
                });
                passed = passed.min(limit.max(least));
            }
        }
        of_series.window(passed.saturating_sub(of_series.lateness_ms))
    }

    /// Returns true if buckets can close now, without further contributions.
    #[must_use]
    pub fn has_due_buckets(
        &self,
        terms: &AllSeriesTerms,
        sources: &[SourcePartition],
        idle: &BTreeMap<SourcePartition, i64>,
    ) -> bool {
        let is_due = |series: usize| self.watermark(terms, series, Some((sources, idle))) > self.closed_ms[series];
        (0..terms.series.len()).any(is_due)
    }

    /// Partitions that delay buckets already passed by a crowd of subjects, each with its current offset.
    #[must_use]
    pub fn delaying_partitions(
        &self,
        terms: &AllSeriesTerms,
        sources: &[SourcePartition],
    ) -> BTreeMap<SourcePartition, i64> {
        let mut delaying = BTreeMap::new();
        let nobody = BTreeMap::new();
        for series in 0..terms.series.len() {
            let passed = self.watermark(terms, series, None);
            if passed <= self.closed_ms[series] || self.watermark(terms, series, Some((sources, &nobody))) >= passed {
                continue;
            }
            for source in sources {
                let alone = std::slice::from_ref(source);
                if self.watermark(terms, series, Some((alone, &nobody))) < passed {
                    let known = self.sources.iter().find(|known| known.source == *source);
                    delaying.insert(*source, known.map_or(0, |known| known.next));
                }
            }
        }
        delaying
    }
}
