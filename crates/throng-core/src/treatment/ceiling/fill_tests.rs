use super::*;
use proptest::prelude::*;

fn fill_for_test(class_of: &[u32], shown: &[u32], asked: FillLimits) -> FilledClasses {
    let classes = class_of.iter().max().map_or(0, |&most| most as usize + 1);
    let drawing = CounterfeitDraw {
        identity: &|line| u128::from(class_of[line]) + 1,
        seed: &|identity, number| u128::from(mix(identity as u64 * 1000 + u64::from(number))) << 64,
        number_of_value: &|value| mix(u64::from(value) + 3),
        is_inexact: &|value| value == 9,
        coarser_classes: &|step| (step == 1).then(|| vec![0; class_of.len()]),
    };
    fill_classes(TrueLines { class_of, classes, shown }, asked, drawing)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]
    #[test]
    fn fill_completes_or_removes_every_small_class(
        lines in prop::collection::vec((0..8u32, prop::sample::select(vec![1, 2, 3, 9])), 1..40),
        least in 2..5u32,
        most in 0..12u64,
    ) {
        let (class_of, shown): (Vec<u32>, Vec<u32>) = lines.iter().copied().unzip();
        let size = |class: u32| class_of.iter().filter(|&&of| of == class).count() as u32;
        let present: std::collections::BTreeSet<u32> = class_of.iter().copied().collect();
        let need: u64 = present.iter().map(|&class| u64::from(least.saturating_sub(size(class)))).sum();
        let asked = FillLimits { min_lines: least, min_true_lines: 1, max_counterfeits: most };
        let filled = fill_for_test(&class_of, &shown, asked);
        prop_assert!(filled.counterfeits() <= most);
        prop_assert!(need > most || filled.removed.iter().all(|&class| size(class) < least));
        for &class in &present {
            let at = filled.class_numbers.iter().position(|&of| of == class);
            let lines = at.map_or(size(class), |at| filled.classes[at].line_count());
            prop_assert!(lines >= least || filled.removed.contains(&class));
            prop_assert!(!(at.is_some() && filled.removed.contains(&class)));
            if let Some(at) = at {
                prop_assert_eq!(filled.classes[at].line_count(), least, "its size says nothing");
                let class = &filled.classes[at];
                prop_assert!(!class.counterfeits.contains_key(&9) || class.true_counts.contains_key(&9));
            }
        }
        let genuine = filled.truth_probabilities();
        prop_assert!(genuine.values().all(|p| (0.0..1.0).contains(p)));
        prop_assert_eq!(genuine.is_empty(), filled.counterfeits() == 0);
    }
}

#[test]
fn class_without_partner_is_removed() {
    let asked = FillLimits { min_lines: 3, min_true_lines: 1, max_counterfeits: 10 };
    assert_eq!(fill_for_test(&[0, 0], &[1, 2], asked).removed, [0]);
    // A larger class cannot conceal: a reader knows that it has no counterfeits.
    assert_eq!(fill_for_test(&[0, 0, 1, 1, 1, 1], &[1, 2, 1, 1, 2, 2], asked).removed, [0]);
    let two = fill_for_test(&[0, 0, 1, 1, 1], &[1, 2, 1, 1, 1], asked);
    assert_eq!(
        (two.removed, two.groups.len(), two.classes[0].counterfeits.clone()),
        (vec![], 1, ValueCounts::from([(1, 1)]))
    );
    assert_eq!(two.class_numbers, [0, 1]);
    let dear = FillLimits { min_lines: 3, min_true_lines: 1, max_counterfeits: 2 };
    let some = fill_for_test(&[0, 1, 1, 2, 2, 2], &[1, 1, 1, 1, 1, 1], dear);
    assert_eq!((some.removed.clone(), some.counterfeits()), (vec![0], 1));
    let none = fill_for_test(&[], &[], asked);
    assert_eq!(none, FilledClasses::default());
}

fn seed(number: u32) -> u128 {
    u128::from(mix(u64::from(number) + 1)) << 64 | u128::from(mix(u64::from(number) + 77_777))
}

/// 20,000 draws: a share is off by more than 5 standard deviations once in more than 10⁶ keys.
#[test]
fn draw_frequencies_match_weights() {
    let weights = ValueCounts::from([(1, 1), (5, 2), (9, 7), (11, 0)]);
    let drawn = draw_values(20_000, &weights, &seed, &|value| mix(u64::from(value)));
    for (value, share) in [(1, 0.1), (5, 0.2), (9, 0.7)] {
        let off = f64::from(drawn[&value]) - 20_000.0 * share;
        assert!(off.abs() < 5.0 * (20_000.0 * share * (1.0 - share)).sqrt(), "{drawn:?}");
    }
    assert!(!drawn.contains_key(&11));
    assert!(draw_values(3, &ValueCounts::new(), &seed, &|_| 1).is_empty());
}

#[test]
fn small_weight_change_changes_few_draws() {
    let mark = |value: u32| mix(u64::from(value));
    let each = |weights: &ValueCounts| -> Vec<ValueCounts> {
        (0..1000).map(|n| draw_values(1, weights, &|_| seed(n), &mark)).collect()
    };
    let (before, after) = (each(&ValueCounts::from([(1, 50), (2, 50)])), each(&ValueCounts::from([(1, 51), (2, 50)])));
    assert!(before.iter().zip(&after).filter(|(a, b)| a != b).count() < 30);
}
