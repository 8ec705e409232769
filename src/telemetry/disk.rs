//! Events of the disk under the state.

use super::status::Telemetry;

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
