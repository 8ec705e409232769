//! `THRONG__SECTION__KEY`: the environment over the file, typed by the key that it overrides.

use std::collections::BTreeMap;

use toml::Value;

use super::problem::{Problem, nearest, refused};
use super::shape::{Key, Shape};

const PREFIX: &str = "THRONG__";
const PLACE: &str = "environment";

/// What the environment overrides: key path → the variable that did.
pub(super) type Overrides = BTreeMap<String, String>;

enum Target<'a> {
    Key { path: Vec<&'a str>, key: &'a Key },
    Property { path: Vec<&'a str>, name: String },
}

/// Name of the variable that overrides the key at `path`.
pub(super) fn variable(path: &[&str]) -> String {
    format!("{PREFIX}{}", path.iter().map(|part| part.to_ascii_uppercase()).collect::<Vec<_>>().join("__"))
}

/// Every key that a variable can override, with its path.
pub(super) fn leaves<'a>(keys: &'a [Key], path: &[&'a str]) -> Vec<(Vec<&'a str>, &'a Key)> {
    let mut found = Vec::new();
    for key in keys {
        let mut here = path.to_vec();
        here.push(&key.name);
        match &key.shape {
            Shape::Section(inner) => found.extend(leaves(inner, &here)),
            Shape::Sections(_) => {}
            _ => found.push((here, key)),
        }
    }
    found
}

/// Writes every override of `variables` into `table`. Variables that do not begin with `THRONG__` are none of ours.
pub(super) fn apply(
    table: &mut toml::Table,
    keys: &[Key],
    variables: impl Iterator<Item = (String, String)>,
    problems: &mut Vec<Problem>,
) -> Overrides {
    let leaves = leaves(keys, &[]);
    let mut overrides = Overrides::new();
    // In the order of names, so that the same environment gives the same report.
    let variables: BTreeMap<String, String> = variables.filter(|(name, _)| name.starts_with(PREFIX)).collect();
    for (name, text) in variables {
        match target(&name, &leaves) {
            None => problems.push(unknown(&name, keys, &leaves)),
            Some(Target::Property { path, name: property }) => {
                overrides.insert(format!("{}.{property}", path.join(".")), name);
                let mut path = path;
                path.push(&property);
                insert(table, &path, Value::String(text));
            }
            // An empty variable unsets an optional key; compose files cannot leave one out.
            Some(Target::Key { path, key }) if text.is_empty() && key.optional => remove(table, &path),
            Some(Target::Key { path, key }) => match typed(&key.shape, &text) {
                Some(value) => {
                    overrides.insert(path.join("."), name);
                    insert(table, &path, value);
                }
                None => {
                    let here = path.join(".");
                    let (message, remedy) = match refused(&here, &text) {
                        Some(refused) => (refused.message.to_owned(), refused.remedy.to_owned()),
                        None => (format!("this does not fit `{here}`"), format!("give {}", key.shape.words())),
                    };
                    problems.push(Problem::new(PLACE, name, message, remedy));
                }
            },
        }
    }
    overrides
}

fn target<'a>(name: &str, leaves: &[(Vec<&'a str>, &'a Key)]) -> Option<Target<'a>> {
    for (path, key) in leaves {
        let variable = variable(path);
        if matches!(key.shape, Shape::Properties) {
            let property = name.strip_prefix(&variable).and_then(|rest| rest.strip_prefix("__"));
            if let Some(property) = property.filter(|p| !p.is_empty() && !p.contains("__")) {
                return Some(Target::Property {
                    path: path.clone(),
                    name: property.to_ascii_lowercase().replace('_', "."),
                });
            }
        } else if variable == name {
            return Some(Target::Key { path: path.clone(), key });
        }
    }
    None
}

fn unknown(name: &str, keys: &[Key], leaves: &[(Vec<&str>, &Key)]) -> Problem {
    let listed =
        keys.iter().find(|key| matches!(key.shape, Shape::Sections(_)) && name.starts_with(&variable(&[&key.name])));
    if let Some(key) = listed {
        let remedy = format!("write [[{}]] into the file", key.name);
        return Problem::new(PLACE, name, "a list of tables cannot be overridden", remedy);
    }
    let known: Vec<String> = leaves
        .iter()
        .map(|(path, key)| variable(path) + if matches!(key.shape, Shape::Properties) { "__PROPERTY" } else { "" })
        .collect();
    let close = nearest(name, known.iter().map(String::as_str)).unwrap_or(PREFIX);
    Problem::new(PLACE, name, "there is no such key", format!("unset it, or did you mean {close}?"))
}

/// `text` as the type of the key; None where it is not of it.
fn typed(shape: &Shape, text: &str) -> Option<Value> {
    let text_value = || Value::String(text.to_owned());
    match shape {
        Shape::Boolean => text.parse().ok().map(Value::Boolean),
        Shape::Integer => text.parse().ok().filter(|number| *number >= 0).map(Value::Integer),
        Shape::Number => text.parse().ok().map(Value::Float),
        Shape::Texts if text.is_empty() => Some(Value::Array(Vec::new())),
        Shape::Texts => Some(Value::Array(text.split(',').map(|part| Value::String(part.trim().into())).collect())),
        Shape::Text => Some(text_value()),
        Shape::Size => super::parse_size(text).map(|_| text_value()),
        Shape::Duration => humantime::parse_duration(text).is_ok().then(text_value),
        Shape::Letter => (text.chars().count() == 1).then(text_value),
        Shape::Choice(names) => names.iter().any(|name| name == text).then(text_value),
        Shape::Section(_) | Shape::Sections(_) | Shape::Properties => None,
    }
}

fn insert(table: &mut toml::Table, path: &[&str], value: Value) {
    match path {
        [] => {}
        [last] => drop(table.insert((*last).into(), value)),
        [first, rest @ ..] => {
            let inner = table.entry(*first).or_insert_with(|| Value::Table(toml::Table::new()));
            if let Value::Table(inner) = inner {
                insert(inner, rest, value);
            }
        }
    }
}

fn remove(table: &mut toml::Table, path: &[&str]) {
    match path {
        [] => {}
        [last] => drop(table.remove(*last)),
        [first, rest @ ..] => {
            if let Some(Value::Table(inner)) = table.get_mut(*first) {
                remove(inner, rest);
            }
        }
    }
}
