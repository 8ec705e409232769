//! Lower and upper bound of a released cell, from its text alone.

use chrono::{NaiveDate, Weekday};

use crate::values::canonical::AttributeType;
use crate::values::hierarchy::Hierarchy;
use crate::values::moment::{self, CalendarUnit, DAY};
use crate::values::schema::Attribute;

/// Type of the bounds of an attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BoundType {
    /// 64-bit integers, both included.
    Integer,
    /// Doubles; the upper one can be excluded.
    Float,
    /// Days since 1970, both included.
    Date,
    /// Milliseconds since 1970, both included.
    Timestamp,
}

/// One bound.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bound {
    /// Integer, day or millisecond.
    Whole(i64),
    /// Double nearest to the decimal text.
    Real(f64),
}

impl Bound {
    /// Returns the integer, day or millisecond.
    pub fn whole(self) -> Option<i64> {
        if let Self::Whole(value) = self { Some(value) } else { None }
    }

    /// Returns the double.
    pub fn real(self) -> Option<f64> {
        if let Self::Real(value) = self { Some(value) } else { None }
    }
}

impl BoundType {
    /// Returns the type of the bounds; none for texts, and for listed hierarchies, whose labels are free texts.
    pub fn of(attribute: &Attribute) -> Option<Self> {
        match attribute.hierarchy {
            Hierarchy::Flat | Hierarchy::Ruler(_) | Hierarchy::Calendar(_) => {}
            Hierarchy::Tree(_) | Hierarchy::Prefix(_) | Hierarchy::Grid(_) => return None,
        }
        match attribute.kind() {
            AttributeType::Integer => Some(Self::Integer),
            AttributeType::Float => Some(Self::Float),
            AttributeType::Date => Some(Self::Date),
            AttributeType::Timestamp => Some(Self::Timestamp),
            AttributeType::Boolean | AttributeType::String | AttributeType::Coordinates => None,
        }
    }

    /// Returns the bounds of a cell without quotes; none for `*`, and for a text that is no value or interval.
    ///
    /// The bounds of an exact cell are equal.
    pub fn bounds(self, text: &str) -> Option<[Bound; 2]> {
        match self {
            Self::Integer => integers(text).map(|ends| ends.map(Bound::Whole)),
            Self::Float => floats(text).map(|ends| ends.map(Bound::Real)),
            Self::Date => {
                let (start, end) = span(text)?;
                Some([start, end - 1].map(|millis| Bound::Whole(millis.div_euclid(DAY))))
            }
            Self::Timestamp => {
                let (start, end) = span(text)?;
                Some([start, end - 1].map(Bound::Whole))
            }
        }
    }
}

/// `72`, `45-49` or `-10--6`.
fn integers(text: &str) -> Option<[i64; 2]> {
    if let Ok(value) = text.parse() {
        return Some([value; 2]);
    }
    // The first byte can be a sign.
    let hyphen = text.bytes().skip(1).position(|byte| byte == b'-')? + 1;
    Some([text.get(..hyphen)?.parse().ok()?, text.get(hyphen + 1..)?.parse().ok()?])
}

/// `72.5`, `[65,70)` or `[65,70]`.
fn floats(text: &str) -> Option<[f64; 2]> {
    let double = |text: &str| text.parse::<f64>().ok().filter(|value| value.is_finite());
    let Some(interval) = text.strip_prefix('[') else { return double(text).map(|value| [value; 2]) };
    let (low, high) = interval.strip_suffix([')', ']'])?.split_once(',')?;
    Some([double(low)?, double(high)?])
}

