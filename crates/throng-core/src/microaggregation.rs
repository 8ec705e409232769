//! Micro-aggregation: all members of a class show the same aggregate of their numbers \[DOM].
//!
//! The policy forms the classes first. The output is not truthful: possibly no member has the shown number. An
//! attacker that knows all members but one can compute the last number from the sum, up to the rounding. An outlier
//! moves the mean to a guessable value. Numbers are whole steps of the attribute's rounding, so every aggregate is a
//! possible value and sums are exact.

use crate::values::schema::{AttributeType, Rounding, ValueTyping};

/// Numbers that an attribute can have: multiples of `step`·10⁻ᵈ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NumericResolution {
    decimals: u32,
    step: i128,
}

impl NumericResolution {
    /// Returns the resolution of integers and of floats that are rounded to a step; `None` for other types.
    pub fn of(typing: &ValueTyping) -> Option<Self> {
        match (typing.kind, typing.rounding) {
            (AttributeType::Integer, Rounding::None) => Some(Self { decimals: 0, step: 1 }),
            (AttributeType::Integer | AttributeType::Float, Rounding::Step { ticks, decimals }) => {
                Some(Self { decimals, step: i128::from(ticks) })
            }
            _ => None,
        }
    }

    /// Returns a number in steps; `None` if it is not a multiple of the step or exceeds 64 bits.
    pub fn steps(self, canonical: &str) -> Option<i64> {
        let ticks = crate::values::decimal::exact(canonical, self.decimals)?;
        if ticks % self.step != 0 { None } else { i64::try_from(ticks / self.step).ok() }
    }

    /// Returns the canonical number of `steps` steps.
    pub fn number(self, steps: i64) -> String {
        let mut text = String::new();
        crate::values::decimal::push_ticks(&mut text, i128::from(steps) * self.step, self.decimals);
        text
    }
}

/// Returns the mean, rounded to the nearest step, ties away from zero; `None` for an empty slice.
pub fn rounded_mean(steps: &[i64]) -> Option<i64> {
    if steps.is_empty() {
        return None;
    }
    let n = steps.len() as i128;
    let sum: i128 = steps.iter().map(|&x| i128::from(x)).sum();
    let size = (2 * sum.abs() + n) / (2 * n);
    i64::try_from(if sum < 0 { -size } else { size }).ok()
}

/// Distortion of the numbers of one attribute by micro-aggregation, in steps.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Distortion {
    count: f64,
    mean: f64,
    /// Σ (x − mean of all)².
    total: f64,
    /// Σ (x − shown number)².
    lost: f64,
}

impl Distortion {
    /// Adds a number and the number that its record shows.
    pub fn add(&mut self, number: i64, shown: i64) {
        let x = number as f64;
        self.count += 1.0;
        let before = x - self.mean;
        self.mean += before / self.count;
        self.total += before * (x - self.mean);
        self.lost += (x - shown as f64).powi(2);
    }

    /// Returns the lost share of the variance, SSE / SST: in [0, 1] for means before rounding, 0 if all numbers are
    /// equal.
    pub fn lost_variance_share(&self) -> f64 {
        if self.total > 0.0 { self.lost / self.total } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::schema::MissingSpellings;
    use proptest::prelude::*;

    fn typing(kind: AttributeType, rounding: Rounding) -> ValueTyping {
        let missing = MissingSpellings::new(None, true);
        let (spelling, dates) = Default::default();
        ValueTyping {
            attribute: "a".into(),
            kind,
            rounding,
            missing,
            spelling,
            dates,
            conversion: None,
            decimal_comma: false,
            zone: None,
        }
    }

    #[test]
    fn resolution_converts_numbers_to_steps_and_back() {
        let tenths = NumericResolution::of(&typing(AttributeType::Float, Rounding::Step { ticks: 5, decimals: 1 }))
            .expect("a step");
        assert_eq!((tenths.steps("-1.5"), tenths.number(-3)), (Some(-3), "-1.5".to_owned()));
        assert_eq!((tenths.steps("1.7"), tenths.steps("1.55"), tenths.steps("null")), (None, None, None));
        let whole = NumericResolution::of(&typing(AttributeType::Integer, Rounding::None)).expect("a step");
        assert_eq!((whole.steps("72"), whole.number(72), whole.steps("1e30")), (Some(72), "72".to_owned(), None));
        for other in [
            typing(AttributeType::Float, Rounding::None),
            typing(AttributeType::Float, Rounding::Digits(2)),
            typing(AttributeType::Integer, Rounding::Digits(2)),
            typing(AttributeType::String, Rounding::None),
        ] {
            assert_eq!(NumericResolution::of(&other), None);
        }
    }

    #[test]
    fn mean_rounds_ties_away_from_zero_without_overflow() {
        assert_eq!(rounded_mean(&[1, 2]), Some(2));
        assert_eq!(rounded_mean(&[-1, -2]), Some(-2));
        assert_eq!(rounded_mean(&[i64::MAX; 9]), Some(i64::MAX));
        assert_eq!(rounded_mean(&[i64::MIN; 9]), Some(i64::MIN));
        assert_eq!(rounded_mean(&[]), None);
    }

    proptest! {
        #[test]
        fn mean_and_distortion_match_their_definitions(steps in prop::collection::vec(-1000i64..1000, 1..20)) {
            let n = steps.len() as f64;
            let mean = rounded_mean(&steps).expect("numbers") as f64;
            let exact = steps.iter().sum::<i64>() as f64 / n;
            prop_assert!((mean - exact).abs() <= 0.5 + 1e-9);
            prop_assert!(((mean - exact).abs() - 0.5).abs() > 1e-9 || mean.abs() > exact.abs());
            let mut distortion = Distortion::default();
            for &x in &steps {
                distortion.add(x, 7);
            }
            let total: f64 = steps.iter().map(|&x| (x as f64 - exact).powi(2)).sum();
            let lost: f64 = steps.iter().map(|&x| (x as f64 - 7.0).powi(2)).sum();
            let share = if total > 1e-9 { lost / total } else { 0.0 };
            prop_assert!((distortion.lost_variance_share() - share).abs() <= 1e-6 * (1.0 + share));
        }

        /// Merging classes that show the same number does not change their aggregate.
        #[test]
        fn mean_of_merged_classes_with_equal_means_is_unchanged(
            a in prop::collection::vec(-6i64..6, 1..8), b in prop::collection::vec(-6i64..6, 1..8),
        ) {
            if rounded_mean(&a) == rounded_mean(&b) {
                let both: Vec<i64> = a.iter().chain(&b).copied().collect();
                prop_assert_eq!(rounded_mean(&both), rounded_mean(&a));
            }
        }
    }
}
