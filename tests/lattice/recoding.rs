//! Local recoding against its definition, record by record.

use crate::lattice::twin::{Case, Judged, case, cell, classes, holds, judge_among, leaves, people};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;
use strum::VariantArray;
use throng_core::domain::Domain;
use throng_core::lattice::nearest_policy::find_nearest_policy;
use throng_core::lattice::policy::{Lattice, LatticePolicy};
use throng_core::lattice::policy_check::PolicyChecker;
use throng_core::lattice::recoding_passes::{LocalRecodingResult, LocalRecodingSettings, recode_locally};
use throng_core::lattice::search::LatticeStrategy;
use throng_core::lattice::search_deadline::SearchDeadline;
use throng_core::privacy::{ClassPrivacyModel, ValueRequirement};
use throng_core::quality::QualityMeasure;

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * (1.0 + a.abs().max(b.abs()))
}

/// The pass that releases each record.
struct Found {
    recoded: LocalRecodingResult,
    by: Vec<Option<u8>>,
}

impl Deref for Found {
    type Target = LocalRecodingResult;

    fn deref(&self) -> &LocalRecodingResult {
        &self.recoded
    }
}

fn recoded(case: &Case, most: u8, leaving: f64) -> Found {
    let passes = LocalRecodingSettings {
        max_passes: most,
        first_pass_unreleased_share: leaving,
        strategy: LatticeStrategy::Bfs,
    };
    let table = case.table();
    let recoded = recode_locally(&table, &case.terms, passes, SearchDeadline::without_deadline(), &|_| {})
        .expect("possible terms");
    // A record belongs to the first pass that has decided a class with its cells.
    let mut settled: Vec<BTreeMap<Vec<u32>, bool>> = vec![BTreeMap::new(); recoded.passes.len()];
    let cells = |pass: usize, values: &[u32]| -> Vec<u32> {
        let levels = case.domains.iter().zip(&recoded.passes[pass].policy).zip(values);
        levels.map(|((domain, &level), &value)| domain.levels()[level as usize].cell_of[value as usize]).collect()
    };
    let mut values = vec![0; case.domains.len()];
    for (pass, class) in &recoded.classes {
        table.values(class.row, &mut values);
        let pass = usize::from(*pass);
        assert!(
            settled[pass].insert(cells(pass, &values), class.is_class_released).is_none(),
            "a class is there twice"
        );
    }
    let way = |row: usize| {
        let values: Vec<u32> = case.records.quasi.iter().map(|column| column[row]).collect();
        let found = (0..settled.len()).find_map(|pass| Some((pass, *settled[pass].get(&cells(pass, &values))?)));
        found.filter(|(_, is_kept)| *is_kept && leaves(&case.records, row)).map(|(pass, _)| pass as u8)
    };
    let by = (0..case.records.len()).map(way).collect();
    Found { recoded, by }
}

fn lattice(case: &Case) -> Lattice {
    Lattice::new(case.domains.iter().map(Domain::top).collect::<Vec<u8>>())
}

/// Fewer than ℓ records cannot have ℓ values.
fn is_crowd(case: &Case, own: &[usize], members: &[usize]) -> bool {
    case.terms.models.iter().all(|model| match model {
        ClassPrivacyModel::KAnonymity { k } => people(case, own) >= *k && own.len() as u64 >= *k,
        ClassPrivacyModel::KMap { k } => people(case, members) >= *k,
        ClassPrivacyModel::Sensitive { of, .. } => match of {
            ValueRequirement::Distinct { l } | ValueRequirement::Recursive { l, .. } => own.len() >= *l,
            ValueRequirement::Entropy { l } => own.len() as f64 >= *l,
            ValueRequirement::Closeness { .. } => true,
        },
        ClassPrivacyModel::Presence { .. } => true,
    })
}

