//! Rounding and intervals of numbers. No figure is a value of one subject: one or two digits, within the k-th subject
//! from either side.

use super::column_names::ColumnName;
use super::column_texts::{ColumnTexts, number_of_code};
use super::schema_proposal::{HierarchyProposal, ProposedHierarchy, ProposedRounding};
use super::subject_choice::{MISSING_SUBJECT, TableSubjects};

pub(super) struct NumberRange {
    /// With cell counts, ascending.
    sorted: Vec<(f64, u64)>,
    cells: u64,
    /// At least k subjects have a number at or beyond each limit.
    crowd: Option<(f64, f64)>,
    /// Finest round step that divides all numbers; `None` beyond nine decimals.
    resolution: Option<f64>,
}

impl NumberRange {
    /// Measures one number per text of `values`.
    pub fn of(values: &ColumnTexts<'_>, told: &[Option<f64>], people: &TableSubjects, k: u64) -> Self {
        let cells = values.texts.iter().map(|text| text.cells);
        let mut sorted: Vec<(f64, u64)> = told.iter().copied().zip(cells).filter_map(|(n, c)| Some((n?, c))).collect();
        sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
        let total = sorted.iter().map(|(_, cells)| cells).sum();
        let resolution = finest_step(&sorted);
        Self { crowd: k_subject_limits(values, told, people, k), sorted, cells: total, resolution }
    }

    /// Smallest number with at least the share `part` at or below it.
    fn quantile(&self, part: f64) -> f64 {
        quantile(&self.sorted, self.cells, part)
    }
}

fn quantile(sorted: &[(f64, u64)], cells: u64, part: f64) -> f64 {
    let wanted = (part * cells as f64).ceil().max(1.0) as u64;
    let mut below = 0;
    for (number, cells) in sorted {
        below += cells;
        if below >= wanted {
            return *number;
        }
    }
    sorted.last().map_or(0.0, |(number, _)| *number)
}

/// The k-th smallest minimum and k-th largest maximum of subjects.
pub(super) fn k_subject_limits(
    values: &ColumnTexts<'_>,
    told: &[Option<f64>],
    people: &TableSubjects,
    k: u64,
) -> Option<(f64, f64)> {
    let mut of: Vec<Option<(f64, f64)>> = vec![None; people.count as usize];
    for (&code, &person) in values.column.codes.iter().zip(&people.of_row) {
        if let (Some(number), true) = (number_of_code(told, code), person != MISSING_SUBJECT) {
            let known = &mut of[person as usize];
            let (low, high) = known.unwrap_or((number, number));
            *known = Some((low.min(number), high.max(number)));
        }
    }
    let kth = usize::try_from(k.max(1)).ok()? - 1;
    let (mut lows, mut highs): (Vec<f64>, Vec<f64>) = of.into_iter().flatten().unzip();
    lows.sort_by(f64::total_cmp);
    highs.sort_by(|a, b| b.total_cmp(a));
    let (low, high) = (*lows.get(kth)?, *highs.get(kth)?);
    Some((low.min(high), low.max(high)))
}

/// Largest 1, 2 or 5 times a power of ten that divides every number.
fn finest_step(sorted: &[(f64, u64)]) -> Option<f64> {
    let divides = |step: f64| {
        sorted.iter().all(|(n, _)| {
            let steps = n / step;
            let dust = (steps.abs() * 4e-15).max(1e-6);
            *n == 0.0 || steps.abs() > 0.5 && (steps - steps.round()).abs() <= dust
        })
    };
    let steps = (-9..=9).flat_map(|power| [1.0, 2.0, 5.0].map(|digit| power_of_ten(digit, power)));
    steps.rev().find(|step| divides(*step))
}

fn power_of_ten(digit: f64, power: i32) -> f64 {
    // Parsing gives the nearest float of 0.1.
    format!("{digit}e{power}").parse().unwrap_or(1.0)
}

/// Largest 1, 2 or 5 times a power of ten, at most `size`.
pub(super) fn round_step_below(size: f64) -> f64 {
    if !(size.is_finite() && size > 0.0) {
        return 1.0;
    }
    let power = size.log10().floor() as i32;
    let below = [5.0, 2.0, 1.0].map(|digit| power_of_ten(digit, power)).into_iter().find(|step| *step <= size);
    below.unwrap_or_else(|| power_of_ten(5.0, power - 1))
}

/// Without rounding noise.
fn step_multiple(steps: f64, step: f64) -> f64 {
    let dusty = steps * step;
    format!("{dusty:.9}").parse().unwrap_or(dusty)
}

const MAX_INTERVAL_NUMBER: f64 = 1e14;

