//! Rounding and intervals of numbers. No figure here is a value of anybody: each is rounded to one or two digits, and the
//! ends of the domain are set by the k-th person from either side.

use super::names::Name;
use super::people::{NOBODY, People};
use super::proposal::{Generalized, Ladder, Round};
use super::values::{Values, number_of};

/// What is known of a column of numbers.
pub(super) struct Extent {
    /// Numbers with their cells, ascending.
    sorted: Vec<(f64, u64)>,
    cells: u64,
    /// The largest number that at least k people reach from above, and the smallest from below: min, max.
    crowd: Option<(f64, f64)>,
    /// The finest round step that all numbers are multiples of; none where they have more than nine decimals.
    resolution: Option<f64>,
}

impl Extent {
    /// `told`: by text of `values`, the number that it says.
    pub fn of(values: &Values<'_>, told: &[Option<f64>], people: &People, k: u64) -> Self {
        let cells = values.texts.iter().map(|text| text.cells);
        let mut sorted: Vec<(f64, u64)> = told.iter().copied().zip(cells).filter_map(|(n, c)| Some((n?, c))).collect();
        sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
        let total = sorted.iter().map(|(_, cells)| cells).sum();
        let resolution = resolution(&sorted);
        Self { crowd: crowd(values, told, people, k), sorted, cells: total, resolution }
    }

