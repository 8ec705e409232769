//! Statistics of a contributor set (docs/internals/methods.md §13).

/// Smallest sum of values after the second, relative to the largest (p % rule).
const DOMINANCE_P: f64 = 0.1;
/// Smaller deviations, relative to the largest value, are floating-point error.
const MIN_RELATIVE_DEVIATION: f64 = 1e-12;
/// Largest share of one value.
const MAX_SHARE: f64 = 0.5;

/// Location and spread, rounded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeanStatistic {
    /// Mean.
    pub mean: f64,
    /// Standard deviation (n − 1).
    pub sd: f64,
    /// Quartiles; none below two crowds.
    pub quartiles: Option<[f64; 3]>,
}

impl MeanStatistic {
    /// Rounding step of mean and quartiles.
    #[must_use]
    pub fn rounding_step(&self, n: u64) -> f64 {
        rounding_step(self.sd, usize::try_from(n).unwrap_or(usize::MAX)).unwrap_or(0.0)
    }
}

/// Mean; 0 without values.
#[must_use]
pub fn mean(values: &[f64]) -> f64 {
    if values.is_empty() { 0.0 } else { values.iter().sum::<f64>() / values.len() as f64 }
}

/// Standard deviation (n − 1); 0 below two values.
#[must_use]
pub fn standard_deviation(values: &[f64]) -> f64 {
    if values.len() < 2 {
        return 0.0;
    }
    let center = mean(values);
    let squares: f64 = values.iter().map(|value| (value - center).powi(2)).sum();
    (squares / (values.len() - 1) as f64).sqrt()
}

/// Quartiles as means of the `crowd` nearest order statistics and ties. One alone would be a member's value.
///
/// # Panics
/// Without values.
#[must_use]
pub fn quartiles(values: &[f64], crowd: usize) -> [f64; 3] {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    [1, 2, 3].map(|quarters| {
        let distance = |at: usize| (4 * at).abs_diff(quarters * (sorted.len() - 1));
        let mut distances: Vec<usize> = (0..sorted.len()).map(distance).collect();
        let (_, &mut reach, _) = distances.select_nth_unstable(crowd.clamp(1, sorted.len()) - 1);
        let near = || sorted.iter().enumerate().filter(|(at, _)| distance(*at) <= reach);
        near().map(|(_, value)| value).sum::<f64>() / near().count() as f64
    })
}

/// Checks if few members dominate a sum.
///
/// Sizes are distances from both range ends (from 0 without a range) and from the median. The largest dominates above
/// half of the total, or if the sizes after the next max(1, `colluders`) sum to less than p % of it (Hundepool 2012,
/// section 4.2).
#[must_use]
pub fn is_dominated(values: &[f64], (low, high): (f64, f64), colluders: usize) -> bool {
    let ends = if low.is_finite() && high.is_finite() { [low, high] } else { [0.0; 2] };
    let points = ends.into_iter().chain([median(values.to_vec())]);
    points.into_iter().any(|point| is_largest_dominant(values.iter().map(|value| (value - point).abs()), colluders))
}

/// Applies the dominance rules to sizes ≥ 0.
#[must_use]
pub fn is_largest_dominant(sizes: impl Iterator<Item = f64>, colluders: usize) -> bool {
    let mut sizes: Vec<f64> = sizes.collect();
    sizes.sort_by(|a, b| b.total_cmp(a));
    let Some((largest, others)) = sizes.split_first() else { return true };
    let rest: f64 = others.iter().skip(colluders.max(1)).sum();
    let total: f64 = sizes.iter().sum();
    rest < DOMINANCE_P * largest || *largest > MAX_SHARE * total
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let half = values.len() / 2;
    match values.len() {
        0 => 0.0,
        even if even % 2 == 0 => f64::midpoint(values[half - 1], values[half]),
        _ => values[half],
    }
}

/// Checks equality up to floating-point error.
#[must_use]
pub fn are_equal(values: &[f64], deviation: f64) -> bool {
    let largest = values.iter().fold(0.0, |largest: f64, value| largest.max(value.abs()));
    deviation <= MIN_RELATIVE_DEVIATION * largest
}

/// Largest round step up to half of a standard error; none for deviation 0.
#[must_use]
pub fn rounding_step(standard_deviation: f64, n: usize) -> Option<f64> {
    largest_round_step(standard_deviation / (2.0 * (n as f64).sqrt()))
}

