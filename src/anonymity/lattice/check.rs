//! The check of one policy: generalize, group, judge the classes, count the suppressed, measure ([PRU] steps 1 to 3).

use super::anchors::Anchors;
use super::bench::Bench;
use super::grouping::Grouping;
use super::policy::Lattice;
use super::table::{Rows, Table};
use crate::anonymity::privacy::{Class, Judge, Model, ModelError, Ratio};
use crate::anonymity::quality::{ClassSums, Measure, Meter, Suppressed, Worth};
use std::borrow::Cow;
use std::sync::{Mutex, PoisonError};

/// What is asked of a policy.
#[derive(Clone, Debug, PartialEq)]
pub struct Terms {
    /// Privacy models, all of which must hold in every class that leaves.
    pub models: Vec<Model>,
    /// Share of the records that may be suppressed, in [0, 1].
    pub limit: f64,
    /// What the optimum is the least cost of.
    pub measure: Measure,
}

/// Terms that no policy can be asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the message of a variant says what it is and names its fields")]
pub enum TermsError {
    #[error(transparent)]
    Model(#[from] ModelError),
    #[error("no privacy model is asked for; give at least one, for example k_anonymity with k = 5")]
    NoModel,
    #[error("the suppression limit is no share; give 0 to 1")]
    Limit,
}

/// What a check found.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Whether every class that leaves satisfies every model and the suppressed records are within the limit.
    pub admissible: bool,
    /// Records suppressed; counted to the end only for an admissible policy.
    pub suppressed: u64,
    /// Records that this policy and every specialisation suppress at least. Above the limit, no specialisation is
    /// admissible, and counting has stopped.
    pub failing: u64,
    /// Of an admissible policy; infinite otherwise.
    pub cost: f64,
    /// The least cost of this policy and all its generalizations.
    pub bound: f64,
}

/// Everything about one policy that a report wants.
#[derive(Clone, Debug, PartialEq)]
pub struct Account {
    /// Records to be released that are suppressed.
    pub suppressed: u64,
    /// Classes that leave.
    pub classes: u64,
    /// The smallest of them, in records; 0 when nothing leaves.
    pub smallest: u64,
    /// Mean of 1 / subjects over the records that leave: the prosecutor's average risk.
    pub average_risk: f64,
    /// What the policy is worth by every measure.
    pub worth: Worth,
}

/// Checks policies of one table under one set of terms, on any number of threads.
#[derive(Debug)]
pub struct Checker<'a> {
    table: &'a Table,
    judge: Judge,
    limit: u64,
    measure: Measure,
    meter: Meter,
    pub(super) anchors: Anchors,
    benches: Mutex<Vec<Bench>>,
}

impl<'a> Checker<'a> {
    /// Prepares `terms` for `table`.
    ///
    /// # Errors
    /// When the terms cannot be asked of this table.
    pub fn new(table: &'a Table, terms: &Terms) -> Result<Self, TermsError> {
        if terms.models.is_empty() {
            return Err(TermsError::NoModel);
        }
        let judge = Judge::new(&terms.models, table.sensitive())?;
        let limit = Ratio::of(terms.limit).filter(|limit| limit.value() <= 1.0).ok_or(TermsError::Limit)?;
        let limit = limit.floor_of(table.records());
        let mut grouping = Grouping::new(table.allowed);
        let bottom = table.lattice().bottom();
        let base = Anchors::classes(&needed(&table.rows, &judge), table, &bottom, &mut grouping);
        let mut raw = ClassSums::default();
        // The raw tuples once more: with sensitive values or subjects, a tuple has several rows.
        grouping.group(&base, &table.composites, &bottom);
        for &class in &grouping.occupied {
            let records = u64::from(grouping.cells[class as usize].records);
            if records > 0 {
                raw.add(records);
                raw.add_bits(records);
            }
        }
        let meter = Meter::new(table.domains(), table.counts(), table.records(), raw);
        let anchors = Anchors::new(table, base);
        Ok(Self { table, judge, limit, measure: terms.measure, meter, anchors, benches: Mutex::default() })
    }

