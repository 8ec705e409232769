//! `[[series]]`, `[cohort]` and `[release]`: statistics of cohorts over time.

use super::choice::choices;
use super::quantity;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Duration;

choices! {
    /// Position in a recurring cycle.
    enum SeriesCycle {
        /// Hours of the day, 0 to 23.
        HourOfDay = "hour_of_day",
        /// Days of the week, 0 (Monday) to 6.
        DayOfWeek = "day_of_week",
    }
}

/// Publishes statistics of cohorts over time: mean, standard deviation and quartiles of numeric attributes. One row per
/// cohort, bucket and signal, and one for all cohorts. Needs a subject and an event time in the record schema.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(extend("required" = ["name"]))]
pub struct SeriesConfig {
    /// Names the series in rows, file names and topics: lower-case letters, digits, `_` and `-`. Required.
    #[schemars(example = &"daily", extend("pattern" = "^[a-z0-9_-]{1,64}$"))]
    pub name: String,
    /// Sets the length of a bucket of event time in UTC, 1 minute to 366 days. Windows of whole weeks start on Mondays.
    #[serde(with = "quantity::duration")]
    #[schemars(with = "quantity::DurationText", example = &"1d")]
    pub every: Duration,
    /// Collects each slot of a cycle over the window: `every = "1w"` with `hour_of_day` gives one daily curve per week.
    /// Without it each window is one bucket.
    #[schemars(example = SeriesCycle::HourOfDay)]
    pub cycle: Option<SeriesCycle>,
    /// Lists numeric attributes of the record schema. Without any, every released number that changes within a subject.
    /// Series with a common signal must have the same buckets, because their difference could isolate one subject.
    /// Exception: whole days with a curve of at least a week. A series with `moments` shares no signal.
    #[schemars(example = ["steps", "resting_hr"])]
    pub signals: Vec<String>,
    /// Sets the time that a bucket stays open for late records, after the event time of several subjects has passed its
    /// end. Later records are only counted. A job over files has no late records. Default: 6h, or for short buckets the
    /// length of 126 buckets, the limit of open buckets.
    #[serde(with = "quantity::optional_duration")]
    #[schemars(with = "Option<quantity::DurationText>", example = Some("6h"))]
    pub lateness: Option<Duration>,
    /// Publishes rows of all cohorts of a stratum together. For short buckets with few subjects: one subject could
    /// dominate their sums.
    #[schemars(example = true)]
    pub pooled: bool,
    /// Publishes means and covariances of all signals over epochs of this length, instead of rows of buckets, for
    /// linear models in which each subject has weight one. Uses buckets with a value of every signal, from subjects
    /// with at least 4 of them in the epoch. List 2 to 16 signals; no other series may have one of them. Not with
    /// `cycle`. At least 4 times `every`.
    #[serde(with = "quantity::optional_duration")]
    #[schemars(with = "Option<quantity::DurationText>", example = Some("28d"))]
    pub moments: Option<Duration>,
    /// Sets ε of differential privacy for one subject and one week, with δ = 10⁻⁶. Rows are then noisy counts and means
    /// of all subjects, without cohorts and strata. Each signal needs a range in the record schema. For many subjects:
    /// `throng check` compares noise and sampling error. The signals may be in no other series.
    #[schemars(example = Some(4.0), range(min = 0.01, max = 20.0))]
    pub epsilon_per_week: Option<f64>,
}

/// Upper limit of open buckets per subject and series.
const MAX_OPEN_BUCKETS: u32 = 128;

impl SeriesConfig {
    /// Returns the longest lateness within the limit of open buckets; two windows are open even without lateness.
    #[must_use]
    pub fn longest_lateness(&self) -> Duration {
        let slots = match self.cycle {
            None => 1,
            Some(SeriesCycle::DayOfWeek) => 7,
            Some(SeriesCycle::HourOfDay) => 24,
        };
        self.every.saturating_mul(MAX_OPEN_BUCKETS / slots - 2)
    }

    /// Returns `lateness`, or its default.
    #[must_use]
    pub fn lateness(&self) -> Duration {
        self.lateness.unwrap_or_else(|| Duration::from_hours(6).min(self.longest_lateness()))
    }
}

impl Default for SeriesConfig {
    fn default() -> Self {
        Self {
            name: String::new(),
            every: Duration::from_hours(24),
            cycle: None,
            signals: Vec::new(),
            lateness: None,
            pooled: false,
            moments: None,
            epsilon_per_week: None,
        }
    }
}

/// Controls the assignment of subjects to cohorts, which all series share.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CohortConfig {
    /// Sets the subjects in a cohort, at least `privacy.k` plus `privacy.colluders`. Default: three times that number.
    #[schemars(example = Some(20), extend("minimum" = 2))]
    pub size: Option<usize>,
    /// Requires this many days with data before a subject may join a cohort, as a duration of whole days. Not needed in
    /// a job over files.
    #[serde(with = "quantity::duration")]
    #[schemars(with = "quantity::DurationText", example = &"14d")]
    pub warm_up: Duration,
    /// Divides subjects into separate cohorts by the values of these attributes. `age:2` takes level 2 of the hierarchy
    /// of `age`.
    #[schemars(example = ["sex", "age:2"])]
    pub strata: Vec<String>,
    /// Selects the attribute of the event time. Default: the only one of the role `time` in the record schema.
    #[schemars(example = Some("timestamp"))]
    pub time: Option<String>,
}

impl Default for CohortConfig {
    fn default() -> Self {
        Self { size: None, warm_up: Duration::from_hours(7 * 24), strata: Vec::new(), time: None }
    }
}

/// Selects the forms of output, and the share of the input that they must represent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ReleaseConfig {
    /// Releases fragments of single records. If false, only `[[series]]` are released; the risk of fragments is still
    /// measured.
    #[schemars(example = false)]
    pub fragments: bool,
    /// Requires a release to represent this share of the records, 0 to 1: by a released line, or by a row of a series;
    /// the form with the highest share counts. `run` over files and `check --sample` refuse a release below it with
    /// exit code 4, and replace no file. On a topic it is an alert and a notice on the status page. Unreadable records
    /// count as not represented, except on a topic. Subjects in their warm-up do not count. 0 accepts every release.
    #[schemars(example = 0.8, range(min = 0.0, max = 1.0))]
    pub min_represented: f64,
}

impl Default for ReleaseConfig {
    fn default() -> Self {
        Self { fragments: true, min_represented: 0.5 }
    }
}
