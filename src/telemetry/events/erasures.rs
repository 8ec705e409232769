//! Erasures of people.

use crate::telemetry::labels::{Label, Outcome};
use crate::telemetry::metrics::clamped;
use crate::telemetry::reason::RejectionReason;
use crate::telemetry::status::Telemetry;

/// People were taken out of the state. The line is the audit trail of it: it says when, and nothing of whom.
#[derive(Clone, Copy, Debug)]
pub struct SubjectsErased {
    /// How many were named; whether anything was known of them is not said.
    pub people: u64,
    /// How they were named: `command`, `page` or `topic`.
    pub by: &'static str,
    /// Records that waited and count as dropped now.
    pub dropped: u64,
    /// What it took.
    pub seconds: f64,
}

impl SubjectsErased {
    /// Tells the log and the metrics.
    pub fn emit(&self, telemetry: &Telemetry) {
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
        // Never limited: each of them is owed to somebody.
        tracing::info!(
            people = self.people,
            dropped_records = self.dropped,
            seconds = self.seconds,
            by = self.by,
            "people were erased from the state"
        );
    }
}

/// A message of the erasure topic names somebody.
#[derive(Clone, Copy, Debug)]
pub struct ErasureRequested;

impl ErasureRequested {
    /// Tells the metrics.
    pub fn emit(self, telemetry: &Telemetry) {
        telemetry.metrics().erasures.requests.inc();
    }
}

/// A message of the erasure topic names nobody. What it says stays unsaid.
#[derive(Clone, Copy, Debug)]
pub struct ErasureRefused {
    /// Where it is.
    pub partition: i32,
    /// Where it is there.
    pub offset: i64,
    /// Why.
    pub reason: RejectionReason,
}

impl ErasureRefused {
    /// Tells the log and the metrics.
    pub fn emit(self, telemetry: &Telemetry) {
        telemetry.metrics().erasures.refused.inc();
        if telemetry.may_log("erasure_refused", self.reason.as_str()) {
            let Self { partition, offset, reason } = self;
            let (reason, remedy) = (reason.name(), "name the person by the message's key, as the records do");
            tracing::warn!(partition, offset, reason, remedy, "a message of the erasure topic names nobody");
        }
    }
}

/// Messages of the erasure topic were gone before they had been read.
#[derive(Clone, Copy, Debug)]
pub struct ErasuresMissed<'a> {
    /// The partitions.
    pub partitions: &'a [i32],
}

impl ErasuresMissed<'_> {
    /// Tells the log and the metrics.
    pub fn emit(self, telemetry: &Telemetry) {
        telemetry.metrics().erasures.missed.inc_by(self.partitions.len() as u64);
        // Never limited: somebody may be owed what nobody reads any more.
        tracing::error!(
            partitions = ?self.partitions,
            remedy = "find out who was named meanwhile and name them again; let the topic keep its messages for longer than an instance is ever down",
            "messages of the erasure topic were gone before this instance had read them"
        );
    }
}

/// Messages of the erasure topic that have not been acted on.
#[derive(Clone, Copy, Debug)]
pub struct ErasureLag {
    /// How many; none where the broker does not tell.
    pub records: Option<u64>,
}

impl ErasureLag {
    /// Tells the metrics.
    pub fn emit(self, telemetry: &Telemetry) {
        telemetry.metrics().erasures.lag.set(self.records.map_or(f64::NAN, |records| records as f64));
    }
}

/// People whom the topic names could not be erased. Nothing of it has happened; it is tried again.
#[derive(Clone, Copy)]
pub struct ErasureFailed<'a> {
    /// Why, and what to do.
    pub why: &'a dyn std::fmt::Display,
}

impl ErasureFailed<'_> {
    /// Tells the log and the metrics.
    pub fn emit(self, telemetry: &Telemetry) {
        telemetry.metrics().erasures.failed.inc();
        tracing::error!(why = %self.why, "people whom the erasure topic names could not be erased; it is tried again");
    }
}
