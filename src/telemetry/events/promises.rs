//! Verification, the state, and limits that were reached.

use crate::telemetry::labels::{Label, Limit};
use crate::telemetry::metrics::clamped;
use crate::telemetry::status::Telemetry;

/// Verification refused a batch. A defect of the treatment or the plan: it must not happen, and nothing was released.
#[derive(Clone, Copy, Debug)]
pub struct VerificationRefused {
    /// Fragments that did not satisfy the release invariant.
    pub violations: u64,
}

impl VerificationRefused {
    /// Tells the log and the metrics.
    pub fn emit(&self, telemetry: &Telemetry) {
        telemetry.board().refusals += 1;
        telemetry.metrics().health.refusals.inc();
        telemetry.metrics().health.violations.inc_by(self.violations);
        if telemetry.may_log("verification_refused", "") {
            tracing::error!(violations = self.violations, "verification refused a batch; nothing of it was released");
        }
    }
}

/// The durable state was read at the start.
#[derive(Clone, Copy, Debug, Default)]
pub struct StateRecovered {
    /// The last committed batch.
    pub sequence: u64,
    /// Batch deltas replayed upon the snapshot.
    pub deltas: u64,
    /// What reading took.
    pub seconds: f64,
    /// State on disk.
    pub bytes: u64,
}

impl StateRecovered {
    /// Tells the log and the metrics.
    pub fn emit(&self, telemetry: &Telemetry) {
        let metrics = telemetry.metrics();
        metrics.flow.batch_sequence.set(clamped(self.sequence));
        metrics.memory.state_recovered_deltas.set(clamped(self.deltas));
        metrics.memory.state_recovery_seconds.set(self.seconds);
        let bytes = telemetry.board().coarse.bytes("state bytes", self.bytes);
        metrics.memory.state_bytes.set(clamped(bytes));
        if telemetry.may_log("state_recovered", "") {
            let (sequence, deltas) = (self.sequence, self.deltas);
            tracing::info!(sequence, deltas, seconds = self.seconds, bytes, "state recovered");
        }
    }
}

/// A stated limit was reached: reading slows down, or records are suppressed.
#[derive(Clone, Copy, Debug)]
pub struct LimitReached {
    /// Which.
    pub limit: Limit,
}

impl LimitReached {
    /// Tells the log and the metrics.
    pub fn emit(&self, telemetry: &Telemetry) {
        let second = telemetry.second();
        if !telemetry.board().coarse.may_count(second, self.limit) {
            return;
        }
        telemetry.metrics().health.limits.of(self.limit).inc();
        if telemetry.may_log("limit_reached", self.limit.as_str()) {
            tracing::warn!(limit = self.limit.as_str(), "a limit is reached");
        }
    }
}
