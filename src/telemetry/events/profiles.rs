//! Profiles that are read, and those that are refused.

use crate::telemetry::labels::Label;
use crate::telemetry::reason::RejectionReason;
use crate::telemetry::status::Telemetry;

/// How far the reading of profiles at a start has come.
#[derive(Clone, Copy, Debug)]
pub struct ProfilesRead<'a> {
    /// The join.
    pub join: &'a str,
    /// People whose profile has been read.
    pub people: u64,
    /// All there were.
    pub done: bool,
}

impl ProfilesRead<'_> {
    /// Tells the log.
    pub fn emit(&self, telemetry: &Telemetry) {
        let people = telemetry.board().coarse.count("profiles", self.people);
        let join = self.join;
        if self.done {
            tracing::info!(join, people, "profiles read (a rounded number of people)");
        } else {
            tracing::info!(
                join,
                people,
                "profiles are being read; no batch begins before (a rounded number of people)"
            );
        }
    }
}

/// A profile, or the removal of one, was read from a topic.
#[derive(Clone, Copy, Debug)]
pub struct ProfileUpdate;

impl ProfileUpdate {
    /// Tells the metrics.
    pub fn emit(self, telemetry: &Telemetry) {
        telemetry.metrics().profiles.updates.inc();
    }
}

/// A profile could not be read. What it says stays unsaid.
#[derive(Clone, Debug)]
pub struct ProfileRefused<'a> {
    /// The join.
    pub join: &'a str,
    /// `record 17`, or `partition 2, offset 16`.
    pub place: String,
    /// Why.
    pub reason: RejectionReason,
    /// Whose it is could be read: what was known of the person before holds no longer. Else nobody's profile changes.
    pub named: bool,
}

impl ProfileRefused<'_> {
    /// Tells the log and the metrics.
    pub fn emit(&self, telemetry: &Telemetry) {
        telemetry.metrics().profiles.refused.of(self.reason.counted_as()).inc();
        if telemetry.may_log("profile_refused", self.reason.as_str()) {
            let Self { join, place, reason, named } = self;
            let (reason, remedy) = (reason.name(), reason.remedy());
            if *named {
                tracing::warn!(
                    join,
                    place,
                    reason,
                    remedy,
                    "a profile cannot be read: the cells of its person are missing"
                );
            } else {
                tracing::warn!(join, place, reason, remedy, "a profile cannot be read and is not taken");
            }
        }
    }
}

/// Messages that topics of profiles have and that have not been read.
#[derive(Clone, Copy, Debug)]
pub struct ProfilesLag<'a> {
    /// The join.
    pub join: &'a str,
    /// How many; none where the broker does not tell.
    pub records: Option<u64>,
}

impl ProfilesLag<'_> {
    /// Tells the metrics, which have the sum over all joins.
    pub fn emit(self, telemetry: &Telemetry) {
        let all = {
            let lags = &mut telemetry.board().profile_lags;
            lags.insert(self.join.to_owned(), self.records);
            lags.values().copied().sum::<Option<u64>>()
        };
        telemetry.metrics().profiles.lag.set(all.map_or(f64::NAN, |records| records as f64));
    }
}
