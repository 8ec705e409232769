//! Summary of a run.

use super::text_format::{self, counted, plural};
use crate::telemetry::{Limit, RecordShare, SeriesPublished, Status, SuppressionReason, Telemetry, TooFewBuckets};
use std::collections::BTreeSet;
use throng_core::series::{AllSeriesTerms, SeriesTerms};

/// Possibly no other line of their subject was released.
pub const LIMIT_REACHED_NOTE: &str = "fragments thinned with no other line of their subject: the limit of waiting lines or of the release log was reached, and some people have no line in the groups that do not change (divide the input by subjects)";

/// If only unreadable records keep a release below `release.min_represented`.
pub const UNREADABLE_ADVICE: &str =
    "correct the records that could not be read: the dead letters and the log name the reason and the remedy";

/// Prints the summary on standard error. With `terms`, it names signals without rows.
pub fn print_run_summary(telemetry: &Telemetry, terms: Option<&AllSeriesTerms>) {
    let status = telemetry.status();
    let missing = terms.and_then(|terms| missing_signals_line(terms, &telemetry.signals_with_rows()));
    for line in summary_lines(&status, missing) {
        eprintln!("{line}");
    }
    if telemetry.has_reached(Limit::WaitingLines) || telemetry.has_reached(Limit::SaidLines) {
        eprintln!("{LIMIT_REACHED_NOTE}");
    }
}

fn summary_lines(status: &Status, missing_signals: Option<String>) -> Vec<String> {
    let totals = status.totals;
    let mut lines = represented_lines(status);
    lines.extend(missing_signals);
    lines.push(format!(
        "consumed {} = released {} + suppressed {} + held {} + dead-lettered {} + dropped {}",
        totals.consumed, totals.released, totals.suppressed, status.held, totals.dead_lettered, totals.dropped
    ));
    lines.extend(status.series.iter().filter_map(missing_rows_reasons));
    let suppressed = status.suppressed.iter().filter(|(_, records)| *records > 0);
    lines.extend(
        suppressed.map(|(why, records)| {
            format!("suppressed in this run: {records}, {}", suppression_reason_text(why, status))
        }),
    );
    let dead = status.dead_lettered.iter().filter(|(_, records)| *records > 0);
    lines.extend(dead.map(|(why, records)| format!("dead-lettered in this run: {records}, {}", why.reason_clause())));
    if let Some(loss) = status.mean_loss.filter(|_| !status.only_series) {
        lines.push(format!("mean loss {loss:.4} over the present quasi cells of this run"));
    }
    if status.thinned_fragments > 0 && !status.only_series {
        lines.push(format!(
            "about {} thinned: {} (privacy.max_lines_per_subject, privacy.max_delay)",
            counted(status.thinned_fragments, "fragment"),
            SuppressionReason::Thinned.reason_text()
        ));
    }
    if let Some(seconds) = status.mean_delay_seconds {
        lines.push(format!("about {} delayed by {seconds} s on average", counted(status.delayed_lines, "line")));
    }
    lines
}

/// Describes a suppression reason.
#[must_use]
pub fn suppression_reason_text(why: SuppressionReason, status: &Status) -> &'static str {
    match why {
        SuppressionReason::Monitoring if status.only_series => {
            "no single records are released (release.fragments = false); series represent them"
        }
        why => why.reason_text(),
    }
}

/// Describes the represented share, one line per form.
#[must_use]
pub fn represented_lines(status: &Status) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(series) = &status.series {
        let (best, unreadable) = (series.best, status.represented.unreadable);
        let of_all = RecordShare::of(best.represented, best.completed_records(), unreadable);
        lines.push(format!(
            "series: {} of {} people{} and {} represented, in {}",
            series.people,
            series.people_seen,
            if series.rows_before > 0 { " (with those of earlier jobs)" } else { "" },
            of_all.map_or_else(
                || "no record".to_owned(),
                |of_all| format!("{} of the records{}", text_format::percent(of_all.share()), of_all.note())
            ),
            counted(series.rows, "row")
        ));
        lines.extend(missing_buckets_advice(series).map(|why| format!("series: no rows, since {why}")));
        if series.pending > 0 {
            lines.push(format!(
                "series: {} {} for the end of the epoch",
                counted(series.pending, "record"),
                plural(series.pending, "waits", "wait")
            ));
        }
    }
    if let Some(binned) = status.series.map(|series| series.binned).filter(|binned| *binned > 0) {
        lines.push(format!(
            "series: {} that one or two members dominate {} released as shares of intervals",
            counted(binned, "sum"),
            plural(binned, "was", "were")
        ));
    }
    if let Some(by_fragments) = status.represented.by_fragments {
        let share = text_format::percent(by_fragments.share());
        lines.push(format!("fragments represent {share} of the records{}", by_fragments.note()));
    }
    lines
}

