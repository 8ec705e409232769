//! Micro-aggregation of the classes that leave.

use super::codes::Wanted;
use super::data::Data;
use super::error::{AnonymizeError, named, problem};
use super::kept::Kept;
use super::read::Input;
use crate::anonymity::lattice::table::NOBODY;
use crate::anonymity::microaggregation::{Distortion, Resolution, mean};
use crate::config::Config;
use crate::release::aggregates::AggregateTerms;
use std::collections::{BTreeMap, BTreeSet};
use throng_core::values::canonical::Canonical;
use throng_core::values::codebook::{CellId, Code, SUPPRESSED};
use throng_core::values::raw::Token;
use throng_core::values::schema::Schema;

/// An attribute whose cells are to be aggregates.
#[derive(Clone, Copy, Debug)]
pub struct AggregateQuestion {
    /// Position in the schema.
    pub attribute: usize,
    resolution: Resolution,
}

/// What micro-aggregation made of one attribute.
#[derive(Clone, Debug)]
pub struct Aggregated {
    /// Its name in the schema.
    pub attribute: String,
    /// Share of the variance that is lost, over the cells that show an aggregate.
    pub distortion: f64,
    /// Cells that show `*`, since too few of their class have a number.
    pub withheld: u64,
}

/// What `anonymize.microaggregation` asks for.
pub fn asked(config: &Config, file: &str, schema: &Schema) -> Result<Vec<AggregateQuestion>, AnonymizeError> {
    let mut asked: Vec<AggregateQuestion> = Vec::new();
    for name in &config.anonymize.microaggregation {
        let refuse =
            |message: String, remedy| Err(problem(file, "anonymize.microaggregation".to_owned(), message, remedy));
        let Some(position) = schema.position(name) else {
            return refuse(format!("the schema has no attribute {name:?}"), "correct the name");
        };
        let attribute = &schema.attributes[position];
        if !attribute.role.is_quasi() {
            let role = attribute.role.name();
            return refuse(
                format!("{name:?} has the role {role}, and classes are formed by quasi ones"),
                "name another",
            );
        }
        let Some(resolution) = Resolution::of(&attribute.typing) else {
            let message = format!("{name:?} has no numbers of a known resolution ({})", named(&config.schema.file));
            return refuse(message, "give the type integer, or float with a rounding step");
        };
        if asked.iter().any(|other| other.attribute == position) {
            return refuse(format!("{name:?} is named twice"), "name it once");
        }
        asked.push(AggregateQuestion { attribute: position, resolution });
    }
    Ok(asked)
}

/// Replaces the cells of every class by its aggregates: `*` where fewer than `k` people of the class have a number, what it was where nobody has.
///
/// Memory: 8 bytes a number, and k people a class.
pub fn aggregate(
    data: &mut Data,
    asked: &[AggregateQuestion],
    kept: &mut Kept,
    k: usize,
) -> Result<Vec<Aggregated>, AnonymizeError> {
    let mut done = Vec::with_capacity(asked.len());
    if asked.is_empty() {
        return Ok(done);
    }
    // The classes are those of the policies: before any cell is replaced.
    let mut classes: BTreeMap<Vec<CellId>, Vec<u32>> = BTreeMap::new();
    for found in 0..kept.len() as u32 {
        classes.entry(kept.cells(found).to_vec()).or_default().push(found);
    }
    for wanted in asked {
        let quasi = data.input.quasi.iter().position(|&a| a == wanted.attribute).unwrap_or_default();
        let members = members(data, kept, wanted, k)?;
        let (mut distortion, mut withheld) = (Distortion::default(), 0);
        for found in classes.values() {
            let mut class = Members::default();
            found.iter().for_each(|&found| class.join(&members[found as usize], k));
            if class.numbers.is_empty() {
                continue;
            }
            class.numbers.sort_unstable();
            let steps: Vec<i64> = class.numbers.iter().map(|&(_, steps)| steps).collect();
            let shown = mean(&steps).filter(|_| class.people.len() >= k);
            let cell = shown.and_then(|shown| cell(&mut data.input, wanted, shown));
            found.iter().for_each(|&found| *kept.cell_mut(found, quasi) = cell.unwrap_or(SUPPRESSED));
            match (cell, shown) {
                (Some(_), Some(shown)) => steps.iter().for_each(|&number| distortion.add(number, shown)),
                _ => withheld += class.records,
            }
        }
        done.push(Aggregated {
            attribute: data.input.schema.attributes[wanted.attribute].name.clone(),
            distortion: distortion.share(),
            withheld,
        });
    }
    kept.join(&data.input.books, &data.input.quasi);
    Ok(done)
}

