//! The audit: search, measure, report.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::error::AuditError;
use super::inferences::Inferences;
use super::prepare::{AuditTable, Judged};
use super::report::{AttributeReport, QidReport, Report, RiskReport, Singletons, Timings};
use super::riskiest::riskiest_report;
use crate::counting::{
    AttributeSet, Chosen, ComputeError, CountedTable, CpuCounter, GroupCount, GroupCounter, Used, Wanted, shared_device,
};
use crate::risk::exposure::{
    AttributeWeight, Crowds, Reached, Risk, Riskiest, SetRisk, involvement, measure, reach, riskiest,
};
use crate::risk::qid::{Borders, Progress, Question, Strategy, search, search_with};

/// The search's part of a time budget; the rest is for measuring what it found.
const SEARCH_SHARE: f64 = 0.8;

/// What is asked of a table.
#[derive(Clone, Debug)]
pub struct AuditQuestion {
    /// The input, as reports name it.
    pub input: String,
    /// At least 2.
    pub k: u32,
    /// What is done with rare single values.
    pub singletons: Singletons,
    /// How the search goes.
    pub strategy: Strategy,
    /// Threads, at least one.
    pub threads: usize,
    /// What counts.
    pub backend: Wanted,
    /// Time for search and measuring together.
    pub budget: Option<Duration>,
    /// Bytes that the search may hold beside the table.
    pub memory: Option<u64>,
    /// Records to list by their score; 0 for no list.
    pub rows: usize,
    /// What reading took, for the report.
    pub read_seconds: f64,
}

/// What the audit is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The search, and how far it is.
    Searching(Progress),
    /// Sets looked at, and how many of this kind there are.
    Measuring(usize, usize),
}

