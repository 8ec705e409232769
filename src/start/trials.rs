//! The tests that a configuration carries, in terms of its schema: what they name must be something that can leave.

use super::checked::Checked;
use crate::config::{Config, PolicyTest, Problem, Rows};
use serde_json::{Map, Value};
use throng_core::values::canonical::Type;
use throng_core::values::schema::{Origin, Place, Schema};

/// Every problem of the tests: cells of attributes that never leave, or not together.
pub fn problems(checked: &Checked) -> Vec<Problem> {
    let mut found = Vec::new();
    for (index, test) in checked.config.test.iter().enumerate() {
        let mut refuse = |key: &str, message: String, remedy: &str| {
            found.push(Problem::new(checked.file.as_str(), format!("test[{index}].{key}"), message, remedy));
        };
        for (key, items) in [("expect", &test.expect), ("never", &test.never)] {
            for cells in items.iter().filter_map(|item| PolicyTest::cells(item)) {
                if let Err((message, remedy)) = shown_together(&cells, checked) {
                    refuse(key, message, remedy);
                }
            }
        }
        if test.people > 0 {
            match subject_of(&checked.schema) {
                Err((message, remedy)) => refuse("people", message, remedy),
                Ok(subject) if test.never.iter().any(|text| names_who_is_replaced(test, text, subject)) => {
                    let message = "a text stands in the subject alone, which invented people take the place of: it could not leave";
                    refuse("never", message.to_owned(), "name \"person 1\", which takes its place, or another text");
                }
                Ok(_) => {}
            }
        }
    }
    found
}

/// Whether a text stands in the records of a test only where the `subject` does.
fn names_who_is_replaced(test: &PolicyTest, text: &str, subject: &str) -> bool {
    let records = || test.input.iter().filter_map(|record| PolicyTest::cells(record));
    let stands = |record: Map<String, Value>| Value::Object(record).to_string().contains(text);
    let without = |mut record: Map<String, Value>| {
        record.shift_remove(subject);
        record
    };
    PolicyTest::cells(text).is_none() && records().any(stands) && !records().map(without).any(stands)
}

/// A message and a remedy.
type Flaw = (String, &'static str);

fn shown_together(cells: &Map<String, Value>, checked: &Checked) -> Result<(), Flaw> {
    let Checked { config, schema, shapes, .. } = checked;
    let mut named = Vec::new();
    for name in cells.keys() {
        match schema.position(name).map(|a| (a, schema.attributes[a].role)) {
            None => return Err((format!("the schema has no attribute {name:?}"), "correct the name")),
            Some((_, role)) if !role.is_releasable() => {
                let message = format!("{name:?} has the role {}, which never leaves", role.name());
                return Err((message, "name attributes that leave, or the text that must not"));
            }
            Some((a, _)) => named.push(a),
        }
    }
    let together = shapes.iter().any(|shape| {
        let attributes = shape.without_ladder().attributes();
        named.iter().all(|a| attributes.contains(a))
    });
    if together || config.sink.rows == Rows::Joined {
        return Ok(());
    }
    let names: Vec<&String> = cells.keys().collect();
    let message = format!("the attributes {names:?} leave in no group together: no line could show these cells");
    Err((message, "name attributes of one group"))
}

/// The key of a record that names its subject.
fn subject_of(schema: &Schema) -> Result<&str, Flaw> {
    let remedy = "remove the key, and give every person's records in input or file";
    let Some(subject) = schema.subject.map(|a| &schema.attributes[a]) else {
        return Err(("the schema names no subject: every record is a person of its own".to_owned(), remedy));
    };
    match &subject.place {
        Place::Column(key) if subject.from == Origin::Value && subject.kind() == Type::String => Ok(key),
        _ => Err((format!("the subject {:?} is no text under a key of the record", subject.name), remedy)),
    }
}

/// The records of a test as lines of JSON: those of `input`, by each of its invented people. None where they are in a file.
pub fn records(test: &PolicyTest, config: &Config, schema: &Schema) -> Option<String> {
    if test.file.is_some() {
        return None;
    }
    let objects: Vec<Map<String, Value>> = test.input.iter().filter_map(|record| PolicyTest::cells(record)).collect();
    debug_assert_eq!(objects.len(), test.input.len(), "{} has been checked", config.schema.file.display());
    let mut text = String::new();
    let mut line = |record: &Map<String, Value>| {
        text += &Value::Object(record.clone()).to_string();
        text.push('\n');
    };
    match (test.people, subject_of(schema)) {
        (1.., Ok(key)) => {
            for person in 1..=test.people {
                for record in &objects {
                    let mut record = record.clone();
                    record.insert(key.to_owned(), Value::String(format!("person {person}")));
                    line(&record);
                }
            }
        }
        _ => objects.iter().for_each(line),
    }
    Some(text)
}