/// Rounded statistic; none for deviation 0.
///
/// Steps of mean and quartiles follow from the rounded deviation, so they reveal nothing more.
#[must_use]
pub fn rounded_statistic(mean: f64, deviation: f64, quartiles: Option<[f64; 3]>, n: usize) -> Option<MeanStatistic> {
    let sd = round_to_step(deviation, rounding_step(deviation, n)?);
    let step = rounding_step(sd, n)?;
    let quartiles = quartiles.map(|quartiles| quartiles.map(|quartile| round_to_step(quartile, step)));
    Some(MeanStatistic { mean: round_to_step(mean, step), sd, quartiles })
}

/// Largest of 1, 2 and 5 · 10ⁱ up to `target`; none unless `target` > 0.
#[must_use]
pub fn largest_round_step(target: f64) -> Option<f64> {
    if !target.is_finite() || target <= 0.0 {
        return None;
    }
    let exponent = target.log10().floor() as i32;
    let power = |exponent: i32| if exponent < 0 { 1.0 / 10f64.powi(-exponent) } else { 10f64.powi(exponent) };
    let candidates = [5.0 * power(exponent - 1), power(exponent), 2.0 * power(exponent), 5.0 * power(exponent)];
    candidates.into_iter().rev().find(|step| *step <= target * (1.0 + 1e-12))
}

/// Integers up to this, times five, are exact.
const MAX_EXACT_INTEGER: f64 = 1e15;

