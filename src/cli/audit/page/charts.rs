//! Charts as inline SVG: no script, sized by the page, coloured by its style sheet.

use crate::cli::page::bars::{Bar, bars};
use crate::cli::text::{number, percent};
use crate::risk::audit::Report;

/// A hundred dots: how many of a hundred records stand alone, below k, in a crowd.
pub fn hundred(report: &Report) -> String {
    let risk = &report.risk.risk;
    let all = report.rows.max(1) as f64;
    let parts = [risk.records_unique, risk.records_below_k - risk.records_unique, report.rows - risk.records_below_k];
    let dots = apportion(parts.map(|n| n as f64 / all));
    let mut out = String::from("<svg viewBox=\"0 0 258 130\" role=\"img\" aria-label=\"of a hundred records\">");
    let colours = ["warmer", "pale", "coolpale"];
    let classes = colours.iter().zip(dots).flat_map(|(colour, n)| std::iter::repeat_n(*colour, n));
    for (index, colour) in classes.enumerate() {
        let (x, y) = (index % 20, index / 20);
        out += &format!(
            "<circle class=\"{colour}\" cx=\"{:.1}\" cy=\"{}\" r=\"4.6\"/>",
            6.5 + x as f64 * 12.47,
            8 + y * 16
        );
    }
    let said = ["alone", "below k", "in a crowd"];
    for (((word, colour), n), x) in said.iter().zip(colours).zip(dots).zip([2.0, 78.0, 160.0]) {
        out += &format!("<rect class=\"{colour}\" x=\"{x}\" y=\"98\" width=\"9\" height=\"9\" rx=\"2\"/>");
        out += &format!("<text class=\"small soft\" x=\"{}\" y=\"106.5\">{n} {word}</text>", x + 14.0);
    }
    out += "<text class=\"small soft\" x=\"2\" y=\"126\">of every hundred records</text>";
    out + "</svg>"
}

