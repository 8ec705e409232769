//! What can happen, one struct each: `emit` writes the log line and moves the metrics together.
//!
//! Counts of records move only with their batch's commit, so that they obey conservation and a retried batch is
//! counted once. Lines of one kind are limited; metrics are not.

use super::{
    labels::{
        AbortReason, BatchOutcome, Copied, CrowdSize, Direction, Label, Limit, Outcome, Picture, Scope, Stage,
        Statistic,
    },
    metrics::{Metrics, clamped},
    reason::RejectionReason,
    report::BatchReport,
    status::Telemetry,
};

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
                smallest_crowd_in_batch = shown.crowd_in_batch.smallest,
                below_k_in_batch = shown.crowd_in_batch.share_below_k,
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
    metrics.quality.dampened_cells.inc_by(report.dampened_cells);
    metrics.quality.withheld_cells.inc_by(report.withheld_cells);
    metrics.flow.thinned_fragments.inc_by(report.thinned_fragments);
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
        (&metrics.memory.ledger_classes, report.ledger_classes),
        (&metrics.memory.ledger_bytes, report.ledger_bytes),
        (&metrics.memory.shown_values, report.shown_values),
        (&metrics.memory.supporters, report.supporters),
        (&metrics.flow.waiting_lines, report.waiting_lines),
        (&metrics.flow.said_lines, report.said_lines),
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
    for (picture, risk) in [(Picture::Before, report.risk_before), (Picture::After, report.risk_after)] {
        metrics.quality.risk.of(picture).of(Statistic::Highest).set(risk.highest);
        metrics.quality.risk.of(picture).of(Statistic::Average).set(risk.average);
        metrics.quality.below_k.of(picture).set(risk.share_below_k);
    }
    for (scope, crowd) in [(Scope::Batch, report.crowd_in_batch), (Scope::Window, report.crowd_in_window)] {
        metrics.quality.crowds.of(scope).of(CrowdSize::Smallest).set(crowd.smallest as f64);
        metrics.quality.crowds.of(scope).of(CrowdSize::Average).set(crowd.average);
        metrics.quality.crowds_below_k.of(scope).set(crowd.share_below_k);
    }
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

/// Records became dead letters. Emitted by [`BatchCommitted`] from its report.
#[derive(Clone, Copy, Debug)]
pub struct RecordDeadLettered {
    /// The stage that refused them.
    pub stage: Stage,
    /// Why.
    pub reason: RejectionReason,
    /// How many.
    pub records: u64,
}

impl RecordDeadLettered {
    pub(super) fn emit(self, telemetry: &Telemetry) {
        telemetry.metrics().flow.dead_letters.of(self.reason).inc_by(self.records);
        if telemetry.may_log("record_dead_lettered", self.reason.as_str()) {
            let (stage, reason, remedy) = (self.stage.as_str(), self.reason.as_str(), self.reason.remedy());
            tracing::warn!(
                stage,
                reason,
                remedy,
                records = self.records,
                "records could not be read; their coordinates are dead letters"
            );
        }
    }
}

/// The data has attributes that the record schema does not know. Emitted by [`BatchCommitted`] from its report.
#[derive(Clone, Copy, Debug)]
pub struct UnknownAttribute {
    /// How many.
    pub cells: u64,
}

impl UnknownAttribute {
    pub(super) fn emit(self, telemetry: &Telemetry) {
        telemetry.metrics().quality.unknown_cells.inc_by(self.cells);
        if telemetry.may_log("unknown_attribute", "") {
            tracing::warn!(
                cells = self.cells,
                "cells of keys or columns that the schema does not know were dropped (keys may be data and are not named: compare a record with the schema)"
            );
        }
    }
}

/// Attributes of the schema had no value in any record so far. Names are the schema's own.
#[derive(Clone, Debug)]
pub struct AttributesNeverMet {
    /// Names of the schema.
    pub attributes: Vec<String>,
    /// Records that were looked at.
    pub records: u64,
}

impl AttributesNeverMet {
    /// Tells the log and the metrics.
    pub fn emit(&self) {
        tracing::warn!(
            attributes = self.attributes.join(", "),
            records = self.records,
            "attributes had no value in any record: check their `pointer` or `column` in the schema"
        );
    }
}

