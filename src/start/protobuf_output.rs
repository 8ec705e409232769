//! Protobuf schemas of the output.

use super::avro_output::{cell_kind_of, output_description};
use super::field_numbers::FieldNumbers;
use super::output_names::{choice_name, schema_name, text_name};
use crate::config::Config;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use throng_core::values::schema::Attribute;
use throng_formats::CellKind;

/// Returns the schema of lines, and the field numbers (exact value and text).
///
/// Texts are one `optional` field. Numbers and booleans are a `oneof`: `NAME` with their type, and `NAME_text` for
/// several values, or `"*"`.
#[must_use]
pub fn protobuf_schema(
    config: &Config,
    attributes: &[&Attribute],
    record: &str,
    package: &str,
    mut numbers: FieldNumbers,
) -> (String, Vec<[u32; 2]>) {
    let mut fields = String::new();
    let mut used = Vec::with_capacity(attributes.len());
    let mut names = BTreeSet::new();
    for attribute in attributes {
        let (name, kind) = (schema_name(&attribute.name), cell_kind_of(attribute).protobuf_type());
        let exact = numbers.of(&name, kind);
        let written = match text_name(attribute) {
            None => {
                used.push([exact, exact]);
                writeln!(fields, "  optional {kind} {name} = {exact};")
            }
            Some(text) => {
                let (of_text, choice) = (numbers.of(&text, CellKind::Text.protobuf_type()), choice_name(attribute));
                used.push([exact, of_text]);
                names.insert(text.clone());
                writeln!(
                    fields,
                    "  oneof {choice} {{\n    {kind} {name} = {exact};\n    string {text} = {of_text};\n  }}"
                )
            }
        };
        debug_assert!(written.is_ok(), "writing to a String cannot fail");
        names.insert(name);
    }
    let given_up = numbers.unused_numbers(&names);
    let reserved = if given_up.is_empty() {
        String::new()
    } else {
        let listed: Vec<String> = given_up.iter().map(u32::to_string).collect();
        format!("  reserved {};\n", listed.join(", "))
    };
    let text = format!(
        "syntax = \"proto3\";\npackage {package};\n\n// {}\nmessage {record} {{\n{reserved}{fields}}}\n",
        output_description(config)
    );
    (text, used)
}

#[cfg(test)]
#[path = "protobuf_output_tests.rs"]
mod tests;