/// The members of a class.
#[derive(Clone, Default)]
struct Members {
    records: u64,
    /// Records that have a number, and the steps of it.
    numbers: Vec<(u32, i64)>,
    /// Those of them who are somebody, k at the most.
    people: BTreeSet<u32>,
}

impl Members {
    fn add(&mut self, person: u32, k: usize) {
        if person != NOBODY && self.people.len() < k {
            self.people.insert(person);
        }
    }

    fn join(&mut self, other: &Self, k: usize) {
        self.records += other.records;
        self.numbers.extend(&other.numbers);
        other.people.iter().for_each(|&person| self.add(person, k));
    }
}

/// By class that was found: its members.
fn members(data: &Data, kept: &Kept, wanted: &AggregateQuestion, k: usize) -> Result<Vec<Members>, AnonymizeError> {
    let book = &data.input.books[wanted.attribute];
    let at = data.input.quasi.iter().position(|&a| a == wanted.attribute).unwrap_or_default();
    let mut members = vec![Members::default(); kept.len()];
    data.codes.each(Wanted { attributes: &data.input.quasi, people: true, ..Wanted::default() }, &mut |block| {
        for &row in &block.released {
            let Some(found) = kept.found(block, row) else { continue };
            let class = &mut members[found as usize];
            class.records += 1;
            let text = book.canonical(block.codes[at][row as usize]);
            if text.is_empty() || text == "null" {
                continue;
            }
            let steps = wanted.resolution.steps(text).ok_or_else(|| too_long(&data.input, wanted))?;
            class.numbers.push((block.start as u32 + row, steps));
            class.add(block.people[row as usize], k);
        }
        Ok(())
    })?;
    Ok(members)
}

/// The cell of an aggregate; none where its text would be read back as something else, as a spelling of missing is.
fn cell(input: &mut Input, wanted: &AggregateQuestion, steps: i64) -> Option<CellId> {
    let text = wanted.resolution.number(steps);
    let mut canonical = String::new();
    let typing = input.schema.attributes[wanted.attribute].typing.converted_already();
    let read = typing.canonical(Token::Number(&text), &mut canonical);
    if read != Ok(Canonical::Value) || canonical != text {
        return None;
    }
    input.books[wanted.attribute].aggregate(&text)
}

fn too_long(input: &Input, wanted: &AggregateQuestion) -> AnonymizeError {
    let name = &input.schema.attributes[wanted.attribute].name;
    let message = format!("attribute {name:?} has a number that its rounding step does not divide, or too large a one");
    problem("the input", name, message, "correct the number, or take the attribute out of anonymize.microaggregation")
}

/// What the verifier must know of the aggregates of a part, which has these codes by attribute of the schema.
pub fn terms<'a>(input: &'a Input, codes: &'a [Vec<Code>], asked: &[AggregateQuestion]) -> Vec<AggregateTerms<'a>> {
    let of = |asked: &AggregateQuestion| {
        let column = input.leaving.iter().position(|&a| a == asked.attribute).unwrap_or_default();
        let (book, codes) = (&input.books[asked.attribute], &codes[asked.attribute]);
        AggregateTerms {
            column,
            typing: &input.schema.attributes[asked.attribute].typing,
            text: Box::new(|row: u32| book.canonical(codes[row as usize])),
        }
    };
    asked.iter().map(of).collect()
}
