//! Whether people can be named who are to be erased.

use crate::config::{Config, Problem};
use crate::records::schema::Schema;

/// What is wrong with the topic of erasures, as the record schema has it.
#[must_use]
pub fn problems(config: &Config, schema: &Schema, file: &str) -> Vec<Problem> {
    if !config.erasure.is_on() || schema.subject.is_some() {
        return Vec::new();
    }
    let message = "the record schema names no subject, so no record is known to be anybody's, and nobody can be erased";
    let remedy = "give one attribute role = \"subject\", or remove the key";
    vec![Problem::new(file, "erasure.topic", message.to_owned(), remedy)]
}
