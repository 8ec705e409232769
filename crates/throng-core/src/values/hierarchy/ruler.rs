//! Intervals of numbers, by widths or by cut points, nested level by level.

use super::{Cover, Flaw};
use crate::values::canonical::Rounding;
use crate::values::decimal::{MAX_DECIMALS, decimals_of, exact_ticks, floor_ticks, push_ticks};
use crate::values::json::quoted;

mod ranges;

pub use ranges::MAX_POSITIONS;

/// How one level cuts the domain, in ticks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cuts {
    /// Intervals of one width, one of which starts at the origin.
    Width {
        /// Where one of them starts.
        origin: i128,
        /// The width of each, above 0.
        width: i128,
    },
    /// Each cut point starts an interval.
    Points(Vec<i128>),
}

/// Numeric intervals over a closed domain, in decimal ticks.
///
/// Integers print `30-34`, both ends included; floats `[30,35)`, and the last interval `[95,100]`. A maximum that
/// would start an interval of its own (100 with width 5 from 0) belongs to the last one instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ruler {
    integer: bool,
    decimals: u32,
    min: i128,
    max: i128,
    /// Distance of neighbouring canonical values, where rounding fixes it.
    step: Option<i128>,
    levels: Vec<Cuts>,
}

struct Interval {
    low: i128,
    /// Included for integers and for the last interval.
    high: i128,
    closed: bool,
}

impl Ruler {
    /// Intervals of the given widths, fine to coarse.
    ///
    /// # Errors
    /// Every flaw: an empty domain, more than nine decimals, fractions for an integer attribute, a width that is not a
    /// multiple of the one before.
    pub fn of_widths(
        integer: bool,
        rounding: Rounding,
        (min, max): (f64, f64),
        origin: f64,
        widths: &[f64],
    ) -> Result<Self, Vec<Flaw>> {
        let mut numbers = vec![("min", min), ("max", max), ("origin", origin)];
        numbers.extend(widths.iter().map(|&w| ("widths", w)));
        let (mut ruler, ticks) = Self::domain(integer, rounding, &numbers)?;
        let mut flaws = Vec::new();
        if widths.is_empty() {
            flaws.push(Flaw::new("widths", "no widths: list at least one"));
        }
        let mut before = 0;
        for (level, &width) in ticks[3..].iter().enumerate() {
            if width <= 0 {
                flaws.push(Flaw::new("widths", format!("the width of level {} is not positive", level + 1)));
            } else if before > 0 && (width % before != 0 || width == before) {
                let message =
                    format!("the width of level {} is no multiple of the one before: intervals must nest", level + 1);
                flaws.push(Flaw::new("widths", message));
            }
            before = width;
            ruler.levels.push(Cuts::Width { origin: ticks[2], width });
        }
        if flaws.is_empty() { Ok(ruler) } else { Err(flaws) }
    }

    /// Intervals between the given cut points, a list a level, fine to coarse.
    ///
    /// # Errors
    /// Every flaw: as for widths; cut points out of order or outside the domain; a coarser list that is not contained
    /// in the finer one.
    pub fn of_bounds(
        integer: bool,
        rounding: Rounding,
        (min, max): (f64, f64),
        levels: &[Vec<f64>],
    ) -> Result<Self, Vec<Flaw>> {
        let mut numbers = vec![("min", min), ("max", max)];
        numbers.extend(levels.iter().flatten().map(|&cut| ("levels", cut)));
        let (mut ruler, ticks) = Self::domain(integer, rounding, &numbers)?;
        let mut flaws = Vec::new();
        if levels.is_empty() {
            flaws.push(Flaw::new("levels", "no levels: list the cut points of at least one"));
        }
        let mut rest = &ticks[2..];
        let mut finer: Option<Vec<i128>> = None;
        for (index, cuts) in levels.iter().enumerate() {
            let level = index + 1;
            let (cuts, after) = rest.split_at(cuts.len());
            rest = after;
            if cuts.is_empty() {
                flaws.push(Flaw::new(
                    "levels",
                    format!("level {level} has no cut points: the root covers it, remove it"),
                ));
            }
            if cuts.windows(2).any(|pair| pair[0] >= pair[1]) {
                flaws.push(Flaw::new("levels", format!("the cut points of level {level} do not rise: sort them")));
            }
            let outside = |&cut: &i128| cut <= ruler.min || cut > ruler.max || (!integer && cut == ruler.max);
            if cuts.iter().any(outside) {
                flaws.push(Flaw::new("levels", format!("a cut point of level {level} is not inside min and max")));
            }
            if let Some(finer) = &finer {
                if cuts.iter().any(|cut| !finer.contains(cut)) {
                    let message =
                        format!("a cut point of level {level} is missing on level {}: levels must nest", level - 1);
                    flaws.push(Flaw::new("levels", message));
                } else if cuts.len() == finer.len() {
                    flaws.push(Flaw::new("levels", format!("level {level} cuts like level {}: remove one", level - 1)));
                }
            }
            finer = Some(cuts.to_vec());
            ruler.levels.push(Cuts::Points(cuts.to_vec()));
        }
        if flaws.is_empty() { Ok(ruler) } else { Err(flaws) }
    }

