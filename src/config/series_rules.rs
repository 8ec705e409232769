//! What the series of a configuration must fulfil.

use super::problem::{Complaints, is_name};
use super::{Config, SeriesCycle, SinkKind};
use std::collections::BTreeSet;
use std::time::Duration;

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
