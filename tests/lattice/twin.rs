//! Reference implementation of the definitions, record by record, without sharing or pruning.

use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use strum::VariantArray;
use throng_core::domain::{Domain, HierarchyLevel};
use throng_core::lattice::policy_check::PolicyTerms;
use throng_core::lattice::table::{LatticeTable, TableRecords};
use throng_core::privacy::{ClassPrivacyModel, GroundMetric, ValueRequirement};
use throng_core::quality::QualityMeasure;

#[derive(Clone, Debug)]
pub struct Case {
    pub domains: Vec<Domain>,
    pub records: TableRecords,
    pub terms: PolicyTerms,
}

impl Case {
    pub fn table(&self) -> LatticeTable {
        LatticeTable::new(self.domains.clone(), &self.records).expect("a sound table")
    }
}

/// The seeds select the cells of a level that merge.
fn partitions(values: usize, seeds: &[u64]) -> Vec<Vec<u32>> {
    let mut levels = vec![(0..values as u32).collect::<Vec<u32>>()];
    for seed in seeds {
        let below = levels.last().expect("a level");
        let groups = 1 + (seed % values as u64) as u32;
        let merged: Vec<u32> = below.iter().map(|&cell| (u64::from(cell) * 7 + seed) as u32 % groups).collect();
        let mut number = BTreeMap::new();
        let dense = merged.iter().map(|cell| {
            let next = number.len() as u32;
            *number.entry(*cell).or_insert(next)
        });
        let dense = dense.collect();
        levels.push(dense);
    }
    levels.push(vec![0; values]);
    levels
}

/// Losses follow the number of values that a cell covers.
fn domain(name: &str, values: usize, seeds: &[u64]) -> Domain {
    let level = |cell_of: Vec<u32>| {
        let cells = cell_of.iter().max().map_or(0, |&c| c as usize + 1);
        let covered = |cell: u32| cell_of.iter().filter(|&&c| c == cell).count();
        let loss =
            (0..cells as u32).map(|c| if values < 2 { 0.0 } else { (covered(c) - 1) as f64 / (values - 1) as f64 });
        HierarchyLevel { loss: loss.collect(), cell_of }
    };
    let mut levels: Vec<HierarchyLevel> = partitions(values, seeds).into_iter().map(level).collect();
    levels.last_mut().expect("a root").loss = vec![1.0];
    Domain::new(name, levels).expect("a hierarchy")
}

fn model(attributes: usize) -> impl Strategy<Value = (ClassPrivacyModel, bool)> {
    let attribute = 0..attributes;
    prop_oneof![
        3 => (1u64..5).prop_map(|k| (ClassPrivacyModel::KAnonymity { k }, false)),
        1 => (1u64..6).prop_map(|k| (ClassPrivacyModel::KMap { k }, false)),
        1 => (attribute.clone(), 1usize..4).prop_map(|(attribute, l)| (ClassPrivacyModel::Sensitive { attribute, of: ValueRequirement::Distinct { l } }, false)),
        1 => (attribute.clone(), prop_oneof![Just(1.5), Just(2.0), Just(2.7), Just(3.0)])
            .prop_map(|(attribute, l)| (ClassPrivacyModel::Sensitive { attribute, of: ValueRequirement::Entropy { l } }, false)),
        2 => (attribute.clone(), prop_oneof![Just(0.5), Just(1.0), Just(2.5), Just(4.0)], 2usize..4)
            .prop_map(|(attribute, c, l)| (ClassPrivacyModel::Sensitive { attribute, of: ValueRequirement::Recursive { c, l } }, false)),
        2 => (attribute.clone(), 0u32..6, any::<bool>()).prop_map(|(attribute, t, ordered)| {
            let ground = if ordered { GroundMetric::Ordered } else { GroundMetric::Equal };
            (ClassPrivacyModel::Sensitive { attribute, of: ValueRequirement::Closeness { t: f64::from(t) / 10.0, ground } }, false)
        }),
        // The tree is inserted when the table is known.
        1 => (attribute, 0u32..6).prop_map(|(attribute, t)| {
            (ClassPrivacyModel::Sensitive { attribute, of: ValueRequirement::Closeness { t: f64::from(t) / 10.0, ground: GroundMetric::Equal } }, true)
        }),
        2 => (0u32..4, 0u32..6).prop_map(|(min, more)| {
            (ClassPrivacyModel::Presence { min: f64::from(min) / 10.0, max: f64::from(min + more) / 10.0 }, false)
        }),
    ]
}

fn measure() -> impl Strategy<Value = QualityMeasure> {
    prop::sample::select(QualityMeasure::VARIANTS)
}

