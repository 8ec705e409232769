//! Events of state that follows its partition.

use super::labels::Outcome;
use super::metrics::clamped;
use super::status::Telemetry;

/// The state of partitions that have come was read from the changelog.
#[derive(Clone, Copy, Debug)]
pub struct StateRestored {
    /// Number of partitions.
    pub partitions: u64,
    /// Entries that were read.
    pub entries: u64,
    /// Records among them that wait and of which nothing has left. They count as consumed here.
    pub waiting: u64,
}

impl StateRestored {
    /// Tells the log and the metrics.
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
            let entries = telemetry.board().coarse.count("restored entries", self.entries);
            tracing::info!(
                partitions = self.partitions,
                entries,
                "state of partitions restored (a rounded number of entries)"
            );
        }
    }
}

/// Partitions have gone, with the records that wait.
#[derive(Clone, Copy, Debug)]
pub struct StateMoved {
    /// Records that wait and of which nothing has left. They count as moved here.
    pub waiting: u64,
}

impl StateMoved {
    /// Tells the metrics.
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
