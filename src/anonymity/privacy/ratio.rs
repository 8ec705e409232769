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
    #[must_use]
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
    #[must_use]
    pub fn value(self) -> f64 {
        self.numerator as f64 / self.denominator as f64
    }

    /// ⌊self · count⌋.
    #[must_use]
    pub fn floor_of(self, count: u64) -> u64 {
        (u128::from(self.numerator) * u128::from(count) / u128::from(self.denominator)) as u64
    }

    /// ⌈self · count⌉.
    #[must_use]
    pub fn ceil_of(self, count: u64) -> u64 {
        (u128::from(self.numerator) * u128::from(count)).div_ceil(u128::from(self.denominator)) as u64
    }

    /// Whether `part / whole ≤ self`. Exact for every `part` and `whole` below 2⁷⁰.
    #[must_use]
    pub fn at_least(self, part: u128, whole: u128) -> bool {
        part * u128::from(self.denominator) <= whole * u128::from(self.numerator)
    }

    /// Whether `part < self · whole`.
    #[must_use]
    pub fn exceeds(self, part: u64, whole: u64) -> bool {
        u128::from(part) * u128::from(self.denominator) < u128::from(whole) * u128::from(self.numerator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
