//! What it takes that records are the elements of an array.

use crate::config::{Config, Format, Problem, SourceKind};
use crate::records::schema::Schema;

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
    // Every row that is remembered has room in the dictionaries; a message is not divided among batches.
    let more = config.most_of_batch(true) - config.batch.max_records;
    let waiting = if config.privacy.longest_delay().is_zero() { 0 } else { config.max_waiting_lines() };
    let needed = config.rows_remembered() + config.batches_remembered() * more + waiting;
    if needed > config.dictionary_values() {
        let message = format!(
            "dictionaries of {} values cannot hold the window, the batches with a message of {} elements beyond \
             batch.max_records in each, and what waits",
            config.state.max_dictionary_values, config.source.max_elements
        );
        let remedy = format!("set at least {needed}, or lower source.max_elements or state.max_waiting_lines");
        found.push(Problem::new(file, "state.max_dictionary_values", message, &remedy));
    }
    found
}
