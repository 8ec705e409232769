//! Rows as classes of equal cells, numbered.

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
    #[must_use]
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
    #[must_use]
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
    #[must_use]
    pub fn sizes(&self, class: &[u32], classes: usize) -> Vec<u32> {
        let mut sizes = vec![0; classes];
        class.iter().zip(&self.counts).for_each(|(&class, &count)| sizes[class as usize] += count);
        sizes
    }
}
