//! Report of one batch: outcomes and risk.

use crate::daemon::engine::core::Engine;
use crate::daemon::engine::gather::gathered_batch::GatheredBatch;
use crate::daemon::engine::gather::held_records::PendingRow;
use crate::daemon::state::clock;
use crate::daemon::state::records::Flush;
use crate::start::memory_budget::DICTIONARY_COPIES;
use crate::start::schema_warnings;
use crate::telemetry::conservation::is_conserved;
use crate::telemetry::{
    BatchCommitted, BatchReport, CellTypeMismatch, ClassSizeFigures, Limit, LimitReached, RejectionReason, RiskFigures,
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

pub(crate) fn build_report(
    engine: &Engine,
    gathered: &GatheredBatch<'_>,
    proposal: &Proposal,
    remaining: &BTreeMap<u32, PendingRow>,
    verified: &ReleasableBatch,
    flush: Flush,
) -> BatchReport {
    let GatheredBatch { input, fresh, batch, waits, waited, rejected, turnout, .. } = gathered;
    let unreleased = |waits: &[PendingRow]| waits.iter().filter(|wait| !wait.released).count();
    let held = engine.held.unreleased() - unreleased(waits) + remaining.values().filter(|wait| !wait.released).count();
    let mut report = BatchReport {
        records: batch.rows() as u64,
        bytes_in: input.bytes,
        consumed: input.records(),
        dropped: input.dropped(),
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
    let groups = engine.in_force.plan.groups.len();
    for row in 0..batch.rows() {
        let was_released = waits.get(row).is_some_and(|wait| wait.released);
        let number = u32::try_from(row).unwrap_or(u32::MAX);
        let remains = remaining.get(&number);
        if let Some(wait) = remains {
            report.released += u64::from(wait.released && !was_released);
            continue;
        }
        let reason = match proposal.unreleased[row] {
            _ if was_released => continue,
            _ if engine.settings.monitor => SuppressionReason::Monitoring,
            None => {
                report.released += 1;
                continue;
            }
            Some(_) if !turnout.mask.takes_part_in_any(groups, row) => SuppressionReason::Thinned,
            Some(UnreleasedReason::CountingGuard) => SuppressionReason::Guard,
            Some(why) => match (flush, why) {
                (Flush::Shutdown, _) => SuppressionReason::Shutdown,
                (Flush::EndOfStream, UnreleasedReason::TooFewSubjects) => SuppressionReason::EndOfStream,
                (Flush::Quiet, _) | (_, UnreleasedReason::TooFewSubjects) => SuppressionReason::Quiet,
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
    report.risk_before = risk_before(fresh, &engine.quasi, &engine.coding.books, engine.settings.policy.k);
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

/// Reports the model size without this batch: status pages must not depend on counting speed.
pub(crate) fn measure_model(engine: &Engine, report: &mut BatchReport) {
    let model = engine.learning.model_size;
    report.model_nodes = model.nodes;
    report.model_edges = model.edges;
    report.model_bytes = model.bytes as u64;
    report.model_left_out_pairs = model.left_out_pairs as u64;
}

pub(crate) fn emit_report(engine: &Engine, mut report: BatchReport, oldest_ms: Option<i64>) {
    report.append_to_commit_seconds = oldest_ms.map(|oldest| (clock::now_ms() - oldest).max(0) as f64 / 1000.0);
    report.sequence = engine.durable.progress.sequence;
    report.clock_ms = engine.durable.progress.clock_ms;
    report.ledger_bytes = engine.ledger.approximate_bytes() as u64;
    report.supporters = engine.ledger.supporters.as_ref().map_or(0, |supporters| supporters.entries() as u64);
    report.waiting_lines = engine.held.lines() as u64;
    report.profiles = engine.joins.profiles();
    report.said_lines = engine.ledger.release_log.as_ref().map_or(0, |said| said.entries() as u64);
    report.dictionary_values = engine.coding.books.iter().map(|b| b.values() as u64).sum();
    report.dictionary_bytes = engine.coding.dictionary_bytes() * DICTIONARY_COPIES;
    report.window_bytes = (engine.learning.model.window().bytes() * 2) as u64;
    report.window_records = engine.learning.model.window().rows() as u64;
    report.drift_bits = engine.drift();
    report.state_bytes = engine.durable.store.bytes();
    report.state_free_bytes = engine.durable.store.free_bytes();
    report.lag_records = engine.origin.lag();
    debug_assert!(is_conserved(&engine.durable.progress.totals, report.held), "records are not conserved");
    BatchCommitted(report).emit(&engine.telemetry);
}

/// Reports attributes with cells of the wrong type, each with its first position.
pub(crate) fn report_wrong_types(engine: &Engine, rejected: &[RejectedRecord]) {
    let mut misfits: BTreeMap<usize, (u64, RecordPosition)> = BTreeMap::new();
    for letter in rejected.iter().filter(|letter| letter.reason == RejectionReason::WrongType) {
        let Some(attribute) = letter.attribute else { continue };
        let (records, first) = misfits.entry(attribute).or_insert((0, letter.coordinate));
        *records += 1;
        *first = letter.coordinate.min(*first);
    }
    for (attribute, (records, first)) in misfits {
        let attribute = &engine.schema.attributes[attribute];
        let first = engine.origin.describe(first);
        let expected = attribute.kind().name();
        CellTypeMismatch { attribute: &attribute.name, expected, records, first }.emit(&engine.telemetry);
    }
}

/// Attributes with identifying forms are reported immediately.
pub(crate) fn report_unprotected_values(engine: &mut Engine) {
    let due = engine.learning.is_value_check_due(engine.durable.progress.rows);
    for (attribute, book) in engine.coding.books.iter().enumerate() {
        if due || book.first_shape().is_some() {
            schema_warnings::value_warning(book, engine.learning.sample.column(attribute))
                .into_iter()
                .for_each(|doubt| SchemaWarning(doubt).emit(&engine.telemetry));
        }
    }
}

/// Reports full supporters if `rows` records could add no support.
pub(crate) fn report_full_supporters(engine: &Engine, rows: usize) {
    let rows = rows * engine.in_force.plan.groups.len();
    if engine.ledger.supporters.as_ref().is_some_and(|supporters| !supporters.has_room(rows)) {
        LimitReached { limit: Limit::Supporters }.emit(&engine.telemetry);
    }
}

/// Prosecutor's risk: 1 / subjects with the same raw values of `quasi` in this batch; 1 without a subject.
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
