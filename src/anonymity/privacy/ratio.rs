//! Decimal fractions, exactly: a limit of 0.05 is five hundredths, and no rounding decides about a class.

/// A fraction whose denominator is a power of ten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ratio {
    numerator: u64,
    denominator: u64,
}

/// Decimals kept: what 64 bits hold beside a whole part.
const DECIMALS: usize = 15;

impl Ratio {
    /// The fraction that `value` is written as: its shortest decimal text, cut after fifteen decimals.
    ///
    /// None for negative, infinite and not-a-number values, and from 1,000 upward.
    pub fn of(value: f64) -> Option<Self> {
        if !(0.0..1000.0).contains(&value) {
            return None;
        }
        let text = format!("{value}");
        let (whole, decimals) = text.split_once('.').unwrap_or((&text, ""));
        let decimals = &decimals[..decimals.len().min(DECIMALS)];
        let denominator = 10u64.pow(decimals.len() as u32);
        let fraction: u64 = if decimals.is_empty() { 0 } else { decimals.parse().ok()? };
        Some(Self { numerator: whole.parse::<u64>().ok()? * denominator + fraction, denominator })
    }

    /// As a number.
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

    /// Whether `part / whole ≤ self`, exactly; `whole` is above 0.
    pub fn at_least(self, part: u128, whole: u128) -> bool {
        let (numerator, denominator) = (u128::from(self.numerator), u128::from(self.denominator));
        match part.checked_mul(denominator).zip(whole.checked_mul(numerator)) {
            Some((left, right)) => left <= right,
            None => is_at_most((part, whole), (numerator, denominator)),
        }
    }

    /// Whether `part < self · whole`.
    pub fn exceeds(self, part: u64, whole: u64) -> bool {
        u128::from(part) * u128::from(self.denominator) < u128::from(whole) * u128::from(self.numerator)
    }
}

/// Whether a/b ≤ c/d, by Euclid's algorithm on both: no product of two large numbers is formed.
fn is_at_most((a, b): (u128, u128), (c, d): (u128, u128)) -> bool {
    match (a / b).cmp(&(c / d)) {
        std::cmp::Ordering::Equal if a % b == 0 => true,
        std::cmp::Ordering::Equal if c % d == 0 => false,
        // What is left of both is below 1: the order of the inverses is the other one.
        std::cmp::Ordering::Equal => is_at_most((d, c % d), (b, a % b)),
        order => order.is_lt(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn large_fractions_compare_as_small_ones_do(a in 0u64..1 << 40, b in 1u64..1 << 40, c in 0u64..1 << 40, d in 1u64..1 << 40) {
            let (a, b, c, d) = (u128::from(a), u128::from(b), u128::from(c), u128::from(d));
            prop_assert_eq!(is_at_most((a, b), (c, d)), a * d <= c * b);
            prop_assert!(is_at_most((a, b), (a, b)));
        }
    }

    #[test]
    fn a_distance_beyond_the_product_of_128_bits_is_compared() {
        // An ordered distance over a million values of a billion records, against a limit of fifteen decimals.
        let third = Ratio::of(0.333_333_333_333_333).unwrap();
        let whole = 1u128 << 80;
        assert!(third.at_least(whole / 3 - (1 << 40), whole));
        assert!(!third.at_least(whole / 3 + (1 << 40), whole));
        assert!(!third.at_least(whole / 3, whole), "a third is more than its fifteen decimals");
    }

    #[test]
    fn a_limit_means_what_it_says() {
        // In binary, 0.29 · 100 is below 29.
        assert_eq!(((0.29f64 * 100.0) as u64, Ratio::of(0.29).unwrap().floor_of(100)), (28, 29));
        assert_eq!(Ratio::of(0.05).unwrap().floor_of(30_162), 1508);
        assert_eq!((Ratio::of(0.0).unwrap().floor_of(7), Ratio::of(1.0).unwrap().floor_of(7)), (0, 7));
        assert_eq!((Ratio::of(1.5).unwrap().ceil_of(3), Ratio::of(4.0).unwrap().ceil_of(3)), (5, 12));
        assert_eq!(Ratio::of(1e-20).map(Ratio::value), Some(0.0));
        for bad in [-0.1, f64::NAN, f64::INFINITY, 1000.0] {
            assert_eq!(Ratio::of(bad), None);
        }
    }

    #[test]
    fn comparisons_are_exact_at_the_edge() {
        let fifth = Ratio::of(0.2).unwrap();
        assert!(fifth.at_least(1 << 60, 5 << 60));
        assert!(!fifth.at_least((1 << 60) + 1, 5 << 60));
        assert!(!fifth.exceeds(1, 5));
        assert!(fifth.exceeds(1, 6));
    }
}