/// Values that their hierarchy misses; they count as the root. Emitted by [`BatchCommitted`] from its report.
#[derive(Clone, Copy, Debug)]
pub struct UncoveredCells {
    /// How many.
    pub cells: u64,
}

impl UncoveredCells {
    pub(super) fn emit(self, telemetry: &Telemetry) {
        telemetry.metrics().quality.uncovered_cells.inc_by(self.cells);
        if telemetry.may_log("uncovered_cells", "") {
            tracing::warn!(
                cells = self.cells,
                "cells whose value the hierarchy misses, or that look like an identifier, count as its root"
            );
        }
    }
}

/// A doubt about the schema, in words that name attributes and never a value. It stays on the status page.
#[derive(Clone, Debug)]
pub struct Doubt(pub String);

impl Doubt {
    /// Tells the log and the metrics.
    pub fn emit(self, telemetry: &Telemetry) {
        if telemetry.board().doubt(&self.0) {
            tracing::warn!("{}", self.0);
        }
    }
}

/// Columns of a file that the schema does not know.
#[derive(Clone, Debug)]
pub struct ColumnsDropped<'a> {
    /// The file.
    pub path: &'a std::path::Path,
    /// Their names.
    pub columns: &'a [String],
}

impl ColumnsDropped<'_> {
    /// Tells the log and the metrics.
    pub fn emit(&self, telemetry: &Telemetry) {
        if !self.columns.is_empty() && telemetry.may_log("columns_dropped", "") {
            let (path, columns) = (self.path.display(), self.columns.join(", "));
            tracing::warn!(%path, columns, "columns that the schema does not know are dropped");
        }
    }
}

/// Records with a cell that the type of its attribute cannot take: whose, and where the first of them is. The cell itself
/// stays unsaid.
#[derive(Clone, Debug)]
pub struct WrongType<'a> {
    /// Name of the attribute.
    pub attribute: &'a str,
    /// Its type.
    pub expected: &'static str,
    /// How many.
    pub records: u64,
    /// `record 17`, or `partition 2, offset 16`.
    pub first: String,
}

impl WrongType<'_> {
    /// Tells the log and the metrics.
    pub fn emit(&self, telemetry: &Telemetry) {
        if telemetry.may_log("wrong_type", "") {
            let Self { attribute, expected, records, first } = self;
            tracing::warn!(attribute, expected, records, first, "cells are not of the type of their attribute");
        }
    }
}

/// A new plan is in force from the next batch on.
#[derive(Clone, Copy, Debug, Default)]
pub struct PlanAdopted {
    /// Number of the plan.
    pub version: u64,
    /// What made a plan due.
    pub why: &'static str,
    /// Groups of the plan.
    pub groups: u64,
    /// Those that do not change within a subject, and so say things once a window.
    pub static_groups: u64,
    /// Generalization nodes in all its ladders.
    pub ladder_nodes: u64,
    /// What the search took.
    pub seconds: f64,
}

impl PlanAdopted {
    /// Tells the log and the metrics.
    pub fn emit(&self, telemetry: &Telemetry) {
        telemetry.board().coarse.plan = self.version;
        let metrics = telemetry.metrics();
        metrics.planning.plan_version.set(clamped(self.version));
        metrics.planning.plan_static_groups.set(clamped(self.static_groups));
        metrics.planning.plan_nodes.set(clamped(self.ladder_nodes));
        metrics.planning.plan_seconds.set(self.seconds);
        metrics.planning.plans.inc();
        if telemetry.may_log("plan_adopted", "") {
            let (version, groups, static_groups, nodes) =
                (self.version, self.groups, self.static_groups, self.ladder_nodes);
            tracing::info!(
                version,
                why = self.why,
                groups,
                static_groups,
                nodes,
                seconds = self.seconds,
                "plan adopted"
            );
        }
    }
}

/// The window was searched for quasi-identifiers, for the plan in force or one before it.
#[derive(Clone, Copy, Debug, Default)]
pub struct EvidenceGathered {
    /// Version of the plan that the search was begun for.
    pub plan: u64,
    /// Every quasi-identifier of the window was found in time.
    pub complete: bool,
    /// Minimal ones that single out many people.
    pub qids: u64,
    /// Mean loss of a cell that the plan is expected to cost.
    pub expected_loss: f64,
    /// What the search took.
    pub seconds: f64,
}

