//! What the models claim, in the words of the verifiers.

use super::aggregate::AggregateQuestion;
use super::data::Data;
use super::error::AnonymizeError;
use super::read::Input;
use crate::anonymity::lattice::coding::put_in_order;
use crate::anonymity::lattice::table::NOBODY;
use crate::anonymity::privacy::Model;
use crate::release::models::SensitiveTerms;
use crate::release::population::{self, Population};
use std::collections::BTreeMap;
use throng_core::values::codebook::Code;

/// What the models claim of each sensitive attribute.
pub fn of_values(data: &Data, models: &[Model]) -> Vec<SensitiveTerms> {
    let of = |(position, &attribute): (usize, &usize)| {
        let claim = |model: &Model| match model {
            Model::Sensitive { attribute, of } if *attribute == position => Some(of.clone()),
            _ => None,
        };
        let claims = models.iter().filter_map(claim).collect();
        let (book, values) = (&data.input.books[attribute], &data.sensitive[position]);
        let counts: BTreeMap<u32, u64> = values.codes.iter().copied().zip(values.counts.iter().copied()).collect();
        let all = counts.values().sum::<u64>() as f64;
        // The order of the search's domain, which an ordered distance goes by.
        let mut codes: Vec<u32> = counts.keys().copied().collect();
        put_in_order(book, &mut codes);
        SensitiveTerms {
            column: data.input.leaving.iter().position(|&a| a == attribute).unwrap_or_default(),
            texts: codes.iter().map(|&code| book.text(book.cell(code, 0)).to_owned()).collect(),
            shares: codes.iter().map(|code| counts[code] as f64 / all).collect(),
            claims,
        }
    };
    data.input.sensitive.iter().enumerate().map(of).collect()
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
pub struct Members {
    /// By quasi attribute: the codes.
    codes: Vec<Vec<Code>>,
    people: Vec<Option<u64>>,
}

impl Members {
    /// Those of `data`, where `claims` ask for them.
    pub fn of(data: &Data, claims: &[population::Claim]) -> Result<Self, AnonymizeError> {
        if claims.is_empty() {
            return Ok(Self { codes: Vec::new(), people: Vec::new() });
        }
        let (codes, people, _) = data.codes.all(&data.input.quasi)?;
        let person = |person: u32| (person != NOBODY).then_some(u64::from(person));
        Ok(Self { codes, people: people.into_iter().map(person).collect() })
    }

    /// As verification is told; aggregates cover everybody.
    pub fn population<'a>(&'a self, input: &'a Input, aggregates: &[AggregateQuestion]) -> Population<'a> {
        let cell = |(codes, &attribute): (&'a Vec<Code>, &usize)| {
            let column = input.leaving.iter().position(|&a| a == attribute).unwrap_or_default();
            let covers = !aggregates.iter().any(|asked| asked.attribute == attribute);
            (column, covers.then(|| (&input.books[attribute], codes.as_slice())))
        };
        Population { attributes: self.codes.iter().zip(&input.quasi).map(cell).collect(), people: self.people.clone() }
    }
}
