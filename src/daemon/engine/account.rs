//! The account of one batch: what became of its records, and the privacy picture before and after.

use super::{Engine, Settling};
use crate::anonymity::treatment::proposal::Unreleased;
use crate::daemon::picture::risk_before;
use crate::io::input::InputBatch;
use crate::records::table::Batch;
use crate::release::sink::Rejected;
use crate::release::verified::Verified;
use crate::telemetry::{BatchCommitted, BatchReport, RiskPicture, StageSeconds, SuppressionReason};

impl Engine {
    #[allow(clippy::too_many_arguments, reason = "the books of one batch")]
    #[allow(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
    pub(super) fn account(
        &self,
        input: &InputBatch,
        fresh: &Batch,
        batch: &Batch,
        waited: &[u8],
        proposal: &crate::anonymity::treatment::proposal::Proposal,
        verified: &Verified,
        rejected: &[Rejected],
        settling: Settling,
    ) -> BatchReport {
        let mut report = BatchReport {
            records: batch.rows() as u64,
            bytes_in: input.bytes,
            consumed: input.records(),
            dropped: input.tombstones,
            held: (self.held.rows() - (batch.rows() - fresh.rows()) + proposal.held.len()) as u64,
            unknown_cells: input.raw.unknown_cells,
            ..BatchReport::default()
        };
        for letter in rejected {
            report.dead_lettered.add(letter.reason, 1);
        }
        let mut is_held = vec![false; batch.rows()];
        for &row in &proposal.held {
            is_held[row as usize] = true;
        }
        for row in 0..batch.rows() {
            let reason = match proposal.unreleased[row] {
                _ if is_held[row] => continue,
                _ if self.settings.monitor => SuppressionReason::Monitoring,
                None => {
                    report.released += 1;
                    continue;
                }
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
        report.risk_before = risk_before(fresh, &self.quasi, &self.books, self.settings.policy.k);
        let risk = verified.risk();
        report.risk_after = RiskPicture {
            highest: risk.highest,
            average: risk.average(),
            share_below_k: risk.below_k as f64 / risk.lines.max(1) as f64,
        };
        let (loss, cells) = proposal.loss;
        report.quasi_cells = cells;
        if cells > 0 {
            report.loss = loss / cells as f64;
            report.exact_share = proposal.exact_cells as f64 / cells as f64;
        }
        report
    }

    pub(super) fn tell(&self, mut report: BatchReport, seconds: StageSeconds, bytes_out: u64, uncovered_cells: u64) {
        report.sequence = self.progress.sequence;
        report.clock_ms = self.progress.clock_ms;
        report.seconds = seconds;
        report.bytes_out = bytes_out;
        report.uncovered_cells = uncovered_cells;
        report.ledger_classes = self.ledger.classes() as u64;
        report.ledger_bytes = self.ledger.approximate_bytes() as u64;
        report.shown_values = self.ledger.tally().map_or(0, |tally| tally.entries() as u64);
        report.dictionary_values = self.books.iter().map(|b| b.values() as u64).sum();
        report.window_records = self.model.window().rows() as u64;
        report.drift_bits = self.drift();
        let model = self.model_size;
        report.model_nodes = model.nodes;
        report.model_edges = model.edges;
        report.model_bytes = model.bytes as u64;
        report.model_left_out_pairs = model.left_out_pairs as u64;
        report.model_derived_attributes = model.derived as u64;
        report.state_bytes = self.store.bytes();
        report.state_free_bytes = self.store.free_bytes();
        report.lag_records = self.health.as_ref().and_then(|h| h.lag());
        BatchCommitted(report).emit(&self.telemetry);
    }
}
