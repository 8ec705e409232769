//! Micro-aggregation: all members of a class show one aggregate \[DOM].
//!
//! An attacker that knows all members but one can compute the last number, up to the rounding.

use crate::values::schema::{AttributeType, Rounding, ValueTyping};

/// Numbers of an attribute: multiples of `step`·10⁻ᵈ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NumericResolution {
    decimals: u32,
    step: i128,
}

impl NumericResolution {
    /// Resolution of integers and stepped floats; `None` for other types.
    pub fn of(typing: &ValueTyping) -> Option<Self> {
        match (typing.kind, typing.rounding) {
            (AttributeType::Integer, Rounding::None) => Some(Self { decimals: 0, step: 1 }),
            (AttributeType::Integer | AttributeType::Float, Rounding::Step { ticks, decimals }) => {
                Some(Self { decimals, step: i128::from(ticks) })
            }
            _ => None,
        }
    }

    /// Number in steps; `None` if not a multiple, or above 64 bits.
    pub fn steps(self, canonical: &str) -> Option<i64> {
        let ticks = crate::values::decimal::exact(canonical, self.decimals)?;
        if ticks % self.step != 0 { None } else { i64::try_from(ticks / self.step).ok() }
    }

    /// Canonical number of `steps` steps.
    pub fn number(self, steps: i64) -> String {
        let mut text = String::new();
        crate::values::decimal::push_ticks(&mut text, i128::from(steps) * self.step, self.decimals);
        text
    }
}

/// Mean in steps, ties away from zero; `None` for an empty slice.
pub fn rounded_mean(steps: &[i64]) -> Option<i64> {
    if steps.is_empty() {
        return None;
    }
    let n = steps.len() as i128;
    let sum: i128 = steps.iter().map(|&x| i128::from(x)).sum();
    let size = (2 * sum.abs() + n) / (2 * n);
    i64::try_from(if sum < 0 { -size } else { size }).ok()
}

/// Distortion of the numbers of one attribute, in steps.
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
    /// Adds a number and its shown number.
    pub fn add(&mut self, number: i64, shown: i64) {
        let x = number as f64;
        self.count += 1.0;
        let before = x - self.mean;
        self.mean += before / self.count;
        self.total += before * (x - self.mean);
        self.lost += (x - shown as f64).powi(2);
    }

    /// Lost share of the variance, SSE / SST; 0 for equal numbers.
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
