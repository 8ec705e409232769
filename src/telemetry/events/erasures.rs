//! Erasures of people.

use crate::telemetry::labels::{Label, Outcome};
use crate::telemetry::metrics::clamped;
use crate::telemetry::reason::RejectionReason;
use crate::telemetry::status::Telemetry;

/// People were erased from the state. The log line is the audit trail: it says when, and not whom.
#[derive(Clone, Copy, Debug)]
pub struct SubjectsErased {
    /// Number of named people, known or not.
    pub people: u64,
    /// Way of the request: `command`, `page` or `topic`.
    pub by: &'static str,
    /// Held records that count as dropped now.
    pub dropped: u64,
    /// Duration.
    pub seconds: f64,
}

impl SubjectsErased {
    /// Writes the log line, never limited, and counts.
    pub fn emit(self, telemetry: &Telemetry) {
        let metrics = telemetry.metrics();
        {
            let mut board = telemetry.board();
            board.totals.dropped += self.dropped;
            board.held = board.held.saturating_sub(self.dropped);
            metrics.flow.held.set(clamped(board.held));
        }
        metrics.flow.records.of(Outcome::Dropped).inc_by(self.dropped);
        metrics.erasures.done.inc();
        metrics.erasures.dropped.inc_by(self.dropped);
        let Self { people, by, dropped, seconds } = self;
        tracing::info!(people, dropped_records = dropped, seconds, by, "people were erased from the state");
    }
}

/// A message of the erasure topic was read.
#[derive(Clone, Copy, Debug)]
pub struct ErasureMessage {
    /// Its partition.
    pub partition: i32,
    /// Its offset.
    pub offset: i64,
    /// Why it names nobody; none where it names a person.
    pub refused: Option<RejectionReason>,
}

impl ErasureMessage {
    /// Counts it; logs a refused one, but none of its content.
    pub fn emit(self, telemetry: &Telemetry) {
        let metrics = &telemetry.metrics().erasures;
        let Self { partition, offset, refused } = self;
        let Some(reason) = refused else { return metrics.requests.inc() };
        metrics.refused.inc();
        if telemetry.may_log("erasure_refused", reason.as_str()) {
            let (reason, remedy) = (reason.name(), "name the person by the message's key, as the records do");
            tracing::warn!(partition, offset, reason, remedy, "a message of the erasure topic names nobody");
        }
    }
}

/// Messages of these partitions of the erasure topic were deleted before they had been read.
#[derive(Clone, Copy, Debug)]
pub struct ErasuresMissed<'a>(pub &'a [i32]);

impl ErasuresMissed<'_> {
    /// Writes the log line, never limited, and counts.
    pub fn emit(self, telemetry: &Telemetry) {
        telemetry.metrics().erasures.missed.inc_by(self.0.len() as u64);
        tracing::error!(
            partitions = ?self.0,
            remedy = "find out who was named meanwhile and name them again; let the topic keep its messages for longer than an instance is ever down",
            "messages of the erasure topic were gone before this instance had read them"
        );
    }
}

/// Number of messages of the erasure topic that have not been acted on; none if it is unknown.
#[derive(Clone, Copy, Debug)]
pub struct ErasureLag(pub Option<u64>);

impl ErasureLag {
    /// Sets the gauge.
    pub fn emit(self, telemetry: &Telemetry) {
        telemetry.metrics().erasures.lag.set(self.0.map_or(f64::NAN, |records| records as f64));
    }
}

/// People of the erasure topic could not be erased, for this reason. The state is unchanged, and the erasure is tried again.
#[derive(Clone, Copy)]
pub struct ErasureFailed<'a>(pub &'a dyn std::fmt::Display);

impl ErasureFailed<'_> {
    /// Writes the log line and counts.
    pub fn emit(self, telemetry: &Telemetry) {
        telemetry.metrics().erasures.failed.inc();
        tracing::error!(why = %self.0, "people whom the erasure topic names could not be erased; it is tried again");
    }
}
