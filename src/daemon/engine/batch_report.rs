//! Report of one batch: outcomes and risk before and after.

use super::clock;
use super::core::Engine;
use super::gather::{GatheredBatch, SettlementReason};
use super::held_records::PendingRow;
use crate::start::memory_budget::DICTIONARY_COPIES;
use crate::start::run_findings::RunStatistics;
use crate::start::schema_warnings;
use crate::telemetry::conservation::is_conserved;
use crate::telemetry::{
    AttributesNeverMet, BatchCommitted, BatchReport, CellTypeMismatch, ClassSizeFigures, RejectionReason, RiskFigures,
    SchemaWarning, SuppressionReason,
};
use std::collections::BTreeMap;
use throng_core::release::verified_batch::ReleasableBatch;
use throng_core::stream::release_sink::RejectedRecord;
use throng_core::treatment::proposal::{Proposal, UnreleasedReason};
use throng_core::values::code_batch::CodeBatch;
use throng_core::values::codebook::Codebook;
use throng_core::values::raw_batch::RecordPosition;
use throng_core::values::subject_digest::NO_SUBJECT;

/// Records after which attributes without values are logged.
const UNMET_REPORT_RECORDS: u64 = 1000;

impl Engine {
    pub(super) fn build_report(
        &self,
        gathered: &GatheredBatch<'_>,
        proposal: &Proposal,
        remaining: &BTreeMap<u32, PendingRow>,
        verified: &ReleasableBatch,
        settling: SettlementReason,
    ) -> BatchReport {
        let GatheredBatch { input, fresh, batch, waits, waited, rejected, turnout, .. } = gathered;
        let unreleased = |waits: &[PendingRow]| waits.iter().filter(|wait| !wait.released).count();
        let held =
            self.held.unreleased() - unreleased(waits) + remaining.values().filter(|wait| !wait.released).count();
        let mut report = BatchReport {
            records: batch.rows() as u64,
            bytes_in: input.bytes,
            consumed: input.records(),
            dropped: input.tombstones(),
            held: held as u64,
            thinned_fragments: turnout.thinned,
            delayed_lines: turnout.ended_delays.0,
            delay_seconds: turnout.ended_delays.1 as f64 / 1000.0 / turnout.ended_delays.0.max(1) as f64,
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
                // Other fragments may stay held.
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
                Some(_) if !turnout.mask.takes_part_in_any(groups, row) => SuppressionReason::Thinned,
                Some(UnreleasedReason::CountingGuard) => SuppressionReason::Guard,
                Some(why) => match (settling, why) {
                    (SettlementReason::Shutdown, _) => SuppressionReason::Shutdown,
                    (SettlementReason::EndOfStream, UnreleasedReason::TooFewSubjects) => SuppressionReason::EndOfStream,
                    (SettlementReason::Quiet, _) | (_, UnreleasedReason::TooFewSubjects) => SuppressionReason::Quiet,
                    _ if waited[row] > 0 => SuppressionReason::HeldOut,
                    _ => SuppressionReason::NoSupport,
                },
            };
            report.suppressed.add(reason, 1);
        }
        report.suppressed.add(SuppressionReason::Thinned, input.thinned_rows());
        report.withheld_cells = proposal.withheld_cells;
        report.fragments_by_group = (0..verified.groups()).map(|g| verified.len(g) as u64).collect();
        report.fragments = report.fragments_by_group.iter().sum();
        report.risk_before = risk_before(fresh, &self.quasi, &self.coding.books, self.settings.policy.k);
        let risk = verified.risk();
        report.risk_after = RiskFigures {
            highest: risk.highest,
            average: risk.average(),
            share_below_k: risk.below_k as f64 / risk.lines.max(1) as f64,
        };
        let crowd = verified.crowd();
        let lines = crowd.lines.max(1) as f64;
        report.crowd = ClassSizeFigures {
            smallest: crowd.smallest,
            average: crowd.sum as f64 / lines,
            share_below_k: crowd.below_k as f64 / lines,
        };
        let (loss, cells) = proposal.loss;
        report.quasi_cells = cells;
        if cells > 0 {
            report.loss = loss / cells as f64;
            report.exact_share = proposal.exact_cells as f64 / cells as f64;
        }
        report
    }

    /// Updates the findings, and logs attributes without values after [`UNMET_REPORT_RECORDS`] records.
    pub(super) fn update_findings(&mut self, met: Option<&RunStatistics>) {
        let Some(met) = met else { return };
        let before = std::mem::replace(&mut self.learning.met, met.clone()).decoded_here();
        if before < UNMET_REPORT_RECORDS && self.learning.met.decoded_here() >= UNMET_REPORT_RECORDS {
            let name = |a: usize| self.schema.attributes[a].name.clone();
            let attributes: Vec<String> =
                self.learning.met.attributes_without_values(&self.schema).into_iter().map(name).collect();
            if !attributes.is_empty() {
                AttributesNeverMet { attributes, records: self.learning.met.records() }.emit();
            }
        }
    }

    /// Reports the model size without this batch: status pages must not depend on counting speed.
    pub(super) fn measure_model(&self, report: &mut BatchReport) {
        let model = self.learning.model_size;
        report.model_nodes = model.nodes;
        report.model_edges = model.edges;
        report.model_bytes = model.bytes as u64;
        report.model_left_out_pairs = model.left_out_pairs as u64;
    }

    /// Completes and emits the report.
    pub(super) fn emit_report(&self, mut report: BatchReport, oldest_ms: Option<i64>) {
        report.append_to_commit_seconds = oldest_ms.map(|oldest| (clock::now_ms() - oldest).max(0) as f64 / 1000.0);
        report.sequence = self.durable.progress.sequence;
        report.clock_ms = self.durable.progress.clock_ms;
        report.ledger_bytes = self.ledger.approximate_bytes() as u64;
        report.supporters = self.ledger.supporters.as_ref().map_or(0, |supporters| supporters.entries() as u64);
        report.waiting_lines = self.held.lines() as u64;
        report.profiles = self.joins.profiles();
        report.said_lines = self.ledger.release_log.as_ref().map_or(0, |said| said.entries() as u64);
        report.dictionary_values = self.coding.books.iter().map(|b| b.values() as u64).sum();
        report.dictionary_bytes = self.dictionary_bytes() * DICTIONARY_COPIES;
        report.window_bytes = (self.learning.model.window().bytes() * 2) as u64;
        report.window_records = self.learning.model.window().rows() as u64;
        report.drift_bits = self.drift();
        report.state_bytes = self.durable.store.bytes();
        report.state_free_bytes = self.durable.store.free_bytes();
        report.lag_records = self.origin.lag();
        debug_assert!(is_conserved(&self.durable.progress.totals, report.held), "records are not conserved");
        BatchCommitted(report).emit(&self.telemetry);
    }

    /// Reports attributes with cells of the wrong type, each with its first position.
    pub(super) fn report_wrong_types(&self, rejected: &[RejectedRecord]) {
        let mut misfits: BTreeMap<usize, (u64, RecordPosition)> = BTreeMap::new();
        for letter in rejected.iter().filter(|letter| letter.reason == RejectionReason::WrongType) {
            let Some(attribute) = letter.attribute else { continue };
            let (records, first) = misfits.entry(attribute).or_insert((0, letter.coordinate));
            *records += 1;
            *first = letter.coordinate.min(*first);
        }
        for (attribute, (records, first)) in misfits {
            let attribute = &self.schema.attributes[attribute];
            let first = self.origin.describe(first);
            let expected = attribute.kind().name();
            CellTypeMismatch { attribute: &attribute.name, expected, records, first }.emit(&self.telemetry);
        }
    }

    /// Reports unprotected values: after the first batch, and after fourfold growth. Values with a form that
    /// identifies a person are reported immediately.
    pub(super) fn report_unprotected_values(&mut self) {
        let due = self.durable.progress.rows >= self.learning.next_value_check;
        if due {
            self.learning.next_value_check = self.durable.progress.rows.saturating_mul(4).max(1);
        }
        for (attribute, book) in self.coding.books.iter().enumerate() {
            if due || book.first_shape().is_some() {
                schema_warnings::value_warning(book, self.learning.sample.column(attribute))
                    .into_iter()
                    .for_each(|doubt| SchemaWarning(doubt).emit(&self.telemetry));
            }
        }
    }
}

