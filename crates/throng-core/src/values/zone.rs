//! Named time zones: from the local time of a clock to UTC, with daylight saving as the IANA database knows it.

use crate::values::moment;
use chrono::{DateTime, Duration, LocalResult, NaiveDateTime, TimeZone as _};
use chrono_tz::Tz;

/// Hours within which a time that a clock skips is followed by one that it shows; Samoa skipped a whole day.
const LONGEST_SKIP: i64 = 25;

/// A time zone of the IANA database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Zone(Tz);

impl Zone {
    /// The zone of a name such as `Europe/Zurich`.
    pub fn named(name: &str) -> Option<Self> {
        name.parse().ok().map(Self)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        self.0.name()
    }

    /// Milliseconds since 1970 in UTC of a local time, which is given as if it were UTC.
    ///
    /// Of a time that the clock shows twice, when it is set back, the first is taken. A time that it skips, when it is set forward, is
    /// read by the offset before (RFC 5545): 02:30 in such a night is 03:30. None outside the years 1 to 9999.
    pub fn utc(self, local: i64) -> Option<i64> {
        let local = DateTime::from_timestamp_millis(local)?.naive_utc();
        let millis = match self.0.from_local_datetime(&local) {
            LocalResult::Single(at) | LocalResult::Ambiguous(at, _) => at.timestamp_millis(),
            LocalResult::None => self.skipped(local)?,
        };
        moment::in_range(millis)
    }

    fn skipped(self, local: NaiveDateTime) -> Option<i64> {
        (1..=LONGEST_SKIP).find_map(|hours| {
            let before = Duration::hours(hours);
            let at = self.0.from_local_datetime(&local.checked_sub_signed(before)?).latest()?;
            at.checked_add_signed(before).map(|at| at.timestamp_millis())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn utc(zone: &str, local: &str) -> String {
        let millis = moment::parse(local).and_then(|local| Zone::named(zone).expect("a zone").utc(local));
        let mut text = String::new();
        moment::push_rfc3339(&mut text, millis.expect("a moment"));
        text
    }

    #[test]
    fn daylight_saving_is_heeded() {
        for (zone, local, expected) in [
            ("Europe/Zurich", "2024-01-15T12:00", "2024-01-15T11:00:00Z"),
            ("Europe/Zurich", "2024-07-15T12:00", "2024-07-15T10:00:00Z"),
            // Shown twice: the first.
            ("Europe/Zurich", "2024-10-27T02:30", "2024-10-27T00:30:00Z"),
            ("Europe/Zurich", "2024-10-27T03:00", "2024-10-27T02:00:00Z"),
            // Skipped: by the offset before.
            ("Europe/Zurich", "2024-03-31T02:30", "2024-03-31T01:30:00Z"),
            ("Europe/Zurich", "2024-03-31T03:30", "2024-03-31T01:30:00Z"),
            ("America/New_York", "2024-03-10T02:15", "2024-03-10T07:15:00Z"),
            ("Asia/Kolkata", "2024-07-15T05:30", "2024-07-15T00:00:00Z"),
            // A day that never was.
            ("Pacific/Apia", "2011-12-30T12:00", "2011-12-30T22:00:00Z"),
            ("UTC", "2024-07-15T05:30", "2024-07-15T05:30:00Z"),
        ] {
            assert_eq!(utc(zone, local), expected, "{zone} {local}");
        }
        assert!(Zone::named("Mars/Olympus").is_none() && Zone::named("").is_none());
    }
}
