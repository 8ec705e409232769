//! Dates and timestamps truncated to calendar units.

use chrono::Datelike;

use super::{Cover, Flaw};
use crate::values::json::{quoted, unquoted};
use crate::values::moment::{self, DAY, Unit};

/// Truncation to units of rising length: hours, days, ISO weeks, months, quarters, years.
///
/// They print as `2021-05-24T10`, `2021-05-24`, `2021-W21`, `2021-05`, `2021-Q2`, `2021`. Weeks cut across months, so
/// above a level of weeks a longer unit consists of whole weeks (each belongs where its Thursday lies, as in ISO 8601)
/// and prints its first and last day: `2021-05-03/2021-05-30`.
#[derive(Clone, Debug)]
pub struct Calendar {
    /// The spacing of canonical values: a day for dates, else a millisecond.
    grain: i64,
    levels: Vec<Unit>,
    /// First and last moment of the domain, in milliseconds since 1970.
    domain: Option<(i64, i64)>,
}

impl Calendar {
    /// `rounded` is the unit to which canonical values are truncated already: levels must be coarser.
    ///
    /// # Errors
    /// When units do not rise, one is not coarser than the rounding, or the domain is empty.
    pub fn build(
        date: bool,
        rounded: Option<Unit>,
        levels: Vec<Unit>,
        domain: Option<(i64, i64)>,
    ) -> Result<Self, Vec<Flaw>> {
        let mut flaws = Vec::new();
        if levels.is_empty() {
            flaws.push(Flaw::new("levels", "no levels: list at least one unit"));
        }
        let rounded = if date { Some(rounded.unwrap_or(Unit::Day).max(Unit::Day)) } else { rounded };
        let mut finer = rounded;
        for &unit in &levels {
            if let Some(finer) = finer.filter(|&finer| unit <= finer) {
                let message =
                    format!("\"{}\" is not coarser than \"{}\" before it: remove it", unit.name(), finer.name());
                flaws.push(Flaw::new("levels", message));
            }
            finer = Some(unit);
        }
        if domain.is_some_and(|(first, last)| first >= last) {
            flaws.push(Flaw::new("max", "max is not after min: the domain is empty"));
        }
        let grain = if date { DAY } else { 1 };
        if flaws.is_empty() { Ok(Self { grain, levels, domain }) } else { Err(flaws) }
    }

    /// First and last moment of the domain, in milliseconds since 1970; none where it is open.
    pub fn domain(&self) -> Option<(i64, i64)> {
        self.domain
    }

    pub(super) fn between(&self) -> usize {
        self.levels.len()
    }

    pub(super) fn label(&self, index: usize) -> String {
        format!("by {}", self.levels[index].name())
    }

    pub(super) fn covers(&self, canonical: &str) -> Option<Vec<Cover>> {
        let millis = moment::parse(&unquoted(canonical)?)?;
        if self.domain.is_some_and(|(first, last)| millis < first || millis > last) {
            return None;
        }
        let mut weeks = false;
        let cover = |&unit: &Unit| {
            weeks |= unit == Unit::Week;
            self.cover(unit, millis, weeks && unit > Unit::Week)
        };
        Some(self.levels.iter().map(cover).collect())
    }

    fn cover(&self, unit: Unit, millis: i64, of_weeks: bool) -> Cover {
        let (start, end) = if of_weeks {
            let start = unit.start(Unit::Week.start(millis) + 3 * DAY);
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
        Cover::Set { text: quoted(&text), set: format!("time {start} {end}"), loss: self.loss(start, end) }
    }

    /// (U−L)/(max−min) between the first and last canonical moment of the cell, cut off at the domain.
    fn loss(&self, start: i64, end: i64) -> Option<f64> {
        let (first, last) = self.domain?;
        let (low, high) = (start.max(first), (end - self.grain).min(last));
        Some(((high - low).max(0) as f64 / (last - first) as f64).min(1.0))
    }
}

/// The Monday of the first week whose Thursday is not before `start`.
fn first_week(start: i64) -> i64 {
    let week = Unit::Week.start(start);
    if week + 3 * DAY >= start { week } else { week + 7 * DAY }
}

fn push_unit(out: &mut String, unit: Unit, start: i64) {
    let (year, month, _) = moment::civil(start);
    let text = match unit {
        Unit::Second | Unit::Minute | Unit::Hour => return moment::push_clock(out, start, unit),
        Unit::Day => return moment::push_date(out, start),
        Unit::Week => {
            let week = moment::date(start).iso_week();
            format!("{:04}-W{:02}", week.year(), week.week())
        }
        Unit::Month => format!("{year:04}-{month:02}"),
        Unit::Quarter => format!("{year:04}-Q{}", (month - 1) / 3 + 1),
        Unit::Year => format!("{year:04}"),
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
    fn units() {
        let plain = vec![Unit::Hour, Unit::Day, Unit::Month, Unit::Quarter, Unit::Year];
        let calendar = Calendar::build(false, None, plain, None).unwrap();
        assert_eq!(
            texts(&calendar, "2021-05-24T10:05:07Z"),
            ["2021-05-24T10", "2021-05-24", "2021-05", "2021-Q2", "2021"]
        );
        let calendar = Calendar::build(true, None, vec![Unit::Week, Unit::Month, Unit::Year], None).unwrap();
        // A Saturday whose Thursday lies in April.
        assert_eq!(texts(&calendar, "2021-05-01"), ["2021-W17", "2021-03-29/2021-05-02", "2021-01-04/2022-01-02"]);
        assert_eq!(texts(&calendar, "2021-01-01"), ["2020-W53", "2020-11-30/2021-01-03", "2019-12-30/2021-01-03"]);
    }

    #[test]
    fn the_domain_bounds_and_measures() {
        let day = |text| moment::parse(text).unwrap();
        let domain = Some((day("2021-01-01"), day("2021-12-31")));
        let calendar = Calendar::build(true, None, vec![Unit::Month, Unit::Year], domain).unwrap();
        assert!(calendar.covers("\"2022-01-01\"").is_none());
        let losses: Vec<Option<f64>> = calendar
            .covers("\"2021-01-15\"")
            .unwrap()
            .into_iter()
            .map(|c| if let Cover::Set { loss, .. } = c { loss } else { None })
            .collect();
        assert_eq!(losses, [Some(30.0 / 364.0), Some(1.0)]);
    }

    #[test]
    fn refuses_units_that_do_not_rise() {
        assert!(Calendar::build(true, None, vec![Unit::Day], None).is_err());
        assert!(Calendar::build(false, Some(Unit::Hour), vec![Unit::Hour], None).is_err());
        assert!(Calendar::build(false, None, vec![Unit::Month, Unit::Week], None).is_err());
        assert!(Calendar::build(false, None, vec![Unit::Month], Some((5, 5))).is_err());
    }

    proptest! {
        #[test]
        fn cells_hold_their_moment_and_nest(a in 0_i64..200_000_000_000, gap in 0_i64..40 * DAY, mask in 1_u8..=255) {
            let levels: Vec<Unit> = Unit::VARIANTS.iter().copied().enumerate().filter(|(i, _)| mask >> i & 1 == 1).map(|(_, u)| u).collect();
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
                let Cover::Set { set, .. } = cell else { panic!("a set") };
                let bounds: Vec<i64> = set.split(' ').skip(1).map(|n| n.parse().unwrap()).collect();
                prop_assert!(bounds[0] <= a && a < bounds[1]);
            }
        }
    }
}
