//! Statistics of the values of one contributor set (docs/methods.md §13).

/// Share of the largest value that the others but the second must reach together (the p % rule).
const DOMINANCE_P: f64 = 0.1;
/// Largest share of one value in the sum.
const MAX_SHARE: f64 = 0.5;

/// Mean; 0 of no values.
#[must_use]
pub fn mean(values: &[f64]) -> f64 {
    if values.is_empty() { 0.0 } else { values.iter().sum::<f64>() / values.len() as f64 }
}

/// Standard deviation with n − 1 in the denominator; 0 of fewer than two values.
#[must_use]
pub fn standard_deviation(values: &[f64]) -> f64 {
    if values.len() < 2 {
        return 0.0;
    }
    let center = mean(values);
    let squares: f64 = values.iter().map(|value| (value - center).powi(2)).sum();
    (squares / (values.len() - 1) as f64).sqrt()
}

/// Quartiles by linear interpolation between order statistics (type 7 of Hyndman and Fan 1996).
///
/// # Panics
/// When there are no values.
#[must_use]
pub fn quartiles(values: &[f64]) -> [f64; 3] {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    [0.25, 0.5, 0.75].map(|share| {
        let position = share * (sorted.len() - 1) as f64;
        let below = position.floor() as usize;
        let above = (below + 1).min(sorted.len() - 1);
        sorted[below] + (position - below as f64) * (sorted[above] - sorted[below])
    })
}

/// Whether one or two members dominate the sum of absolute values: the rest without the two largest is below p % of the largest, or
/// the largest is more than half (Hundepool 2012, section 4.2).
#[must_use]
pub fn is_dominated(values: &[f64]) -> bool {
    let mut sizes: Vec<f64> = values.iter().map(|value| value.abs()).collect();
    sizes.sort_by(|a, b| b.total_cmp(a));
    let [largest, _, rest @ ..] = sizes.as_slice() else { return true };
    let total: f64 = sizes.iter().sum();
    rest.iter().sum::<f64>() < DOMINANCE_P * largest || *largest > MAX_SHARE * total
}

/// The largest of 1, 2 and 5 times a power of ten that is at most half of the standard error of a mean of `n` values; none where all
/// values are equal.
#[must_use]
pub fn rounding_step(standard_deviation: f64, n: usize) -> Option<f64> {
    let target = standard_deviation / (2.0 * (n as f64).sqrt());
    if !target.is_finite() || target <= 0.0 {
        return None;
    }
    let exponent = target.log10().floor() as i32;
    let power = |exponent: i32| if exponent < 0 { 1.0 / 10f64.powi(-exponent) } else { 10f64.powi(exponent) };
    let candidates = [5.0 * power(exponent - 1), power(exponent), 2.0 * power(exponent), 5.0 * power(exponent)];
    candidates.into_iter().rev().find(|step| *step <= target * (1.0 + 1e-12))
}

/// The nearest multiple of `step`.
#[must_use]
pub fn rounded(value: f64, step: f64) -> f64 {
    let multiple = (value / step).round();
    // Steps below 1 are 1, 2 or 5 over a power of ten: dividing by a whole number gives the shortest decimal.
    let result = if step < 1.0 {
        let inverse = (1.0 / step).round();
        if (inverse * step - 1.0).abs() < 1e-9 { multiple / inverse } else { multiple * step }
    } else {
        multiple * step
    };
    if result == 0.0 { 0.0 } else { result }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn statistics_of_a_small_set() {
        let values = [4.0, 1.0, 3.0, 2.0];
        assert_eq!(mean(&values), 2.5);
        assert!((standard_deviation(&values) - 1.290_994_448_7).abs() < 1e-9);
        assert_eq!(quartiles(&values), [1.75, 2.5, 3.25]);
        assert_eq!((mean(&[]), standard_deviation(&[7.0])), (0.0, 0.0));
    }

    #[test]
    fn dominated_sums_are_recognised() {
        assert!(is_dominated(&[100.0, 50.0, 4.0, 4.0, 1.0]), "the rest is 9 % of the largest");
        assert!(is_dominated(&[100.0, 40.0, 30.0, 10.0, 10.0]), "one has more than half");
        assert!(!is_dominated(&[100.0, 50.0, 40.0, 30.0, 10.0]));
        assert!(!is_dominated(&[-60.0, -61.0, -62.0, -63.0, -64.0]));
        assert!(is_dominated(&[1.0, 1.0]), "two people cannot hide each other");
    }

    #[test]
    fn steps_are_round_and_at_most_half_a_standard_error() {
        assert_eq!(rounding_step(6.5, 10), Some(1.0));
        assert_eq!(rounding_step(1.0, 100), Some(0.05));
        assert_eq!(rounding_step(4000.0, 10), Some(500.0));
        assert_eq!(rounding_step(0.0, 10), None);
        assert_eq!(rounding_step(f64::NAN, 10), None);
        assert_eq!((rounded(0.123_4, 0.05), rounded(-0.01, 0.05), rounded(1_234.0, 500.0)), (0.1, 0.0, 1_000.0));
    }

    proptest! {
        #[test]
        fn a_step_is_between_a_fifth_and_a_half_of_the_error(sd in 1e-9_f64..1e9, n in 2_usize..1_000_000) {
            let step = rounding_step(sd, n).expect("a positive deviation");
            let error = sd / (n as f64).sqrt();
            prop_assert!(step <= error / 2.0 * (1.0 + 1e-9) && step >= error / 5.0 * (1.0 - 1e-9));
        }

        #[test]
        fn rounding_moves_by_half_a_step(value in -1e6_f64..1e6, exponent in -6_i32..4, digit in 0_usize..3) {
            let step = [1.0, 2.0, 5.0][digit] * 10f64.powi(exponent);
            prop_assert!((rounded(value, step) - value).abs() <= step / 2.0 * (1.0 + 1e-6));
        }
    }
}
