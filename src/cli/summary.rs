//! Summary of a run: what the release represents, the account of the records, and why records or rows are missing.

use super::text;
use crate::telemetry::{Limit, RecordShare, SeriesPublished, Status, SuppressionReason, Telemetry, TooFewBuckets};

/// Message where lines were thinned for want of room: no other line of their subject need have left.
pub const LIMIT_REACHED: &str = "thinned without a line that stands for them: the limit of lines that wait, or that are remembered, was reached, and of some people nothing has left in the groups that do not change (divide the input by subjects)";

/// Advice where only unreadable records keep a release below `release.min_represented`.
pub const UNREADABLE: &str =
    "correct the records that could not be read: the dead letters and the log name the reason and the remedy";

/// Prints the summary of a run on standard error.
pub fn summarize(telemetry: &Telemetry) {
    let status = telemetry.status();
    for line in lines(&status) {
        eprintln!("{line}");
    }
    if telemetry.has_reached(Limit::WaitingLines) || telemetry.has_reached(Limit::SaidLines) {
        eprintln!("{LIMIT_REACHED}");
    }
}

fn lines(status: &Status) -> Vec<String> {
    let totals = status.totals;
    let mut lines = represented(status);
    lines.push(format!(
        "consumed {} = released {} + suppressed {} + held {} + dead-lettered {} + dropped {}",
        totals.consumed, totals.released, totals.suppressed, status.held, totals.dead_lettered, totals.dropped
    ));
    lines.extend(status.series.iter().filter_map(missing_rows));
    let suppressed = status.suppressed.iter().filter(|(_, records)| *records > 0);
    lines.extend(
        suppressed
            .map(|(why, records)| format!("suppressed in this run: {records}, {}", suppressed_since(why, status))),
    );
    let dead = status.dead_lettered.iter().filter(|(_, records)| *records > 0);
    lines.extend(dead.map(|(why, records)| format!("dead-lettered in this run: {records}, {}", why.words())));
    if let Some(loss) = status.mean_loss.filter(|_| !status.only_series) {
        lines.push(format!("mean loss {loss:.4} over the present quasi cells of this run"));
    }
    if status.thinned_fragments > 0 && !status.only_series {
        lines.push(format!(
            "about {} fragments are thinned: {} (privacy.max_lines_per_subject, privacy.max_delay)",
            status.thinned_fragments,
            SuppressionReason::Thinned.words()
        ));
    }
    if let Some(seconds) = status.mean_delay_seconds {
        lines.push(format!("about {} lines have waited some {seconds} s in the mean", status.delayed_lines));
    }
    lines
}

/// The reason of suppressed records in words.
#[must_use]
pub fn suppressed_since(why: SuppressionReason, status: &Status) -> &'static str {
    match why {
        SuppressionReason::Monitoring if status.only_series => {
            "no record leaves by itself (release.fragments = false); series represent them"
        }
        why => why.words(),
    }
}

/// What the release represents, a line for each form.
#[must_use]
pub fn represented(status: &Status) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(series) = &status.series {
        let (best, unreadable) = (series.best, status.represented.unreadable);
        let of_all = RecordShare::of(best.represented, best.settled(), unreadable);
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
        lines.extend(too_short(series).map(|why| format!("series: no rows, since {why}")));
        if series.pending > 0 {
            lines.push(format!("series: {} wait for the end of their epoch", text::counted(series.pending, "record")));
        }
    }
    if let Some(binned) = status.series.map(|series| series.binned).filter(|binned| *binned > 0) {
        lines.push(format!("series: {binned} sums that one or two members dominate left as shares of intervals"));
    }
    if let Some(by_fragments) = status.represented.by_fragments {
        let share = text::percent(by_fragments.share());
        lines.push(format!("fragments represent {share} of the records{}", by_fragments.note()));
    }
    lines
}

/// Why a job has no rows of series, and the remedy, where nobody has values in enough buckets.
#[must_use]
pub fn too_short(series: &SeriesPublished) -> Option<String> {
    series.too_short.map(|TooFewBuckets { most, needed }| {
        format!(
            "each person needs values in {needed} buckets of a series, and nobody has them in more than {most}: give records of a longer time, or shorter buckets (every in [[series]])"
        )
    })
}

/// Why rows of series are missing, in one line.
#[must_use]
pub fn missing_rows(series: &SeriesPublished) -> Option<String> {
    let missing: Vec<String> = [
        ("rows withheld because too few members were present", series.too_few),
        (
            "rows withheld because one or two members dominate, or all have one value, and no intervals hold enough members",
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
