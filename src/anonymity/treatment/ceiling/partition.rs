//! Rows as classes of equal cells, numbered, and how far they are generalized ([HCE] "Generalization"; docs/methods.md §15.1).

use crate::anonymity::domain::Domain;
use hashbrown::HashMap;

/// The distinct tuples of some rows, and which one each row has.
#[derive(Clone, Debug, Default)]
pub struct Tuples {
    /// By attribute and tuple: its value.
    pub columns: Vec<Vec<u32>>,
    /// How many of the rows have it.
    pub counts: Vec<u32>,
    /// By row of the table: its tuple; [`u32::MAX`] for rows that were not asked for.
    pub of: Vec<u32>,
}

impl Tuples {
    /// The tuples of `rows` of `columns`.
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
        Self { columns: distinct, counts, of }
    }

    /// By tuple: its class under a policy, numbered in the order of the tuples; and the number of classes.
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

    /// How many rows each class of a partition has.
    pub fn sizes(&self, class: &[u32], classes: usize) -> Vec<u32> {
        let mut sizes = vec![0; classes];
        class.iter().zip(&self.counts).for_each(|(&class, &count)| sizes[class as usize] += count);
        sizes
    }
}

/// What degrees that are equal may differ by.
const SLACK: f64 = 1e-9;

/// D(r): the mean Loss of the cells of a record with these `values` under a policy, in [0, 1].
pub fn degree(domains: &[Domain], policy: &[u8], values: impl Iterator<Item = u32>) -> f64 {
    let loss = |((domain, &level), value): ((&Domain, &u8), u32)| {
        let level = &domain.levels()[usize::from(level)];
        level.loss[level.cell_of[value as usize] as usize]
    };
    domains.iter().zip(policy).zip(values).map(loss).sum::<f64>() / domains.len().max(1) as f64
}

/// The highest degree of the `rows` of `columns` under a policy; 0 without rows. Never falls from a policy to its
/// generalizations, since no cell's Loss does.
pub fn highest(domains: &[Domain], columns: &[Vec<u32>], rows: &[u32], policy: &[u8]) -> f64 {
    let of = |&row: &u32| degree(domains, policy, columns.iter().map(|column| column[row as usize]));
    rows.iter().map(of).fold(0.0, f64::max)
}

/// Whether a degree is at most h.
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
