//! Weighted draws in constant time: Walker's alias method with Vose's construction \[VOS].

use super::seeded_random::pow;

/// Distribution over 0..n.
#[derive(Clone, Debug)]
pub struct AliasTable {
    /// Threshold for the lower 32 bits, and the alias from there on.
    cells: Vec<(u32, u32)>,
}

impl AliasTable {
    /// Creates the table of at most 2³¹ finite, non-negative weights, not all zero.
    ///
    /// # Panics
    /// Panics for invalid weights, which never come from input.
    #[must_use]
    pub fn new(weights: &[f64]) -> Self {
        let total: f64 = weights.iter().sum();
        assert!(total > 0.0 && total.is_finite() && weights.iter().all(|w| *w >= 0.0), "weights must add up");
        let mean = total / weights.len() as f64;
        let mut share: Vec<f64> = weights.iter().map(|w| w / mean).collect();
        let (mut small, mut large): (Vec<u32>, Vec<u32>) =
            (0..weights.len() as u32).partition(|i| share[*i as usize] < 1.0);
        let mut cells: Vec<(u32, u32)> = (0..weights.len() as u32).map(|i| (u32::MAX, i)).collect();
        while let (Some(s), Some(&l)) = (small.pop(), large.last()) {
            cells[s as usize] = ((share[s as usize] * 4_294_967_296.0) as u32, l);
            share[l as usize] -= 1.0 - share[s as usize];
            if share[l as usize] < 1.0 {
                large.pop();
                small.push(l);
            }
        }
        Self { cells }
    }

    /// Returns (r+1)⁻ᶻ for rank r from 0.
    #[must_use]
    pub fn zipf_weights(n: usize, z: f64) -> Vec<f64> {
        (0..n).map(|rank| pow((rank + 1) as f64, -z)).collect()
    }

    /// Returns the outcome for 64 uniform bits.
    #[inline]
    #[must_use]
    pub fn sample_outcome(&self, bits: u64) -> usize {
        let cell = (((bits >> 32) * self.cells.len() as u64) >> 32) as usize;
        let (threshold, alias) = self.cells[cell];
        if (bits as u32) < threshold { cell } else { alias as usize }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::seeded_random::SeededRandom;
    use proptest::prelude::*;

    fn exact(table: &AliasTable) -> Vec<f64> {
        let n = table.cells.len() as f64;
        let mut p = vec![0.0; table.cells.len()];
        for (i, (threshold, alias)) in table.cells.iter().enumerate() {
            let keep = f64::from(*threshold) / 4_294_967_296.0;
            p[i] += keep / n;
            p[*alias as usize] += (1.0 - keep) / n;
        }
        p
    }

    proptest! {
        #[test]
        fn alias_table_represents_weights(weights in proptest::collection::vec(0u16..1000, 1..200)) {
            prop_assume!(weights.iter().any(|w| *w > 0));
            let weights: Vec<f64> = weights.into_iter().map(f64::from).collect();
            let total: f64 = weights.iter().sum();
            for (p, w) in exact(&AliasTable::new(&weights)).iter().zip(&weights) {
                prop_assert!((p - w / total).abs() < 1e-8, "{p} for {w} of {total}");
            }
        }
    }

    /// False failures below 1e-6 (four outcomes, 5.5 standard deviations); fixed seed.
    #[test]
    fn samples_follow_weights() {
        let table = AliasTable::new(&[1.0, 2.0, 3.0, 4.0]);
        let mut dice = SeededRandom::new(3, 0);
        let n = 100_000;
        let mut counts = [0u32; 4];
        for _ in 0..n {
            counts[table.sample_outcome(dice.bits())] += 1;
        }
        for (i, count) in counts.iter().enumerate() {
            let p = (i + 1) as f64 / 10.0;
            let deviation = (f64::from(n) * p * (1.0 - p)).sqrt();
            assert!((f64::from(*count) - f64::from(n) * p).abs() < 5.5 * deviation, "{i}: {count}");
        }
    }
}
