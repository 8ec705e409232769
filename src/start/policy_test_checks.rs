//! Checks policy tests against the schema.

use super::checked_config::CheckedConfig;
use crate::config::{Config, ConfigProblem, PolicyTest, RowContent};
use serde_json::{Map, Value};
use throng_core::values::canonical::AttributeType;
use throng_core::values::schema::{AttributeOrigin, AttributePlace, Schema};

/// Returns cells of tests that are never released, or not in the same line.
pub fn problems(checked: &CheckedConfig) -> Vec<ConfigProblem> {
    let mut found = Vec::new();
    for (index, test) in checked.config.test.iter().enumerate() {
        let mut refuse = |key: &str, message: String, remedy: &str| {
            found.push(ConfigProblem::new(checked.file.as_str(), format!("test[{index}].{key}"), message, remedy));
        };
        for (key, items) in [("expect", &test.expect), ("never", &test.never)] {
            for cells in items.iter().filter_map(|item| PolicyTest::cells(item)) {
                if let Err((message, remedy)) = check_released_together(&cells, checked) {
                    refuse(key, message, remedy);
                }
            }
        }
        if test.people > 0 {
            match subject_key(&checked.schema) {
                Err((message, remedy)) => refuse("people", message, remedy),
                Ok(subject) if test.never.iter().any(|text| occurs_only_in_subject(test, text, subject)) => {
                    let message = "a text is only in the subject, which is replaced by invented people: it could never be released";
                    refuse("never", message.to_owned(), "name \"person 1\", which replaces it, or another text");
                }
                Ok(_) => {}
            }
        }
    }
    found
}

/// `text` occurs in the records only as the `subject`.
fn occurs_only_in_subject(test: &PolicyTest, text: &str, subject: &str) -> bool {
    let records = || test.input.iter().filter_map(|record| PolicyTest::cells(record));
    let stands = |record: Map<String, Value>| Value::Object(record).to_string().contains(text);
    let without = |mut record: Map<String, Value>| {
        record.shift_remove(subject);
        record
    };
    PolicyTest::cells(text).is_none() && records().any(stands) && !records().map(without).any(stands)
}

type PolicyTestFlaw = (String, &'static str);

fn check_released_together(cells: &Map<String, Value>, checked: &CheckedConfig) -> Result<(), PolicyTestFlaw> {
    let CheckedConfig { config, schema, shapes, .. } = checked;
    let mut named = Vec::new();
    for name in cells.keys() {
        match schema.position(name).map(|a| (a, schema.attributes[a].role)) {
            None => return Err((format!("the schema has no attribute {name:?}"), "correct the name")),
            Some((_, role)) if !role.is_releasable() => {
                let message = format!("{name:?} has the role {}, which is never released", role.name());
                return Err((message, "name attributes that are released, or the text that must not be"));
            }
            Some((a, _)) => named.push(a),
        }
    }
    let together = shapes.iter().any(|shape| {
        let attributes = shape.without_ladder().attributes();
        named.iter().all(|a| attributes.contains(a))
    });
    if together || config.sink.rows == RowContent::Joined {
        return Ok(());
    }
    let names: Vec<&String> = cells.keys().collect();
    let message = format!("no group has all of the attributes {names:?}: no line could contain these cells");
    Err((message, "name attributes of one group"))
}

fn subject_key(schema: &Schema) -> Result<&str, PolicyTestFlaw> {
    let remedy = "remove the key, and give every person's records in input or file";
    let Some(subject) = schema.subject.map(|a| &schema.attributes[a]) else {
        return Err(("the schema has no subject: every record counts as a separate person".to_owned(), remedy));
    };
    match &subject.place {
        AttributePlace::Column(key)
            if subject.from == AttributeOrigin::Value && subject.kind() == AttributeType::String =>
        {
            Ok(key)
        }
        _ => Err((format!("the subject {:?} is not a text under a key of the record", subject.name), remedy)),
    }
}

/// Returns the records of a test as JSON lines, with invented subjects. None if they are in a file.
pub fn test_record_lines(test: &PolicyTest, config: &Config, schema: &Schema) -> Option<String> {
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
    match (test.people, subject_key(schema)) {
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
