use super::super::grouping::total_lines;
use super::super::partition::degree;
use super::*;
use crate::domain::{Domain, HierarchyLevel};
use crate::lattice::policy_check::PolicyTerms;
use crate::lattice::table::LatticeTable;
use crate::privacy::ClassPrivacyModel;
use crate::quality::QualityMeasure;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// Domain of four values, two pairs and one root.
fn domain(name: &str) -> Domain {
    let level = |cell_of: &[u32], loss: &[f64]| HierarchyLevel { cell_of: cell_of.to_vec(), loss: loss.to_vec() };
    let third = 1.0 / 3.0;
    let levels =
        vec![level(&[0, 1, 2, 3], &[0.0; 4]), level(&[0, 0, 1, 1], &[third, third]), level(&[0, 0, 0, 0], &[1.0])];
    Domain::new(name, levels).unwrap()
}

fn mix(x: u64) -> u64 {
    (x ^ (x >> 29)).wrapping_mul(0xd6e8_feb8_6659_fd93).rotate_left(31)
}

fn identity(policy: &[u8], values: [u32; 2]) -> u128 {
    let cell = |level: u8, value: u32| match level {
        0 => value,
        1 => 10 + value / 2,
        _ => 20,
    };
    u128::from(mix(u64::from(cell(policy[0], values[0])) << 8 | u64::from(cell(policy[1], values[1]))))
}

fn search_exhaustively(records: &TableRecords, question: &CeilingQuery<'_>) -> Vec<CeilingCandidate> {
    let (work, table) = (CeilingSearch::new(question), question.checker.table());
    let n = records.len();
    let mut found = Vec::new();
    for policy in table.lattice().iter() {
        let values = |row: usize| [records.quasi[0][row], records.quasi[1][row]];
        let steep = (0..n).any(|row| {
            question.h.is_some_and(|h| degree(table.domains(), &policy, values(row).into_iter()) > h + 1e-9)
        });
        let mut classes: BTreeMap<u128, Vec<usize>> = BTreeMap::new();
        (0..n).for_each(|row| classes.entry(identity(&policy, values(row))).or_default().push(row));
        let people = question.fill_limits.min_true_lines as usize;
        let rows: Vec<u32> =
            (0..n as u32).filter(|&row| classes[&identity(&policy, values(row as usize))].len() >= people).collect();
        let leaving = work.group_lines(&policy, rows);
        let silent = policy.iter().all(|&level| level == 2);
        if steep || silent || leaving.rows.is_empty() {
            continue;
        }
        let shown: Vec<u32> = leaving.rows.iter().map(|&row| records.sensitive[0].0[row as usize]).collect();
        let filled = work.fill_lines(&policy, &leaving, &shown, &|_| false, &|v| (question.sensitive_number)(v));
        let genuine = |class: u32, value: u32| -> f64 {
            let group = filled.groups.iter().find(|group| group.iter().any(|&at| filled.class_numbers[at] == class));
            let Some(group) = group else { return 1.0 };
            let of = |pick: &dyn Fn(usize) -> u32| -> f64 { group.iter().map(|&at| f64::from(pick(at))).sum() };
            let invented = of(&|at| filled.classes[at].counterfeits.get(&value).copied().unwrap_or(0));
            let all = invented + of(&|at| filled.classes[at].true_counts.get(&value).copied().unwrap_or(0));
            1.0 - invented / all
        };
        let (mut marginal, mut left) = (0.0, 0);
        for ((&row, &class), &value) in leaving.rows.iter().zip(&leaving.class_of).zip(&shown) {
            if filled.removed.contains(&class) {
                continue;
            }
            left += 1;
            let p = genuine(class, value);
            for (a, &level) in policy.iter().enumerate() {
                let own = records.quasi[a][row as usize];
                let shares = |other: u32| match level {
                    0 => other == own,
                    1 => other / 2 == own / 2,
                    _ => true,
                };
                let covered = (0..4).filter(|&v| shares(v) && records.quasi[a].contains(&v)).count() as f64;
                marginal += (1.0 - p / covered).powi(2) + (covered - 1.0) * (p / covered).powi(2);
            }
            marginal += (1.0 - p).powi(2);
        }
        if n - left > question.checker.limit() as usize || left == 0 {
            continue;
        }
        let rce = ReconstructionError { marginal: marginal + 3.0 * (n - left) as f64, joint: 0.0 };
        let counterfeits = filled.classes.iter().map(|class| u64::from(total_lines(&class.counterfeits))).sum();
        found.push(CeilingCandidate { policy, rce, counterfeits, suppressed: (n - left) as u64 });
    }
    found.sort_by(|a, b| a.rce.marginal.total_cmp(&b.rce.marginal));
    found
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]
    #[test]
    fn ceiling_search_matches_exhaustive_search(
        rows in prop::collection::vec((0..4u32, 0..4u32, 0..3u32), 1..30),
        people in 1..3u32,
        more in 1..3u32,
        h in prop::option::of(0.0..1.0f64),
        limit in prop::sample::select(vec![0.0, 0.2]),
        most in 0..10u64,
    ) {
        let records = TableRecords {
            quasi: vec![rows.iter().map(|row| row.0).collect(), rows.iter().map(|row| row.1).collect()],
            sensitive: vec![(rows.iter().map(|row| row.2).collect(), 3)],
            ..TableRecords::default()
        };
        let table = LatticeTable::new(vec![domain("a"), domain("b")], &records).unwrap();
        let models = vec![ClassPrivacyModel::KAnonymity { k: u64::from(people) }];
        let checker = PolicyChecker::new(&table, &PolicyTerms { models, limit, measure: QualityMeasure::Loss }).unwrap();
        let question = CeilingQuery {
            checker: &checker,
            records: &records,
            h,
            fill_limits: FillLimits { min_lines: people + more, min_true_lines: people, max_counterfeits: most },
            identity: &|policy, row| identity(policy, [records.quasi[0][row as usize], records.quasi[1][row as usize]]),
            seed: &|identity, number| u128::from(mix(identity as u64 ^ mix(u64::from(number) + 9))) << 64,
            sensitive_number: &|value| mix(u64::from(value) + 1),
        };
        let found = search_under_ceiling(&question, SearchDeadline::without_deadline(), &|_| {}).unwrap();
        prop_assert!(found.complete);
        let twin = search_exhaustively(&records, &question);
        prop_assert_eq!(found.candidates.is_empty(), twin.is_empty(), "{:?}", twin.first());
        let Some((best, twin_best)) = found.candidates.first().zip(twin.first()) else { return Ok(()) };
        prop_assert!((best.rce.marginal - twin_best.rce.marginal).abs() < 1e-6, "{best:?} {twin_best:?}");
        let same = twin.iter().find(|other| other.policy == best.policy).unwrap();
        prop_assert_eq!((best.counterfeits, best.suppressed), (same.counterfeits, same.suppressed));
        prop_assert!(found.candidates.windows(2).all(|pair| pair[0].rce.marginal <= pair[1].rce.marginal));
    }
}

#[test]
fn position_matches_lattice_order() {
    let lattice = Lattice::new(vec![2, 0, 3]);
    assert!((0..).zip(lattice.iter()).all(|(at, policy)| policy_at_position(&lattice, at) == policy));
}
