//! Events of batches, unexpected records and attributes, and source files.

use super::labels::{
    AbortReason, BatchOutcome, CrowdSize, Direction, Label, MemoryPart, Outcome, Picture, Stage, Statistic,
    SuppressionReason, WrittenAs,
};
use super::metrics::{Metrics, clamped};
use super::reason::{RejectionReason, stage_of};
use super::report::BatchReport;
use super::status::Telemetry;

/// A batch is durable: outputs, dead letters and positions.
#[derive(Clone, Debug)]
pub struct BatchCommitted(pub BatchReport);

impl BatchCommitted {
    /// Logs and counts the event.
    pub fn emit(&self, telemetry: &Telemetry) {
        let report = &self.0;
        let (conserved, shown) = {
            let mut board = telemetry.board();
            let second = telemetry.second();
            let shown = board.coarse.displayed_report(second, telemetry.k(), report);
            count_commit(telemetry.metrics(), &shown);
            set_commit_gauges(telemetry.metrics(), &shown);
            board.add_batch(second, report, shown.clone());
            (board.totals.held() == Some(report.held), shown)
        };
        telemetry.update_represented_metrics();
        for (reason, records) in report.dead_lettered.iter().filter(|(_, records)| *records > 0) {
            note_dead_letters(reason, records, telemetry);
        }
        if report.unknown_cells > 0 {
            note_unknown_cells(report.unknown_cells, telemetry);
        }
        if report.released == 0 && report.suppressed.total() > 0 {
            note_nothing_released(report, telemetry);
        }
        if report.uncovered_cells > 0 {
            note_uncovered_cells(report.uncovered_cells, telemetry);
        }
        if !conserved && telemetry.may_log("conservation", "") {
            tracing::error!(
                sequence = report.sequence,
                held = report.held,
                "records are not conserved: outcomes do not add up to the consumed records (this is a bug: please report it)"
            );
        }
        // Logs only displayed figures.
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
                seconds = shown.seconds.processing_seconds(),
                "batch committed"
            );
        }
    }
}

fn count_commit(metrics: &Metrics, report: &BatchReport) {
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
        metrics.fragments[group.min(metrics.fragments.len() - 1)].inc_by(*fragments);
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

fn set_commit_gauges(metrics: &Metrics, report: &BatchReport) {
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
    for (part, bytes) in [
        (MemoryPart::Ledger, report.ledger_bytes),
        (MemoryPart::Window, report.window_bytes + report.model_bytes),
        (MemoryPart::Dictionaries, report.dictionary_bytes),
    ] {
        metrics.memory.part_bytes.of(part).set(bytes as f64);
    }
    metrics.planning.drift.set(report.drift_bits);
    metrics.flow.batch_clock.set(report.clock_ms as f64 / 1000.0);
    // No quality figures without records.
    if report.consumed + report.released + report.suppressed.total() > 0 {
        set_quality_gauges(metrics, report);
    }
}

fn set_quality_gauges(metrics: &Metrics, report: &BatchReport) {
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
    metrics.quality.exact_share.set(report.exact_share);
    metrics.quality.suppressed_share.set(report.suppressed_share());
}

/// A batch was rolled back; none of it was released.
#[derive(Clone, Copy, Debug)]
pub struct BatchAborted {
    /// Reason.
    pub reason: AbortReason,
}

impl BatchAborted {
    /// Logs and counts the event.
    pub fn emit(&self, telemetry: &Telemetry) {
        telemetry.board().aborted += 1;
        telemetry.metrics().flow.batches.of(BatchOutcome::Aborted).inc();
        telemetry.metrics().flow.aborts.of(self.reason).inc();
        if telemetry.may_log("batch_aborted", self.reason.as_str()) {
            tracing::warn!(reason = self.reason.as_str(), "batch aborted; it is rolled back and read again");
        }
    }
}

fn note_dead_letters(reason: RejectionReason, records: u64, telemetry: &Telemetry) {
    telemetry.metrics().dead_letters.of(reason).inc_by(records);
    if telemetry.may_log("record_dead_lettered", reason.as_str()) {
        let (stage, remedy, reason) = (stage_of(reason).as_str(), reason.remedy(), reason.as_str());
        tracing::warn!(stage, reason, remedy, records, "records could not be read and became dead letters");
    }
}

fn note_unknown_cells(cells: u64, telemetry: &Telemetry) {
    let format = telemetry.board().written_as.unwrap_or(WrittenAs::Json);
    telemetry.metrics().quality.unknown_cells.of(format).inc_by(cells);
    if telemetry.may_log("unknown_attribute", "") {
        tracing::warn!(
            cells,
            "dropped cells of keys or columns that are not in the schema (keys may be data and are not named: compare a record with the schema)"
        );
    }
}

/// Warns with the most frequent cause.
fn note_nothing_released(report: &BatchReport, telemetry: &Telemetry) {
    let most = report.suppressed.iter().max_by_key(|(_, records)| *records);
    let Some((cause, _)) = most.filter(|(cause, _)| *cause != SuppressionReason::Monitoring) else { return };
    let remedy = match cause {
        SuppressionReason::Quiet | SuppressionReason::EndOfStream => {
            "the batch had fewer subjects than privacy.k and privacy.colluders: raise batch.max_age, or read more of the stream with one instance"
        }
        SuppressionReason::Thinned => "few subjects sent nearly all records: look for a sender that floods the source",
        SuppressionReason::NoSupport | SuppressionReason::HeldOut | SuppressionReason::Guard => {
            "no class had enough subjects: raise batch.max_records and batch.max_wait, or put fewer attributes into a group"
        }
        SuppressionReason::Shutdown | SuppressionReason::Monitoring => return,
    };
    if telemetry.may_log("nothing_released", cause.as_str()) {
        tracing::warn!(cause = cause.as_str(), "no record of a batch was released: {remedy}");
    }
}

/// Values outside the hierarchy count as the root.
fn note_uncovered_cells(cells: u64, telemetry: &Telemetry) {
    telemetry.metrics().quality.uncovered_cells.inc_by(cells);
    if telemetry.may_log("uncovered_cells", "") {
        tracing::warn!(
            cells,
            "cells were generalized to the root of their hierarchy: the value is not in it, or looks like an identifier (add missing values to the hierarchy)"
        );
    }
}

/// Attributes had no value in any record so far.
#[derive(Clone, Debug)]
pub struct AttributesNeverMet {
    /// Names of the schema.
    pub attributes: Vec<String>,
    /// Examined records.
    pub records: u64,
}

impl AttributesNeverMet {
    /// Logs the event.
    pub fn emit(&self) {
        tracing::warn!(
            attributes = self.attributes.join(", "),
            records = self.records,
            "attributes had no value in any record: check their `pointer` or `column` in the schema"
        );
    }
}

/// A warning about the schema, never with a value; it stays on the status page.
#[derive(Clone, Debug)]
pub struct SchemaWarning(pub String);

impl SchemaWarning {
    /// Logs it once and adds it to the status page.
    pub fn emit(self, telemetry: &Telemetry) {
        if telemetry.board().add_warning(&self.0) {
            tracing::warn!("{}", self.0);
        }
    }
}

/// The files of a job exceed one batch.
#[derive(Clone, Copy, Debug)]
pub struct FileDivided<'a> {
    /// File in which the first batch ends.
    pub path: &'a std::path::Path,
    /// Record limit of a batch.
    pub max_records: u64,
    /// Byte limit of a batch.
    pub max_bytes: u64,
}