/// Each policy is optimal, and each record is in the right pass.
fn follow(case: &Case, most: u8, share: f64, recoded: &Found) -> Result<(), TestCaseError> {
    let rows = case.records.len();
    let all: Vec<usize> = (0..rows).filter(|&row| leaves(&case.records, row)).collect();
    let limit = ((case.terms.limit * 100.0).round() as usize * all.len() / 100) as u64;
    let mut open: Vec<usize> = (0..rows).collect();
    let mut gone_for_good = 0;
    prop_assert_eq!(recoded.limit, limit);
    prop_assert!(recoded.passes.len() <= usize::from(most.max(1)));
    for (number, pass) in recoded.passes.iter().enumerate() {
        let own: u64 = open.iter().filter(|&&row| leaves(&case.records, row)).count() as u64;
        prop_assert_eq!(pass.records, own);
        let judged = judge_among(case, &pass.policy, &open);
        // The last of several passes, and the only one, may leave only as many as the limit.
        let over = own + gone_for_good > limit;
        let as_last = if over { limit.saturating_sub(gone_for_good) } else { own };
        let as_others = if number > 0 { own } else { (share * 10.0).round() as u64 * own / 10 };
        let last = number + 1 == usize::from(most.max(1));
        // A pass after an unsuccessful search is also the last one.
        let allowed = if last || judged.suppressed > as_others { as_last } else { as_others };
        prop_assert!(judged.suppressed <= allowed, "pass {} leaves {} of {}", number, judged.suppressed, allowed);
        if !last && recoded.searches.len() == recoded.passes.len() {
            is_best(case, &pass.policy, &judged, &open, allowed)?;
        }
        let mut next = Vec::new();
        let (mut released, mut refused) = (0, 0);
        for members in classes(case, &pass.policy, &open).values() {
            let own: Vec<usize> = members.iter().copied().filter(|&row| leaves(&case.records, row)).collect();
            let says = (0..pass.policy.len()).any(|a| pass.policy[a] < case.domains[a].top());
            let satisfied = !own.is_empty() && case.terms.models.iter().all(|m| holds(case, m, &own, members, &all));
            if satisfied && says {
                released += own.len() as u64;
                prop_assert!(own.iter().all(|&row| recoded.by[row] == Some(number as u8)));
            } else if satisfied || own.is_empty() || !is_crowd(case, &own, members) {
                next.extend(members);
            } else {
                refused += own.len() as u64;
                prop_assert!(own.iter().all(|&row| recoded.by[row].is_none()), "a refused record leaves later");
            }
        }
        prop_assert_eq!((pass.released, pass.refused), (released, refused));
        prop_assert!(released > 0);
        gone_for_good += refused;
        next.sort_unstable();
        open = next;
    }
    prop_assert!(open.iter().all(|&row| recoded.by[row].is_none()));
    let released: u64 = recoded.passes.iter().map(|pass| pass.released).sum();
    let left = open.iter().filter(|&&row| leaves(&case.records, row)).count() as u64;
    prop_assert_eq!(recoded.overall_figures.suppressed, left + gone_for_good);
    prop_assert_eq!(released + left + gone_for_good, all.len() as u64, "nothing is lost");
    prop_assert!((0..rows).all(|row| recoded.by[row].is_none() || leaves(&case.records, row)));
    Ok(())
}

fn is_best(case: &Case, policy: &[u8], judged: &Judged, open: &[usize], allowed: u64) -> Result<(), TestCaseError> {
    // The cost of a part depends only on the values of that part.
    for other in lattice(case).iter() {
        let twin = judge_among(case, &other, open);
        if twin.suppressed <= allowed && !twin.cost.is_nan() {
            let no_better = twin.cost >= judged.cost || near(twin.cost, judged.cost);
            prop_assert!(no_better, "{:?} costs {}, {:?} {}", other, twin.cost, policy, judged.cost);
        }
    }
    Ok(())
}

fn output(case: &Case, recoded: &Found) -> BTreeMap<Vec<BTreeSet<u32>>, Vec<usize>> {
    let mut classes: BTreeMap<Vec<BTreeSet<u32>>, Vec<usize>> = BTreeMap::new();
    for (row, by) in recoded.by.iter().enumerate() {
        let Some(by) = by else { continue };
        let policy = &recoded.passes[usize::from(*by)].policy;
        let covered = |a: usize| -> BTreeSet<u32> {
            let cells = &case.domains[a].levels()[policy[a] as usize].cell_of;
            let own = cells[case.records.quasi[a][row] as usize];
            (0..cells.len() as u32).filter(|&value| cells[value as usize] == own).collect()
        };
        classes.entry((0..policy.len()).map(covered).collect()).or_default().push(row);
    }
    classes
}

