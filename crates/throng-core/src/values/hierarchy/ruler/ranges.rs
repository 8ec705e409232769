//! Ranges of neighbouring intervals of the finest level: the cells of the treatment `ranges` (docs/methods.md §10.7).

use super::{Cuts, Interval, Ruler};
use crate::values::decimal::{exact, floor_ticks};
use crate::values::hierarchy::Cover;
use crate::values::json::unquoted;

/// Intervals that positions have room for: two of them fit a [cell](crate::values::cells::CellId).
pub const MAX_POSITIONS: i128 = (1 << 15) - 1;

impl Ruler {
    /// The finest level whose intervals have positions; none where every level has too many.
    fn grid(&self) -> Option<&Cuts> {
        self.levels.iter().find(|cuts| match cuts {
            Cuts::Width { width, .. } => (self.max - self.min) / width + 2 <= MAX_POSITIONS,
            Cuts::Points(points) => (points.len() as i128) < MAX_POSITIONS,
        })
    }

    /// The position of a value's interval among those of the grid, from 0; none outside the domain.
    pub fn position(&self, canonical: &str) -> Option<u32> {
        let floor = floor_ticks(canonical, self.decimals)?;
        if floor.ticks < self.min || floor.ticks > self.max || (floor.ticks == self.max && !floor.exact) {
            return None;
        }
        self.position_at(floor.ticks)
    }

    fn position_at(&self, ticks: i128) -> Option<u32> {
        let position = match self.grid()? {
            &Cuts::Width { origin, width } => {
                let of = |at: i128| (at - origin).div_euclid(width);
                // A maximum that would start an interval of its own belongs to the one before.
                let own = ticks == self.max && (ticks - origin).rem_euclid(width) == 0;
                of(ticks) - i128::from(own) - of(self.min)
            }
            Cuts::Points(points) => points.partition_point(|&cut| cut <= ticks) as i128,
        };
        u32::try_from(position).ok()
    }

    /// The interval at a position of the grid; none beyond the domain.
    fn interval_at(&self, position: u32) -> Option<Interval> {
        let cuts = self.grid()?;
        let at = match cuts {
            &Cuts::Width { origin, width } => {
                let first = (self.min - origin).div_euclid(width);
                (origin + (first + i128::from(position)) * width).max(self.min)
            }
            Cuts::Points(points) => {
                let below = (position as usize).checked_sub(1);
                below.map_or(Some(self.min), |below| points.get(below).copied())?
            }
        };
        (at <= self.max && self.position_at(at) == Some(position)).then(|| self.interval(cuts, at))
    }

    /// The bounds of the interval at a position, as shares of the domain from 0 to 1: the Loss of a range is the difference between its
    /// outer bounds.
    pub fn shares(&self, position: u32) -> Option<(f64, f64)> {
        let interval = self.interval_at(position)?;
        let share = |ticks: i128| (ticks - self.min) as f64 / (self.max - self.min) as f64;
        Some((share(interval.low), share(interval.high)))
    }

    /// The cell that covers the intervals from `low` to `high`, both included.
    pub fn range_between(&self, low: u32, high: u32) -> Option<Cover> {
        let (first, last) = (self.interval_at(low)?, self.interval_at(high)?);
        Some(self.cover(&Interval { low: first.low, high: last.high, closed: last.closed }))
    }

    /// The positions that a text covers which [`range_between`](Self::range_between) prints; none for any other text.
    pub fn positions_of(&self, text: &str) -> Option<(u32, u32)> {
        let inner = unquoted(text)?;
        let bounds = inner.strip_prefix('[').and_then(|rest| rest.strip_suffix([')', ']']));
        let (low, high) = match bounds {
            Some(bounds) => bounds.split_once(',')?,
            // A sign may stand before either bound.
            None => inner.get(1..)?.find('-').map(|at| (&inner[..=at], &inner[at + 2..]))?,
        };
        let low = self.position_at(exact(low, self.decimals)?)?;
        let end = exact(high, self.decimals)?;
        let open = !self.integer && inner.ends_with(')');
        let high = self.position_at(if open { end - 1 } else { end })?;
        let printed = |cover| matches!(cover, Cover::Set { text: printed, .. } if printed == text);
        self.range_between(low, high).is_some_and(printed).then_some((low, high))
    }
}

