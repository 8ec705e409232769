//! Summary of a run.

use super::text_format;
use crate::telemetry::{Limit, RecordShare, SeriesPublished, Status, SuppressionReason, Telemetry, TooFewBuckets};

/// Possibly no other line of their subject was released.
pub const LIMIT_REACHED_NOTE: &str = "fragments thinned with no other line of their subject: the limit of waiting lines or of the release log was reached, and some people have no line in the groups that do not change (divide the input by subjects)";

/// If only unreadable records keep a release below `release.min_represented`.
pub const UNREADABLE_ADVICE: &str =
    "correct the records that could not be read: the dead letters and the log name the reason and the remedy";

/// Prints the summary on standard error.
pub fn print_run_summary(telemetry: &Telemetry) {
    let status = telemetry.status();
    for line in summary_lines(&status) {
        eprintln!("{line}");
    }
    if telemetry.has_reached(Limit::WaitingLines) || telemetry.has_reached(Limit::SaidLines) {
        eprintln!("{LIMIT_REACHED_NOTE}");
    }
}

fn summary_lines(status: &Status) -> Vec<String> {
    let totals = status.totals;
    let mut lines = represented_lines(status);
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
            "about {} fragments thinned: {} (privacy.max_lines_per_subject, privacy.max_delay)",
            status.thinned_fragments,
            SuppressionReason::Thinned.reason_text()
        ));
    }
    if let Some(seconds) = status.mean_delay_seconds {
        lines.push(format!("about {} lines delayed by {seconds} s on average", status.delayed_lines));
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
            "series: {} of {} people{} and {} represented, in {} rows",
            series.people,
            series.people_seen,
            if series.rows_before > 0 { " (with those of earlier jobs)" } else { "" },
            of_all.map_or_else(
                || "no record".to_owned(),
                |of_all| format!("{:.1} % of the records{}", of_all.share() * 100.0, of_all.note())
            ),
            series.rows
        ));
        lines.extend(missing_buckets_advice(series).map(|why| format!("series: no rows, since {why}")));
        if series.pending > 0 {
            lines.push(format!(
                "series: {} wait for the end of their epoch",
                text_format::counted(series.pending, "record")
            ));
        }
    }
    if let Some(binned) = status.series.map(|series| series.binned).filter(|binned| *binned > 0) {
        lines.push(format!(
            "series: {binned} sums that one or two members dominate were released as shares of intervals"
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

/// Lists the reasons for missing rows in one line.
#[must_use]
pub fn missing_rows_reasons(series: &SeriesPublished) -> Option<String> {
    let missing: Vec<String> = [
        ("rows withheld because too few members were present", series.too_few),
        (
            "rows withheld because one or two members dominate, or all have the same value, and no intervals have enough members",
            series.dominated,
        ),
        ("records late, ahead of the clock, without time or subject, or beyond the limit of open buckets", series.late),
    ]
    .iter()
    .filter(|(_, count)| *count > 0)
    .map(|(why, count)| format!("{count} {why}"))
    .collect();
    (!missing.is_empty()).then(|| format!("not in the series: {}", missing.join("; ")))
}
