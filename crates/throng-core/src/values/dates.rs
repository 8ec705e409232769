//! How an attribute's dates and times are spelled: as ISO 8601 writes them, in formats that its schema names, or as
//! numbers counted from 1970; and how much later than another time of its record a time is.
//!
//! Nothing is guessed. `20240512` is a day to one reader and 1970-08-23 to another; where the schema does not say which,
//! it is neither.

use std::fmt::Write as _;

use chrono::format::{Fixed, Item, Numeric, Parsed, StrftimeItems};
use chrono::{Days, NaiveDate, NaiveDateTime, NaiveTime, Timelike};

use crate::values::decimal::floor_ticks;
use crate::values::moment::{self, DAY, Written};
use crate::values::zone::Zone;

/// The unit of a number that counts from 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
pub enum Epoch {
    /// Seconds since 1970.
    #[serde(rename = "s")]
    Seconds,
    /// Milliseconds since 1970.
    #[serde(rename = "ms")]
    Milliseconds,
    /// Microseconds since 1970.
    #[serde(rename = "us")]
    Microseconds,
}

impl Epoch {
    /// Milliseconds since 1970, rounded down.
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

/// How dates and times are read.
#[derive(Clone, Debug, Default)]
pub enum Dates {
    /// `2021-05-24`, `2021-05-24T10:00:00Z` and the like (see [`moment::parse`]).
    #[default]
    Iso,
    /// The first format that fits.
    Formats(Vec<Format>),
    /// A number since 1970.
    Epoch(Epoch),
    /// What counts from another attribute, added up: as ISO 8601 writes it.
    Sum,
}

impl Dates {
    /// Milliseconds since 1970; none where `text` is spelled in another way. Without an offset it is UTC.
    pub fn read(&self, text: &str) -> Option<i64> {
        self.read_in(text, None)
    }

    /// Milliseconds since 1970; none where `text` is spelled in another way. Without an offset it is a local time of `zone`.
    pub fn read_in(&self, text: &str, zone: Option<&Zone>) -> Option<i64> {
        let Written { local, offset } = match self {
            Self::Iso | Self::Sum => moment::written(text)?,
            Self::Formats(formats) => formats.iter().find_map(|format| format.written(text))?,
            Self::Epoch(epoch) => return epoch.read(text),
        };
        match (offset, zone) {
            (None, Some(zone)) => zone.utc(local),
            (offset, _) => moment::in_range(local.checked_sub(offset.unwrap_or(0))?),
        }
    }

    /// What a cell that is spelled in another way is told.
    pub fn otherwise(&self) -> &'static str {
        match self {
            Self::Iso => "no ISO date or time such as 2021-05-24T10:00:00Z (name its `format` or its `epoch`)",
            Self::Formats(_) => "in none of the formats that the schema names",
            Self::Sum => {
                "nothing that counts from a date or time of the `base` that the schema names, within the years 1 to 9999"
            }
            Self::Epoch(_) => "no number of the `epoch` that the schema names, within the years 1 to 9999",
        }
    }

    /// The formats that say no time zone: what they read is taken for UTC.
    pub fn without_zone(&self) -> impl Iterator<Item = &str> {
        let formats = if let Self::Formats(formats) = self { formats.as_slice() } else { &[] };
        formats.iter().filter(|format| !format.zoned).map(|format| format.text.as_str())
    }

    /// For a fingerprint of the schema.
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

/// What a format of unknown letters is told.
const UNKNOWN: &str = "no format: it has an unknown letter after %, see docs.rs/chrono (format::strftime)";

/// A format in chrono's letters that reads back what it writes.
#[derive(Clone, Debug)]
pub struct Format {
    text: String,
    items: Vec<Item<'static>>,
    zoned: bool,
    /// The first of the hundred years that a year of two digits means one of; none where years are in full.
    first_year: Option<i32>,
}

/// Days that a format must tell apart, with times of day: two centuries, both halves of a day, a leap day.
const SAMPLES: [(i32, u32, u32, u32, u32, u32); 6] = [
    (1912, 2, 29, 3, 4, 5),
    (1968, 12, 31, 23, 58, 59),
    (2000, 2, 29, 12, 30, 0),
    (2024, 5, 12, 0, 20, 7),
    (2031, 10, 3, 16, 35, 10),
    (2099, 11, 30, 13, 0, 59),
];

impl Format {
    /// Reads a format.
    ///
    /// # Errors
    /// What is wrong with it, and what to write instead.
    pub fn new(text: &str) -> Result<Self, String> {
        Self::from_year(text, None)
    }

