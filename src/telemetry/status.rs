//! State that events write and the HTTP pages read.

use super::figure_rounding::{FigureRounding, RoundingDraws};
use super::history::{HistoryPoint, SecondsHistory};
use super::labels::{CountsByLabel, MemoryPart, Outcome, ReloadOutcome, SuppressionReason, WrittenAs};
use super::logging::{LogDecision, LogLimiter};
use super::metrics::{Metrics, clamped};
use super::process_figures::{ProcessFigures, keep_start_time, rounded_resident_bytes};
use super::reason::RejectionReason;
use super::report::{BatchReport, RecordShare, RecordTotals, RepresentedShare, SeriesPublished};
use crate::html::series_chart::SeriesCharts;
use serde::Serialize;
use serde_json::Value;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use throng_kafka::refusal::SecurityRefusal;

/// Conditions of readiness.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[expect(clippy::struct_excessive_bools, reason = "independent conditions")]
pub struct Readiness {
    /// Partitions are assigned, or the file is open.
    pub assignment: bool,
    /// The record schema is loaded.
    pub schema: bool,
    /// A broker responds; always true for files.
    pub broker: bool,
    /// The disk of the state does not respond, or has failed.
    pub state_failed: bool,
    /// Records, or the start, wait for a schema registry.
    pub registry_waited_for: bool,
    /// Reason of a failed authentication.
    pub refused: Option<SecurityRefusal>,
}

impl Readiness {
    /// Returns the obstacles to readiness.
    pub fn reasons(self) -> Vec<&'static str> {
        let conditions = [
            (self.schema, "the record schema is not loaded"),
            (self.broker, "no broker answers"),
            (self.assignment, "no partition is assigned"),
            (!self.registry_waited_for, "records wait for a schema registry that does not answer"),
            (!self.state_failed, "the disk of the state directory does not answer, or has failed"),
        ];
        let refused = self.refused.map(|refusal| match refusal {
            SecurityRefusal::Protocol => "the brokers' listener uses another protocol",
            SecurityRefusal::BrokerCertificate => "the brokers' certificate is not trusted",
            SecurityRefusal::OurCertificate => "the brokers reject our certificate",
            SecurityRefusal::Authentication => "the brokers reject our credentials",
            SecurityRefusal::NoToken => "there is no token for the brokers",
        });
        conditions.into_iter().filter(|(holds, _)| !holds).map(|(_, reason)| reason).chain(refused).collect()
    }
}

/// Records for a share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShareScope {
    /// All records of the state.
    WholeState,
    /// Records of this process.
    CurrentProcess,
}

/// Last configuration reload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct LastReload {
    /// Seconds since 1970.
    pub at_seconds: u64,
    /// Its outcome.
    pub outcome: ReloadOutcome,
}

/// Data of the status page; never a value of a record.
#[derive(Clone, Debug, Serialize)]
pub struct Status {
    /// Version of throng.
    pub version: &'static str,
    /// `privacy.k`.
    pub k: usize,
    /// First digits of the active policy's digest; empty before one is active.
    pub policy: String,
    /// Last reload since the start.
    pub last_reload: Option<LastReload>,
    /// Seconds since the start.
    pub uptime_seconds: u64,
    /// The daemon can release.
    pub ready: bool,
    /// Obstacles to readiness.
    pub reasons: Vec<&'static str>,
    /// Warnings about unprotected attributes.
    pub doubts: Vec<String>,
    /// Totals across restarts.
    pub totals: RecordTotals,
    /// Withheld records.
    pub held: u64,
    /// The totals obey conservation.
    pub conserved: bool,
    /// Mean over the last ten seconds.
    pub consumed_per_second: f64,
    /// Mean over the last ten seconds.
    pub released_per_second: f64,
    /// Batches committed since the start.
    pub batches_committed: u64,
    /// Batches aborted since the start.
    pub batches_aborted: u64,
    /// Batches refused by verification since the start.
    pub verification_refusals: u64,
    /// Suppressed records by reason, since the start.
    pub suppressed: CountsByLabel<SuppressionReason>,
    /// Dead letters by reason, since the start.
    pub dead_lettered: CountsByLabel<RejectionReason>,
    /// Group names, in the order of `fragments_by_group`.
    pub groups: Vec<String>,
    /// Fragments by group.
    pub fragments_by_group: Vec<u64>,
    /// Mean loss of present quasi cells since the start.
    pub mean_loss: Option<f64>,
    /// Share that the series represent, if any.
    pub series: Option<SeriesPublished>,
    /// Share that the release represents.
    pub represented: RepresentedShare,
    /// No fragments are released.
    pub only_series: bool,
    /// Thinned fragments since the start, rounded and renewed at intervals.
    pub thinned_fragments: u64,
    /// Lines with an ended delay since the start, rounded and renewed at intervals.
    pub delayed_lines: u64,
    /// Mean delay of these lines.
    pub mean_delay_seconds: Option<f64>,
    /// Last batch, with rounded sizes and risk.
    pub last: Option<BatchReport>,
    /// Last two minutes, one point per second.
    pub history: Vec<HistoryPoint>,
    /// Summary of the active plan.
    pub plan: Value,
    /// Resident memory, if available.
    pub resident_bytes: Option<u64>,
}