/// Computes the prosecutor's risk from raw values of `quasi`: 1 / subjects with the same values in this batch.
/// Records without a subject have risk 1.
fn risk_before(batch: &CodeBatch, quasi: &[usize], books: &[Codebook], k: usize) -> RiskFigures {
    let rows = batch.rows();
    if rows == 0 {
        return RiskFigures::default();
    }
    let mut keys = vec![0u128; rows];
    for &a in quasi {
        let digests = books[a].digests(0);
        for (key, code) in keys.iter_mut().zip(&batch.columns[a]) {
            *key = key.wrapping_add(digests[*code as usize]);
        }
    }
    let mut people: Vec<(u128, u64)> = keys.iter().copied().zip(batch.subjects.iter().copied()).collect();
    people.sort_unstable();
    let (mut sum, mut highest, mut below) = (0.0, 0.0f64, 0usize);
    for class in people.chunk_by(|a, b| a.0 == b.0) {
        let mut subjects: Vec<u64> = class.iter().map(|p| p.1).filter(|s| *s != NO_SUBJECT).collect();
        subjects.dedup();
        let risk = 1.0 / subjects.len().max(1) as f64;
        sum += risk * class.len() as f64;
        highest = highest.max(risk);
        if subjects.len() < k {
            below += class.len();
        }
    }
    RiskFigures { highest, average: sum / rows as f64, share_below_k: below as f64 / rows as f64 }
}
