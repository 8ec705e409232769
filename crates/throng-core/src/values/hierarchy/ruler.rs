//! Nested intervals of numbers, by widths or by cut points.

use super::{HierarchyFlaw, ValueCover};
use crate::values::canonical::Rounding;
use crate::values::decimal::{MAX_DECIMALS, decimals_of, exact_ticks, floor_ticks, push_ticks};
use crate::values::json::quoted;

mod ranges;

pub use ranges::MAX_POSITIONS;

/// Partition of the domain in ticks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LevelCuts {
    /// Intervals of equal width.
    Width {
        /// Start of one interval.
        origin: i128,
        /// Width, above 0.
        width: i128,
    },
    /// Starts of intervals.
    Points(Vec<i128>),
}

/// Numeric intervals over a closed domain.
///
/// Texts are `30-34` for integers and `[30,35)` for floats. The last interval includes the maximum: `[95,100]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ruler {
    integer: bool,
    decimals: u32,
    min: i128,
    max: i128,
    /// Distance of canonical values, if fixed by rounding.
    step: Option<i128>,
    levels: Vec<LevelCuts>,
}

struct TickInterval {
    low: i128,
    /// Included if `closed`.
    high: i128,
    closed: bool,
}

impl Ruler {
    /// Creates intervals of widths, fine to coarse.
    ///
    /// # Errors
    /// Lists all mistakes, such as widths that do not nest.
    pub fn from_widths(
        integer: bool,
        rounding: Rounding,
        (min, max): (f64, f64),
        origin: f64,
        widths: &[f64],
    ) -> Result<Self, Vec<HierarchyFlaw>> {
        let mut numbers = vec![("min", min), ("max", max), ("origin", origin)];
        numbers.extend(widths.iter().map(|&w| ("widths", w)));
        let (mut ruler, ticks) = Self::domain(integer, rounding, &numbers)?;
        let mut flaws = Vec::new();
        if widths.is_empty() {
            flaws.push(HierarchyFlaw::new("widths", "no widths: list at least one"));
        }
        let mut before = 0;
        for (level, &width) in ticks[3..].iter().enumerate() {
            if width <= 0 {
                flaws.push(HierarchyFlaw::new("widths", format!("the width of level {} is not positive", level + 1)));
            } else if before > 0 && (width % before != 0 || width == before) {
                let message = format!(
                    "the width of level {} is not a multiple of the previous one: intervals must nest",
                    level + 1
                );
                flaws.push(HierarchyFlaw::new("widths", message));
            }
            before = width;
            ruler.levels.push(LevelCuts::Width { origin: ticks[2], width });
        }
        if flaws.is_empty() { Ok(ruler) } else { Err(flaws) }
    }

    /// Creates intervals between cut points, fine to coarse.
    ///
    /// # Errors
    /// Lists all mistakes, such as cut points that do not nest.
    pub fn from_bounds(
        integer: bool,
        rounding: Rounding,
        (min, max): (f64, f64),
        levels: &[Vec<f64>],
    ) -> Result<Self, Vec<HierarchyFlaw>> {
        let mut numbers = vec![("min", min), ("max", max)];
        numbers.extend(levels.iter().flatten().map(|&cut| ("levels", cut)));
        let (mut ruler, ticks) = Self::domain(integer, rounding, &numbers)?;
        let mut flaws = Vec::new();
        if levels.is_empty() {
            flaws.push(HierarchyFlaw::new("levels", "no levels: list the cut points of at least one"));
        }
        let mut rest = &ticks[2..];
        let mut finer: Option<Vec<i128>> = None;
        for (index, cuts) in levels.iter().enumerate() {
            let level = index + 1;
            let (cuts, after) = rest.split_at(cuts.len());
            rest = after;
            if cuts.is_empty() {
                flaws.push(HierarchyFlaw::new(
                    "levels",
                    format!("level {level} has no cut points, like the root: remove it"),
                ));
            }
            if cuts.windows(2).any(|pair| pair[0] >= pair[1]) {
                flaws.push(HierarchyFlaw::new(
                    "levels",
                    format!("the cut points of level {level} do not increase: sort them"),
                ));
            }
            let outside = |&cut: &i128| cut <= ruler.min || cut > ruler.max || (!integer && cut == ruler.max);
            if cuts.iter().any(outside) {
                flaws.push(HierarchyFlaw::new(
                    "levels",
                    format!("a cut point of level {level} is not inside min and max"),
                ));
            }
            if let Some(finer) = &finer {
                if cuts.iter().any(|cut| !finer.contains(cut)) {
                    let message =
                        format!("a cut point of level {level} is missing on level {}: levels must nest", level - 1);
                    flaws.push(HierarchyFlaw::new("levels", message));
                } else if cuts.len() == finer.len() {
                    flaws.push(HierarchyFlaw::new(
                        "levels",
                        format!("level {level} has the same cut points as level {}: remove one", level - 1),
                    ));
                }
            }
            finer = Some(cuts.to_vec());
            ruler.levels.push(LevelCuts::Points(cuts.to_vec()));
        }
        if flaws.is_empty() { Ok(ruler) } else { Err(flaws) }
    }

