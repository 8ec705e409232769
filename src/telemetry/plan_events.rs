//! Events of plans, their evidence, and the GPU.

use super::batch_events::SchemaWarning;
use super::labels::{Copied, Label, QidSize};
use super::metrics::clamped;
use super::status::Telemetry;

/// A new plan is active from the next batch on.
#[derive(Clone, Copy, Debug, Default)]
pub struct PlanAdopted {
    /// Number of the plan.
    pub version: u64,
    /// Reason.
    pub why: &'static str,
    /// Number of groups.
    pub groups: u64,
    /// Groups released once per subject and window.
    pub static_groups: u64,
    /// Nodes in all ladders.
    pub ladder_nodes: u64,
    /// Duration.
    pub seconds: f64,
}

impl PlanAdopted {
    /// Logs and counts the event.
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

/// A static group is not static under the new plan: it is now released with every record.
#[derive(Clone, Debug)]
pub struct StaticGroupLost {
    /// Name of the group.
    pub group: String,
    /// Attributes measured as changing.
    pub attributes: Vec<String>,
}

impl StaticGroupLost {
    /// Warns in log and status page, and counts.
    pub fn emit(&self, telemetry: &Telemetry) {
        telemetry.metrics().planning.static_groups_lost.inc();
        let (group, attributes) = (&self.group, self.attributes.join(", "));
        SchemaWarning(format!(
            "group {group:?} is no longer static: {attributes} now changes within the median person, so the group is released with every record (set changes of {attributes} in the record schema: \"never\" keeps the group static)"
        ))
        .emit(telemetry);
    }
}

/// The window was searched for quasi-identifiers.
#[derive(Clone, Debug, Default)]
pub struct EvidenceGathered {
    /// Plan that started the search.
    pub plan: u64,
    /// Every quasi-identifier was found in time.
    pub complete: bool,
    /// Minimal quasi-identifiers of many subjects.
    pub qids: u64,
    /// Their number with one, two, … attributes.
    pub by_size: Vec<u64>,
    /// Attributes with their share of `qids`, 0 to 1.
    pub involvement: Vec<(String, f64)>,
    /// Expected mean loss of a cell.
    pub expected_loss: f64,
    /// Duration.
    pub seconds: f64,
}

impl EvidenceGathered {
    /// Logs and counts the event.
    pub fn emit(&self, telemetry: &Telemetry) {
        let metrics = telemetry.metrics();
        metrics.planning.minimal_qids.set(clamped(self.qids));
        for size in QidSize::ALL {
            let of_size = if *size == QidSize::More {
                self.by_size.iter().skip(size.index()).sum()
            } else {
                self.by_size.get(size.index()).copied().unwrap_or(0)
            };
            metrics.planning.qids_by_size.of(*size).set(of_size as f64);
        }
        for (attribute, share) in &self.involvement {
            metrics.involvement.with_label_values(&[attribute.as_str()]).set(*share);
        }
        metrics.planning.recheck_complete.set(i64::from(self.complete));
        metrics.planning.recheck_seconds.set(self.seconds);
        metrics.planning.expected_loss.set(self.expected_loss);
        if telemetry.may_log("evidence_gathered", "") {
            let Self { plan, complete, qids, expected_loss, seconds, .. } = self;
            tracing::info!(plan, complete, qids, expected_loss, seconds, "window searched for quasi-identifiers");
        }
    }
}

/// A GPU counted the window. Numbers since the previous event.
#[derive(Clone, Copy, Debug, Default)]
pub struct DeviceUsed {
    /// Current device memory, in bytes.
    pub held_bytes: u64,
    /// Kernels started.
    pub launches: u64,
    /// Bytes to the device.
    pub uploaded_bytes: u64,
    /// Bytes from the device.
    pub downloaded_bytes: u64,
    /// Uploads of the whole window.
    pub fills: u64,
    /// Failures replaced by the CPU.
    pub fallbacks: u64,
    /// Attribute sets that the CPU counted in a device search.
    pub sets_left: u64,
    /// The device has failed permanently.
    pub lost: bool,
}

impl DeviceUsed {
    /// Logs and counts the event.
    pub fn emit(&self, telemetry: &Telemetry) {
        let metrics = telemetry.metrics();
        // Rounded, because the load depends on the values.
        let board = telemetry.board();
        let (count, bytes) =
            (|figure, n| board.coarse.rounded_count(figure, n), |figure, n| board.coarse.rounded_bytes(figure, n));
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
            tracing::warn!(fallbacks, lost, "the GPU failed: the CPU counted instead, with the same results");
        }
    }
}

/// A search failed or was late; the old plan stays.
#[derive(Clone, Copy, Debug)]
pub struct PlannerFailed;

impl PlannerFailed {
    /// Logs and counts the event.
    pub fn emit(&self, telemetry: &Telemetry) {
        telemetry.metrics().planning.planner_failures.inc();
        if telemetry.may_log("planner_failed", "") {
            tracing::warn!("plan search failed or timed out: the old plan stays active");
        }
    }
}
