//! Date and time formats of an attribute; never guessed.

use std::fmt::Write as _;

use chrono::format::{Fixed, Item, Numeric, Parsed, StrftimeItems};
use chrono::{Days, NaiveDate, NaiveDateTime, NaiveTime, Timelike};

use crate::values::decimal::floor_ticks;
use crate::values::moment::{self, DAY, WrittenTime};
use crate::values::time_zone::NamedZone;

/// Unit of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
pub enum EpochUnit {
    /// Seconds.
    #[serde(rename = "s")]
    Seconds,
    /// Milliseconds.
    #[serde(rename = "ms")]
    Milliseconds,
    /// Microseconds.
    #[serde(rename = "us")]
    Microseconds,
}

impl EpochUnit {
    /// Converts a number to milliseconds, rounded down.
    pub fn read(self, text: &str) -> Option<i64> {
        let (decimals, ticks_a_millisecond) = match self {
            Self::Seconds => (3, 1),
            Self::Milliseconds => (0, 1),
            Self::Microseconds => (0, 1000),
        };
        let ticks = floor_ticks(text, decimals)?.ticks;
        moment::in_range(i64::try_from(ticks.div_euclid(ticks_a_millisecond)).ok()?)
    }
}

/// Format of dates and times.
#[derive(Clone, Debug, Default)]
pub enum DateFormats {
    /// ISO 8601 (see [`moment::parse`]).
    #[default]
    Iso,
    /// First matching format.
    Formats(Vec<DateFormat>),
    /// Number since 1970.
    Epoch(EpochUnit),
    /// Sum of a relative time and its base.
    Sum,
}

impl DateFormats {
    /// Returns the milliseconds since 1970 of a text; UTC without an offset.
    pub fn read(&self, text: &str) -> Option<i64> {
        self.read_in_zone(text, None)
    }

    /// Returns the milliseconds since 1970 of a text; in `zone` without an offset.
    pub fn read_in_zone(&self, text: &str, zone: Option<&NamedZone>) -> Option<i64> {
        let WrittenTime { local, offset } = match self {
            Self::Iso | Self::Sum => moment::parse_local(text)?,
            Self::Formats(formats) => formats.iter().find_map(|format| format.parse_local_time(text))?,
            Self::Epoch(epoch) => return epoch.read(text),
        };
        match (offset, zone) {
            (None, Some(zone)) => zone.utc(local),
            (offset, _) => moment::in_range(local.checked_sub(offset.unwrap_or(0))?),
        }
    }

    /// Describes a cell with another format.
    pub fn mismatch_message(&self) -> &'static str {
        match self {
            Self::Iso => "not an ISO 8601 date or time such as 2021-05-24T10:00:00Z (set `format` or `epoch`)",
            Self::Formats(_) => "in none of the formats of the schema",
            Self::Sum => "not a time relative to the `base` attribute, within the years 1 to 9999",
            Self::Epoch(_) => "not a number in the unit of `epoch`, within the years 1 to 9999",
        }
    }

    /// Returns the formats without `%z`.
    pub fn formats_without_zone(&self) -> impl Iterator<Item = &str> {
        let formats = if let Self::Formats(formats) = self { formats.as_slice() } else { &[] };
        formats.iter().filter(|format| !format.zoned).map(|format| format.text.as_str())
    }

    /// Returns the text for the schema fingerprint.
    pub fn description(&self) -> String {
        match self {
            Self::Iso => "iso".to_owned(),
            Self::Sum => "sum".to_owned(),
            Self::Formats(formats) => {
                let first_year = formats.iter().find_map(|format| format.first_year);
                let first_year = first_year.map_or_else(String::new, |year| format!(" from {year}"));
                format!("formats {:?}{first_year}", formats.iter().map(|f| f.text.as_str()).collect::<Vec<_>>())
            }
            Self::Epoch(epoch) => format!("epoch {epoch:?}"),
        }
    }
}

const UNKNOWN_LETTER: &str = "not a valid format: unknown letter after % (see docs.rs/chrono, format::strftime)";

/// chrono format that parses its own output.
#[derive(Clone, Debug)]
pub struct DateFormat {
    text: String,
    items: Vec<Item<'static>>,
    zoned: bool,
    /// None if years are complete.
    first_year: Option<i32>,
}

