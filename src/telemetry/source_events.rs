//! Events of source, partitions and schema registry.

use super::labels::{Label, PartitionChange, SchemaOutcome, WrittenAs};
use super::metrics::clamped;
use super::status::Telemetry;
use throng_core::printable::printable;
use throng_kafka::refusal::SecurityRefusal;

/// The source responds.
#[derive(Clone, Copy, Debug)]
pub struct SourceConnected;

impl SourceConnected {
    /// Updates log, readiness and metrics.
    pub fn emit(&self, telemetry: &Telemetry) {
        telemetry.set_readiness(|readiness| readiness.broker = true);
        telemetry.metrics().source.connected.set(1);
        if telemetry.may_log("source_connected", "") {
            tracing::info!("the source answers");
        }
    }
}

/// The source does not respond; the daemon retries and is not ready.
#[derive(Clone, Copy, Debug)]
pub struct SourceLost<'a> {
    /// Configured address.
    pub address: &'a str,
}

impl SourceLost<'_> {
    /// Updates log, readiness and metrics.
    pub fn emit(&self, telemetry: &Telemetry) {
        telemetry.set_readiness(|readiness| readiness.broker = false);
        telemetry.metrics().source.connected.set(0);
        telemetry.metrics().source.losses.inc();
        if telemetry.may_log("source_lost", "") {
            let address = self.address;
            tracing::warn!(address, "the source does not answer; retrying");
        }
    }
}

/// A topic cannot be described yet; the daemon retries.
#[derive(Clone, Copy, Debug)]
pub struct TopicUnavailable<'a> {
    /// Topic, reason and remedy.
    pub failure: &'a str,
}

impl TopicUnavailable<'_> {
    /// Logs the event.
    pub fn emit(self, telemetry: &Telemetry) {
        if telemetry.may_log("topic_unavailable", "") {
            tracing::warn!("{}; retrying", printable(self.failure));
        }
    }
}

/// Unreleased records of a batch were deleted; it cannot be repeated.
#[derive(Clone, Copy, Debug)]
pub struct InputLost<'a> {
    /// Topic.
    pub topic: &'a str,
    /// Partition.
    pub partition: i32,
    /// First lost offset.
    pub from: i64,
    /// Offset after the last one.
    pub to: i64,
}

impl InputLost<'_> {
    /// Logs the event.
    pub fn emit(self) {
        let Self { topic, partition, from, to } = self;
        // Never limited: no other event reports the loss.
        tracing::error!(
            topic,
            partition,
            from,
            to,
            remedy = "set the retention of the topic above the longest downtime of an instance; the producer of these records may send them again",
            "input is lost: records of an unreleased batch were deleted from the topic; the rest of the batch is read again"
        );
    }
}

/// Authentication with a broker failed; the daemon retries and is not ready.
#[derive(Clone, Copy, Debug)]
pub struct SourceRefused<'a> {
    /// Kind of failure.
    pub refusal: SecurityRefusal,
    /// Description and remedy, in throng's text.
    pub message: &'a str,
}

impl SourceRefused<'_> {
    /// Updates log, readiness and metrics.
    pub fn emit(&self, telemetry: &Telemetry) {
        telemetry.set_readiness(|readiness| readiness.refused = Some(self.refusal));
        telemetry.metrics().source.refusals.of(self.refusal).inc();
        if telemetry.may_log("source_refused", self.refusal.as_str()) {
            tracing::warn!(refusal = self.refusal.as_str(), "{}; retrying", self.message);
        }
    }
}

/// Partitions were assigned or revoked. Ready with at least one.
#[derive(Clone, Copy, Debug, Default)]
pub struct PartitionsChanged {
    /// Newly assigned.
    pub assigned: u64,
    /// Revoked.
    pub revoked: u64,
    /// Lost without a revocation.
    pub lost: u64,
}

impl PartitionsChanged {
    /// Reports all partitions of an ended consumer as revoked.
    pub fn emit_consumer_end(telemetry: &Telemetry) {
        let revoked = telemetry.board().partitions;
        if revoked > 0 {
            Self { revoked, ..Self::default() }.emit(telemetry);
        }
    }