/// Audits a table. `progress` is called from this thread, now and then.
///
/// Memory: the table once more where singletons are masked, once more as the counter's narrow columns, and what the
/// search keeps (docs/methods.md §3).
///
/// # Errors
/// When the backend fails, or the device that was asked for cannot be used.
pub fn audit(table: &AuditTable, question: &AuditQuestion, progress: &dyn Fn(Step)) -> Result<Report, AuditError> {
    let started = Instant::now();
    let k = question.k;
    let alone = CpuCounter::new(&table.columns, question.threads)
        .count(&(0..table.columns.width()).map(|c| AttributeSet::from_iter([c])).collect::<Vec<_>>(), k)?;
    let masked = (question.singletons == Singletons::Mask).then(|| table.columns.masked(k));
    let columns = masked.as_ref().unwrap_or(&table.columns);
    let chosen = Chosen::for_table(question.backend, columns, k, question.threads, shared_device)?;
    let borders = if table.searched.is_empty() {
        Borders {
            minimal_qids: vec![],
            maximal_non_qids: vec![],
            complete: true,
            out_of_memory: false,
            evaluated: 0,
            pruned: 0,
        }
    } else {
        search_all(table, columns, &chosen, question, progress)?
    };
    let search_seconds = started.elapsed().as_secs_f64();

    let measuring = Instant::now();
    let until = question.budget.and_then(|budget| started.checked_add(budget));
    let tell = |done, of| progress(Step::Measuring(done, of));
    let crowds = Crowds::of(columns, &table.searched);
    let risk = Risk::of(&crowds, columns.subject_numbers(), k);
    let measured = measure(columns, chosen.counter(), &borders.minimal_qids, k, table.values.is_some(), until, &tell)?;
    let qids = borders.complete.then_some(borders.minimal_qids.as_slice());
    let below = risk.records_below_k;
    let reached = reach(columns, &table.searched, qids, k, below, until, &tell);
    let rows = question.rows;
    let risky = (rows > 0).then(|| riskiest(columns, &table.searched, qids, k, rows, until, &tell));
    let weights = involvement(&table.searched, &borders.minimal_qids);
    let inferences = Inferences::of(table, k, question.threads, until);
    let timings =
        Timings { read: question.read_seconds, search: search_seconds, measure: measuring.elapsed().as_secs_f64() };
    let counted_by = (chosen.name(), chosen.used());
    let parts = Parts {
        table,
        columns,
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

/// Sets have at least one column here. Where even the empty set is a QID (the whole table is smaller than k), every
/// column is; where only the empty set is none, nothing is safe.
fn from_one_column_on(mut borders: Borders, searched: &AttributeSet) -> Borders {
    if borders.minimal_qids.iter().any(AttributeSet::is_empty) {
        borders.minimal_qids = searched.iter().map(|column| AttributeSet::from_iter([column])).collect();
    }
    borders.maximal_non_qids.retain(|set| !set.is_empty());
    borders
}

/// Everything that a report is made of.
struct Parts<'a> {
    table: &'a AuditTable,
    /// The table as it was searched.
    columns: &'a CountedTable,
    question: &'a AuditQuestion,
    /// The backend, and what a device was used for.
    counted_by: (&'static str, Option<Used>),
    /// Each column alone, before masking.
    alone: Vec<GroupCount>,
    borders: Borders,
    measured: Vec<SetRisk>,
    reached: Reached,
    /// The riskiest records, where they are asked for.
    risky: Option<Riskiest>,
    weights: Vec<AttributeWeight>,
    inferences: Inferences,
    risk: Risk,
    timings: Timings,
}

impl Parts<'_> {
    fn report(self) -> Report {
        let table = self.table;
        let mut identifiers: Vec<String> =
            table.judged.iter().filter(|j| j.judgement.identifies()).map(|j| j.name.clone()).collect();
        identifiers.sort_unstable();
        let masked = self.question.singletons == Singletons::Mask;
        let searched_alone = table.searched.iter().map(|column| self.alone[column].records_below);
        Report {
            input: self.question.input.clone(),
            rows: table.columns.rows() as u64,
            subjects: table.columns.subjects().map(|n| n as u64),
            subject: table.subject.clone(),
            k: self.question.k,
            singletons: self.question.singletons,
            strategy: match self.question.strategy {
                Strategy::Border => "border",
                Strategy::Greedy => "greedy",
                Strategy::Exhaustive => "exhaustive",
            },
            backend: self.counted_by.0,
            device: self.counted_by.1,
            threads: self.question.threads,
            complete: self.borders.complete,
            standalone_identifiers: identifiers,
            link: None,
            minimal_qids: self.names(&self.borders.minimal_qids),
            maximal_non_qids: self.names(&self.borders.maximal_non_qids),
            evaluated: self.borders.evaluated,
            pruned: self.borders.pruned,
            seconds: self.timings.read + self.timings.search + self.timings.measure,
            timings: self.timings,
            attributes: self.attributes(),
            qids: self.qids(),
            qids_measured: self.measured.len() as u64,
            riskiest: self.risky.as_ref().map(|found| riskiest_report(table, found)),
            inferences: self.inferences.report(table),
            inference_pairs: self.inferences.pairs,
            inference_pairs_of: self.inferences.pairs_of,
            masked_cells: if masked { searched_alone.sum() } else { 0 },
            without_subject: table.without_subject,
            unreadable: BTreeMap::new(),
            absent: Vec::new(),
            arrays: Vec::new(),
            unknown_cells: 0,
            notes: self.notes(),
            risk: RiskReport {
                attributes: table.searched.len() as u64,
                risk: self.risk,
                reach: self.reached.steps,
                reach_exhausted: self.reached.exhausted,
            },
        }
    }

    /// Sets by sorted names, in the order of size and then of names: independent of the order of the columns.
    fn names(&self, sets: &[AttributeSet]) -> Vec<Vec<String>> {
        let mut named: Vec<Vec<String>> = sets.iter().map(|set| self.table.names(set)).collect();
        named.sort_unstable_by(|a, b| a.len().cmp(&b.len()).then_with(|| a.cmp(b)));
        named
    }

    fn attributes(&self) -> Vec<AttributeReport> {
        let weight = |column: usize| self.weights.iter().find(|weight| weight.attribute == column);
        // Every class below k of a minimal set is a smallest combination: where larger sets were not looked at one by one,
        // a measured set still says how many records it gives away at least.
        let measured = |column: usize| {
            let with = self.measured.iter().filter(|measured| measured.set.contains(column));
            with.map(|measured| measured.records_below_k).max().unwrap_or(0)
        };
        let reached = |column: usize| self.reached.at_risk.iter().find(|(a, _)| *a == column).map_or(0, |(_, n)| *n);
        let at_risk = |column: usize| reached(column).max(measured(column));
        let each = self.table.judged.iter().zip(&self.alone).enumerate();
        let mut reports: Vec<AttributeReport> = each
            .map(|(column, (judged, alone))| {
                let searched = self.table.searched.contains(column);
                attribute_report(judged, alone, searched, weight(column), at_risk(column))
            })
            .collect();
        reports.sort_by(|a, b| {
            b.searched
                .cmp(&a.searched)
                .then_with(|| b.records_at_risk.cmp(&a.records_at_risk))
                .then_with(|| b.involvement.total_cmp(&a.involvement))
                .then_with(|| a.name.cmp(&b.name))
        });
        reports
    }

    fn qids(&self) -> Vec<QidReport> {
        let rows = self.table.columns.rows() as f64;
        let mut reports: Vec<QidReport> = Vec::with_capacity(self.measured.len());
        for measured in &self.measured {
            let mut columns: Vec<usize> = measured.set.iter().collect();
            columns.sort_unstable_by(|a, b| self.table.judged[*a].name.cmp(&self.table.judged[*b].name));
            let example = self.table.values.as_ref().zip(measured.example).map(|(values, row)| {
                let row = row as usize;
                let text = |&column: &usize| {
                    if self.is_masked(column, row) {
                        return "*".to_owned();
                    }
                    values.text(column, self.table.columns.column(column)[row])
                };
                columns.iter().map(text).collect()
            });
            reports.push(QidReport {
                attributes: columns.iter().map(|&column| self.table.judged[column].name.clone()).collect(),
                smallest_class: measured.smallest_class,
                highest: 1.0 / (measured.smallest_class.max(1) as f64),
                classes_below_k: measured.classes_below_k,
                records_below_k: measured.records_below_k,
                share_below_k: measured.records_below_k as f64 / rows,
                people_below_k: measured.people_below_k,
                example,
            });
        }
        reports
            .sort_by(|a, b| a.attributes.len().cmp(&b.attributes.len()).then_with(|| a.attributes.cmp(&b.attributes)));
        reports
    }

    /// Whether the cell was replaced by `*`: its column has rare values, and it has the code that comes after all others.
    fn is_masked(&self, column: usize, row: usize) -> bool {
        self.question.singletons == Singletons::Mask
            && self.alone[column].is_qid()
            && self.columns.column(column)[row] as usize + 1 == self.columns.cardinality(column)
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let (support, k) = (self.table.columns.support() as u64, u64::from(self.question.k));
        if support < k {
            let what = if self.table.subject.is_some() { "people" } else { "records" };
            notes.push(format!(
                "k = {k} is more than the {support} {what} of the whole table: every set of columns is a quasi-identifier"
            ));
        }
        if self.table.subject.is_none() {
            notes.push(
                "no column names the person behind a record: every record counts as a person of its own, which \
                 understates the risk if one person has several (--subject)"
                    .to_owned(),
            );
        }
        if self.table.searched.is_empty() {
            notes.push("no column is left to search: all identify by themselves or are left out".to_owned());
        }
        if !self.borders.complete {
            let why = if self.borders.out_of_memory {
                "the search met more sets of columns than there was memory for (--memory; or ask for fewer columns), and \
                 ended before it was done"
            } else {
                "the time was up before the search was done"
            };
            let unsafe_rest = "whatever is not below a listed maximal non-QID is to be treated as unsafe";
            notes.push(format!("{why}: {unsafe_rest}"));
        }
        let (measured, all) = (self.measured.len(), self.borders.minimal_qids.len());
        if measured < all {
            notes.push(format!("crowds are counted for the first {measured} of {all} minimal quasi-identifiers"));
        }
        let (looked, all) = (self.inferences.pairs, self.inferences.pairs_of);
        if looked < all {
            notes.push(format!(
                "inferences are looked for in {looked} of {all} pairs of columns, those of fewest values"
            ));
        }
        if let Some(found) = self.risky.as_ref().filter(|found| !found.complete && !self.table.searched.is_empty()) {
            notes.push(format!(
                "the riskiest records are those by combinations of at most {} columns: larger ones are too many, or the time \
                 was up",
                found.largest
            ));
        }
        if !self.reached.exhausted && !self.table.searched.is_empty() {
            notes.push(format!(
                "combinations of more than {} columns are too many to look at one by one: records at risk by column are \
                 lower bounds",
                self.reached.steps.len()
            ));
        }
        notes
    }
}

fn attribute_report(
    judged: &Judged,
    alone: &GroupCount,
    searched: bool,
    weight: Option<&AttributeWeight>,
    at_risk: u64,
) -> AttributeReport {
    let profile = &judged.profile;
    let weight = weight.cloned().unwrap_or_default();
    AttributeReport {
        name: judged.name.clone(),
        role: judged.role.map(crate::records::schema::Role::name),
        searched,
        distinct: profile.distinct,
        missing: profile.missing,
        cardinality: profile.cardinality(),
        entropy: profile.entropy,
        relative_entropy: profile.relative_entropy,
        identifier: judged.judgement.reasons.clone(),
        safe_harbor: judged.judgement.category,
        smallest_class: alone.smallest,
        records_below_k: alone.records_below,
        minimal_qids: weight.sets,
        involvement: weight.involvement,
        smallest_qid: (weight.smallest_set > 0).then_some(weight.smallest_set),
        records_at_risk: at_risk,
    }
}
