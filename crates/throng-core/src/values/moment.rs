//! UTC times: parsing and truncation.

use chrono::{Datelike, NaiveDate};
use std::fmt::Write as _;

/// Milliseconds per day.
pub const DAY: i64 = 86_400_000;

/// Calendar unit, fine to coarse.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Deserialize, strum::IntoStaticStr, strum::VariantArray,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum CalendarUnit {
    /// Second.
    Second,
    /// Minute.
    Minute,
    /// Hour.
    Hour,
    /// Day.
    Day,
    /// ISO week from Monday.
    Week,
    /// Month.
    Month,
    /// Quarter.
    Quarter,
    /// Year.
    Year,
}

impl CalendarUnit {
    /// Returns the name in schemas.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Returns the first millisecond of the unit around `millis`.
    pub fn start(self, millis: i64) -> i64 {
        let fixed = |width: i64| millis - millis.rem_euclid(width);
        match self {
            Self::Second => fixed(1_000),
            Self::Minute => fixed(60_000),
            Self::Hour => fixed(3_600_000),
            Self::Day => fixed(DAY),
            // 1970-01-01 was a Thursday.
            Self::Week => fixed(DAY) - (millis.div_euclid(DAY) + 3).rem_euclid(7) * DAY,
            Self::Month | Self::Quarter | Self::Year => {
                let (year, month, _) = civil(millis);
                self.first_day(year, month)
            }
        }
    }

    /// Returns the first millisecond after the unit from `start`.
    pub fn end(self, start: i64) -> i64 {
        match self {
            Self::Second => start + 1_000,
            Self::Minute => start + 60_000,
            Self::Hour => start + 3_600_000,
            Self::Day => start + DAY,
            Self::Week => start + 7 * DAY,
            // Within the next unit: longer than one unit, shorter than two.
            Self::Month => self.start(start + 31 * DAY + DAY),
            Self::Quarter => self.start(start + 100 * DAY),
            Self::Year => self.start(start + 370 * DAY),
        }
    }

    fn first_day(self, year: i32, month: u32) -> i64 {
        let first = match self {
            Self::Month => month,
            Self::Quarter => (month - 1) / 3 * 3 + 1,
            _ => 1,
        };
        from_civil(year, first, 1).unwrap_or(i64::MIN / 4)
    }
}

/// Returns year, month and day.
pub fn civil(millis: i64) -> (i32, u32, u32) {
    let date = date(millis);
    (date.year(), date.month(), date.day())
}

/// Returns the day.
pub fn date(millis: i64) -> NaiveDate {
    let days = i32::try_from(millis.div_euclid(DAY)).unwrap_or(i32::MAX);
    NaiveDate::from_num_days_from_ce_opt(days.saturating_add(719_163)).unwrap_or(NaiveDate::MAX)
}

fn from_civil(year: i32, month: u32, day: u32) -> Option<i64> {
    let date = NaiveDate::from_ymd_opt(year, month, day)?;
    Some(i64::from(date.num_days_from_ce() - 719_163) * DAY)
}

fn digits(bytes: &[u8], at: usize, count: usize) -> Option<u32> {
    let mut number = 0;
    for &byte in bytes.get(at..at + count)? {
        if !byte.is_ascii_digit() {
            return None;
        }
        number = number * 10 + u32::from(byte - b'0');
    }
    Some(number)
}

/// Local time and offset.
pub struct WrittenTime {
    /// Local milliseconds since 1970.
    pub local: i64,
    /// Offset in milliseconds.
    pub offset: Option<i64>,
}

/// Returns the milliseconds since 1970 of a [`parse_local`] text; UTC without an offset.
pub fn parse(text: &str) -> Option<i64> {
    let WrittenTime { local, offset } = parse_local(text)?;
    in_range(local.checked_sub(offset.unwrap_or(0))?)
}

/// Parses `YYYY-MM-DD`, or `YYYY-MM-DD HH:MM[:SS[.fraction]][Z|±HH[:MM]| UTC]` with a space or `T`; truncated to
/// milliseconds.
pub fn parse_local(text: &str) -> Option<WrittenTime> {
    let b = text.as_bytes();
    let year = i32::try_from(digits(b, 0, 4)?).ok()?;
    if year == 0 || b.get(4) != Some(&b'-') || b.get(7) != Some(&b'-') {
        return None;
    }
    let day = from_civil(year, digits(b, 5, 2)?, digits(b, 8, 2)?)?;
    if b.len() == 10 {
        return Some(WrittenTime { local: day, offset: None });
    }
    if !matches!(b[10], b'T' | b't' | b' ') || b.get(13) != Some(&b':') {
        return None;
    }
    let (hour, minute) = (digits(b, 11, 2)?, digits(b, 14, 2)?);
    let mut at = 16;
    let mut second = 0;
    let mut millis = 0;
    if b.get(at) == Some(&b':') {
        second = digits(b, 17, 2)?;
        at = 19;
        if b.get(at) == Some(&b'.') {
            let fraction = b[at + 1..].iter().take_while(|c| c.is_ascii_digit()).count();
            if fraction == 0 {
                return None;
            }
            let kept = fraction.min(3);
            millis = digits(b, at + 1, kept)? * [100, 10, 1][kept - 1];
            at += 1 + fraction;
        }
    }
    // A leap second is the first instant of the next minute.
    if hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let offset = match b.get(at) {
        None => None,
        Some(b'Z' | b'z') if b.len() == at + 1 => Some(0),
        Some(b' ') if b[at..] == *b" UTC" => Some(0),
        Some(sign @ (b'+' | b'-')) => {
            let minutes_at = at + 3 + usize::from(b.get(at + 3) == Some(&b':'));
            let hours = digits(b, at + 1, 2)?;
            let (minutes, end) =
                if b.len() == at + 3 { (0, at + 3) } else { (digits(b, minutes_at, 2)?, minutes_at + 2) };
            if b.len() != end || hours > 23 || minutes > 59 {
                return None;
            }
            let size = i64::from(hours * 60 + minutes) * 60_000;
            Some(if *sign == b'+' { size } else { -size })
        }
        Some(_) => return None,
    };
    let of_day = i64::from(((hour * 60 + minute) * 60 + second) * 1_000 + millis);
    Some(WrittenTime { local: day + of_day, offset })
}

