//! Micro-aggregation of classes.

use super::class_lookup::ReleasedClasses;
use super::code_store::RecordFields;
use super::encoded_dataset::EncodedDataset;
use super::error::{AnonymizeError, file_label, operator_error};
use super::input_encoding::DatasetInput;
use crate::config::Config;
use std::collections::{BTreeMap, BTreeSet};
use throng_core::lattice::table::UNCOUNTED_SUBJECT;
use throng_core::microaggregation::{Distortion, NumericResolution, rounded_mean};
use throng_core::release::aggregates::AggregateTerms;
use throng_core::values::canonical::CanonicalKind;
use throng_core::values::codebook::{CellId, Code, SUPPRESSED};
use throng_core::values::raw_batch::RawToken;
use throng_core::values::schema::Schema;

/// Attribute to aggregate.
#[derive(Clone, Copy, Debug)]
pub struct MicroaggregationTarget {
    /// Schema position.
    pub attribute: usize,
    resolution: NumericResolution,
}

/// Result for one attribute.
#[derive(Clone, Debug)]
pub struct MicroaggregationReport {
    /// Its name.
    pub attribute: String,
    /// Lost share of the variance of aggregated cells.
    pub distortion: f64,
    /// Cells shown as `*`: too few subjects have a number.
    pub withheld: u64,
}

/// Validates `anonymize.microaggregation`.
pub fn microaggregation_targets(
    config: &Config,
    file: &str,
    schema: &Schema,
) -> Result<Vec<MicroaggregationTarget>, AnonymizeError> {
    let mut asked: Vec<MicroaggregationTarget> = Vec::new();
    for name in &config.anonymize.microaggregation {
        let refuse = |message: String, remedy| {
            Err(operator_error(file, "anonymize.microaggregation".to_owned(), message, remedy))
        };
        let Some(position) = schema.position(name) else {
            return refuse(format!("the schema has no attribute {name:?}"), "correct the name");
        };
        let attribute = &schema.attributes[position];
        if !attribute.role.is_quasi() {
            let role = attribute.role.name();
            return refuse(
                format!("{name:?} has the role {role}, but only quasi attributes are aggregated"),
                "name a quasi attribute",
            );
        }
        let Some(resolution) = NumericResolution::of(&attribute.typing) else {
            let message =
                format!("{name:?} has no numbers of a known resolution ({})", file_label(&config.schema.file));
            return refuse(message, "give the type integer, or float with a rounding step");
        };
        if asked.iter().any(|other| other.attribute == position) {
            return refuse(format!("{name:?} is named twice"), "name it once");
        }
        asked.push(MicroaggregationTarget { attribute: position, resolution });
    }
    Ok(asked)
}

/// Replaces the cells of every class by its aggregate; `*` if fewer than `k` subjects have a number, unchanged if no
/// record has.
///
/// Memory: 8 bytes per number, and k subjects per class.
pub fn aggregate(
    data: &mut EncodedDataset,
    asked: &[MicroaggregationTarget],
    kept: &mut ReleasedClasses,
    k: usize,
) -> Result<Vec<MicroaggregationReport>, AnonymizeError> {
    let mut done = Vec::with_capacity(asked.len());
    if asked.is_empty() {
        return Ok(done);
    }
    // Classes of the policies, before any replacement.
    let mut classes: BTreeMap<Vec<CellId>, Vec<u32>> = BTreeMap::new();
    for found in 0..kept.len() as u32 {
        classes.entry(kept.cells(found).to_vec()).or_default().push(found);
    }
    for wanted in asked {
        let quasi = data.input.quasi.iter().position(|&a| a == wanted.attribute).unwrap_or_default();
        let members = found_class_members(data, kept, wanted, k)?;
        let (mut distortion, mut withheld) = (Distortion::default(), 0);
        for found in classes.values() {
            let mut class = ClassMembers::default();
            found.iter().for_each(|&found| class.join(&members[found as usize], k));
            if class.numbers.is_empty() {
                continue;
            }
            class.numbers.sort_unstable();
            let steps: Vec<i64> = class.numbers.iter().map(|&(_, steps)| steps).collect();
            let shown = rounded_mean(&steps).filter(|_| class.people.len() >= k);
            let cell = shown.and_then(|shown| aggregate_cell(&mut data.input, wanted, shown));
            found.iter().for_each(|&found| *kept.cell_mut(found, quasi) = cell.unwrap_or(SUPPRESSED));
            match (cell, shown) {
                (Some(_), Some(shown)) => steps.iter().for_each(|&number| distortion.add(number, shown)),
                _ => withheld += class.records,
            }
        }
        done.push(MicroaggregationReport {
            attribute: data.input.schema.attributes[wanted.attribute].name.clone(),
            distortion: distortion.lost_variance_share(),
            withheld,
        });
    }
    kept.merge_equal_classes(&data.input.books, &data.input.quasi);
    Ok(done)
}

