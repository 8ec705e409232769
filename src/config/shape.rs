//! Keys and types of the configuration, read from its JSON schema for the file check, the environment and the
//! reference.

use serde_json::Value as Json;
use toml::Value;

use super::parse_size;
use super::problem::{KeyProblem, edit_distance, find_refused, nearest};

#[derive(Debug)]
pub(super) enum ConfigShape {
    Section(Vec<ConfigKey>),
    Sections(Vec<ConfigKey>),
    Properties,
    Texts,
    Text,
    Letter,
    Duration,
    Size,
    Boolean,
    Integer,
    Number,
    Choice(Vec<String>),
}

#[derive(Debug)]
pub(super) struct ConfigKey {
    pub name: String,
    pub shape: ConfigShape,
    /// The key may be omitted, and no value is equivalent.
    pub optional: bool,
    pub text: String,
    pub default: Json,
    pub examples: Vec<Json>,
    /// Choices with their descriptions.
    pub choices: Vec<(String, String)>,
}

fn text_of(schema: &Json) -> String {
    schema["description"].as_str().unwrap_or_default().to_owned()
}

/// schemars writes documented variants as `oneOf` constants and others as `enum`.
fn choices_of(schema: &Json) -> Vec<(String, String)> {
    let plain = schema["enum"].as_array().into_iter().flatten();
    let plain = plain.filter_map(|v| v.as_str().map(|name| (name.to_owned(), String::new())));
    let documented = schema["oneOf"].as_array().into_iter().flatten().flat_map(|variant| {
        let one = variant["const"].as_str().map(|name| (name.to_owned(), text_of(variant)));
        one.into_iter().chain(choices_of(variant))
    });
    plain.chain(documented).collect()
}

fn keys_of(schema: &Json) -> Vec<ConfigKey> {
    let properties = schema["properties"].as_object().into_iter().flatten();
    properties.map(|(name, schema)| ConfigKey::of(name, schema)).collect()
}

impl ConfigKey {
    fn of(name: &str, schema: &Json) -> Self {
        // An optional enumeration is `anyOf: [it, null]`.
        let inner = schema["anyOf"].as_array().and_then(|any| any.iter().find(|s| s["type"] != "null"));
        let (typed, optional) = (inner.unwrap_or(schema), inner.is_some() || types_of(schema).contains(&"null"));
        Self {
            name: name.to_owned(),
            shape: ConfigShape::of(typed),
            optional,
            text: text_of(schema),
            default: schema["default"].clone(),
            examples: schema["examples"].as_array().cloned().unwrap_or_default(),
            choices: choices_of(typed),
        }
    }
}

fn types_of(schema: &Json) -> Vec<&str> {
    match &schema["type"] {
        Json::String(one) => vec![one],
        Json::Array(several) => several.iter().filter_map(Json::as_str).collect(),
        _ => Vec::new(),
    }
}

impl ConfigShape {
    /// Returns the shape of a JSON schema without references.
    pub fn of(schema: &Json) -> Self {
        let types = types_of(schema);
        let choices = choices_of(schema);
        if !choices.is_empty() {
            return Self::Choice(choices.into_iter().map(|(name, _)| name).collect());
        }
        match schema["format"].as_str() {
            Some("humantime") => return Self::Duration,
            Some("size") => return Self::Size,
            _ => {}
        }
        if types.contains(&"object") {
            return if schema["properties"].is_object() { Self::Section(keys_of(schema)) } else { Self::Properties };
        }
        if types.contains(&"array") {
            let items = &schema["items"];
            return if items["properties"].is_object() { Self::Sections(keys_of(items)) } else { Self::Texts };
        }
        match types.first() {
            Some(&"integer") => Self::Integer,
            Some(&"number") => Self::Number,
            Some(&"boolean") => Self::Boolean,
            _ if schema["maxLength"] == 1 => Self::Letter,
            _ => Self::Text,
        }
    }

    /// Describes the expected value for messages and the reference.
    pub fn description(&self) -> String {
        match self {
            Self::Section(_) => "a table".into(),
            Self::Sections(_) => "a list of tables".into(),
            Self::Properties => "a table of texts".into(),
            Self::Texts => "a list of texts".into(),
            Self::Text => "text".into(),
            Self::Letter => "one character".into(),
            Self::Duration => "a duration like \"1s\"".into(),
            Self::Size => "a size like \"1MiB\"".into(),
            Self::Boolean => "true or false".into(),
            Self::Integer => "a whole number, 0 or more".into(),
            Self::Number => "a number".into(),
            Self::Choice(names) => names.iter().map(|n| format!("\"{n}\"")).collect::<Vec<_>>().join(" or "),
        }
    }

    fn accepts(&self, value: &Value) -> bool {
        match (self, value) {
            (Self::Texts, Value::Array(items)) => items.iter().all(Value::is_str),
            (Self::Text, Value::String(_))
            | (Self::Boolean, Value::Boolean(_))
            | (Self::Number, Value::Integer(_) | Value::Float(_)) => true,
            (Self::Integer | Self::Size, Value::Integer(number)) => *number >= 0,
            (Self::Letter, Value::String(text)) => text.chars().count() == 1,
            (Self::Duration, Value::String(text)) => humantime::parse_duration(text).is_ok(),
            (Self::Size, Value::String(text)) => parse_size(text).is_some(),
            (Self::Choice(names), Value::String(text)) => names.contains(text),
            _ => false,
        }
    }
}

