//! Classes of equal cells and the degree of generalization (\[HCE] "Generalization"; docs/internals/methods.md §15.1).

use crate::domain::Domain;
use hashbrown::HashMap;

/// Distinct tuples of a set of rows.
#[derive(Clone, Debug, Default)]
pub struct DistinctTuples {
    /// Values by attribute and tuple.
    pub columns: Vec<Vec<u32>>,
    /// Number of rows with each tuple.
    pub counts: Vec<u32>,
    /// Tuple by row; [`u32::MAX`] for rows outside the set.
    pub tuple_of_row: Vec<u32>,
}

impl DistinctTuples {
    /// Collects the distinct tuples of `rows` of `columns`.
    pub fn new(columns: &[Vec<u32>], rows: &[u32]) -> Self {
        let length = columns.first().map_or(0, Vec::len);
        let (mut of, mut counts) = (vec![u32::MAX; length], Vec::new());
        let mut number: HashMap<Box<[u32]>, u32> = HashMap::new();
        let mut distinct: Vec<Vec<u32>> = vec![Vec::new(); columns.len()];
        for &row in rows {
            let tuple: Box<[u32]> = columns.iter().map(|column| column[row as usize]).collect();
            let next = counts.len() as u32;
            let tuple = *number.entry(tuple).or_insert_with_key(|tuple| {
                distinct.iter_mut().zip(tuple).for_each(|(column, &value)| column.push(value));
                counts.push(0);
                next
            });
            of[row as usize] = tuple;
            counts[tuple as usize] += 1;
        }
        Self { columns: distinct, counts, tuple_of_row: of }
    }

    /// Returns the class of each tuple under a policy, and the number of classes.
    pub fn partition(&self, domains: &[Domain], policy: &[u8]) -> (Vec<u32>, usize) {
        let mut class = vec![0u32; self.counts.len()];
        let mut classes = usize::from(!class.is_empty());
        let mut number: HashMap<u64, u32> = HashMap::new();
        for ((column, domain), &level) in self.columns.iter().zip(domains).zip(policy) {
            let level = &domain.levels()[usize::from(level)];
            if level.cells() <= 1 {
                continue;
            }
            number.clear();
            for (class, &value) in class.iter_mut().zip(column) {
                let key = u64::from(*class) << 32 | u64::from(level.cell_of[value as usize]);
                let next = number.len() as u32;
                *class = *number.entry(key).or_insert(next);
            }
            classes = number.len();
        }
        (class, classes)
    }

    /// Returns the rows of each class.
    pub fn sizes(&self, class: &[u32], classes: usize) -> Vec<u32> {
        let mut sizes = vec![0; classes];
        class.iter().zip(&self.counts).for_each(|(&class, &count)| sizes[class as usize] += count);
        sizes
    }
}

const DEGREE_TOLERANCE: f64 = 1e-9;

/// Returns D(r): the mean Loss, in [0, 1], of a record with these `values`.
pub fn degree(domains: &[Domain], policy: &[u8], values: impl Iterator<Item = u32>) -> f64 {
    let loss = |((domain, &level), value): ((&Domain, &u8), u32)| {
        let level = &domain.levels()[usize::from(level)];
        level.loss[level.cell_of[value as usize] as usize]
    };
    domains.iter().zip(policy).zip(values).map(loss).sum::<f64>() / domains.len().max(1) as f64
}

/// Returns the highest degree of `rows`, or 0 without rows; never falls under generalization.
pub fn max_degree(domains: &[Domain], columns: &[Vec<u32>], rows: &[u32], policy: &[u8]) -> f64 {
    let of = |&row: &u32| degree(domains, policy, columns.iter().map(|column| column[row as usize]));
    rows.iter().map(of).fold(0.0, f64::max)
}

/// Returns true if a degree is at most h.
pub fn is_within_ceiling(degree: f64, h: f64) -> bool {
    degree <= h + DEGREE_TOLERANCE
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::HierarchyLevel;

    /// \[HCE] "Generalization": ages 35 to 66 of 0 to 99, one of two sexes, 33,254 of 100,000 zip codes. D = (0.31 + 1
    /// + 0.33) / 3.
    #[test]
    fn degree_matches_paper_example() {
        let domain = |loss: f64| {
            let raw = HierarchyLevel { cell_of: vec![0, 1], loss: vec![0.0, 0.0] };
            Domain::new("a", vec![raw, HierarchyLevel { cell_of: vec![0, 0], loss: vec![loss] }]).unwrap()
        };
        let domains = [domain(31.0 / 99.0), domain(1.0), domain(33253.0 / 99999.0)];
        let degree = degree(&domains, &[1, 1, 1], [0, 0, 1].into_iter());
        assert!((degree - 0.55).abs() < 0.005, "{degree}");
        assert_eq!(max_degree(&domains, &[vec![0, 1], vec![0, 0], vec![1, 1]], &[0, 1], &[0, 0, 0]), 0.0);
        assert!(
            is_within_ceiling(0.3, 0.1 + 0.2) && is_within_ceiling(0.1 + 0.2, 0.3) && !is_within_ceiling(0.31, 0.3)
        );
    }
}