pub fn case() -> impl Strategy<Value = Case> {
    let shapes = prop::collection::vec((1usize..6, prop::collection::vec(any::<u64>(), 0..3)), 1..4);
    let beside = prop::collection::vec((1usize..5, prop::collection::vec(any::<u64>(), 0..2)), 1..3);
    (shapes, beside, 1usize..50)
        .prop_flat_map(|(shapes, beside, rows)| {
            let column = |values: usize| prop::collection::vec(0..values as u32, rows);
            let quasi: Vec<_> = shapes.iter().map(|(values, _)| column(*values)).collect();
            let sensitive: Vec<_> = beside.iter().map(|(values, _)| column(*values)).collect();
            let subjects = prop::option::weighted(0.3, prop::collection::vec(0..(rows as u32 / 2).max(1), rows));
            let released = prop::option::weighted(0.3, prop::collection::vec(prop::bool::weighted(0.6), rows));
            let models = prop::collection::vec(model(beside.len()), 1..4);
            let limit = prop::sample::select(vec![0.0, 0.05, 0.2, 0.4, 1.0]);
            (Just((shapes, beside)), quasi, sensitive, subjects, released, models, limit, measure())
        })
        .prop_map(|((shapes, beside), quasi, sensitive, subjects, released, models, limit, measure)| {
            let domains: Vec<Domain> = shapes.iter().map(|(values, seeds)| domain("a", *values, seeds)).collect();
            let trees: Vec<_> = beside.iter().map(|(values, seeds)| domain("s", *values, seeds).parents()).collect();
            let rooted = |(model, hierarchical): (ClassPrivacyModel, bool)| match model {
                ClassPrivacyModel::Sensitive { attribute, of: ValueRequirement::Closeness { t, .. } }
                    if hierarchical =>
                {
                    let ground = GroundMetric::Hierarchical(trees[attribute].clone());
                    ClassPrivacyModel::Sensitive { attribute, of: ValueRequirement::Closeness { t, ground } }
                }
                model => model,
            };
            let terms = PolicyTerms { models: models.into_iter().map(rooted).collect(), limit, measure };
            let sensitive = sensitive.into_iter().zip(&beside).map(|(column, (values, _))| (column, *values)).collect();
            let records = TableRecords { quasi, sensitive, subjects, released, ..TableRecords::default() };
            Case { domains, records, terms }
        })
}

pub fn rare_case() -> impl Strategy<Value = Case> {
    (case(), prop::collection::vec(prop::bool::weighted(0.3), 10)).prop_map(|(mut case, marks)| {
        let of = |(at, (_, values)): (usize, &(Vec<u32>, usize))| marks[at * 5..at * 5 + values].to_vec();
        case.records.rare = case.records.sensitive.iter().enumerate().map(of).collect();
        case
    })
}

pub struct Judged {
    pub suppressed: u64,
    pub admissible: bool,
    /// Quality as a cost; see `QualityMeasure::shown`.
    pub cost: f64,
    pub rows: Vec<bool>,
}

pub fn leaves(records: &TableRecords, row: usize) -> bool {
    records.released.as_ref().is_none_or(|marks| marks[row])
}

pub fn cell(case: &Case, policy: &[u8], attribute: usize, row: usize) -> u32 {
    let value = case.records.quasi[attribute][row];
    case.domains[attribute].levels()[policy[attribute] as usize].cell_of[value as usize]
}

pub fn classes(case: &Case, policy: &[u8], among: &[usize]) -> BTreeMap<Vec<u32>, Vec<usize>> {
    let tuple = |row: usize| -> Vec<u32> { (0..policy.len()).map(|a| cell(case, policy, a, row)).collect() };
    let mut classes: BTreeMap<Vec<u32>, Vec<usize>> = BTreeMap::new();
    for &row in among {
        classes.entry(tuple(row)).or_default().push(row);
    }
    classes
}

pub fn judge(case: &Case, policy: &[u8]) -> Judged {
    let everybody: Vec<usize> = (0..case.records.len()).collect();
    judge_among(case, policy, &everybody)
}

/// Distances refer to all records.
pub fn judge_among(case: &Case, policy: &[u8], among: &[usize]) -> Judged {
    let rows = case.records.len();
    let whole: Vec<usize> = (0..rows).filter(|&row| leaves(&case.records, row)).collect();
    let all: Vec<usize> = among.iter().copied().filter(|&row| leaves(&case.records, row)).collect();
    let classes = classes(case, policy, among);
    let mut suppressed = vec![false; rows];
    for members in classes.values() {
        let own: Vec<usize> = members.iter().copied().filter(|&row| leaves(&case.records, row)).collect();
        if !own.is_empty() && !case.terms.models.iter().all(|model| holds(case, model, &own, members, &whole)) {
            for &row in &own {
                suppressed[row] = true;
            }
        }
    }
    let count = all.iter().filter(|&&row| suppressed[row]).count() as u64;
    let allowed = (case.terms.limit * 100.0).round() as u64 * all.len() as u64 / 100;
    let cost = cost(case, policy, &all, &suppressed, &classes);
    Judged { suppressed: count, admissible: count <= allowed, cost, rows: suppressed }
}

