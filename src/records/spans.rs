//! How much later than another time of its record a time is: a number of a unit, or a time of day.

use std::fmt::Write as _;

use chrono::format::{Item, Parsed, StrftimeItems};
use chrono::{NaiveTime, Timelike};

use crate::records::dates::Epoch;

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
    pub(crate) fn read(&self, text: &str) -> Option<i64> {
        match self {
            Self::Number(unit) => unit.read(text),
            Self::Clock(clock) => clock.read(text),
        }
    }

    /// For a fingerprint of the schema.
    pub(crate) fn description(&self) -> String {
        match self {
            Self::Number(unit) => format!("{unit:?}"),
            Self::Clock(clock) => format!("clock {:?}", clock.text),
        }
    }
}

/// Times of day that a format must tell apart: both halves of a day, and its first minute.
const SAMPLES: [(u32, u32); 4] = [(0, 20), (3, 4), (12, 30), (23, 59)];

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
        let items = StrftimeItems::new(text).parse_to_owned();
        let items =
            items.map_err(|_| "no format: it has an unknown letter after %, see docs.rs/chrono (format::strftime)")?;
        let clock = Self { text: text.to_owned(), items };
        let reads_back = |(hour, minute): (u32, u32)| {
            let time = NaiveTime::from_hms_opt(hour, minute, 0)?;
            let mut written = String::new();
            write!(written, "{}", time.format_with_items(clock.items.iter())).ok()?;
            (clock.read(&written)? == i64::from(time.num_seconds_from_midnight()) * 1000).then_some(())
        };
        if SAMPLES.iter().all(|&sample| reads_back(sample).is_some()) {
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
