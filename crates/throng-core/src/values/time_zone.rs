//! IANA time zones.

use crate::values::moment;
use chrono::{DateTime, Duration, LocalResult, NaiveDateTime, TimeZone as _};
use chrono_tz::Tz;

/// Samoa skipped one day.
const MAX_GAP_HOURS: i64 = 25;

/// IANA time zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NamedZone(Tz);

impl NamedZone {
    /// Returns the zone of a name such as `Europe/Zurich`.
    pub fn from_name(name: &str) -> Option<Self> {
        name.parse().ok().map(Self)
    }

    /// Returns the name.
    pub fn name(self) -> &'static str {
        self.0.name()
    }

    /// Converts local to UTC milliseconds since 1970.
    ///
    /// Repeated times are the first one; skipped times have the earlier offset (RFC 5545): 02:30 is 03:30.
    pub fn utc(self, local: i64) -> Option<i64> {
        let local = DateTime::from_timestamp_millis(local)?.naive_utc();
        let millis = match self.0.from_local_datetime(&local) {
            LocalResult::Single(at) | LocalResult::Ambiguous(at, _) => at.timestamp_millis(),
            LocalResult::None => self.resolve_gap(local)?,
        };
        moment::in_range(millis)
    }

    fn resolve_gap(self, local: NaiveDateTime) -> Option<i64> {
        (1..=MAX_GAP_HOURS).find_map(|hours| {
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
        let millis = moment::parse(local).and_then(|local| NamedZone::from_name(zone).expect("a zone").utc(local));
        let mut text = String::new();
        moment::push_rfc3339(&mut text, millis.expect("a moment"));
        text
    }

    #[test]
    fn daylight_saving_time_is_applied() {
        for (zone, local, expected) in [
            ("Europe/Zurich", "2024-01-15T12:00", "2024-01-15T11:00:00Z"),
            ("Europe/Zurich", "2024-07-15T12:00", "2024-07-15T10:00:00Z"),
            // Repeated time.
            ("Europe/Zurich", "2024-10-27T02:30", "2024-10-27T00:30:00Z"),
            ("Europe/Zurich", "2024-10-27T03:00", "2024-10-27T02:00:00Z"),
            // Skipped time.
            ("Europe/Zurich", "2024-03-31T02:30", "2024-03-31T01:30:00Z"),
            ("Europe/Zurich", "2024-03-31T03:30", "2024-03-31T01:30:00Z"),
            ("America/New_York", "2024-03-10T02:15", "2024-03-10T07:15:00Z"),
            ("Asia/Kolkata", "2024-07-15T05:30", "2024-07-15T00:00:00Z"),
            ("Pacific/Apia", "2011-12-30T12:00", "2011-12-30T22:00:00Z"),
            ("UTC", "2024-07-15T05:30", "2024-07-15T05:30:00Z"),
        ] {
            assert_eq!(utc(zone, local), expected, "{zone} {local}");
        }
        assert!(NamedZone::from_name("Mars/Olympus").is_none() && NamedZone::from_name("").is_none());
    }
}
