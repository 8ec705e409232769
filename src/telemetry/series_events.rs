//! Events of series: represented share and charts.

use super::report::SeriesPublished;
use super::status::Telemetry;
use crate::html::series_chart::SeriesCharts;
use std::collections::BTreeSet;
use throng_core::series::PublishedMean;

impl SeriesPublished {
    /// Updates the metrics and the status.
    pub fn emit(self, telemetry: &Telemetry) {
        let metrics = &telemetry.metrics().series;
        metrics.people.set(i64::try_from(self.people).unwrap_or(i64::MAX));
        metrics.rows.set(self.rows as f64);
        metrics.late.set(self.late as f64);
        metrics.too_few.set(self.too_few as f64);
        metrics.dominated.set(self.dominated as f64);
        {
            let mut board = telemetry.board();
            (board.series, board.has_cohorts_elsewhere) = (Some(self), false);
        }
        telemetry.update_represented_metrics();
    }
}

/// Another instance owns the cohorts.
#[derive(Clone, Copy, Debug)]
pub struct CohortsElsewhere;

impl CohortsElsewhere {
    /// Removes the represented share, which the other instance shows.
    pub fn emit(self, telemetry: &Telemetry) {
        SeriesPublished::default().emit(telemetry);
        {
            let mut board = telemetry.board();
            (board.series, board.has_cohorts_elsewhere) = (None, true);
        }
        telemetry.update_represented_metrics();
    }
}

impl Telemetry {
    /// Adds published means to the charts, and notes for undrawn series.
    pub fn add_to_charts<'a>(
        &self,
        means: impl Iterator<Item = PublishedMean<'a>>,
        undrawn: impl Iterator<Item = (&'a str, String)>,
    ) {
        let charts = &mut self.board().charts;
        means.for_each(|mean| charts.add(&mean));
        undrawn.for_each(|(series, sentence)| charts.add_sentence(series, sentence));
    }

    /// Adds signals with published rows, by position of series and signal.
    pub fn add_signals_with_rows(&self, signals: impl Iterator<Item = (usize, usize)>) {
        self.board().signals_with_rows.extend(signals);
    }

    /// Returns the signals with rows since the start, by position of series and signal.
    #[must_use]
    pub fn signals_with_rows(&self) -> BTreeSet<(usize, usize)> {
        self.board().signals_with_rows.clone()
    }

    /// Returns charts of means published since the start.
    #[must_use]
    pub fn series_charts(&self) -> SeriesCharts {
        self.board().charts.clone()
    }
}
