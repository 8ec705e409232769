//! Rejects series with a common signal whose difference reveals the values of one subject: a row withheld in one is
//! contained in sums of the other (docs/internals/methods.md §13).

use crate::config::ConfigProblem;
use throng_core::series::{SeriesTerms, SlotCycle};

const DAY_MS: i64 = 86_400_000;

pub(super) fn problems(series: &[SeriesTerms], file: &str) -> Vec<ConfigProblem> {
    let mut found = Vec::new();
    for (index, second) in series.iter().enumerate() {
        for first in &series[..index] {
            let Some(signal) = shared_signal(first, second) else { continue };
            let Some((key, reason, remedy)) = conflict(first, second) else { continue };
            let message = format!("the signal {signal:?} is in the series {:?} too, {reason}", first.name);
            found.push(ConfigProblem::new(file, format!("series[{index}].{key}"), message, remedy));
        }
    }
    found
}

fn shared_signal<'a>(first: &'a SeriesTerms, second: &SeriesTerms) -> Option<&'a str> {
    let attribute_in = |attribute: usize| second.signals.iter().any(|signal| signal.attribute == attribute);
    first.signals.iter().find(|signal| attribute_in(signal.attribute)).map(|signal| signal.name.as_str())
}

/// Returns key, reason and remedy.
fn conflict(first: &SeriesTerms, second: &SeriesTerms) -> Option<(&'static str, &'static str, &'static str)> {
    if first.noise.is_some() || second.noise.is_some() {
        return Some((
            "signals",
            "and one of the two has noise: rows without noise would reveal the values that the noise hides, and ε would add up",
            "name other signals in one of them",
        ));
    }
    if first.moments.is_some() || second.moments.is_some() {
        return Some((
            "signals",
            "and one of them has moments: the mean of an epoch minus other means can be the value of one person",
            "name other signals in one of them, or keep only one of the two",
        ));
    }
    if first.pooled != second.pooled {
        return Some((
            "pooled",
            "with a different pooled: all cohorts minus some cohorts give a withheld one",
            "give both the same pooled, or name other signals in one of them",
        ));
    }
    if is_curve_of(first, second) || is_curve_of(second, first) {
        return None;
    }
    let buckets = |of: &SeriesTerms| (of.every_ms, of.cycle, of.lateness_ms);
    (buckets(first) != buckets(second)).then_some((
        "signals",
        "in other buckets: their difference can hold the values of one person",
        "name other signals in one of them, or give both the same every, cycle and lateness; a series of whole days can be combined with \
         a curve (every = \"1w\", cycle = \"hour_of_day\")",
    ))
}

/// `curve` is an hour-of-day curve over at least a week, `days` has whole days.
fn is_curve_of(curve: &SeriesTerms, days: &SeriesTerms) -> bool {
    curve.cycle == Some(SlotCycle::HourOfDay)
        && curve.every_ms >= 7 * DAY_MS
        && days.cycle.is_none()
        && days.every_ms % DAY_MS == 0
}

#[cfg(test)]
mod tests {
    use super::super::series_settings::series_terms;
    use crate::config::parse;
    use crate::start::schema_loading::load_schema;

    fn keys(series: &str) -> Vec<String> {
        let schema = concat!(env!("CARGO_MANIFEST_DIR"), "/schemas/wearable.toml");
        let text = format!(
            "[source]\nkind = \"file\"\npath = \"in.csv\"\n[sink]\nkind = \"file\"\npath = \"out.ndjson\"\n\
             [schema]\nfile = \"{schema}\"\n{series}"
        );
        let config = parse(&text, "t.toml", std::iter::empty()).unwrap_or_else(|problems| panic!("{problems:?}"));
        let schema = load_schema(&config).unwrap_or_else(|problems| panic!("{problems:?}"));
        let problems = series_terms(&config, &schema, "t.toml").err().unwrap_or_default();
        problems.into_iter().map(|problem| problem.key).collect()
    }

    fn pair(first: &str, second: &str) -> Vec<String> {
        keys(&format!("[[series]]\nname = \"first\"\n{first}\n[[series]]\nname = \"second\"\n{second}\n"))
    }

    const CURVE: &str = "every = \"1w\"\ncycle = \"hour_of_day\"";
    const MODEL: &str = "signals = [\"steps\", \"heart_rate\"]\nmoments = \"28d\"";

    #[test]
    fn series_sharing_signal_with_different_buckets_are_refused() {
        let signals = |second: &str| pair("", second) == ["series[1].signals"];
        assert!(signals("every = \"12h\""));
        assert!(signals("every = \"1w\""));
        assert!(signals("signals = [\"steps\"]\nevery = \"7d\""), "the first has steps by default");
        assert!(signals("lateness = \"2h\""), "a late record would be alone in the difference");
        assert!(signals("every = \"1d\"\ncycle = \"hour_of_day\""), "the curve of one day");
        assert!(signals("every = \"1w\"\ncycle = \"day_of_week\""), "its slots are days");
        assert_eq!(pair("every = \"12h\"", CURVE), ["series[1].signals"], "a curve of half days");
        assert_eq!(pair(CURVE, "every = \"2w\"\ncycle = \"hour_of_day\""), ["series[1].signals"], "two curves");
        assert_eq!(pair("", "pooled = true"), ["series[1].pooled"]);
        assert_eq!(pair("", &format!("pooled = true\n{CURVE}")), ["series[1].pooled"]);
        assert_eq!(pair("", "signals = [\"steps\"]\nepsilon_per_week = 4"), ["series[1].signals"]);
        let noise = "signals = [\"steps\"]\nepsilon_per_week = 4";
        assert_eq!(pair(noise, noise), ["series[1].signals"]);
        assert_eq!(pair(noise, "signals = [\"heart_rate\"]"), [""; 0]);
    }

    #[test]
    fn series_with_moments_cannot_share_signal() {
        for other in ["", CURVE, "pooled = true", "signals = [\"stress\", \"steps\"]\nmoments = \"28d\"", MODEL] {
            assert_eq!(pair(MODEL, other), ["series[1].signals"], "{other}");
            assert_eq!(pair(other, MODEL), ["series[1].signals"], "{other}");
        }
        let others = "signals = [\"stress\", \"skin_temp\"]\n";
        for other in [others.to_owned(), format!("{others}moments = \"7d\""), format!("{others}{CURVE}\npooled = true")]
        {
            assert_eq!(pair(MODEL, &other), [""; 0], "{other}");
        }
    }

    #[test]
    fn series_without_shared_signal_or_with_equal_buckets_are_accepted() {
        for (first, second) in [
            ("signals = [\"steps\"]\nevery = \"12h\"", "signals = [\"heart_rate\"]\nevery = \"1d\"\npooled = true"),
            ("", CURVE),
            (CURVE, "every = \"2d\""),
            ("", ""),
            ("every = \"12h\"", "every = \"12h\""),
        ] {
            assert_eq!(pair(first, second), [""; 0], "{first} and {second}");
        }
    }

    #[test]
    fn third_series_is_compared_with_each_other_series() {
        let of = |third: &str| keys(&format!("[[series]]\nname = \"a\"\n[[series]]\nname = \"b\"\n{CURVE}\n{third}"));
        assert!(of("").is_empty());
        assert_eq!(of("[[series]]\nname = \"c\"\nevery = \"2d\"\n"), ["series[2].signals"]);
        assert!(of("[[series]]\nname = \"c\"\n").is_empty());
    }
}
