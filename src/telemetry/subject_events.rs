//! Events of erasures and profiles.

use super::labels::{Label, Outcome};
use super::metrics::clamped;
use super::reason::RejectionReason;
use super::status::Telemetry;

/// Subjects were erased. The log line is the audit trail, without the subjects.
#[derive(Clone, Copy, Debug)]
pub struct SubjectsErased {
    /// Named subjects, known or not.
    pub people: u64,
    /// Channel: `command`, `page` or `topic`.
    pub by: &'static str,
    /// Withheld records, now dropped.
    pub dropped: u64,
    /// Those of `dropped` already counted with a batch.
    pub counted: u64,
    /// Duration.
    pub seconds: f64,
}

impl SubjectsErased {
    /// Logs and counts it, without a limit.
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
    /// Reason for a message without a subject.
    pub refused: Option<RejectionReason>,
}

impl ErasureMessage {
    /// Counts it; logs a refusal without the content.
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

/// Unread messages of these erasure partitions were deleted.
#[derive(Clone, Copy, Debug)]
pub struct ErasuresMissed<'a>(pub &'a [i32]);

impl ErasuresMissed<'_> {
    /// Logs and counts it, without a limit.
    pub fn emit(self, telemetry: &Telemetry) {
        telemetry.metrics().erasures.missed.inc_by(self.0.len() as u64);
        tracing::error!(
            partitions = ?self.0,
            remedy = "name the people of the deleted messages again; set the retention of the topic above the longest downtime of an instance",
            "messages of the erasure topic were deleted before this instance read them"
        );
    }
}

/// Unprocessed messages of the erasure topic, if known.
#[derive(Clone, Copy, Debug)]
pub struct ErasureLag(pub Option<u64>);

impl ErasureLag {
    /// Sets the gauge.
    pub fn emit(self, telemetry: &Telemetry) {
        telemetry.metrics().erasures.lag.set(self.0.map_or(f64::NAN, |records| records as f64));
    }
}

/// An erasure failed for this reason; it is retried, and the state is unchanged.
#[derive(Clone, Copy)]
pub struct ErasureFailed<'a>(pub &'a dyn std::fmt::Display);

impl ErasureFailed<'_> {
    /// Logs and counts the event.
    pub fn emit(self, telemetry: &Telemetry) {
        telemetry.metrics().erasures.failed.inc();
        tracing::error!(why = %self.0, "people named in the erasure topic could not be erased: retrying");
    }
}

/// Progress of reading profiles.
#[derive(Clone, Copy, Debug)]
pub struct ProfilesRead<'a> {
    /// Name of the join.
    pub join: &'a str,
    /// Subjects read so far.
    pub people: u64,
    /// All are read.
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

/// A profile was read or removed.
#[derive(Clone, Copy, Debug)]
pub struct ProfileUpdate;

impl ProfileUpdate {
    /// Updates the metrics.
    pub fn emit(self, telemetry: &Telemetry) {
        telemetry.metrics().profiles.updates.inc();
    }
}

/// A profile was unreadable. Its content is not logged.
#[derive(Clone, Debug)]
pub struct ProfileRefused<'a> {
    /// Name of the join.
    pub join: &'a str,
    /// Position: `record 17`, or `partition 2, offset 16`.
    pub place: String,
    /// Reason.
    pub reason: RejectionReason,
    /// The subject was readable; its earlier profile is invalid.
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

/// Unread messages in profile topics.
#[derive(Clone, Copy, Debug)]
pub struct ProfilesLag<'a> {
    /// Name of the join.
    pub join: &'a str,
    /// Messages, if the broker reports them.
    pub records: Option<u64>,
}

impl ProfilesLag<'_> {
    /// Sets the sum over all joins.
    pub fn emit(self, telemetry: &Telemetry) {
        let all = {
            let lags = &mut telemetry.board().profile_lags;
            lags.insert(self.join.to_owned(), self.records);
            lags.values().copied().sum::<Option<u64>>()
        };
        telemetry.metrics().profiles.lag.set(all.map_or(f64::NAN, |records| records as f64));
    }
}