    fn domain(
        integer: bool,
        rounding: Rounding,
        numbers: &[(&str, f64)],
    ) -> Result<(Self, Vec<i128>), Vec<HierarchyFlaw>> {
        let mut flaws = Vec::new();
        let mut decimals = if let Rounding::Step { decimals, .. } = rounding { decimals } else { 0 };
        for &(key, number) in numbers {
            if !number.is_finite() || number.abs() > 1e15 {
                flaws.push(HierarchyFlaw::new(key, "not a number between -1e15 and 1e15"));
            } else if integer && number.fract() != 0.0 {
                flaws
                    .push(HierarchyFlaw::new(key, format!("{number} has a fraction, but the attribute is an integer")));
            } else if decimals_of(number) > MAX_DECIMALS {
                flaws.push(HierarchyFlaw::new(
                    key,
                    format!("{number} has more than {MAX_DECIMALS} decimals: shorten it"),
                ));
            }
            decimals = decimals.max(decimals_of(number));
        }
        if !flaws.is_empty() {
            return Err(flaws);
        }
        let ticks: Option<Vec<i128>> = numbers.iter().map(|&(_, number)| exact_ticks(number, decimals)).collect();
        let Some(ticks) = ticks else {
            return Err(vec![HierarchyFlaw::new("min", "the numbers do not fit: use fewer digits")]);
        };
        if ticks[0] >= ticks[1] {
            return Err(vec![HierarchyFlaw::new("max", "max is not above min: the domain is empty")]);
        }
        let step = match rounding {
            Rounding::Step { ticks, decimals: d } => Some(i128::from(ticks) * 10_i128.pow(decimals - d)),
            _ => integer.then_some(1),
        };
        Ok((Self { integer, decimals, min: ticks[0], max: ticks[1], step, levels: Vec::new() }, ticks))
    }

    /// Returns minimum and maximum.
    pub fn domain_bounds(&self) -> (f64, f64) {
        let scale = 10f64.powi(i32::try_from(self.decimals).expect("few decimals"));
        (self.min as f64 / scale, self.max as f64 / scale)
    }

    /// Returns the partitions of the domain, fine to coarse.
    pub fn cuts(&self) -> &[LevelCuts] {
        &self.levels
    }

    /// Returns minimum and maximum in ticks, and the decimals.
    pub fn domain_in_ticks(&self) -> ((i128, i128), u32) {
        ((self.min, self.max), self.decimals)
    }

    /// Checks for intervals of integers.
    pub fn is_integer(&self) -> bool {
        self.integer
    }

