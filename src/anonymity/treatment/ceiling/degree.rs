//! How far records are generalized: D(r) ([HCE] "Generalization"; docs/methods.md §15.1).

use crate::anonymity::domain::Domain;

/// What degrees that are equal may differ by.
const SLACK: f64 = 1e-9;

/// D(r): the mean Loss of the cells of a record with these `values` under a policy, in [0, 1].
#[must_use]
pub fn degree(domains: &[Domain], policy: &[u8], values: impl Iterator<Item = u32>) -> f64 {
    let loss = |((domain, &level), value): ((&Domain, &u8), u32)| {
        let level = &domain.levels()[usize::from(level)];
        level.loss[level.cell_of[value as usize] as usize]
    };
    domains.iter().zip(policy).zip(values).map(loss).sum::<f64>() / domains.len().max(1) as f64
}

/// The highest degree of the `rows` of `columns` under a policy; 0 without rows. Never falls from a policy to its
/// generalizations, since no cell's Loss does.
#[must_use]
pub fn highest(domains: &[Domain], columns: &[Vec<u32>], rows: &[u32], policy: &[u8]) -> f64 {
    let of = |&row: &u32| degree(domains, policy, columns.iter().map(|column| column[row as usize]));
    rows.iter().map(of).fold(0.0, f64::max)
}

/// Whether a degree is at most h.
#[must_use]
pub fn is_below(degree: f64, h: f64) -> bool {
    degree <= h + SLACK
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::anonymity::domain::Level;

    /// [HCE] "Generalization": ages 35 to 66 of 0 to 99, one of two sexes, 33,254 of 100,000 zip codes. D = (0.31 + 1 + 0.33) / 3.
    #[test]
    fn the_degree_of_the_papers_example() {
        let domain = |loss: f64| {
            let raw = Level { cell_of: vec![0, 1], loss: vec![0.0, 0.0] };
            Domain::new("a", vec![raw, Level { cell_of: vec![0, 0], loss: vec![loss] }]).unwrap()
        };
        let domains = [domain(31.0 / 99.0), domain(1.0), domain(33253.0 / 99999.0)];
        let degree = degree(&domains, &[1, 1, 1], [0, 0, 1].into_iter());
        assert!((degree - 0.55).abs() < 0.005, "{degree}");
        assert_eq!(highest(&domains, &[vec![0, 1], vec![0, 0], vec![1, 1]], &[0, 1], &[0, 0, 0]), 0.0);
        assert!(is_below(0.3, 0.1 + 0.2) && is_below(0.1 + 0.2, 0.3) && !is_below(0.31, 0.3));
    }
}
