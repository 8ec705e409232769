//! Up to which time the buckets of a stream close.

use super::contributions::SourcePartition;
use super::state::{Head, SourceFront};
use super::terms::Terms;
use std::collections::BTreeMap;

fn earliest(front: &[(u64, i64)]) -> Option<i64> {
    front.iter().map(|(_, time_ms)| *time_ms).min()
}

impl Head {
    /// Time up to which buckets of a series close. A crowd of people has passed it, so that a few clocks that are ahead close nothing for
    /// the others. With `sources`, each of them has passed it too, or is idle at the offset where it stands.
    pub(super) fn watermark(
        &self,
        terms: &Terms,
        series: usize,
        sources: Option<(&[SourcePartition], &BTreeMap<SourcePartition, i64>)>,
    ) -> i64 {
        let crowd = earliest(&self.front).filter(|_| self.front.len() == terms.cohorts.crowd);
        let limits = sources.into_iter().flat_map(|(sources, idle)| {
            let delays = |source: &&SourcePartition| {
                let next = self.source(**source).map_or(0, |known| known.next);
                idle.get(*source).is_none_or(|at| *at != next)
            };
            sources.iter().filter(delays).map(|source| self.source(*source).and_then(|known| earliest(&known.front)))
        });
        let terms = &terms.series[series];
        let passed = limits.fold(crowd, |lowest, of_source| Some(lowest?.min(of_source?)));
        passed.map_or(i64::MIN, |time| terms.window(time.saturating_sub(terms.lateness_ms)))
    }

    fn source(&self, source: SourcePartition) -> Option<&SourceFront> {
        self.sources.iter().find(|known| known.source == source)
    }

    /// Whether buckets close now, without further contributions.
    #[must_use]
    pub fn has_due(
        &self,
        terms: &Terms,
        sources: &[SourcePartition],
        idle: &BTreeMap<SourcePartition, i64>,
    ) -> bool {
        let is_due = |series: usize| self.watermark(terms, series, Some((sources, idle))) > self.closed_ms[series];
        (0..terms.series.len()).any(is_due)
    }

    /// Partitions for which buckets wait that a crowd of people has passed, each with the offset where it stands.
    #[must_use]
    pub fn waits_for(
        &self,
        terms: &Terms,
        sources: &[SourcePartition],
        idle: &BTreeMap<SourcePartition, i64>,
    ) -> BTreeMap<SourcePartition, i64> {
        let mut delaying = BTreeMap::new();
        for series in 0..terms.series.len() {
            let passed = self.watermark(terms, series, None);
            if passed <= self.closed_ms[series] {
                continue;
            }
            for source in sources {
                let alone = std::slice::from_ref(source);
                if self.watermark(terms, series, Some((alone, idle))) < passed {
                    delaying.insert(*source, self.source(*source).map_or(0, |known| known.next));
                }
            }
        }
        delaying
    }
}
