//! Checks one policy (\[PRU] steps 1 to 3).

use super::anchors::AnchorCache;
use super::class_scratch::ClassScratch;
use super::policy::Lattice;
use super::row_grouping::RowGrouping;
use super::table::{CodedRows, LatticeTable};
use crate::privacy::{ClassModelError, ClassPrivacyModel, DecimalRatio, JudgedClass, ModelJudge};
use crate::quality::{ClassSums, QualityMeasure, QualityMeter, QualityValues, SuppressedCounts};
use std::borrow::Cow;
use std::sync::{Mutex, PoisonError};

/// Requirements for a policy.
#[derive(Clone, Debug, PartialEq)]
pub struct PolicyTerms {
    /// Privacy models of every released class.
    pub models: Vec<ClassPrivacyModel>,
    /// Maximum suppressed share, in [0, 1].
    pub limit: f64,
    /// Measure to be minimized.
    pub measure: QualityMeasure,
}

/// Reasons why terms are invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages document the variants and their fields")]
pub enum PolicyTermsError {
    #[error(transparent)]
    Model(#[from] ClassModelError),
    #[error("no privacy model is configured; give at least one, for example k_anonymity with k = 5")]
    NoModel,
    #[error("the suppression limit is not a share; give 0 to 1")]
    Limit,
}

/// Result of a check.
#[derive(Clone, Debug, PartialEq)]
pub struct PolicyOutcome {
    /// True if all released classes satisfy the models, within the limit.
    pub admissible: bool,
    /// Suppressed records; complete only if admissible.
    pub suppressed: u64,
    /// Least records suppressed by this policy or a specialization; incomplete above the limit.
    pub failing: u64,
    /// Cost; infinite if not admissible.
    pub cost: f64,
    /// Least cost, with all generalizations.
    pub bound: f64,
}

/// Figures of one policy.
#[derive(Clone, Debug, PartialEq)]
pub struct PolicyFigures {
    /// Suppressed records.
    pub suppressed: u64,
    /// Released classes.
    pub classes: u64,
    /// Records of the smallest released class, or 0.
    pub smallest: u64,
    /// Average prosecutor risk: mean of 1 / subjects over released records.
    pub average_risk: f64,
    /// All measures.
    pub policy_quality: QualityValues,
}

/// Checks policies of one table on any number of threads.
#[derive(Debug)]
pub struct PolicyChecker<'a> {
    table: &'a LatticeTable,
    judge: ModelJudge,
    limit: u64,
    measure: QualityMeasure,
    meter: QualityMeter,
    pub(super) anchors: AnchorCache,
    scratch_pool: Mutex<Vec<ClassScratch>>,
}

impl<'a> PolicyChecker<'a> {
    /// Prepares `terms` for `table`.
    ///
    /// # Errors
    /// When the terms are invalid for this table.
    pub fn new(table: &'a LatticeTable, terms: &PolicyTerms) -> Result<Self, PolicyTermsError> {
        if terms.models.is_empty() {
            return Err(PolicyTermsError::NoModel);
        }
        let judge = ModelJudge::new(&terms.models, table.sensitive())?;
        let limit = DecimalRatio::from_decimal_text(terms.limit)
            .filter(|limit| limit.value() <= 1.0)
            .ok_or(PolicyTermsError::Limit)?;
        let limit = limit.floor_of(table.records());
        let mut grouping = RowGrouping::new(table.search_memory);
        let bottom = table.lattice().bottom();
        let base = AnchorCache::merge_policy_classes(
            &select_needed_columns(&table.rows, &judge),
            table,
            &bottom,
            &mut grouping,
        );
        let mut raw = ClassSums::default();
        // With sensitive values or subjects, a raw tuple has several rows.
        grouping.group(&base, &table.composites, &bottom);
        for &class in &grouping.occupied {
            let records = u64::from(grouping.cells[class as usize].records);
            if records > 0 {
                raw.add(records);
                raw.add_bits(records);
            }
        }
        let meter = QualityMeter::new(table.domains(), table.counts(), table.records(), raw);
        let anchors = AnchorCache::new(table, base);
        Ok(Self { table, judge, limit, measure: terms.measure, meter, anchors, scratch_pool: Mutex::default() })
    }

