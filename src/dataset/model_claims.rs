//! Translates models into claims for the verifier.

use super::encoded_dataset::EncodedDataset;
use super::error::AnonymizeError;
use super::input_encoding::DatasetInput;
use super::microaggregated_cells::MicroaggregationTarget;
use std::collections::BTreeMap;
use throng_core::lattice::attribute_coding::sort_codes_by_value;
use throng_core::lattice::table::UNCOUNTED_SUBJECT;
use throng_core::privacy::ClassPrivacyModel;
use throng_core::release::models::SensitiveTerms;
use throng_core::release::population::{self, PopulationTerms};
use throng_core::values::codebook::Code;

/// Returns the claims about each sensitive attribute.
pub fn sensitive_claims(data: &EncodedDataset, models: &[ClassPrivacyModel]) -> Vec<SensitiveTerms> {
    let of = |(position, &attribute): (usize, &usize)| {
        let claim = |model: &ClassPrivacyModel| match model {
            ClassPrivacyModel::Sensitive { attribute, of } if *attribute == position => Some(of.clone()),
            _ => None,
        };
        let claims = models.iter().filter_map(claim).collect();
        let (book, values) = (&data.input.books[attribute], &data.sensitive[position]);
        let counts: BTreeMap<u32, u64> = values.codes.iter().copied().zip(values.counts.iter().copied()).collect();
        let all = counts.values().sum::<u64>() as f64;
        // An ordered distance depends on the search's order.
        let mut codes: Vec<u32> = counts.keys().copied().collect();
        sort_codes_by_value(book, &mut codes);
        SensitiveTerms {
            column: data.input.released_attributes.iter().position(|&a| a == attribute).unwrap_or_default(),
            texts: codes.iter().map(|&code| book.text(book.cell(code, 0)).to_owned()).collect(),
            shares: codes.iter().map(|code| counts[code] as f64 / all).collect(),
            claims,
        }
    };
    data.input.sensitive.iter().enumerate().map(of).collect()
}

/// Returns the claims about the population.
pub fn population_claims(models: &[ClassPrivacyModel]) -> Vec<population::PopulationClaim> {
    let claim = |model: &ClassPrivacyModel| match *model {
        ClassPrivacyModel::KMap { k } => Some(population::PopulationClaim::Map { k }),
        ClassPrivacyModel::Presence { min, max } => Some(population::PopulationClaim::Presence { min, max }),
        _ => None,
    };
    models.iter().filter_map(claim).collect()
}

/// Population: every record read.
pub struct PopulationMembers {
    /// Per quasi attribute.
    codes: Vec<Vec<Code>>,
    people: Vec<Option<u64>>,
}

impl PopulationMembers {
    /// Collects the population that `claims` need.
    pub fn of(data: &EncodedDataset, claims: &[population::PopulationClaim]) -> Result<Self, AnonymizeError> {
        if claims.is_empty() {
            return Ok(Self { codes: Vec::new(), people: Vec::new() });
        }
        let (codes, people, _) = data.codes.read_all_records(&data.input.quasi)?;
        let person = |person: u32| (person != UNCOUNTED_SUBJECT).then_some(u64::from(person));
        Ok(Self { codes, people: people.into_iter().map(person).collect() })
    }

    /// Converts for the verifier; aggregated attributes cover every member.
    pub fn population<'a>(
        &'a self,
        input: &'a DatasetInput,
        aggregates: &[MicroaggregationTarget],
    ) -> PopulationTerms<'a> {
        let cell = |(codes, &attribute): (&'a Vec<Code>, &usize)| {
            let column = input.released_attributes.iter().position(|&a| a == attribute).unwrap_or_default();
            let covers = !aggregates.iter().any(|asked| asked.attribute == attribute);
            (column, covers.then(|| (&input.books[attribute], codes.as_slice())))
        };
        PopulationTerms {
            attributes: self.codes.iter().zip(&input.quasi).map(cell).collect(),
            people: self.people.clone(),
        }
    }
}
