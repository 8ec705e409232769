//! Events of the schema registry and of the schemas that it gives.

use super::foreign::foreign;
use super::labels::{SchemaOutcome, WrittenAs};
use super::status::Telemetry;

/// Records, or the start, wait for a schema registry that does not answer. Readiness: it is waited for.
#[derive(Clone, Copy, Debug)]
pub struct RegistryLost<'a> {
    /// What went wrong with the question.
    pub error: &'a dyn std::error::Error,
}

impl RegistryLost<'_> {
    /// Tells the log and the metrics.
    pub fn emit(&self, telemetry: &Telemetry) {
        telemetry.set_readiness(|readiness| readiness.registry_waited_for = true);
        telemetry.metrics().source.registry_waited_for.set(1);
        telemetry.metrics().source.registry_losses.inc();
        if telemetry.may_log("registry_lost", "") {
            tracing::warn!(error = foreign(&self.error.to_string()), "records wait for the schema registry");
        }
    }
}

/// Nobody waits for the schema registry any more. Readiness: it is not waited for.
#[derive(Clone, Copy, Debug)]
pub struct RegistryAnswered;

impl RegistryAnswered {
    /// Tells the log and the metrics.
    pub fn emit(&self, telemetry: &Telemetry) {
        if !telemetry.readiness().registry_waited_for {
            return;
        }
        telemetry.set_readiness(|readiness| readiness.registry_waited_for = false);
        telemetry.metrics().source.registry_waited_for.set(0);
        tracing::info!("the schema registry answers again");
    }
}

/// A schema of records was met for the first time since the start, or again after it had been forgotten.
#[derive(Clone, Copy, Debug)]
pub struct WriterSchemaMet {
    /// What it is a schema of.
    pub format: WrittenAs,
    /// What became of it.
    pub outcome: SchemaOutcome,
}

impl WriterSchemaMet {
    /// Tells the metrics.
    pub fn emit(&self, telemetry: &Telemetry) {
        telemetry.metrics().source.writer_schemas.of(self.format).of(self.outcome).inc();
    }
}
