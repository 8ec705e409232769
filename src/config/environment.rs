//! Environment variables `THRONG__SECTION__KEY`, which override the file.

use std::collections::BTreeMap;

use toml::Value;

use super::problem::{ConfigProblem, find_refused, nearest};
use super::shape::{ConfigKey, ConfigShape};

const PREFIX: &str = "THRONG__";
const ENVIRONMENT: &str = "environment";

/// Key paths with their variables.
pub(super) type OverriddenKeys = BTreeMap<String, String>;

enum OverrideTarget<'a> {
    Key { path: Vec<&'a str>, key: &'a ConfigKey },
    Property { path: Vec<&'a str>, name: String },
}

pub(super) fn variable(path: &[&str]) -> String {
    format!("{PREFIX}{}", path.iter().map(|part| part.to_ascii_uppercase()).collect::<Vec<_>>().join("__"))
}

/// Returns every key that a variable can override.
pub(super) fn overridable_keys<'a>(keys: &'a [ConfigKey], path: &[&'a str]) -> Vec<(Vec<&'a str>, &'a ConfigKey)> {
    let mut found = Vec::new();
    for key in keys {
        let mut here = path.to_vec();
        here.push(&key.name);
        match &key.shape {
            ConfigShape::Section(inner) => found.extend(overridable_keys(inner, &here)),
            ConfigShape::Sections(_) => {}
            _ => found.push((here, key)),
        }
    }
    found
}

/// Writes every override into `table`.
pub(super) fn apply(
    table: &mut toml::Table,
    keys: &[ConfigKey],
    variables: impl Iterator<Item = (String, String)>,
    problems: &mut Vec<ConfigProblem>,
) -> OverriddenKeys {
    let leaves = overridable_keys(keys, &[]);
    let mut overrides = OverriddenKeys::new();
    // Sorted, so that the same environment gives the same report.
    let variables: BTreeMap<String, String> = variables.filter(|(name, _)| name.starts_with(PREFIX)).collect();
    for (name, text) in variables {
        match find_target(&name, &leaves) {
            None => problems.push(unknown(&name, keys, &leaves)),
            Some(OverrideTarget::Property { path, name: property }) => {
                overrides.insert(format!("{}.{property}", path.join(".")), name);
                let mut path = path;
                path.push(&property);
                insert(table, &path, Value::String(text));
            }
            // Compose files cannot omit a variable.
            Some(OverrideTarget::Key { path, key }) if text.is_empty() && key.optional => remove(table, &path),
            Some(OverrideTarget::Key { path, key }) => match parse_as(&key.shape, &text) {
                Some(value) => {
                    overrides.insert(path.join("."), name);
                    insert(table, &path, value);
                }
                None => {
                    let here = path.join(".");
                    let (message, remedy) = match find_refused(&here, &text) {
                        Some(refused) => (refused.message.to_owned(), refused.remedy.to_owned()),
                        None => (format!("does not fit `{here}`"), format!("give {}", key.shape.description())),
                    };
                    problems.push(ConfigProblem::new(ENVIRONMENT, name, message, remedy));
                }
            },
        }
    }
    overrides
}

fn find_target<'a>(name: &str, leaves: &[(Vec<&'a str>, &'a ConfigKey)]) -> Option<OverrideTarget<'a>> {
    for (path, key) in leaves {
        let variable = variable(path);
        if matches!(key.shape, ConfigShape::Properties) {
            let property = name.strip_prefix(&variable).and_then(|rest| rest.strip_prefix("__"));
            if let Some(property) = property.filter(|p| !p.is_empty() && !p.contains("__")) {
                return Some(OverrideTarget::Property {
                    path: path.clone(),
                    name: property.to_ascii_lowercase().replace('_', "."),
                });
            }
        } else if variable == name {
            return Some(OverrideTarget::Key { path: path.clone(), key });
        }
    }
    None
}

fn unknown(name: &str, keys: &[ConfigKey], leaves: &[(Vec<&str>, &ConfigKey)]) -> ConfigProblem {
    let listed = keys
        .iter()
        .find(|key| matches!(key.shape, ConfigShape::Sections(_)) && name.starts_with(&variable(&[&key.name])));
    if let Some(key) = listed {
        let remedy = format!("write [[{}]] into the file", key.name);
        return ConfigProblem::new(ENVIRONMENT, name, "a list of tables cannot be overridden", remedy);
    }
    let known: Vec<String> = leaves
        .iter()
        .map(|(path, key)| {
            variable(path) + if matches!(key.shape, ConfigShape::Properties) { "__PROPERTY" } else { "" }
        })
        .collect();
    let close = nearest(name, known.iter().map(String::as_str)).unwrap_or(PREFIX);
    ConfigProblem::new(ENVIRONMENT, name, "unknown key", format!("unset it, or did you mean {close}?"))
}

fn parse_as(shape: &ConfigShape, text: &str) -> Option<Value> {
    let text_value = || Value::String(text.to_owned());
    match shape {
        ConfigShape::Boolean => text.parse().ok().map(Value::Boolean),
        ConfigShape::Integer => text.parse().ok().filter(|number| *number >= 0).map(Value::Integer),
        ConfigShape::Number => text.parse().ok().map(Value::Float),
        ConfigShape::Texts if text.is_empty() => Some(Value::Array(Vec::new())),
        ConfigShape::Texts => {
            Some(Value::Array(text.split(',').map(|part| Value::String(part.trim().into())).collect()))
        }
        ConfigShape::Text => Some(text_value()),
        ConfigShape::Size => super::parse_size(text).map(|_| text_value()),
        ConfigShape::Duration => humantime::parse_duration(text).is_ok().then(text_value),
        ConfigShape::Letter => (text.chars().count() == 1).then(text_value),
        ConfigShape::Choice(names) => names.iter().any(|name| name == text).then(text_value),
        ConfigShape::Section(_) | ConfigShape::Sections(_) | ConfigShape::Properties => None,
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
