//! The audit of a table in files: the same steps, each by a counter that reads them.

use std::time::Instant;

use super::error::AuditError;
use super::inferences::Inferences;
use super::parts::{Parts, from_one_column_on, nothing_searched};
use super::prepare::AuditTable;
use super::question::{AuditQuestion, SEARCH_SHARE, Step};
use super::report::{Report, Singletons, Timings};
use crate::counting::{AttributeSet, ComputeError, GroupCounter, SpilledCounter, SpilledTable};
use crate::risk::exposure::{Risk, involvement, measure, reach, riskiest};
use crate::risk::inferences::strongest_spilled;
use crate::risk::qid::{Question, search_spilled};

/// Bytes for counting, for witnesses and for the search where nobody set a limit.
const MEMORY: u64 = 4 << 30;

/// Audits a table in files. Memory: `question.memory`, half of it for counting, and the dictionaries that values are shown from.
pub(super) fn audit_spilled(
    table: &AuditTable,
    raw: &SpilledTable,
    question: &AuditQuestion,
    progress: &dyn Fn(Step),
) -> Result<Report, AuditError> {
    let started = Instant::now();
    let (k, threads) = (question.k, question.threads);
    let memory = question.memory.unwrap_or(MEMORY);
    let own = SpilledCounter::new(raw, threads, memory / 2);
    let singles: Vec<AttributeSet> = (0..raw.width()).map(|c| AttributeSet::from_iter([c])).collect();
    let alone = own.count(&singles, k)?;
    let masked = (question.singletons == Singletons::Mask).then(|| masked(&own, k)).transpose()?;
    let columns = masked.as_ref().unwrap_or(raw);
    let counter = SpilledCounter::new(columns, threads, memory / 2);
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
        let found = search_spilled(&counter, &asked, memory / 8, &|at| progress(Step::Searching(at)))?;
        from_one_column_on(found, &table.searched)
    };
    let search_seconds = started.elapsed().as_secs_f64();

    let measuring = Instant::now();
    let until = question.budget.and_then(|budget| started.checked_add(budget));
    let tell = |done, of| progress(Step::Measuring(done, of));
    let risk = risk(&counter, &table.searched, k)?;
    let examples = table.values.is_some();
    let measured = measure(columns.rows(), &counter, &borders.minimal_qids, k, examples, until, &tell)?;
    let qids = borders.complete.then_some(borders.minimal_qids.as_slice());
    let reached = reach(&counter, &table.searched, qids, k, risk.records_below_k, until, &tell);
    let rows = question.rows;
    let risky = (rows > 0).then(|| riskiest(&counter, &table.searched, qids, k, rows, until, &tell));
    let weights = involvement(&table.searched, &borders.minimal_qids);
    let inferences = Inferences::of(table, k, threads, until, &|asked| strongest_spilled(&own, asked));
    counter.sound()?;
    own.sound()?;
    let timings =
        Timings { read: question.read_seconds, search: search_seconds, measure: measuring.elapsed().as_secs_f64() };
    let rare: Vec<bool> = alone.iter().map(|alone| masked.is_some() && alone.is_qid()).collect();
    let cell = |column: usize, row: u32| {
        let code = |table: &SpilledTable| match table.codes_of(row, &[column]) {
            Ok(codes) => codes.first().copied(),
            Err(error) => {
                own.remember(Err(ComputeError::Spilled { reason: error.to_string() }));
                None
            }
        };
        let is_masked = rare[column] && code(columns).is_none_or(|c| c as usize + 1 == columns.cardinality(column));
        if is_masked { None } else { code(raw) }
    };
    let counted_by = ("cpu", None);
    let parts = Parts {
        table,
        cell: &cell,
        question,
        counted_by,
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
fn masked(counter: &SpilledCounter<'_>, k: u32) -> Result<SpilledTable, ComputeError> {
    let table = counter.table();
    let mut codes = Vec::with_capacity(table.width());
    for column in 0..table.width() {
        let star = table.cardinality(column) as u32;
        let masked =
            |(code, size): (u32, &crate::counting::spilled::ClassSize)| if size.support < k { star } else { code };
        codes.push((0..).zip(&counter.values(column)?).map(masked).collect());
    }
    Ok(table.recoded(&codes))
}

/// The risk over all searched columns together.
fn risk(counter: &SpilledCounter<'_>, searched: &AttributeSet, k: u32) -> Result<Risk, ComputeError> {
    let table = counter.table();
    let (sizes, people_below) = counter.sizes(searched, k)?;
    let sizes: Vec<((u32, u32), u64)> =
        sizes.into_iter().map(|(size, classes)| ((size.support, size.records), classes)).collect();
    Ok(Risk::of_sizes(&sizes, people_below, table.support() as u64, k))
}