impl FileDivided<'_> {
    /// Logs the event.
    pub fn emit(&self) {
        let (path, max_records, max_bytes) = (self.path.display(), self.max_records, self.max_bytes);
        tracing::warn!(
            %path,
            max_records,
            max_bytes,
            "the input does not fit into one batch and is divided: classes are formed within each batch, and more is lost (more memory or process.memory_limit makes batches larger)"
        );
    }
}

/// The next file is read.
#[derive(Clone, Copy, Debug)]
pub struct FileOpened<'a> {
    /// Path of the file.
    pub path: &'a std::path::Path,
    /// Number of its first record over all files, from 0.
    pub first_record: u64,
}

impl FileOpened<'_> {
    /// Logs the event.
    pub fn emit(&self) {
        tracing::info!(path = %self.path.display(), first_record = self.first_record, "reading a source file");
    }
}

/// A file has columns outside the schema.
#[derive(Clone, Debug)]
pub struct ColumnsDropped<'a> {
    /// Path of the file.
    pub path: &'a std::path::Path,
    /// Column names.
    pub columns: &'a [String],
}

impl ColumnsDropped<'_> {
    /// Logs the event.
    pub fn emit(&self, telemetry: &Telemetry) {
        if !self.columns.is_empty() && telemetry.may_log("columns_dropped", "") {
            let (path, columns) = (self.path.display(), self.columns.join(", "));
            tracing::warn!(%path, columns, "dropping columns that are not in the schema");
        }
    }
}

/// Records have a cell that does not fit the type of its attribute. Never contains the cell.
#[derive(Clone, Debug)]
pub struct CellTypeMismatch<'a> {
    /// Name of the attribute.
    pub attribute: &'a str,
    /// Type of the attribute.
    pub expected: &'static str,
    /// Number of records.
    pub records: u64,
    /// Position of the first: `record 17`, or `partition 2, offset 16`.
    pub first: String,
}

impl CellTypeMismatch<'_> {
    /// Logs the event.
    pub fn emit(&self, telemetry: &Telemetry) {
        if telemetry.may_log("wrong_type", "") {
            let Self { attribute, expected, records, first } = self;
            tracing::warn!(
                attribute,
                expected,
                records,
                first,
                "cells do not match the type of their attribute (correct the type in the schema, or the data)"
            );
        }
    }
}