impl EvidenceGathered {
    /// Tells the log and the metrics.
    pub fn emit(&self, telemetry: &Telemetry) {
        let metrics = telemetry.metrics();
        metrics.planning.minimal_qids.set(clamped(self.qids));
        metrics.planning.recheck_complete.set(i64::from(self.complete));
        metrics.planning.recheck_seconds.set(self.seconds);
        metrics.planning.expected_loss.set(self.expected_loss);
        if telemetry.may_log("evidence_gathered", "") {
            let Self { plan, complete, qids, expected_loss, seconds } = self;
            tracing::info!(plan, complete, qids, expected_loss, seconds, "window searched for quasi-identifiers");
        }
    }
}

/// A GPU was used to count the window. Numbers are those since the last of these events, but for what is held.
#[derive(Clone, Copy, Debug, Default)]
pub struct DeviceUsed {
    /// Memory held on the device, in bytes.
    pub held_bytes: u64,
    /// Kernels started.
    pub launches: u64,
    /// Bytes copied to the device.
    pub uploaded_bytes: u64,
    /// Bytes copied from it.
    pub downloaded_bytes: u64,
    /// Times that the whole window was uploaded instead of what was new.
    pub fills: u64,
    /// Times that the device failed and the CPU answered in its place.
    pub fallbacks: u64,
    /// Attribute sets that the CPU counted in a search on the device.
    pub sets_left: u64,
    /// It has failed for good.
    pub lost: bool,
}

impl DeviceUsed {
    /// Tells the log and the metrics.
    pub fn emit(&self, telemetry: &Telemetry) {
        let metrics = telemetry.metrics();
        // How much a search asks of the device depends on the values: to two digits.
        let board = telemetry.board();
        let (count, bytes) = (|figure, n| board.coarse.count(figure, n), |figure, n| board.coarse.bytes(figure, n));
        metrics.gpu.bytes.set(clamped(bytes("gpu memory", self.held_bytes)));
        metrics.gpu.launches.inc_by(count("gpu launches", self.launches));
        metrics.gpu.copied.of(Copied::Up).inc_by(bytes("gpu up", self.uploaded_bytes));
        metrics.gpu.copied.of(Copied::Down).inc_by(bytes("gpu down", self.downloaded_bytes));
        metrics.gpu.fills.inc_by(self.fills);
        metrics.gpu.fallbacks.inc_by(self.fallbacks);
        metrics.gpu.sets_left.inc_by(count("gpu sets left", self.sets_left));
        drop(board);
        metrics.gpu.lost.set(i64::from(self.lost));
        if self.fallbacks > 0 && telemetry.may_log("device_fell_back", "") {
            let Self { fallbacks, lost, .. } = self;
            tracing::warn!(fallbacks, lost, "the GPU failed; the CPU counted in its place, with the same answers");
        }
    }
}

/// A search failed or was late; the old plan stays in force.
#[derive(Clone, Copy, Debug)]
pub struct PlannerFailed;

impl PlannerFailed {
    /// Tells the log and the metrics.
    pub fn emit(&self, telemetry: &Telemetry) {
        telemetry.metrics().planning.planner_failures.inc();
        if telemetry.may_log("planner_failed", "") {
            tracing::warn!("the search for a plan failed or was late; the old one stays in force");
        }
    }
}

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

/// The populations of k-map models were read at the start.
#[derive(Clone, Debug)]
pub struct PopulationsRead {
    /// People of each.
    pub people: Vec<u64>,
    /// They are others than those that the last start read.
    pub changed: bool,
}

impl PopulationsRead {
    /// Tells the log and the metrics.
    pub fn emit(&self, telemetry: &Telemetry) {
        if telemetry.may_log("populations_read", "") {
            let people = &self.people;
            if self.changed {
                tracing::warn!(?people, "the populations are others than before: what has left was judged by those");
            } else {
                tracing::info!(?people, "populations read");
            }
        }
    }
}

/// The state has released without the models that are configured now: what must be known for them is not.
#[derive(Clone, Copy, Debug)]
pub struct PastUnknown {
    /// Sensitive attributes that are withheld until then.
    pub attributes: u64,
}

impl PastUnknown {
    /// Tells the log and the metrics.
    pub fn emit(self, telemetry: &Telemetry) {
        if telemetry.may_log("past_unknown", "") {
            tracing::warn!(
                attributes = self.attributes,
                "sensitive values are withheld until what left without their privacy models has left the support window"
            );
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
