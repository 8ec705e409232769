use super::*;
use proptest::prelude::*;

fn class(identity: u128, shown: &[u32], counterfeits: &[u32]) -> CatalogClass {
    let count = |values: &[u32]| {
        let mut counts = ValueCounts::new();
        values.iter().for_each(|&value| *counts.entry(value).or_default() += 1);
        counts
    };
    CatalogClass { identity, true_counts: count(shown), counterfeits: count(counterfeits) }
}

/// \[HCE] Lemma 1, literally.
fn satisfies_lemma_1(classes: &[CatalogClass], group: &[usize]) -> bool {
    group.iter().all(|&at| {
        classes[at].counterfeits.iter().all(|(value, &count)| {
            let others = group.iter().filter(|&&other| other != at);
            others.map(|&other| classes[other].true_counts.get(value).copied().unwrap_or(0)).sum::<u32>() >= count
        })
    })
}

fn could_be_true(classes: &[CatalogClass], group: &[usize], at: usize, most: u32) -> bool {
    fn place(left: &[u32], shown: &mut [ValueCounts], room: &mut [u32]) -> bool {
        let Some((value, rest)) = left.split_first() else { return true };
        for other in 0..shown.len() {
            let has = shown[other].get(value).copied().unwrap_or(0);
            if has > 0 && room[other] > 0 {
                shown[other].insert(*value, has - 1);
                room[other] -= 1;
                if place(rest, shown, room) {
                    return true;
                }
                shown[other].insert(*value, has);
                room[other] += 1;
            }
        }
        false
    }
    let left: Vec<u32> =
        classes[at].counterfeits.iter().flat_map(|(&v, &count)| std::iter::repeat_n(v, count as usize)).collect();
    let others: Vec<&CatalogClass> = group.iter().filter(|&&other| other != at).map(|&other| &classes[other]).collect();
    let mut shown: Vec<ValueCounts> = others.iter().map(|class| class.true_counts.clone()).collect();
    let mut room: Vec<u32> = others.iter().map(|class| most - total_lines(&class.counterfeits)).collect();
    place(&left, &mut shown, &mut room)
}

/// \[HCE] Table 5 and 8: class 1 has three records and a counterfeit with diabetes, class 2 one of four with diabetes.
#[test]
fn paper_example_forms_one_group_of_two() {
    const DIABETES: u32 = 7;
    let classes = [class(1, &[1, 2, 3], &[DIABETES]), class(2, &[DIABETES, 4, 5, 6], &[])];
    assert_eq!(group_classes(&classes, 3), ClassGrouping { groups: vec![vec![0, 1]], unconcealed_classes: vec![] });
    // Table 7: alone, its counterfeit could be removed.
    assert_eq!(group_classes(&classes[..1], 3).unconcealed_classes, [0]);
}

#[test]
fn class_at_counterfeit_limit_conceals_none() {
    let classes = [class(1, &[1, 2], &[5]), class(2, &[5, 5], &[6]), class(3, &[5, 6, 6], &[])];
    // The second class already has the maximum; the third can have a counterfeit.
    assert_eq!(group_classes(&classes, 1).groups, [[0, 1, 2]]);
    assert_eq!(
        group_classes(&classes[..2], 1).unconcealed_classes.len(),
        2,
        "2 shows 5 and may not be its place; nobody shows 6"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]
    #[test]
    fn grouping_is_safe_and_covers_every_counterfeit(
        true_lines in prop::collection::vec(prop::collection::vec(0..5u32, 1..=4), 1..8),
        drawn in prop::collection::vec(0..5u32, 32),
        swap in any::<u64>(),
    ) {
        let (lines, most) = (4, 3);
        let mut drawn = drawn.into_iter().cycle();
        let classes: Vec<CatalogClass> = true_lines.iter().enumerate().map(|(at, shown)| {
            let invented: Vec<u32> = drawn.by_ref().take(lines - shown.len()).collect();
            class(u128::from(swap.rotate_left(at as u32 * 7)) << 8 | at as u128, shown, &invented)
        }).collect();
        let grouped = group_classes(&classes, most);
        let mut seen = vec![0; classes.len()];
        for group in &grouped.groups {
            group.iter().for_each(|&at| seen[at] += 1);
            if grouped.unconcealed_classes.is_empty() {
                prop_assert!(satisfies_lemma_1(&classes, group), "{classes:?} {group:?}");
                prop_assert!(group.iter().all(|&at| could_be_true(&classes, group, at, most)));
            }
            prop_assert!(group.iter().any(|&at| !classes[at].counterfeits.is_empty()));
        }
        prop_assert!(seen.iter().all(|&times| times <= 1));
        let inserted = (0..classes.len()).filter(|&at| !classes[at].counterfeits.is_empty());
        prop_assert!(inserted.clone().all(|at| seen[at] == 1 || grouped.unconcealed_classes.contains(&at)));
        // If all classes together cannot conceal a class, no grouping can.
        let all: Vec<usize> = (0..classes.len()).collect();
        for at in inserted {
            if !could_be_true(&classes, &all, at, most) {
                prop_assert!(grouped.unconcealed_classes.contains(&at), "{classes:?}");
            }
        }
        let mut turned: Vec<CatalogClass> = classes.clone();
        turned.reverse();
        let again = group_classes(&turned, most);
        let named = |groups: &[Vec<usize>], of: &[CatalogClass]| -> BTreeSet<BTreeSet<u128>> {
            groups.iter().map(|group| group.iter().map(|&at| of[at].identity).collect()).collect()
        };
        if grouped.unconcealed_classes.is_empty() && again.unconcealed_classes.is_empty() {
            prop_assert_eq!(named(&grouped.groups, &classes), named(&again.groups, &turned));
        }
    }
}
