//! Reconstruction error (\[HCE] "Quality metric", Fig. 2 to 4; docs/internals/methods.md §15.3).
//!
//! A cell of m values has the error 1 − (2p − p²)/m if a line is genuine with probability p; a suppressed record 1. The
//! optimized sum is per attribute, as in the paper's figures.

use crate::domain::Domain;

/// Reconstruction error of records.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ReconstructionError {
    /// Sum over attributes; per record in [0, quasi attributes + 1].
    pub marginal: f64,
    /// Joint value; per record in [0, 1].
    pub joint: f64,
}

impl std::ops::AddAssign for ReconstructionError {
    fn add_assign(&mut self, other: Self) {
        self.marginal += other.marginal;
        self.joint += other.joint;
    }
}

/// Densities by attribute, level and value: 1 / occurring values.
#[derive(Clone, Debug)]
pub struct CellDensities(Vec<Vec<Vec<f64>>>);

impl CellDensities {
    /// Computes densities; `counts[a][v]` records have value v of attribute a.
    pub fn new(domains: &[Domain], counts: &[Vec<u64>]) -> Self {
        let of = |(domain, counts): (&Domain, &Vec<u64>)| {
            let level = |level: &crate::domain::HierarchyLevel| {
                let mut values = vec![0u32; level.cells()];
                for (&cell, _) in level.cell_of.iter().zip(counts).filter(|(_, count)| **count > 0) {
                    values[cell as usize] += 1;
                }
                level.cell_of.iter().map(|&cell| 1.0 / f64::from(values[cell as usize].max(1))).collect()
            };
            domain.levels().iter().map(level).collect()
        };
        Self(domains.iter().zip(counts).map(of).collect())
    }

    /// Error of generalization alone: a monotone lower bound.
    pub fn bound(&self, levels: &[u8], counts: &[Vec<u64>]) -> f64 {
        let of = |((densities, counts), &level): ((&Vec<Vec<f64>>, &Vec<u64>), &u8)| -> f64 {
            let lost = densities[usize::from(level)].iter().zip(counts).map(|(d, &count)| (1.0 - d) * count as f64);
            lost.sum()
        };
        self.0.iter().zip(counts).zip(levels).map(of).sum()
    }

    /// Error of a record that is genuine with probability `genuine`.
    pub fn record_error(
        &self,
        values: impl Iterator<Item = u32>,
        levels: &[u8],
        beside: f64,
        genuine: f64,
    ) -> ReconstructionError {
        let weight = 2.0 * genuine - genuine * genuine;
        let densities = self.0.iter().zip(values).zip(levels);
        let densities = densities.map(|((of, value), &level)| of[usize::from(level)][value as usize]);
        let (mut sum, mut product, mut attributes) = (beside, beside, 1.0);
        for density in densities {
            sum += density;
            product *= density;
            attributes += 1.0;
        }
        ReconstructionError { marginal: attributes - weight * sum, joint: 1.0 - weight * product }
    }

    /// Error of a suppressed record.
    pub fn suppressed_record_error(&self) -> ReconstructionError {
        ReconstructionError { marginal: self.0.len() as f64 + 1.0, joint: 1.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::HierarchyLevel;
    use proptest::prelude::*;

    fn domain() -> Domain {
        let level = |cell_of: &[u32], loss: &[f64]| HierarchyLevel { cell_of: cell_of.to_vec(), loss: loss.to_vec() };
        let levels =
            vec![level(&[0, 1, 2, 3], &[0.0; 4]), level(&[0, 0, 1, 1], &[0.33, 0.33]), level(&[0, 0, 0, 0], &[1.0])];
        Domain::new("a", levels).unwrap()
    }

    fn by_definition(covered: &[usize], values: usize, own: usize, genuine: f64) -> f64 {
        let density = |x: usize| if covered.contains(&x) { genuine / covered.len() as f64 } else { 0.0 };
        (0..values).map(|x| (f64::from(u8::from(x == own)) - density(x)).powi(2)).sum()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn reconstruction_error_matches_definition(own in prop::array::uniform2(0..4usize), level in prop::array::uniform2(0..3u8), genuine in 0.0..=1.0f64) {
            let counts = vec![vec![1; 4]; 2];
            let densities = CellDensities::new(&[domain(), domain()], &counts);
            let covered = |own: usize, level: u8| -> Vec<usize> {
                (0..4).filter(|x| match level { 0 => *x == own, 1 => x / 2 == own / 2, _ => true }).collect()
            };
            let rce = densities.record_error(own.iter().map(|&v| v as u32), &level, 1.0, genuine);
            let each: f64 = (0..2).map(|a| by_definition(&covered(own[a], level[a]), 4, own[a], genuine)).sum();
            prop_assert!((rce.marginal - each - by_definition(&[0], 3, 0, genuine)).abs() < 1e-9);
            let points: Vec<usize> = (0..16).filter(|p| covered(own[0], level[0]).contains(&(p / 4)) && covered(own[1], level[1]).contains(&(p % 4))).collect();
            prop_assert!((rce.joint - by_definition(&points, 16, own[0] * 4 + own[1], genuine)).abs() < 1e-9);
        }
    }

    /// \[HCE] Fig. 3 and 4: three values; one of four lines is a counterfeit.
    #[test]
    fn reconstruction_error_with_counterfeits_uses_reduced_density() {
        let whole = by_definition(&[0, 1, 2], 3, 1, 1.0);
        let less = by_definition(&[0, 1, 2], 3, 1, 0.75);
        assert!((whole - 2.0 / 3.0).abs() < 1e-12 && (less - (1.0 - 0.9375 / 3.0)).abs() < 1e-12);
    }

    #[test]
    fn reconstruction_error_ignores_values_that_do_not_occur() {
        let densities = CellDensities::new(&[domain()], &[vec![3, 0, 1, 1]]);
        assert_eq!(densities.bound(&[1], &[vec![3, 0, 1, 1]]), 1.0, "of four covered values three occur");
        assert_eq!(densities.bound(&[0], &[vec![3, 0, 1, 1]]), 0.0);
        assert_eq!(densities.suppressed_record_error(), ReconstructionError { marginal: 2.0, joint: 1.0 });
    }
}