#[derive(Clone, Default)]
struct ClassMembers {
    records: u64,
    /// Records and their numbers in steps of the resolution.
    numbers: Vec<(u32, i64)>,
    /// Known subjects, at most k.
    people: BTreeSet<u32>,
}

impl ClassMembers {
    fn add(&mut self, person: u32, k: usize) {
        if person != UNCOUNTED_SUBJECT && self.people.len() < k {
            self.people.insert(person);
        }
    }

    fn join(&mut self, other: &Self, k: usize) {
        self.records += other.records;
        self.numbers.extend(&other.numbers);
        other.people.iter().for_each(|&person| self.add(person, k));
    }
}

fn found_class_members(
    data: &EncodedDataset,
    kept: &ReleasedClasses,
    wanted: &MicroaggregationTarget,
    k: usize,
) -> Result<Vec<ClassMembers>, AnonymizeError> {
    let book = &data.input.books[wanted.attribute];
    let at = data.input.quasi.iter().position(|&a| a == wanted.attribute).unwrap_or_default();
    let mut members = vec![ClassMembers::default(); kept.len()];
    data.codes.visit_blocks(
        RecordFields { attributes: &data.input.quasi, people: true, ..RecordFields::default() },
        &mut |block| {
            for &row in &block.released {
                let Some(found) = kept.found_class(block, row) else { continue };
                let class = &mut members[found as usize];
                class.records += 1;
                let text = book.canonical(block.codes[at][row as usize]);
                if text.is_empty() || text == "null" {
                    continue;
                }
                let steps = wanted.resolution.steps(text).ok_or_else(|| undivided_number_error(&data.input, wanted))?;
                class.numbers.push((block.start as u32 + row, steps));
                class.add(block.people[row as usize], k);
            }
            Ok(())
        },
    )?;
    Ok(members)
}

/// `None` if its text would be read back differently.
fn aggregate_cell(input: &mut DatasetInput, wanted: &MicroaggregationTarget, steps: i64) -> Option<CellId> {
    let text = wanted.resolution.number(steps);
    let mut canonical = String::new();
    let typing = input.schema.attributes[wanted.attribute].typing.without_conversion();
    let read = typing.canonical(RawToken::Number(&text), &mut canonical);
    if read != Ok(CanonicalKind::Value) || canonical != text {
        return None;
    }
    input.books[wanted.attribute].aggregate(&text)
}

fn undivided_number_error(input: &DatasetInput, wanted: &MicroaggregationTarget) -> AnonymizeError {
    let name = &input.schema.attributes[wanted.attribute].name;
    let message = format!("attribute {name:?} has a number that is too large or not a multiple of its rounding step");
    operator_error(
        "the input",
        name,
        message,
        "correct the number, or remove the attribute from anonymize.microaggregation",
    )
}

/// Returns the terms to verify a part; `codes` are by schema attribute.
pub fn part_aggregate_terms<'a>(
    input: &'a DatasetInput,
    codes: &'a [Vec<Code>],
    asked: &[MicroaggregationTarget],
) -> Vec<AggregateTerms<'a>> {
    let of = |asked: &MicroaggregationTarget| {
        let column = input.released_attributes.iter().position(|&a| a == asked.attribute).unwrap_or_default();
        let (book, codes) = (&input.books[asked.attribute], &codes[asked.attribute]);
        AggregateTerms {
            column,
            typing: &input.schema.attributes[asked.attribute].typing,
            text: Box::new(|row: u32| book.canonical(codes[row as usize])),
        }
    };
    asked.iter().map(of).collect()
}
