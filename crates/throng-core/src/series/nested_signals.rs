//! Signals that are multiples of each other except for few subjects (docs/internals/methods.md §13).

use super::statistics::is_largest_dominant;

/// Relative tolerance of equal ratios.
const RATIO_TOLERANCE: f64 = 1e-9;
/// Relative tolerance of zero rests.
const REST_TOLERANCE: f64 = 1e-6;

/// Returns true if most members have the same ratio and the others are below `crowd` or dominated.
pub(super) fn reveals_small_rest(one: &[f64], other: &[f64], crowd: usize, colluders: usize) -> bool {
    if !may_share_ratio(one, other) {
        return false;
    }
    let pairs = || one.iter().zip(other).filter(|(a, b)| **a != 0.0 || **b != 0.0);
    let mut ratios: Vec<f64> = pairs().map(|(a, b)| a / b).filter(|ratio| ratio.is_finite() && *ratio != 0.0).collect();
    ratios.sort_by(f64::total_cmp);
    let Some(ratio) = most_frequent_ratio(&ratios) else { return false };
    let rest = |(a, b): (&f64, &f64)| {
        let rest = (a - ratio * b).abs();
        if rest <= REST_TOLERANCE * a.abs().max((ratio * b).abs()) { 0.0 } else { rest }
    };
    let rests: Vec<f64> = one.iter().zip(other).map(rest).collect();
    let different = rests.iter().filter(|rest| **rest > 0.0).count();
    different > 0
        && 2 * different < rests.len()
        && (different < crowd || is_largest_dominant(rests.into_iter(), colluders))
}

/// Pre-check, necessary for a majority ratio: equal neighbours or two zeros.
fn may_share_ratio(one: &[f64], other: &[f64]) -> bool {
    let n = one.len();
    (0..n).any(|at| {
        let next = (at + 1) % n;
        let (left, right) = (one[at] * other[next], one[next] * other[at]);
        (left - right).abs() <= 2.0 * RATIO_TOLERANCE * left.abs().max(right.abs())
    })
}

/// Ratio of at least two members; the lowest in a tie.
fn most_frequent_ratio(sorted: &[f64]) -> Option<f64> {
    let (mut best, mut from) = ((1, None), 0);
    for (at, ratio) in sorted.iter().enumerate() {
        if (ratio - sorted[from]).abs() > RATIO_TOLERANCE * ratio.abs() {
            from = at;
        }
        if at + 1 - from > best.0 {
            best = (at + 1 - from, Some(sorted[from]));
        }
    }
    best.1
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const STEPS: [f64; 15] = [
        8_000.0, 9_100.0, 7_250.5, 4_000.0, 12_000.0, 3_300.0, 8_800.0, 9_900.0, 10_100.0, 7_777.0, 6_400.0, 5_050.0,
        8_123.0, 9_321.0, 11_000.0,
    ];

    fn with_part(part: impl Fn(usize) -> f64) -> Vec<f64> {
        STEPS.iter().enumerate().map(|(at, steps)| 0.75 * steps + part(at)).collect()
    }

    #[test]
    fn rest_of_few_subjects_is_detected_in_any_unit() {
        let nested = |part: &dyn Fn(usize) -> f64| {
            let other = with_part(part);
            assert_eq!(reveals_small_rest(&STEPS, &other, 5, 0), reveals_small_rest(&other, &STEPS, 5, 0));
            reveals_small_rest(&STEPS, &other, 5, 0)
        };
        assert!(nested(&|at| if at == 7 { 2_900.0 } else { 0.0 }));
        assert!(nested(&|at| if at < 4 { 500.0 + at as f64 } else { 0.0 }), "four people");
        assert!(!nested(&|at| if at < 5 { 500.0 + at as f64 } else { 0.0 }), "a crowd");
        assert!(
            nested(&|at| if at == 0 {
                9_000.0
            } else if at < 6 {
                5.0
            } else {
                0.0
            }),
            "one dominates a crowd"
        );
        assert!(!nested(&|_| 0.0), "nothing but a unit");
        assert!(!nested(&|at| (at * 37 % 11) as f64 * 100.0 + 50.0), "signals of their own");
    }

    #[test]
    fn zeros_have_no_ratio() {
        let mut one = [0.0; 15];
        let mut other = [0.0; 15];
        for at in 0..6 {
            (one[at], other[at]) = (STEPS[at], 0.5 * STEPS[at]);
        }
        assert!(!reveals_small_rest(&one, &other, 5, 0));
        other[3] += 700.0;
        assert!(reveals_small_rest(&one, &other, 5, 0));
        assert!(!reveals_small_rest(&one, &[0.0; 15], 5, 0) && !reveals_small_rest(&[0.0; 15], &[0.0; 15], 5, 0));
    }

    proptest! {
        /// Compares with the ratios of all members.
        #[test]
        fn nested_signals_match_exhaustive_search(
            one in proptest::collection::vec(0_u8..6, 5..12), part in proptest::collection::vec(0_u8..40, 12), factor in 1_u8..4,
        ) {
            let one: Vec<f64> = one.into_iter().map(f64::from).collect();
            let part = part.into_iter().map(|part| f64::from(part.saturating_sub(34)));
            let other: Vec<f64> = one.iter().zip(part).map(|(a, part)| a * f64::from(factor) + part).collect();
            let ratios: Vec<f64> = one.iter().zip(&other).map(|(a, b)| a / b).filter(|r| r.is_finite() && *r != 0.0).collect();
            let count = |ratio: f64| ratios.iter().filter(|other| **other == ratio).count();
            let most = ratios.iter().map(|ratio| count(*ratio)).max().unwrap_or(0);
            let lowest = ratios.iter().copied().filter(|ratio| count(*ratio) == most).fold(f64::INFINITY, f64::min);
            let expected = most > 1 && {
                let rests: Vec<f64> = one.iter().zip(&other).map(|(a, b)| (a - lowest * b).abs()).map(|r| if r < 1e-9 { 0.0 } else { r }).collect();
                let different = rests.iter().filter(|rest| **rest > 0.0).count();
                different > 0 && 2 * different < rests.len() && (different < 3 || is_largest_dominant(rests.into_iter(), 0))
            };
            prop_assert_eq!(reveals_small_rest(&one, &other, 3, 0), expected);
        }
    }
}