/// Proposes rounding and intervals; `integer`: all numbers are whole.
pub(super) fn propose_intervals(extent: &NumberRange, integer: bool, name: &ColumnName) -> HierarchyProposal {
    let flat = |remark: &str| HierarchyProposal {
        ladder: ProposedHierarchy::Flat,
        round: None,
        remark: Some(remark.to_owned()),
    };
    let Some((low, high)) = extent.crowd else {
        return flat("too few people to determine its range: exact or suppressed");
    };
    if high - low <= 0.0 || (integer && high - low < 3.0) {
        return HierarchyProposal { remark: None, ..flat("") };
    }
    if low.abs() > MAX_INTERVAL_NUMBER || high.abs() > MAX_INTERVAL_NUMBER {
        return flat("too large for intervals: exact or suppressed");
    }
    let (p5, p50, p95) = (extent.quantile(0.05), extent.quantile(0.5), extent.quantile(0.95));
    let spread = if p95 > p5 { p95 - p5 } else { high - low };
    let wanted = round_step_below(spread / 50.0).max(1e-6);
    let finest = if integer { 1.0 } else { 1e-6 };
    let step = extent.resolution.unwrap_or(0.0).max(wanted).max(finest);
    let is_rounded = !integer || step > extent.resolution.unwrap_or(1.0).max(1.0);
    let round = is_rounded.then_some(ProposedRounding::Step(step));
    let (min, max) = domain_limits(low, high, step, integer, name);
    // A long tail gets equal frequencies, others equal widths.
    let tailed = p95 - p50 > 3.0 * (p50 - p5).max(0.0) && p95 > p50;
    let unequal = tailed.then(|| equal_frequencies(extent, min, max, step)).flatten();
    let ladder = unequal.unwrap_or_else(|| equal_widths(spread, min, max, step));
    let resolution = extent.resolution.map(|step| format!("measured in steps of {}", format_plain(step)));
    HierarchyProposal { ladder, round, remark: resolution }
}

/// A quarter of the range beyond the k-subject limits, for later values; the lower limit is zero if near.
fn domain_limits(low: f64, high: f64, step: f64, integer: bool, name: &ColumnName) -> (f64, f64) {
    if low >= 0.0 && high <= 1.0 && !integer {
        return (0.0, 1.0);
    }
    if low >= 0.0 && high <= 100.0 && (name.is_percent() && high > 2.0) {
        return (0.0, 100.0);
    }
    if name.is_age() && low >= 0.0 && high <= 100.0 {
        return (0.0, 110.0);
    }
    let span = high - low;
    let unit = round_step_below(span / 5.0).max(step);
    let below = ((low - span / 4.0) / unit).floor();
    // Long tails grow with more records.
    let beyond = if low >= 0.0 && low < high / 10.0 { high } else { span / 4.0 };
    let above = ((high + beyond) / unit).ceil();
    let starts_at_nothing = low >= 0.0 && (below < 0.0 || low < high / 2.0);
    let min = if starts_at_nothing { 0.0 } else { step_multiple(below, unit) };
    (min, step_multiple(above, unit).max(min + 2.0 * unit))
}

fn equal_widths(spread: f64, min: f64, max: f64, step: f64) -> ProposedHierarchy {
    let mut first = round_step_below(spread / 8.0);
    while first < 2.0 * step {
        first = round_step_below(first * 2.6);
    }
    let all: Vec<f64> = [1.0, 2.0, 4.0, 8.0].map(|times| step_multiple(times, first)).to_vec();
    let inside: Vec<f64> = all.iter().copied().filter(|width| *width < max - min).collect();
    if inside.is_empty() {
        ProposedHierarchy::Flat
    } else {
        ProposedHierarchy::Widths { min, max, origin: 0.0, widths: inside }
    }
}

/// Cut points of about equal frequency, with one digit, without a dominating number.
fn equal_frequencies(extent: &NumberRange, min: f64, max: f64, step: f64) -> Option<ProposedHierarchy> {
    let (commonest, most) = *extent.sorted.iter().max_by_key(|(_, cells)| *cells)?;
    let others: Vec<(f64, u64)> = if most * 10 > extent.cells * 3 {
        extent.sorted.iter().copied().filter(|(number, _)| *number != commonest).collect()
    } else {
        extent.sorted.clone()
    };
    let cells: u64 = others.iter().map(|(_, cells)| cells).sum();
    let mut cuts: Vec<f64> = Vec::new();
    for part in 1..16 {
        let at = quantile(&others, cells, f64::from(part) / 16.0);
        let unit = round_step_below(at.abs() / 4.0).max(step);
        let cut = step_multiple((at / unit).round(), unit);
        let far = cuts.last().is_none_or(|before| cut - before >= 2.0 * step - 1e-9);
        if cut > min && cut < max && far {
            cuts.push(cut);
        }
    }
    let mut levels = vec![cuts];
    while let Some(last) = levels.last().filter(|last| last.len() > 2 && levels.len() < 4) {
        // From the second, so that the middle remains longest.
        let coarser: Vec<f64> = last.iter().copied().skip(1).step_by(2).collect();
        levels.push(coarser);
    }
    (levels[0].len() >= 3).then_some(ProposedHierarchy::Bounds { min, max, levels })
}

/// Fewest digits, at most nine decimals.
pub(super) fn format_plain(number: f64) -> String {
    if number.fract() == 0.0 && number.abs() < 1e15 {
        return format!("{number:.0}");
    }
    let text = format!("{number:.9}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_steps_are_round() {
        assert_eq!([0.04, 0.05, 3.0, 9.9, 10.0, 4999.0].map(round_step_below), [0.02, 0.05, 2.0, 5.0, 10.0, 2000.0]);
        assert_eq!([0.1, 1e-6, 250.0, -3.5].map(format_plain), ["0.1", "0.000001", "250", "-3.5"]);
        let of = |numbers: &[f64]| finest_step(&numbers.iter().map(|n| (*n, 1)).collect::<Vec<_>>());
        assert_eq!(of(&[1.0, 2.0, 7.0]), Some(1.0));
        assert_eq!(of(&[0.5, 1.0, 2.5]), Some(0.5));
        assert_eq!(of(&[60_000.0, 120_000.0]), Some(20_000.0));
        assert_eq!(of(&[0.123_456_789_123]), None);
        assert_eq!(of(&[72.3, 71.1]), Some(0.1));
        assert_eq!(of(&[0.0, 1.0, 5.0]), Some(1.0), "small numbers are no part of a large step");
    }
}
