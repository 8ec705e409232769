//! Settings of the configured series: signals, buckets, number of subjects.

use crate::values::hierarchy::Ruler;

/// Milliseconds per day.
pub const DAY_MS: i64 = 86_400_000;
const HOUR_MS: i64 = 3_600_000;
/// 1970-01-05, the first Monday: weeks start on Mondays.
const MONDAY_MS: i64 = 4 * DAY_MS;
/// Largest number of signals of a series with moments. A subject needs 8 bytes per signal and pair of signals, twice.
pub const MAX_MOMENT_SIGNALS: usize = 16;

/// Start of the window of `every_ms` that contains a moment. Windows of whole weeks start on Mondays.
pub(super) fn window_start(time_ms: i64, every_ms: i64) -> i64 {
    let origin = if every_ms % (7 * DAY_MS) == 0 { MONDAY_MS } else { 0 };
    time_ms - (time_ms - origin).rem_euclid(every_ms)
}

/// Number of moments of `signals` signals: means, then products of pairs.
#[must_use]
pub fn moment_count(signals: usize) -> usize {
    signals + signals * (signals + 1) / 2
}

/// Recurring cycle. Its slots divide a window into buckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotCycle {
    /// One bucket per hour of the day, 0 to 23.
    HourOfDay,
    /// One bucket per day of the week, 0 (Monday) to 6.
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

/// Numeric attribute with published statistics.
#[derive(Clone, Debug, PartialEq)]
pub struct SeriesSignal {
    /// Position in the schema.
    pub attribute: usize,
    /// Name in a row.
    pub name: String,
    /// Unit in a row; none if the schema has no unit.
    pub unit: Option<String>,
    /// Lowest and highest value: values outside are clipped. Infinite if the schema has no range.
    pub range: (f64, f64),
    /// Intervals of the hierarchy; none without a hierarchy of intervals.
    pub intervals: Option<Ruler>,
}

/// Settings of one series.
#[derive(Clone, Debug, PartialEq)]
pub struct SeriesTerms {
    /// Name in rows, file names and topics.
    pub name: String,
    /// Length of a window in milliseconds, above 0.
    pub every_ms: i64,
    /// `every_ms` as spelled in the configuration.
    pub every: String,
    /// Cycle that divides a window into buckets; none: each window is one bucket.
    pub cycle: Option<SlotCycle>,
    /// Signals, in the order of the rows.
    pub signals: Vec<SeriesSignal>,
    /// Time a bucket waits for late records, in milliseconds.
    pub lateness_ms: i64,
    /// Publishes rows per stratum instead of rows per cohort.
    pub pooled: bool,
    /// Values of a signal that each member of an atom needs before the atom contributes to it. With moments: rows
    /// that a subject needs in an epoch for the epoch to count.
    pub min_values: u32,
    /// Moments of all signals: the series publishes these instead of rows of buckets. None: the series publishes rows
    /// of buckets.
    pub moments: Option<MomentTerms>,
    /// Noise of all rows, which cover all subjects; none if the series publishes statistics of cohorts.
    pub noise: Option<NoiseTerms>,
}

/// Settings of the moments of a series.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MomentTerms {
    /// Length of an epoch in milliseconds, above 0.
    pub every_ms: i64,
    /// `every_ms` as spelled in the configuration.
    pub every: String,
}

/// Settings of the noise of a series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NoiseTerms {
    /// ε per subject and week, with δ = 10⁻⁶.
    pub epsilon: f64,
}

impl MomentTerms {
    /// Start of the epoch of a bucket.
    #[must_use]
    pub fn epoch(&self, bucket: i64) -> i64 {
        window_start(bucket, self.every_ms)
    }
}

impl SeriesTerms {
    /// Bucket of a moment: start of its window, plus the offset of its slot.
    #[must_use]
    pub fn bucket(&self, time_ms: i64) -> i64 {
        self.window(time_ms) + self.cycle.map_or(0, |cycle| cycle.slot(time_ms) as i64 * cycle.step_ms())
    }

