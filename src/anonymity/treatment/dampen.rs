//! Dampening (docs/methods.md §10.4; [POD] §5.1.3, Example 5): a risky inference is lowered toward the mean by
//! exchanging values between records of one batch.
//!
//! What holds: every column keeps its multiset of values; no risky inference is raised; a value goes to a record of
//! another subject; at most a stated share of a column's cells changes, each once. What is printed then is treated and
//! verified like any other batch, so R(k) holds of the printed tuples. What does not hold: an altered record is not
//! true, and among the subjects of its class it stands for nobody who really has the tuple (docs/model-multigrid.md).

use crate::anonymity::treatment::crowd::NO_SUBJECT;
use crate::records::codebook::{Code, FIRST_VALUE};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

/// Partners looked at for one record, at most.
const MOST_TRIES: usize = 64;

/// A value of an attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Value {
    /// Position in the schema.
    pub attribute: usize,
    /// Its code.
    pub code: Code,
}

/// An inference that tells too much: whoever has `given` has `inferred` too.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct RiskyInference {
    /// What an observer knows.
    pub given: Value,
    /// Of another attribute; no missing value.
    pub inferred: Value,
    /// What P(inferred|given) is to come down to in this batch, in [0, 1].
    pub target: f64,
}

/// Two records exchange their values of an attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// Position in the schema.
    pub attribute: usize,
    /// The one that had the inferred value, and its partner.
    pub rows: (u32, u32),
}

/// Exchanges values of `columns` (a column an attribute, a code a record) until each risky inference has come down to
/// its target, or nothing more may be exchanged. `most_altered` is the share of a column's cells that may change, in
/// [0, 1]. Records without a subject and missing values take no part.
///
/// Inferences are lowered in the order given, which should say nothing of codes: they depend on what came first since the
/// start. The same arguments give the same exchanges. `seed` is to be secret: with it and the raw batch they are known.
///
/// Time: for each inference the rows, and for each of its records [`MOST_TRIES`] partners with all inferences.
///
/// # Panics
/// If a column is shorter than `subjects`, or an inference names an attribute that is not there.
pub fn dampen(
    columns: &mut [Vec<Code>],
    subjects: &[u64],
    risky: &[RiskyInference],
    most_altered: f64,
    seed: [u8; 32],
) -> Vec<Exchange> {
    let risky: Vec<RiskyInference> =
        risky.iter().copied().filter(|r| r.given.attribute != r.inferred.attribute).collect();
    let mut batch = Dampening {
        altered: vec![Vec::new(); columns.len()],
        most_exchanges: (most_altered.clamp(0.0, 1.0) * subjects.len() as f64 / 2.0) as usize,
        dice: ChaCha8Rng::from_seed(seed),
        exchanges: Vec::new(),
        columns,
        subjects,
        risky: &risky,
    };
    risky.iter().for_each(|inference| batch.lower(inference));
    batch.exchanges
}

struct Dampening<'a> {
    columns: &'a mut [Vec<Code>],
    subjects: &'a [u64],
    risky: &'a [RiskyInference],
    /// Rows whose cell has changed, by attribute; empty until one has.
    altered: Vec<Vec<bool>>,
    /// Of one attribute.
    most_exchanges: usize,
    dice: ChaCha8Rng,
    exchanges: Vec<Exchange>,
}

impl Dampening<'_> {
    fn lower(&mut self, inference: &RiskyInference) {
        let RiskyInference { given, inferred, target } = *inference;
        let attribute = inferred.attribute;
        if inferred.code < FIRST_VALUE {
            return;
        }
        let all = || 0..self.subjects.len() as u32;
        let having = all().filter(|row| self.has(*row, given)).count();
        let both: Vec<u32> = all().filter(|row| self.has(*row, given) && self.has(*row, inferred)).collect();
        let allowed = (target.clamp(0.0, 1.0) * having as f64) as usize;
        let done = self.exchanges.iter().filter(|exchange| exchange.attribute == attribute).count();
        let wanted = both.len().saturating_sub(allowed).min(self.most_exchanges.saturating_sub(done));

        let mut leaving: Vec<u32> = both.into_iter().filter(|row| self.is_free(*row, attribute)).collect();
        let is_partner = |row: &u32| {
            let code = self.columns[attribute][*row as usize];
            !self.has(*row, given) && code != inferred.code && self.is_free(*row, attribute)
        };
        let mut partners: Vec<u32> = all().filter(is_partner).collect();
        leaving.shuffle(&mut self.dice);
        partners.shuffle(&mut self.dice);
        let mut left = wanted;
        for row in leaving {
            if left == 0 {
                break;
            }
            let fits = |partner: &u32| self.may_exchange(row, *partner, attribute);
            if let Some(at) = partners.iter().rev().take(MOST_TRIES).position(fits) {
                let partner = partners.remove(partners.len() - 1 - at);
                self.exchange(row, partner, attribute);
                left -= 1;
            }
        }
    }

    fn has(&self, row: u32, value: Value) -> bool {
        self.columns[value.attribute][row as usize] == value.code
    }

    /// A present value that has not moved, of a record that counts for somebody.
    fn is_free(&self, row: u32, attribute: usize) -> bool {
        let row = row as usize;
        self.subjects[row] != NO_SUBJECT
            && self.columns[attribute][row] >= FIRST_VALUE
            && !self.altered[attribute].get(row).copied().unwrap_or(false)
    }

    /// Are they two people's, and would no risky inference be raised?
    fn may_exchange(&self, row: u32, partner: u32, attribute: usize) -> bool {
        if self.subjects[row as usize] == self.subjects[partner as usize] {
            return false;
        }
        let column = &self.columns[attribute];
        let after = |at: u32, value: Value| {
            if value.attribute != attribute {
                return self.has(at, value);
            }
            column[if at == row { partner } else { row } as usize] == value.code
        };
        let touched = self.risky.iter().filter(|r| attribute == r.given.attribute || attribute == r.inferred.attribute);
        touched.into_iter().all(|r| {
            let had = [row, partner].iter().filter(|at| self.has(**at, r.given) && self.has(**at, r.inferred)).count();
            let has = [row, partner].iter().filter(|at| after(**at, r.given) && after(**at, r.inferred)).count();
            has <= had
        })
    }

    fn exchange(&mut self, row: u32, partner: u32, attribute: usize) {
        self.columns[attribute].swap(row as usize, partner as usize);
        let altered = &mut self.altered[attribute];
        altered.resize(self.subjects.len(), false);
        (altered[row as usize], altered[partner as usize]) = (true, true);
        self.exchanges.push(Exchange { attribute, rows: (row, partner) });
    }
}

#[cfg(test)]
mod tests;
