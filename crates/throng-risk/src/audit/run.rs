use std::time::Instant;

use super::inference_list::InferenceList;
use super::prepare::{AuditError, AuditTable};
use super::report::{AuditReport, AuditRequest, AuditStep, AuditTimings, SingletonPolicy};
use super::report_builder::{AuditReportBuilder, empty_borders, without_empty_set};
use crate::counting::backend::is_trial_worthwhile;
use crate::counting::{
    AttributeSet, BackendChoice, CodeTable, ComputeError, CpuCounter, GroupCounter, SelectedBackend, shared_device,
};
use crate::exposure::{ClassRiskSummary, involvement, measure_qids, riskiest_records, subset_reach};
use crate::inferences::find_strongest_inferences;
use crate::qid::{QidSearchRequest, search_with_witness_counter};

/// Default memory limit, in bytes.
const DEFAULT_AUDIT_MEMORY: u64 = 4 << 30;

/// Share of the time limit for the search.
const SEARCH_TIME_SHARE: f64 = 0.8;

fn counts_on_device(backend: BackendChoice, table: &CodeTable) -> bool {
    match backend {
        BackendChoice::Cpu => false,
        BackendChoice::Device => true,
        BackendChoice::Auto => is_trial_worthwhile(table.rows(), table.width()) && shared_device().is_ok(),
    }
}

/// Audits a table. `progress` is called from this thread repeatedly.
///
/// Memory: the requested limit plus the dictionaries. A table in a file is counted on the CPU.
pub fn audit(
    table: &AuditTable,
    question: &AuditRequest,
    progress: &dyn Fn(AuditStep),
) -> Result<AuditReport, AuditError> {
    let started = Instant::now();
    let (raw, k, threads) = (&table.columns, question.k, question.threads);
    let memory = question.memory.unwrap_or(DEFAULT_AUDIT_MEMORY);
    let own = CpuCounter::with_memory(raw, threads, memory / 2);
    let singles: Vec<AttributeSet> = (0..raw.width()).map(|c| AttributeSet::from_iter([c])).collect();
    let alone = own.count(&singles, k)?;
    let masked = (question.singletons == SingletonPolicy::Mask).then(|| mask_rare_values(&own, k)).transpose()?;
    let columns = masked.as_ref().unwrap_or(raw);
    let counter = CpuCounter::with_memory(columns, threads, memory / 2);
    let unpacked = if counts_on_device(question.backend, columns) { columns.to_counted_table() } else { None };
    let chosen =
        unpacked.as_ref().map(|held| SelectedBackend::for_table(question.backend, held, k, threads, shared_device));
    let chosen = chosen.transpose()?.filter(|chosen| chosen.device_counter().is_some());
    let counting = chosen.as_ref().map_or(&counter as &dyn GroupCounter, SelectedBackend::counter);
    let borders = if table.searched.is_empty() {
        empty_borders()
    } else {
        let asked = QidSearchRequest {
            k,
            strategy: question.strategy,
            threads,
            budget: question.budget.map(|budget| budget.mul_f64(SEARCH_TIME_SHARE)),
            memory: Some(memory / 4),
            columns: table.searched.clone(),
        };
        let found = search_with_witness_counter(&counter, counting, &asked, &|at| progress(AuditStep::Searching(at)))?;
        without_empty_set(found, &table.searched)
    };
    let search_seconds = started.elapsed().as_secs_f64();

    let measuring = Instant::now();
    let until = question.budget.and_then(|budget| started.checked_add(budget));
    let tell = |done, of| progress(AuditStep::Measuring(done, of));
    let risk = ClassRiskSummary::of(&counter, &table.searched, k)?;
    let examples = table.values.is_some();
    let measured = measure_qids(columns.rows(), counting, &borders.minimal_qids, k, examples, until, &tell)?;
    let qids = borders.complete.then_some(borders.minimal_qids.as_slice());
    let reached = subset_reach(&counter, &table.searched, qids, k, risk.records_below_k, until, &tell);
    let rows = question.rows;
    let risky = (rows > 0).then(|| riskiest_records(&counter, &table.searched, qids, k, rows, until, &tell));
    let weights = involvement(&table.searched, &borders.minimal_qids);
    let inferences = InferenceList::of(table, k, threads, until, &|asked| find_strongest_inferences(&own, asked));
    counter.stored_error()?;
    own.stored_error()?;
    let timings = AuditTimings {
        read: question.read_seconds,
        search: search_seconds,
        measure: measuring.elapsed().as_secs_f64(),
    };
    let rare: Vec<bool> = alone.iter().map(|alone| masked.is_some() && alone.is_qid()).collect();
    let cell = |column: usize, row: u32| {
        let code = |table: &CodeTable| match table.row_codes(row, &[column]) {
            Ok(codes) => codes.first().copied(),
            Err(error) => {
                own.store_error(Err(ComputeError::Codes { reason: error.to_string() }));
                None
            }
        };
        // A masked cell has the highest code of a column with rare values.
        let is_masked = rare[column] && code(columns).is_none_or(|c| c as usize + 1 == columns.cardinality(column));
        if is_masked { None } else { code(raw) }
    };
    let parts = AuditReportBuilder {
        table,
        cell: &cell,
        question,
        counted_by: chosen.as_ref().map_or(("cpu", None), |chosen| (chosen.name(), chosen.device_usage())),
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
    let report = parts.build_audit_report();
    own.stored_error()?;
    Ok(report)
}

fn mask_rare_values(counter: &CpuCounter<'_>, k: u32) -> Result<CodeTable, ComputeError> {
    let table = counter.table();
    let mut codes = Vec::with_capacity(table.width());
    for column in 0..table.width() {
        let star = table.cardinality(column) as u32;
        let sizes = counter.column_value_sizes(column)?;
        let masked = (0..).zip(&sizes).map(|(code, size)| if size.support < k { star } else { code });
        codes.push(masked.collect());
    }
    Ok(table.recoded(&codes))
}
