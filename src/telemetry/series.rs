//! Event of the series: how much of the input their published rows represent.

use super::report::SeriesPublished;
use super::status::Telemetry;

impl SeriesPublished {
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
