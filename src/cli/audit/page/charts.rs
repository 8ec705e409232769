//! Charts as inline SVG.

use crate::cli::page_components::{ChartBar, bars};
use crate::cli::text_format::{counted, number, percent, plural};
use maud::{Markup, html};
use throng_risk::audit::{AttributeReport, AuditReport};
use throng_risk::exposure::SupportBin;

/// Draws a hundred dots for all records: unique, below k, and others.
pub fn hundred_dots_chart(report: &AuditReport) -> Markup {
    let risk = &report.risk.risk;
    let all = report.rows.max(1) as f64;
    let parts = [risk.records_unique, risk.records_below_k - risk.records_unique, report.rows - risk.records_below_k];
    let dots = apportion_dots(parts.map(|n| n as f64 / all));
    let kinds = [("warmer", "unique", 2), ("pale", "below k", 78), ("coolpale", "in a class", 160)];
    let colours = kinds.iter().zip(dots).flat_map(|((colour, ..), n)| std::iter::repeat_n(*colour, n));
    html! {
        svg viewBox="0 0 258 130" role="img" aria-label="of a hundred records" {
            @for (at, colour) in colours.enumerate() {
                circle.(colour) cx=(format!("{:.1}", 6.5 + (at % 20) as f64 * 12.47)) cy=(8 + at / 20 * 16) r="4.6" {}
            }
            @for ((colour, word, x), n) in kinds.iter().zip(dots) {
                rect.(colour) x=(x) y="98" width="9" height="9" rx="2" {}
                text.soft x=(x + 14) y="106.5" { (n) " " (word) }
            }
            text.soft x="2" y="126" { "of every hundred records" }
        }
    }
}

/// Largest remainder; a share above 0 gets a dot.
fn apportion_dots(shares: [f64; 3]) -> [usize; 3] {
    let mut dots = shares.map(|share| if share > 0.0 { ((share * 100.0).floor() as usize).max(1) } else { 0 });
    while dots.iter().sum::<usize>() != 100 {
        let missing = dots.iter().sum::<usize>() < 100;
        let rest = |i: usize| shares[i] * 100.0 - dots[i] as f64;
        let candidates = (0..3).filter(|&i| shares[i] > 0.0 && (missing || dots[i] > 1));
        let chosen =
            candidates.max_by(|&a, &b| if missing { rest(a).total_cmp(&rest(b)) } else { rest(b).total_cmp(&rest(a)) });
        let Some(chosen) = chosen else { break };
        if missing {
            dots[chosen] += 1;
        } else {
            dots[chosen] -= 1;
        }
    }
    dots
}

/// Draws the records singled out per number of columns, paler if fewer columns suffice.
pub fn reach_chart(report: &AuditReport) -> Markup {
    let all = report.rows.max(1) as f64;
    let columns = |n: usize| if n == 1 { "1 column".to_owned() } else { format!("{n} columns") };
    let mut steps: Vec<(String, u64)> =
        report.risk.reach.iter().map(|step| (columns(step.size), step.records)).collect();
    if !report.risk.reach_exhausted {
        steps.push((format!("all {}", report.risk.attributes), report.risk.risk.records_below_k));
    }
    let before = std::iter::once(0).chain(steps.iter().map(|(_, records)| *records));
    let bar = |((label, records), before): (&(String, u64), u64)| ChartBar {
        pieces: vec![(before as f64 / all, "pale"), ((records - before) as f64 / all, "warm")],
        value: format!("{}  ({})", percent(*records as f64 / all), number(*records)),
        hint: format!("{label}: {}, {} of them new", counted(*records, "record"), number(records - before)),
        label: label.clone(),
    };
    let rows: Vec<ChartBar> = steps.iter().zip(before).map(bar).collect();
    bars("records below k by the number of columns known", &rows)
}

/// Draws records by class size.
pub fn class_size_chart(report: &AuditReport) -> Markup {
    let bins = &report.risk.risk.distribution;
    let most = bins.iter().map(|bin| bin.records).max().unwrap_or(0).max(1) as f64;
    let all = report.rows.max(1) as f64;
    let bar = |bin: &SupportBin| {
        let SupportBin { from, to, records, classes } = *bin;
        let colour = match to {
            1 if report.k > 1 => "warmer",
            to if to < u64::from(report.k) => "warm",
            _ => "cool",
        };
        let range = if from == to { number(from) } else { format!("{}–{}", number(from), number(to)) };
        ChartBar {
            pieces: vec![(records as f64 / most, colour)],
            value: format!("{}  ({})", percent(records as f64 / all), number(records)),
            hint: format!(
                "classes of {range}: {} in {} {}",
                counted(records, "record"),
                number(classes),
                plural(classes, "class", "classes")
            ),
            label: range,
        }
    };
    let rows: Vec<ChartBar> = bins.iter().map(bar).collect();
    bars("records by class size", &rows)
}

