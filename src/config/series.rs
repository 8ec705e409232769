//! `[[series]]`, `[cohort]` and `[release]`: statistics of cohorts over time, and what a release must represent.

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

/// Statistics of cohorts over time: mean, standard deviation and quartiles of numeric attributes, one row for each cohort, bucket and
/// signal, and one for all cohorts together. Needs a subject and an event time in the record schema.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(extend("required" = ["name"]))]
pub struct Series {
    /// Name in rows, file names and topics: lower-case letters, digits, `_` and `-`. Required.
    #[schemars(example = &"daily", extend("pattern" = "^[a-z0-9_-]{1,64}$"))]
    pub name: String,
    /// Length of a bucket of event time in UTC, 1 minute to 366 days. Windows of whole weeks start on Mondays.
    #[serde(with = "quantity::duration")]
    #[schemars(with = "quantity::DurationText", example = &"1d")]
    pub every: Duration,
    /// Collects each slot of a cycle over the window: `every = "1w"` with `hour_of_day` gives a daily curve for each week. Without it each
    /// window is one bucket.
    #[schemars(example = SeriesCycle::HourOfDay)]
    pub cycle: Option<SeriesCycle>,
    /// Numeric attributes of the record schema. Without any, every number that may leave and changes within a person. Series that share a
    /// signal must have the same buckets, or their difference could be one person; beside whole days a curve of at least a week may have it.
    /// A series with `moments` shares none.
    #[schemars(example = ["steps", "resting_hr"])]
    pub signals: Vec<String>,
    /// How long a bucket waits for late records after the event time of several people has passed its end. Later records are
    /// counted and not published. A job over files reads everything first and has no late records. Default: 6h, and for short buckets the
    /// length of 126 buckets, as many as may be open.
    #[serde(with = "quantity::optional_duration")]
    #[schemars(with = "Option<quantity::DurationText>", example = Some("6h"))]
    pub lateness: Option<Duration>,
    /// Rows of all cohorts of a stratum together instead of each cohort. For short buckets of few people, whose sums one person
    /// could dominate.
    #[schemars(example = true)]
    pub pooled: bool,
    /// Length of an epoch over which means and covariances of all signals leave, in place of rows of buckets: for regressions and other
    /// linear models in which each person has weight one. Counts buckets with a value of every signal, of people with at least
    /// 4 of them in the epoch: name the few signals of the model, 2 to 16. No other series may have one of them, and a `cycle` does not go
    /// with it. At least 4 times `every`.
    #[serde(with = "quantity::optional_duration")]
    #[schemars(with = "Option<quantity::DurationText>", example = Some("28d"))]
    pub moments: Option<Duration>,
    /// ε of differential privacy for one person and one week, with δ = 10⁻⁶. The rows are then counts and means of everybody with noise,
    /// without cohorts and strata, and each signal needs a range in the record schema. For many people: `throng check` compares the
    /// noise with the sampling error. The signals may be in no other series.
    #[schemars(example = Some(4.0), range(min = 0.01, max = 20.0))]
    pub epsilon_per_week: Option<f64>,
}

/// Open buckets of one person in one series of a stream at most.
const MAX_OPEN_BUCKETS: u32 = 128;

impl Series {
    /// The longest lateness with which the buckets of one person fit: two windows are open without any.
    #[must_use]
    pub fn longest_lateness(&self) -> Duration {
        let slots = match self.cycle {
            None => 1,
            Some(SeriesCycle::DayOfWeek) => 7,
            Some(SeriesCycle::HourOfDay) => 24,
        };
        self.every.saturating_mul(MAX_OPEN_BUCKETS / slots - 2)
    }

    /// `lateness`, or its default.
    #[must_use]
    pub fn lateness(&self) -> Duration {
        self.lateness.unwrap_or_else(|| Duration::from_hours(6).min(self.longest_lateness()))
    }
}

impl Default for Series {
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

/// How people become cohorts. All series publish the same cohorts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Cohort {
    /// People of a cohort, at least `privacy.k` and `privacy.colluders` together. Default: three times that number.
    #[schemars(example = Some(20), extend("minimum" = 2))]
    pub size: Option<usize>,
    /// Days with data before a person may join a cohort, written as a duration of whole days. A job over files needs none.
    #[serde(with = "quantity::duration")]
    #[schemars(with = "quantity::DurationText", example = &"14d")]
    pub warm_up: Duration,
    /// Attributes whose values divide people into cohorts of their own, such as `sex`. `age:2` takes level 2 of the hierarchy of `age`.
    #[schemars(example = ["sex", "age:2"])]
    pub strata: Vec<String>,
    /// Attribute of the event time. Default: the only attribute of the role `time` in the record schema.
    #[schemars(example = Some("timestamp"))]
    pub time: Option<String>,
}

impl Default for Cohort {
    fn default() -> Self {
        Self { size: None, warm_up: Duration::from_hours(7 * 24), strata: Vec::new(), time: None }
    }
}

/// What leaves, and how much of the input it must represent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Release {
    /// Fragments of single records leave. Without them only `[[series]]` leave, and the risk of fragments is measured.
    #[schemars(example = false)]
    pub fragments: bool,
    /// Share of the records that a release must represent, 0 to 1. A record is represented by a released line of its own, or by a row of
    /// a series that it contributes to. Of several forms the one that represents most counts. `run` over files and `check --sample` refuse a
    /// release below it with exit code 4, and no file is replaced; on a topic it is an alert and a notice on the status page. Records that
    /// cannot be read count as not represented in files and on standard input; on a topic they do not count. People in their warm-up do not
    /// count. 0 accepts every release.
    #[schemars(example = 0.8, range(min = 0.0, max = 1.0))]
    pub min_represented: f64,
}

impl Default for Release {
    fn default() -> Self {
        Self { fragments: true, min_represented: 0.5 }
    }
}