    /// The ruler without levels, and `numbers` (min and max first) in its ticks.
    fn domain(integer: bool, rounding: Rounding, numbers: &[(&str, f64)]) -> Result<(Self, Vec<i128>), Vec<Flaw>> {
        let mut flaws = Vec::new();
        let mut decimals = if let Rounding::Step { decimals, .. } = rounding { decimals } else { 0 };
        for &(key, number) in numbers {
            if !number.is_finite() || number.abs() > 1e15 {
                flaws.push(Flaw::new(key, "not a number between -1e15 and 1e15"));
            } else if integer && number.fract() != 0.0 {
                flaws.push(Flaw::new(key, format!("{number} has a fraction, but the attribute is an integer")));
            } else if decimals_of(number) > MAX_DECIMALS {
                flaws.push(Flaw::new(key, format!("{number} has more than {MAX_DECIMALS} decimals: shorten it")));
            }
            decimals = decimals.max(decimals_of(number));
        }
        if !flaws.is_empty() {
            return Err(flaws);
        }
        let ticks: Option<Vec<i128>> = numbers.iter().map(|&(_, number)| exact_ticks(number, decimals)).collect();
        let Some(ticks) = ticks else {
            return Err(vec![Flaw::new("min", "the numbers do not fit: use fewer digits")]);
        };
        if ticks[0] >= ticks[1] {
            return Err(vec![Flaw::new("max", "max is not above min: the domain is empty")]);
        }
        let step = match rounding {
            Rounding::Step { ticks, decimals: d } => Some(i128::from(ticks) * 10_i128.pow(decimals - d)),
            _ => integer.then_some(1),
        };
        Ok((Self { integer, decimals, min: ticks[0], max: ticks[1], step, levels: Vec::new() }, ticks))
    }

    /// The lowest and the highest value of the domain.
    pub fn range(&self) -> (f64, f64) {
        let scale = 10f64.powi(i32::try_from(self.decimals).expect("few decimals"));
        (self.min as f64 / scale, self.max as f64 / scale)
    }

    /// How the levels cut the domain, fine to coarse.
    pub fn cuts(&self) -> &[Cuts] {
        &self.levels
    }

    /// Lowest and highest value in ticks, and the digits after the point that a tick has.
    pub fn domain_in_ticks(&self) -> ((i128, i128), u32) {
        ((self.min, self.max), self.decimals)
    }

    /// Whether intervals are of whole numbers, with both ends included in their labels.
    pub fn is_integer(&self) -> bool {
        self.integer
    }

    /// Start in ticks and label of the interval of a level, 0 the finest, that holds a number; none outside of the domain. An interval
    /// of whole numbers `30-34` holds all numbers from 30 up to 35, without 35.
    pub fn interval_of(&self, level: usize, number: f64) -> Option<(i128, String)> {
        let floor = floor_ticks(&format!("{number}"), self.decimals)?;
        if floor.ticks < self.min || floor.ticks > self.max || (floor.ticks == self.max && !floor.exact) {
            return None;
        }
        let interval = self.interval(self.levels.get(level)?, floor.ticks);
        let label = if self.integer && interval.low == interval.high {
            let mut label = String::new();
            push_ticks(&mut label, interval.low, self.decimals);
            label
        } else {
            self.text(&interval)
        };
        Some((interval.low, label))
    }

    pub(super) fn between(&self) -> usize {
        self.levels.len()
    }

    pub(super) fn label(&self, index: usize) -> String {
        match &self.levels[index] {
            Cuts::Width { width, .. } => {
                let mut label = String::new();
                push_ticks(&mut label, *width, self.decimals);
                label + "-wide intervals"
            }
            Cuts::Points(points) => format!("{} intervals", points.len() + 1),
        }
    }

    pub(super) fn covers(&self, canonical: &str) -> Option<Vec<Cover>> {
        let floor = floor_ticks(canonical, self.decimals)?;
        if floor.ticks < self.min || floor.ticks > self.max || (floor.ticks == self.max && !floor.exact) {
            return None;
        }
        Some(self.levels.iter().map(|cuts| self.cover(&self.interval(cuts, floor.ticks))).collect())
    }

