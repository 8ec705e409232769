//! Terms of the series of a configuration: which signals, which buckets, how many people.

use throng_core::values::hierarchy::Ruler;

/// Milliseconds of a day.
pub const DAY_MS: i64 = 86_400_000;
/// Milliseconds of an hour.
const HOUR_MS: i64 = 3_600_000;
/// 1970-01-05, the first Monday: weeks start on Mondays.
const MONDAY_MS: i64 = 4 * DAY_MS;
/// Signals of a series with moments at most: a person takes 8 bytes for each signal and pair of signals, twice.
pub const MAX_MOMENT_SIGNALS: usize = 16;

/// Start of the window of `every_ms` that holds a moment. Windows of whole weeks start on Mondays.
pub(super) fn window_start(time_ms: i64, every_ms: i64) -> i64 {
    let origin = if every_ms % (7 * DAY_MS) == 0 { MONDAY_MS } else { 0 };
    time_ms - (time_ms - origin).rem_euclid(every_ms)
}

/// Numbers of a person with `signals` signals: means, then products of pairs.
#[must_use]
pub fn moment_count(signals: usize) -> usize {
    signals + signals * (signals + 1) / 2
}

/// Position in a recurring cycle that a bucket collects over its window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cycle {
    /// One bucket for each hour of the day, 0 to 23.
    HourOfDay,
    /// One bucket for each day of the week, 0 (Monday) to 6.
    DayOfWeek,
}

impl Cycle {
    /// Number of slots.
    #[must_use]
    pub fn slots(self) -> usize {
        match self {
            Self::HourOfDay => 24,
            Self::DayOfWeek => 7,
        }
    }

    /// Milliseconds between two slots.
    fn step_ms(self) -> i64 {
        match self {
            Self::HourOfDay => HOUR_MS,
            Self::DayOfWeek => DAY_MS,
        }
    }

    /// The slot of a moment.
    fn slot(self, time_ms: i64) -> usize {
        let index = match self {
            Self::HourOfDay => time_ms.rem_euclid(DAY_MS) / HOUR_MS,
            Self::DayOfWeek => (time_ms - MONDAY_MS).div_euclid(DAY_MS).rem_euclid(7),
        };
        usize::try_from(index).expect("a remainder is not negative")
    }
}

/// A numeric attribute whose statistics are published.
#[derive(Clone, Debug, PartialEq)]
pub struct Signal {
    /// Position in the schema.
    pub attribute: usize,
    /// Name in a row.
    pub name: String,
    /// Unit in a row; none where the schema names none.
    pub unit: Option<String>,
    /// Lowest and highest value: values outside are clipped. Infinite where the schema has no range.
    pub range: (f64, f64),
    /// Intervals of the hierarchy; none where it has none.
    pub intervals: Option<Ruler>,
}

/// One series.
#[derive(Clone, Debug, PartialEq)]
pub struct SeriesTerms {
    /// Name in rows, file names and topics.
    pub name: String,
    /// Length of a window in milliseconds, above 0.
    pub every_ms: i64,
    /// `every_ms` as the configuration writes it.
    pub every: String,
    /// Cycle whose slots are buckets; none: each window is one bucket.
    pub cycle: Option<Cycle>,
    /// Signals, in the order of the rows.
    pub signals: Vec<Signal>,
    /// How long a bucket waits for late records, in milliseconds.
    pub lateness_ms: i64,
    /// Rows of all cohorts of a stratum together instead of rows of each cohort.
    pub pooled: bool,
    /// Values of a signal that each member of an atom needs before the atom contributes to it. With moments: rows that a person needs in
    /// an epoch for the epoch to count.
    pub min_values: u32,
    /// Moments of all signals together: the series publishes these and no rows of buckets. None: it publishes rows of buckets.
    pub moments: Option<MomentTerms>,
    /// Noise of all rows, which are of everybody; none where the series publishes statistics of cohorts.
    pub noise: Option<NoiseTerms>,
}

/// Moments of the signals of a series.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MomentTerms {
    /// Length of an epoch in milliseconds, above 0.
    pub every_ms: i64,
    /// `every_ms` as the configuration writes it.
    pub every: String,
}

