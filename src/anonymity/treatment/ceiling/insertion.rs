//! Which values counterfeits show ([HCE] Alg. 1, lines 7 to 13; docs/methods.md §15.2).
//!
//! The paper draws from the domain of the sensitive attribute evenly. Then a rare value in a small class is likely a counterfeit.
//! Here a draw falls on each value as often as the records nearby have it, so that counterfeits correlate with the other
//! attributes as records do. It is decided by a key, the class and the number of the counterfeit in it alone: the same
//! class gets the same counterfeits again, whatever else of a file has changed, as long as the records nearby are the same.

use super::class::Counts;
use crate::records::digest::mix;

/// Draws `need` values with the probabilities of `weights`. `seed` gives the number of each draw, uniform in 128 bits;
/// `mark` a number of each value that depends on the value alone.
///
/// Each draw is a race of exponential clocks, one a value: the share of wins is the share of the weight, and another
/// weight changes few winners.
///
/// Time: need × values.
pub fn draw(need: u32, weights: &Counts, seed: &dyn Fn(u32) -> u128, mark: &dyn Fn(u32) -> u64) -> Counts {
    let mut drawn = Counts::new();
    for number in 0..need {
        let seed = seed(number);
        let finish = |value: u32, weight: u32| -(unit(seed, mark(value)).ln()) / f64::from(weight);
        let running = weights.iter().filter(|(_, weight)| **weight > 0);
        let first = running.min_by(|a, b| finish(*a.0, *a.1).total_cmp(&finish(*b.0, *b.1)));
        if let Some((&value, _)) = first {
            *drawn.entry(value).or_default() += 1;
        }
    }
    drawn
}

/// A number in (0, 1] of a draw and a value.
fn unit(seed: u128, mark: u64) -> f64 {
    let mixed = mix(mix((seed >> 64) as u64 ^ mark).wrapping_add(seed as u64));
    ((mixed >> 11) + 1) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seed(number: u32) -> u128 {
        u128::from(mix(u64::from(number) + 1)) << 64 | u128::from(mix(u64::from(number) + 77_777))
    }

    /// 20,000 draws: a share is off by more than 5 standard deviations once in more than 10⁶ keys.
    #[test]
    fn values_are_drawn_as_often_as_their_weights() {
        let weights = Counts::from([(1, 1), (5, 2), (9, 7), (11, 0)]);
        let drawn = draw(20_000, &weights, &seed, &|value| mix(u64::from(value)));
        for (value, share) in [(1, 0.1), (5, 0.2), (9, 0.7)] {
            let off = f64::from(drawn[&value]) - 20_000.0 * share;
            assert!(off.abs() < 5.0 * (20_000.0 * share * (1.0 - share)).sqrt(), "{drawn:?}");
        }
        assert!(!drawn.contains_key(&11));
        assert!(draw(3, &Counts::new(), &seed, &|_| 1).is_empty());
    }

    #[test]
    fn another_weight_changes_few_draws() {
        let mark = |value: u32| mix(u64::from(value));
        let each =
            |weights: &Counts| -> Vec<Counts> { (0..1000).map(|n| draw(1, weights, &|_| seed(n), &mark)).collect() };
        let (before, after) = (each(&Counts::from([(1, 50), (2, 50)])), each(&Counts::from([(1, 51), (2, 50)])));
        assert!(before.iter().zip(&after).filter(|(a, b)| a != b).count() < 30);
    }
}