/// Variable state under one lock: a scrape sees all of a batch or none of it.
#[derive(Default)]
pub(super) struct TelemetryState {
    /// Unread messages by join.
    pub profile_lags: std::collections::BTreeMap<String, Option<u64>>,
    pub totals: RecordTotals,
    /// Totals at the start.
    pub before: RecordTotals,
    /// Records only measured before the start.
    monitored_before: u64,
    pub held: u64,
    pub aborted: u64,
    pub committed: u64,
    pub refusals: u64,
    pub suppressed: CountsByLabel<SuppressionReason>,
    pub dead_lettered: CountsByLabel<RejectionReason>,
    pub fragments_by_group: Vec<u64>,
    /// Last report, displayed and exact.
    pub last: Option<BatchReport>,
    pub exact: Option<BatchReport>,
    pub coarse: FigureRounding,
    pub history: SecondsHistory,
    pub readiness: Readiness,
    /// Encoding of the source.
    pub written_as: Option<WrittenAs>,
    doubts: Vec<String>,
    pub partitions: u64,
    /// Sum and number of the completed quasi cells' loss.
    loss: (f64, u64),
    thinned_fragments: u64,
    pub series: Option<SeriesPublished>,
    pub charts: SeriesCharts,
    /// Positions of series and signal; only for a run without reloads.
    pub signals_with_rows: std::collections::BTreeSet<(usize, usize)>,
    min_represented: f64,
    /// Unreadable records count in the represented share.
    judges_unreadable: bool,
    only_series: bool,
    /// Another instance owns the cohorts and checks the share.
    pub has_cohorts_elsewhere: bool,
    /// Number and delay seconds of delayed lines.
    delayed: (u64, f64),
    plan: Value,
    policy: String,
    last_reload: Option<LastReload>,
    limiter: LogLimiter,
}

struct TelemetryInner {
    started: Instant,
    k: AtomicUsize,
    groups: Vec<String>,
    metrics: Metrics,
    board: Mutex<TelemetryState>,
}

/// Metrics, log limits and status of one daemon, shared by clones.
#[derive(Clone)]
pub struct Telemetry(Arc<TelemetryInner>);

impl std::fmt::Debug for Telemetry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Telemetry").finish_non_exhaustive()
    }
}

impl Telemetry {
    /// Creates every series. Fragments outside `groups` are counted under `other`.
    pub fn new(k: usize, groups: &[String]) -> Self {
        keep_start_time();
        let board = TelemetryState { fragments_by_group: vec![0; groups.len() + 1], ..TelemetryState::default() };
        Self(Arc::new(TelemetryInner {
            started: Instant::now(),
            k: AtomicUsize::new(k),
            groups: groups.to_vec(),
            metrics: Metrics::new(k, groups),
            board: Mutex::new(board),
        }))
    }

    /// Creates the series of attributes that a search may name.
    #[must_use]
    pub fn with_attribute_series(self, attributes: &[&str]) -> Self {
        for attribute in attributes {
            self.metrics().involvement.with_label_values(&[attribute]);
        }
        self
    }

    /// Sets the memory limit of each part, in bytes.
    pub fn set_memory_limits(&self, parts: &[(MemoryPart, u64)]) {
        for (part, bytes) in parts {
            self.metrics().memory.part_limits.of(*part).set(*bytes as f64);
        }
    }

    /// Restores the record counters, so that conservation holds across restarts. Unaccounted records are withheld;
    /// `monitored` ones were only measured.
    pub fn restore(&self, totals: RecordTotals, monitored: u64) {
        let mut board = self.board();
        if board.committed > 0 && board.totals == totals {
            // Another engine of this process has counted these records.
            return;
        }
        board.totals = totals;
        board.before = totals;
        board.monitored_before = monitored;
        board.held = totals.held().unwrap_or_default();
        let metrics = self.metrics();
        for (outcome, records) in [
            (Outcome::Consumed, totals.consumed),
            (Outcome::Released, totals.released),
            (Outcome::Suppressed, totals.suppressed),
            (Outcome::DeadLettered, totals.dead_lettered),
            (Outcome::Dropped, totals.dropped),
            (Outcome::Moved, totals.moved),
        ] {
            let counter = metrics.flow.records.of(outcome);
            counter.reset();
            counter.inc_by(records);
        }
        metrics.flow.held.set(clamped(board.held));
        drop(board);
        self.update_represented_metrics();
    }

