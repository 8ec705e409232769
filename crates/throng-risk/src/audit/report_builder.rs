use std::collections::BTreeMap;

use super::column::JudgedColumn;
use super::inference_list::InferenceList;
use super::prepare::AuditTable;
use super::report::{
    AttributeReport, AuditReport, AuditRequest, AuditTimings, QidReport, RiskReport, RiskiestReport, RiskyRecord,
    SingletonPolicy,
};
use crate::counting::{AttributeSet, ClassSummary, DeviceUsage};
use crate::exposure::{AttributeWeight, ClassRiskSummary, RiskiestRecords, SetRisk, SubsetReach};
use crate::qid::{QidBorders, QidStrategy};

/// Restricts the borders to non-empty sets. If the empty set is a QID, every column is one.
pub(super) fn without_empty_set(mut borders: QidBorders, searched: &AttributeSet) -> QidBorders {
    if borders.minimal_qids.iter().any(AttributeSet::is_empty) {
        borders.minimal_qids = searched.iter().map(|column| AttributeSet::from_iter([column])).collect();
    }
    borders.maximal_non_qids.retain(|set| !set.is_empty());
    borders
}

pub(super) fn empty_borders() -> QidBorders {
    let (minimal_qids, maximal_non_qids) = (Vec::new(), Vec::new());
    QidBorders { minimal_qids, maximal_non_qids, complete: true, out_of_memory: false, evaluated: 0, pruned: 0 }
}

pub(super) struct AuditReportBuilder<'a> {
    pub table: &'a AuditTable,
    /// Code of a column in a row; `None` if masked.
    pub cell: &'a dyn Fn(usize, u32) -> Option<u32>,
    pub question: &'a AuditRequest,
    pub counted_by: (&'static str, Option<DeviceUsage>),
    /// Counts of each column, before masking.
    pub alone: Vec<ClassSummary>,
    pub borders: QidBorders,
    pub measured: Vec<SetRisk>,
    pub reached: SubsetReach,
    pub risky: Option<RiskiestRecords>,
    pub weights: Vec<AttributeWeight>,
    pub inferences: InferenceList,
    pub risk: ClassRiskSummary,
    pub timings: AuditTimings,
}

