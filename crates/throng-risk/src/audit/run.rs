//! The audit: search, measure, report.

use std::time::Instant;

use super::inferences::Inferences;
use super::parts::{Parts, from_one_column_on, nothing_searched};
use super::prepare::{AuditError, AuditTable};
use super::report::{AuditQuestion, Report, Singletons, Step, Timings};
use crate::counting::backend::is_worth_a_trial;
use crate::counting::{AttributeSet, Chosen, CodeTable, ComputeError, CpuCounter, GroupCounter, Wanted, shared_device};
use crate::exposure::{Risk, involvement, measure, reach, riskiest};
use crate::inferences::strongest;
use crate::qid::{Question, search_over};

/// Bytes for counting, for witnesses and for the search where nobody set a limit.
const MEMORY: u64 = 4 << 30;

/// The search's part of a time budget; the rest is for measuring what it found.
const SEARCH_SHARE: f64 = 0.8;

/// Audits a table. `progress` is called from this thread, now and then.
///
/// Memory: `question.memory`, half of it for counting, and the dictionaries that values are shown from. A device gets a copy of a table in
/// memory; one in a file is counted on this machine's cores.
pub fn audit(table: &AuditTable, question: &AuditQuestion, progress: &dyn Fn(Step)) -> Result<Report, AuditError> {
    let started = Instant::now();
    let (raw, k, threads) = (&table.columns, question.k, question.threads);
    let memory = question.memory.unwrap_or(MEMORY);
    let own = CpuCounter::over(raw, threads, memory / 2);
    let singles: Vec<AttributeSet> = (0..raw.width()).map(|c| AttributeSet::from_iter([c])).collect();
    let alone = own.count(&singles, k)?;
    let masked = (question.singletons == Singletons::Mask).then(|| masked(&own, k)).transpose()?;
    let columns = masked.as_ref().unwrap_or(raw);
    let counter = CpuCounter::over(columns, threads, memory / 2);
    let for_device = match question.backend {
        Wanted::Cpu => false,
        Wanted::Device => true,
        Wanted::Auto => is_worth_a_trial(columns.rows(), columns.width()) && shared_device().is_ok(),
    };
    let unpacked = if for_device { columns.unpacked() } else { None };
    let chosen = unpacked.as_ref().map(|held| Chosen::for_table(question.backend, held, k, threads, shared_device));
    let chosen = chosen.transpose()?.filter(|chosen| chosen.on_device().is_some());
    let counting = chosen.as_ref().map_or(&counter as &dyn GroupCounter, Chosen::counter);
    let borders = if table.searched.is_empty() {
        nothing_searched()
    } else {
        let asked = Question {
            k,
            strategy: question.strategy,
            threads,
            budget: question.budget.map(|budget| budget.mul_f64(SEARCH_SHARE)),
            memory: Some(memory / 4),
            columns: table.searched.clone(),
        };
        let found = search_over(&counter, counting, &asked, &|at| progress(Step::Searching(at)))?;
        from_one_column_on(found, &table.searched)
    };
    let search_seconds = started.elapsed().as_secs_f64();

    let measuring = Instant::now();
    let until = question.budget.and_then(|budget| started.checked_add(budget));
    let tell = |done, of| progress(Step::Measuring(done, of));
    let risk = Risk::of(&counter, &table.searched, k)?;
    let examples = table.values.is_some();
    let measured = measure(columns.rows(), counting, &borders.minimal_qids, k, examples, until, &tell)?;
    let qids = borders.complete.then_some(borders.minimal_qids.as_slice());
    let reached = reach(&counter, &table.searched, qids, k, risk.records_below_k, until, &tell);
    let rows = question.rows;
    let risky = (rows > 0).then(|| riskiest(&counter, &table.searched, qids, k, rows, until, &tell));
    let weights = involvement(&table.searched, &borders.minimal_qids);
    let inferences = Inferences::of(table, k, threads, until, &|asked| strongest(&own, asked));
    counter.sound()?;
    own.sound()?;
    let timings =
        Timings { read: question.read_seconds, search: search_seconds, measure: measuring.elapsed().as_secs_f64() };
    let rare: Vec<bool> = alone.iter().map(|alone| masked.is_some() && alone.is_qid()).collect();
    let cell = |column: usize, row: u32| {
        let code = |table: &CodeTable| match table.codes_of(row, &[column]) {
            Ok(codes) => codes.first().copied(),
            Err(error) => {
                own.remember(Err(ComputeError::Codes { reason: error.to_string() }));
                None
            }
        };
        // A masked cell has the code that comes after all others of a column with rare values.
        let is_masked = rare[column] && code(columns).is_none_or(|c| c as usize + 1 == columns.cardinality(column));
        if is_masked { None } else { code(raw) }
    };
    let parts = Parts {
        table,
        cell: &cell,
        question,
        counted_by: chosen.as_ref().map_or(("cpu", None), |chosen| (chosen.name(), chosen.used())),
        alone,
        borders,
        measured,
        reached,
        risky,
        weights,
        inferences,
        risk,
        timings,
    };
    let report = parts.report();
    own.sound()?;
    Ok(report)
}

/// The table with `singletons = mask`: as [`CountedTable::masked`](crate::counting::CountedTable::masked).
fn masked(counter: &CpuCounter<'_>, k: u32) -> Result<CodeTable, ComputeError> {
    let table = counter.table();
    let mut codes = Vec::with_capacity(table.width());
    for column in 0..table.width() {
        let star = table.cardinality(column) as u32;
        let sizes = counter.values(column)?;
        let masked = (0..).zip(&sizes).map(|(code, size)| if size.support < k { star } else { code });
        codes.push(masked.collect());
    }
    Ok(table.recoded(&codes))
}