    /// Simultaneous copies of the rows: table and classes, and a third if models use only some columns.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn simultaneous_row_copies(table: &LatticeTable, terms: &PolicyTerms) -> Result<u64, PolicyTermsError> {
        let judge = ModelJudge::new(&terms.models, table.sensitive())?;
        Ok(if needs_all_columns(&table.rows, &judge) { 2 } else { 3 })
    }

    /// Sets the suppression limit in records.
    pub fn set_suppression_limit(&mut self, records: u64) {
        self.limit = records;
    }

    /// Suppression limit in records.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// Compared measure.
    pub fn measure(&self) -> QualityMeasure {
        self.measure
    }

    /// Quality meter of the table.
    pub fn meter(&self) -> &QualityMeter {
        &self.meter
    }

    /// Checked table.
    pub fn table(&self) -> &LatticeTable {
        self.table
    }

    /// Lattice of the table.
    pub fn lattice(&self) -> Lattice {
        self.table.lattice()
    }

    /// Least cost by levels alone of `policy` and its generalizations, with at least `suppressed` records suppressed.
    pub fn bound(&self, policy: &[u8], suppressed: u64) -> f64 {
        self.meter.bound(self.measure, policy, suppressed)
    }

    /// Checks one policy.
    pub fn check(&self, policy: &[u8]) -> PolicyOutcome {
        self.with_class_scratch(|bench| {
            let rows = self.anchors.rows_for_policy(policy, self.table, &mut bench.grouping);
            let sums = self.judge_classes(&rows, policy, bench, false, &mut |_, _, _| {});
            let bound = self.meter.class_bound(self.measure, policy, sums.all);
            let admissible = sums.suppressed <= self.limit;
            let cost = if admissible {
                let cells = self.suppressed_cells(&rows, policy, bench);
                let suppressed = SuppressedCounts { records: sums.suppressed, cells: &cells };
                // Rounding must not put the cost below the bound.
                self.meter.cost(self.measure, policy, suppressed, sums.kept).max(bound)
            } else {
                f64::INFINITY
            };
            PolicyOutcome { admissible, suppressed: sums.suppressed, failing: sums.failing, cost, bound }
        })
    }

    /// Returns the figures of any policy.
    pub fn policy_figures(&self, policy: &[u8]) -> PolicyFigures {
        self.with_class_scratch(|bench| {
            let rows = self.anchors.rows_for_policy(policy, self.table, &mut bench.grouping);
            let (mut smallest, mut risk) = (u64::MAX, 0.0);
            let sums = self.judge_classes(&rows, policy, bench, true, &mut |_, records, subjects| {
                smallest = smallest.min(records);
                risk += records as f64 / subjects.max(1) as f64;
            });
            let cells = self.suppressed_cells(&rows, policy, bench);
            let suppressed = SuppressedCounts { records: sums.suppressed, cells: &cells };
            let kept = self.table.records() - sums.suppressed;
            PolicyFigures {
                suppressed: sums.suppressed,
                classes: sums.kept.classes,
                smallest: if kept > 0 { smallest } else { 0 },
                average_risk: if kept > 0 { risk / kept as f64 } else { 0.0 },
                policy_quality: self.meter.quality_values(policy, suppressed, sums.kept),
            }
        })
    }

    /// Returns all measures without suppression.
    pub fn unsuppressed_quality(&self, policy: &[u8]) -> QualityValues {
        self.with_class_scratch(|bench| {
            let rows = self.anchors.rows_for_policy(policy, self.table, &mut bench.grouping);
            let all = self.judge_classes(&rows, policy, bench, true, &mut |_, _, _| {}).all;
            let cells: Vec<Vec<u64>> = policy.iter().map(|_| Vec::new()).collect();
            self.meter.quality_values(policy, SuppressedCounts { records: 0, cells: &cells }, all)
        })
    }

    /// Passes the satisfying classes over `rows` (number, records, subjects) to `read`.
    pub(super) fn judge_rows<T>(
        &self,
        policy: &[u8],
        rows: &CodedRows,
        read: impl FnOnce(&ClassScratch, &[(u32, u64, u64)]) -> T,
    ) -> T {
        let rows = select_needed_columns(rows, &self.judge);
        self.with_class_scratch(|bench| {
            let mut kept: Vec<(u32, u64, u64)> = Vec::new();
            let mut note = |class, records, subjects| kept.push((class, records, subjects));
            self.judge_classes(&rows, policy, bench, true, &mut note);
            read(bench, &kept)
        })
    }

    fn with_class_scratch<T>(&self, work: impl FnOnce(&mut ClassScratch) -> T) -> T {
        let bench = self.scratch_pool.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut bench = bench.unwrap_or_else(|| ClassScratch::new(self.table.search_memory));
        let done = work(&mut bench);
        self.scratch_pool.lock().unwrap_or_else(PoisonError::into_inner).push(bench);
        done
    }

    /// Calls `kept` with number, records and subjects of each released class.
    ///
    /// Unless `whole`, stops when every specialization exceeds the limit.
    fn judge_classes(
        &self,
        rows: &CodedRows,
        policy: &[u8],
        bench: &mut ClassScratch,
        whole: bool,
        kept: &mut dyn FnMut(u32, u64, u64),
    ) -> JudgedClassSums {
        bench.grouping.group(rows, &self.table.composites, policy);
        bench.suppressed_class_numbers.clear();
        bench.refused_class_numbers.clear();
        let of_classes = whole || !self.measure.is_of_cells();
        let mut sums = JudgedClassSums::default();
        let smallest = self.judge.smallest_class;
        let cells = &bench.grouping.cells;
        let plain = !self.judge.needs_values && !self.judge.needs_population && rows.subject.is_empty();
        if !plain {
            let records = |&class: &u32| u64::from(cells[class as usize].records);
            let small: u64 = bench.grouping.occupied.iter().map(records).filter(|&records| records < smallest).sum();
            if small > self.limit && !of_classes {
                return JudgedClassSums { suppressed: small, failing: small, ..sums };
            }
            bench.sort_rows_by_class(rows, smallest);
        }
        for at in 0..bench.grouping.occupied.len() {
            let class = bench.grouping.occupied[at];
            let records = u64::from(bench.grouping.cells[class as usize].records);
            if records == 0 {
                continue;
            }
            if of_classes {
                sums.all.add(records);
                if whole || self.measure == QualityMeasure::KlDivergence {
                    sums.all.add_bits(records);
                }
            }
            let mut subjects = records;
            let lost = if records < smallest {
                Some(records)
            } else if plain {
                None
            } else {
                let place = bench.judged_position[class as usize];
                let gathered = bench.collect_class_values(rows, place);
                subjects = gathered.subjects;
                let population = bench.population.get(place as usize).copied().unwrap_or(records);
                let people = gathered.population_subject_count.unwrap_or(population);
                let judged =
                    JudgedClass { records, subjects, population, population_subjects: people, values: &bench.values };
                let lost = self.judge.lost_records(&judged, &mut bench.judge_scratch);
                if lost.is_some() && self.judge.has_enough_members(&judged) {
                    bench.refused_class_numbers.push(class);
                }
                lost
            };
            if let Some(lost) = lost {
                sums.suppressed += records;
                sums.failing += lost;
                bench.suppressed_class_numbers.push(class);
                if sums.failing > self.limit && !of_classes {
                    break;
                }
            } else if of_classes {
                sums.kept.add(records);
                if whole || self.measure == QualityMeasure::KlDivergence {
                    sums.kept.add_bits(records);
                }
                kept(class, records, subjects);
            }
        }
        sums
    }

    /// By attribute and cell of `policy`.
    fn suppressed_cells(&self, rows: &CodedRows, policy: &[u8], bench: &ClassScratch) -> Vec<Vec<u64>> {
        let domains = self.table.domains();
        let cells = |(domain, &level): (&crate::domain::Domain, &u8)| vec![0; domain.levels()[level as usize].cells()];
        let mut into: Vec<Vec<u64>> = domains.iter().zip(policy).map(cells).collect();
        if bench.suppressed_class_numbers.is_empty() {
            return into;
        }
        for (composite, codes) in self.table.composites.iter().zip(&rows.codes) {
            let (map, cells) = composite.level_map(policy);
            let mut counts = vec![0u64; *cells as usize];
            for &class in &bench.suppressed_class_numbers {
                let cell = bench.grouping.cells[class as usize];
                counts[map[codes[cell.row as usize] as usize] as usize] += u64::from(cell.records);
            }
            composite.add_attribute_counts(policy, domains, &counts, &mut into);
        }
        into
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct JudgedClassSums {
    suppressed: u64,
    failing: u64,
    all: ClassSums,
    kept: ClassSums,
}

fn select_needed_columns<'r>(rows: &'r CodedRows, judge: &ModelJudge) -> Cow<'r, CodedRows> {
    if needs_all_columns(rows, judge) {
        return Cow::Borrowed(rows);
    }
    let keep = |column: &[u32], is_needed: bool| if is_needed { column.to_vec() } else { Vec::new() };
    Cow::Owned(CodedRows {
        codes: rows.codes.clone(),
        count: rows.count.clone(),
        population: keep(&rows.population, judge.needs_population),
        sensitive: if judge.needs_values { rows.sensitive.clone() } else { Vec::new() },
        subject: keep(&rows.subject, judge.needs_subjects),
    })
}

fn needs_all_columns(rows: &CodedRows, judge: &ModelJudge) -> bool {
    (judge.needs_values || rows.sensitive.is_empty())
        && (judge.needs_population || rows.population.is_empty())
        && (judge.needs_subjects || rows.subject.is_empty())
}