/// Removes and reports every entry that does not fit `keys`. The remaining table deserializes. `root` has all sections.
pub(super) fn remove_misfits(
    table: &mut toml::Table,
    keys: &[ConfigKey],
    path: &str,
    root: &[ConfigKey],
    misfits: &mut Vec<KeyProblem>,
) {
    table.retain(|name, value| {
        let here = if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
        let Some(key) = keys.iter().find(|key| key.name == *name) else {
            misfits.push(unknown_key(&here, name, keys, root));
            return false;
        };
        fit_value(value, &key.shape, &here, root, misfits)
    });
}

fn unknown_key(here: &str, name: &str, keys: &[ConfigKey], root: &[ConfigKey]) -> KeyProblem {
    let own = nearest(name, keys.iter().map(|key| key.name.as_str()));
    let is_typo = own.is_some_and(|own| edit_distance(name, own) <= max_typos(name));
    let elsewhere = if is_typo { None } else { key_elsewhere(name, root) };
    let remedy = match (own, elsewhere) {
        (_, Some((close, sections))) => {
            format!("remove it, or did you mean `{close}`? It is a key of {}", sections.join(" and "))
        }
        (Some(close), None) => format!("remove it, or did you mean `{close}`?"),
        (None, None) => "remove it".into(),
    };
    KeyProblem { key: here.into(), message: "unknown key".into(), remedy }
}

/// Edits that turn a key into a likely typo of it.
fn max_typos(name: &str) -> usize {
    (name.chars().count() / 3).min(2)
}

/// Returns the nearest key of all sections, up to typos, and the headings of its sections.
fn key_elsewhere<'a>(name: &str, root: &'a [ConfigKey]) -> Option<(&'a str, Vec<String>)> {
    let mut all = Vec::new();
    collect_keys(root, "", &mut all);
    let close = nearest(name, all.iter().map(|(_, key)| *key))?;
    if edit_distance(name, close) > max_typos(name) {
        return None;
    }
    let sections = all.iter().filter(|(_, key)| *key == close).map(|(heading, _)| heading.clone());
    Some((close, sections.collect()))
}

/// Collects headings of sections with their keys.
fn collect_keys<'a>(keys: &'a [ConfigKey], path: &str, all: &mut Vec<(String, &'a str)>) {
    for key in keys {
        let here = if path.is_empty() { key.name.clone() } else { format!("{path}.{}", key.name) };
        let (heading, inner) = match &key.shape {
            ConfigShape::Section(inner) => (format!("[{here}]"), inner),
            ConfigShape::Sections(inner) => (format!("[[{here}]]"), inner),
            _ => continue,
        };
        all.extend(inner.iter().map(|key| (heading.clone(), key.name.as_str())));
        collect_keys(inner, &here, all);
    }
}

fn fit_value(
    value: &mut Value,
    shape: &ConfigShape,
    here: &str,
    root: &[ConfigKey],
    misfits: &mut Vec<KeyProblem>,
) -> bool {
    let fits = match (shape, &mut *value) {
        (ConfigShape::Section(keys), Value::Table(table)) => {
            remove_misfits(table, keys, here, root, misfits);
            true
        }
        (ConfigShape::Sections(keys), Value::Array(items)) if items.iter().all(Value::is_table) => {
            for (index, item) in items.iter_mut().enumerate() {
                if let Value::Table(table) = item {
                    remove_misfits(table, keys, &format!("{here}[{index}]"), root, misfits);
                }
            }
            true
        }
        (ConfigShape::Properties, Value::Table(table)) => {
            let mut flat = toml::Table::new();
            flatten(table, "", here, &mut flat, misfits);
            *table = flat;
            true
        }
        (shape, value) => shape.accepts(value),
    };
    if let Some(refused) = value.as_str().filter(|_| !fits).and_then(|text| find_refused(here, text)) {
        misfits.push(KeyProblem { key: here.into(), message: refused.message.into(), remedy: refused.remedy.into() });
    } else if !fits {
        // The value may be a misplaced password.
        misfits.push(KeyProblem {
            key: here.into(),
            message: format!("{} does not fit here", value_kind(value)),
            remedy: format!("give {}", shape.description()),
        });
    }
    fits
}

fn value_kind(value: &Value) -> &'static str {
    match value {
        Value::String(_) => "this text",
        Value::Integer(_) => "this whole number",
        Value::Float(_) => "this number",
        Value::Boolean(_) => "true or false",
        Value::Datetime(_) => "a date",
        Value::Array(_) => "this list",
        Value::Table(_) => "this table",
    }
}

/// TOML reads an unquoted `security.protocol = "ssl"` as a table in a table.
fn flatten(table: &toml::Table, prefix: &str, here: &str, flat: &mut toml::Table, misfits: &mut Vec<KeyProblem>) {
    for (name, value) in table {
        let name = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
        match value {
            Value::Table(inner) => flatten(inner, &name, here, flat, misfits),
            Value::String(text) => drop(flat.insert(name, Value::String(text.clone()))),
            Value::Integer(number) => drop(flat.insert(name, Value::String(number.to_string()))),
            Value::Boolean(truth) => drop(flat.insert(name, Value::String(truth.to_string()))),
            Value::Float(number) => drop(flat.insert(name, Value::String(number.to_string()))),
            Value::Array(_) | Value::Datetime(_) => misfits.push(KeyProblem {
                key: format!("{here}.{name}"),
                message: format!("{} does not fit here", value_kind(value)),
                remedy: "give text, as librdkafka expects it".into(),
            }),
        }
    }
}
