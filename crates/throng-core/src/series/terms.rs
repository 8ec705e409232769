//! Settings of the configured series.

use crate::values::hierarchy::Ruler;

/// Milliseconds per day.
pub const DAY_MS: i64 = 86_400_000;
const HOUR_MS: i64 = 3_600_000;
/// 1970-01-05, the first Monday.
const MONDAY_MS: i64 = 4 * DAY_MS;
/// Signal limit with moments.
pub const MAX_MOMENT_SIGNALS: usize = 16;

/// Start of a window; whole weeks start on Mondays.
pub(super) fn window_start(time_ms: i64, every_ms: i64) -> i64 {
    let origin = if every_ms % (7 * DAY_MS) == 0 { MONDAY_MS } else { 0 };
    time_ms - (time_ms - origin).rem_euclid(every_ms)
}

/// Number of moments: means, then products of pairs.
#[must_use]
pub fn moment_count(signals: usize) -> usize {
    signals + signals * (signals + 1) / 2
}

/// Cycle whose slots divide a window into buckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotCycle {
    /// Hours of the day, 0 to 23.
    HourOfDay,
    /// Days of the week from Monday, 0 to 6.
    DayOfWeek,
}

impl SlotCycle {
    /// Number of slots.
    #[must_use]
    pub fn slots(self) -> usize {
        match self {
            Self::HourOfDay => 24,
            Self::DayOfWeek => 7,
        }
    }

    fn step_ms(self) -> i64 {
        match self {
            Self::HourOfDay => HOUR_MS,
            Self::DayOfWeek => DAY_MS,
        }
    }

    fn slot(self, time_ms: i64) -> usize {
        let index = match self {
            Self::HourOfDay => time_ms.rem_euclid(DAY_MS) / HOUR_MS,
            Self::DayOfWeek => (time_ms - MONDAY_MS).div_euclid(DAY_MS).rem_euclid(7),
        };
        usize::try_from(index).expect("a remainder is not negative")
    }
}

/// Numeric attribute of a series.
#[derive(Clone, Debug, PartialEq)]
pub struct SeriesSignal {
    /// Schema position.
    pub attribute: usize,
    /// Name in rows.
    pub name: String,
    /// Unit in rows, if the schema has one.
    pub unit: Option<String>,
    /// Clipping range; infinite without one in the schema.
    pub range: (f64, f64),
    /// Hierarchy intervals, if any.
    pub intervals: Option<Ruler>,
}

/// Settings of one series.
#[derive(Clone, Debug, PartialEq)]
pub struct SeriesTerms {
    /// Name in rows, files and topics.
    pub name: String,
    /// Window length in ms, above 0.
    pub every_ms: i64,
    /// `every_ms` as configured.
    pub every: String,
    /// Cycle that divides a window, if any.
    pub cycle: Option<SlotCycle>,
    /// Signals in row order.
    pub signals: Vec<SeriesSignal>,
    /// Wait for late records, in ms.
    pub lateness_ms: i64,
    /// Rows per stratum, not per cohort.
    pub pooled: bool,
    /// Smallest number of values per member and signal; with moments, of rows in an epoch.
    pub min_values: u32,
    /// Moments, in place of bucket rows.
    pub moments: Option<MomentTerms>,
    /// Noise, with rows over all subjects in place of cohorts.
    pub noise: Option<NoiseTerms>,
}

/// Settings of moments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MomentTerms {
    /// Epoch length in ms, above 0.
    pub every_ms: i64,
    /// `every_ms` as configured.
    pub every: String,
}

/// Settings of noise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NoiseTerms {
    /// ε per subject and week, with δ = 10⁻⁶.
    pub epsilon: f64,
}

impl MomentTerms {
    /// Epoch of a bucket.
    #[must_use]
    pub fn epoch(&self, bucket: i64) -> i64 {
        window_start(bucket, self.every_ms)
    }
}

impl SeriesTerms {
    /// Bucket of a time.
    #[must_use]
    pub fn bucket(&self, time_ms: i64) -> i64 {
        self.window(time_ms) + self.cycle.map_or(0, |cycle| cycle.slot(time_ms) as i64 * cycle.step_ms())
    }

    /// Window of a time or bucket.
    #[must_use]
    pub fn window(&self, time_ms: i64) -> i64 {
        window_start(time_ms, self.every_ms)
    }

    /// End of a bucket's window.
    #[must_use]
    pub fn end(&self, bucket: i64) -> i64 {
        self.window(bucket) + self.every_ms
    }

    /// Slot of a bucket; 0 without a cycle.
    #[must_use]
    pub fn slot(&self, bucket: i64) -> usize {
        self.cycle.map_or(0, |cycle| usize::try_from((bucket - self.window(bucket)) / cycle.step_ms()).unwrap_or(0))
    }

    /// Number of windows between buckets.
    #[must_use]
    pub fn windows_between(&self, earlier: i64, later: i64) -> i64 {
        (self.window(later) - self.window(earlier)) / self.every_ms
    }

    /// Histories per subject: one per signal and slot; one with moments; none with noise.
    #[must_use]
    pub fn channels(&self) -> usize {
        match (&self.noise, &self.moments) {
            (Some(_), _) => 0,
            (None, Some(_)) => 1,
            (None, None) => self.signals.len() * self.cycle.map_or(1, SlotCycle::slots),
        }
    }