/// Returns the start of `YYYY-MM` or `YYYY` if not coarser than `unit`.
pub fn parse_partial(text: &str, unit: CalendarUnit) -> Option<i64> {
    let b = text.as_bytes();
    let year = i32::try_from(digits(b, 0, 4)?).ok().filter(|year| *year > 0)?;
    match b.len() {
        4 if unit == CalendarUnit::Year => from_civil(year, 1, 1),
        7 if unit >= CalendarUnit::Month && b[4] == b'-' => from_civil(year, digits(b, 5, 2)?, 1),
        _ => None,
    }
}

/// Returns `millis` in years 1–9999.
pub fn in_range(millis: i64) -> Option<i64> {
    (-62_135_596_800_000..253_402_300_800_000).contains(&millis).then_some(millis)
}

/// Appends `2021-05-24`.
pub fn push_date(out: &mut String, millis: i64) {
    let (year, month, day) = civil(millis);
    push(out, format_args!("{year:04}-{month:02}-{day:02}"));
}

fn push(out: &mut String, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("a string takes every text");
}

/// Appends `2021-05-24T10`, `…T10:05` or `…T10:05:07`.
pub fn push_clock(out: &mut String, millis: i64, unit: CalendarUnit) {
    push_date(out, millis);
    let second = millis.rem_euclid(DAY) / 1_000;
    push(out, format_args!("T{:02}", second / 3_600));
    if unit <= CalendarUnit::Minute {
        push(out, format_args!(":{:02}", second / 60 % 60));
    }
    if unit <= CalendarUnit::Second {
        push(out, format_args!(":{:02}", second % 60));
    }
}

/// Returns `2021-05-24T10:05:07Z`; none outside years 1–9999.
pub fn rfc3339(millis: i64) -> Option<String> {
    let mut out = String::new();
    push_rfc3339(&mut out, in_range(millis)?);
    Some(out)
}

/// Appends `2021-05-24T10:05:07Z`, with milliseconds if not zero.
pub fn push_rfc3339(out: &mut String, millis: i64) {
    push_clock(out, millis, CalendarUnit::Second);
    let fraction = millis.rem_euclid(1_000);
    if fraction != 0 {
        push(out, format_args!(".{fraction:03}"));
    }
    out.push('Z');
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::{DateTime, Datelike, Weekday};
    use proptest::prelude::*;
    use strum::VariantArray;

    #[test]
    fn device_timestamps_are_parsed() {
        let noon = 1_621_857_600_000;
        for text in [
            "2021-05-24T12:00:00Z",
            "2021-05-24 12:00:00",
            "2021-05-24T12:00",
            "2021-05-24T14:00:00+02:00",
            "2021-05-24T14:00:00+0200",
            "2021-05-24 14:00:00.000000+02",
            "2021-05-24 08:30-03:30",
            "2021-05-24 12:00:00 UTC",
            "2021-05-24t07:00:00.000-05:00",
        ] {
            assert_eq!(parse(text), Some(noon), "{text}");
        }
        assert_eq!(parse("2021-05-24"), Some(noon - DAY / 2));
        assert_eq!(parse("2021-05-24T12:00:00.1239Z"), Some(noon + 123));
        for text in [
            "",
            "2021",
            "20210524",
            "1621857600",
            "5/24/2021",
            "2021-13-01",
            "2021-02-30",
            "2021-05-24T25:00:00Z",
            "2021-05-24T12:00:00Zx",
            "0000-01-01",
            "2021-05-24T12",
            "24.05.2021",
            "2021-05-24T12:00:00.Z",
            "2021-05-24 12:00:00 utc",
            "2021-05-24 12:00:00 CET",
            "2021-05-24T12:00:00+2",
            "2021-05-24T12:00:00+02:",
            "2021-05-24T12:00:00+24",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn rfc3339_text_equals_chrono(millis in -62_135_596_800_000_i64..253_402_300_800_000) {
            let mut text = String::new();
            push_rfc3339(&mut text, millis);
            prop_assert_eq!(parse(&text), Some(millis));
            let twin = DateTime::parse_from_rfc3339(&text).unwrap();
            prop_assert_eq!(twin.timestamp_millis(), millis);
        }

        #[test]
        fn calendar_unit_contains_its_moment(millis in -60_000_000_000_000_i64..250_000_000_000_000) {
            for &unit in CalendarUnit::VARIANTS {
                let start = unit.start(millis);
                let end = unit.end(start);
                prop_assert!(start <= millis && millis < end);
                prop_assert_eq!(unit.start(end), end);
                prop_assert_eq!(unit.start(end - 1), start);
            }
            prop_assert_eq!(date(CalendarUnit::Week.start(millis)).weekday(), Weekday::Mon);
            prop_assert_eq!(date(CalendarUnit::Month.start(millis)).day(), 1);
        }
    }
}
