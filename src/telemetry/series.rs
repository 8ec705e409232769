//! Event of the series: how much of the input their published rows represent.

use super::Telemetry;
use serde::Serialize;

/// How much of the input the published rows represent, since the state was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SeriesPublished {
    /// People whose values are in a contributor set that has been published.
    pub people: u64,
    /// People who have sent a record.
    pub people_seen: u64,
    /// Records in closed buckets, once for each series.
    pub records: u64,
    /// Of these, records of people who are in a published row of their bucket.
    pub represented: u64,
    /// Rows published.
    pub rows: u64,
    /// Records that came after their bucket was closed, or that no bucket could take.
    pub late: u64,
    /// Rows withheld because too few members were present.
    pub too_few: u64,
    /// Rows withheld because one or two members dominate a sum, or all have one value.
    pub dominated: u64,
}

impl SeriesPublished {
    /// Share of the records that the rows represent; none before the first bucket has closed.
    #[must_use]
    pub fn records_share(&self) -> Option<f64> {
        (self.records > 0).then(|| self.represented as f64 / self.records as f64)
    }

    /// Sets the metrics and the status.
    pub fn emit(self, telemetry: &Telemetry) {
        let metrics = &telemetry.metrics().series;
        metrics.people.set(i64::try_from(self.people).unwrap_or(i64::MAX));
        metrics.share.set(self.records_share().unwrap_or(f64::NAN));
        metrics.rows.set(self.rows as f64);
        metrics.late.set(self.late as f64);
        metrics.too_few.set(self.too_few as f64);
        metrics.dominated.set(self.dominated as f64);
        telemetry.board().series = Some(self);
    }
}