fn every_output_class_holds(case: &Case, recoded: &Found) -> Result<(), TestCaseError> {
    let rows = case.records.len();
    let all: Vec<usize> = (0..rows).filter(|&row| leaves(&case.records, row)).collect();
    let classes = output(case, recoded);
    for (tuple, own) in &classes {
        let passes: BTreeSet<Option<u8>> = own.iter().map(|&row| recoded.by[row]).collect();
        prop_assert_eq!(passes.len(), 1, "two passes print one tuple");
        let covers = |row: &usize| tuple.iter().enumerate().all(|(a, set)| set.contains(&case.records.quasi[a][*row]));
        let members: Vec<usize> = (0..rows).filter(covers).collect();
        for model in &case.terms.models {
            // The configuration refuses δ-presence with more than one pass.
            if !matches!(model, ClassPrivacyModel::Presence { .. }) || recoded.passes.len() == 1 {
                prop_assert!(holds(case, model, own, &members, &all), "{:?} in {:?}", model, tuple);
            }
        }
    }
    prop_assert_eq!(recoded.overall_figures.classes, classes.len() as u64);
    prop_assert_eq!(recoded.overall_figures.smallest, classes.values().map(|own| own.len() as u64).min().unwrap_or(0));
    let risk: f64 = classes.values().map(|own| own.len() as f64 / people(case, own).max(1) as f64).sum();
    let left = classes.values().map(Vec::len).sum::<usize>();
    if left > 0
        && case
            .terms
            .models
            .iter()
            .any(|model| matches!(model, ClassPrivacyModel::KAnonymity { .. } | ClassPrivacyModel::KMap { .. }))
    {
        prop_assert!(near(recoded.overall_figures.average_risk, risk / left as f64));
    }
    let mut ways: BTreeMap<Vec<u32>, Option<u8>> = BTreeMap::new();
    for &row in &all {
        let raw = case.records.quasi.iter().map(|column| column[row]).collect();
        prop_assert_eq!(*ways.entry(raw).or_insert(recoded.by[row]), recoded.by[row]);
    }
    Ok(())
}

fn measured(case: &Case, recoded: &Found, measure: QualityMeasure) -> f64 {
    let all: Vec<usize> = (0..case.records.len()).filter(|&row| leaves(&case.records, row)).collect();
    let n = all.len() as f64;
    let first: LatticePolicy =
        recoded.passes.first().map_or_else(|| lattice(case).top().into(), |pass| pass.policy.clone());
    let policy = |row: usize| recoded.by[row].map_or(&first, |by| &recoded.passes[usize::from(by)].policy);
    let gone: Vec<usize> = all.iter().copied().filter(|&row| recoded.by[row].is_none()).collect();
    let classes = output(case, recoded);
    let attributes = 0..case.domains.len();
    let value = |a: usize, row: usize| case.records.quasi[a][row];
    let each = |f: &dyn Fn(usize, usize) -> f64| -> Vec<f64> {
        attributes.clone().map(|a| all.iter().map(|&row| f(a, row)).sum()).collect()
    };
    let share = |sums: Vec<f64>| sums.iter().sum::<f64>() / n / sums.len() as f64;
    let losses = || {
        each(&|a, row| match recoded.by[row] {
            None => 1.0,
            Some(_) => case.domains[a].levels()[policy(row)[a] as usize].loss[cell(case, policy(row), a, row) as usize],
        })
    };
    let covered = |a: usize, row: usize, among: &[usize]| -> Vec<usize> {
        let own = cell(case, policy(row), a, row);
        among.iter().copied().filter(|&other| cell(case, policy(row), a, other) == own).collect()
    };
    let entropies = |monotonic: bool| {
        each(&|a, row| {
            let equal = all.iter().filter(|&&other| value(a, other) == value(a, row)).count() as f64;
            let kept = (covered(a, row, &all).len() as f64 / equal).log2();
            if monotonic || recoded.by[row].is_some() {
                return kept;
            }
            kept + (gone.len() as f64 / covered(a, row, &gone).len() as f64).log2()
        })
    };
    match measure {
        QualityMeasure::Loss => share(losses()),
        QualityMeasure::LossGeometric => {
            losses().iter().map(|loss| 1.0 + loss / n).product::<f64>().powf(1.0 / case.domains.len() as f64) - 1.0
        }
        QualityMeasure::Precision => {
            1.0 - share(each(&|a, row| match recoded.by[row] {
                None => 1.0,
                Some(_) => f64::from(policy(row)[a]) / f64::from(case.domains[a].top()),
            }))
        }
        QualityMeasure::Discernibility => {
            classes.values().map(|own| (own.len() * own.len()) as f64).sum::<f64>() + gone.len() as f64 * n
        }
        QualityMeasure::Aecs => n / (classes.len() + usize::from(!gone.is_empty())).max(1) as f64,
        QualityMeasure::Nue => entropies(false).iter().sum(),
        QualityMeasure::NueMonotonic => entropies(true).iter().sum(),
        QualityMeasure::NueNormalized => {
            let whole = each(&|a, row| {
                (n / all.iter().filter(|&&other| value(a, other) == value(a, row)).count() as f64).log2()
            });
            entropies(false).iter().zip(whole).map(|(e, w)| if w > 0.0 { e / w } else { 0.0 }).sum()
        }
        QualityMeasure::KlDivergence => {
            let values =
                |a: usize, rows: &[usize]| rows.iter().map(|&row| value(a, row)).collect::<BTreeSet<_>>().len();
            let alike = |row: usize, other: &usize| attributes.clone().all(|a| value(a, row) == value(a, *other));
            all.iter()
                .map(|&row| {
                    let p = all.iter().filter(|other| alike(row, other)).count() as f64 / n;
                    let (size, cover): (usize, f64) = match recoded.by[row] {
                        None => (gone.len(), attributes.clone().map(|a| values(a, &all) as f64).product()),
                        Some(_) => (
                            classes.values().find(|own| own.contains(&row)).expect("a class").len(),
                            attributes.clone().map(|a| values(a, &covered(a, row, &all)) as f64).product(),
                        ),
                    };
                    (p / (size as f64 / n / cover)).log2() / n
                })
                .sum()
        }
    }
}

