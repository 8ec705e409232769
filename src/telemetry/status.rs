//! The shared account that events write and the HTTP pages read.

use super::coarse::{Coarse, Draws, about};
use super::history::{History, Point};
use super::labels::{Counts, MemoryPart, Outcome, ReloadOutcome, SecurityRefusal, SuppressionReason, WrittenAs};
use super::logging::{Limiter, Verdict};
use super::metrics::{Metrics, clamped};
use super::reason::RejectionReason;
use super::report::{BatchReport, RecordShare, Represented, SeriesPublished, Totals};
use crate::html::series_chart::SeriesCharts;
use serde::Serialize;
use serde_json::Value;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// What must hold before the daemon says that it is ready.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[expect(clippy::struct_excessive_bools, reason = "conditions that hold or do not, each by itself")]
pub struct Readiness {
    /// Partitions are assigned (a file source: the file is open).
    pub assignment: bool,
    /// The record schema and its hierarchies are loaded.
    pub schema: bool,
    /// A broker answers (a file source: always).
    pub broker: bool,
    /// The disk of the state directory does not answer, or has failed.
    pub state_failed: bool,
    /// Records, or the start, wait for a schema registry that does not answer.
    pub registry_waited_for: bool,
    /// Why brokers do not let us in, or we do not trust them, where that is so.
    pub refused: Option<SecurityRefusal>,
}

impl Readiness {
    /// Why the daemon is not ready; empty when it is.
    pub fn reasons(self) -> Vec<&'static str> {
        let conditions = [
            (self.schema, "the record schema is not loaded"),
            (self.broker, "no broker answers"),
            (self.assignment, "no partition is assigned"),
            (!self.registry_waited_for, "records wait for a schema registry that does not answer"),
            (!self.state_failed, "the disk of the state directory does not answer, or has failed"),
        ];
        let refused = self.refused.map(|refusal| match refusal {
            SecurityRefusal::Protocol => "the brokers' listener speaks another protocol",
            SecurityRefusal::BrokerCertificate => "the brokers' certificate is not trusted",
            SecurityRefusal::OurCertificate => "the brokers do not take our certificate",
            SecurityRefusal::Authentication => "the brokers refuse who we are",
            SecurityRefusal::NoToken => "there is no token to show to the brokers",
        });
        conditions.into_iter().filter(|(holds, _)| !holds).map(|(_, reason)| reason).chain(refused).collect()
    }
}

/// Which records a share is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settled {
    /// All of them: of a file, whatever process has read it.
    ByTheState,
    /// By this process, since its start.
    ByThisProcess,
}

/// When the configuration was last read anew, and what became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct LastReload {
    /// Seconds since 1970.
    pub at_seconds: u64,
    /// What became of it.
    pub outcome: ReloadOutcome,
}