/// A hundred dots for shares that sum to 1: the largest remainders round up, and what is not nothing gets one.
fn apportion(shares: [f64; 3]) -> [usize; 3] {
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

/// How many records so many columns single out; what fewer had singled out already is paler.
pub fn reach(report: &Report) -> String {
    let all = report.rows.max(1) as f64;
    let mut before = 0;
    let mut steps: Vec<(String, u64)> = report
        .risk
        .reach
        .iter()
        .map(|step| {
            (if step.size == 1 { "1 column".to_owned() } else { format!("{} columns", step.size) }, step.records)
        })
        .collect();
    if !report.risk.reach_exhausted {
        steps.push((format!("all {}", report.risk.attributes), report.risk.risk.records_below_k));
    }
    let rows: Vec<Bar> = steps
        .into_iter()
        .map(|(label, records)| {
            let new = records - before;
            let bar = Bar {
                pieces: vec![(before as f64 / all, "pale"), (new as f64 / all, "warm")],
                value: format!("{}  ({})", percent(records as f64 / all), number(records)),
                tells: format!("{label}: {} records, {} of them new", number(records), number(new)),
                label,
            };
            before = records;
            bar
        })
        .collect();
    bars(&rows, "records below k by the number of columns known")
}

/// Records by the size of their crowd.
pub fn crowds(report: &Report) -> String {
    let bins = &report.risk.risk.distribution;
    let most = bins.iter().map(|bin| bin.records).max().unwrap_or(0).max(1) as f64;
    let all = report.rows.max(1) as f64;
    let rows: Vec<Bar> = bins
        .iter()
        .map(|bin| {
            let below = bin.to < u64::from(report.k);
            let colour = if bin.to == 1 && below {
                "warmer"
            } else if below {
                "warm"
            } else {
                "cool"
            };
            let range = if bin.from == bin.to {
                number(bin.from)
            } else {
                format!("{}–{}", number(bin.from), number(bin.to))
            };
            Bar {
                label: range.clone(),
                pieces: vec![(bin.records as f64 / most, colour)],
                value: format!("{}  ({})", percent(bin.records as f64 / all), number(bin.records)),
                tells: format!("crowds of {range}: {} records in {} classes", number(bin.records), number(bin.classes)),
            }
        })
        .collect();
    bars(&rows, "records by the size of their crowd")
}

/// Columns by the records that they help to give away.
pub fn attributes(report: &Report, shown: usize) -> String {
    let involved: Vec<_> = report.attributes.iter().filter(|a| a.searched && a.minimal_qids > 0).take(shown).collect();
    let all = report.rows.max(1) as f64;
    let rows: Vec<Bar> = involved
        .iter()
        .map(|attribute| Bar {
            label: attribute.name.clone(),
            pieces: vec![(attribute.records_at_risk as f64 / all, "warm")],
            value: format!(
                "{}  ({})  ·  {} of the sets",
                percent(attribute.records_at_risk as f64 / all),
                number(attribute.records_at_risk),
                percent(attribute.involvement),
            ),
            tells: format!(
                "{}: {} records at risk; part of {} quasi-identifiers, the smallest of {} columns",
                attribute.name,
                number(attribute.records_at_risk),
                number(attribute.minimal_qids),
                attribute.smallest_qid.unwrap_or(0),
            ),
        })
        .collect();
    bars(&rows, "records that each column helps to give away")
}

/// How many minimal quasi-identifiers and largest safe sets there are of each size.
pub fn sizes(report: &Report) -> String {
    let largest = report.minimal_qids.iter().chain(&report.maximal_non_qids).map(Vec::len).max().unwrap_or(0);
    let count = |sets: &[Vec<String>], size: usize| sets.iter().filter(|set| set.len() == size).count() as u64;
    let pairs: Vec<(u64, u64)> =
        (1..=largest).map(|n| (count(&report.minimal_qids, n), count(&report.maximal_non_qids, n))).collect();
    let most = pairs.iter().map(|(a, b)| *a.max(b)).max().unwrap_or(0).max(1) as f64;
    let (width, height, base) = (480.0, 190.0, 160.0);
    let step = width / largest.max(1) as f64;
    let thick = (step * 0.36).min(34.0);
    let mut out = format!(
        "<svg viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"sets by their number of columns\">\
         <line class=\"axis\" x1=\"0\" x2=\"{width}\" y1=\"{base}\" y2=\"{base}\"/>"
    );
    for (index, (qids, safe)) in pairs.iter().enumerate() {
        let middle = (index as f64 + 0.5) * step;
        for (n, colour, x) in [(*qids, "warm", middle - thick - 1.0), (*safe, "cool", middle + 1.0)] {
            if n == 0 {
                continue;
            }
            let tall = (n as f64 / most * 130.0).max(2.0);
            out += &format!(
                "<g><title>{} of {} columns</title><rect class=\"{colour}\" x=\"{x:.1}\" y=\"{:.1}\" width=\"{thick:.1}\" height=\"{tall:.1}\" rx=\"2\"/>",
                number(n),
                index + 1,
                base - tall
            );
            if largest <= 14 {
                out += &format!(
                    "<text class=\"small soft mid\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                    x + thick / 2.0,
                    base - tall - 5.0,
                    compact(n)
                );
            }
            out += "</g>";
        }
        if largest <= 24 || (index + 1) % 5 == 0 {
            out +=
                &format!("<text class=\"small soft mid\" x=\"{middle:.1}\" y=\"{}\">{}</text>", base + 16.0, index + 1);
        }
    }
    out + "</svg>"
}

/// `12345` as `12k`: room is scarce above a column.
fn compact(n: u64) -> String {
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
        fn a_hundred_dots_and_none_forgotten(a in 0_u32..10_000, b in 0_u32..10_000, c in 0_u32..10_000) {
            let sum = f64::from(a + b + c);
            prop_assume!(sum > 0.0);
            let shares = [a, b, c].map(|n| f64::from(n) / sum);
            let dots = apportion(shares);
            prop_assert_eq!(dots.iter().sum::<usize>(), 100);
            for (share, dots) in shares.iter().zip(dots) {
                prop_assert_eq!(*share > 0.0, dots > 0);
                prop_assert!((share * 100.0 - dots as f64).abs() < 2.0);
            }
        }
    }
}
