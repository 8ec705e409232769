//! The account of one batch: what became of its records, and the privacy picture before and after.

use super::clock;
use super::fields::Engine;
use super::gathered::Gathered;
use super::settling::Settling;
use super::turnout::Turnout;
use crate::anonymity::treatment::proposal::{Proposal, Unreleased};
use crate::daemon::engine::held::Remaining;
use crate::daemon::engine::picture::risk_before;
use crate::io::file::LongRows;
use crate::records::table::Batch;
use crate::release::invariants::is_conserved;
use crate::release::sink::Rejected;
use crate::release::verified::{Crowd, Verified};
use crate::start::findings::Met;
use crate::start::memory::COPIES;
use crate::telemetry::{
    AttributesNeverMet, BatchCommitted, BatchReport, CrowdPicture, RiskPicture, StageSeconds, SuppressionReason,
};
use std::collections::BTreeMap;

/// The crowds of some lines, as the report has them.
#[allow(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
fn picture(crowd: Crowd) -> CrowdPicture {
    let lines = crowd.lines.max(1) as f64;
    CrowdPicture {
        smallest: crowd.smallest,
        average: crowd.sum as f64 / lines,
        share_below_k: crowd.below_k as f64 / lines,
    }
}

/// Records after which an attribute that never came is worth a line in the log.
const ENOUGH_TO_TELL: u64 = 1000;

impl Engine {
    #[allow(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
    pub(super) fn account(
        &self,
        gathered: &Gathered<'_>,
        proposal: &Proposal,
        turnout: &Turnout,
        remaining: &BTreeMap<u32, Remaining>,
        verified: &Verified,
        settling: Settling,
    ) -> BatchReport {
        let Gathered { input, fresh, batch, waits, waited, rejected, .. } = gathered;
        let unreleased = |waits: &[Remaining]| waits.iter().filter(|wait| !wait.released).count();
        let held =
            self.held.unreleased() - unreleased(waits) + remaining.values().filter(|wait| !wait.released).count();
        let mut report = BatchReport {
            records: batch.rows() as u64,
            bytes_in: input.bytes,
            consumed: input.records(),
            dropped: input.tombstones,
            held: held as u64,
            thinned_fragments: turnout.thinned,
            delayed_lines: turnout.waited.0,
            delay_seconds: if turnout.waited.0 == 0 {
                0.0
            } else {
                turnout.waited.1 as f64 / 1000.0 / turnout.waited.0 as f64
            },
            unknown_cells: input.raw.unknown_cells,
            ..BatchReport::default()
        };
        for letter in rejected {
            report.dead_lettered.add(letter.reason, 1);
        }
        let groups = self.in_force.plan.groups.len();
        for row in 0..batch.rows() {
            let was_released = waits.get(row).is_some_and(|wait| wait.released);
            let number = u32::try_from(row).unwrap_or(u32::MAX);
            let remains = remaining.get(&number);
            if let Some(wait) = remains {
                // Of some a fragment leaves now, and others wait.
                report.released += u64::from(wait.released && !was_released);
                continue;
            }
            let reason = match proposal.unreleased[row] {
                _ if was_released => continue,
                _ if self.settings.monitor => SuppressionReason::Monitoring,
                None => {
                    report.released += 1;
                    continue;
                }
                Some(_) if !turnout.mask.is_in(groups, row) => SuppressionReason::Thinned,
                Some(Unreleased::Guard) => SuppressionReason::Guard,
                Some(why) => match (settling, why) {
                    (Settling::Shutdown, _) => SuppressionReason::Shutdown,
                    (Settling::Revoked, _) => SuppressionReason::Revoked,
                    (Settling::EndOfStream, Unreleased::Quiet) => SuppressionReason::EndOfStream,
                    (Settling::Quiet, _) | (_, Unreleased::Quiet) => SuppressionReason::Quiet,
                    _ if waited[row] > 0 => SuppressionReason::HeldOut,
                    _ => SuppressionReason::NoSupport,
                },
            };
            report.suppressed.add(reason, 1);
        }
        report.withheld_cells = proposal.withheld_cells;
        report.fragments_by_group = (0..verified.groups()).map(|g| verified.len(g) as u64).collect();
        report.fragments = report.fragments_by_group.iter().sum();
        report.risk_before = risk_before(fresh, &self.quasi, &self.coding.books, self.settings.policy.k);
        let risk = verified.risk();
        report.risk_after = RiskPicture {
            highest: risk.highest,
            average: risk.average(),
            share_below_k: risk.below_k as f64 / risk.lines.max(1) as f64,
        };
        report.crowd = picture(verified.crowd());
        let (loss, cells) = proposal.loss;
        report.quasi_cells = cells;
        if cells > 0 {
            report.loss = loss / cells as f64;
            report.exact_share = proposal.exact_cells as f64 / cells as f64;
        }
        report
    }