/// What the status page shows. Counts, shares, names of the configuration; never a value of a record.
#[derive(Clone, Debug, Serialize)]
pub struct Status {
    /// Version of the program.
    pub version: &'static str,
    /// `privacy.k`.
    pub k: usize,
    /// The first digits of the digest of the policy in force; empty before there is one.
    pub policy: String,
    /// None where nobody has asked for it since the start.
    pub last_reload: Option<LastReload>,
    /// Since the start of the process.
    pub uptime_seconds: u64,
    /// Whether nothing stands in the way of releasing.
    pub ready: bool,
    /// Why not.
    pub reasons: Vec<&'static str>,
    /// What the schema leaves unprotected, by attribute.
    pub doubts: Vec<String>,
    /// Across restarts.
    pub totals: Totals,
    /// Records held.
    pub held: u64,
    /// Whether the totals and what is held add up.
    pub conserved: bool,
    /// Mean over the last ten seconds.
    pub consumed_per_second: f64,
    /// Records released a second, in the mean of the last minute.
    pub released_per_second: f64,
    /// Since the start of the process.
    pub batches_committed: u64,
    /// Since the start of the process.
    pub batches_aborted: u64,
    /// Since the start of the process.
    pub verification_refusals: u64,
    /// By reason, since the start of the process.
    pub suppressed: Counts<SuppressionReason>,
    /// By reason, since the start of the process.
    pub dead_lettered: Counts<RejectionReason>,
    /// Names of the groups, in the order of `fragments_by_group`.
    pub groups: Vec<String>,
    /// Fragments released, by group.
    pub fragments_by_group: Vec<u64>,
    /// Mean loss of all present quasi cells that were settled since the start of the process.
    pub mean_loss: Option<f64>,
    /// How much of the input the rows of the series represent; none without series.
    pub series: Option<SeriesPublished>,
    /// Share of the records that the release represents.
    pub represented: Represented,
    /// Whether only series leave: no record leaves as fragments.
    pub only_series: bool,
    /// Fragments thinned since the start of the process: other lines of their subject stand for them. Rounded and held.
    pub thinned_fragments: u64,
    /// Lines that have waited for their delay since then, and how long in the mean. Rounded and held.
    pub delayed_lines: u64,
    /// Mean wait of delayed lines; none where none has waited.
    pub mean_delay_seconds: Option<f64>,
    /// The last committed batch; sizes and risk as they are shown.
    pub last: Option<BatchReport>,
    /// The last two minutes, a point a second.
    pub history: Vec<Point>,
    /// The plan in force, as the daemon summarises it.
    pub plan: Value,
    /// Resident memory of the process; none where the system does not say.
    pub resident_bytes: Option<u64>,
}

/// What changes; one lock, so that a scrape sees either all of a batch or nothing of it.
#[derive(Default)]
pub(super) struct Board {
    /// By join that reads a topic: messages that it has not read.
    pub profile_lags: std::collections::BTreeMap<String, Option<u64>>,
    pub totals: Totals,
    /// The totals that the durable state had at the start.
    pub before: Totals,
    /// Records of which only the risk had been measured by then.
    monitored_before: u64,
    pub held: u64,
    pub aborted: u64,
    pub committed: u64,
    pub refusals: u64,
    pub suppressed: Counts<SuppressionReason>,
    pub dead_lettered: Counts<RejectionReason>,
    pub fragments_by_group: Vec<u64>,
    /// As it is shown, and as it was.
    pub last: Option<BatchReport>,
    pub exact: Option<BatchReport>,
    pub coarse: Coarse,
    pub history: History,
    pub readiness: Readiness,
    /// How the records that are read are written down.
    pub written_as: Option<WrittenAs>,
    doubts: Vec<String>,
    pub partitions: u64,
    /// Sum of the loss of the quasi cells settled, and their number.
    loss: (f64, u64),
    thinned_fragments: u64,
    pub series: Option<SeriesPublished>,
    pub charts: SeriesCharts,
    min_represented: f64,
    /// Records that could not be read count in the share that the release represents.
    judges_unreadable: bool,
    only_series: bool,
    /// Another instance has the cohorts of the series, and judges what the release represents.
    pub has_cohorts_elsewhere: bool,
    /// Lines that have waited for their delay, and their delays in all.
    delayed: (u64, f64),
    plan: Value,
    policy: String,
    last_reload: Option<LastReload>,
    limiter: Limiter,
}

struct Inner {
    started: Instant,
    k: AtomicUsize,
    groups: Vec<String>,
    metrics: Metrics,
    board: Mutex<Board>,
}

/// Metrics, log limits and status of one daemon. Clones share everything.
#[derive(Clone)]
pub struct Telemetry(Arc<Inner>);

impl std::fmt::Debug for Telemetry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Telemetry").finish_non_exhaustive()
    }
}

impl Telemetry {
    /// Makes every series: `k` as configured, `groups` the names of the configured groups of attributes (a fragment
    /// of any other is counted under `other`).
    pub fn new(k: usize, groups: &[String]) -> Self {
        let board = Board { fragments_by_group: vec![0; groups.len() + 1], ..Board::default() };
        Self(Arc::new(Inner {
            started: Instant::now(),
            k: AtomicUsize::new(k),
            groups: groups.to_vec(),
            metrics: Metrics::new(k, groups),
            board: Mutex::new(board),
        }))
    }

