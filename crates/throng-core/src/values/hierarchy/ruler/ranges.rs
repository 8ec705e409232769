//! Ranges of neighbouring intervals of the finest level (docs/internals/methods.md §10.7).

use super::{LevelCuts, Ruler, TickInterval};
use crate::values::decimal::{exact, floor_ticks};
use crate::values::hierarchy::ValueCover;
use crate::values::json::unquoted;

/// Maximum number of positions: two fit into a [cell](crate::values::codebook::CellId).
pub const MAX_POSITIONS: i128 = (1 << 15) - 1;

impl Ruler {
    /// None if every level has too many intervals.
    fn position_level(&self) -> Option<&LevelCuts> {
        self.levels.iter().find(|cuts| match cuts {
            LevelCuts::Width { width, .. } => (self.max - self.min) / width + 2 <= MAX_POSITIONS,
            LevelCuts::Points(points) => (points.len() as i128) < MAX_POSITIONS,
        })
    }

    /// Returns the interval position, from 0.
    pub fn position(&self, canonical: &str) -> Option<u32> {
        let floor = floor_ticks(canonical, self.decimals)?;
        if floor.ticks < self.min || floor.ticks > self.max || (floor.ticks == self.max && !floor.exact) {
            return None;
        }
        self.position_at(floor.ticks)
    }

    fn position_at(&self, ticks: i128) -> Option<u32> {
        let position = match self.position_level()? {
            &LevelCuts::Width { origin, width } => {
                let of = |at: i128| (at - origin).div_euclid(width);
                // A maximum that starts an interval belongs to the previous one.
                let own = ticks == self.max && (ticks - origin).rem_euclid(width) == 0;
                of(ticks) - i128::from(own) - of(self.min)
            }
            LevelCuts::Points(points) => points.partition_point(|&cut| cut <= ticks) as i128,
        };
        u32::try_from(position).ok()
    }

    fn interval_at(&self, position: u32) -> Option<TickInterval> {
        let cuts = self.position_level()?;
        let at = match cuts {
            &LevelCuts::Width { origin, width } => {
                let first = (self.min - origin).div_euclid(width);
                (origin + (first + i128::from(position)) * width).max(self.min)
            }
            LevelCuts::Points(points) => {
                let below = (position as usize).checked_sub(1);
                below.map_or(Some(self.min), |below| points.get(below).copied())?
            }
        };
        (at <= self.max && self.position_at(at) == Some(position)).then(|| self.interval(cuts, at))
    }

    /// Returns the bounds of an interval as shares of the domain.
    pub fn shares(&self, position: u32) -> Option<(f64, f64)> {
        let interval = self.interval_at(position)?;
        let share = |ticks: i128| (ticks - self.min) as f64 / (self.max - self.min) as f64;
        Some((share(interval.low), share(interval.high)))
    }

    /// Returns the cell of intervals `low` to `high`.
    pub fn range_between(&self, low: u32, high: u32) -> Option<ValueCover> {
        let (first, last) = (self.interval_at(low)?, self.interval_at(high)?);
        Some(self.cover(&TickInterval { low: first.low, high: last.high, closed: last.closed }))
    }

    /// Returns the positions of a text of [`range_between`](Self::range_between).
    pub fn positions_of(&self, text: &str) -> Option<(u32, u32)> {
        let inner = unquoted(text)?;
        let bounds = inner.strip_prefix('[').and_then(|rest| rest.strip_suffix([')', ']']));
        let (low, high) = match bounds {
            Some(bounds) => bounds.split_once(',')?,
            // Either bound may have a sign.
            None => inner.get(1..)?.find('-').map(|at| (&inner[..=at], &inner[at + 2..]))?,
        };
        let low = self.position_at(exact(low, self.decimals)?)?;
        let end = exact(high, self.decimals)?;
        let open = !self.integer && inner.ends_with(')');
        let high = self.position_at(if open { end - 1 } else { end })?;
        let printed = |cover| matches!(cover, ValueCover::Set { text: printed, .. } if printed == text);
        self.range_between(low, high).is_some_and(printed).then_some((low, high))
    }
}

/// Bounds for the verifier, independent of printing.
impl Ruler {
    /// Checks for a lower bound of an interval or the domain.
    pub fn starts_interval(&self, number: &str) -> bool {
        exact(number, self.decimals).is_some_and(|ticks| self.starts_at(ticks))
    }

    /// Checks for an included upper bound of the domain or of an integer interval.
    pub fn ends_domain_or_interval(&self, number: &str) -> bool {
        let ends = |ticks: i128| ticks == self.max || self.integer && self.starts_at(ticks + 1);
        exact(number, self.decimals).is_some_and(ends)
    }

    fn starts_at(&self, ticks: i128) -> bool {
        let cut = |cuts: &LevelCuts| match cuts {
            LevelCuts::Width { origin, width } => (ticks - origin) % width == 0,
            LevelCuts::Points(points) => points.contains(&ticks),
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
            ValueCover::Set { text, .. } => Some(text.trim_matches('"').to_owned()),
            ValueCover::Value => Some("VALUE".to_owned()),
            ValueCover::Root => None,
        }
    }

    #[test]
    fn range_text_equals_interval_label_format() {
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
        #[test]
        fn range_covers_both_values_and_parses_back(which in 0usize..4, one in -100i64..1200, other in -100i64..1200) {
            let ruler = &rulers()[which];
            let value = |ticks: i64| {
                let mut text = String::new();
                crate::values::decimal::push_ticks(&mut text, i128::from(ticks), ruler.decimals);
                text
            };
            let (Some(a), Some(b)) = (ruler.position(&value(one)), ruler.position(&value(other))) else { return Ok(()) };
            let Some(ValueCover::Set { text, loss, .. }) = ruler.range_between(a.min(b), a.max(b)) else { return Ok(()) };
            prop_assert_eq!(ruler.positions_of(&text), Some((a.min(b), a.max(b))));
            prop_assert!(loss.is_some_and(|loss| loss > 0.0 && loss <= 1.0));
            if a == b {
                let ValueCover::Set { text: label, .. } = ruler.covers(&value(one)).unwrap().remove(0) else { return Ok(()) };
                prop_assert_eq!(label, text);
            }
        }
    }
}
