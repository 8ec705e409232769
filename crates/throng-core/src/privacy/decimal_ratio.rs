//! Exact decimal fractions.

/// Fraction with a power of ten as denominator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecimalRatio {
    numerator: u64,
    denominator: u64,
}

const MAX_RATIO_DECIMALS: usize = 15;

impl DecimalRatio {
    /// Converts the shortest decimal text, cut after fifteen decimals; none for negative and non-finite values, and
    /// from 1,000.
    pub fn from_decimal_text(value: f64) -> Option<Self> {
        if !(0.0..1000.0).contains(&value) {
            return None;
        }
        let text = format!("{value}");
        let (whole, decimals) = text.split_once('.').unwrap_or((&text, ""));
        let decimals = &decimals[..decimals.len().min(MAX_RATIO_DECIMALS)];
        let denominator = 10u64.pow(decimals.len() as u32);
        let fraction: u64 = if decimals.is_empty() { 0 } else { decimals.parse().ok()? };
        Some(Self { numerator: whole.parse::<u64>().ok()? * denominator + fraction, denominator })
    }

    /// Converts to a double.
    pub fn value(self) -> f64 {
        self.numerator as f64 / self.denominator as f64
    }

    /// ⌊self · count⌋.
    pub fn floor_of(self, count: u64) -> u64 {
        (u128::from(self.numerator) * u128::from(count) / u128::from(self.denominator)) as u64
    }

    /// ⌈self · count⌉.
    pub fn ceil_of(self, count: u64) -> u64 {
        (u128::from(self.numerator) * u128::from(count)).div_ceil(u128::from(self.denominator)) as u64
    }

    /// Tests `part / whole ≤ self`, exactly, for `whole` > 0.
    pub fn is_at_least_quotient(self, part: u128, whole: u128) -> bool {
        let (numerator, denominator) = (u128::from(self.numerator), u128::from(self.denominator));
        match part.checked_mul(denominator).zip(whole.checked_mul(numerator)) {
            Some((left, right)) => left <= right,
            None => is_quotient_at_most((part, whole), (numerator, denominator)),
        }
    }

    /// Tests `part < self · whole`.
    pub fn is_above_quotient(self, part: u64, whole: u64) -> bool {
        u128::from(part) * u128::from(self.denominator) < u128::from(whole) * u128::from(self.numerator)
    }
}

/// a/b ≤ c/d by Euclid's algorithm.
fn is_quotient_at_most((a, b): (u128, u128), (c, d): (u128, u128)) -> bool {
    match (a / b).cmp(&(c / d)) {
        std::cmp::Ordering::Equal if a % b == 0 => true,
        std::cmp::Ordering::Equal if c % d == 0 => false,
        // Inverted remainders have the opposite order.
        std::cmp::Ordering::Equal => is_quotient_at_most((d, c % d), (b, a % b)),
        order => order.is_lt(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn ratio_comparison_matches_cross_multiplication(a in 0u64..1 << 40, b in 1u64..1 << 40, c in 0u64..1 << 40, d in 1u64..1 << 40) {
            let (a, b, c, d) = (u128::from(a), u128::from(b), u128::from(c), u128::from(d));
            prop_assert_eq!(is_quotient_at_most((a, b), (c, d)), a * d <= c * b);
            prop_assert!(is_quotient_at_most((a, b), (a, b)));
        }
    }

    #[test]
    fn ratio_comparison_above_128_bits_is_exact() {
        let third = DecimalRatio::from_decimal_text(0.333_333_333_333_333).unwrap();
        let whole = 1u128 << 80;
        assert!(third.is_at_least_quotient(whole / 3 - (1 << 40), whole));
        assert!(!third.is_at_least_quotient(whole / 3 + (1 << 40), whole));
        assert!(!third.is_at_least_quotient(whole / 3, whole), "a third is more than its fifteen decimals");
    }

    #[test]
    fn ratio_uses_decimal_value_of_the_limit() {
        // In doubles, 0.29 · 100 is below 29.
        assert_eq!(((0.29f64 * 100.0) as u64, DecimalRatio::from_decimal_text(0.29).unwrap().floor_of(100)), (28, 29));
        assert_eq!(DecimalRatio::from_decimal_text(0.05).unwrap().floor_of(30_162), 1508);
        assert_eq!(
            (
                DecimalRatio::from_decimal_text(0.0).unwrap().floor_of(7),
                DecimalRatio::from_decimal_text(1.0).unwrap().floor_of(7)
            ),
            (0, 7)
        );
        assert_eq!(
            (
                DecimalRatio::from_decimal_text(1.5).unwrap().ceil_of(3),
                DecimalRatio::from_decimal_text(4.0).unwrap().ceil_of(3)
            ),
            (5, 12)
        );
        assert_eq!(DecimalRatio::from_decimal_text(1e-20).map(DecimalRatio::value), Some(0.0));
        for bad in [-0.1, f64::NAN, f64::INFINITY, 1000.0] {
            assert_eq!(DecimalRatio::from_decimal_text(bad), None);
        }
    }

    #[test]
    fn ratio_comparisons_at_the_limit_are_exact() {
        let fifth = DecimalRatio::from_decimal_text(0.2).unwrap();
        assert!(fifth.is_at_least_quotient(1 << 60, 5 << 60));
        assert!(!fifth.is_at_least_quotient((1 << 60) + 1, 5 << 60));
        assert!(!fifth.is_above_quotient(1, 5));
        assert!(fifth.is_above_quotient(1, 6));
    }
}