/// Draws columns by the records that they help to single out.
pub fn attribute_risk_chart(report: &AuditReport, shown: usize) -> Markup {
    let involved = report.attributes.iter().filter(|a| a.searched && a.minimal_qids > 0).take(shown);
    let all = report.rows.max(1) as f64;
    let bar = |attribute: &AttributeReport| {
        let (share, records) = (attribute.records_at_risk as f64 / all, number(attribute.records_at_risk));
        ChartBar {
            label: attribute.name.clone(),
            pieces: vec![(share, "warm")],
            value: format!("{}  ({records})  ·  {} of the sets", percent(share), percent(attribute.involvement)),
            hint: format!(
                "{}: {} at risk; part of {}, the smallest of {}",
                attribute.name,
                counted(attribute.records_at_risk, "record"),
                counted(attribute.minimal_qids, "quasi-identifier"),
                counted(attribute.smallest_qid.unwrap_or(0) as u64, "column"),
            ),
        }
    };
    let rows: Vec<ChartBar> = involved.map(bar).collect();
    bars("records that each column helps to identify", &rows)
}

const CHART_BASELINE: f64 = 160.0;
const CHART_HEIGHT: f64 = 130.0;
const CHART_WIDTH: f64 = 480.0;

/// Draws minimal quasi-identifiers and largest safe sets by size.
pub fn set_size_chart(report: &AuditReport) -> Markup {
    let largest = report.minimal_qids.iter().chain(&report.maximal_non_qids).map(Vec::len).max().unwrap_or(0);
    let count = |sets: &[Vec<String>], size: usize| sets.iter().filter(|set| set.len() == size).count() as u64;
    let pairs: Vec<(u64, u64)> =
        (1..=largest).map(|n| (count(&report.minimal_qids, n), count(&report.maximal_non_qids, n))).collect();
    let most = pairs.iter().map(|(a, b)| *a.max(b)).max().unwrap_or(0).max(1) as f64;
    let step = CHART_WIDTH / largest.max(1) as f64;
    let thick = (step * 0.36).min(34.0);
    let tenths = |x: f64| format!("{x:.1}");
    let column = |n: u64, colour: &str, x: f64, size: usize| {
        let tall = (n as f64 / most * CHART_HEIGHT).max(2.0);
        html! {
            @if n > 0 {
                g {
                    title { (number(n)) " of " (size) " columns" }
                    rect.(colour) x=(tenths(x)) y=(tenths(CHART_BASELINE - tall)) width=(tenths(thick)) height=(tenths(tall)) rx="2" {}
                    @if largest <= 14 {
                        text.soft.mid x=(tenths(x + thick / 2.0)) y=(tenths(CHART_BASELINE - tall - 5.0)) { (compact_count(n)) }
                    }
                }
            }
        }
    };
    html! {
        svg viewBox={ "0 0 " (CHART_WIDTH) " 190" } role="img" aria-label="sets by their number of columns" {
            line.axis x1="0" x2=(CHART_WIDTH) y1=(CHART_BASELINE) y2=(CHART_BASELINE) {}
            @for (size, (qids, safe)) in (1..).zip(&pairs) {
                @let middle = (size as f64 - 0.5) * step;
                (column(*qids, "warm", middle - thick - 1.0, size)) (column(*safe, "cool", middle + 1.0, size))
                @if largest <= 24 || size % 5 == 0 { text.soft.mid x=(tenths(middle)) y=(CHART_BASELINE + 16.0) { (size) } }
            }
        }
    }
}

/// `12345` → `12k`, for limited space.
fn compact_count(n: u64) -> String {
    match n {
        0..10_000 => number(n),
        10_000..10_000_000 => format!("{}k", n / 1_000),
        _ => format!("{}M", n / 1_000_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn dots_sum_to_hundred_and_cover_every_share(a in 0_u32..10_000, b in 0_u32..10_000, c in 0_u32..10_000) {
            let sum = f64::from(a + b + c);
            prop_assume!(sum > 0.0);
            let shares = [a, b, c].map(|n| f64::from(n) / sum);
            let dots = apportion_dots(shares);
            prop_assert_eq!(dots.iter().sum::<usize>(), 100);
            for (share, dots) in shares.iter().zip(dots) {
                prop_assert_eq!(*share > 0.0, dots > 0);
                prop_assert!((share * 100.0 - dots as f64).abs() < 2.0);
            }
        }
    }
}
