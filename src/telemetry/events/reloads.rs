//! The policy in force, and attempts to put another in its place.

use crate::telemetry::foreign::foreign;
use crate::telemetry::labels::ReloadOutcome;
use crate::telemetry::status::{LastReload, Telemetry};
use std::time::{SystemTime, UNIX_EPOCH};

/// A policy is in force from the next batch on.
#[derive(Clone, Copy, Debug)]
pub struct PolicyInForce<'a> {
    /// Its digest.
    pub digest: &'a str,
    /// Its `privacy.k`.
    pub k: usize,
}

impl PolicyInForce<'_> {
    /// Tells the pages, the metrics and the log.
    pub fn emit(&self, telemetry: &Telemetry) {
        telemetry.set_policy(self.digest, self.k);
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
        let ((validating, pause), changed) = (self.seconds, foreign(&self.changed.join(", ")));
        match self.outcome {
            ReloadOutcome::Replaced => {
                tracing::info!(changed, validating, pause, "a new configuration is in force");
            }
            ReloadOutcome::Unchanged => tracing::info!(validating, "configuration reloaded, no changes"),
            ReloadOutcome::Refused => {
                for reason in self.reasons {
                    tracing::error!(reason = foreign(reason), "the new configuration is refused, the old one stays");
                }
            }
        }
    }
}
