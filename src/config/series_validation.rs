//! Checks of series, cohorts and release.

use super::problem::{ProblemCollector, is_name};
use super::{Config, SeriesConfig, SeriesCycle};
use std::collections::BTreeSet;
use std::time::Duration;

/// Rows have a two-byte series number, and every series costs memory per subject.
const MAX_SERIES: usize = 16;

/// Minimum buckets per subject and epoch of moments.
const MIN_EPOCH_BUCKETS: u32 = 4;

pub(super) fn check_series(config: &Config, found: &mut ProblemCollector) {
    let remedy = &format!("keep at most {MAX_SERIES}");
    found.require(config.series.len() <= MAX_SERIES, "series", "too many series", remedy);
    let mut names: BTreeSet<&str> =
        if config.release.fragments { config.group_names().collect() } else { BTreeSet::new() };
    for (index, series) in config.series.iter().enumerate() {
        let key = |name: &str| format!("series[{index}].{name}");
        let remedy = "use a-z, 0-9, '_' and '-', at most 64";
        found.require(is_name(&series.name), &key("name"), "invalid series name", remedy);
        let message = "another series or group has this name";
        found.require(names.insert(&series.name), &key("name"), message, "give each its own name");
        let minutes = series.every >= Duration::from_mins(1) && series.every <= Duration::from_hours(366 * 24);
        let message = "the length of a bucket is out of range";
        found.require(minutes, &key("every"), message, "give 1m to 366d, such as 1d");
        let whole = series.every.as_millis() % 1000 == 0;
        found.require(whole, &key("every"), "the length of a bucket is not in whole seconds", "give 1m to 366d");
        if let Some(cycle) = series.cycle {
            let day = 24 * 3600;
            let (unit, least) = match cycle {
                SeriesCycle::HourOfDay => ("days", day),
                SeriesCycle::DayOfWeek => ("weeks", 7 * day),
            };
            let fits = series.every.as_secs() >= least && series.every.as_secs() % least == 0;
            let message = format!("a cycle of {} needs windows of whole {unit}", cycle.name());
            found.require(fits, &key("every"), &message, "give every = \"1w\"");
        }
        let longest = series.longest_lateness();
        let message = "a stream cannot keep so many open buckets per person";
        let remedy = format!("give at most {}, or longer buckets", humantime::format_duration(longest));
        found.require(config.is_job() || series.lateness() <= longest, &key("lateness"), message, &remedy);
        if let Some(epoch) = series.moments {
            let fits = epoch.as_secs() % series.every.as_secs().max(1) == 0;
            let message = "the length of an epoch is not a multiple of the length of a bucket";
            found.require(fits && epoch.subsec_nanos() == 0, &key("moments"), message, "give moments = \"28d\"");
            let message = format!("an epoch has fewer than {MIN_EPOCH_BUCKETS} buckets");
            let remedy = format!("give moments = \"28d\", or at least {MIN_EPOCH_BUCKETS} times every");
            found.require(epoch >= series.every.saturating_mul(MIN_EPOCH_BUCKETS), &key("moments"), &message, &remedy);
            let message = "moments are not supported with a cycle";
            found.require(series.cycle.is_none(), &key("moments"), message, "remove moments or cycle");
        }
        check_noise(series, &key, found);
        let distinct = series.signals.iter().collect::<BTreeSet<_>>().len() == series.signals.len();
        found.require(distinct, &key("signals"), "a signal is named twice", "name each once");
    }
    let crowd = config.privacy.required_subjects();
    let size = config.cohort.size.is_none_or(|size| (crowd..=1_000_000).contains(&size));
    let message = "a cohort is too small to hide its members, or too large";
    let remedy = &format!("give {crowd} (privacy.k + privacy.colluders) to 1000000; {} is the default", 3 * crowd);
    found.require(size, "cohort.size", message, remedy);
    let days = config.cohort.warm_up <= Duration::from_hours(366 * 24);
    found.require(days, "cohort.warm_up", "the warm-up is longer than a year", "give 0d to 366d; 7d is usual");
    let share = (0.0..=1.0).contains(&config.release.min_represented);
    let remedy = "give 0 to 1; 0.5 is the default, and 0 accepts every release";
    found.require(share, "release.min_represented", "must be between 0 and 1", remedy);
    let message = "neither fragments nor series are released";
    let remedy = "add a [[series]], set release.fragments = true, or sink.kind = \"none\" to measure only";
    found.require(config.release.fragments || !config.series.is_empty(), "release.fragments", message, remedy);
}

