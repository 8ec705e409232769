//! History of two minutes, one point per second.

use std::collections::VecDeque;

use serde::Serialize;

use super::{
    labels::{Label, Stage},
    report::{BatchReport, ClassSizeFigures, RiskFigures, StageSeconds},
};

pub(super) const HISTORY_SECONDS: usize = 120;

/// Counts of one second, and sizes of the last batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct HistoryPoint {
    /// Seconds since the start.
    pub second: u64,
    /// Committed batches.
    pub batches: u64,
    /// Consumed records.
    pub consumed: u64,
    /// Records with a release.
    pub released: u64,
    /// Records without any release.
    pub suppressed: u64,
    /// Unreadable records.
    pub dead_lettered: u64,
    /// Payload bytes consumed.
    pub bytes_in: u64,
    /// Encoded bytes released.
    pub bytes_out: u64,
    /// Stage times of all batches.
    pub seconds: StageSeconds,
    /// Maximum over batches; 0 without timestamps.
    pub append_to_commit_seconds: f64,
    /// Withheld records.
    pub held: u64,
    /// Records behind the end of the source, if reported.
    pub lag_records: Option<u64>,
    /// Risk of incoming records.
    pub risk_before: RiskFigures,
    /// Risk of fragments.
    pub risk_after: RiskFigures,
    /// Class sizes of fragments.
    pub crowd: ClassSizeFigures,
    /// Mean loss of present cells, 0 to 1.
    pub loss: f64,
    /// Share of present cells released exactly.
    pub exact_share: f64,
}

/// Ring of consecutive seconds; one without a batch keeps the previous sizes.
#[derive(Default)]
pub(super) struct SecondsHistory(VecDeque<HistoryPoint>);

impl SecondsHistory {
    /// Adds every second up to `second`; a backward clock adds none.
    pub fn open_seconds(&mut self, second: u64) {
        let Some(last) = self.0.back().copied() else {
            self.0.push_back(HistoryPoint { second, ..HistoryPoint::default() });
            return;
        };
        let first = (last.second + 1).max(second.saturating_sub(HISTORY_SECONDS as u64));
        for opened in first..=second {
            if self.0.len() > HISTORY_SECONDS {
                self.0.pop_front();
            }
            self.0.push_back(HistoryPoint {
                second: opened,
                held: last.held,
                lag_records: last.lag_records,
                risk_before: last.risk_before,
                risk_after: last.risk_after,
                crowd: last.crowd,
                loss: last.loss,
                exact_share: last.exact_share,
                ..HistoryPoint::default()
            });
        }
    }

    /// Adds a batch.
    pub fn record(&mut self, second: u64, report: &BatchReport) {
        self.open_seconds(second);
        let Some(point) = self.0.back_mut() else { return };
        point.batches += 1;
        point.consumed += report.consumed;
        point.released += report.released;
        point.suppressed += report.suppressed.total();
        point.dead_lettered += report.dead_lettered.total();
        point.bytes_in += report.bytes_in;
        point.bytes_out += report.bytes_out;
        for stage in Stage::ALL {
            point.seconds.add(*stage, report.seconds.get(*stage));
        }
        point.append_to_commit_seconds =
            point.append_to_commit_seconds.max(report.append_to_commit_seconds.unwrap_or_default());
        point.held = report.held;
        point.lag_records = report.lag_records;
        point.risk_before = report.risk_before;
        point.risk_after = report.risk_after;
        point.crowd = report.crowd;
        point.loss = report.loss;
        point.exact_share = report.exact_share;
    }

    /// Returns the seconds before `second`, oldest first, at most [`HISTORY_SECONDS`].
    pub fn completed_seconds(&mut self, second: u64) -> Vec<HistoryPoint> {
        self.open_seconds(second);
        self.0.iter().filter(|point| point.second < second).copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{BatchReport, HISTORY_SECONDS, SecondsHistory};

    proptest! {
        #[test]
        fn history_seconds_are_consecutive_and_complete(
            batches in prop::collection::vec((0u64..200, 0u64..1_000), 0..60),
        ) {
            let (mut history, mut now) = (SecondsHistory::default(), 0);
            let mut arrivals = Vec::new();
            for (gap, consumed) in batches {
                now += gap;
                arrivals.push((now, consumed));
                history.record(now, &BatchReport { consumed, ..BatchReport::default() });
            }
            let points = history.completed_seconds(now + 1);
            prop_assert!(points.len() <= HISTORY_SECONDS);
            prop_assert!(points.windows(2).all(|pair| pair[1].second == pair[0].second + 1));
            let oldest = points.first().map_or(0, |point| point.second);
            let expected: u64 = arrivals.iter().filter(|(second, _)| *second >= oldest).map(|(_, n)| n).sum();
            prop_assert_eq!(points.iter().map(|point| point.consumed).sum::<u64>(), expected);
            prop_assert_eq!(points.last().map_or(now, |point| point.second), now);
        }
    }

    #[test]
    fn seconds_without_batches_keep_last_sizes() {
        let mut history = SecondsHistory::default();
        history.record(5, &BatchReport { consumed: 9, held: 3, ..BatchReport::default() });
        let points = history.completed_seconds(8);
        let seen: Vec<_> = points.iter().map(|p| (p.second, p.consumed, p.held)).collect();
        assert_eq!(seen, [(5, 9, 3), (6, 0, 3), (7, 0, 3)]);
    }
}
