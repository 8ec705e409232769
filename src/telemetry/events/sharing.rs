//! What instances of a group tell each other in the shared ledger.

use crate::telemetry::labels::{Direction, ForeignReason, Label};
use crate::telemetry::status::Telemetry;

/// How far the reading of the ledger topic at a start has come.
#[derive(Clone, Copy, Debug)]
pub struct SharedLedgerRead {
    /// Records read so far.
    pub records: u64,
    /// All there were.
    pub done: bool,
}

impl SharedLedgerRead {
    /// Tells the log.
    pub fn emit(self) {
        let records = self.records;
        if self.done {
            tracing::info!(records, "shared ledger read");
        } else {
            tracing::info!(records, "the shared ledger is being read; the first batch waits for it");
        }
    }
}

/// The first batch has waited for long enough: what has not been read yet supports nothing yet.
#[derive(Clone, Copy, Debug)]
pub struct SharedLedgerLate;

impl SharedLedgerLate {
    /// Tells the log.
    pub fn emit(self) {
        tracing::warn!(
            "the shared ledger is not read to its end yet: batches go on, with what has been read of it (see throng_shared_ledger_lag_records)"
        );
    }
}

/// A record of another instance counts here.
#[derive(Clone, Copy, Debug)]
pub struct SharedLedgerHeard {
    /// Its bytes.
    pub bytes: u64,
}

impl SharedLedgerHeard {
    /// Tells the metrics.
    pub fn emit(self, telemetry: &Telemetry) {
        let sharing = &telemetry.metrics().sharing;
        sharing.records.of(Direction::In).inc();
        sharing.bytes.of(Direction::In).inc_by(self.bytes);
    }
}

/// Records of ours were committed with a batch.
#[derive(Clone, Copy, Debug)]
pub struct SharedLedgerTold {
    /// How many.
    pub records: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl SharedLedgerTold {
    /// Tells the metrics.
    pub fn emit(self, telemetry: &Telemetry) {
        let sharing = &telemetry.metrics().sharing;
        sharing.records.of(Direction::Out).inc_by(self.records);
        sharing.bytes.of(Direction::Out).inc_by(self.bytes);
    }
}

/// What another instance has told does not count here.
#[derive(Clone, Copy, Debug)]
pub struct ForeignIgnored<'a> {
    /// The instance, as the record names it.
    pub instance: &'a str,
    /// Why.
    pub reason: ForeignReason,
}

impl ForeignIgnored<'_> {
    /// Tells the log and the metrics.
    pub fn emit(self, telemetry: &Telemetry) {
        telemetry.metrics().sharing.ignored.of(self.reason).inc();
        if telemetry.may_log("ledger_foreign", self.reason.as_str()) {
            let Self { instance, reason } = self;
            let reason = reason.as_str();
            tracing::warn!(instance, reason, "what another instance has released does not count here (docs/scale.md)");
        }
    }
}

/// How far the reading of the ledger topic is behind.
#[derive(Clone, Copy, Debug)]
pub struct SharedLedgerLag {
    /// Records; none where the broker does not tell.
    pub records: Option<u64>,
}

impl SharedLedgerLag {
    /// Tells the metrics.
    pub fn emit(self, telemetry: &Telemetry) {
        telemetry.metrics().sharing.lag.set(self.records.map_or(f64::NAN, |records| records as f64));
    }
}