/// Returns the first millisecond of a moment or calendar unit, and the first one after it.
fn span(text: &str) -> Option<(i64, i64)> {
    if let Some((first, last)) = text.split_once('/') {
        return Some((day(first)?, day(last)? + DAY));
    }
    let unit = |unit: CalendarUnit, start: i64| (start, unit.end(start));
    match (text.len(), text.as_bytes().get(5)) {
        (4, _) => Some(unit(CalendarUnit::Year, moment::parse_partial(text, CalendarUnit::Year)?)),
        (8, Some(b'W')) => Some(unit(CalendarUnit::Week, week_start(text)?)),
        (7, Some(b'Q')) => Some(unit(CalendarUnit::Quarter, quarter_start(text)?)),
        (7, _) => Some(unit(CalendarUnit::Month, moment::parse_partial(text, CalendarUnit::Month)?)),
        (10, _) => Some(unit(CalendarUnit::Day, day(text)?)),
        (13, _) => Some(unit(CalendarUnit::Hour, moment::parse(&format!("{text}:00"))?)),
        (16, _) => Some(unit(CalendarUnit::Minute, moment::parse(text)?)),
        (19, _) => Some(unit(CalendarUnit::Second, moment::parse(text)?)),
        _ if text.ends_with('Z') => moment::parse(text).map(|at| (at, at + 1)),
        _ => None,
    }
}

/// `2021-05-24`.
fn day(text: &str) -> Option<i64> {
    moment::parse(text).filter(|_| text.len() == 10)
}

/// `2021-Q2`.
fn quarter_start(text: &str) -> Option<i64> {
    let (year, quarter) = text.split_once("-Q")?;
    let month = quarter.parse::<u32>().ok().filter(|quarter| (1..=4).contains(quarter))? * 3 - 2;
    moment::parse_partial(&format!("{year}-{month:02}"), CalendarUnit::Month)
}

