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
    /// Numeric attributes of the record schema. Without any, every number that may leave and changes within a person.
    #[schemars(example = ["steps", "resting_hr"])]
    pub signals: Vec<String>,
    /// How long a bucket waits for late records after the event time of several people has passed its end. Later records are
    /// counted and not published. A job over files reads everything first and has no late records.
    #[serde(with = "quantity::duration")]
    #[schemars(with = "quantity::DurationText", example = &"6h")]
    pub lateness: Duration,
    /// Rows of all cohorts of a stratum together instead of each cohort. For short buckets of few people, whose sums one person
    /// could dominate.
    #[schemars(example = true)]
    pub pooled: bool,
}

impl Default for Series {
    fn default() -> Self {
        Self {
            name: String::new(),
            every: Duration::from_hours(24),
            cycle: None,
            signals: Vec::new(),
            lateness: Duration::from_hours(6),
            pooled: false,
        }
    }
}

/// How people become cohorts. All series publish the same cohorts, so that no two of them can be subtracted down to a person.
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
}

impl Default for Release {
    fn default() -> Self {
        Self { fragments: true }
    }
}
