//! Batches that are durable, and batches that were rolled back.

use super::records::RecordDeadLettered;
use super::records::UncoveredCells;
use super::records::UnknownAttribute;
use crate::telemetry::labels::{
    AbortReason, BatchOutcome, CrowdSize, Direction, Label, Outcome, Picture, Stage, Statistic,
};
use crate::telemetry::metrics::{Metrics, clamped};
use crate::telemetry::report::BatchReport;
use crate::telemetry::status::Telemetry;

/// A batch is durable: outputs, dead letters and positions are committed.
#[derive(Clone, Debug)]
pub struct BatchCommitted(pub BatchReport);

impl BatchCommitted {
    /// Tells the log and the metrics.
    pub fn emit(&self, telemetry: &Telemetry) {
        let report = &self.0;
        let (conserved, shown) = {
            let mut board = telemetry.board();
            let second = telemetry.second();
            let shown = board.coarse.show(second, telemetry.k(), report);
            count(telemetry.metrics(), &shown);
            measure(telemetry.metrics(), &shown);
            board.enter(second, report, shown.clone());
            (board.totals.held() == Some(report.held), shown)
        };
        for (reason, records) in report.dead_lettered.iter().filter(|(_, records)| *records > 0) {
            RecordDeadLettered { stage: reason.stage(), reason, records }.emit(telemetry);
        }
        if report.unknown_cells > 0 {
            UnknownAttribute { cells: report.unknown_cells }.emit(telemetry);
        }
        if report.uncovered_cells > 0 {
            UncoveredCells { cells: report.uncovered_cells }.emit(telemetry);
        }
        if !conserved && telemetry.may_log("conservation", "") {
            tracing::error!(sequence = report.sequence, held = report.held, "records are not conserved");
        }
        // No figure that the pages do not have.
        if telemetry.may_log("batch_committed", "") {
            tracing::info!(
                sequence = report.sequence,
                records = report.records,
                released = report.released,
                suppressed = report.suppressed.total(),
                held = report.held,
                dead_lettered = report.dead_lettered.total(),
                dropped = report.dropped,
                fragments = report.fragments,
                waiting = shown.waiting_lines,
                loss = report.loss,
                smallest_crowd = shown.crowd.smallest,
                below_k = shown.crowd.share_below_k,
                seconds = shown.seconds.work(),
                "batch committed"
            );
        }
    }
}

/// The counters of a commit, but for those that have an event of their own.
fn count(metrics: &Metrics, report: &BatchReport) {
    for (outcome, records) in [
        (Outcome::Consumed, report.consumed),
        (Outcome::Released, report.released),
        (Outcome::Suppressed, report.suppressed.total()),
        (Outcome::DeadLettered, report.dead_lettered.total()),
        (Outcome::Dropped, report.dropped),
    ] {
        metrics.flow.records.of(outcome).inc_by(records);
    }
    for (reason, records) in report.suppressed.iter() {
        metrics.flow.suppressed.of(reason).inc_by(records);
    }
    for (group, fragments) in report.fragments_by_group.iter().enumerate() {
        metrics.flow.fragments[group.min(metrics.flow.fragments.len() - 1)].inc_by(*fragments);
    }
    metrics.quality.altered_cells.inc_by(report.altered_cells);
    metrics.quality.withheld_cells.inc_by(report.withheld_cells);
    metrics.flow.thinned_fragments.inc_by(report.thinned_fragments);
    metrics.profiles.unjoined.inc_by(report.unjoined_records);
    metrics.flow.delayed_lines.inc_by(report.delayed_lines);
    metrics.flow.delayed_seconds.inc_by(report.delay_seconds * report.delayed_lines as f64);
    metrics.flow.bytes.of(Direction::In).inc_by(report.bytes_in);
    metrics.flow.bytes.of(Direction::Out).inc_by(report.bytes_out);
    metrics.flow.batches.of(BatchOutcome::Committed).inc();
    for stage in Stage::ALL {
        metrics.flow.durations.of(*stage).observe(report.seconds.get(*stage));
    }
    if let Some(seconds) = report.append_to_commit_seconds {
        metrics.flow.append_to_commit.observe(seconds);
    }
}

/// The gauges of a commit.
fn measure(metrics: &Metrics, report: &BatchReport) {
    for (gauge, size) in [
        (&metrics.flow.held, report.held),
        (&metrics.memory.ledger_bytes, report.ledger_bytes),
        (&metrics.memory.supporters, report.supporters),
        (&metrics.flow.waiting_lines, report.waiting_lines),
        (&metrics.flow.said_lines, report.said_lines),
        (&metrics.profiles.kept, report.profiles),
        (&metrics.memory.dictionary_values, report.dictionary_values),
        (&metrics.memory.window_records, report.window_records),
        (&metrics.memory.model_nodes, report.model_nodes),
        (&metrics.memory.model_edges, report.model_edges),
        (&metrics.memory.model_bytes, report.model_bytes),
        (&metrics.memory.model_left_out_pairs, report.model_left_out_pairs),
        (&metrics.memory.state_bytes, report.state_bytes),
        (&metrics.memory.state_free_bytes, report.state_free_bytes),
        (&metrics.flow.batch_sequence, report.sequence),
    ] {
        gauge.set(clamped(size));
    }
    metrics.memory.parts.measure(report);
    for (picture, risk) in [(Picture::Before, report.risk_before), (Picture::After, report.risk_after)] {
        metrics.quality.risk.of(picture).of(Statistic::Highest).set(risk.highest);
        metrics.quality.risk.of(picture).of(Statistic::Average).set(risk.average);
        metrics.quality.below_k.of(picture).set(risk.share_below_k);
    }
    let crowd = report.crowd;
    metrics.quality.crowds.of(CrowdSize::Smallest).set(crowd.smallest as f64);
    metrics.quality.crowds.of(CrowdSize::Average).set(crowd.average);
    metrics.quality.crowds_below_k.set(crowd.share_below_k);
    metrics.quality.loss.set(report.loss);
    metrics.planning.drift.set(report.drift_bits);
    metrics.quality.exact_share.set(report.exact_share);
    metrics.quality.suppressed_share.set(report.suppressed_share());
    metrics.source.lag.set(report.lag_records.map_or(f64::NAN, |records| records as f64));
    metrics.flow.batch_clock.set(report.clock_ms as f64 / 1000.0);
}

/// A batch was aborted and rolled back; nothing of it left.
#[derive(Clone, Copy, Debug)]
pub struct BatchAborted {
    /// Why.
    pub reason: AbortReason,
}

impl BatchAborted {
    /// Tells the log and the metrics.
    pub fn emit(&self, telemetry: &Telemetry) {
        telemetry.board().aborted += 1;
        telemetry.metrics().flow.batches.of(BatchOutcome::Aborted).inc();
        telemetry.metrics().flow.aborts.of(self.reason).inc();
        if telemetry.may_log("batch_aborted", self.reason.as_str()) {
            tracing::warn!(reason = self.reason.as_str(), "batch aborted; it is rolled back and read again");
        }
    }
}
