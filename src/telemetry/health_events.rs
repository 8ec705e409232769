//! Events of verification, state, limits and policies.

use super::labels::{Label, Limit, ReloadOutcome};
use super::metrics::clamped;
use super::status::{LastReload, Telemetry};
use std::time::{SystemTime, UNIX_EPOCH};
use throng_core::printable::printable;

/// Verification refused a batch: a defect of treatment or plan. None of it was released.
#[derive(Clone, Copy, Debug)]
pub struct VerificationRefused {
    /// Fragments that violate the release invariant.
    pub violations: u64,
}

impl VerificationRefused {
    /// Logs and counts the event.
    pub fn emit(&self, telemetry: &Telemetry) {
        telemetry.board().refusals += 1;
        telemetry.metrics().health.refusals.inc();
        telemetry.metrics().health.violations.inc_by(self.violations);
        if telemetry.may_log("verification_refused", "") {
            tracing::error!(
                violations = self.violations,
                "verification refused a batch; nothing of it was released (this is a bug: please report it)"
            );
        }
    }
}

/// Limits of a configuration that metrics of use are compared with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LimitsConfigured {
    /// Records at which a batch is closed.
    pub batch_records: u64,
    /// Entries of tenure and budgets.
    pub supporters: u64,
    /// Delayed lines; 0 without a delay.
    pub waiting_lines: u64,
    /// Pairs of subject and group in the release log.
    pub said_lines: u64,
    /// Value pairs of the model.
    pub model_edges: u64,
    /// Profiles of all joins.
    pub profiles: u64,
    /// Bytes of `process.memory_limit`; 0 without a limit.
    pub memory_bytes: u64,
}

impl LimitsConfigured {
    /// Updates the metrics.
    pub fn emit(&self, telemetry: &Telemetry) {
        let limits = &telemetry.metrics().limits;
        for (gauge, limit) in [
            (&limits.batch_records, self.batch_records),
            (&limits.supporters, self.supporters),
            (&limits.waiting_lines, self.waiting_lines),
            (&limits.said_lines, self.said_lines),
            (&limits.model_edges, self.model_edges),
            (&limits.profiles, self.profiles),
            (&limits.memory_bytes, self.memory_bytes),
        ] {
            gauge.set(clamped(limit));
        }
    }
}

/// The durable state was read.
#[derive(Clone, Copy, Debug, Default)]
pub struct StateRecovered {
    /// Last committed batch.
    pub sequence: u64,
    /// Batch deltas after the snapshot.
    pub deltas: u64,
    /// Duration.
    pub seconds: f64,
    /// Bytes on disk.
    pub bytes: u64,
}

impl StateRecovered {
    /// Logs and counts the event.
    pub fn emit(&self, telemetry: &Telemetry) {
        let metrics = telemetry.metrics();
        metrics.flow.batch_sequence.set(clamped(self.sequence));
        metrics.memory.state_recovered_deltas.set(clamped(self.deltas));
        metrics.memory.state_recovery_seconds.set(self.seconds);
        let bytes = telemetry.board().coarse.rounded_bytes("state bytes", self.bytes);
        metrics.memory.state_bytes.set(clamped(bytes));
        if telemetry.may_log("state_recovered", "") {
            let (sequence, deltas) = (self.sequence, self.deltas);
            tracing::info!(sequence, deltas, seconds = self.seconds, bytes, "state recovered");
        }
    }
}

/// A documented limit was reached.
#[derive(Clone, Copy, Debug)]
pub struct LimitReached {
    /// Reached limit.
    pub limit: Limit,
}

impl LimitReached {
    /// Logs and counts the event.
    pub fn emit(&self, telemetry: &Telemetry) {
        let second = telemetry.second();
        if !telemetry.board().coarse.is_limit_counted(second, self.limit) {
            return;
        }
        telemetry.metrics().health.limits.of(self.limit).inc();
        if telemetry.may_log("limit_reached", self.limit.as_str()) {
            tracing::warn!(
                limit = self.limit.as_str(),
                "limit reached: further entries are suppressed, thinned or ignored (docs/troubleshooting.md)"
            );
        }
    }
}

impl Telemetry {
    /// Returns true if `limit` was reached since the start.
    pub fn has_reached(&self, limit: Limit) -> bool {
        self.metrics().health.limits.of(limit).get() > 0
    }
}

/// A policy is active from the next batch on.
#[derive(Clone, Copy, Debug)]
pub struct PolicyActivated<'a> {
    /// Digest of the policy.
    pub digest: &'a str,
    /// `privacy.k` of the policy.
    pub k: usize,
    /// `release.min_represented`; 0 without a release.
    pub min_represented: f64,
    /// Unreadable records count: the source is no topic.
    pub judges_unreadable: bool,
    /// Only series are released.
    pub only_series: bool,
}

impl PolicyActivated<'_> {
    /// Updates pages, metrics and log.
    pub fn emit(&self, telemetry: &Telemetry) {
        telemetry.set_policy(self.digest, self.k);
        telemetry.set_release(self.min_represented, self.judges_unreadable, self.only_series);
        if telemetry.may_log("policy", "") {
            tracing::info!(policy = self.digest, k = self.k, "policy active");
        }
    }
}

/// A configuration reload was requested.
#[derive(Clone, Debug)]
pub struct ConfigReloaded<'a> {
    /// Outcome of the reload.
    pub outcome: ReloadOutcome,
    /// Changed keys.
    pub changed: &'a [String],
    /// Reasons of a refusal: names, positions and remedies.
    pub reasons: &'a [String],
    /// Seconds of validation and tests, and of the pause.
    pub seconds: (f64, f64),
}

impl ConfigReloaded<'_> {
    /// Updates pages, metrics and log.
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
                tracing::info!(changed, validating, pause, "new configuration active");
            }
            ReloadOutcome::Unchanged => tracing::info!(validating, "configuration reloaded, no changes"),
            ReloadOutcome::Refused => {
                for reason in self.reasons {
                    tracing::error!(reason = printable(reason), "new configuration refused, the old one stays active");
                }
            }
        }
    }
}

/// The state directory does not respond; the daemon waits and is not ready.
#[derive(Clone, Copy, Debug)]
pub struct StateStalled {
    /// Seconds without a response.
    pub seconds: f64,
}

impl StateStalled {
    /// Updates log and readiness.
    pub fn emit(&self, telemetry: &Telemetry) {
        telemetry.set_readiness(|readiness| readiness.state_failed = true);
        if telemetry.may_log("state_stalled", "") {
            tracing::warn!(
                seconds = self.seconds,
                "the disk of the state directory does not answer: nothing is released until it does"
            );
        }
    }
}

/// The state directory responds again.
#[derive(Clone, Copy, Debug)]
pub struct StateResponding;

impl StateResponding {
    /// Updates log and readiness.
    pub fn emit(&self, telemetry: &Telemetry) {
        telemetry.set_readiness(|readiness| readiness.state_failed = false);
        if telemetry.may_log("state_answers", "") {
            tracing::info!("the disk of the state directory answers again");
        }
    }
}