/// Nearest multiple of a step of 1, 2 or 5 · 10ⁱ.
#[must_use]
pub fn round_to_step(value: f64, step: f64) -> f64 {
    let multiple = (value / step).round();
    if multiple == 0.0 || multiple.abs() > MAX_EXACT_INTEGER {
        return if multiple == 0.0 { 0.0 } else { multiple * step };
    }
    // Decimal arithmetic adds no digits beyond the step.
    let exponent = step.log10().floor() as i32;
    let whole = multiple * (step / 10f64.powi(exponent)).round();
    match exponent {
        // Exact integers and powers: the result is the nearest double.
        0..=22 => whole * 10f64.powi(exponent),
        -22..0 => whole / 10f64.powi(-exponent),
        _ => format!("{whole}e{exponent}").parse().unwrap_or(multiple * step),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn rounded_values_have_no_more_digits_than_their_step(value in -1e4_f64..1e4, exponent in -120_i32..150, digit in 0_usize..3) {
            let step = format!("{}e{exponent}", [1, 2, 5][digit]).parse::<f64>().expect("a number");
            let rounded = round_to_step(value * step, step);
            let spelled = serde_json::to_string(&rounded).expect("a number");
            prop_assert_eq!(serde_json::from_str::<f64>(&spelled).expect("a number").to_bits(), rounded.to_bits());
            let digits = spelled.split('e').next().unwrap_or_default().trim_start_matches(['-', '0', '.']);
            prop_assert!(digits.trim_end_matches(['0', '.']).len() <= 7, "{}", spelled);
            prop_assert!((rounded - value * step).abs() <= 0.500_001 * step);
        }
    }

    #[test]
    fn statistics_of_small_set_match_known_values() {
        let values = [4.0, 1.0, 3.0, 2.0];
        assert_eq!(mean(&values), 2.5);
        assert!((standard_deviation(&values) - 1.290_994_448_7).abs() < 1e-9);
        assert_eq!((quartiles(&values, 1), quartiles(&values, 2)), ([2.0, 2.5, 3.0], [1.5, 2.5, 3.5]));
        assert_eq!((mean(&[]), standard_deviation(&[7.0])), (0.0, 0.0));
    }

    const WIDE: (f64, f64) = (0.0, 1_000.0);

    #[test]
    fn dominance_of_one_or_two_values_is_detected() {
        let is_dominated = |values: &[f64], colluders| is_dominated(values, WIDE, colluders);
        assert!(is_dominated(&[100.0, 50.0, 4.0, 4.0, 1.0], 0), "the rest is 9 % of the largest");
        assert!(is_dominated(&[100.0, 40.0, 30.0, 10.0, 10.0], 1), "one has more than half");
        assert!(!is_dominated(&[100.0, 60.0, 40.0, 20.0, 10.0], 0));
        assert!(is_dominated(&[60.0, 50.0, 50.0, 4.0, 1.0], 2), "two who pool their values bound the third");
        assert!(!is_dominated(&[60.0, 50.0, 50.0, 4.0, 1.0], 1));
        assert!(is_dominated(&[1.0, 1.0], 0), "two people cannot hide each other");
    }

    #[test]
    fn distant_member_dominates_at_every_offset() {
        let values = [1_000.0, 1_001.0, 999.0, 1_000.5, 999.5, 1_100.0];
        assert!(is_dominated(&values, (0.0, 2_000.0), 0) && is_dominated(&values, UNBOUNDED, 0));
        assert!(!is_dominated(&values[..5], (0.0, 2_000.0), 0) && !is_dominated(&values[..5], UNBOUNDED, 0));
        // The only 0 is as exposed as the only 1.
        let mut answers = vec![0.0; 14];
        answers.push(1.0);
        let opposite: Vec<f64> = answers.iter().map(|answer| 1.0 - answer).collect();
        assert!(is_dominated(&answers, (0.0, 1.0), 0) && is_dominated(&opposite, (0.0, 1.0), 0));
    }

    #[test]
    fn dominance_of_negative_values_uses_distance_from_range() {
        let celsius = [-19.0, -18.0, -17.5, -17.0, 30.0];
        assert!(is_dominated(&celsius, (-20.0, 50.0), 0));
        assert!(!is_dominated(&[-60.0, -61.0, -62.0, -63.0, -64.0], UNBOUNDED, 1));
    }

    const UNBOUNDED: (f64, f64) = (f64::NEG_INFINITY, f64::INFINITY);

    #[test]
    fn rounding_steps_are_round_and_at_most_half_a_standard_error() {
        assert_eq!(rounding_step(6.5, 10), Some(1.0));
        assert_eq!(rounding_step(1.0, 100), Some(0.05));
        assert_eq!(rounding_step(4000.0, 10), Some(500.0));
        assert_eq!(rounding_step(0.0, 10), None);
        assert_eq!(rounding_step(f64::NAN, 10), None);
        assert_eq!(
            (round_to_step(0.123_4, 0.05), round_to_step(-0.01, 0.05), round_to_step(1_234.0, 500.0)),
            (0.1, 0.0, 1_000.0)
        );
    }

    #[test]
    fn rounding_steps_follow_the_deviation_of_each_row() {
        let quiet = rounded_statistic(4.321, 2.345, None, 16).expect("a deviation");
        let loud = rounded_statistic(4_321.0, 2_345.0, Some([2_222.0, 4_444.0, 6_666.0]), 16).expect("a deviation");
        assert_eq!((quiet.mean, quiet.sd), (4.4, 2.4));
        assert_eq!((loud.mean, loud.sd, loud.quartiles), (4_400.0, 2_400.0, Some([2_200.0, 4_400.0, 6_600.0])));
        assert_eq!(rounded_statistic(1.0, 0.0, None, 16), None);
    }

    #[test]
    fn equal_values_are_detected_despite_floating_point_error() {
        let values = [70.1, 70.1 + 1e-13, 70.1];
        assert!(are_equal(&values, standard_deviation(&values)) && are_equal(&[0.0; 3], 0.0));
        let values = [70.1, 70.1 + 1e-6, 70.1];
        assert!(!are_equal(&values, standard_deviation(&values)));
    }

    proptest! {
        #[test]
        fn dominance_does_not_depend_on_unit(
            halves in prop::collection::vec(0_i32..80, 2..16), shift in -4_096_i32..4_096, exponent in -3_i32..4, sign in 0..2,
            colluders in 0_usize..3,
        ) {
            // Halves, shifts and powers of two are exact.
            let unit = |x: f64| (x + f64::from(shift)) * 2f64.powi(exponent) * if sign == 0 { 1.0 } else { -1.0 };
            let values: Vec<f64> = halves.iter().map(|half| f64::from(*half) / 2.0).collect();
            let changed: Vec<f64> = values.iter().map(|value| unit(*value)).collect();
            let (one, other) = (unit(0.0), unit(40.0));
            prop_assert_eq!(
                is_dominated(&values, (0.0, 40.0), colluders),
                is_dominated(&changed, (one.min(other), one.max(other)), colluders)
            );
        }

        #[test]
        fn rounding_step_is_between_a_fifth_and_a_half_of_the_error(sd in 1e-9_f64..1e9, n in 2_usize..1_000_000) {
            let step = rounding_step(sd, n).expect("a positive deviation");
            let error = sd / (n as f64).sqrt();
            prop_assert!(step <= error / 2.0 * (1.0 + 1e-9) && step >= error / 5.0 * (1.0 - 1e-9));
        }

        #[test]
        fn rounding_changes_values_by_at_most_half_a_step(value in -1e6_f64..1e6, exponent in -6_i32..4, digit in 0_usize..3) {
            let step = [1.0, 2.0, 5.0][digit] * 10f64.powi(exponent);
            prop_assert!((round_to_step(value, step) - value).abs() <= step / 2.0 * (1.0 + 1e-6));
        }
    }
}