    /// Renders all metrics in Prometheus' text format.
    pub fn render(&self) -> String {
        let board = self.board();
        let metrics = self.metrics();
        metrics.health.ready.set(i64::from(board.readiness.reasons().is_empty()));
        metrics.process.set(&ProcessFigures::read());
        metrics.render()
    }

    /// Sets the encoding of the source.
    pub fn set_record_encoding(&self, format: WrittenAs) {
        self.board().written_as = Some(format);
    }

    /// Changes readiness.
    pub fn set_readiness(&self, change: impl FnOnce(&mut Readiness)) {
        change(&mut self.board().readiness);
    }

    /// Returns readiness.
    pub fn readiness(&self) -> Readiness {
        self.board().readiness
    }

    /// Sets the plan for `/plan` and the status page: names, levels and counts, **no value and no label of a
    /// hierarchy**. The page draws `{"version", "identifiers": [..], "groups": [{"name", "quasi": [..], "sensitive":
    /// [..], "insensitive": [..], "nodes"}]}` and ignores other keys.
    pub fn set_plan(&self, summary: Value) {
        self.board().plan = summary;
    }

    /// Returns the plan summary.
    pub fn plan(&self) -> Value {
        self.board().plan.clone()
    }

    /// Returns the share of completed records without any release, by the form that loses fewest. Measured records and
    /// tombstones do not count. `more` were lost before they became records.
    pub fn share_lost(&self, of: ShareScope, more: u64) -> f64 {
        let board = self.board();
        let mut monitored = board.suppressed.get(SuppressionReason::Monitoring);
        let RecordTotals { mut released, mut suppressed, dead_lettered: mut unreadable, .. } = board.totals;
        match of {
            ShareScope::WholeState => monitored += board.monitored_before,
            ShareScope::CurrentProcess => {
                released -= board.before.released;
                suppressed -= board.before.suppressed;
                unreadable -= board.before.dead_lettered;
            }
        }
        let share = |lost: u64, kept: f64| if lost == 0 { 0.0 } else { lost as f64 / (kept + lost as f64) };
        let by_fragments = share((suppressed + unreadable).saturating_sub(monitored) + more, released as f64);
        let by_series =
            board.series.and_then(|series| series.best.records_share()).filter(|represented| *represented > 0.0);
        let by_series =
            by_series.map(|represented| share(unreadable + more, represented * (released + suppressed) as f64));
        by_series.map_or(by_fragments, |by_series| by_series.min(by_fragments))
    }

    /// Returns the represented share since the creation of the state.
    pub fn represented(&self) -> RepresentedShare {
        self.board().represented()
    }

    pub(super) fn update_represented_metrics(&self) {
        let represented = self.represented();
        let metrics = &self.metrics().series;
        metrics.share.set(represented.share().unwrap_or(f64::NAN));
        metrics.minimum.set(represented.minimum);
    }

    /// Sets the release requirements of the active policy.
    pub(super) fn set_release(&self, minimum: f64, judges_unreadable: bool, only_series: bool) {
        {
            let mut board = self.board();
            board.min_represented = minimum;
            board.judges_unreadable = judges_unreadable;
            board.only_series = only_series;
        }
        self.update_represented_metrics();
    }

    /// Sets the key of the rounding draws.
    pub fn set_rounding_key(&self, key: &[u8; 32]) {
        self.board().coarse.draws = RoundingDraws::new(key);
    }

    /// Returns the draws for other figures.
    pub fn rounding_draws(&self) -> RoundingDraws {
        self.board().coarse.draws
    }

    /// Returns the exact report of the last batch, for callers in the same process; never displayed.
    pub fn exact_last_report(&self) -> Option<BatchReport> {
        self.board().exact.clone()
    }

    /// Returns a snapshot.
    pub fn status(&self) -> Status {
        let uptime_seconds = self.0.started.elapsed().as_secs();
        let mut board = self.board();
        let history = board.history.completed_seconds(uptime_seconds);
        let (consumed_per_second, released_per_second) = rates(&history);
        let reasons = board.readiness.reasons();
        Status {
            version: env!("CARGO_PKG_VERSION"),
            k: self.k(),
            policy: board.policy.clone(),
            last_reload: board.last_reload,
            uptime_seconds,
            ready: reasons.is_empty(),
            reasons,
            doubts: board.doubts.clone(),
            totals: board.totals,
            held: board.held,
            conserved: board.totals.held() == Some(board.held),
            consumed_per_second,
            released_per_second,
            batches_committed: board.committed,
            batches_aborted: board.aborted,
            verification_refusals: board.refusals,
            suppressed: board.suppressed.clone(),
            dead_lettered: board.dead_lettered.clone(),
            groups: self.0.groups.iter().cloned().chain(["other".to_owned()]).collect(),
            fragments_by_group: board.fragments_by_group.clone(),
            mean_loss: (board.loss.1 > 0).then(|| board.loss.0 / board.loss.1 as f64),
            series: board.series,
            represented: board.represented(),
            only_series: board.only_series,
            thinned_fragments: board.thinned_fragments,
            delayed_lines: board.delayed.0,
            mean_delay_seconds: (board.delayed.0 > 0).then(|| board.delayed.1 / board.delayed.0 as f64),
            last: board.last.clone(),
            history,
            plan: board.plan.clone(),
            resident_bytes: rounded_resident_bytes(),
        }
    }