/// Bounds, for verification: from the definition of the levels, and apart from what prints intervals.
impl Ruler {
    /// Whether a number is the lower bound of an interval of some level, or of the domain.
    pub fn starts_interval(&self, number: &str) -> bool {
        exact(number, self.decimals).is_some_and(|ticks| self.starts_at(ticks))
    }

    /// Whether a number is the upper bound, included, of the domain, or (of integers) of an interval of some level.
    pub fn ends_domain_or_interval(&self, number: &str) -> bool {
        let ends = |ticks: i128| ticks == self.max || self.integer && self.starts_at(ticks + 1);
        exact(number, self.decimals).is_some_and(ends)
    }

    fn starts_at(&self, ticks: i128) -> bool {
        let cut = |cuts: &Cuts| match cuts {
            Cuts::Width { origin, width } => (ticks - origin) % width == 0,
            Cuts::Points(points) => points.contains(&ticks),
        };
        ticks == self.min || (self.min..=self.max).contains(&ticks) && self.levels.iter().any(cut)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests_of_ranges::rulers;
    use super::*;
    use proptest::prelude::*;

    fn text(ruler: &Ruler, low: u32, high: u32) -> Option<String> {
        match ruler.range_between(low, high)? {
            Cover::Set { text, .. } => Some(text.trim_matches('"').to_owned()),
            Cover::Value => Some("VALUE".to_owned()),
            Cover::Root => None,
        }
    }

    #[test]
    fn ranges_print_as_labels_do() {
        let [integers, floats, points, _] = rulers();
        assert_eq!(
            (integers.position("-10"), integers.position("-6"), integers.position("100")),
            (Some(0), Some(0), Some(21))
        );
        assert_eq!(text(&integers, 0, 1).as_deref(), Some("-10--1"));
        assert_eq!(text(&integers, 20, 21).as_deref(), Some("90-100"));
        assert_eq!(text(&integers, 0, 22), None, "there is no such position");
        assert_eq!(text(&floats, 3, 9).as_deref(), Some("[0.3,1]"));
        assert_eq!(text(&floats, 3, 8).as_deref(), Some("[0.3,0.9)"));
        assert_eq!(text(&points, 0, 1).as_deref(), Some("0-29"));
        assert_eq!(text(&points, 4, 4).as_deref(), Some("70-120"));
        assert_eq!(integers.positions_of("\"-10--1\""), Some((0, 1)));
        for stranger in
            ["\"-10--2\"", "\"-9--1\"", "\"5-4\"", "\"x\"", "\"-\"", "\"\"", "7", "\"*\"", "\"[0,5)\"", "\"5-é\""]
        {
            assert_eq!(integers.positions_of(stranger), None, "{stranger}");
        }
    }

    proptest! {
        /// Of every two values the range covers both, by its text alone, and the text leads back to the positions.
        #[test]
        fn a_range_covers_its_values(which in 0usize..4, one in -100i64..1200, other in -100i64..1200) {
            let ruler = &rulers()[which];
            let value = |ticks: i64| {
                let mut text = String::new();
                crate::values::decimal::push_ticks(&mut text, i128::from(ticks), ruler.decimals);
                text
            };
            let (Some(a), Some(b)) = (ruler.position(&value(one)), ruler.position(&value(other))) else { return Ok(()) };
            let Some(Cover::Set { text, loss, .. }) = ruler.range_between(a.min(b), a.max(b)) else { return Ok(()) };
            prop_assert_eq!(ruler.positions_of(&text), Some((a.min(b), a.max(b))));
            prop_assert!(loss.is_some_and(|loss| loss > 0.0 && loss <= 1.0));
            // A range of one interval is the label of the first level.
            if a == b {
                let Cover::Set { text: label, .. } = ruler.covers(&value(one)).unwrap().remove(0) else { return Ok(()) };
                prop_assert_eq!(label, text);
            }
        }
    }
}
