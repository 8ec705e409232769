//! Paths of attributes in nested output lines.

use crate::config::{Config, ConfigProblem, OutputShape, RowContent, SinkKind};
use throng_core::values::schema::{Attribute, AttributeOrigin, AttributePlace, Schema};
use throng_formats::{NestedPaths, NestingStep};

/// Smaller unused indices are `null`.
const MAX_ARRAY_INDEX: usize = 99;

/// Returns true if output lines are nested.
#[must_use]
pub fn is_nested(config: &Config) -> bool {
    config.output.shape == OutputShape::Nested && config.sink.kind != SinkKind::None
}

/// Returns the paths of the releasable attributes. An exploded array has one element; attributes outside the value are
/// at the top.
#[must_use]
pub fn nesting(schema: &Schema) -> NestedPaths {
    schema.releasable().map(|a| (schema.attributes[a].name.clone(), attribute_path(&schema.attributes[a]))).collect()
}

/// Returns the path of an attribute.
#[must_use]
pub fn attribute_path(attribute: &Attribute) -> Vec<NestingStep> {
    match (&attribute.from, &attribute.place) {
        (AttributeOrigin::Value, AttributePlace::Column(column)) => vec![NestingStep::Key(column.clone())],
        (AttributeOrigin::Value, AttributePlace::Pointer(_)) => {
            let segments = attribute.segments().into_iter().enumerate();
            let every = |at| attribute.elements == Some(at);
            segments
                .map(
                    |(at, segment)| {
                        if every(at) { NestingStep::ArrayIndex(0) } else { NestingStep::from_segment(segment) }
                    },
                )
                .collect()
        }
        _ => vec![NestingStep::Key(attribute.name.clone())],
    }
}

/// Returns problems of nested lines with these attributes.
#[must_use]
pub fn problems(config: &Config, schema: &Schema, file: &str) -> Vec<ConfigProblem> {
    if !is_nested(config) {
        return Vec::new();
    }
    let mut found = Vec::new();
    let mut problem =
        |message: String, remedy: &str| found.push(ConfigProblem::new(file, "output.shape", message, remedy));
    let flat = "set output.shape = \"flat\"";
    if !config.sink.format().is_json() {
        problem(
            "only JSON can be nested, but sink.format is a different format".into(),
            "set sink.format = \"json\", or output.shape = \"flat\"",
        );
    }
    if config.sink.rows == RowContent::Joined {
        problem("joined rows are flat".into(), "set sink.rows = \"fragments\", or output.shape = \"flat\"");
    }
    if config.anonymize.ceiling.is_enabled() {
        problem(
            "the catalog of counterfeits has flat lines".into(),
            "remove anonymize.ceiling, or set output.shape = \"flat\"",
        );
    }
    if schema.explode.as_deref() == Some("") {
        problem(
            "the records are elements of an array that is the whole message, but a nested line is an object".into(),
            flat,
        );
    }
    let remedy = "set output.shape = \"flat\", or another pointer in the schema";
    let leaving: Vec<&Attribute> = schema.releasable().map(|a| schema.attributes[a].as_ref()).collect();
    for (number, attribute) in leaving.iter().enumerate() {
        let own = attribute_path(attribute);
        let name = &attribute.name;
        let places =
            own.iter().filter_map(|step| if let NestingStep::ArrayIndex(index) = step { Some(*index) } else { None });
        if places.max().is_some_and(|place| place > MAX_ARRAY_INDEX) {
            let message = format!(
                "attribute {name:?} has an array index above {MAX_ARRAY_INDEX}: digits are an index in nested lines"
            );
            problem(message, remedy);
        }
        let ends_in_array = matches!(own.last(), Some(NestingStep::ArrayIndex(_)));
        if ends_in_array && attribute.elements.is_none_or(|array| array + 1 != own.len()) {
            let message = format!("attribute {name:?} is an array element by index: an absent cell would become null");
            problem(message, remedy);
        }
        for other in &leaving[..number] {
            if let Some(why) = path_conflict(attribute, other) {
                problem(format!("attributes {:?} and {name:?} {why}", other.name), remedy);
            }
        }
    }
    found
}

/// Reason for which two attributes exclude each other.
fn path_conflict(one: &Attribute, other: &Attribute) -> Option<&'static str> {
    let (a, b) = (attribute_path(one), attribute_path(other));
    let common = a.iter().zip(&b).take_while(|(a, b)| a == b).count();
    let every = |attribute: &Attribute, at: usize| attribute.elements == Some(at);
    if (0..common).any(|at| every(one, at) != every(other, at)) {
        return Some("are in each element of an array and in one of them");
    }
    match (a.get(common), b.get(common)) {
        (None, _) | (_, None) => Some("are nested in each other"),
        (Some(NestingStep::Key(_)), Some(NestingStep::ArrayIndex(_)))
        | (Some(NestingStep::ArrayIndex(_)), Some(NestingStep::Key(_))) => {
            Some("use the same value as an object and as an array")
        }
        (Some(NestingStep::ArrayIndex(_)), Some(NestingStep::ArrayIndex(_)))
            if every(one, common) || every(other, common) =>
        {
            Some("are in each element of an array and in one of them")
        }
        _ => None,
    }
}
