//! The audit: search, measure, report.

use std::time::Instant;

use super::coded::Coded;
use super::error::AuditError;
use super::inferences::Inferences;
use super::parts::{Parts, from_one_column_on, nothing_searched};
use super::prepare::AuditTable;
use super::question::{AuditQuestion, SEARCH_SHARE, Step};
use super::report::{Report, Singletons, Timings};
use super::spilled::audit_spilled;
use crate::counting::{AttributeSet, Chosen, ComputeError, CountedTable, CpuCounter, GroupCounter, shared_device};
use crate::risk::exposure::{Crowds, Risk, involvement, measure, reach, riskiest};
use crate::risk::inferences::strongest;
use crate::risk::qid::{Borders, Question, search, search_with};

/// Audits a table. `progress` is called from this thread, now and then.
///
/// Memory: the table once more where singletons are masked, once more as the counter's narrow columns, and what the
/// search keeps (docs/methods.md §3).
///
/// # Errors
/// When the backend fails, or the device that was asked for cannot be used.
pub fn audit(table: &AuditTable, question: &AuditQuestion, progress: &dyn Fn(Step)) -> Result<Report, AuditError> {
    match &table.columns {
        Coded::Held(columns) => audit_held(table, columns, question, progress),
        Coded::Spilled(columns) => audit_spilled(table, columns, question, progress),
    }
}

fn audit_held(
    table: &AuditTable,
    raw: &CountedTable,
    question: &AuditQuestion,
    progress: &dyn Fn(Step),
) -> Result<Report, AuditError> {
    let started = Instant::now();
    let k = question.k;
    let alone = CpuCounter::new(raw, question.threads)
        .count(&(0..raw.width()).map(|c| AttributeSet::from_iter([c])).collect::<Vec<_>>(), k)?;
    let masked = (question.singletons == Singletons::Mask).then(|| raw.masked(k));
    let columns = masked.as_ref().unwrap_or(raw);
    let chosen = Chosen::for_table(question.backend, columns, k, question.threads, shared_device)?;
    let borders = if table.searched.is_empty() {
        nothing_searched()
    } else {
        search_all(table, columns, &chosen, question, progress)?
    };
    let search_seconds = started.elapsed().as_secs_f64();

    let measuring = Instant::now();
    let until = question.budget.and_then(|budget| started.checked_add(budget));
    let tell = |done, of| progress(Step::Measuring(done, of));
    let crowds = Crowds::of(columns, &table.searched);
    let risk = Risk::of(&crowds, columns.subject_numbers(), k);
    let measured =
        measure(columns.rows(), chosen.counter(), &borders.minimal_qids, k, table.values.is_some(), until, &tell)?;
    let qids = borders.complete.then_some(borders.minimal_qids.as_slice());
    let below = risk.records_below_k;
    let reached = reach(columns, &table.searched, qids, k, below, until, &tell);
    let rows = question.rows;
    let risky = (rows > 0).then(|| riskiest(columns, &table.searched, qids, k, rows, until, &tell));
    let weights = involvement(&table.searched, &borders.minimal_qids);
    let inferences = Inferences::of(table, k, question.threads, until, &|asked| strongest(raw, asked));
    let timings =
        Timings { read: question.read_seconds, search: search_seconds, measure: measuring.elapsed().as_secs_f64() };
    let counted_by = (chosen.name(), chosen.used());
    // A masked cell has the code that comes after all others of a column with rare values.
    let is_masked = |column: usize, row: usize| {
        masked.is_some()
            && alone[column].is_qid()
            && columns.column(column)[row] as usize + 1 == columns.cardinality(column)
    };
    let rare = |column: usize, row: u32| (!is_masked(column, row as usize)).then(|| raw.column(column)[row as usize]);
    let parts = Parts {
        table,
        cell: &rare,
        question,
        counted_by,
        alone: alone.clone(),
        borders,
        measured,
        reached,
        risky,
        weights,
        inferences,
        risk,
        timings,
    };
    Ok(parts.report())
}

fn search_all(
    table: &AuditTable,
    columns: &CountedTable,
    chosen: &Chosen<'_>,
    question: &AuditQuestion,
    progress: &dyn Fn(Step),
) -> Result<Borders, ComputeError> {
    let asked = Question {
        k: question.k,
        strategy: question.strategy,
        threads: question.threads,
        budget: question.budget.map(|budget| budget.mul_f64(SEARCH_SHARE)),
        memory: question.memory,
        columns: table.searched.clone(),
    };
    let tell = |at| progress(Step::Searching(at));
    let found = match chosen.on_device() {
        None => search(columns, &asked, &tell),
        Some(counter) => search_with(columns, counter, &asked, &tell)?,
    };
    Ok(from_one_column_on(found, &table.searched))
}
