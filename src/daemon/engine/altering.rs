//! Perturbation and micro-aggregation of a batch before its treatment: which numbers are alike in all else, group by group.

use super::fields::Engine;
use crate::anonymity::treatment::alter::{Alteration, Number, altered};
use crate::records::codebook::{Code, FIRST_VALUE};
use crate::records::schema::Treatment;
use crate::records::table::Batch;
use std::collections::HashMap;

/// Whole numbers below this are told apart as doubles; larger ones are generalized.
const EXACT: f64 = 9_007_199_254_740_992.0;

impl Engine {
    /// Alters the numbers of the fresh records of `batch`, which stand behind `waiting` held ones, as the treatments of their attributes
    /// ask for. Held records were altered when they were fresh. Gives the number of cells that have changed.
    ///
    /// It is a function of what the batch says, not of codes or of the order of its records: a batch that is repeated is altered alike.
    pub(super) fn alter(&self, batch: &mut Batch, waiting: usize) -> u64 {
        let crowd = self.settings.policy.k;
        let mut changed = 0;
        for group in &self.in_force.plan.groups {
            for &attribute in group.quasi.iter().filter(|a| !self.in_force.plan.identifiers.contains(a)) {
                let alteration = match self.schema.attributes[attribute].treatment {
                    Treatment::Perturb => Alteration::Closest,
                    Treatment::Aggregate => Alteration::Median,
                    Treatment::Generalize | Treatment::SuppressCell | Treatment::SuppressRecord => continue,
                };
                let others: Vec<usize> = group.quasi.iter().copied().filter(|other| *other != attribute).collect();
                for alike in self.alike(batch, waiting, attribute, &others) {
                    for (row, code) in altered(alike, alteration, crowd) {
                        batch.columns[attribute][row as usize] = code;
                        changed += 1;
                    }
                }
            }
        }
        changed
    }

    /// The numbers of `attribute` in the fresh rows, those of rows together that have the same codes of all `others`.
    fn alike(&self, batch: &Batch, waiting: usize, attribute: usize, others: &[usize]) -> Vec<Vec<Number>> {
        let (book, column) = (&self.coding.books[attribute], &batch.columns[attribute]);
        let mut alike: HashMap<Vec<Code>, Vec<Number>> = HashMap::new();
        for row in waiting..batch.rows() {
            let code = column[row];
            if code < FIRST_VALUE {
                continue;
            }
            let Some(value) = book.canonical(code).parse().ok().filter(|value: &f64| value.abs() < EXACT) else {
                continue;
            };
            let key = others.iter().map(|&other| batch.columns[other][row]).collect();
            let row = u32::try_from(row).expect("a batch is bounded");
            alike.entry(key).or_default().push(Number { row, subject: batch.subjects[row as usize], value, code });
        }
        alike.into_values().collect()
    }
}
