//! The last two minutes, a point a second.

use std::collections::VecDeque;

use serde::Serialize;

use super::{
    labels::{Label, Stage},
    report::{BatchReport, CrowdPicture, RiskPicture, StageSeconds},
};

/// Points kept.
pub(super) const POINTS: usize = 120;

/// One second. Counts are of this second; the others are the last batch's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Point {
    /// Seconds since the start of the process.
    pub second: u64,
    /// Batches committed.
    pub batches: u64,
    /// Records consumed.
    pub consumed: u64,
    /// Records of which something left.
    pub released: u64,
    /// Records of which nothing left.
    pub suppressed: u64,
    /// Records that could not be read.
    pub dead_lettered: u64,
    /// Payload bytes consumed.
    pub bytes_in: u64,
    /// Encoded bytes released.
    pub bytes_out: u64,
    /// Summed over the batches of this second.
    pub seconds: StageSeconds,
    /// The longest of this second's batches, 0 where the source has no timestamps.
    pub append_to_commit_seconds: f64,
    /// Records held at its end.
    pub held: u64,
    /// Records behind the end of the source; none where it cannot say.
    pub lag_records: Option<u64>,
    /// Risk of the records as they came.
    pub risk_before: RiskPicture,
    /// Risk of what left.
    pub risk_after: RiskPicture,
    /// Crowds of what left.
    pub crowd: CrowdPicture,
    /// Mean loss of the present cells, 0 to 1.
    pub loss: f64,
    /// Share of the present cells that left exactly, 0 to 1.
    pub exact_share: f64,
}

/// A ring of seconds without gaps: a second without a batch has counts of 0 and the sizes of the one before.
#[derive(Default)]
pub(super) struct History(VecDeque<Point>);

impl History {
    /// Opens every second up to `second`; time that runs backwards opens none.
    pub fn advance(&mut self, second: u64) {
        let Some(last) = self.0.back().copied() else {
            self.0.push_back(Point { second, ..Point::default() });
            return;
        };
        let first = (last.second + 1).max(second.saturating_sub(POINTS as u64));
        for opened in first..=second {
            if self.0.len() > POINTS {
                self.0.pop_front();
            }
            self.0.push_back(Point {
                second: opened,
                held: last.held,
                lag_records: last.lag_records,
                risk_before: last.risk_before,
                risk_after: last.risk_after,
                crowd: last.crowd,
                loss: last.loss,
                exact_share: last.exact_share,
                ..Point::default()
            });
        }
    }

    /// Adds a batch to `second`.
    pub fn record(&mut self, second: u64, report: &BatchReport) {
        self.advance(second);
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

    /// The seconds that are over, oldest first, at most [`POINTS`]; `second` is the running one.
    pub fn completed(&mut self, second: u64) -> Vec<Point> {
        self.advance(second);
        self.0.iter().filter(|point| point.second < second).copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{BatchReport, History, POINTS};

    proptest! {
        #[test]
        fn seconds_are_gapless_bounded_and_lose_no_record(
            batches in prop::collection::vec((0u64..200, 0u64..1_000), 0..60),
        ) {
            let (mut history, mut now) = (History::default(), 0);
            let mut arrivals = Vec::new();
            for (gap, consumed) in batches {
                now += gap;
                arrivals.push((now, consumed));
                history.record(now, &BatchReport { consumed, ..BatchReport::default() });
            }
            let points = history.completed(now + 1);
            prop_assert!(points.len() <= POINTS);
            prop_assert!(points.windows(2).all(|pair| pair[1].second == pair[0].second + 1));
            let oldest = points.first().map_or(0, |point| point.second);
            let expected: u64 = arrivals.iter().filter(|(second, _)| *second >= oldest).map(|(_, n)| n).sum();
            prop_assert_eq!(points.iter().map(|point| point.consumed).sum::<u64>(), expected);
            prop_assert_eq!(points.last().map_or(now, |point| point.second), now);
        }
    }

    #[test]
    fn silence_is_zero_throughput_and_the_last_sizes() {
        let mut history = History::default();
        history.record(5, &BatchReport { consumed: 9, held: 3, ..BatchReport::default() });
        let points = history.completed(8);
        let seen: Vec<_> = points.iter().map(|p| (p.second, p.consumed, p.held)).collect();
        assert_eq!(seen, [(5, 9, 3), (6, 0, 3), (7, 0, 3)]);
    }
}
