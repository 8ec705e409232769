//! Erasures of people.

use crate::telemetry::labels::Outcome;
use crate::telemetry::metrics::clamped;
use crate::telemetry::status::Telemetry;

/// People were taken out of the state. The line is the audit trail of it: it says when, and nothing of whom.
#[derive(Clone, Copy, Debug)]
pub struct SubjectsErased {
    /// How many were named; whether anything was known of them is not said.
    pub people: u64,
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
        metrics.memory.erasures.inc();
        metrics.memory.erased_held.inc_by(self.dropped);
        // Never limited: each of them is owed to somebody.
        tracing::info!(
            people = self.people,
            dropped_records = self.dropped,
            seconds = self.seconds,
            "people were erased from the state"
        );
    }
}
