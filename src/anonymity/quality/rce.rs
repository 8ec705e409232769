//! Reconstruction error ([HCE] "Quality metric", Fig. 2 to 4; docs/methods.md §15.3).
//!
//! A record is a point. What a reader knows of it is a density: over each attribute even on the values that its cell covers, and
//! times the probability p that its line is no counterfeit. RCE is the squared difference of the two densities, summed over
//! the attributes (the sensitive one too) and over the records. Of an attribute whose cell covers m values it is
//! (1 − p/m)² + (m − 1)(p/m)² = 1 − (2p − p²)/m, in [0, 1]; 1 of a record that does not leave.
//!
//! The paper's formula integrates over the space of all attributes at once, its figures draw one attribute. In the space of
//! all, the density of nearly every generalized record is nearly 0 and RCE is the number of records, whatever the policy; so
//! what is optimized is the sum over attributes, and the other is told beside it.

use crate::anonymity::domain::Domain;

/// RCE of one record, or of many added up.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rce {
    /// Summed over attributes: of a record in [0, quasi attributes + 1].
    pub marginal: f64,
    /// In the space of all attributes: of a record in [0, 1].
    pub joint: f64,
}

impl std::ops::AddAssign for Rce {
    fn add_assign(&mut self, other: Self) {
        self.marginal += other.marginal;
        self.joint += other.joint;
    }
}

/// How thin the density of a value is on each level: by attribute, level and value, 1 / (values that occur and share its cell).
#[derive(Clone, Debug)]
pub struct Densities(Vec<Vec<Vec<f64>>>);

impl Densities {
    /// Of the quasi attributes with these `domains`; `counts[a][v]` records have the value v of attribute a.
    pub fn new(domains: &[Domain], counts: &[Vec<u64>]) -> Self {
        let of = |(domain, counts): (&Domain, &Vec<u64>)| {
            let level = |level: &crate::anonymity::domain::Level| {
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

    /// What every policy at these `levels` costs at least, whatever is suppressed or inserted: marginal RCE of generalization
    /// alone. Never falls from a policy to its generalizations.
    pub fn bound(&self, levels: &[u8], counts: &[Vec<u64>]) -> f64 {
        let of = |((densities, counts), &level): ((&Vec<Vec<f64>>, &Vec<u64>), &u8)| -> f64 {
            let lost = densities[usize::from(level)].iter().zip(counts).map(|(d, &count)| (1.0 - d) * count as f64);
            lost.sum()
        };
        self.0.iter().zip(counts).zip(levels).map(of).sum()
    }

    /// Of a record that has these `values` and leaves at `levels`, whose sensitive cell covers `1 / beside` values and whose line
    /// is no counterfeit with probability `genuine`.
    pub fn of_record(&self, values: impl Iterator<Item = u32>, levels: &[u8], beside: f64, genuine: f64) -> Rce {
        let weight = 2.0 * genuine - genuine * genuine;
        let densities = self.0.iter().zip(values).zip(levels);
        let densities = densities.map(|((of, value), &level)| of[usize::from(level)][value as usize]);
        let (mut sum, mut product, mut attributes) = (beside, beside, 1.0);
        for density in densities {
            sum += density;
            product *= density;
            attributes += 1.0;
        }
        Rce { marginal: attributes - weight * sum, joint: 1.0 - weight * product }
    }

    /// Of a record that does not leave.
    pub fn of_suppressed(&self) -> Rce {
        Rce { marginal: self.0.len() as f64 + 1.0, joint: 1.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::anonymity::domain::Level;
    use proptest::prelude::*;

    fn domain() -> Domain {
        let level = |cell_of: &[u32], loss: &[f64]| Level { cell_of: cell_of.to_vec(), loss: loss.to_vec() };
        let levels =
            vec![level(&[0, 1, 2, 3], &[0.0; 4]), level(&[0, 0, 1, 1], &[0.33, 0.33]), level(&[0, 0, 0, 0], &[1.0])];
        Domain::new("a", levels).unwrap()
    }

    /// The definition, value by value.
    fn by_definition(covered: &[usize], values: usize, own: usize, genuine: f64) -> f64 {
        let density = |x: usize| if covered.contains(&x) { genuine / covered.len() as f64 } else { 0.0 };
        (0..values).map(|x| (f64::from(u8::from(x == own)) - density(x)).powi(2)).sum()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn agrees_with_the_definition(own in prop::array::uniform2(0..4usize), level in prop::array::uniform2(0..3u8), genuine in 0.0..=1.0f64) {
            let counts = vec![vec![1; 4]; 2];
            let densities = Densities::new(&[domain(), domain()], &counts);
            let covered = |own: usize, level: u8| -> Vec<usize> {
                (0..4).filter(|x| match level { 0 => *x == own, 1 => x / 2 == own / 2, _ => true }).collect()
            };
            let rce = densities.of_record(own.iter().map(|&v| v as u32), &level, 1.0, genuine);
            let each: f64 = (0..2).map(|a| by_definition(&covered(own[a], level[a]), 4, own[a], genuine)).sum();
            prop_assert!((rce.marginal - each - by_definition(&[0], 3, 0, genuine)).abs() < 1e-9);
            let points: Vec<usize> = (0..16).filter(|p| covered(own[0], level[0]).contains(&(p / 4)) && covered(own[1], level[1]).contains(&(p % 4))).collect();
            prop_assert!((rce.joint - by_definition(&points, 16, own[0] * 4 + own[1], genuine)).abs() < 1e-9);
        }
    }

    /// [HCE] Fig. 3 and 4: one attribute of three values, and three quarters of the density where one of four lines is invented.
    #[test]
    fn a_quarter_of_counterfeits_takes_a_quarter_of_the_density() {
        let whole = by_definition(&[0, 1, 2], 3, 1, 1.0);
        let less = by_definition(&[0, 1, 2], 3, 1, 0.75);
        assert!((whole - 2.0 / 3.0).abs() < 1e-12 && (less - (1.0 - 0.9375 / 3.0)).abs() < 1e-12);
    }

    #[test]
    fn values_that_do_not_occur_are_not_covered() {
        let densities = Densities::new(&[domain()], &[vec![3, 0, 1, 1]]);
        assert_eq!(densities.bound(&[1], &[vec![3, 0, 1, 1]]), 1.0, "of four covered values three occur");
        assert_eq!(densities.bound(&[0], &[vec![3, 0, 1, 1]]), 0.0);
        assert_eq!(densities.of_suppressed(), Rce { marginal: 2.0, joint: 1.0 });
    }
}
