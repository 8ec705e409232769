//! Events of verification, of the state and its disk, of limits that were reached, and of policies.

use super::labels::{Label, Limit, ReloadOutcome};
use super::metrics::clamped;
use super::status::{LastReload, Telemetry};
use std::time::{SystemTime, UNIX_EPOCH};
use throng_core::printable::printable;

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

impl Telemetry {
    /// Whether a limit was reached since the start of the process.
    pub fn has_reached(&self, limit: Limit) -> bool {
        self.metrics().health.limits.of(limit).get() > 0
    }
}

/// A policy is in force from the next batch on.
#[derive(Clone, Copy, Debug)]
pub struct PolicyInForce<'a> {
    /// Its digest.
    pub digest: &'a str,
    /// Its `privacy.k`.
    pub k: usize,
    /// Its `release.min_represented`; 0 where nothing is released.
    pub min_represented: f64,
    /// Whether records that could not be read count in the share that the release represents: the source is files or standard input.
    pub judges_unreadable: bool,
    /// Whether only series leave.
    pub only_series: bool,
}

impl PolicyInForce<'_> {
    /// Tells the pages, the metrics and the log.
    pub fn emit(&self, telemetry: &Telemetry) {
        telemetry.set_policy(self.digest, self.k);
        telemetry.set_release(self.min_represented, self.judges_unreadable, self.only_series);
        if telemetry.may_log("policy", "") {
            tracing::info!(policy = self.digest, k = self.k, "policy in force");
        }
    }
}

/// Somebody asked for the configuration to be read anew.
#[derive(Clone, Debug)]
pub struct Reloaded<'a> {
    /// What became of it.
    pub outcome: ReloadOutcome,
    /// Names of the keys that have changed.
    pub changed: &'a [String],
    /// Why it was refused: names, places and remedies.
    pub reasons: &'a [String],
    /// Seconds of validation and tests, and of the pause between the old pipeline's end and the new one's begin.
    pub seconds: (f64, f64),
}

impl Reloaded<'_> {
    /// Tells the pages, the metrics and the log.
    pub fn emit(&self, telemetry: &Telemetry) {
        let at = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        telemetry.set_last_reload(LastReload { at_seconds: at, outcome: self.outcome });
        let health = &telemetry.metrics().health;
        health.reloads.of(self.outcome).inc();
        health.reload_refused.set(i64::from(self.outcome == ReloadOutcome::Refused));
        health.reload_time.set(at as f64);
        let ((validating, pause), changed) = (self.seconds, printable(&self.changed.join(", ")));
        match self.outcome {
            ReloadOutcome::Replaced => {
                tracing::info!(changed, validating, pause, "a new configuration is in force");
            }
            ReloadOutcome::Unchanged => tracing::info!(validating, "configuration reloaded, no changes"),
            ReloadOutcome::Refused => {
                for reason in self.reasons {
                    tracing::error!(reason = printable(reason), "the new configuration is refused, the old one stays");
                }
            }
        }
    }
}

/// The state directory does not answer; it is waited for a while. Readiness: the state answers.
#[derive(Clone, Copy, Debug)]
pub struct StateStalled {
    /// How long it has not answered.
    pub seconds: f64,
}

impl StateStalled {
    /// Tells the log and the metrics.
    pub fn emit(&self, telemetry: &Telemetry) {
        telemetry.set_readiness(|readiness| readiness.state_failed = true);
        if telemetry.may_log("state_stalled", "") {
            tracing::warn!(
                seconds = self.seconds,
                "the disk of the state directory does not answer; nothing leaves until it does"
            );
        }
    }
}

/// It answers again.
#[derive(Clone, Copy, Debug)]
pub struct StateAnswers;

impl StateAnswers {
    /// Tells the log and the metrics.
    pub fn emit(&self, telemetry: &Telemetry) {
        telemetry.set_readiness(|readiness| readiness.state_failed = false);
        if telemetry.may_log("state_answers", "") {
            tracing::info!("the disk of the state directory answers again");
        }
    }
}