    /// How often the rows of `table` are held at a time while policies are checked: by itself and as classes, and once more where it has
    /// columns that no model of `terms` looks at.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn copies(table: &Table, terms: &Terms) -> Result<u64, TermsError> {
        let judge = Judge::new(&terms.models, table.sensitive())?;
        Ok(if is_needed(&table.rows, &judge) { 2 } else { 3 })
    }

    /// Changes the number of records that may be suppressed.
    pub fn limit_to(&mut self, records: u64) {
        self.limit = records;
    }

    /// Records that may be suppressed.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// The measure by which policies are compared.
    pub fn measure(&self) -> Measure {
        self.measure
    }

    /// What measures policies of the table.
    pub fn meter(&self) -> &Meter {
        &self.meter
    }

    /// The table whose policies are checked.
    pub fn table(&self) -> &Table {
        self.table
    }

    /// All policies of the table.
    pub fn lattice(&self) -> Lattice {
        self.table.lattice()
    }

    /// The least cost of `policy` and its generalizations when at least `suppressed` records are known to go, from
    /// the levels alone.
    pub fn bound(&self, policy: &[u8], suppressed: u64) -> f64 {
        self.meter.bound(self.measure, policy, suppressed)
    }

    /// Checks one policy.
    pub fn check(&self, policy: &[u8]) -> Outcome {
        self.with_bench(|bench| {
            let rows = self.anchors.below(policy, self.table, &mut bench.grouping);
            let sums = self.judge_classes(&rows, policy, bench, false, &mut |_, _, _| {});
            let bound = self.meter.class_bound(self.measure, policy, sums.all);
            let admissible = sums.suppressed <= self.limit;
            let cost = if admissible {
                let cells = self.suppressed_cells(&rows, policy, bench);
                let suppressed = Suppressed { records: sums.suppressed, cells: &cells };
                // What is left to rounding is left to the bound's side.
                self.meter.cost(self.measure, policy, suppressed, sums.kept).max(bound)
            } else {
                f64::INFINITY
            };
            Outcome { admissible, suppressed: sums.suppressed, failing: sums.failing, cost, bound }
        })
    }

    /// The whole account of one policy, admissible or not.
    pub fn account(&self, policy: &[u8]) -> Account {
        self.with_bench(|bench| {
            let rows = self.anchors.below(policy, self.table, &mut bench.grouping);
            let (mut smallest, mut risk) = (u64::MAX, 0.0);
            let sums = self.judge_classes(&rows, policy, bench, true, &mut |_, records, subjects| {
                smallest = smallest.min(records);
                risk += records as f64 / subjects.max(1) as f64;
            });
            let cells = self.suppressed_cells(&rows, policy, bench);
            let suppressed = Suppressed { records: sums.suppressed, cells: &cells };
            let kept = self.table.records() - sums.suppressed;
            Account {
                suppressed: sums.suppressed,
                classes: sums.kept.classes,
                smallest: if kept > 0 { smallest } else { 0 },
                average_risk: if kept > 0 { risk / kept as f64 } else { 0.0 },
                worth: self.meter.worth(policy, suppressed, sums.kept),
            }
        })
    }

    /// Every measure of `policy` if nothing were suppressed.
    pub fn raw_worth(&self, policy: &[u8]) -> Worth {
        self.with_bench(|bench| {
            let rows = self.anchors.below(policy, self.table, &mut bench.grouping);
            let all = self.judge_classes(&rows, policy, bench, true, &mut |_, _, _| {}).all;
            let cells: Vec<Vec<u64>> = policy.iter().map(|_| Vec::new()).collect();
            self.meter.worth(policy, Suppressed { records: 0, cells: &cells }, all)
        })
    }

    /// Judges every class of `policy` over `rows`, and hands over the room and the classes that satisfy the models: each with its records and
    /// subjects.
    pub(super) fn judge_rows<T>(
        &self,
        policy: &[u8],
        rows: &Rows,
        read: impl FnOnce(&Bench, &[(u32, u64, u64)]) -> T,
    ) -> T {
        let rows = needed(rows, &self.judge);
        self.with_bench(|bench| {
            let mut kept: Vec<(u32, u64, u64)> = Vec::new();
            let mut note = |class, records, subjects| kept.push((class, records, subjects));
            self.judge_classes(&rows, policy, bench, true, &mut note);
            read(bench, &kept)
        })
    }

    fn with_bench<T>(&self, work: impl FnOnce(&mut Bench) -> T) -> T {
        let bench = self.benches.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut bench = bench.unwrap_or_else(|| Bench::new(self.table.allowed));
        let done = work(&mut bench);
        self.benches.lock().unwrap_or_else(PoisonError::into_inner).push(bench);
        done
    }

    /// Groups and judges; leaves the suppressed classes in `bench.failed`, and those of them that are large enough in
    /// `bench.refused`. Stops once more records than the limit are lost for every specialisation too, unless `whole`.
    /// `kept` is told number, records and subjects of the classes that leave.
    fn judge_classes(
        &self,
        rows: &Rows,
        policy: &[u8],
        bench: &mut Bench,
        whole: bool,
        kept: &mut dyn FnMut(u32, u64, u64),
    ) -> Sums {
        bench.grouping.group(rows, &self.table.composites, policy);
        bench.failed.clear();
        bench.refused.clear();
        let of_classes = whole || !self.measure.is_of_cells();
        let mut sums = Sums::default();
        let smallest = self.judge.smallest_class;
        let cells = &bench.grouping.cells;
        let plain = !self.judge.needs_values && !self.judge.needs_population && rows.subject.is_empty();
        if !plain {
            let records = |&class: &u32| u64::from(cells[class as usize].records);
            let small: u64 = bench.grouping.occupied.iter().map(records).filter(|&records| records < smallest).sum();
            if small > self.limit && !of_classes {
                return Sums { suppressed: small, failing: small, ..sums };
            }
            bench.arrange(rows, smallest);
        }
        for at in 0..bench.grouping.occupied.len() {
            let class = bench.grouping.occupied[at];
            let records = u64::from(bench.grouping.cells[class as usize].records);
            if records == 0 {
                continue;
            }
            if of_classes {
                sums.all.add(records);
                if whole || self.measure == Measure::KlDivergence {
                    sums.all.add_bits(records);
                }
            }
            let mut subjects = records;
            let lost = if records < smallest {
                Some(records)
            } else if plain {
                None
            } else {
                let place = bench.place[class as usize];
                let gathered = bench.gather(rows, place);
                subjects = gathered.subjects;
                let population = bench.population.get(place as usize).copied().unwrap_or(records);
                let people = gathered.people.unwrap_or(population);
                let judged = Class { records, subjects, population, people, values: &bench.values };
                let lost = self.judge.failing(&judged, &mut bench.room);
                if lost.is_some() && self.judge.is_crowd(&judged) {
                    bench.refused.push(class);
                }
                lost
            };
            if let Some(lost) = lost {
                sums.suppressed += records;
                sums.failing += lost;
                bench.failed.push(class);
                if sums.failing > self.limit && !of_classes {
                    break;
                }
            } else if of_classes {
                sums.kept.add(records);
                if whole || self.measure == Measure::KlDivergence {
                    sums.kept.add_bits(records);
                }
                kept(class, records, subjects);
            }
        }
        sums
    }

    /// By attribute and cell of `policy`: how many suppressed records.
    fn suppressed_cells(&self, rows: &Rows, policy: &[u8], bench: &Bench) -> Vec<Vec<u64>> {
        let domains = self.table.domains();
        let cells = |(domain, &level): (&crate::anonymity::domain::Domain, &u8)| {
            vec![0; domain.levels()[level as usize].cells()]
        };
        let mut into: Vec<Vec<u64>> = domains.iter().zip(policy).map(cells).collect();
        if bench.failed.is_empty() {
            return into;
        }
        for (composite, codes) in self.table.composites.iter().zip(&rows.codes) {
            let (map, cells) = composite.at(policy);
            let mut counts = vec![0u64; *cells as usize];
            for &class in &bench.failed {
                let cell = bench.grouping.cells[class as usize];
                counts[map[codes[cell.row as usize] as usize] as usize] += u64::from(cell.records);
            }
            composite.spread(policy, domains, &counts, &mut into);
        }
        into
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    suppressed: u64,
    failing: u64,
    all: ClassSums,
    kept: ClassSums,
}

/// The rows with the columns that the models look at: a copy only where there are others.
fn needed<'r>(rows: &'r Rows, judge: &Judge) -> Cow<'r, Rows> {
    if is_needed(rows, judge) {
        return Cow::Borrowed(rows);
    }
    let keep = |column: &[u32], is_needed: bool| if is_needed { column.to_vec() } else { Vec::new() };
    Cow::Owned(Rows {
        codes: rows.codes.clone(),
        count: rows.count.clone(),
        population: keep(&rows.population, judge.needs_population),
        sensitive: if judge.needs_values { rows.sensitive.clone() } else { Vec::new() },
        subject: keep(&rows.subject, judge.needs_subjects),
    })
}

/// Whether models look at every column of the rows.
fn is_needed(rows: &Rows, judge: &Judge) -> bool {
    (judge.needs_values || rows.sensitive.is_empty())
        && (judge.needs_population || rows.population.is_empty())
        && (judge.needs_subjects || rows.subject.is_empty())
}