    /// What values spread evenly over the domain become.
    pub(super) fn examples(&self) -> Vec<Vec<Cover>> {
        const POINTS: i128 = 64;
        let span = self.max - self.min;
        let at = |i: i128| self.min + span * i / (POINTS - 1);
        (0..POINTS).map(|i| self.levels.iter().map(|cuts| self.cover(&self.interval(cuts, at(i)))).collect()).collect()
    }

    fn interval(&self, cuts: &Cuts, at: i128) -> Interval {
        let (low, high) = match cuts {
            &Cuts::Width { origin, width } => {
                let mut low = at - (at - origin).rem_euclid(width);
                if low == self.max {
                    low -= width;
                }
                (low.max(self.min), low + width)
            }
            Cuts::Points(points) => {
                let above = points.partition_point(|&cut| cut <= at);
                let low = above.checked_sub(1).map_or(self.min, |below| points[below]);
                // Past the last point lies the maximum, included.
                (low, points.get(above).copied().unwrap_or(self.max + 1))
            }
        };
        let last = high >= self.max && !(matches!(cuts, Cuts::Points(_)) && high == self.max);
        if last {
            Interval { low, high: self.max, closed: true }
        } else {
            Interval { low, high: high - i128::from(self.integer), closed: self.integer }
        }
    }

    fn cover(&self, interval: &Interval) -> Cover {
        let Interval { low, high, closed } = *interval;
        if let Some(step) = self.step {
            let last = if closed { high } else { high - 1 };
            if last.div_euclid(step) - (low - 1).div_euclid(step) <= 1 {
                return Cover::Value;
            }
        }
        let text = self.text(interval);
        // For integers both are one less than the number of values: (n−1)/(N−1).
        let loss = (high - low) as f64 / (self.max - self.min) as f64;
        Cover::Set { text: quoted(&text), set: format!("interval {text}"), loss: Some(loss) }
    }

    fn text(&self, interval: &Interval) -> String {
        let (mut from, mut to) = (String::new(), String::new());
        push_ticks(&mut from, interval.low, self.decimals);
        push_ticks(&mut to, interval.high, self.decimals);
        if self.integer {
            format!("{from}-{to}")
        } else {
            format!("[{from},{to}{}", if interval.closed { ']' } else { ')' })
        }
    }
}

#[cfg(test)]
mod tests_of_ranges {
    use super::*;

