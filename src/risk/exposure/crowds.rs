//! The class of every row over a set of attributes.

use hashbrown::HashMap;

use crate::counting::{AttributeSet, CountedTable};

/// Rows that share their values over a set, and the support of each such class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Crowds {
    /// The class of each row, numbered in the order of first appearance.
    pub class_of: Vec<u32>,
    /// Distinct subjects of each class; its records where the table has no subjects.
    pub supports: Vec<u32>,
    /// Records of each class.
    pub records: Vec<u32>,
    /// Distinct subjects of the table, or its records.
    pub people: u64,
}

impl Crowds {
    /// Splits the rows attribute by attribute.
    ///
    /// Time: rows × attributes, fewer once every row is alone. Memory: at most 32 bytes a row.
    ///
    /// # Panics
    /// When the set names a column that the table does not have.
    #[must_use]
    pub fn of(table: &CountedTable, set: &AttributeSet) -> Self {
        let mut class_of = vec![0_u32; table.rows()];
        let mut classes = usize::from(table.rows() > 0);
        for attribute in set.iter() {
            // A class of one row stays one; so does the whole partition once all are.
            if classes == table.rows() {
                break;
            }
            classes = split(&mut class_of, classes, table.column(attribute), table.cardinality(attribute));
        }
        let mut records = vec![0_u32; classes];
        for &class in &class_of {
            records[class as usize] += 1;
        }
        let supports = match table.subject_numbers() {
            None => records.clone(),
            Some(subjects) => people_of(&class_of, classes, subjects),
        };
        Self { class_of, supports, records, people: table.support() as u64 }
    }

    /// Whether each row is in a class of a support below k.
    pub fn below(&self, k: u32) -> impl Iterator<Item = bool> + '_ {
        self.class_of.iter().map(move |&class| self.supports[class as usize] < k)
    }
}

/// The support of every class: distinct subjects where there are some, else rows.
pub(super) fn supports_of(class_of: &[u32], classes: usize, subjects: Option<&[u32]>) -> Vec<u32> {
    if let Some(subjects) = subjects {
        return people_of(class_of, classes, subjects);
    }
    let mut supports = vec![0_u32; classes];
    for &class in class_of {
        supports[class as usize] += 1;
    }
    supports
}

/// Distinct subjects of each class.
fn people_of(class_of: &[u32], classes: usize, subjects: &[u32]) -> Vec<u32> {
    let mut pairs: Vec<u64> =
        class_of.iter().zip(subjects).map(|(&class, &subject)| u64::from(class) << 32 | u64::from(subject)).collect();
    pairs.sort_unstable();
    pairs.dedup();
    let mut supports = vec![0_u32; classes];
    for pair in pairs {
        supports[(pair >> 32) as usize] += 1;
    }
    supports
}

/// Splits every class by a column; classes are numbered anew in the order of first appearance.
pub(super) fn split(class_of: &mut [u32], classes: usize, codes: &[u32], cardinality: usize) -> usize {
    let mut next = 0_u32;
    let mut number = || {
        next += 1;
        next - 1
    };
    let cells = classes.saturating_mul(cardinality);
    if cells <= 4 * codes.len() + 1024 {
        let mut numbers = vec![u32::MAX; cells];
        for (class, &code) in class_of.iter_mut().zip(codes) {
            let entry = &mut numbers[*class as usize * cardinality + code as usize];
            if *entry == u32::MAX {
                *entry = number();
            }
            *class = *entry;
        }
    } else {
        let mut numbers: HashMap<u64, u32> = HashMap::new();
        for (class, &code) in class_of.iter_mut().zip(codes) {
            *class = *numbers.entry(u64::from(*class) << 32 | u64::from(code)).or_insert_with(&mut number);
        }
    }
    next as usize
}
