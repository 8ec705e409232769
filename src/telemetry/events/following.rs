//! A state that is kept in a topic.

use crate::telemetry::labels::Direction;
use crate::telemetry::status::Telemetry;

/// Records of the state were committed.
#[derive(Clone, Copy, Debug)]
pub struct StateKept {
    /// Their bytes.
    pub bytes: u64,
}

impl StateKept {
    /// Tells the metrics.
    pub fn emit(self, telemetry: &Telemetry) {
        telemetry.metrics().following.bytes.of(Direction::Out).inc_by(self.bytes);
    }
}

/// All of the state was copied into its topic.
#[derive(Clone, Copy, Debug)]
pub struct StateCopied {
    /// Values.
    pub values: u64,
    /// How long it took.
    pub seconds: f64,
}

impl StateCopied {
    /// Tells the log.
    pub fn emit(self) {
        let Self { values, seconds } = self;
        tracing::info!(values, seconds, "all of the state was copied into its topic");
    }
}

/// The state directory was made from the topic.
#[derive(Clone, Copy, Debug)]
pub struct StateRestored {
    /// Values.
    pub values: u64,
    /// Bytes that were read for them.
    pub bytes: u64,
    /// How long it took.
    pub seconds: f64,
}

impl StateRestored {
    /// Tells the log and the metrics.
    pub fn emit(self, telemetry: &Telemetry) {
        let Self { values, bytes, seconds } = self;
        telemetry.metrics().following.bytes.of(Direction::In).inc_by(bytes);
        telemetry.metrics().following.restore.set(seconds);
        tracing::info!(values, bytes, seconds, "the state directory was made from its topic");
    }
}