    /// Updates log, readiness and metrics.
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

/// Lag of the assigned partitions. Partitions that are not listed lose their series.
#[derive(Clone, Copy, Debug)]
pub struct SourceLag<'a> {
    /// Topic, partition, and records after the last commit, if known.
    pub partitions: &'a [(&'a str, i32, Option<u64>)],
}

impl SourceLag<'_> {
    /// Updates the metrics.
    pub fn emit(&self, telemetry: &Telemetry) {
        let metrics = telemetry.metrics();
        // A scrape holds the same lock: it finds all series or none.
        let board = telemetry.board();
        metrics.partition_lag.reset();
        for (topic, partition, lag) in self.partitions {
            let gauge = metrics.partition_lag.with_label_values(&[*topic, partition.to_string().as_str()]);
            gauge.set(lag.map_or(f64::NAN, |records| records as f64));
        }
        let total = self.partitions.iter().filter_map(|(.., lag)| *lag).reduce(|a, b| a + b);
        metrics.source.lag.set(total.map_or(f64::NAN, |records| records as f64));
        drop(board);
    }
}

/// Records, or the start, wait for a schema registry; not ready.
#[derive(Clone, Copy, Debug)]
pub struct RegistryLost<'a> {
    /// Error of the request.
    pub error: &'a dyn std::error::Error,
}

impl RegistryLost<'_> {
    /// Updates log, readiness and metrics.
    pub fn emit(&self, telemetry: &Telemetry) {
        telemetry.set_readiness(|readiness| readiness.registry_waited_for = true);
        telemetry.metrics().source.registry_waited_for.set(1);
        telemetry.metrics().source.registry_losses.inc();
        if telemetry.may_log("registry_lost", "") {
            tracing::warn!(error = printable(&self.error.to_string()), "records wait for the schema registry");
        }
    }
}

/// No record waits for the schema registry any more.
#[derive(Clone, Copy, Debug)]
pub struct RegistryAnswered;

impl RegistryAnswered {
    /// Updates log, readiness and metrics.
    pub fn emit(&self, telemetry: &Telemetry) {
        if !telemetry.readiness().registry_waited_for {
            return;
        }
        telemetry.set_readiness(|readiness| readiness.registry_waited_for = false);
        telemetry.metrics().source.registry_waited_for.set(0);
        tracing::info!("the schema registry answers again");
    }
}

/// The lookup time is used up: records with unknown schemas become dead letters.
#[derive(Clone, Copy, Debug)]
pub struct SchemaLookupsExhausted;

impl SchemaLookupsExhausted {
    /// Logs the event.
    pub fn emit(&self, telemetry: &Telemetry) {
        if telemetry.may_log("schema_lookups_exhausted", "") {
            tracing::warn!(
                "schema lookups take too much time: records with schema ids that are not known yet are dead letters (find the sender of unknown ids)"
            );
        }
    }
}

/// The registry lacks this schema: its records are dead letters.
#[derive(Clone, Copy, Debug)]
pub struct SchemaUnknown<'a> {
    /// Number of the schema.
    pub id: u32,
    /// Response of the registry.
    pub error: &'a dyn std::error::Error,
}

impl SchemaUnknown<'_> {
    /// Logs the event.
    pub fn emit(&self, telemetry: &Telemetry) {
        if telemetry.may_log("schema_unknown", "") {
            let error = printable(&self.error.to_string());
            tracing::warn!(schema = self.id, error, "no schema has this id: its records are dead letters");
        }
    }
}

/// A writer schema was used for the first time, or after its eviction.
#[derive(Clone, Copy, Debug)]
pub struct WriterSchemaMet {
    /// Format of the schema.
    pub format: WrittenAs,
    /// Outcome.
    pub outcome: SchemaOutcome,
}

impl WriterSchemaMet {
    /// Updates the metrics.
    pub fn emit(&self, telemetry: &Telemetry) {
        telemetry.metrics().source.writer_schemas.of(self.format).of(self.outcome).inc();
    }
}