fn counts(case: &Case, attribute: usize, rows: &[usize]) -> Vec<u64> {
    let (column, values) = &case.records.sensitive[attribute];
    (0..*values as u32).map(|v| rows.iter().filter(|&&row| column[row] == v).count() as u64).collect()
}

pub fn people(case: &Case, rows: &[usize]) -> u64 {
    match &case.records.subjects {
        None => rows.len() as u64,
        Some(of) => rows.iter().map(|&row| of[row]).collect::<BTreeSet<_>>().len() as u64,
    }
}

/// `own` are the released records of a class, `members` all of its records, `all` the released records of the table.
pub fn holds(case: &Case, model: &ClassPrivacyModel, own: &[usize], members: &[usize], all: &[usize]) -> bool {
    let population = members.len();
    let is_rare = |a: usize, v: u32| case.records.rare.get(a).is_some_and(|marks| marks[v as usize]);
    // `*` would reveal a value of more than half of the class.
    let names_the_rare =
        |a: usize| (0u32..).zip(counts(case, a, own)).any(|(v, count)| is_rare(a, v) && 2 * count > people(case, own));
    if (0..case.records.sensitive.len()).any(names_the_rare) {
        return false;
    }
    let shown = |a: usize| -> Vec<usize> {
        own.iter().copied().filter(|&row| !is_rare(a, case.records.sensitive[a].0[row])).collect()
    };
    let descending = |attribute: usize| {
        let mut r: Vec<u64> = counts(case, attribute, &shown(attribute)).into_iter().filter(|&c| c > 0).collect();
        r.sort_unstable();
        r.reverse();
        r
    };
    match model {
        ClassPrivacyModel::KAnonymity { k } => people(case, own) >= *k,
        ClassPrivacyModel::KMap { k } => people(case, members) >= *k,
        ClassPrivacyModel::Sensitive { attribute, of: ValueRequirement::Distinct { l } } => {
            descending(*attribute).len() >= *l
        }
        ClassPrivacyModel::Sensitive { attribute, of: ValueRequirement::Entropy { l } } => {
            let r = descending(*attribute);
            let n = shown(*attribute).len() as f64;
            let entropy = -r.iter().map(|&c| c as f64 / n).map(|p| p * p.ln()).sum::<f64>();
            // The tolerance only covers rounding errors.
            r.len() as f64 >= *l && entropy >= l.ln() - 1e-12
        }
        ClassPrivacyModel::Sensitive { attribute, of: ValueRequirement::Recursive { c, l } } => {
            let r = descending(*attribute);
            let tail: u64 = r.iter().skip(l - 1).sum();
            r.len() >= *l && (r[0] as f64) < c * tail as f64
        }
        ClassPrivacyModel::Sensitive { attribute, of: ValueRequirement::Closeness { t, ground } } => {
            let own = shown(*attribute);
            let (class, whole) = (counts(case, *attribute, &own), counts(case, *attribute, all));
            let (n, total) = (own.len() as u64, all.len() as u64);
            // Distances are in units of 1 / (n · total), compared in tenths of t.
            let (distance, unit) = match ground {
                GroundMetric::Equal => {
                    (class.iter().zip(&whole).map(|(c, w)| (c * total).abs_diff(w * n)).sum::<u64>(), 2)
                }
                GroundMetric::Ordered => (matched(&class, &whole, n, total), (class.len() as u64).max(2) - 1),
                GroundMetric::Hierarchical(levels) => along_edges(&class, &whole, n, total, levels),
            };
            distance * 10 <= (t * 10.0).round() as u64 * unit * n * total
        }
        ClassPrivacyModel::Presence { min, max } => {
            let tenths = |share: &f64| (share * 10.0).round() as usize * population;
            tenths(min) <= own.len() * 10 && own.len() * 10 <= tenths(max)
        }
    }
}

/// Matches the sorted units of both distributions in order.
fn matched(class: &[u64], whole: &[u64], n: u64, total: u64) -> u64 {
    let units = |counts: &[u64], each: u64| -> Vec<usize> {
        counts.iter().enumerate().flat_map(|(v, &c)| std::iter::repeat_n(v, (c * each) as usize)).collect()
    };
    let (from, to) = (units(class, total), units(whole, n));
    from.iter().zip(&to).map(|(a, b)| a.abs_diff(*b) as u64).sum()
}