impl AuditReportBuilder<'_> {
    pub fn build_audit_report(self) -> AuditReport {
        let table = self.table;
        let outgrown = table.truncated_columns.iter().map(|outgrown| &outgrown.judged);
        let identifying = table.judged.iter().chain(outgrown).filter(|j| j.judgement.identifies());
        let mut identifiers: Vec<String> = identifying.map(|j| j.name.clone()).collect();
        identifiers.sort_unstable();
        let masked = self.question.singletons == SingletonPolicy::Mask;
        let searched_alone = table.searched.iter().map(|column| self.alone[column].records_below);
        AuditReport {
            input: self.question.input.clone(),
            rows: table.columns.rows() as u64,
            subjects: table.columns.subjects().map(|n| n as u64),
            likely_subject: None,
            subject: table.subject.clone(),
            k: self.question.k,
            singletons: self.question.singletons,
            strategy: match self.question.strategy {
                QidStrategy::Border => "border",
                QidStrategy::Greedy => "greedy",
                QidStrategy::Exhaustive => "exhaustive",
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
            attributes: self.report_attributes(),
            qids: self.report_qids(),
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

    /// Sorts by size and names, independent of the column order.
    fn names(&self, sets: &[AttributeSet]) -> Vec<Vec<String>> {
        let mut named: Vec<Vec<String>> = sets.iter().map(|set| self.table.names(set)).collect();
        named.sort_unstable_by(|a, b| a.len().cmp(&b.len()).then_with(|| a.cmp(b)));
        named
    }

    fn report_attributes(&self) -> Vec<AttributeReport> {
        let weight = |column: usize| self.weights.iter().find(|weight| weight.attribute == column);
        // A class below k of a minimal set is a minimal combination, so this is a lower bound.
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
        let outgrown = report_truncated(self.table, self.question.k);
        reports.extend(outgrown);
        reports.sort_by(|a, b| {
            b.searched
                .cmp(&a.searched)
                .then_with(|| b.records_at_risk.cmp(&a.records_at_risk))
                .then_with(|| b.involvement.total_cmp(&a.involvement))
                .then_with(|| a.name.cmp(&b.name))
        });
        reports
    }

    fn report_qids(&self) -> Vec<QidReport> {
        let rows = self.table.columns.rows() as f64;
        let mut reports: Vec<QidReport> = Vec::with_capacity(self.measured.len());
        for measured in &self.measured {
            let mut columns: Vec<usize> = measured.set.iter().collect();
            columns.sort_unstable_by(|a, b| self.table.judged[*a].name.cmp(&self.table.judged[*b].name));
            let example = self.table.values.as_ref().zip(measured.example).map(|(values, row)| {
                let text = |&column: &usize| match (self.cell)(column, row) {
                    None => "*".to_owned(),
                    Some(code) => values.text(column, code),
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

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let (support, k) = (self.table.columns.support() as u64, u64::from(self.question.k));
        if support < k {
            let what = if self.table.subject.is_some() { "people" } else { "records" };
            notes.push(format!(
                "k = {k} exceeds the {support} {what} of the whole table: every set of columns is a quasi-identifier"
            ));
        }
        if self.table.subject.is_none() {
            notes.push(
                "no column identifies the person of a record: every record counts as a different person, which \
                 understates the risk if one person has several records (--subject)"
                    .to_owned(),
            );
        }
        for outgrown in &self.table.truncated_columns {
            notes.push(format!(
                "column \"{}\" has too many distinct values for the memory limit (--memory): it was judged as a standalone \
                 identifier from its first {} records, and its figures cover only these",
                outgrown.judged.name, outgrown.judged.profile.rows
            ));
        }
        if self.table.searched.is_empty() {
            notes.push("no column is left to search: all are standalone identifiers or excluded".to_owned());
        }
        if !self.borders.complete {
            let why = if self.borders.out_of_memory {
                "the search ran out of memory and is incomplete (--memory; or search fewer columns)"
            } else {
                "the search reached its time limit and is incomplete"
            };
            let unsafe_rest = "treat every set that is not part of a listed safe set (maximal non-QID) as unsafe";
            notes.push(format!("{why}: {unsafe_rest}"));
        }
        let (measured, all) = (self.measured.len(), self.borders.minimal_qids.len());
        if measured < all {
            notes.push(format!("classes are counted for the first {measured} of {all} minimal quasi-identifiers"));
        }
        let (looked, all) = (self.inferences.pairs, self.inferences.pairs_of);
        if looked < all {
            notes.push(format!(
                "inferences are searched in {looked} of {all} pairs of columns, those with the fewest values"
            ));
        }
        if let Some(found) = self.risky.as_ref().filter(|found| !found.complete && !self.table.searched.is_empty()) {
            notes.push(format!(
                "the riskiest records are based on combinations of at most {} columns: larger ones are too many, or the \
                 time limit was reached",
                found.largest
            ));
        }
        if !self.reached.exhausted && !self.table.searched.is_empty() {
            notes.push(format!(
                "combinations of more than {} columns are too many to check one by one: records at risk by column are \
                 lower bounds",
                self.reached.steps.len()
            ));
        }
        notes
    }
}

fn report_truncated(table: &AuditTable, k: u32) -> impl Iterator<Item = AttributeReport> + '_ {
    table.truncated_columns.iter().map(move |outgrown| {
        let below = |(size, values): (&u64, &u64)| if *size < u64::from(k) { size * values } else { 0 };
        let alone = ClassSummary {
            smallest: outgrown.sizes.keys().next().copied().unwrap_or(0),
            records_below: outgrown.sizes.iter().map(below).sum(),
            ..ClassSummary::default()
        };
        attribute_report(&outgrown.judged, &alone, false, None, 0)
    })
}

fn attribute_report(
    judged: &JudgedColumn,
    alone: &ClassSummary,
    searched: bool,
    weight: Option<&AttributeWeight>,
    at_risk: u64,
) -> AttributeReport {
    let profile = &judged.profile;
    let weight = weight.cloned().unwrap_or_default();
    AttributeReport {
        name: judged.name.clone(),
        role: judged.role.map(throng_core::values::schema::Role::name),
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

const MAX_RECORD_COMBINATIONS: usize = 100;

fn riskiest_report(table: &AuditTable, found: &RiskiestRecords) -> RiskiestReport {
    let record = |(row, score): &(u32, f64)| {
        let of = found.combinations(*row).count() as u64;
        let mut combinations: Vec<Vec<String>> =
            found.combinations(*row).take(MAX_RECORD_COMBINATIONS).map(|set| table.names(set)).collect();
        combinations.sort_unstable_by(|a, b| a.len().cmp(&b.len()).then_with(|| a.cmp(b)));
        RiskyRecord {
            record: table.numbers.record_of_row(*row as usize),
            score: *score,
            combinations,
            combinations_of: of,
        }
    };
    RiskiestReport {
        largest: found.largest,
        complete: found.complete,
        at_risk: found.at_risk,
        records: found.rows.iter().map(record).collect(),
    }
}