    /// What has been met once a batch has left.
    pub(super) fn met_with(
        &self,
        fresh: &Batch,
        rejected: &[Rejected],
        long_rows: Option<LongRows>,
        report: &BatchReport,
    ) -> Met {
        let mut met = self.learning.met.clone();
        met.add(fresh, rejected, long_rows);
        met.monitor(report.suppressed.get(SuppressionReason::Monitoring));
        met
    }

    /// Notes what has been met with a batch that has left. Once it is clear that an attribute never comes, a stream without
    /// end says so in its log.
    pub(super) fn meet(&mut self, met: Option<&Met>) {
        let Some(met) = met else { return };
        let before = std::mem::replace(&mut self.learning.met, met.clone()).here();
        if before < ENOUGH_TO_TELL && self.learning.met.here() >= ENOUGH_TO_TELL {
            let name = |a: usize| self.schema.attributes[a].name.clone();
            let attributes: Vec<String> = self.learning.met.unmet(&self.schema).into_iter().map(name).collect();
            if !attributes.is_empty() {
                AttributesNeverMet { attributes, records: self.learning.met.records() }.emit();
            }
        }
    }

    /// The size of the model without this batch. Not later: whether the pairs of this one are counted by the time it is told
    /// of hangs on how busy the re-check is, and what pages show must not.
    pub(super) fn measure_model(&self, report: &mut BatchReport) {
        let model = self.learning.model_size;
        report.model_nodes = model.nodes;
        report.model_edges = model.edges;
        report.model_bytes = model.bytes as u64;
        report.model_left_out_pairs = model.left_out_pairs as u64;
    }

    pub(super) fn tell(
        &self,
        mut report: BatchReport,
        seconds: StageSeconds,
        bytes_out: u64,
        uncovered_cells: u64,
        oldest_ms: Option<i64>,
    ) {
        report.append_to_commit_seconds = since_append(oldest_ms);
        report.sequence = self.durable.progress.sequence;
        report.clock_ms = self.durable.progress.clock_ms;
        report.seconds = seconds;
        report.bytes_out = bytes_out;
        report.uncovered_cells = uncovered_cells;
        report.ledger_bytes = self.ledger.approximate_bytes() as u64;
        report.supporters = self.ledger.supporters.as_ref().map_or(0, |supporters| supporters.entries() as u64);
        report.waiting_lines = self.held.lines() as u64;
        report.profiles = self.joins.profiles();
        report.said_lines = self.ledger.said.as_ref().map_or(0, |said| said.entries() as u64);
        report.dictionary_values = self.coding.books.iter().map(|b| b.values() as u64).sum();
        report.dictionary_bytes = self.dictionary_bytes() * COPIES;
        report.window_bytes = (self.learning.model.window().bytes() * 2) as u64;
        report.window_records = self.learning.model.window().rows() as u64;
        report.drift_bits = self.drift();
        report.state_bytes = self.durable.store.bytes();
        report.state_free_bytes = self.durable.store.free_bytes();
        report.lag_records = self.origin.lag();
        debug_assert!(is_conserved(&self.durable.progress.totals, report.held), "records are not conserved");
        BatchCommitted(report).emit(&self.telemetry);
    }
}

/// Seconds since the oldest record of a batch was appended at the source, where that is known.
fn since_append(oldest_ms: Option<i64>) -> Option<f64> {
    #[allow(clippy::cast_precision_loss, reason = "milliseconds are far below 2^52")]
    oldest_ms.map(|oldest| (clock::now_ms() - oldest).max(0) as f64 / 1000.0)
}