    /// History index within the series.
    #[must_use]
    pub fn channel(&self, bucket: i64, signal: usize) -> usize {
        if self.moments.is_some() { 0 } else { self.slot(bucket) * self.signals.len() + signal }
    }
}

/// Settings of cohorts.
#[derive(Clone, Debug, PartialEq)]
pub struct CohortTerms {
    /// k plus colluders: fewest new members per atom and present members per published bucket.
    pub crowd: usize,
    /// Members that may collude (`privacy.colluders`).
    pub colluders: usize,
    /// Subjects per cohort, at least `crowd`.
    pub size: usize,
    /// Days with data before admission.
    pub warm_up_days: u32,
    /// Time with too few members until retirement, in ms.
    pub idle_ms: i64,
    /// Attributes of the strata, with hierarchy levels.
    pub strata: Vec<(usize, usize)>,
    /// Their names.
    pub strata_names: Vec<String>,
    /// Event time attribute.
    pub time: usize,
    /// Limit of stored histories, 32 bytes each.
    pub max_histories: usize,
    /// Job over files: no bucket closes before the end.
    pub is_batch: bool,
}

/// Settings of all series.
#[derive(Clone, Debug, PartialEq)]
pub struct AllSeriesTerms {
    /// Cohort settings.
    pub cohorts: CohortTerms,
    /// Series, in configuration order.
    pub series: Vec<SeriesTerms>,
}

impl AllSeriesTerms {
    /// Settings that must equal those of a state, as text.
    #[must_use]
    pub fn terms_identity(&self) -> String {
        let series = self.series.iter().map(|of| {
            let signals: Vec<&str> = of.signals.iter().map(|signal| signal.name.as_str()).collect();
            let moments = of.moments.as_ref().map(|moments| moments.every_ms);
            let noise = of.noise.as_ref().map_or_else(String::new, |noise| {
                let ranges: Vec<(f64, f64)> = of.signals.iter().map(|signal| signal.range).collect();
                format!(" {noise:?} {ranges:?}")
            });
            format!("{:?} {} {:?} {} {moments:?} {signals:?}{noise}", of.name, of.every_ms, of.cycle, of.pooled)
        });
        let CohortTerms { crowd, strata, strata_names, .. } = &self.cohorts;
        let levels: Vec<usize> = strata.iter().map(|(_, level)| *level).collect();
        format!("{crowd} {strata_names:?} {levels:?}\n{}", series.collect::<Vec<_>>().join("\n"))
    }

    /// First history of a series.
    #[must_use]
    pub fn first_channel(&self, series: usize) -> usize {
        self.series[..series].iter().map(SeriesTerms::channels).sum()
    }

    /// Largest subject state, in histories of 32 bytes, at least 1.
    #[must_use]
    pub fn histories_per_subject(&self) -> usize {
        let moments =
            |series: &SeriesTerms| series.moments.as_ref().map_or(0, |_| moment_count(series.signals.len()) / 2);
        (self.channels() + self.series.iter().map(moments).sum::<usize>()).max(1)
    }

    /// Histories per subject.
    #[must_use]
    pub fn channels(&self) -> usize {
        self.first_channel(self.series.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(every_ms: i64, cycle: Option<SlotCycle>) -> SeriesTerms {
        let signals =
            vec![SeriesSignal { attribute: 0, name: "s".into(), unit: None, range: (0.0, 1.0), intervals: None }; 2];
        SeriesTerms {
            name: "t".into(),
            every_ms,
            every: String::new(),
            cycle,
            signals,
            lateness_ms: 0,
            pooled: false,
            min_values: 4,
            moments: None,
            noise: None,
        }
    }

    /// 2026-03-04, a Wednesday.
    const WEDNESDAY_13_30: i64 = 1_772_631_000_000;

    #[test]
    fn daily_bucket_starts_at_midnight() {
        let daily = terms(DAY_MS, None);
        assert_eq!(daily.bucket(WEDNESDAY_13_30), WEDNESDAY_13_30 - 13 * HOUR_MS - HOUR_MS / 2);
        assert_eq!(daily.bucket(-1), -DAY_MS);
        assert_eq!(daily.end(0), DAY_MS);
    }

    #[test]
    fn weekly_buckets_start_on_monday_and_have_slots() {
        let hourly = terms(7 * DAY_MS, Some(SlotCycle::HourOfDay));
        let monday = WEDNESDAY_13_30 - 2 * DAY_MS - 13 * HOUR_MS - HOUR_MS / 2;
        assert_eq!(hourly.window(WEDNESDAY_13_30), monday);
        let bucket = hourly.bucket(WEDNESDAY_13_30);
        assert_eq!((bucket, hourly.slot(bucket)), (monday + 13 * HOUR_MS, 13));
        assert_eq!(hourly.end(bucket), monday + 7 * DAY_MS);
        assert_eq!(hourly.channel(bucket, 1), 27);
        let weekly = terms(7 * DAY_MS, Some(SlotCycle::DayOfWeek));
        assert_eq!(weekly.slot(weekly.bucket(WEDNESDAY_13_30)), 2);
        assert_eq!(
            weekly.windows_between(weekly.bucket(WEDNESDAY_13_30), weekly.bucket(WEDNESDAY_13_30 + 8 * DAY_MS)),
            1
        );
    }
}