    /// Returns start in ticks and label of the interval of `number`; level 0 is the finest.
    pub fn labelled_interval(&self, level: usize, number: f64) -> Option<(i128, String)> {
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

    pub(super) fn inner_levels(&self) -> usize {
        self.levels.len()
    }

    pub(super) fn label(&self, index: usize) -> String {
        match &self.levels[index] {
            LevelCuts::Width { width, .. } => {
                let mut label = String::new();
                push_ticks(&mut label, *width, self.decimals);
                label + "-wide intervals"
            }
            LevelCuts::Points(points) => format!("{} intervals", points.len() + 1),
        }
    }

    pub(super) fn covers(&self, canonical: &str) -> Option<Vec<ValueCover>> {
        let floor = floor_ticks(canonical, self.decimals)?;
        if floor.ticks < self.min || floor.ticks > self.max || (floor.ticks == self.max && !floor.exact) {
            return None;
        }
        Some(self.levels.iter().map(|cuts| self.cover(&self.interval(cuts, floor.ticks))).collect())
    }

    pub(super) fn examples(&self) -> Vec<Vec<ValueCover>> {
        const POINTS: i128 = 64;
        let span = self.max - self.min;
        let at = |i: i128| self.min + span * i / (POINTS - 1);
        (0..POINTS).map(|i| self.levels.iter().map(|cuts| self.cover(&self.interval(cuts, at(i)))).collect()).collect()
    }

    fn interval(&self, cuts: &LevelCuts, at: i128) -> TickInterval {
        let (low, high) = match cuts {
            &LevelCuts::Width { origin, width } => {
                let mut low = at - (at - origin).rem_euclid(width);
                if low == self.max {
                    low -= width;
                }
                (low.max(self.min), low + width)
            }
            LevelCuts::Points(points) => {
                let above = points.partition_point(|&cut| cut <= at);
                let low = above.checked_sub(1).map_or(self.min, |below| points[below]);
                // Includes the maximum.
                (low, points.get(above).copied().unwrap_or(self.max + 1))
            }
        };
        let last = high >= self.max && !(matches!(cuts, LevelCuts::Points(_)) && high == self.max);
        if last {
            TickInterval { low, high: self.max, closed: true }
        } else {
            TickInterval { low, high: high - i128::from(self.integer), closed: self.integer }
        }
    }

    fn cover(&self, interval: &TickInterval) -> ValueCover {
        let TickInterval { low, high, closed } = *interval;
        if let Some(step) = self.step {
            let last = if closed { high } else { high - 1 };
            if last.div_euclid(step) - (low - 1).div_euclid(step) <= 1 {
                return ValueCover::Value;
            }
        }
        let text = self.text(interval);
        // For integers: (n−1)/(N−1).
        let loss = (high - low) as f64 / (self.max - self.min) as f64;
        ValueCover::Set { text: quoted(&text), set: format!("interval {text}"), loss: Some(loss) }
    }

    fn text(&self, interval: &TickInterval) -> String {
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

    pub(super) fn rulers() -> [Ruler; 4] {
        let widths = |integer, rounding, range, widths: &[f64]| {
            Ruler::from_widths(integer, rounding, range, 0.0, widths).unwrap()
        };
        let levels = [vec![18.0, 30.0, 50.0, 70.0], vec![50.0]];
        [
            widths(true, Rounding::None, (-10.0, 100.0), &[5.0, 10.0]),
            widths(false, Rounding::None, (0.0, 1.0), &[0.1, 0.2]),
            Ruler::from_bounds(true, Rounding::None, (0.0, 120.0), &levels).unwrap(),
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
    fn integer_widths_include_both_ends() {
        let ruler = Ruler::from_widths(true, Rounding::None, (1.0, 100.0), 1.0, &[5.0, 10.0, 20.0]).unwrap();
        assert_eq!(texts(&ruler, "37"), ["36-40", "31-40", "21-40"]);
        assert_eq!(texts(&ruler, "100"), ["96-100", "91-100", "81-100"]);
        assert!(ruler.covers("0").is_none() && ruler.covers("101").is_none());
        let Some(ValueCover::Set { loss, .. }) = ruler.covers("37").unwrap().first().cloned() else { panic!("a set") };
        assert_eq!(loss, Some(4.0 / 99.0));
        let ruler = Ruler::from_widths(true, Rounding::None, (-10.0, 100.0), 0.0, &[5.0, 10.0]).unwrap();
        assert_eq!(texts(&ruler, "100"), ["95-100", "90-100"]);
        assert_eq!(texts(&ruler, "-7"), ["-10--6", "-10--1"]);
    }

    #[test]
    fn float_widths_have_exact_decimal_bounds() {
        let ruler = Ruler::from_widths(false, Rounding::None, (0.0, 1.0), 0.0, &[0.1, 0.2]).unwrap();
        assert_eq!(texts(&ruler, "0.3"), ["[0.3,0.4)", "[0.2,0.4)"]);
        assert_eq!(texts(&ruler, "0.29999999999999998"), ["[0.2,0.3)", "[0.2,0.4)"]);
        assert_eq!(texts(&ruler, "1"), ["[0.9,1]", "[0.8,1]"]);
        assert!(ruler.covers("1.0000001").is_none() && ruler.covers("-0.0000001").is_none());
    }

    #[test]
    fn interval_with_one_value_is_exact() {
        let ruler = Ruler::from_widths(true, Rounding::step(5.0).unwrap(), (0.0, 100.0), 0.0, &[5.0, 10.0]).unwrap();
        assert_eq!(texts(&ruler, "15"), ["VALUE", "10-19"]);
        assert_eq!(texts(&ruler, "95"), ["95-100", "90-100"]);
        let ruler = Ruler::from_widths(false, Rounding::step(0.5).unwrap(), (0.0, 10.0), 0.0, &[0.5, 1.0]).unwrap();
        assert_eq!(texts(&ruler, "3.5"), ["VALUE", "[3,4)"]);
    }

    #[test]
    fn cut_points_give_nested_intervals() {
        let levels = [vec![18.0, 30.0, 50.0, 70.0], vec![50.0]];
        let ruler = Ruler::from_bounds(true, Rounding::None, (0.0, 120.0), &levels).unwrap();
        assert_eq!(texts(&ruler, "17"), ["0-17", "0-49"]);
        assert_eq!(texts(&ruler, "30"), ["30-49", "0-49"]);
        assert_eq!(texts(&ruler, "120"), ["70-120", "50-120"]);
        let ruler = Ruler::from_bounds(false, Rounding::None, (0.0, 40.0), &[vec![18.5, 25.0], vec![25.0]]).unwrap();
        assert_eq!(texts(&ruler, "18.5"), ["[18.5,25)", "[0,25)"]);
        assert_eq!(texts(&ruler, "40"), ["[25,40]", "[25,40]"]);
        let ruler = Ruler::from_bounds(true, Rounding::None, (0.0, 2.0), &[vec![1.0, 2.0]]).unwrap();
        assert_eq!(texts(&ruler, "1"), ["VALUE"]);
        assert_eq!(texts(&ruler, "2"), ["VALUE"]);
    }

    #[test]
    fn numbers_between_canonical_values_have_an_interval() {
        let label = |ruler: &Ruler, level, number| ruler.labelled_interval(level, number).map(|(_, label)| label);
        let ruler = Ruler::from_widths(true, Rounding::None, (-10.0, 100.0), 0.0, &[5.0, 10.0]).unwrap();
        for (number, fine, coarse) in
            [(4.999, "0-4", "0-9"), (5.0, "5-9", "0-9"), (-0.25, "-5--1", "-10--1"), (100.0, "95-100", "90-100")]
        {
            assert_eq!(label(&ruler, 0, number).as_deref(), Some(fine));
            assert_eq!(label(&ruler, 1, number).as_deref(), Some(coarse));
        }
        assert_eq!((label(&ruler, 0, 100.5), label(&ruler, 0, -10.5), label(&ruler, 2, 5.0)), (None, None, None));
        let ruler = Ruler::from_bounds(true, Rounding::None, (0.0, 2.0), &[vec![1.0, 2.0]]).unwrap();
        assert_eq!(label(&ruler, 0, 1.5).as_deref(), Some("1"));
        let ruler = Ruler::from_bounds(false, Rounding::None, (0.0, 1.0), &[vec![0.3]]).unwrap();
        assert_eq!(label(&ruler, 0, 0.3).as_deref(), Some("[0.3,1]"));
        assert_eq!(label(&ruler, 0, 0.1 + 0.2).as_deref(), Some("[0.3,1]"));
        assert_eq!(label(&ruler, 0, 0.299_999_999_999_999_9).as_deref(), Some("[0,0.3)"));
    }

    #[test]
    fn interval_mistakes_name_the_level() {
        let flaw = |levels: &[Vec<f64>]| {
            Ruler::from_bounds(true, Rounding::None, (0.0, 120.0), levels).unwrap_err()[0].message.clone()
        };
        assert!(flaw(&[vec![18.0], vec![50.0]]).contains("level 2"));
        assert!(flaw(&[vec![50.0, 18.0]]).contains("do not increase"));
        assert!(flaw(&[vec![0.0]]).contains("not inside"));
        let flaw = |widths: &[f64]| {
            Ruler::from_widths(true, Rounding::None, (0.0, 120.0), 0.0, widths).unwrap_err()[0].message.clone()
        };
        assert!(flaw(&[5.0, 12.0]).contains("level 2"));
        assert!(flaw(&[0.0]).contains("not positive"));
        assert!(flaw(&[2.5]).contains("fraction"));
        assert!(Ruler::from_widths(false, Rounding::None, (5.0, 5.0), 0.0, &[1.0]).is_err());
        assert!(Ruler::from_widths(false, Rounding::None, (0.0, f64::NAN), 0.0, &[1.0]).is_err());
    }
}