fn the_account_is_that_of_the_output(case: &Case, recoded: &Found) -> Result<(), TestCaseError> {
    if !(0..case.records.len()).any(|row| leaves(&case.records, row)) {
        return Ok(());
    }
    for &measure in QualityMeasure::VARIANTS {
        let (found, twin) =
            (recoded.overall_figures.policy_quality.measure_value(measure), measured(case, recoded, measure));
        prop_assert!(near(found, twin), "{}: {} for {}", measure.name(), found, twin);
    }
    Ok(())
}

fn one_pass_is_the_search(case: &Case) -> Result<(), TestCaseError> {
    let recoded = recoded(case, 1, 1.0);
    let table = case.table();
    let checker = PolicyChecker::new(&table, &case.terms).expect("possible terms");
    let best = recoded.searches[0].best.as_ref();
    let Some(best) = best.filter(|best| *best.policy != *checker.lattice().top() && !recoded.passes.is_empty()) else {
        prop_assert!(recoded.passes.is_empty());
        return Ok(());
    };
    let account = checker.policy_figures(&best.policy);
    prop_assert_eq!(recoded.passes.len(), 1);
    prop_assert_eq!(
        (recoded.overall_figures.suppressed, recoded.overall_figures.classes),
        (account.suppressed, account.classes)
    );
    for (measure, value) in account.policy_quality.0 {
        prop_assert!(near(recoded.overall_figures.policy_quality.measure_value(measure), value), "{}", measure.name());
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, ..ProptestConfig::default() })]

    #[test]
    fn local_recoding_equals_definition(case in case(), most in 1u8..6, tenths in 0u32..=10) {
        let share = f64::from(tenths) / 10.0;
        let recoded = recoded(&case, most, share);
        follow(&case, most, share, &recoded)?;
        every_output_class_holds(&case, &recoded)?;
        the_account_is_that_of_the_output(&case, &recoded)?;
    }

    #[test]
    fn one_recoding_pass_equals_full_domain_search(case in case()) {
        one_pass_is_the_search(&case)?;
    }
}

fn the_nearest_suppresses_least(case: &Case) -> Result<(), TestCaseError> {
    let table = case.table();
    let everybody: Vec<usize> = (0..case.records.len()).collect();
    let least = lattice(case).iter().map(|policy| judge_among(case, &policy, &everybody).suppressed).min();
    let limit = PolicyChecker::new(&table, &case.terms).expect("possible terms").limit();
    prop_assume!(least > Some(limit));
    let found = find_nearest_policy(&table, &case.terms, SearchDeadline::without_deadline()).expect("possible terms");
    prop_assert!(found.proved);
    match found.best {
        None => prop_assert_eq!(least, Some(table.records())),
        Some((policy, suppressed)) => {
            prop_assert_eq!(Some(suppressed), least);
            prop_assert_eq!(judge_among(case, &policy, &everybody).suppressed, suppressed);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, max_global_rejects: 100_000, ..ProptestConfig::default() })]

    #[test]
    fn nearest_policy_suppresses_fewest_records(case in case()) {
        the_nearest_suppresses_least(&case)?;
    }
}
