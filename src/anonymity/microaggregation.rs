//! Micro-aggregation: the members of a class show an aggregate of their numbers [DOM].
//!
//! Classes are formed before, by the cells of a policy; all members of a class then show the same number, so what was
//! one class stays one. Untruthful: nobody need have that number. A sum of k numbers tells the last of them to whoever knows the
//! others, up to the rounding; a number far from the rest pulls the mean to where it can be guessed.
//!
//! Numbers are whole steps of the attribute's own rounding, so every aggregate is a value that the attribute could have,
//! and no sum rounds.

use throng_core::values::schema::{Rounding, Type, Typing};

/// The numbers that an attribute can have: multiples of `step`·10⁻ᵈ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resolution {
    decimals: u32,
    step: i128,
}

impl Resolution {
    /// Of integers, and of floats that are rounded to a step; none for everything else.
    pub fn of(typing: &Typing) -> Option<Self> {
        match (typing.kind, typing.rounding) {
            (Type::Integer, Rounding::None) => Some(Self { decimals: 0, step: 1 }),
            (Type::Integer | Type::Float, Rounding::Step { ticks, decimals }) => {
                Some(Self { decimals, step: i128::from(ticks) })
            }
            _ => None,
        }
    }

    /// The steps of a canonical number; none for what is no multiple of the step, or beyond 2⁶³ of them.
    pub fn steps(self, canonical: &str) -> Option<i64> {
        let ticks = throng_core::values::decimal::exact(canonical, self.decimals)?;
        if ticks % self.step != 0 { None } else { i64::try_from(ticks / self.step).ok() }
    }

    /// The canonical number of so many steps.
    pub fn number(self, steps: i64) -> String {
        let mut text = String::new();
        throng_core::values::decimal::push_ticks(&mut text, i128::from(steps) * self.step, self.decimals);
        text
    }
}

/// The mean of `steps`, rounded to the nearest whole step, ties away from zero; none of none.
pub fn mean(steps: &[i64]) -> Option<i64> {
    if steps.is_empty() {
        return None;
    }
    let n = steps.len() as i128;
    let sum: i128 = steps.iter().map(|&x| i128::from(x)).sum();
    let size = (2 * sum.abs() + n) / (2 * n);
    i64::try_from(if sum < 0 { -size } else { size }).ok()
}

/// What micro-aggregation did to the numbers of one attribute, in steps.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Distortion {
    count: f64,
    mean: f64,
    /// Σ (x − mean of all)².
    total: f64,
    /// Σ (x − what it shows)².
    lost: f64,
}

impl Distortion {
    /// Adds a number and what its record shows.
    pub fn add(&mut self, number: i64, shown: i64) {
        let x = number as f64;
        self.count += 1.0;
        let before = x - self.mean;
        self.mean += before / self.count;
        self.total += before * (x - self.mean);
        self.lost += (x - shown as f64).powi(2);
    }

    /// The share of the variance that is lost, SSE / SST: [0, 1] for means before rounding, 0 where all numbers are one.
    pub fn share(&self) -> f64 {
        if self.total > 0.0 { self.lost / self.total } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use throng_core::values::schema::Missing;

    fn typing(kind: Type, rounding: Rounding) -> Typing {
        let missing = Missing::new(None, true);
        let (spelling, dates) = Default::default();
        Typing {
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
    fn numbers_are_steps_of_the_rounding() {
        let tenths = Resolution::of(&typing(Type::Float, Rounding::Step { ticks: 5, decimals: 1 })).expect("a step");
        assert_eq!((tenths.steps("-1.5"), tenths.number(-3)), (Some(-3), "-1.5".to_owned()));
        assert_eq!((tenths.steps("1.7"), tenths.steps("1.55"), tenths.steps("null")), (None, None, None));
        let whole = Resolution::of(&typing(Type::Integer, Rounding::None)).expect("a step");
        assert_eq!((whole.steps("72"), whole.number(72), whole.steps("1e30")), (Some(72), "72".to_owned(), None));
        for other in [
            typing(Type::Float, Rounding::None),
            typing(Type::Float, Rounding::Digits(2)),
            typing(Type::Integer, Rounding::Digits(2)),
            typing(Type::String, Rounding::None),
        ] {
            assert_eq!(Resolution::of(&other), None);
        }
    }

    #[test]
    fn ties_leave_zero_and_extremes_do_not_overflow() {
        assert_eq!(mean(&[1, 2]), Some(2));
        assert_eq!(mean(&[-1, -2]), Some(-2));
        assert_eq!(mean(&[i64::MAX; 9]), Some(i64::MAX));
        assert_eq!(mean(&[i64::MIN; 9]), Some(i64::MIN));
        assert_eq!(mean(&[]), None);
    }

    proptest! {
        #[test]
        fn means_are_their_definition(steps in prop::collection::vec(-1000i64..1000, 1..20)) {
            let n = steps.len() as f64;
            let mean = mean(&steps).expect("numbers") as f64;
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
            prop_assert!((distortion.share() - share).abs() <= 1e-6 * (1.0 + share));
        }

        /// Classes that come to show the same are one to a reader: what they show is its aggregate too.
        #[test]
        fn classes_of_one_mean_have_it_together(
            a in prop::collection::vec(-6i64..6, 1..8), b in prop::collection::vec(-6i64..6, 1..8),
        ) {
            if mean(&a) == mean(&b) {
                let both: Vec<i64> = a.iter().chain(&b).copied().collect();
                prop_assert_eq!(mean(&both), mean(&a));
            }
        }
    }
}
