//! What it takes that records are the elements of an array.

use crate::codec::Limits;
use crate::config::{Config, Format, Problem, SourceKind};
use crate::records::schema::Schema;

/// Records of a batch at most. Messages whose elements are the records are not divided: the last one may bring all of its own.
#[must_use]
pub fn most_of_batch(config: &Config, of_elements: bool) -> usize {
    let more = if of_elements { Limits::default().max_elements - 1 } else { 0 };
    config.batch.max_records + more
}

/// What is wrong with `config` where `schema` takes messages apart.
#[must_use]
pub fn problems(config: &Config, schema: &Schema, file: &str) -> Vec<Problem> {
    let Some(array) = &schema.explode else { return Vec::new() };
    let mut found = Vec::new();
    let format = config.source.format();
    if config.source.kind == SourceKind::File && format != Format::Json {
        let name = if format == Format::Csv { "CSV" } else { "Parquet" };
        let message = format!("the schema explodes {array:?}, and rows of {name} are not taken apart");
        found.push(Problem::new(
            file,
            "source.format",
            message,
            "read NDJSON or a topic, or remove `explode` from the schema",
        ));
    }
    if format == Format::Protobuf && array.is_empty() {
        let message = "the schema explodes the message itself, and a message of Protobuf is no array";
        let remedy = "give the pointer of a repeated field (`explode` of the schema), or read JSON or Avro";
        found.push(Problem::new(file, "source.format", message, remedy));
    }
    found
}