/// Returns the total flow over the edges of the tree, and its scale. An edge is half a level long.
fn along_edges(class: &[u64], whole: &[u64], n: u64, total: u64, levels: &[Vec<u32>]) -> (u64, u64) {
    let mut surplus: Vec<i64> = class.iter().zip(whole).map(|(&c, &w)| (c * total) as i64 - (w * n) as i64).collect();
    let mut crossing = 0;
    for parents in levels {
        crossing += surplus.iter().map(|s| s.unsigned_abs()).sum::<u64>();
        let mut above = vec![0; parents.iter().max().map_or(0, |&p| p as usize + 1)];
        for (&parent, &s) in parents.iter().zip(&surplus) {
            above[parent as usize] += s;
        }
        surplus = above;
    }
    (crossing, 2 * levels.len() as u64)
}

fn cost(
    case: &Case,
    policy: &[u8],
    all: &[usize],
    suppressed: &[bool],
    classes: &BTreeMap<Vec<u32>, Vec<usize>>,
) -> f64 {
    let n = all.len() as f64;
    let m = policy.len() as f64;
    if all.is_empty() {
        return f64::NAN;
    }
    let per_attribute = |f: &dyn Fn(usize, usize) -> f64| -> Vec<f64> {
        (0..policy.len()).map(|a| all.iter().map(|&row| f(a, row)).sum::<f64>()).collect()
    };
    let losses = || {
        per_attribute(&|a, row| {
            let level = &case.domains[a].levels()[policy[a] as usize];
            if suppressed[row] { 1.0 } else { level.loss[cell(case, policy, a, row) as usize] }
        })
    };
    let entropies = |monotonic: bool, policy: &[u8]| {
        per_attribute(&|a, row| {
            let value = case.records.quasi[a][row];
            let same = |other: &usize| cell(case, policy, a, *other) == cell(case, policy, a, row);
            let equal = all.iter().filter(|&&other| case.records.quasi[a][other] == value).count() as f64;
            let first = -(equal / all.iter().filter(|&o| same(o)).count() as f64).log2();
            if monotonic || !suppressed[row] {
                return first;
            }
            let gone: Vec<usize> = all.iter().copied().filter(|&other| suppressed[other]).collect();
            first - (gone.iter().filter(|&o| same(o)).count() as f64 / gone.len() as f64).log2()
        })
    };
    let own = |members: &Vec<usize>| -> Vec<usize> {
        members.iter().copied().filter(|&r| leaves(&case.records, r)).collect()
    };
    let kept: Vec<usize> =
        classes.values().map(own).filter(|c| !c.is_empty() && !suppressed[c[0]]).map(|c| c.len()).collect();
    let gone = all.iter().filter(|&&row| suppressed[row]).count();
    match case.terms.measure {
        QualityMeasure::Loss => losses().iter().sum::<f64>() / n / m,
        QualityMeasure::LossGeometric => losses().iter().map(|loss| loss / n + 1.0).product(),
        QualityMeasure::Precision => {
            per_attribute(&|a, row| {
                if suppressed[row] { 1.0 } else { f64::from(policy[a]) / f64::from(case.domains[a].top()) }
            })
            .iter()
            .sum::<f64>()
                / n
                / m
        }
        QualityMeasure::Discernibility => kept.iter().map(|&c| (c * c) as f64).sum::<f64>() + gone as f64 * n,
        QualityMeasure::Aecs => n / (kept.len() + usize::from(gone > 0)) as f64,
        QualityMeasure::Nue => entropies(false, policy).iter().sum(),
        QualityMeasure::NueMonotonic => entropies(true, policy).iter().sum(),
        QualityMeasure::NueNormalized => {
            let top: Vec<u8> = case.domains.iter().map(Domain::top).collect();
            let whole = entropies(true, &top);
            entropies(false, policy).iter().zip(whole).map(|(e, w)| if w > 0.0 { e / w } else { 0.0 }).sum()
        }
        QualityMeasure::KlDivergence => {
            let occurring = |a: usize, row: Option<usize>| {
                let values: BTreeSet<u32> = all
                    .iter()
                    .filter(|&&other| row.is_none_or(|row| cell(case, policy, a, other) == cell(case, policy, a, row)))
                    .map(|&other| case.records.quasi[a][other])
                    .collect();
                values.len() as f64
            };
            let alike = |row: usize, other: usize| case.records.quasi.iter().all(|column| column[row] == column[other]);
            let each = |&row: &usize| {
                let p = all.iter().filter(|&&other| alike(row, other)).count() as f64 / n;
                let (size, cover) = if suppressed[row] {
                    (gone, (0..policy.len()).map(|a| occurring(a, None)).product::<f64>())
                } else {
                    let same = |&&o: &&usize| {
                        (0..policy.len()).all(|a| cell(case, policy, a, o) == cell(case, policy, a, row))
                    };
                    (all.iter().filter(same).count(), (0..policy.len()).map(|a| occurring(a, Some(row))).product())
                };
                (p / (size as f64 / n / cover)).log2() / n
            };
            all.iter().map(each).sum()
        }
    }
}