    /// Reads a format in which years may have two digits, and then mean one of the hundred years from `first_year` on.
    ///
    /// # Errors
    /// What is wrong with it, and what to write instead.
    pub fn from_year(text: &str, first_year: Option<i32>) -> Result<Self, String> {
        let items = StrftimeItems::new(text).parse_to_owned().map_err(|_| UNKNOWN.to_owned())?;
        let has = |wanted: &dyn Fn(&Item<'_>) -> bool| items.iter().any(wanted);
        let number = |wanted: Numeric| has(&|item| matches!(item, Item::Numeric(number, _) if *number == wanted));
        let fixed = |wanted: &[Fixed]| has(&|item| matches!(item, Item::Fixed(fixed) if wanted.contains(fixed)));
        let whole = fixed(&[Fixed::RFC2822, Fixed::RFC3339]);
        let two_digits = number(Numeric::YearMod100) && !number(Numeric::Year) && !number(Numeric::YearDiv100);
        let first_year = first_year.filter(|_| two_digits);
        let fault = if has(&|item| matches!(item, Item::Error)) {
            UNKNOWN
        } else if two_digits && first_year.is_none() {
            "ambiguous: a year of two digits (%y, %D, %x) does not say its century; add `first_year`, the first of the hundred \
             years that are meant (first_year = 1950: 1950 to 2049)"
        } else if number(Numeric::Timestamp) {
            "%s counts seconds since 1970: write epoch = \"s\" instead of a format"
        } else if number(Numeric::Nanosecond) {
            "%f counts nanoseconds and would read .5 as five of them: write %.f"
        } else if fixed(&[Fixed::TimezoneName]) {
            "%Z names a time zone, and names are not read: write %z for an offset, or convert to UTC"
        } else if !whole && !two_digits && !number(Numeric::Year) && !number(Numeric::IsoYear) {
            "without a year: add %Y"
        } else if number(Numeric::Hour12) && !fixed(&[Fixed::LowerAmPm, Fixed::UpperAmPm]) {
            "ambiguous: %I without %p does not tell morning from afternoon; add %p, or write %H"
        } else if !number(Numeric::Hour12) && fixed(&[Fixed::LowerAmPm, Fixed::UpperAmPm]) {
            "ambiguous: %p (AM, PM) says nothing without an hour of twelve; add %I (in the place of %H), or leave %p out"
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
        if SAMPLES.iter().map(within).filter_map(moment_of).all(|moment| format.reads_back(moment)) {
            Ok(format)
        } else {
            Err("not enough to tell a day: it needs year, month and day (such as %Y-%m-%d), and of a time of day hour and minute"
                .to_owned())
        }
    }

    /// Two spellings that one of `self` and `other` takes for another day or time than the other does.
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

    /// Whether a year has two digits in it.
    pub fn has_short_years(&self) -> bool {
        self.first_year.is_some()
    }

    /// The year that the last two digits of `year` mean; itself where years are in full.
    fn full_year(&self, year: i32) -> i32 {
        self.first_year.map_or(year, |first| first + (year - first).rem_euclid(100))
    }

    /// Milliseconds since 1970; in UTC where the text has no offset.
    fn read(&self, text: &str) -> Option<i64> {
        let Written { local, offset } = self.written(text)?;
        moment::in_range(local.checked_sub(offset.unwrap_or(0))?)
    }

    /// The moment as it is written; midnight where it has no time of day.
    fn written(&self, text: &str) -> Option<Written> {
        let mut parsed = Parsed::new();
        chrono::format::parse(&mut parsed, text, self.items.iter()).ok()?;
        if self.first_year.is_some() {
            let year = self.full_year(parsed.year_mod_100()?);
            parsed.set_year(i64::from(year)).ok()?;
        }
        let date = parsed.to_naive_date().ok()?;
        // `%Y` also takes `16`, which is no year of our era's records.
        if !(1000..=9999).contains(&chrono::Datelike::year(&date)) {
            return None;
        }
        let timed = parsed.hour_mod_12().is_some() || parsed.minute().is_some() || parsed.second().is_some();
        let midnight = date.and_hms_opt(0, 0, 0)?;
        let moment = if timed { date.and_time(parsed.to_naive_time().ok()?) } else { midnight };
        let offset = parsed.offset().map(|seconds| i64::from(seconds) * 1000);
        Some(Written { local: moment.and_utc().timestamp_millis(), offset })
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

/// From what the times of an attribute count, and how.
#[derive(Clone, Debug)]
pub struct Base {
    /// The name of the attribute that they count from: a date or a timestamp of the same record.
    pub attribute: String,
    /// What a cell says.
    pub span: Span,
}

/// How much later than its base a time is.
#[derive(Clone, Debug)]
pub enum Span {
    /// A number in this unit.
    Number(Epoch),
    /// A time of day, on the day that the base is.
    Clock(Clock),
}

impl Span {
    /// Milliseconds.
    pub fn read(&self, text: &str) -> Option<i64> {
        match self {
            Self::Number(unit) => unit.read(text),
            Self::Clock(clock) => clock.read(text),
        }
    }

    /// For a fingerprint of the schema.
    pub fn description(&self) -> String {
        match self {
            Self::Number(unit) => format!("{unit:?}"),
            Self::Clock(clock) => format!("clock {:?}", clock.text),
        }
    }
}

/// Times of day that a format must tell apart: both halves of a day, and its first minute.
const TIMES: [(u32, u32); 4] = [(0, 20), (3, 4), (12, 30), (23, 59)];

/// A format of times of day in chrono's letters that reads back what it writes, to the minute at least.
#[derive(Clone, Debug)]
pub struct Clock {
    text: String,
    items: Vec<Item<'static>>,
}

impl Clock {
    /// Reads a format.
    ///
    /// # Errors
    /// What is wrong with it, and what to write instead.
    pub fn new(text: &str) -> Result<Self, String> {
        let items = StrftimeItems::new(text).parse_to_owned().map_err(|_| UNKNOWN.to_owned())?;
        let clock = Self { text: text.to_owned(), items };
        let reads_back = |(hour, minute): (u32, u32)| {
            let time = NaiveTime::from_hms_opt(hour, minute, 0)?;
            let mut written = String::new();
            write!(written, "{}", time.format_with_items(clock.items.iter())).ok()?;
            (clock.read(&written)? == i64::from(time.num_seconds_from_midnight()) * 1000).then_some(())
        };
        if TIMES.iter().all(|&time| reads_back(time).is_some()) {
            Ok(clock)
        } else {
            Err("no time of day by itself: beside `base` it needs hour and minute (such as %H:%M:%S, or %I:%M %p), and \
                 neither a date nor a time zone"
                .to_owned())
        }
    }

    /// Milliseconds since midnight.
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
        moment::push_rfc3339(&mut out, Format::new(format).unwrap().read(text)?);
        Some(out)
    }

    #[test]
    fn real_exports_are_read() {
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
    fn formats_that_do_not_say_enough_are_refused() {
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
            ("%Y-%m-%d %H:%M %Z", "names are not read"),
            ("%s", "epoch"),
            ("%Y-%m-%d %Q", "unknown letter"),
            ("", "without a year"),
            ("YYYY-MM-DD", "without a year"),
        ] {
            let error = Format::new(format).map(|f| f.text).unwrap_err();
            assert!(error.contains(says), "{format}: {error}");
        }
    }

    #[test]
    fn years_of_two_digits_lie_in_the_hundred_years_that_are_named() {
        for (first, format, text, date) in [
            (1970, "%m/%d/%y %H:%M:%S", "05/12/16 04:35:00", "2016-05-12T04:35:00"),
            (1970, "%d.%m.%y", "24.12.70", "1970-12-24"),
            (1970, "%d.%m.%y", "24.12.69", "2069-12-24"),
            (1927, "%d/%m/%y", "03/04/27", "1927-04-03"),
            (1927, "%D", "04/03/26", "2026-04-03"),
            (1950, "%y%m%d", "491231", "2049-12-31"),
        ] {
            let format = Format::from_year(format, Some(first)).expect("a format");
            assert_eq!(format.read(text), moment::parse(date), "{first} {text}");
            assert!(format.has_short_years() && format.read("29.02.23").is_none());
        }
        assert!(!Format::from_year("%Y-%m-%d", Some(1950)).expect("a format").has_short_years());
        assert!(Format::new("%m/%d/%y").is_err_and(|fault| fault.contains("first_year")));
    }

    #[test]
    fn local_times_are_those_of_their_zone() {
        let zone = Zone::named("America/New_York").expect("a zone");
        let formats = Dates::Formats(vec![Format::new("%m/%d/%Y %H:%M").expect("a format")]);
        for (dates, text, utc) in [
            (&Dates::Iso, "2024-07-15T08:00:00", "2024-07-15T12:00:00Z"),
            (&Dates::Iso, "2024-07-15T08:00:00Z", "2024-07-15T08:00:00Z"),
            (&Dates::Iso, "2024-07-15T08:00:00+02:00", "2024-07-15T06:00:00Z"),
            (&formats, "01/15/2024 08:00", "2024-01-15T13:00:00Z"),
        ] {
            assert_eq!(dates.read_in(text, Some(&zone)), moment::parse(utc), "{text}");
        }
    }

    #[test]
    fn formats_that_contradict_each_other_are_told() {
        let contradict = |one, other| Format::new(one).unwrap().contradicts(&Format::new(other).unwrap());
        assert!(contradict("%m/%d/%Y", "%d/%m/%Y"));
        assert!(contradict("%Y%m%d", "%Y%d%m"));
        assert!(!contradict("%m/%d/%Y", "%m/%d/%Y %I:%M:%S %p"));
        assert!(!contradict("%m/%d/%Y", "%d.%m.%Y"));
        assert!(!contradict("%Y-%m-%d %H:%M", "%Y-%m-%d"));
    }

    #[test]
    fn numbers_count_from_1970_in_their_unit_alone() {
        let noon = 1_621_857_600_000;
        for (epoch, text, millis) in [
            (Epoch::Seconds, "1621857600", noon),
            (Epoch::Seconds, "1621857600.0009", noon),
            (Epoch::Seconds, "1.6218576e9", noon),
            (Epoch::Seconds, "-0.0001", -1),
            (Epoch::Milliseconds, "1621857600000", noon),
            (Epoch::Microseconds, "1621857600000999", noon),
        ] {
            assert_eq!(Dates::Epoch(epoch).read(text), Some(millis), "{text}");
        }
        // Milliseconds taken for seconds lie beyond the year 9999.
        for text in ["1621857600000", "2021-05-24", "", "NaN", "inf", "1e99", "twelve"] {
            assert_eq!(Dates::Epoch(Epoch::Seconds).read(text), None, "{text}");
        }
        assert_eq!(Dates::Iso.read("1621857600"), None);
    }

    proptest! {
        /// Against chrono's own way of reading.
        #[test]
        fn agrees_with_the_reference(seconds in -30_000_000_000_i64..200_000_000_000) {
            let moment = chrono::DateTime::from_timestamp(seconds, 0).unwrap().naive_utc();
            for format in ["%m/%d/%Y %I:%M:%S %p", "%Y%m%d%H%M%S", "%d.%m.%Y %T", "%c"] {
                let text = moment.format(format).to_string();
                prop_assert_eq!(NaiveDateTime::parse_from_str(&text, format).unwrap(), moment);
                prop_assert_eq!(Format::new(format).unwrap().read(&text), Some(seconds * 1000), "{} {}", format, text);
            }
            let mut text = String::new();
            write!(text, "{seconds}").unwrap();
            prop_assert_eq!(Dates::Epoch(Epoch::Seconds).read(&text), Some(seconds * 1000));
        }
    }
}