/// Noise of a series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NoiseTerms {
    /// ε for a person and week, with δ = 10⁻⁶.
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
    /// The bucket of a moment: start of its window, plus the offset of its slot.
    #[must_use]
    pub fn bucket(&self, time_ms: i64) -> i64 {
        self.window(time_ms) + self.cycle.map_or(0, |cycle| cycle.slot(time_ms) as i64 * cycle.step_ms())
    }

    /// Start of the window that holds a moment or a bucket. Windows of whole weeks start on Mondays.
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

    /// Histories of a person in this series: one for each signal and slot; a series with moments has one, of the buckets with a value of
    /// every signal. A series with noise needs none.
    #[must_use]
    pub fn channels(&self) -> usize {
        match (&self.noise, &self.moments) {
            (Some(_), _) => 0,
            (None, Some(_)) => 1,
            (None, None) => self.signals.len() * self.cycle.map_or(1, Cycle::slots),
        }
    }

    /// Position of a signal's history among those of the series.
    #[must_use]
    pub fn channel(&self, bucket: i64, signal: usize) -> usize {
        if self.moments.is_some() { 0 } else { self.slot(bucket) * self.signals.len() + signal }
    }
}

/// How people become cohorts: the same for all series of a configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct CohortTerms {
    /// k and the colluders: smallest number of new members of an atom, and of members present in a published bucket.
    pub crowd: usize,
    /// Members who may pool what they know (`privacy.colluders`).
    pub colluders: usize,
    /// People of a cohort, at least `crowd`.
    pub size: usize,
    /// Days with data before a person may join a cohort.
    pub warm_up_days: u32,
    /// Milliseconds after which a cohort is retired in which fewer than `crowd` members are seen.
    pub idle_ms: i64,
    /// Attributes whose cells divide people, with the level of their hierarchy.
    pub strata: Vec<(usize, usize)>,
    /// Names of these attributes.
    pub strata_names: Vec<String>,
    /// Attribute of the event time.
    pub time: usize,
    /// Histories of all people together, 32 bytes each: people beyond it are not taken in.
    pub max_histories: usize,
    /// All records are read before the first bucket closes, as in a job over files.
    pub is_batch: bool,
}

/// All terms of the series of a configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct Terms {
    /// Cohorts.
    pub cohorts: CohortTerms,
    /// Series, in the order of the configuration.
    pub series: Vec<SeriesTerms>,
}

impl Terms {
    /// What a state depends on, as text: series, buckets, signals, strata and the crowd. A state of other terms cannot go on.
    #[must_use]
    pub fn identity(&self) -> String {
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

    /// Position of the first history of a series among all histories of a person.
    #[must_use]
    pub fn first_channel(&self, series: usize) -> usize {
        self.series[..series].iter().map(SeriesTerms::channels).sum()
    }

    /// What a person takes in the state at most, in histories of 32 bytes; 1 where no series keeps any.
    #[must_use]
    pub fn weight_of_person(&self) -> usize {
        let moments =
            |series: &SeriesTerms| series.moments.as_ref().map_or(0, |_| moment_count(series.signals.len()) / 2);
        (self.channels() + self.series.iter().map(moments).sum::<usize>()).max(1)
    }

    /// Histories of a person, over all series.
    #[must_use]
    pub fn channels(&self) -> usize {
        self.first_channel(self.series.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(every_ms: i64, cycle: Option<Cycle>) -> SeriesTerms {
        let signals =
            vec![Signal { attribute: 0, name: "s".into(), unit: None, range: (0.0, 1.0), intervals: None }; 2];
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
    fn bucket_of_a_day_starts_at_midnight() {
        let daily = terms(DAY_MS, None);
        assert_eq!(daily.bucket(WEDNESDAY_13_30), WEDNESDAY_13_30 - 13 * HOUR_MS - HOUR_MS / 2);
        assert_eq!(daily.bucket(-1), -DAY_MS);
        assert_eq!(daily.end(0), DAY_MS);
    }

    #[test]
    fn buckets_of_a_week_start_on_monday_and_have_slots() {
        let hourly = terms(7 * DAY_MS, Some(Cycle::HourOfDay));
        let monday = WEDNESDAY_13_30 - 2 * DAY_MS - 13 * HOUR_MS - HOUR_MS / 2;
        assert_eq!(hourly.window(WEDNESDAY_13_30), monday);
        let bucket = hourly.bucket(WEDNESDAY_13_30);
        assert_eq!((bucket, hourly.slot(bucket)), (monday + 13 * HOUR_MS, 13));
        assert_eq!(hourly.end(bucket), monday + 7 * DAY_MS);
        assert_eq!(hourly.channel(bucket, 1), 27);
        let weekly = terms(7 * DAY_MS, Some(Cycle::DayOfWeek));
        assert_eq!(weekly.slot(weekly.bucket(WEDNESDAY_13_30)), 2);
        assert_eq!(
            weekly.windows_between(weekly.bucket(WEDNESDAY_13_30), weekly.bucket(WEDNESDAY_13_30 + 8 * DAY_MS)),
            1
        );
    }
}
