//! Truncation of times to calendar units.

use chrono::Datelike;

use super::{HierarchyFlaw, ValueCover};
use crate::values::json::{quoted, unquoted};
use crate::values::moment::{self, CalendarUnit, DAY};

/// Calendar units of rising length.
///
/// Texts are `2021-05-24T10`, `2021-05-24`, `2021-W21`, `2021-05`, `2021-Q2`, `2021`. Units above weeks consist of
/// whole weeks, by Thursday as in ISO 8601: `2021-05-03/2021-05-30`.
#[derive(Clone, Debug)]
pub struct Calendar {
    /// Milliseconds between canonical values.
    grain: i64,
    levels: Vec<CalendarUnit>,
    /// First and last moment.
    domain: Option<(i64, i64)>,
}

impl Calendar {
    /// Creates the hierarchy of values rounded to `rounded`.
    ///
    /// # Errors
    /// Fails if units do not rise above `rounded`, or the domain is empty.
    pub fn build(
        date: bool,
        rounded: Option<CalendarUnit>,
        levels: Vec<CalendarUnit>,
        domain: Option<(i64, i64)>,
    ) -> Result<Self, Vec<HierarchyFlaw>> {
        let mut flaws = Vec::new();
        if levels.is_empty() {
            flaws.push(HierarchyFlaw::new("levels", "no levels: list at least one unit"));
        }
        let rounded = if date { Some(rounded.unwrap_or(CalendarUnit::Day).max(CalendarUnit::Day)) } else { rounded };
        let mut finer = rounded;
        for &unit in &levels {
            if let Some(finer) = finer.filter(|&finer| unit <= finer) {
                let message =
                    format!("\"{}\" is not coarser than \"{}\" before it: remove it", unit.name(), finer.name());
                flaws.push(HierarchyFlaw::new("levels", message));
            }
            finer = Some(unit);
        }
        if domain.is_some_and(|(first, last)| first >= last) {
            flaws.push(HierarchyFlaw::new("max", "max is not after min: the domain is empty"));
        }
        let grain = if date { DAY } else { 1 };
        if flaws.is_empty() { Ok(Self { grain, levels, domain }) } else { Err(flaws) }
    }

    /// Returns the first and last moment, in milliseconds since 1970.
    pub fn domain(&self) -> Option<(i64, i64)> {
        self.domain
    }

    pub(super) fn inner_levels(&self) -> usize {
        self.levels.len()
    }

    pub(super) fn label(&self, index: usize) -> String {
        format!("by {}", self.levels[index].name())
    }

    pub(super) fn covers(&self, canonical: &str) -> Option<Vec<ValueCover>> {
        let millis = moment::parse(&unquoted(canonical)?)?;
        if self.domain.is_some_and(|(first, last)| millis < first || millis > last) {
            return None;
        }
        let mut weeks = false;
        let cover = |&unit: &CalendarUnit| {
            weeks |= unit == CalendarUnit::Week;
            self.cover(unit, millis, weeks && unit > CalendarUnit::Week)
        };
        Some(self.levels.iter().map(cover).collect())
    }

    fn cover(&self, unit: CalendarUnit, millis: i64, of_weeks: bool) -> ValueCover {
        let (start, end) = if of_weeks {
            let start = unit.start(CalendarUnit::Week.start(millis) + 3 * DAY);
            (first_week(start), first_week(unit.end(start)))
        } else {
            let start = unit.start(millis);
            (start, unit.end(start))
        };
        let mut text = String::new();
        if of_weeks {
            moment::push_date(&mut text, start);
            text.push('/');
            moment::push_date(&mut text, end - DAY);
        } else {
            push_unit(&mut text, unit, start);
        }
        ValueCover::Set { text: quoted(&text), set: format!("time {start} {end}"), loss: self.loss(start, end) }
    }

    /// Equals (U−L)/(max−min) with included bounds, limited to the domain.
    fn loss(&self, start: i64, end: i64) -> Option<f64> {
        let (first, last) = self.domain?;
        let (low, high) = (start.max(first), (end - self.grain).min(last));
        Some(((high - low).max(0) as f64 / (last - first) as f64).min(1.0))
    }
}

/// Monday of the first week with a Thursday from `start` on.
fn first_week(start: i64) -> i64 {
    let week = CalendarUnit::Week.start(start);
    if week + 3 * DAY >= start { week } else { week + 7 * DAY }
}

