//! What the models claim, in the words of the verifiers.

use super::aggregate::AggregateQuestion;
use super::read::Input;
use crate::anonymity::lattice::coding::put_in_order;
use crate::anonymity::lattice::table::NOBODY;
use crate::anonymity::privacy::Model;
use crate::release::models::SensitiveTerms;
use crate::release::population::{self, Population};
use crate::start::protections::claim;
use std::collections::BTreeMap;

/// What the models claim of each sensitive attribute.
pub fn of_values(input: &Input, attributes: &[usize], models: &[Model]) -> Vec<SensitiveTerms> {
    let counts = |attribute: usize| {
        let released = |row: usize| input.released.as_ref().is_none_or(|marks| marks[row]);
        let mut counts: BTreeMap<u32, u64> = BTreeMap::new();
        for (row, &code) in input.batch.columns[attribute].iter().enumerate() {
            *counts.entry(code).or_default() += u64::from(released(row));
        }
        counts
    };
    of_counts(input, attributes, models, &|position| counts(input.sensitive[position]))
}

/// The same of a sensitive attribute by its position among them; `counts` gives the records to be released by each code that occurs.
pub fn of_counts(
    input: &Input,
    attributes: &[usize],
    models: &[Model],
    counts: &dyn Fn(usize) -> BTreeMap<u32, u64>,
) -> Vec<SensitiveTerms> {
    let of = |(position, &attribute): (usize, &usize)| {
        let claims = models.iter().filter(|model| model.attribute() == Some(position)).filter_map(claim).collect();
        let (book, counts) = (&input.books[attribute], counts(position));
        let all = counts.values().sum::<u64>() as f64;
        // The order of the search's domain, which an ordered distance goes by.
        let mut codes: Vec<u32> = counts.keys().copied().collect();
        put_in_order(book, &mut codes);
        SensitiveTerms {
            column: attributes.iter().position(|&a| a == attribute).unwrap_or_default(),
            texts: codes.iter().map(|&code| book.text(book.cell(code, 0)).to_owned()).collect(),
            shares: codes.iter().map(|code| counts[code] as f64 / all).collect(),
            claims,
        }
    };
    input.sensitive.iter().enumerate().map(of).collect()
}

/// What they claim of the population.
pub fn of_population(models: &[Model]) -> Vec<population::Claim> {
    let claim = |model: &Model| match *model {
        Model::KMap { k } => Some(population::Claim::Map { k }),
        Model::Presence { min, max } => Some(population::Claim::Presence { min, max }),
        _ => None,
    };
    models.iter().filter_map(claim).collect()
}

/// The population that those claims speak of: every record read.
pub fn population<'a>(input: &'a Input, attributes: &[usize], aggregates: &[AggregateQuestion]) -> Population<'a> {
    let cell = |&attribute: &usize| {
        let column = attributes.iter().position(|&a| a == attribute).unwrap_or_default();
        let covers = !aggregates.iter().any(|asked| asked.attribute == attribute);
        (column, covers.then(|| (&input.books[attribute], input.batch.columns[attribute].as_slice())))
    };
    let person = |row: usize| match &input.subjects {
        None => Some(row as u64),
        Some(subjects) => (subjects[row] != NOBODY).then(|| u64::from(subjects[row])),
    };
    Population {
        attributes: input.quasi.iter().map(cell).collect(),
        people: (0..input.batch.rows()).map(person).collect(),
    }
}