    /// Integers and floats by widths, integers by bounds, and steps wider than one.
    pub(super) fn rulers() -> [Ruler; 4] {
        let widths =
            |integer, rounding, range, widths: &[f64]| Ruler::of_widths(integer, rounding, range, 0.0, widths).unwrap();
        let levels = [vec![18.0, 30.0, 50.0, 70.0], vec![50.0]];
        [
            widths(true, Rounding::None, (-10.0, 100.0), &[5.0, 10.0]),
            widths(false, Rounding::None, (0.0, 1.0), &[0.1, 0.2]),
            Ruler::of_bounds(true, Rounding::None, (0.0, 120.0), &levels).unwrap(),
            widths(true, Rounding::step(5.0).unwrap(), (0.0, 100.0), &[10.0, 20.0]),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(ruler: &Ruler, value: &str) -> Vec<String> {
        super::super::texts(ruler.covers(value))
    }

    #[test]
    fn widths_of_integers() {
        let ruler = Ruler::of_widths(true, Rounding::None, (1.0, 100.0), 1.0, &[5.0, 10.0, 20.0]).unwrap();
        assert_eq!(texts(&ruler, "37"), ["36-40", "31-40", "21-40"]);
        assert_eq!(texts(&ruler, "100"), ["96-100", "91-100", "81-100"]);
        assert!(ruler.covers("0").is_none() && ruler.covers("101").is_none());
        let Some(Cover::Set { loss, .. }) = ruler.covers("37").unwrap().first().cloned() else { panic!("a set") };
        assert_eq!(loss, Some(4.0 / 99.0));
        let ruler = Ruler::of_widths(true, Rounding::None, (-10.0, 100.0), 0.0, &[5.0, 10.0]).unwrap();
        assert_eq!(texts(&ruler, "100"), ["95-100", "90-100"]);
        assert_eq!(texts(&ruler, "-7"), ["-10--6", "-10--1"]);
    }

    #[test]
    fn widths_of_floats_stay_where_they_are_written() {
        let ruler = Ruler::of_widths(false, Rounding::None, (0.0, 1.0), 0.0, &[0.1, 0.2]).unwrap();
        assert_eq!(texts(&ruler, "0.3"), ["[0.3,0.4)", "[0.2,0.4)"]);
        assert_eq!(texts(&ruler, "0.29999999999999998"), ["[0.2,0.3)", "[0.2,0.4)"]);
        assert_eq!(texts(&ruler, "1"), ["[0.9,1]", "[0.8,1]"]);
        assert!(ruler.covers("1.0000001").is_none() && ruler.covers("-0.0000001").is_none());
    }

    #[test]
    fn an_interval_of_one_value_is_the_value() {
        let ruler = Ruler::of_widths(true, Rounding::step(5.0).unwrap(), (0.0, 100.0), 0.0, &[5.0, 10.0]).unwrap();
        assert_eq!(texts(&ruler, "15"), ["VALUE", "10-19"]);
        // The last interval takes in the maximum: 95 and 100.
        assert_eq!(texts(&ruler, "95"), ["95-100", "90-100"]);
        let ruler = Ruler::of_widths(false, Rounding::step(0.5).unwrap(), (0.0, 10.0), 0.0, &[0.5, 1.0]).unwrap();
        assert_eq!(texts(&ruler, "3.5"), ["VALUE", "[3,4)"]);
    }

    #[test]
    fn bounds() {
        let levels = [vec![18.0, 30.0, 50.0, 70.0], vec![50.0]];
        let ruler = Ruler::of_bounds(true, Rounding::None, (0.0, 120.0), &levels).unwrap();
        assert_eq!(texts(&ruler, "17"), ["0-17", "0-49"]);
        assert_eq!(texts(&ruler, "30"), ["30-49", "0-49"]);
        assert_eq!(texts(&ruler, "120"), ["70-120", "50-120"]);
        let ruler = Ruler::of_bounds(false, Rounding::None, (0.0, 40.0), &[vec![18.5, 25.0], vec![25.0]]).unwrap();
        assert_eq!(texts(&ruler, "18.5"), ["[18.5,25)", "[0,25)"]);
        assert_eq!(texts(&ruler, "40"), ["[25,40]", "[25,40]"]);
        let ruler = Ruler::of_bounds(true, Rounding::None, (0.0, 2.0), &[vec![1.0, 2.0]]).unwrap();
        assert_eq!(texts(&ruler, "1"), ["VALUE"]);
        assert_eq!(texts(&ruler, "2"), ["VALUE"]);
    }

    #[test]
    fn intervals_of_numbers_between_canonical_values() {
        let label = |ruler: &Ruler, level, number| ruler.interval_of(level, number).map(|(_, label)| label);
        let ruler = Ruler::of_widths(true, Rounding::None, (-10.0, 100.0), 0.0, &[5.0, 10.0]).unwrap();
        for (number, fine, coarse) in
            [(4.999, "0-4", "0-9"), (5.0, "5-9", "0-9"), (-0.25, "-5--1", "-10--1"), (100.0, "95-100", "90-100")]
        {
            assert_eq!(label(&ruler, 0, number).as_deref(), Some(fine));
            assert_eq!(label(&ruler, 1, number).as_deref(), Some(coarse));
        }
        assert_eq!((label(&ruler, 0, 100.5), label(&ruler, 0, -10.5), label(&ruler, 2, 5.0)), (None, None, None));
        let ruler = Ruler::of_bounds(true, Rounding::None, (0.0, 2.0), &[vec![1.0, 2.0]]).unwrap();
        assert_eq!(label(&ruler, 0, 1.5).as_deref(), Some("1"));
        let ruler = Ruler::of_bounds(false, Rounding::None, (0.0, 1.0), &[vec![0.3]]).unwrap();
        assert_eq!(label(&ruler, 0, 0.3).as_deref(), Some("[0.3,1]"));
        assert_eq!(label(&ruler, 0, 0.1 + 0.2).as_deref(), Some("[0.3,1]"));
        assert_eq!(label(&ruler, 0, 0.299_999_999_999_999_9).as_deref(), Some("[0,0.3)"));
    }

    #[test]
    fn flaws_name_the_level() {
        let flaw = |levels: &[Vec<f64>]| {
            Ruler::of_bounds(true, Rounding::None, (0.0, 120.0), levels).unwrap_err()[0].message.clone()
        };
        assert!(flaw(&[vec![18.0], vec![50.0]]).contains("level 2"));
        assert!(flaw(&[vec![50.0, 18.0]]).contains("do not rise"));
        assert!(flaw(&[vec![0.0]]).contains("not inside"));
        let flaw = |widths: &[f64]| {
            Ruler::of_widths(true, Rounding::None, (0.0, 120.0), 0.0, widths).unwrap_err()[0].message.clone()
        };
        assert!(flaw(&[5.0, 12.0]).contains("level 2"));
        assert!(flaw(&[0.0]).contains("not positive"));
        assert!(flaw(&[2.5]).contains("fraction"));
        assert!(Ruler::of_widths(false, Rounding::None, (5.0, 5.0), 0.0, &[1.0]).is_err());
        assert!(Ruler::of_widths(false, Rounding::None, (0.0, f64::NAN), 0.0, &[1.0]).is_err());
    }
}
