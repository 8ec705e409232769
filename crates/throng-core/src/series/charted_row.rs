//! Published rows in charts.

use super::published_row::SeriesRow;
use super::terms::{AllSeriesTerms, SeriesTerms, SlotCycle};

/// Published mean in a chart.
#[derive(Clone, Debug, PartialEq)]
pub struct PublishedMean<'a> {
    /// Series name.
    pub series: &'a str,
    /// Signal name.
    pub signal: &'a str,
    /// Signal unit.
    pub unit: Option<&'a str>,
    /// Cohort or stratum; `None` for all subjects.
    pub part: Option<String>,
    /// Window start, ms since 1970.
    pub window_ms: i64,
    /// Window length in ms.
    pub every_ms: i64,
    /// Slot and number of slots; `None` without a cycle.
    pub slot: Option<(usize, usize)>,
    /// Mean over subjects.
    pub mean: f64,
    /// Standard deviation between subjects.
    pub sd: f64,
    /// Possible values, limits of the band.
    pub range: (f64, f64),
}

impl SeriesTerms {
    /// Sentence on rows without chart.
    #[must_use]
    pub fn sentence_without_chart(&self) -> Option<String> {
        let moments = self.moments.as_ref()?;
        let signals: Vec<&str> = self.signals.iter().map(|signal| signal.name.as_str()).collect();
        Some(format!(
            "Only means and covariances of {} over epochs of {} are released, no rows of buckets: there is no chart.",
            signals.join(", "),
            moments.every
        ))
    }
}

impl SeriesRow {
    /// Mean of the row, if any, with the noise error as band.
    #[must_use]
    pub fn published_mean<'a>(&self, terms: &'a AllSeriesTerms) -> Option<PublishedMean<'a>> {
        let mean = self.mean()?;
        let series = &terms.series[self.series];
        let signal = &series.signals[self.signal];
        let noise = series.noise.map(|noise| noise.scale(series).mean_error(self.n as f64, mean, signal.range));
        let sd = noise.or(self.mean_statistic().map(|of| of.sd))?;
        let labels = self.stratum.as_deref().filter(|labels| !labels.is_empty()).map(|labels| labels.join(", "));
        Some(PublishedMean {
            series: &series.name,
            signal: &signal.name,
            unit: signal.unit.as_deref(),
            part: self.cohort.clone().or(labels),
            window_ms: series.window(self.bucket),
            every_ms: series.every_ms,
            slot: series.cycle.map(|cycle: SlotCycle| (series.slot(self.bucket), cycle.slots())),
            mean,
            sd,
            range: signal.range,
        })
    }
}