    /// Makes the series of the attributes that a search of the window may name.
    #[must_use]
    pub fn naming(self, attributes: &[&str]) -> Self {
        for attribute in attributes {
            self.metrics().involvement.with_label_values(&[attribute]);
        }
        self
    }

    /// Says what each part of the memory may take, in bytes.
    pub fn divide_memory(&self, parts: &[(MemoryPart, u64)]) {
        for (part, bytes) in parts {
            self.metrics().memory.part_limits.of(*part).set(*bytes as f64);
        }
    }

    /// Sets the record counters to the totals of the durable state, so that conservation holds across restarts. What
    /// the totals leave open is held. Of `monitored` records only the risk was measured.
    pub fn restore(&self, totals: Totals, monitored: u64) {
        let mut board = self.board();
        if board.committed > 0 && board.totals == totals {
            // The same records, known to another engine of this process.
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
        self.show_represented();
    }

    /// All metrics in Prometheus' text format.
    pub fn render(&self) -> String {
        let board = self.board();
        let metrics = self.metrics();
        metrics.health.ready.set(i64::from(board.readiness.reasons().is_empty()));
        metrics.memory.resident.set(clamped(resident().unwrap_or_default()));
        metrics.render()
    }

    /// Says how the records that are read are written down.
    pub fn read_as(&self, format: WrittenAs) {
        self.board().written_as = Some(format);
    }

    /// Changes what must hold for readiness.
    pub fn set_readiness(&self, change: impl FnOnce(&mut Readiness)) {
        change(&mut self.board().readiness);
    }

    /// What stands in the way of releasing.
    pub fn readiness(&self) -> Readiness {
        self.board().readiness
    }

    /// Sets what `/plan` and the status page show of the plan in force: names, levels and counts, **no value and no
    /// label of a hierarchy**. The page draws `{"version", "identifiers": [..], "groups": [{"name", "quasi": [..],
    /// "sensitive": [..], "insensitive": [..], "nodes"}]}` and shows no other key.
    pub fn set_plan(&self, summary: Value) {
        self.board().plan = summary;
    }

    /// The plan in force as its page shows it.
    pub fn plan(&self) -> Value {
        self.board().plan.clone()
    }

    /// Share of the records settled of which nothing was released, by the form that loses fewest; 0 where none was settled. Records that
    /// only the risk was measured of are not settled, nor are tombstones. With series, those that their rows represent are released.
    /// `more` were lost before they were records.
    pub fn share_lost(&self, of: Settled, more: u64) -> f64 {
        let board = self.board();
        let mut monitored = board.suppressed.get(SuppressionReason::Monitoring);
        let Totals { mut released, mut suppressed, dead_lettered: mut unreadable, .. } = board.totals;
        match of {
            Settled::ByTheState => monitored += board.monitored_before,
            Settled::ByThisProcess => {
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

    /// Share of the records that the release represents, since the state was made.
    pub fn represented(&self) -> Represented {
        self.board().represented()
    }

    /// Sets the metrics of the share that the release represents.
    pub(super) fn show_represented(&self) {
        let represented = self.represented();
        let metrics = &self.metrics().series;
        metrics.share.set(represented.share().unwrap_or(f64::NAN));
        metrics.minimum.set(represented.minimum);
    }

    /// Sets what the policy in force asks of the release: `minimum` is its `release.min_represented`.
    /// `judges_unreadable`: records that could not be read count.
    pub(super) fn set_release(&self, minimum: f64, judges_unreadable: bool, only_series: bool) {
        {
            let mut board = self.board();
            board.min_represented = minimum;
            board.judges_unreadable = judges_unreadable;
            board.only_series = only_series;
        }
        self.show_represented();
    }

    /// Keys the draws by which figures are rounded.
    pub fn key_draws(&self, key: &[u8; 32]) {
        self.board().coarse.draws = Draws::new(key);
    }

    /// Draws for what else is rounded.
    pub fn draws(&self) -> Draws {
        self.board().coarse.draws
    }

    /// The last batch as it was, for whoever runs an engine in their own process. No page and no metric shows it.
    pub fn exact(&self) -> Option<BatchReport> {
        self.board().exact.clone()
    }

    /// A snapshot for the status page.
    pub fn status(&self) -> Status {
        let uptime_seconds = self.0.started.elapsed().as_secs();
        let mut board = self.board();
        let history = board.history.completed(uptime_seconds);
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
            resident_bytes: resident(),
        }
    }

    pub(super) fn metrics(&self) -> &Metrics {
        &self.0.metrics
    }

    /// The board; a panic elsewhere leaves counts that are still worth showing.
    pub(super) fn board(&self) -> MutexGuard<'_, Board> {
        self.0.board.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn k(&self) -> usize {
        self.0.k.load(Ordering::Relaxed)
    }

    /// A policy is in force: the first digits of its digest, and its k.
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

    /// Whether a line of this kind may be logged now; says how many before it were not.
    pub(super) fn may_log(&self, kind: &'static str, label: &'static str) -> bool {
        let now = u64::try_from(self.0.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let verdict = self.board().limiter.judge(kind, label, now);
        if let Verdict::Write { unwritten: unwritten @ 1.. } = verdict {
            tracing::info!(event = kind, label, suppressed = unwritten, "lines of this kind were not written");
        }
        verdict != Verdict::Skip
    }
}

/// Resident memory to two digits, in steps of 16 MiB at least: a table that doubles for one more value is not told.
fn resident() -> Option<u64> {
    resident_bytes().map(|bytes| about(bytes, 16 << 20, 0.5))
}

/// Records consumed and released a second, over the last ten seconds that are over.
fn rates(history: &[Point]) -> (f64, f64) {
    let recent = &history[history.len().saturating_sub(10)..];
    let seconds = recent.len().max(1) as f64;
    let mean = |of: fn(&Point) -> u64| recent.iter().map(of).sum::<u64>() as f64 / seconds;
    (mean(|point| point.consumed), mean(|point| point.released))
}

/// Doubts kept at most: two an attribute of a wide schema.
const MAX_DOUBTS: usize = 256;

impl Board {
    /// Notes a doubt; false where it is known already.
    pub fn doubt(&mut self, doubt: &str) -> bool {
        let new = self.doubts.len() < MAX_DOUBTS && self.doubts.iter().all(|known| known != doubt);
        if new {
            self.doubts.push(doubt.to_owned());
        }
        new
    }

    /// Records of which only the risk was measured, since the state was made.
    fn monitored(&self) -> u64 {
        self.suppressed.get(SuppressionReason::Monitoring) + self.monitored_before
    }

    /// Share of the records that the release represents. Records of which only the risk was measured are not released as fragments.
    fn represented(&self) -> Represented {
        let settled = (self.totals.released + self.totals.suppressed).saturating_sub(self.monitored());
        let unreadable = if self.judges_unreadable { self.totals.dead_lettered } else { 0 };
        Represented {
            by_fragments: RecordShare::of(self.totals.released, settled, unreadable),
            by_series: self.series.and_then(|series| series.best.judged(unreadable)),
            minimum: if self.has_cohorts_elsewhere { 0.0 } else { self.min_represented },
            unreadable,
        }
    }

    /// Enters a committed batch.
    pub fn enter(&mut self, second: u64, report: &BatchReport, shown: BatchReport) {
        self.committed += 1;
        self.totals.add(report);
        self.held = report.held;
        self.suppressed.merge(&report.suppressed);
        self.dead_lettered.merge(&report.dead_lettered);
        for (group, fragments) in report.fragments_by_group.iter().enumerate() {
            // Fragments of groups that were not named at the start are those of "other", the last.
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

/// Resident bytes, from the kernel's account of the process; None where there is no such account.
fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    resident_of(&status)
}

fn resident_of(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix("kB")?.trim_end().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::{resident_bytes, resident_of};

    #[test]
    fn the_kernel_account_is_read() {
        assert_eq!(resident_of("Name:\tx\nVmRSS:\t   12 kB\nThreads:\t1\n"), Some(12 * 1024));
        assert_eq!(resident_of("Name:\tx\n"), None);
        if cfg!(target_os = "linux") {
            assert!(resident_bytes().is_some_and(|bytes| bytes > 1 << 20));
        }
    }
}
