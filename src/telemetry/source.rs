//! Events of the source, its partitions and the schema registry.

use super::labels::{Label, PartitionChange, SchemaOutcome, SecurityRefusal, WrittenAs};
use super::metrics::clamped;
use super::status::Telemetry;
use throng_core::printable::printable;

/// The source answers. Readiness: a broker answers.
#[derive(Clone, Copy, Debug)]
pub struct SourceConnected;

impl SourceConnected {
    /// Tells the log and the metrics.
    pub fn emit(&self, telemetry: &Telemetry) {
        telemetry.set_readiness(|readiness| readiness.broker = true);
        telemetry.metrics().source.connected.set(1);
        if telemetry.may_log("source_connected", "") {
            tracing::info!("the source answers");
        }
    }
}

/// The source does not answer; the daemon keeps trying. Readiness: no broker answers.
#[derive(Clone, Copy, Debug)]
pub struct SourceLost<'a> {
    /// As it is configured.
    pub address: &'a str,
}

impl SourceLost<'_> {
    /// Tells the log and the metrics.
    pub fn emit(&self, telemetry: &Telemetry) {
        telemetry.set_readiness(|readiness| readiness.broker = false);
        telemetry.metrics().source.connected.set(0);
        telemetry.metrics().source.losses.inc();
        if telemetry.may_log("source_lost", "") {
            let address = self.address;
            tracing::warn!(address, "the source does not answer; trying again");
        }
    }
}

/// Records of a batch that did not leave are gone from their partition, so that it cannot be repeated.
#[derive(Clone, Copy, Debug)]
pub struct InputLost<'a> {
    /// The topic.
    pub topic: &'a str,
    /// The partition.
    pub partition: i32,
    /// Offset of the first of them.
    pub from: i64,
    /// Offset behind the last of them.
    pub to: i64,
}

impl InputLost<'_> {
    /// Tells the log.
    pub fn emit(self) {
        let Self { topic, partition, from, to } = self;
        // Never limited: nobody else tells of it.
        tracing::error!(
            topic,
            partition,
            from,
            to,
            remedy = "give the topic a longer retention than an instance is ever down; whoever has these records may send them again",
            "input is lost: records of a batch that did not leave are gone from the topic; the rest of the batch is read again"
        );
    }
}

/// A broker does not let us in, or we do not trust it; the daemon keeps trying. Readiness: why.
#[derive(Clone, Copy, Debug)]
pub struct SourceRefused<'a> {
    /// Of what kind it is.
    pub refusal: SecurityRefusal,
    /// What it is and what to do, in words of ours.
    pub told: &'a str,
}

impl SourceRefused<'_> {
    /// Tells the log and the metrics.
    pub fn emit(&self, telemetry: &Telemetry) {
        telemetry.set_readiness(|readiness| readiness.refused = Some(self.refusal));
        telemetry.metrics().source.refusals.of(self.refusal).inc();
        if telemetry.may_log("source_refused", self.refusal.as_str()) {
            tracing::warn!(refusal = self.refusal.as_str(), "{}; trying again", self.told);
        }
    }
}

/// Partitions came or went; each number counts partitions. Readiness: whether any is left.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rebalanced {
    /// Those that came.
    pub assigned: u64,
    /// Those that were taken away.
    pub revoked: u64,
    /// Those that were lost without notice.
    pub lost: u64,
}

impl Rebalanced {
    /// Reports the end of a consumer: all its partitions are given up.
    pub fn consumer_ended(telemetry: &Telemetry) {
        let revoked = telemetry.board().partitions;
        if revoked > 0 {
            Self { revoked, ..Self::default() }.emit(telemetry);
        }
    }

    /// Tells the log and the metrics.
    pub fn emit(&self, telemetry: &Telemetry) {
        let partitions = {
            let mut board = telemetry.board();
            board.partitions = (board.partitions + self.assigned).saturating_sub(self.revoked + self.lost);
            board.readiness.assignment = board.partitions > 0;
            board.partitions
        };
        let metrics = telemetry.metrics();
        metrics.source.partitions.set(clamped(partitions));
        for (change, count) in [
            (PartitionChange::Assigned, self.assigned),
            (PartitionChange::Revoked, self.revoked),
            (PartitionChange::Lost, self.lost),
        ] {
            metrics.source.partition_changes.of(change).inc_by(count);
        }
        if telemetry.may_log("rebalanced", "") {
            tracing::info!(
                assigned = self.assigned,
                revoked = self.revoked,
                lost = self.lost,
                partitions,
                "partitions changed"
            );
        }
    }
}

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
            tracing::warn!(error = printable(&self.error.to_string()), "records wait for the schema registry");
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

/// The time for lookups of schemas is spent: records whose schema is not known yet are dead letters.
#[derive(Clone, Copy, Debug)]
pub struct SchemaLookupsExhausted;

impl SchemaLookupsExhausted {
    /// Tells the log.
    pub fn emit(&self, telemetry: &Telemetry) {
        if telemetry.may_log("schema_lookups_exhausted", "") {
            tracing::warn!(
                "lookups of schemas take too much time: records with schema numbers that are not known yet are dead letters (find the sender of unknown numbers)"
            );
        }
    }
}

/// The registry has no schema of this number: its records are dead letters.
#[derive(Clone, Copy, Debug)]
pub struct SchemaUnknown<'a> {
    /// The number.
    pub id: u32,
    /// The registry's answer.
    pub error: &'a dyn std::error::Error,
}

impl SchemaUnknown<'_> {
    /// Tells the log.
    pub fn emit(&self, telemetry: &Telemetry) {
        if telemetry.may_log("schema_unknown", "") {
            let error = printable(&self.error.to_string());
            tracing::warn!(schema = self.id, error, "no schema of this number: its records are dead letters");
        }
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