/// Times that a format must distinguish.
const SAMPLE_TIMES: [(i32, u32, u32, u32, u32, u32); 6] = [
    (1912, 2, 29, 3, 4, 5),
    (1968, 12, 31, 23, 58, 59),
    (2000, 2, 29, 12, 30, 0),
    (2024, 5, 12, 0, 20, 7),
    (2031, 10, 3, 16, 35, 10),
    (2099, 11, 30, 13, 0, 59),
];

impl DateFormat {
    /// Parses a format.
    ///
    /// # Errors
    /// Fails with the mistake and its correction.
    pub fn new(text: &str) -> Result<Self, String> {
        Self::with_first_year(text, None)
    }

    /// Parses a format with two-digit years from `first_year` on.
    ///
    /// # Errors
    /// Fails like [`new`](Self::new).
    pub fn with_first_year(text: &str, first_year: Option<i32>) -> Result<Self, String> {
        let items = StrftimeItems::new(text).parse_to_owned().map_err(|_| UNKNOWN_LETTER.to_owned())?;
        let has = |wanted: &dyn Fn(&Item<'_>) -> bool| items.iter().any(wanted);
        let number = |wanted: Numeric| has(&|item| matches!(item, Item::Numeric(number, _) if *number == wanted));
        let fixed = |wanted: &[Fixed]| has(&|item| matches!(item, Item::Fixed(fixed) if wanted.contains(fixed)));
        let whole = fixed(&[Fixed::RFC2822, Fixed::RFC3339]);
        let two_digits = number(Numeric::YearMod100) && !number(Numeric::Year) && !number(Numeric::YearDiv100);
        let first_year = first_year.filter(|_| two_digits);
        let fault = if has(&|item| matches!(item, Item::Error)) {
            UNKNOWN_LETTER
        } else if two_digits && first_year.is_none() {
            "ambiguous: a two-digit year (%y, %D, %x) has no century; add `first_year`, the first year of a range of hundred \
             years (first_year = 1950: 1950 to 2049)"
        } else if number(Numeric::Timestamp) {
            "%s counts seconds since 1970: set epoch = \"s\" instead of a format"
        } else if number(Numeric::Nanosecond) {
            "%f counts nanoseconds and would read .5 as 5 ns: use %.f"
        } else if fixed(&[Fixed::TimezoneName]) {
            "%Z is the name of a time zone, which is not supported: use %z for an offset, or convert to UTC"
        } else if !whole && !two_digits && !number(Numeric::Year) && !number(Numeric::IsoYear) {
            "without a year: add %Y"
        } else if number(Numeric::Hour12) && !fixed(&[Fixed::LowerAmPm, Fixed::UpperAmPm]) {
            "ambiguous: %I without %p does not distinguish morning and afternoon; add %p, or use %H"
        } else if !number(Numeric::Hour12) && fixed(&[Fixed::LowerAmPm, Fixed::UpperAmPm]) {
            "ambiguous: %p (AM, PM) requires a 12-hour clock; add %I (instead of %H), or remove %p"
        } else {
            ""
        };
        if !fault.is_empty() {
            return Err(fault.to_owned());
        }
        let zoned = whole
            || fixed(&[
                Fixed::TimezoneOffset,
                Fixed::TimezoneOffsetColon,
                Fixed::TimezoneOffsetColonZ,
                Fixed::TimezoneOffsetDoubleColon,
                Fixed::TimezoneOffsetTripleColon,
                Fixed::TimezoneOffsetZ,
            ]);
        let format = Self { text: text.to_owned(), items, zoned, first_year };
        let within = |&(year, month, day, hour, minute, second): &(i32, u32, u32, u32, u32, u32)| {
            (format.full_year(year), month, day, hour, minute, second)
        };
        if SAMPLE_TIMES.iter().map(within).filter_map(moment_of).all(|moment| format.reads_back(moment)) {
            Ok(format)
        } else {
            Err("incomplete: a format needs year, month and day (such as %Y-%m-%d), and a time of day also needs hour and minute"
                .to_owned())
        }
    }

    /// Checks for a text that both formats read as different times.
    pub fn contradicts(&self, other: &Self) -> bool {
        let first = NaiveDate::from_ymd_opt(2023, 1, 1);
        let days = (0..731).filter_map(|day| first?.checked_add_days(Days::new(day)));
        let mut moments = days.flat_map(|day| [day.and_hms_opt(3, 7, 9), day.and_hms_opt(13, 8, 11)]).flatten();
        let differ = |writer: &Self, reader: &Self, moment| {
            writer.write(moment).is_some_and(|text| {
                let read = reader.read(&text);
                read.is_some() && read != writer.read(&text)
            })
        };
        moments.any(|moment| differ(self, other, moment) || differ(other, self, moment))
    }

    /// Checks for two-digit years.
    pub fn has_short_years(&self) -> bool {
        self.first_year.is_some()
    }

    fn full_year(&self, year: i32) -> i32 {
        self.first_year.map_or(year, |first| first + (year - first).rem_euclid(100))
    }

    fn read(&self, text: &str) -> Option<i64> {
        let WrittenTime { local, offset } = self.parse_local_time(text)?;
        moment::in_range(local.checked_sub(offset.unwrap_or(0))?)
    }

    fn parse_local_time(&self, text: &str) -> Option<WrittenTime> {
        let mut parsed = Parsed::new();
        chrono::format::parse(&mut parsed, text, self.items.iter()).ok()?;
        if self.first_year.is_some() {
            let year = self.full_year(parsed.year_mod_100()?);
            parsed.set_year(i64::from(year)).ok()?;
        }
        let date = parsed.to_naive_date().ok()?;
        // `%Y` also accepts `16`.
        if !(1000..=9999).contains(&chrono::Datelike::year(&date)) {
            return None;
        }
        let timed = parsed.hour_mod_12().is_some() || parsed.minute().is_some() || parsed.second().is_some();
        let midnight = date.and_hms_opt(0, 0, 0)?;
        let moment = if timed { date.and_time(parsed.to_naive_time().ok()?) } else { midnight };
        let offset = parsed.offset().map(|seconds| i64::from(seconds) * 1000);
        Some(WrittenTime { local: moment.and_utc().timestamp_millis(), offset })
    }

    fn write(&self, moment: NaiveDateTime) -> Option<String> {
        let mut text = String::new();
        write!(text, "{}", moment.and_utc().format_with_items(self.items.iter())).ok()?;
        Some(text)
    }

    fn reads_back(&self, moment: NaiveDateTime) -> bool {
        let millis = moment.and_utc().timestamp_millis();
        let minute = millis - millis.rem_euclid(60_000);
        let read = self.write(moment).and_then(|text| self.read(&text));
        read.is_some_and(|read| [millis, minute, millis - millis.rem_euclid(DAY)].contains(&read))
    }
}

fn moment_of((year, month, day, hour, minute, second): (i32, u32, u32, u32, u32, u32)) -> Option<NaiveDateTime> {
    NaiveDate::from_ymd_opt(year, month, day)?.and_hms_opt(hour, minute, second)
}

/// Base of relative times.
#[derive(Clone, Debug)]
pub struct TimeBase {
    /// Date or timestamp attribute of the same record.
    pub attribute: String,
    /// Format of the offset.
    pub span: TimeOffset,
}

/// Format of an offset from the base.
#[derive(Clone, Debug)]
pub enum TimeOffset {
    /// Number in this unit.
    Number(EpochUnit),
    /// Time of day on the day of the base.
    Clock(TimeOfDayFormat),
}

impl TimeOffset {
    /// Returns an offset in milliseconds.
    pub fn read(&self, text: &str) -> Option<i64> {
        match self {
            Self::Number(unit) => unit.read(text),
            Self::Clock(clock) => clock.read(text),
        }
    }

