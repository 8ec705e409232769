//! Up to which time the buckets of a stream close.

use super::state::{Head, SourceFront, SourcePartition};
use super::terms::Terms;
use std::collections::BTreeMap;

/// Windows by which a partition delays buckets at most: half of those that a person may have open.
const MOST_DELAY: i64 = 64;

/// All source partitions, and those without an unread record, each with the offset where that was found.
pub(super) type Sources<'a> = (&'a [SourcePartition], &'a BTreeMap<SourcePartition, i64>);

fn earliest(front: &[(u64, i64)]) -> Option<i64> {
    front.iter().map(|(_, time_ms)| *time_ms).min()
}

impl SourceFront {
    /// The time that the people of the partition have passed: a crowd of them, so that few clocks that are ahead make no record of the
    /// others late; or the latest where fewer were there in the last two windows, so that nobody who has stopped holds all buckets
    /// back. None without anybody.
    fn passed(&self, crowd: usize, every_ms: i64) -> Option<i64> {
        let latest = self.front.iter().map(|(_, time_ms)| *time_ms).max()?;
        let of_crowd = earliest(&self.front).filter(|time_ms| {
            self.front.len() == crowd && *time_ms >= latest.saturating_sub(every_ms.saturating_mul(2))
        });
        Some(of_crowd.unwrap_or(latest))
    }
}

impl Head {
    /// Time up to which buckets of a series close. A crowd of people has passed it, so that a few clocks that are ahead close nothing for
    /// the others. With `sources`, each of them has passed it too, or is idle at the offset where it stands, or is far behind.
    pub(super) fn watermark(&self, terms: &Terms, series: usize, sources: Option<Sources<'_>>) -> i64 {
        let of_series = &terms.series[series];
        let Some(crowd) = earliest(&self.front).filter(|_| self.front.len() == terms.cohorts.crowd) else {
            return i64::MIN;
        };
        let least = crowd.saturating_sub(of_series.every_ms.saturating_mul(MOST_DELAY));
        let mut passed = crowd;
        if let Some((all, idle)) = sources {
            let known: BTreeMap<SourcePartition, &SourceFront> =
                self.sources.iter().map(|source| (source.source, source)).collect();
            for source in all {
                let front = known.get(source);
                if idle.get(source) == Some(&front.map_or(0, |front| front.next)) {
                    continue;
                }
                // One that has had records, but of nobody, delays nothing.
                let limit = front.map_or(i64::MIN, |front| {
                    front.passed(terms.cohorts.crowd, of_series.every_ms).unwrap_or(i64::MAX)
                });
                passed = passed.min(limit.max(least));
            }
        }
        of_series.window(passed.saturating_sub(of_series.lateness_ms))
    }

    /// Whether buckets close now, without further contributions.
    #[must_use]
    pub fn has_due(&self, terms: &Terms, sources: &[SourcePartition], idle: &BTreeMap<SourcePartition, i64>) -> bool {
        let is_due = |series: usize| self.watermark(terms, series, Some((sources, idle))) > self.closed_ms[series];
        (0..terms.series.len()).any(is_due)
    }

    /// Partitions for which buckets wait that a crowd of people has passed, each with the offset where it stands.
    #[must_use]
    pub fn waits_for(&self, terms: &Terms, sources: &[SourcePartition]) -> BTreeMap<SourcePartition, i64> {
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
