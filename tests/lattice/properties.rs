//! Strategies against exhaustive search, and checks against the definitions.

use crate::lattice::twin::{Case, case, judge, rare_case};
use proptest::prelude::*;
use std::cmp::Ordering;
use strum::VariantArray;
use throng_core::lattice::policy::{LatticePolicy, is_same_or_specialization, policy_rank};
use throng_core::lattice::policy_check::{PolicyChecker, PolicyOutcome};
use throng_core::lattice::row_decisions::RowDecision;
use throng_core::lattice::search::LatticeStrategy;
use throng_core::lattice::search_deadline::SearchDeadline;
use throng_core::lattice::strategies::search_lattice;

pub fn checked(checker: &PolicyChecker<'_>) -> Vec<(LatticePolicy, PolicyOutcome)> {
    checker.lattice().iter().map(|policy| (policy.clone(), checker.check(&policy))).collect()
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * (1.0 + a.abs().max(b.abs()))
}

fn a_check_is_the_definition(case: &Case) -> Result<(), TestCaseError> {
    let table = case.table();
    let checker = PolicyChecker::new(&table, &case.terms).expect("possible terms");
    for (policy, outcome) in checked(&checker) {
        let twin = judge(case, &policy);
        prop_assert_eq!(outcome.admissible, twin.admissible, "{:?}", policy);
        let account = checker.policy_figures(&policy);
        prop_assert_eq!(account.suppressed, twin.suppressed);
        let fates = checker.decide_records(&policy, &case.records).decision_by_row;
        // A class without records to release is neither suppressed nor kept.
        let lost = |row: usize| {
            case.records.is_released(row)
                && !matches!(fates[row], RowDecision::ClassReleased | RowDecision::Uninformative)
        };
        prop_assert_eq!((0..fates.len()).map(lost).collect::<Vec<_>>(), twin.rows);
        if outcome.admissible {
            prop_assert_eq!(outcome.suppressed, twin.suppressed);
            prop_assert!(twin.cost.is_nan() || near(outcome.cost, twin.cost), "{} for {}", outcome.cost, twin.cost);
        }
        let shown = case.terms.measure.shown(twin.cost, policy.len());
        let (_, worth) =
            account.policy_quality.0.iter().find(|(measure, _)| *measure == case.terms.measure).expect("listed");
        prop_assert!(twin.cost.is_nan() || near(*worth, shown), "{} for {}", worth, shown);
    }
    Ok(())
}

fn every_strategy_finds_the_optimum(case: &Case) -> Result<(), TestCaseError> {
    let table = case.table();
    let checker = PolicyChecker::new(&table, &case.terms).expect("possible terms");
    let order = |a: &(LatticePolicy, PolicyOutcome), b: &(LatticePolicy, PolicyOutcome)| -> Ordering {
        a.1.cost.total_cmp(&b.1.cost).then(policy_rank(&a.0).cmp(&policy_rank(&b.0))).then_with(|| a.0.cmp(&b.0))
    };
    let optimum = checked(&checker).into_iter().filter(|(_, outcome)| outcome.admissible).min_by(order);
    for &strategy in LatticeStrategy::VARIANTS {
        let found =
            search_lattice(&checker, strategy, SearchDeadline::without_deadline(), &|_| {}).expect("a small lattice");
        prop_assert!(found.complete);
        let best = found.best.map(|best| (best.policy, best.cost, best.suppressed));
        let wanted = optimum.as_ref().map(|(policy, o)| (policy.clone(), o.cost, o.suppressed));
        prop_assert_eq!(best, wanted, "{}", strategy.name());
    }
    Ok(())
}

fn every_bound_is_one(case: &Case) -> Result<(), TestCaseError> {
    let table = case.table();
    let checker = PolicyChecker::new(&table, &case.terms).expect("possible terms");
    let all: Vec<_> =
        checked(&checker).into_iter().map(|(p, o)| (checker.policy_figures(&p).suppressed, p, o)).collect();
    for (_, x, low) in &all {
        for (lost, y, high) in all.iter().filter(|(_, y, _)| is_same_or_specialization(x, y)) {
            // Quality bounds, from x to its generalization y.
            prop_assert!(checker.bound(x, 0) <= high.cost);
            prop_assert!(low.bound <= high.cost);
            // Suppression bounds, from y to its specialization x.
            if high.failing <= checker.limit() {
                let suppressed = all.iter().find(|(_, policy, _)| policy == x).expect("listed").0;
                prop_assert!(high.failing <= suppressed, "{:?} loses {} of {}", y, high.failing, suppressed);
                prop_assert!(high.failing <= *lost);
                prop_assert!(checker.bound(x, high.failing) <= low.cost);
            } else {
                prop_assert!(!low.admissible);
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, ..ProptestConfig::default() })]

    #[test]
    fn policy_checks_equal_definition(case in case()) {
        a_check_is_the_definition(&case)?;
    }

    #[test]
    fn every_strategy_equals_exhaustive_search(case in case()) {
        every_strategy_finds_the_optimum(&case)?;
    }

    #[test]
    fn policy_bounds_hold_for_all_pairs(case in case()) {
        every_bound_is_one(&case)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn rare_values_are_checked_as_suppressed(case in rare_case()) {
        a_check_is_the_definition(&case)?;
        every_strategy_finds_the_optimum(&case)?;
        every_bound_is_one(&case)?;
    }
}