    pub(super) fn metrics(&self) -> &Metrics {
        &self.0.metrics
    }

    /// The counts remain usable after a panic elsewhere.
    pub(super) fn board(&self) -> MutexGuard<'_, TelemetryState> {
        self.0.board.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn k(&self) -> usize {
        self.0.k.load(Ordering::Relaxed)
    }

    pub(super) fn set_policy(&self, digest: &str, k: usize) {
        self.0.k.store(k, Ordering::Relaxed);
        self.metrics().health.k.set(clamped(k as u64));
        digest.clone_into(&mut self.board().policy);
    }

    pub(super) fn set_last_reload(&self, last: LastReload) {
        self.board().last_reload = Some(last);
    }

    pub(super) fn second(&self) -> u64 {
        self.0.started.elapsed().as_secs()
    }

    /// Returns true if a line may be logged now, after logging the number of suppressed ones.
    pub(super) fn may_log(&self, kind: &'static str, label: &'static str) -> bool {
        let now = u64::try_from(self.0.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let verdict = self.board().limiter.admit_line(kind, label, now);
        if let LogDecision::Write { unwritten: unwritten @ 1.. } = verdict {
            tracing::info!(event = kind, label, suppressed = unwritten, "lines of this kind were suppressed");
        }
        verdict != LogDecision::Skip
    }
}

/// Returns records consumed and released per second, over ten seconds.
fn rates(history: &[HistoryPoint]) -> (f64, f64) {
    let recent = &history[history.len().saturating_sub(10)..];
    let seconds = recent.len().max(1) as f64;
    let mean = |of: fn(&HistoryPoint) -> u64| recent.iter().map(of).sum::<u64>() as f64 / seconds;
    (mean(|point| point.consumed), mean(|point| point.released))
}

/// Two warnings per attribute of a wide schema.
const MAX_SCHEMA_WARNINGS: usize = 256;

impl TelemetryState {
    /// Stores a warning; false if known or at the limit.
    pub fn add_warning(&mut self, doubt: &str) -> bool {
        let new = self.doubts.len() < MAX_SCHEMA_WARNINGS && self.doubts.iter().all(|known| known != doubt);
        if new {
            self.doubts.push(doubt.to_owned());
        }
        new
    }

    fn monitored(&self) -> u64 {
        self.suppressed.get(SuppressionReason::Monitoring) + self.monitored_before
    }

    /// Measured records do not count as fragments.
    fn represented(&self) -> RepresentedShare {
        let settled = (self.totals.released + self.totals.suppressed).saturating_sub(self.monitored());
        let unreadable = if self.judges_unreadable { self.totals.dead_lettered } else { 0 };
        RepresentedShare {
            by_fragments: RecordShare::of(self.totals.released, settled, unreadable),
            by_series: self.series.and_then(|series| series.best.checked_share(unreadable)),
            minimum: if self.has_cohorts_elsewhere { 0.0 } else { self.min_represented },
            unreadable,
        }
    }

    /// Adds a committed batch.
    pub fn add_batch(&mut self, second: u64, report: &BatchReport, shown: BatchReport) {
        self.committed += 1;
        self.totals.add(report);
        self.held = report.held;
        self.suppressed.merge(&report.suppressed);
        self.dead_lettered.merge(&report.dead_lettered);
        for (group, fragments) in report.fragments_by_group.iter().enumerate() {
            // The last entry counts groups without a name.
            let place = group.min(self.fragments_by_group.len() - 1);
            self.fragments_by_group[place] += fragments;
        }
        self.loss.0 += report.loss * report.quasi_cells as f64;
        self.loss.1 += report.quasi_cells;
        self.thinned_fragments += shown.thinned_fragments;
        self.delayed.0 += shown.delayed_lines;
        self.delayed.1 += shown.delay_seconds * shown.delayed_lines as f64;
        self.history.record(second, &shown);
        self.last = Some(shown);
        self.exact = Some(report.clone());
    }
}
