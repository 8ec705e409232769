//! Discrete Gaussian noise, keyed by secret and exact numbers (HMAC-SHA-256, ChaCha20).
//!
//! A retry gives equal bytes. The numbers are in the key: otherwise releases that differ by a subject would reveal it.

use super::batch_step::KeyedDraw;
use crate::values::digest::{DigestKey, KeyedDigest};
use prio::dp::Rational;
use prio::dp::distributions::DiscreteGaussian;
use rand_0_10::SeedableRng;
use rand_0_10::distr::Distribution;
use rand_0_10::rngs::ChaCha20Rng;

use super::noise_budget::DEVIATION_PARTS;

/// Key inputs, different from those of subjects and cohorts.
const NOISE_KEY_NUMBERS: [u128; 2] = [1 << 101, 1 << 102];

pub(super) struct NoiseKey(KeyedDigest);

impl NoiseKey {
    pub(super) fn new(draw: KeyedDraw<'_>) -> Self {
        let [one, other] = NOISE_KEY_NUMBERS.map(draw);
        Self(DigestKey::from_halves(one, other).keyed_digest("throng noise"))
    }

    /// Sample with mean 0 and this deviation (in parts), fixed by `place`.
    pub(super) fn sample(&self, deviation_parts: u64, place: &str) -> i64 {
        let half = |number: u8| self.0.digest(format!("{number} {place}").as_bytes());
        let mut random = ChaCha20Rng::from_seed(DigestKey::from_halves(half(0), half(1)).0);
        let deviation = Rational::from_unsigned(deviation_parts, DEVIATION_PARTS).expect("the denominator is not 0");
        let gaussian = DiscreteGaussian::new(deviation).expect("the denominator is not 0");
        i64::try_from(gaussian.sample(&mut random)).expect("fewer than 2^20 deviations of at most 2^42")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::digest::mix;

    fn key() -> NoiseKey {
        NoiseKey::new(&|number: u128| u128::from(mix((number >> 90) as u64)))
    }

    /// Chi-square test with fixed seeds; a correct sampler fails for one of 1,000 keys.
    #[test]
    fn noise_follows_discrete_gaussian_distribution() {
        const DRAWS: usize = 20_000;
        let (key, deviation) = (key(), 2.0_f64);
        let mut counts = [0.0_f64; 13];
        let (mut sum, mut squares) = (0.0, 0.0);
        for draw in 0..DRAWS {
            let noise = key.sample(2 * DEVIATION_PARTS, &draw.to_string());
            (sum, squares) = (sum + noise as f64, squares + (noise * noise) as f64);
            counts[(noise.clamp(-6, 6) + 6) as usize] += 1.0;
        }
        let weight = |x: i64| (-(x * x) as f64 / (2.0 * deviation * deviation)).exp();
        let total: f64 = (-40..=40).map(weight).sum();
        let tail: f64 = (6..=40).map(weight).sum();
        let expected = |x: i64| if x.abs() == 6 { tail } else { weight(x) } / total * DRAWS as f64;
        let chi: f64 = (-6..=6).zip(counts).map(|(x, found)| (found - expected(x)).powi(2) / expected(x)).sum();
        assert!(chi < 32.91, "{chi} with 12 degrees of freedom");
        let (mean, variance) = (sum / DRAWS as f64, squares / DRAWS as f64);
        assert!(mean.abs() < 4.0 * deviation / (DRAWS as f64).sqrt(), "{mean}");
        assert!((variance / 4.0 - 1.0).abs() < 4.0 * (2.0 / DRAWS as f64).sqrt(), "{variance}");
    }

    #[test]
    fn noise_with_large_deviation_has_that_deviation() {
        let (key, parts) = (key(), 1_000_000 * DEVIATION_PARTS);
        let squares: f64 = (0..2_000).map(|draw| (key.sample(parts, &draw.to_string()) as f64 / 1e6).powi(2)).sum();
        assert!((squares / 2_000.0 - 1.0).abs() < 4.0 * (2.0 / 2_000.0_f64).sqrt(), "{squares}");
    }

    #[test]
    fn noise_depends_only_on_key_and_place() {
        let (key, parts) = (key(), 1_000 * DEVIATION_PARTS);
        let other = NoiseKey::new(&|number: u128| u128::from(mix((number >> 90) as u64 ^ 7)));
        assert_eq!(key.sample(parts, "a"), key.sample(parts, "a"));
        assert_ne!(key.sample(parts, "a"), key.sample(parts, "b"));
        assert_ne!(key.sample(parts, "a"), other.sample(parts, "a"));
    }
}
