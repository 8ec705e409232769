//! `[[series]]`, `[cohort]` and `[release]`: statistics of cohorts over time, and what a release must represent.

use super::choice::choices;
use super::problem::{Complaints, is_name};
use super::{Config, SinkKind, quantity};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
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

/// Series at most: rows name their series by a number of two bytes, and every series costs memory for each person.
const MAX_SERIES: usize = 16;

/// Complaints about the series of a configuration.
pub(super) fn series(config: &Config, found: &mut Complaints) {
    let remedy = &format!("keep at most {MAX_SERIES}");
    found.unless(config.series.len() <= MAX_SERIES, "series", "these are too many series", remedy);
    let mut names: BTreeSet<&str> =
        if config.release.fragments { config.group_names().collect() } else { BTreeSet::new() };
    for (index, series) in config.series.iter().enumerate() {
        let key = |name: &str| format!("series[{index}].{name}");
        let remedy = "use a-z, 0-9, '_' and '-', at most 64";
        found.unless(is_name(&series.name), &key("name"), "this is no name of a series", remedy);
        let message = "another series or group has this name";
        found.unless(names.insert(&series.name), &key("name"), message, "give each its own name");
        let minutes = series.every >= Duration::from_mins(1) && series.every <= Duration::from_hours(366 * 24);
        let message = "the length of a bucket is out of range";
        found.unless(minutes, &key("every"), message, "give 1m to 366d, such as 1d");
        let whole = series.every.as_millis() % 1000 == 0;
        found.unless(whole, &key("every"), "the length of a bucket is not in whole seconds", "give 1m to 366d");
        if let Some(cycle) = series.cycle {
            let day = 24 * 3600;
            let (unit, least) = match cycle {
                SeriesCycle::HourOfDay => ("days", day),
                SeriesCycle::DayOfWeek => ("weeks", 7 * day),
            };
            let fits = series.every.as_secs() >= least && series.every.as_secs() % least == 0;
            let message = format!("a cycle of {} needs windows of whole {unit}", cycle.name());
            found.unless(fits, &key("every"), &message, "give every = \"1w\"");
        }
        let distinct = series.signals.iter().collect::<BTreeSet<_>>().len() == series.signals.len();
        found.unless(distinct, &key("signals"), "a signal is named twice", "name each once");
    }
    let shares_topic = config.sink.kind == SinkKind::Kafka
        && !config.sink.topic.is_empty()
        && config.output_names().len() > 1
        && config.sink.topic_of("") == config.sink.topic;
    let message = "rows of series and other lines would share a topic";
    let remedy = "put {group} into it: each group and each series then has a topic of its own";
    found.unless(config.series.is_empty() || !shares_topic, "sink.topic", message, remedy);
    let crowd = config.privacy.crowd();
    let size = config.cohort.size.is_none_or(|size| (crowd..=1_000_000).contains(&size));
    let message = "a cohort is smaller than the crowd that hides its members, or too large";
    let remedy = &format!("give {crowd} (privacy.k + privacy.colluders) to 1000000; {} is the default", 3 * crowd);
    found.unless(size, "cohort.size", message, remedy);
    let days = config.cohort.warm_up <= Duration::from_hours(366 * 24);
    found.unless(days, "cohort.warm_up", "the warm-up is longer than a year", "give 0d to 366d; 7d is usual");
    let message = "neither fragments nor series leave";
    let remedy = "add a [[series]], set release.fragments = true, or sink.kind = \"none\" to measure only";
    found.unless(config.release.fragments || !config.series.is_empty(), "release.fragments", message, remedy);
}