    /// Returns the text for the schema fingerprint.
    pub fn description(&self) -> String {
        match self {
            Self::Number(unit) => format!("{unit:?}"),
            Self::Clock(clock) => format!("clock {:?}", clock.text),
        }
    }
}

/// Times of day that a format must distinguish.
const SAMPLE_DAY_TIMES: [(u32, u32); 4] = [(0, 20), (3, 4), (12, 30), (23, 59)];

/// Time-of-day format that parses its own output.
#[derive(Clone, Debug)]
pub struct TimeOfDayFormat {
    text: String,
    items: Vec<Item<'static>>,
}

impl TimeOfDayFormat {
    /// Parses a format.
    ///
    /// # Errors
    /// Fails with the mistake and its correction.
    pub fn new(text: &str) -> Result<Self, String> {
        let items = StrftimeItems::new(text).parse_to_owned().map_err(|_| UNKNOWN_LETTER.to_owned())?;
        let clock = Self { text: text.to_owned(), items };
        let reads_back = |(hour, minute): (u32, u32)| {
            let time = NaiveTime::from_hms_opt(hour, minute, 0)?;
            let mut written = String::new();
            write!(written, "{}", time.format_with_items(clock.items.iter())).ok()?;
            (clock.read(&written)? == i64::from(time.num_seconds_from_midnight()) * 1000).then_some(())
        };
        if SAMPLE_DAY_TIMES.iter().all(|&time| reads_back(time).is_some()) {
            Ok(clock)
        } else {
            Err("not a time of day: with `base`, a format needs hour and minute (such as %H:%M:%S or %I:%M %p), and \
                 neither a date nor a time zone"
                .to_owned())
        }
    }