fn check_noise(series: &SeriesConfig, key: &dyn Fn(&str) -> String, found: &mut ProblemCollector) {
    let Some(epsilon) = series.epsilon_per_week else { return };
    let message = "ε per person and week is out of range";
    found.require((0.01..=20.0).contains(&epsilon), &key("epsilon_per_week"), message, "give 0.01 to 20, such as 4");
    let day = 24 * 3600;
    let every = series.every.as_secs();
    let message = "the length of a bucket does not divide a day or a week, the units of noise";
    let remedy = "give 1w, 1d, or a length that divides a day, such as 6h";
    found.require(every == 7 * day || every > 0 && day % every == 0, &key("every"), message, remedy);
    for (name, is_set) in
        [("cycle", series.cycle.is_some()), ("moments", series.moments.is_some()), ("pooled", series.pooled)]
    {
        let message = "a series with noise has only counts and means of all people";
        found.require(!is_set, &key(name), message, &format!("remove {name}, or epsilon_per_week"));
    }
}

#[cfg(test)]
mod tests {
    use super::super::{SeriesConfig, parse};
    use std::time::Duration;

    #[test]
    fn lateness_beyond_open_buckets_is_refused() {
        let keys = |source: &str, series: &str| -> Vec<String> {
            let text = format!(
                "[source]\nkind = \"file\"\npath = \"{source}\"\n[sink]\nkind = \"file\"\npath = \"out.ndjson\"\n\
                 [state]\nsecret_file = \"key\"\n[[series]]\nname = \"s\"\n{series}\n"
            );
            let problems = parse(&text, "t.toml", std::iter::empty()).err().unwrap_or_default();
            problems
                .into_iter()
                .filter(|problem| problem.key.starts_with("series"))
                .map(|problem| problem.key)
                .collect()
        };
        let refused = ["series[0].lateness"];
        assert_eq!(keys("-", "every = \"1m\"\nlateness = \"127m\""), refused);
        assert_eq!(keys("-", "every = \"1w\"\ncycle = \"hour_of_day\"\nlateness = \"22d\""), refused);
        assert_eq!(keys("in.csv", "every = \"1m\"\nlateness = \"127m\""), [""; 0], "a job has no late records");
        for series in
            ["every = \"1m\"\nlateness = \"126m\"", "every = \"1m\"", "every = \"1w\"\ncycle = \"hour_of_day\""]
        {
            assert_eq!(keys("-", series), [""; 0], "{series}");
        }
        let minutes = |every: u64| {
            SeriesConfig { every: Duration::from_mins(every), ..SeriesConfig::default() }.lateness().as_secs() / 60
        };
        assert_eq!((minutes(1), minutes(2), minutes(3), minutes(1_440)), (126, 252, 360, 360));
    }

    #[test]
    fn noise_with_unsupported_settings_is_refused() {
        let keys = |series: &str| -> Vec<String> {
            let text = format!(
                "[source]\nkind = \"file\"\npath = \"in.csv\"\n[sink]\nkind = \"file\"\npath = \"out.ndjson\"\n\
                 [[series]]\nname = \"s\"\n{series}\n"
            );
            let problems = parse(&text, "t.toml", std::iter::empty()).err().unwrap_or_default();
            let problems = problems.into_iter().map(|problem| problem.key);
            problems.filter_map(|key| Some(key.strip_prefix("series[0].")?.to_owned())).collect()
        };
        for every in ["1w", "1d", "6h", "15m"] {
            assert_eq!(keys(&format!("epsilon_per_week = 4\nevery = \"{every}\"")), [""; 0], "{every}");
        }
        for every in ["2d", "2w", "7h", "30d"] {
            assert_eq!(keys(&format!("epsilon_per_week = 4\nevery = \"{every}\"")), ["every"], "{every}");
        }
        for epsilon in ["0", "-1", "0.001", "21", "nan", "inf"] {
            assert_eq!(keys(&format!("epsilon_per_week = {epsilon}")), ["epsilon_per_week"], "{epsilon}");
        }
        assert_eq!(keys("epsilon_per_week = 4\npooled = true"), ["pooled"]);
        assert_eq!(keys("epsilon_per_week = 4\nmoments = \"28d\""), ["moments"]);
        assert_eq!(keys("epsilon_per_week = 4\nevery = \"1w\"\ncycle = \"hour_of_day\""), ["cycle"]);
    }
}