/// Explains a series without rows if no subject has enough buckets.
#[must_use]
pub fn missing_buckets_advice(series: &SeriesPublished) -> Option<String> {
    series.too_short.map(|TooFewBuckets { most, needed }| {
        format!(
            "each person needs values in {needed} buckets of a series, but no person has values in more than {most}: give records of a longer time, or shorter buckets (every in [[series]])"
        )
    })
}

/// Names the signals without rows, if others have rows.
fn missing_signals_line(terms: &AllSeriesTerms, with_rows: &BTreeSet<(usize, usize)>) -> Option<String> {
    if with_rows.is_empty() {
        return None;
    }
    let of_series = |(number, series): (usize, &SeriesTerms)| {
        let missing = series.signals.iter().enumerate().filter(|(at, _)| !with_rows.contains(&(number, *at)));
        let names: Vec<String> = missing.map(|(_, signal)| text_format::sanitize_text(&signal.name)).collect();
        let place = if terms.series.len() > 1 { format!(" in {}", series.name) } else { String::new() };
        (!names.is_empty()).then(|| names.join(", ") + &place)
    };
    let missing: Vec<String> = terms.series.iter().enumerate().filter_map(of_series).collect();
    let names = missing.join("; ");
    (!missing.is_empty())
        .then(|| format!("series: no rows of {names} (`throng check --sample` counts the people with values)"))
}

/// Lists the reasons for missing rows in one line.
#[must_use]
pub fn missing_rows_reasons(series: &SeriesPublished) -> Option<String> {
    let missing: Vec<String> = [
        ("row", "withheld because too few members were present", series.too_few),
        (
            "row",
            "withheld because one or two members dominate, or all have the same value, and no intervals have enough members",
            series.dominated,
        ),
        (
            "record",
            "late, ahead of the clock, without time or subject, or beyond the limit of open buckets",
            series.late,
        ),
    ]
    .iter()
    .filter(|(.., count)| *count > 0)
    .map(|(what, why, count)| format!("{} {why}", counted(*count, what)))
    .collect();
    (!missing.is_empty()).then(|| format!("not in the series: {}", missing.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use throng_core::series::{CohortTerms, DAY_MS, SeriesSignal};

    fn series(name: &str, signals: &[&str]) -> SeriesTerms {
        let signal = |name: &&str| SeriesSignal {
            attribute: 0,
            name: (*name).to_owned(),
            unit: None,
            range: (0.0, 1.0),
            intervals: None,
        };
        SeriesTerms {
            name: name.to_owned(),
            every_ms: DAY_MS,
            every: "1d".to_owned(),
            cycle: None,
            signals: signals.iter().map(signal).collect(),
            lateness_ms: 0,
            pooled: false,
            min_values: 4,
            moments: None,
            noise: None,
        }
    }

    fn terms(series: Vec<SeriesTerms>) -> AllSeriesTerms {
        let cohorts = CohortTerms {
            crowd: 5,
            colluders: 0,
            size: 15,
            warm_up_days: 0,
            idle_ms: DAY_MS,
            strata: Vec::new(),
            strata_names: Vec::new(),
            time: 1,
            max_histories: 1,
            is_batch: true,
        };
        AllSeriesTerms { cohorts, series }
    }

    #[test]
    fn summary_names_signals_without_rows() {
        let one = terms(vec![series("daily", &["steps", "spo2", "scl"])]);
        let line = missing_signals_line(&one, &BTreeSet::from([(0, 0)])).expect("a line");
        assert!(line.starts_with("series: no rows of spo2, scl ("), "{line}");
        assert_eq!(missing_signals_line(&one, &BTreeSet::from([(0, 0), (0, 1), (0, 2)])), None);
        assert_eq!(missing_signals_line(&one, &BTreeSet::new()), None, "the summary says why there are no rows");
        let two = terms(vec![series("daily", &["steps", "spo2"]), series("hours", &["steps"])]);
        let line = missing_signals_line(&two, &BTreeSet::from([(0, 0)])).expect("a line");
        assert!(line.contains("no rows of spo2 in daily; steps in hours ("), "{line}");
    }

    #[test]
    fn missing_rows_are_counted_in_singular_and_plural() {
        let reasons = |too_few, late| {
            missing_rows_reasons(&SeriesPublished { late, too_few, ..SeriesPublished::default() }).unwrap_or_default()
        };
        assert!(reasons(1, 2).starts_with("not in the series: 1 row withheld"), "{}", reasons(1, 2));
        assert!(reasons(1, 2).contains("; 2 records late"), "{}", reasons(1, 2));
        assert_eq!(reasons(0, 0), "");
    }
}