    fn read(&self, text: &str) -> Option<i64> {
        let mut parsed = Parsed::new();
        chrono::format::parse(&mut parsed, text, self.items.iter()).ok()?;
        let time = parsed.to_naive_time().ok()?;
        Some(i64::from(time.num_seconds_from_midnight()) * 1000 + i64::from(time.nanosecond() / 1_000_000))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(format: &str, text: &str) -> Option<String> {
        let mut out = String::new();
        moment::push_rfc3339(&mut out, DateFormat::new(format).unwrap().read(text)?);
        Some(out)
    }

    #[test]
    fn date_formats_of_real_exports_are_parsed() {
        for (format, text, moment) in [
            ("%m/%d/%Y %I:%M:%S %p", "5/12/2016 4:35:00 PM", "2016-05-12T16:35:00Z"),
            ("%m/%d/%Y %I:%M:%S %p", "4/1/2016 12:00:00 AM", "2016-04-01T00:00:00Z"),
            ("%m/%d/%Y", "5/12/2016", "2016-05-12T00:00:00Z"),
            ("%Y%m%d", "20240512", "2024-05-12T00:00:00Z"),
            ("%d.%m.%Y %H:%M", "12.05.2024 16:35", "2024-05-12T16:35:00Z"),
            ("%Y-%m-%dT%H:%M:%S%.f%:z", "2024-05-12T16:35:00.25+02:00", "2024-05-12T14:35:00.250Z"),
            ("%d %b %Y", "12 May 2024", "2024-05-12T00:00:00Z"),
            ("%G-W%V-%u", "2024-W19-7", "2024-05-12T00:00:00Z"),
            ("%Y-%j", "2024-133", "2024-05-12T00:00:00Z"),
            ("%a, %d %b %Y %H:%M:%S %z", "Sun, 12 May 2024 16:35:00 +0200", "2024-05-12T14:35:00Z"),
        ] {
            assert_eq!(read(format, text).as_deref(), Some(moment), "{format} {text}");
        }
        for (format, text) in [
            ("%m/%d/%Y", "5/12/16"),
            ("%m/%d/%Y", "13/12/2016"),
            ("%m/%d/%Y", "2/30/2016"),
            ("%m/%d/%Y", "5/12/2016 "),
            ("%m/%d/%Y", "2016-05-12"),
            ("%m/%d/%Y %I:%M:%S %p", "5/12/2016"),
            ("%m/%d/%Y %I:%M:%S %p", "5/12/2016 16:35:00 PM"),
            ("%a %d %b %Y", "Mon 12 May 2024"),
            ("%Y%m%d", "2024512"),
        ] {
            assert_eq!(read(format, text), None, "{format} {text}");
        }
    }

    #[test]
    fn ambiguous_date_formats_are_refused() {
        for (format, says) in [
            ("%m/%d", "without a year"),
            ("%H:%M", "without a year"),
            ("%m/%d/%y", "century"),
            ("%D", "century"),
            ("%x", "century"),
            ("%Y-%m", "year, month and day"),
            ("%Y", "year, month and day"),
            ("%Y-%m-%d %M", "hour and minute"),
            ("%Y-%m-%d %I:%M", "morning"),
            ("%Y-%m-%d %p", "add %I"),
            ("%Y-%m-%d %P", "add %I"),
            ("%Y-%m-%d %H:%M %p", "add %I"),
            ("%Y-%m-%d %H:%M:%S.%f", "%.f"),
            ("%Y-%m-%d %H:%M %Z", "not supported"),
            ("%s", "epoch"),
            ("%Y-%m-%d %Q", "unknown letter"),
            ("", "without a year"),
            ("YYYY-MM-DD", "without a year"),
        ] {
            let error = DateFormat::new(format).map(|f| f.text).unwrap_err();
            assert!(error.contains(says), "{format}: {error}");
        }
    }

    #[test]
    fn two_digit_years_use_the_configured_century() {
        for (first, format, text, date) in [
            (1970, "%m/%d/%y %H:%M:%S", "05/12/16 04:35:00", "2016-05-12T04:35:00"),
            (1970, "%d.%m.%y", "24.12.70", "1970-12-24"),
            (1970, "%d.%m.%y", "24.12.69", "2069-12-24"),
            (1927, "%d/%m/%y", "03/04/27", "1927-04-03"),
            (1927, "%D", "04/03/26", "2026-04-03"),
            (1950, "%y%m%d", "491231", "2049-12-31"),
        ] {
            let format = DateFormat::with_first_year(format, Some(first)).expect("a format");
            assert_eq!(format.read(text), moment::parse(date), "{first} {text}");
            assert!(format.has_short_years() && format.read("29.02.23").is_none());
        }
        assert!(!DateFormat::with_first_year("%Y-%m-%d", Some(1950)).expect("a format").has_short_years());
        assert!(DateFormat::new("%m/%d/%y").is_err_and(|fault| fault.contains("first_year")));
    }

    #[test]
    fn local_times_are_converted_from_their_zone() {
        let zone = NamedZone::from_name("America/New_York").expect("a zone");
        let formats = DateFormats::Formats(vec![DateFormat::new("%m/%d/%Y %H:%M").expect("a format")]);
        for (dates, text, utc) in [
            (&DateFormats::Iso, "2024-07-15T08:00:00", "2024-07-15T12:00:00Z"),
            (&DateFormats::Iso, "2024-07-15T08:00:00Z", "2024-07-15T08:00:00Z"),
            (&DateFormats::Iso, "2024-07-15T08:00:00+02:00", "2024-07-15T06:00:00Z"),
            (&formats, "01/15/2024 08:00", "2024-01-15T13:00:00Z"),
        ] {
            assert_eq!(dates.read_in_zone(text, Some(&zone)), moment::parse(utc), "{text}");
        }
    }

    #[test]
    fn contradicting_date_formats_are_detected() {
        let contradict = |one, other| DateFormat::new(one).unwrap().contradicts(&DateFormat::new(other).unwrap());
        assert!(contradict("%m/%d/%Y", "%d/%m/%Y"));
        assert!(contradict("%Y%m%d", "%Y%d%m"));
        assert!(!contradict("%m/%d/%Y", "%m/%d/%Y %I:%M:%S %p"));
        assert!(!contradict("%m/%d/%Y", "%d.%m.%Y"));
        assert!(!contradict("%Y-%m-%d %H:%M", "%Y-%m-%d"));
    }

    #[test]
    fn epoch_numbers_are_read_only_in_their_unit() {
        let noon = 1_621_857_600_000;
        for (epoch, text, millis) in [
            (EpochUnit::Seconds, "1621857600", noon),
            (EpochUnit::Seconds, "1621857600.0009", noon),
            (EpochUnit::Seconds, "1.6218576e9", noon),
            (EpochUnit::Seconds, "-0.0001", -1),
            (EpochUnit::Milliseconds, "1621857600000", noon),
            (EpochUnit::Microseconds, "1621857600000999", noon),
        ] {
            assert_eq!(DateFormats::Epoch(epoch).read(text), Some(millis), "{text}");
        }
        for text in ["1621857600000", "2021-05-24", "", "NaN", "inf", "1e99", "twelve"] {
            assert_eq!(DateFormats::Epoch(EpochUnit::Seconds).read(text), None, "{text}");
        }
        assert_eq!(DateFormats::Iso.read("1621857600"), None);
    }

    proptest! {
        #[test]
        fn date_formats_equal_chrono_parsing(seconds in -30_000_000_000_i64..200_000_000_000) {
            let moment = chrono::DateTime::from_timestamp(seconds, 0).unwrap().naive_utc();
            for format in ["%m/%d/%Y %I:%M:%S %p", "%Y%m%d%H%M%S", "%d.%m.%Y %T", "%c"] {
                let text = moment.format(format).to_string();
                prop_assert_eq!(NaiveDateTime::parse_from_str(&text, format).unwrap(), moment);
                prop_assert_eq!(DateFormat::new(format).unwrap().read(&text), Some(seconds * 1000), "{} {}", format, text);
            }
            let mut text = String::new();
            write!(text, "{seconds}").unwrap();
            prop_assert_eq!(DateFormats::Epoch(EpochUnit::Seconds).read(&text), Some(seconds * 1000));
        }
    }
}
