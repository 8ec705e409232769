//! Where attributes stand in lines that are nested as the input was.

use crate::config::{Config, OutputShape, Problem, Rows, SinkKind};
use throng_core::values::schema::{Attribute, Origin, Place, Schema};
use throng_formats::{Nesting, Step};

/// The last place of an array that is written: what lies before it is written as `null`.
const LAST_PLACE: usize = 99;

/// Whether lines are nested.
#[must_use]
pub fn is_nested(config: &Config) -> bool {
    config.output.shape == OutputShape::Nested && config.sink.kind != SinkKind::None
}

/// Where the attributes that leave stand in nested lines. The array of an exploded record has one element, the record; what was
/// no part of the value stands at the top under its attribute's name.
#[must_use]
pub fn nesting(schema: &Schema) -> Nesting {
    schema.releasable().map(|a| (schema.attributes[a].name.clone(), way(&schema.attributes[a]))).collect()
}

/// The way to an attribute.
#[must_use]
pub fn way(attribute: &Attribute) -> Vec<Step> {
    match (&attribute.from, &attribute.place) {
        (Origin::Value, Place::Column(column)) => vec![Step::Key(column.clone())],
        (Origin::Value, Place::Pointer(_)) => {
            let segments = attribute.segments().into_iter().enumerate();
            let every = |at| attribute.elements == Some(at);
            segments.map(|(at, segment)| if every(at) { Step::Place(0) } else { Step::of(segment) }).collect()
        }
        _ => vec![Step::Key(attribute.name.clone())],
    }
}

/// What is wrong with nested lines of these attributes.
#[must_use]
pub fn problems(config: &Config, schema: &Schema, file: &str) -> Vec<Problem> {
    if !is_nested(config) {
        return Vec::new();
    }
    let mut found = Vec::new();
    let mut problem = |message: String, remedy: &str| found.push(Problem::new(file, "output.shape", message, remedy));
    let flat = "set output.shape = \"flat\"";
    if !config.sink.format().is_json() {
        problem(
            "only JSON is nested, and sink.format is another".into(),
            "set sink.format = \"json\", or output.shape = \"flat\"",
        );
    }
    if config.sink.rows == Rows::Joined {
        problem("joined rows are flat".into(), "set sink.rows = \"fragments\", or output.shape = \"flat\"");
    }
    if config.anonymize.ceiling.is_on() {
        problem(
            "the catalog of counterfeits is of flat lines".into(),
            "remove anonymize.ceiling, or set output.shape = \"flat\"",
        );
    }
    if schema.explode.as_deref() == Some("") {
        problem("the records are elements of an array that is the whole message, and a line is an object".into(), flat);
    }
    let remedy = "set output.shape = \"flat\", or another pointer in the schema";
    let leaving: Vec<&Attribute> = schema.releasable().map(|a| schema.attributes[a].as_ref()).collect();
    for (number, attribute) in leaving.iter().enumerate() {
        let own = way(attribute);
        let name = &attribute.name;
        let places = own.iter().filter_map(|step| if let Step::Place(index) = step { Some(*index) } else { None });
        if places.max().is_some_and(|place| place > LAST_PLACE) {
            let message = format!(
                "attribute {name:?} has a place beyond {LAST_PLACE} in an array: digits are an index in nested lines"
            );
            problem(message, remedy);
        }
        let ends_in_array = matches!(own.last(), Some(Step::Place(_)));
        if ends_in_array && attribute.elements.is_none_or(|array| array + 1 != own.len()) {
            let message = format!("attribute {name:?} is an element of an array, by its index: absent would be null");
            problem(message, remedy);
        }
        for other in &leaving[..number] {
            if let Some(why) = clash(attribute, other) {
                problem(format!("attributes {:?} and {name:?} {why}", other.name), remedy);
            }
        }
    }
    found
}

/// Why two attributes cannot stand in one line.
fn clash(one: &Attribute, other: &Attribute) -> Option<&'static str> {
    let (a, b) = (way(one), way(other));
    let common = a.iter().zip(&b).take_while(|(a, b)| a == b).count();
    let every = |attribute: &Attribute, at: usize| attribute.elements == Some(at);
    if (0..common).any(|at| every(one, at) != every(other, at)) {
        return Some("are in each element of an array and in one of them");
    }
    match (a.get(common), b.get(common)) {
        (None, _) | (_, None) => Some("lie one inside the other"),
        (Some(Step::Key(_)), Some(Step::Place(_))) | (Some(Step::Place(_)), Some(Step::Key(_))) => {
            Some("take one value for an object and for an array")
        }
        (Some(Step::Place(_)), Some(Step::Place(_))) if every(one, common) || every(other, common) => {
            Some("are in each element of an array and in one of them")
        }
        _ => None,
    }
}
