//! Watermark of a stream.

use super::state::{SharedSeriesState, SourceFront, SourcePartition};
use super::terms::AllSeriesTerms;
use std::collections::BTreeMap;

/// Delay limit of a partition, in windows: half of the open buckets per subject.
const MAX_DELAY_WINDOWS: i64 = 64;

/// All source partitions; offsets of those without unread records.
pub(super) type PartitionStatus<'a> = (&'a [SourcePartition], &'a BTreeMap<SourcePartition, i64>);

fn earliest_time(front: &[(u64, i64)]) -> Option<i64> {
    front.iter().map(|(_, time_ms)| *time_ms).min()
}

impl SourceFront {
    /// Earliest time of a crowd, so that few fast clocks make no record late. With fewer recent subjects the latest
    /// time, so that an inactive subject delays no bucket.
    fn passed_time(&self, crowd: usize, every_ms: i64) -> Option<i64> {
        let latest = self.front.iter().map(|(_, time_ms)| *time_ms).max()?;
        let of_crowd = earliest_time(&self.front).filter(|time_ms| {
            self.front.len() == crowd && *time_ms >= latest.saturating_sub(every_ms.saturating_mul(2))
        });
        Some(of_crowd.unwrap_or(latest))
    }
}

impl SharedSeriesState {
    /// Time passed by a crowd and, with `sources`, by each partition that is neither idle nor far behind.
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
                // Read records without subjects delay no bucket.
                let limit = front.map_or(i64::MIN, |front| {
                    front.passed_time(terms.cohorts.crowd, of_series.every_ms).unwrap_or(i64::MAX)
                });
                passed = passed.min(limit.max(least));
            }
        }
        of_series.window(passed.saturating_sub(of_series.lateness_ms))
    }

    /// Checks if buckets can close without further contributions.
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

    /// Partitions that delay buckets passed by a crowd, with current offsets.
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
