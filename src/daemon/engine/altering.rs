//! Perturbation and micro-aggregation of a batch before its treatment: which numbers are alike in all else, group by group.

use super::fields::Engine;
use crate::anonymity::microaggregation::Resolution;
use crate::anonymity::treatment::alter::{Alteration, Number, altered};
use crate::records::canonical::Canonical;
use crate::records::codebook::{Code, FIRST_VALUE};
use crate::records::raw::Token;
use crate::records::schema::Treatment;
use crate::records::table::Batch;
use std::collections::HashMap;

impl Engine {
    /// Alters the numbers of the fresh records of `batch`, which stand behind `waiting` held ones, as the treatments of their attributes
    /// ask for. Held records were altered when they were fresh. Gives the number of cells that have changed.
    ///
    /// It is a function of what the batch says, not of codes or of the order of its records: a batch that is repeated is altered alike.
    pub(super) fn alter(&mut self, batch: &mut Batch, waiting: usize) -> u64 {
        let mut changed = 0;
        for number in 0..self.in_force.plan.groups.len() {
            let quasi = self.in_force.plan.groups[number].quasi.clone();
            for &attribute in &quasi {
                if self.in_force.plan.identifiers.contains(&attribute) {
                    continue;
                }
                let alteration = match self.schema.attributes[attribute].treatment {
                    Treatment::Perturb => Alteration::Closest,
                    Treatment::Aggregate => Alteration::Mean,
                    Treatment::Generalize | Treatment::SuppressCell | Treatment::SuppressRecord => continue,
                };
                let Some(resolution) = Resolution::of(&self.schema.attributes[attribute].typing) else { continue };
                let others: Vec<usize> = quasi.iter().copied().filter(|other| *other != attribute).collect();
                let mut codes: HashMap<i64, Option<Code>> = HashMap::new();
                for alike in self.alike(batch, waiting, attribute, &others, resolution) {
                    for (row, steps) in altered(alike, alteration, self.settings.policy.k) {
                        let code = *codes.entry(steps).or_insert_with(|| self.code_of(attribute, resolution, steps));
                        if let Some(code) = code {
                            batch.columns[attribute][row as usize] = code;
                            changed += 1;
                        }
                    }
                }
            }
        }
        changed
    }

    /// The numbers of `attribute` in the fresh rows, those of rows together that have the same codes of all `others`.
    fn alike(
        &self,
        batch: &Batch,
        waiting: usize,
        attribute: usize,
        others: &[usize],
        resolution: Resolution,
    ) -> Vec<Vec<Number>> {
        let (book, column) = (&self.coding.books[attribute], &batch.columns[attribute]);
        let mut alike: HashMap<Vec<Code>, Vec<Number>> = HashMap::new();
        for row in (waiting..batch.rows()).filter(|&row| column[row] >= FIRST_VALUE) {
            let Some(steps) = resolution.steps(book.canonical(column[row])) else { continue };
            let key = others.iter().map(|&other| batch.columns[other][row]).collect();
            let number =
                Number { row: u32::try_from(row).expect("a batch is bounded"), subject: batch.subjects[row], steps };
            alike.entry(key).or_default().push(number);
        }
        alike.into_values().collect()
    }

    /// The code of a number that may be nobody's; none where its text would be read back as something else, as a spelling of missing is.
    fn code_of(&mut self, attribute: usize, resolution: Resolution, steps: i64) -> Option<Code> {
        let text = resolution.number(steps);
        let mut canonical = String::new();
        let typing = self.schema.attributes[attribute].typing.converted_already();
        let read = typing.canonical(Token::Number(&text), &mut canonical);
        let is_itself = read == Ok(Canonical::Value) && canonical == text;
        is_itself.then(|| self.coding.books[attribute].encode_canonical(&text))
    }
}