    /// Start of the window that contains a moment or a bucket. Windows of whole weeks start on Mondays.
    #[must_use]
    pub fn window(&self, time_ms: i64) -> i64 {
        window_start(time_ms, self.every_ms)
    }

    /// End of the window of a bucket.
    #[must_use]
    pub fn end(&self, bucket: i64) -> i64 {
        self.window(bucket) + self.every_ms
    }

    /// Slot of a bucket, 0 without a cycle.
    #[must_use]
    pub fn slot(&self, bucket: i64) -> usize {
        self.cycle.map_or(0, |cycle| usize::try_from((bucket - self.window(bucket)) / cycle.step_ms()).unwrap_or(0))
    }

    /// Number of windows from the window of one bucket to that of a later one.
    #[must_use]
    pub fn windows_between(&self, earlier: i64, later: i64) -> i64 {
        (self.window(later) - self.window(earlier)) / self.every_ms
    }

    /// Number of histories per subject in this series: one per signal and slot. A series with moments has one, of the
    /// buckets with a value of every signal. A series with noise has none.
    #[must_use]
    pub fn channels(&self) -> usize {
        match (&self.noise, &self.moments) {
            (Some(_), _) => 0,
            (None, Some(_)) => 1,
            (None, None) => self.signals.len() * self.cycle.map_or(1, SlotCycle::slots),
        }
    }

    /// Position of a signal's history among those of the series.
    #[must_use]
    pub fn channel(&self, bucket: i64, signal: usize) -> usize {
        if self.moments.is_some() { 0 } else { self.slot(bucket) * self.signals.len() + signal }
    }
}

/// Settings of the cohorts, shared by all series of a configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct CohortTerms {
    /// k plus the colluders: smallest number of new members of an atom, and of members present in a published bucket.
    pub crowd: usize,
    /// Number of members that may combine their knowledge (`privacy.colluders`).
    pub colluders: usize,
    /// Number of subjects per cohort, at least `crowd`.
    pub size: usize,
    /// Days with data before a subject may join a cohort.
    pub warm_up_days: u32,
    /// Milliseconds with fewer than `crowd` present members after which a cohort is retired.
    pub idle_ms: i64,
    /// Attributes with cells that form the strata, with the level of their hierarchy.
    pub strata: Vec<(usize, usize)>,
    /// Names of these attributes.
    pub strata_names: Vec<String>,
    /// Attribute of the event time.
    pub time: usize,
    /// Limit of the histories of all subjects, 32 bytes each: further subjects are not stored.
    pub max_histories: usize,
    /// All records are read before the first bucket closes, as in a job over files.
    pub is_batch: bool,
}

/// Settings of all series of a configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct AllSeriesTerms {
    /// Settings of the cohorts.
    pub cohorts: CohortTerms,
    /// Series, in the order of the configuration.
    pub series: Vec<SeriesTerms>,
}

impl AllSeriesTerms {
    /// Settings that a state depends on, as text: series, buckets, signals, strata and the crowd. A state of other
    /// settings cannot be continued.
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

    /// Position of the first history of a series among all histories of a subject.
    #[must_use]
    pub fn first_channel(&self, series: usize) -> usize {
        self.series[..series].iter().map(SeriesTerms::channels).sum()
    }

    /// Largest size of a subject in the state, in histories of 32 bytes; 1 if no series has any.
    #[must_use]
    pub fn histories_per_subject(&self) -> usize {
        let moments =
            |series: &SeriesTerms| series.moments.as_ref().map_or(0, |_| moment_count(series.signals.len()) / 2);
        (self.channels() + self.series.iter().map(moments).sum::<usize>()).max(1)
    }

    /// Number of histories per subject, over all series.
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

    /// 2026-03-04 was a Wednesday.
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