    /// The number that a share `part` of the cells lies below.
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

/// The k-th smallest of the people's smallest numbers, and the k-th largest of their largest.
pub(super) fn crowd(values: &Values<'_>, told: &[Option<f64>], people: &People, k: u64) -> Option<(f64, f64)> {
    let mut of: Vec<Option<(f64, f64)>> = vec![None; people.count as usize];
    for (&code, &person) in values.column.codes.iter().zip(&people.of_row) {
        if let (Some(number), true) = (number_of(told, code), person != NOBODY) {
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

/// The largest 1, 2 or 5 times a power of ten that every number is a multiple of.
fn resolution(sorted: &[(f64, u64)]) -> Option<f64> {
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
    // Read as it is written: 0.1 and not three tenths of something.
    format!("{digit}e{power}").parse().unwrap_or(1.0)
}

/// The largest 1, 2 or 5 times a power of ten that is at most `size`.
pub(super) fn nice(size: f64) -> f64 {
    if !(size.is_finite() && size > 0.0) {
        return 1.0;
    }
    let power = size.log10().floor() as i32;
    let below = [5.0, 2.0, 1.0].map(|digit| power_of_ten(digit, power)).into_iter().find(|step| *step <= size);
    below.unwrap_or_else(|| power_of_ten(5.0, power - 1))
}

/// `number` in multiples of `step`, without the dust of division.
fn multiple(steps: f64, step: f64) -> f64 {
    let dusty = steps * step;
    format!("{dusty:.9}").parse().unwrap_or(dusty)
}

/// Beyond this a ruler has no ticks.
const MOST: f64 = 1e14;

/// Rounding and intervals. `integer`: every number is whole.
pub(super) fn ladder(extent: &Extent, integer: bool, name: &Name) -> Generalized {
    let flat = |remark: &str| Generalized { ladder: Ladder::Flat, round: None, remark: Some(remark.to_owned()) };
    let Some((low, high)) = extent.crowd else {
        return flat("too few people to see its extent: exact or not at all");
    };
    if high - low <= 0.0 || (integer && high - low < 3.0) {
        return Generalized { remark: None, ..flat("") };
    }
    if low.abs() > MOST || high.abs() > MOST {
        return flat("too large for intervals: exact or not at all");
    }
    let (p5, p50, p95) = (extent.quantile(0.05), extent.quantile(0.5), extent.quantile(0.95));
    let spread = if p95 > p5 { p95 - p5 } else { high - low };
    let wanted = nice(spread / 50.0).max(1e-6);
    let finest = if integer { 1.0 } else { 1e-6 };
    let step = extent.resolution.unwrap_or(0.0).max(wanted).max(finest);
    let is_rounded = !integer || step > extent.resolution.unwrap_or(1.0).max(1.0);
    let round = is_rounded.then_some(Round::Step(step));
    let (min, max) = domain(low, high, step, integer, name);
    // A long tail: intervals as frequent as each other. Else: intervals as wide as each other.
    let tailed = p95 - p50 > 3.0 * (p50 - p5).max(0.0) && p95 > p50;
    let unequal = tailed.then(|| bounds(extent, min, max, step)).flatten();
    let ladder = unequal.unwrap_or_else(|| widths(spread, min, max, step));
    let resolution = extent.resolution.map(|step| format!("measured in steps of {}", plain(step)));
    Generalized { ladder, round, remark: resolution }
}

/// The ends of the domain: a quarter of the extent beyond what a crowd has, so that tomorrow's values have a place, in
/// round numbers. Zero is an end where values stop short of it.
fn domain(low: f64, high: f64, step: f64, integer: bool, name: &Name) -> (f64, f64) {
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
    let unit = nice(span / 5.0).max(step);
    let below = ((low - span / 4.0) / unit).floor();
    // Long tails grow longer with the number of records.
    let beyond = if low >= 0.0 && low < high / 10.0 { high } else { span / 4.0 };
    let above = ((high + beyond) / unit).ceil();
    let starts_at_nothing = low >= 0.0 && (below < 0.0 || low < high / 2.0);
    let min = if starts_at_nothing { 0.0 } else { multiple(below, unit) };
    (min, multiple(above, unit).max(min + 2.0 * unit))
}

fn widths(spread: f64, min: f64, max: f64, step: f64) -> Ladder {
    let mut first = nice(spread / 8.0);
    while first < 2.0 * step {
        first = nice(first * 2.6);
    }
    let all: Vec<f64> = [1.0, 2.0, 4.0, 8.0].map(|times| multiple(times, first)).to_vec();
    let inside: Vec<f64> = all.iter().copied().filter(|width| *width < max - min).collect();
    if inside.is_empty() { Ladder::Flat } else { Ladder::Widths { min, max, origin: 0.0, widths: inside } }
}

/// Cut points of about equal frequency among what is not the commonest number, each rounded to one digit.
fn bounds(extent: &Extent, min: f64, max: f64, step: f64) -> Option<Ladder> {
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
        let unit = nice(at.abs() / 4.0).max(step);
        let cut = multiple((at / unit).round(), unit);
        let far = cuts.last().is_none_or(|before| cut - before >= 2.0 * step - 1e-9);
        if cut > min && cut < max && far {
            cuts.push(cut);
        }
    }
    let mut levels = vec![cuts];
    while let Some(last) = levels.last().filter(|last| last.len() > 2 && levels.len() < 4) {
        // Every second one, from the second on: the middle ones stay longest.
        let coarser: Vec<f64> = last.iter().copied().skip(1).step_by(2).collect();
        levels.push(coarser);
    }
    (levels[0].len() >= 3).then_some(Ladder::Bounds { min, max, levels })
}

/// A number with at most nine decimals, as few digits as it takes.
pub(super) fn plain(number: f64) -> String {
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
    fn steps_are_round() {
        assert_eq!([0.04, 0.05, 3.0, 9.9, 10.0, 4999.0].map(nice), [0.02, 0.05, 2.0, 5.0, 10.0, 2000.0]);
        assert_eq!([0.1, 1e-6, 250.0, -3.5].map(plain), ["0.1", "0.000001", "250", "-3.5"]);
        let of = |numbers: &[f64]| resolution(&numbers.iter().map(|n| (*n, 1)).collect::<Vec<_>>());
        assert_eq!(of(&[1.0, 2.0, 7.0]), Some(1.0));
        assert_eq!(of(&[0.5, 1.0, 2.5]), Some(0.5));
        assert_eq!(of(&[60_000.0, 120_000.0]), Some(20_000.0));
        assert_eq!(of(&[0.123_456_789_123]), None);
        assert_eq!(of(&[72.3, 71.1]), Some(0.1));
        assert_eq!(of(&[0.0, 1.0, 5.0]), Some(1.0), "small numbers are no part of a large step");
    }
}
