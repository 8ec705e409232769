//! Events of state that moves with its partition.

use super::labels::Outcome;
use super::metrics::clamped;
use super::status::Telemetry;

/// Newly assigned state was read from the changelog.
#[derive(Clone, Copy, Debug)]
pub struct StateRestored {
    /// Number of partitions.
    pub partitions: u64,
    /// Entries read.
    pub entries: u64,
    /// Withheld records, which now count as consumed.
    pub waiting: u64,
}

impl StateRestored {
    /// Logs and counts the event.
    pub fn emit(self, telemetry: &Telemetry) {
        let metrics = telemetry.metrics();
        {
            let mut board = telemetry.board();
            board.totals.consumed += self.waiting;
            board.held += self.waiting;
            metrics.flow.held.set(clamped(board.held));
        }
        metrics.flow.records.of(Outcome::Consumed).inc_by(self.waiting);
        if telemetry.may_log("state_restored", "") {
            let entries = telemetry.board().coarse.rounded_count("restored entries", self.entries);
            tracing::info!(
                partitions = self.partitions,
                entries,
                "state of partitions restored (a rounded number of entries)"
            );
        }
    }
}

/// Partitions were revoked.
#[derive(Clone, Copy, Debug)]
pub struct StateMoved {
    /// Withheld records, which now count as moved.
    pub waiting: u64,
}

impl StateMoved {
    /// Updates the metrics.
    pub fn emit(self, telemetry: &Telemetry) {
        let metrics = telemetry.metrics();
        let mut board = telemetry.board();
        board.totals.moved += self.waiting;
        board.held = board.held.saturating_sub(self.waiting);
        metrics.flow.held.set(clamped(board.held));
        drop(board);
        metrics.flow.records.of(Outcome::Moved).inc_by(self.waiting);
    }
}