/// `2021-W21`.
fn week_start(text: &str) -> Option<i64> {
    let (year, week) = text.split_once("-W")?;
    let monday = NaiveDate::from_isoywd_opt(year.parse().ok()?, week.parse().ok()?, Weekday::Mon)?;
    Some(monday.and_time(chrono::NaiveTime::MIN).and_utc().timestamp_millis())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::codebook::{FIRST_VALUE, test_codebooks};
    use crate::values::json::unquoted;
    use crate::values::raw_batch::RawToken;
    use proptest::prelude::*;

    fn bounds(kind: BoundType, text: &str) -> Option<[Bound; 2]> {
        kind.bounds(text)
    }

    fn whole(low: i64, high: i64) -> Option<[Bound; 2]> {
        Some([Bound::Whole(low), Bound::Whole(high)])
    }

    #[test]
    fn number_texts_have_bounds() {
        let integer = |text| bounds(BoundType::Integer, text);
        assert_eq!(integer("72"), whole(72, 72));
        assert_eq!(integer("45-49"), whole(45, 49));
        assert_eq!(integer("-10--6"), whole(-10, -6));
        assert_eq!(integer("-7"), whole(-7, -7));
        // Above 2⁵³ and at the ends of 64 bits.
        assert_eq!(integer("9007199254740993"), whole(9_007_199_254_740_993, 9_007_199_254_740_993));
        assert_eq!(integer("9223372036854775807"), whole(i64::MAX, i64::MAX));
        assert_eq!(integer("-9223372036854775808"), whole(i64::MIN, i64::MIN));
        for text in ["9223372036854775808", "*", "", "-", "4.5", "low", "1-", "1-2-3"] {
            assert_eq!(integer(text), None, "{text}");
        }
        let float = |text| bounds(BoundType::Float, text);
        let real = |low: f64, high: f64| Some([Bound::Real(low), Bound::Real(high)]);
        assert_eq!(float("36.5"), real(36.5, 36.5));
        assert_eq!(float("1e300"), real(1e300, 1e300));
        assert_eq!(float("[65,70)"), real(65.0, 70.0));
        assert_eq!(float("[-0.5,0.1]"), real(-0.5, 0.1));
        for text in ["NaN", "inf", "-infinity", "1e999", "*", "[65,70", "[65,inf)", "65,70)"] {
            assert_eq!(float(text), None, "{text}");
        }
    }

    #[test]
    fn calendar_texts_have_bounds() {
        let millis = |text: &str| moment::parse(text).expect("a moment");
        let of = |text, first: &str, last: &str| {
            let found = bounds(BoundType::Timestamp, text);
            assert_eq!(found, whole(millis(first), millis(last)), "{text}");
        };
        of("2021-05-24T10:05:07Z", "2021-05-24T10:05:07Z", "2021-05-24T10:05:07Z");
        of("2021-05-24T10:05:07.250Z", "2021-05-24T10:05:07.250Z", "2021-05-24T10:05:07.250Z");
        of("2021-05-24T10:05:07", "2021-05-24T10:05:07Z", "2021-05-24T10:05:07.999Z");
        of("2021-05-24T10:05", "2021-05-24T10:05:00Z", "2021-05-24T10:05:59.999Z");
        of("2021-05-24T10", "2021-05-24T10:00:00Z", "2021-05-24T10:59:59.999Z");
        of("2021-05-24", "2021-05-24T00:00:00Z", "2021-05-24T23:59:59.999Z");
        of("2020-W53", "2020-12-28T00:00:00Z", "2021-01-03T23:59:59.999Z");
        of("2021-Q2", "2021-04-01T00:00:00Z", "2021-06-30T23:59:59.999Z");
        let days = |text, first: &str, last: &str| {
            let found = bounds(BoundType::Date, text);
            assert_eq!(found, whole(millis(first) / DAY, millis(last) / DAY), "{text}");
        };
        days("2021-05-24", "2021-05-24", "2021-05-24");
        days("2024-02", "2024-02-01", "2024-02-29");
        days("2021", "2021-01-01", "2021-12-31");
        days("2021-05-03/2021-05-30", "2021-05-03", "2021-05-30");
        for text in ["*", "2021-Q5", "2021-W54", "2021-13", "21-05", "2021-05-03/", "10000-01-01", "May"] {
            assert_eq!(bounds(BoundType::Date, text), None, "{text}");
        }
    }

    const SCHEMA: &str = r#"
name = "kinds"
[[attribute]]
name = "whole"
type = "integer"
hierarchy = { kind = "intervals", min = -1000, max = 1000, widths = [5, 50, 500] }
[[attribute]]
name = "real"
type = "float"
hierarchy = { kind = "bounds", min = -1000, max = 1000, levels = [[-0.5, 0, 36.5], [36.5]] }
[[attribute]]
name = "day"
type = "date"
hierarchy = { kind = "truncate", levels = ["week", "month", "quarter", "year"] }
[[attribute]]
name = "at"
type = "timestamp"
hierarchy = { kind = "truncate", levels = ["second", "minute", "hour", "day", "month", "quarter", "year"] }
[[attribute]]
name = "listed"
type = "integer"
hierarchy = { kind = "tree", tree = { "1-2" = ["7", "8"], other = ["9"] } }
"#;

    proptest! {
        #[test]
        fn bounds_of_generalized_cells_contain_the_value(
            number in -1000.0..=1000.0_f64,
            millis in 0_i64..4_000_000_000_000,
        ) {
            let mut books = test_codebooks(SCHEMA, 10);
            let moment = moment::rfc3339(millis).expect("a moment");
            let values = [(number.round() as i64).to_string(), number.to_string(), moment.clone(), moment];
            for (book, value) in books.iter_mut().zip(&values) {
                let kind = BoundType::of(book.attribute()).expect("bounds");
                let code = book.encode(RawToken::Untyped(value)).expect("a value");
                prop_assert!(code >= FIRST_VALUE, "{value}");
                let text = |level| {
                    let text = book.text(book.cell(code, level));
                    unquoted(text).unwrap_or_else(|| text.to_owned())
                };
                let pair = |text: &str| kind.bounds(text).map(|ends| ends.map(|end| match end {
                    Bound::Whole(value) => value as f64,
                    Bound::Real(value) => value,
                }));
                let [exact, same] = pair(&text(0)).expect("an exact value");
                prop_assert_eq!(exact, same);
                for level in 1..book.levels() - 1 {
                    let [low, high] = pair(&text(level)).expect("an interval");
                    prop_assert!(low <= exact && exact <= high, "{} in {}", value, text(level));
                }
                prop_assert_eq!(pair(&text(book.levels() - 1)), None, "suppressed");
            }
            prop_assert_eq!(BoundType::of(books[4].attribute()), None, "labels of a list are free");
        }
    }
}
