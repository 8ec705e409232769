//! Events of subjects: erasures, and profile reads.

use super::labels::{Label, Outcome};
use super::metrics::clamped;
use super::reason::RejectionReason;
use super::status::Telemetry;

/// Subjects were erased from the state. The log line is the audit trail: it contains the time and not the subjects.
#[derive(Clone, Copy, Debug)]
pub struct SubjectsErased {
    /// Number of named subjects, known or not.
    pub people: u64,
    /// Channel of the request: `command`, `page` or `topic`.
    pub by: &'static str,
    /// Withheld records that now count as dropped.
    pub dropped: u64,
    /// Those of `dropped` that were already counted with a batch.
    pub counted: u64,
    /// Duration.
    pub seconds: f64,
}

impl SubjectsErased {
    /// Logs and counts the event, without a log limit.
    pub fn emit(self, telemetry: &Telemetry) {
        let metrics = telemetry.metrics();
        {
            let mut board = telemetry.board();
            board.totals.dropped += self.dropped - self.counted;
            board.held = board.held.saturating_sub(self.dropped - self.counted);
            metrics.flow.held.set(clamped(board.held));
        }
        metrics.flow.records.of(Outcome::Dropped).inc_by(self.dropped - self.counted);
        metrics.erasures.done.inc();
        metrics.erasures.dropped.inc_by(self.dropped);
        let Self { people, by, dropped, seconds, .. } = self;
        tracing::info!(people, dropped_records = dropped, seconds, by, "people were erased from the state");
    }
}

/// A message of the erasure topic was read.
#[derive(Clone, Copy, Debug)]
pub struct ErasureMessage {
    /// Partition of the message.
    pub partition: i32,
    /// Offset of the message.
    pub offset: i64,
    /// Reason for a message without a subject; None if it names one.
    pub refused: Option<RejectionReason>,
}

impl ErasureMessage {
    /// Counts the message. Logs a refused one without its content.
    pub fn emit(self, telemetry: &Telemetry) {
        let metrics = &telemetry.metrics().erasures;
        let Self { partition, offset, refused } = self;
        let Some(reason) = refused else { return metrics.requests.inc() };
        metrics.refused.inc();
        if telemetry.may_log("erasure_refused", reason.as_str()) {
            let (reason, remedy) = (reason.name(), "set the message key to the subject, as the records name it");
            tracing::warn!(partition, offset, reason, remedy, "a message of the erasure topic names no subject");
        }
    }
}

/// Messages of these partitions of the erasure topic were deleted before they had been read.
#[derive(Clone, Copy, Debug)]
pub struct ErasuresMissed<'a>(pub &'a [i32]);

impl ErasuresMissed<'_> {
    /// Logs and counts the event, without a log limit.
    pub fn emit(self, telemetry: &Telemetry) {
        telemetry.metrics().erasures.missed.inc_by(self.0.len() as u64);
        tracing::error!(
            partitions = ?self.0,
            remedy = "name the people of the deleted messages again; set the retention of the topic above the longest downtime of an instance",
            "messages of the erasure topic were deleted before this instance read them"
        );
    }
}

/// Number of messages of the erasure topic that have not been processed; None if unknown.
#[derive(Clone, Copy, Debug)]
pub struct ErasureLag(pub Option<u64>);

impl ErasureLag {
    /// Sets the gauge.
    pub fn emit(self, telemetry: &Telemetry) {
        telemetry.metrics().erasures.lag.set(self.0.map_or(f64::NAN, |records| records as f64));
    }
}

/// Subjects of the erasure topic could not be erased, for this reason. The state is unchanged, and the erasure is
/// retried.
#[derive(Clone, Copy)]
pub struct ErasureFailed<'a>(pub &'a dyn std::fmt::Display);

impl ErasureFailed<'_> {
    /// Logs and counts the event.
    pub fn emit(self, telemetry: &Telemetry) {
        telemetry.metrics().erasures.failed.inc();
        tracing::error!(why = %self.0, "people named in the erasure topic could not be erased: retrying");
    }
}

/// Progress of reading profiles at the start.
#[derive(Clone, Copy, Debug)]
pub struct ProfilesRead<'a> {
    /// Name of the join.
    pub join: &'a str,
    /// Number of subjects with a profile read so far.
    pub people: u64,
    /// All profiles have been read.
    pub done: bool,
}

impl ProfilesRead<'_> {
    /// Logs the event.
    pub fn emit(&self, telemetry: &Telemetry) {
        let people = telemetry.board().coarse.rounded_count("profiles", self.people);
        let join = self.join;
        if self.done {
            tracing::info!(join, people, "profiles read (a rounded number of people)");
        } else {
            tracing::info!(
                join,
                people,
                "reading profiles: the first batch waits for them (a rounded number of people)"
            );
        }
    }
}

/// A profile, or the removal of one, was read from a topic.
#[derive(Clone, Copy, Debug)]
pub struct ProfileUpdate;

impl ProfileUpdate {
    /// Updates the metrics.
    pub fn emit(self, telemetry: &Telemetry) {
        telemetry.metrics().profiles.updates.inc();
    }
}

/// A profile could not be read. Its content is not logged.
#[derive(Clone, Debug)]
pub struct ProfileRefused<'a> {
    /// Name of the join.
    pub join: &'a str,
    /// Position of the profile: `record 17`, or `partition 2, offset 16`.
    pub place: String,
    /// Reason of the refusal.
    pub reason: RejectionReason,
    /// The subject could be read, so its earlier profile is no longer valid. Otherwise no profile changes.
    pub named: bool,
}

impl ProfileRefused<'_> {
    /// Logs and counts the event.
    pub fn emit(&self, telemetry: &Telemetry) {
        telemetry.metrics().profiles.refused.of(self.reason.counted_reason()).inc();
        if telemetry.may_log("profile_refused", self.reason.as_str()) {
            let Self { join, place, reason, named } = self;
            let (reason, remedy) = (reason.name(), reason.remedy());
            if *named {
                tracing::warn!(
                    join,
                    place,
                    reason,
                    remedy,
                    "a profile cannot be read: the joined cells of its person are missing"
                );
            } else {
                tracing::warn!(join, place, reason, remedy, "a profile cannot be read and is skipped");
            }
        }
    }
}

/// Number of unread messages in topics of profiles.
#[derive(Clone, Copy, Debug)]
pub struct ProfilesLag<'a> {
    /// Name of the join.
    pub join: &'a str,
    /// Number of messages; None if the broker does not report it.
    pub records: Option<u64>,
}

impl ProfilesLag<'_> {
    /// Sets the metric, the sum over all joins.
    pub fn emit(self, telemetry: &Telemetry) {
        let all = {
            let lags = &mut telemetry.board().profile_lags;
            lags.insert(self.join.to_owned(), self.records);
            lags.values().copied().sum::<Option<u64>>()
        };
        telemetry.metrics().profiles.lag.set(all.map_or(f64::NAN, |records| records as f64));
    }
}
