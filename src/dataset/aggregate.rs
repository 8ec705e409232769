//! Micro-aggregation of the classes that leave.

use super::error::{AnonymizeError, named, problem};
use super::read::Input;
use crate::anonymity::lattice::table::NOBODY;
use crate::anonymity::microaggregation::{Distortion, Resolution, mean};
use crate::config::Config;
use crate::records::canonical::Canonical;
use crate::records::codebook::{CellId, SUPPRESSED};
use crate::records::raw::Token;
use crate::records::schema::Schema;
use crate::release::aggregates::AggregateTerms;
use std::collections::{BTreeMap, BTreeSet};

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

/// Replaces the `cells` (by attribute that leaves, and row of `rows`) of every class by its aggregate: `*` where fewer than
/// `k` people of the class have a number, what it was where nobody has.
pub fn aggregate(
    input: &mut Input,
    asked: &[AggregateQuestion],
    rows: &[usize],
    cells: &mut [Vec<CellId>],
    k: usize,
) -> Result<Vec<Aggregated>, AnonymizeError> {
    let mut done = Vec::with_capacity(asked.len());
    if asked.is_empty() {
        return Ok(done);
    }
    // The classes are those of the policies: before any cell is replaced.
    let mut classes: BTreeMap<Vec<CellId>, Vec<usize>> = BTreeMap::new();
    let quasi: Vec<usize> = (0..input.leaving.len()).filter(|&at| input.quasi.contains(&input.leaving[at])).collect();
    for at in 0..rows.len() {
        classes.entry(quasi.iter().map(|&column| cells[column][at]).collect()).or_default().push(at);
    }
    for wanted in asked {
        let column = input.leaving.iter().position(|&a| a == wanted.attribute).unwrap_or_default();
        let (mut distortion, mut withheld) = (Distortion::default(), 0);
        for members in classes.values() {
            let mut numbers: Vec<(usize, i64)> = Vec::with_capacity(members.len());
            for &at in members {
                let code = input.batch.columns[wanted.attribute][rows[at]];
                let text = input.books[wanted.attribute].canonical(code);
                if text.is_empty() || text == "null" {
                    continue;
                }
                numbers.push((at, wanted.resolution.steps(text).ok_or_else(|| too_long(input, wanted))?));
            }
            if numbers.is_empty() {
                continue;
            }
            let person = |at: usize| input.subjects.as_ref().map_or(rows[at] as u32, |of| of[rows[at]]);
            let people: BTreeSet<u32> =
                numbers.iter().map(|&(at, _)| person(at)).filter(|&person| person != NOBODY).collect();
            let steps: Vec<i64> = numbers.iter().map(|&(_, steps)| steps).collect();
            let shown = mean(&steps).filter(|_| people.len() >= k);
            let cell = shown.and_then(|shown| cell(input, wanted, shown));
            for &at in members {
                cells[column][at] = cell.unwrap_or(SUPPRESSED);
            }
            match (cell, shown) {
                (Some(_), Some(shown)) => numbers.iter().for_each(|&(_, number)| distortion.add(number, shown)),
                _ => withheld += members.len() as u64,
            }
        }
        done.push(Aggregated {
            attribute: input.schema.attributes[wanted.attribute].name.clone(),
            distortion: distortion.share(),
            withheld,
        });
    }
    Ok(done)
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

/// What the verifier must know of the aggregates.
pub fn terms<'a>(input: &'a Input, attributes: &[usize], asked: &[AggregateQuestion]) -> Vec<AggregateTerms<'a>> {
    let of = |asked: &AggregateQuestion| {
        let (book, column) = (&input.books[asked.attribute], &input.batch.columns[asked.attribute]);
        AggregateTerms {
            column: attributes.iter().position(|&a| a == asked.attribute).unwrap_or_default(),
            typing: &input.schema.attributes[asked.attribute].typing,
            text: Box::new(|row: u32| book.canonical(column[row as usize])),
        }
    };
    asked.iter().map(of).collect()
}