fn push_unit(out: &mut String, unit: CalendarUnit, start: i64) {
    let (year, month, _) = moment::civil(start);
    let text = match unit {
        CalendarUnit::Second | CalendarUnit::Minute | CalendarUnit::Hour => {
            return moment::push_clock(out, start, unit);
        }
        CalendarUnit::Day => return moment::push_date(out, start),
        CalendarUnit::Week => {
            let week = moment::date(start).iso_week();
            format!("{:04}-W{:02}", week.year(), week.week())
        }
        CalendarUnit::Month => format!("{year:04}-{month:02}"),
        CalendarUnit::Quarter => format!("{year:04}-Q{}", (month - 1) / 3 + 1),
        CalendarUnit::Year => format!("{year:04}"),
    };
    out.push_str(&text);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use strum::VariantArray;

    fn texts(calendar: &Calendar, value: &str) -> Vec<String> {
        super::super::texts(calendar.covers(&quoted(value)))
    }

    #[test]
    fn calendar_units_print_iso_forms() {
        let plain =
            vec![CalendarUnit::Hour, CalendarUnit::Day, CalendarUnit::Month, CalendarUnit::Quarter, CalendarUnit::Year];
        let calendar = Calendar::build(false, None, plain, None).unwrap();
        assert_eq!(
            texts(&calendar, "2021-05-24T10:05:07Z"),
            ["2021-05-24T10", "2021-05-24", "2021-05", "2021-Q2", "2021"]
        );
        let calendar =
            Calendar::build(true, None, vec![CalendarUnit::Week, CalendarUnit::Month, CalendarUnit::Year], None)
                .unwrap();
        // The Thursday is in April.
        assert_eq!(texts(&calendar, "2021-05-01"), ["2021-W17", "2021-03-29/2021-05-02", "2021-01-04/2022-01-02"]);
        assert_eq!(texts(&calendar, "2021-01-01"), ["2020-W53", "2020-11-30/2021-01-03", "2019-12-30/2021-01-03"]);
    }

    #[test]
    fn calendar_domain_limits_values_and_scales_loss() {
        let day = |text| moment::parse(text).unwrap();
        let domain = Some((day("2021-01-01"), day("2021-12-31")));
        let calendar = Calendar::build(true, None, vec![CalendarUnit::Month, CalendarUnit::Year], domain).unwrap();
        assert!(calendar.covers("\"2022-01-01\"").is_none());
        let losses: Vec<Option<f64>> = calendar
            .covers("\"2021-01-15\"")
            .unwrap()
            .into_iter()
            .map(|c| if let ValueCover::Set { loss, .. } = c { loss } else { None })
            .collect();
        assert_eq!(losses, [Some(30.0 / 364.0), Some(1.0)]);
    }

    #[test]
    fn calendar_units_in_wrong_order_are_refused() {
        assert!(Calendar::build(true, None, vec![CalendarUnit::Day], None).is_err());
        assert!(Calendar::build(false, Some(CalendarUnit::Hour), vec![CalendarUnit::Hour], None).is_err());
        assert!(Calendar::build(false, None, vec![CalendarUnit::Month, CalendarUnit::Week], None).is_err());
        assert!(Calendar::build(false, None, vec![CalendarUnit::Month], Some((5, 5))).is_err());
    }

    proptest! {
        #[test]
        fn calendar_cells_contain_their_moment_and_nest(a in 0_i64..200_000_000_000, gap in 0_i64..40 * DAY, mask in 1_u8..=255) {
            let levels: Vec<CalendarUnit> = CalendarUnit::VARIANTS.iter().copied().enumerate().filter(|(i, _)| mask >> i & 1 == 1).map(|(_, u)| u).collect();
            let calendar = Calendar::build(false, None, levels, None).unwrap();
            let cells = |millis| {
                let mut text = String::new();
                moment::push_rfc3339(&mut text, millis);
                calendar.covers(&quoted(&text)).unwrap()
            };
            let (one, two) = (cells(a), cells(a + gap));
            for (level, pair) in one.windows(2).enumerate() {
                if pair[0] == two[level] {
                    prop_assert_eq!(&pair[1], &two[level + 1]);
                }
            }
            for cell in &one {
                let ValueCover::Set { set, .. } = cell else { panic!("a set") };
                let bounds: Vec<i64> = set.split(' ').skip(1).map(|n| n.parse().unwrap()).collect();
                prop_assert!(bounds[0] <= a && a < bounds[1]);
            }
        }
    }
}
