//! JSON Schema and Markdown reference, generated from doc comments.

use std::fmt::Write as _;

use schemars::generate::SchemaSettings;
use serde_json::Value as Json;

use super::{
    Config,
    environment::variable,
    shape::{ConfigKey, ConfigShape},
};

/// Returns the JSON Schema (draft 2020-12) at `schemas/config.schema.json`. Durations and sizes have the formats
/// `humantime` and `size`.
pub fn json_schema() -> String {
    let schema = SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<Config>();
    format!("{:#}\n", schema.to_value())
}

/// Returns the schema without references.
pub(super) fn inlined() -> Json {
    let settings = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    settings.into_generator().into_root_schema_for::<Config>().to_value()
}

/// Returns the reference at `docs/configuration.md`.
pub fn reference_markdown() -> String {
    let schema = inlined();
    let ConfigShape::Section(sections) = ConfigShape::of(&schema) else {
        unreachable!("the configuration is a table");
    };
    let mut page = String::from(
        "# Configuration\n\n<!-- Generated from the doc comments in src/config; do not edit. \
         `THRONG_BLESS=1 cargo test --lib config` regenerates it. -->\n\n",
    );
    push_paragraph(&mut page, schema["description"].as_str().unwrap_or_default());
    page.push_str(OVERRIDES);
    for section in &sections {
        let (heading, keys) = match &section.shape {
            ConfigShape::Section(keys) => (format!("[{}]", section.name), keys),
            ConfigShape::Sections(keys) => (format!("[[{}]]", section.name), keys),
            _ => continue,
        };
        _ = writeln!(page, "## `{heading}`\n"); // a String takes everything
        push_paragraph(&mut page, &section.text);
        let overridable = matches!(section.shape, ConfigShape::Section(_));
        for key in keys {
            push_key(&mut page, &section.name, key, overridable);
        }
    }
    page
}

const OVERRIDES: &str = "\
The environment overrides the file: `THRONG__` and the key path in capitals, `__` between its parts \
(`THRONG__PRIVACY__K=10`). Numbers, true/false and text are read as the key's type, lists are comma-separated, an \
empty variable unsets an optional key, and a variable that names no key is an error. Properties of librdkafka are set \
by `THRONG__SOURCE__LIBRDKAFKA__SECURITY_PROTOCOL`, with an underscore for each dot. Paths are relative to the \
working directory of the process. The file never contains secrets: see `state.secret_file` and `source.security`.

`throng check -c FILE` reports all problems, each with file, key and remedy.

";

fn push_paragraph(page: &mut String, text: &str) {
    page.push_str(text);
    page.push_str("\n\n");
}

fn push_key(page: &mut String, section: &str, key: &ConfigKey, overridable: bool) {
    if let ConfigShape::Section(inner) = &key.shape {
        let section = format!("{section}.{}", key.name);
        return inner.iter().for_each(|key| push_key(page, &section, key, overridable));
    }
    _ = writeln!(page, "### `{section}.{}`\n", key.name);
    push_paragraph(page, &key.text);
    for (name, text) in key.choices.iter().filter(|(_, text)| !text.is_empty()) {
        _ = writeln!(page, "- `\"{name}\"`: {}", text.replace('\n', " "));
    }
    if key.choices.iter().any(|(_, text)| !text.is_empty()) {
        page.push('\n');
    }
    let default = match &key.default {
        Json::Null => "none".to_owned(),
        value => format!("`{}`", toml_text(value)),
    };
    _ = writeln!(page, "| type | default | example | environment |\n|---|---|---|---|");
    let examples: Vec<String> = key.examples.iter().map(|e| format!("`{}`", toml_text(e))).collect();
    let of =
        |section: &str, key: &ConfigKey| variable(&section.split('.').chain([key.name.as_str()]).collect::<Vec<_>>());
    let by_environment = match (&key.shape, overridable) {
        (_, false) => "—".to_owned(),
        (ConfigShape::Properties, true) => format!("`{}__…`", of(section, key)),
        (_, true) => format!("`{}`", of(section, key)),
    };
    let words = key.shape.description();
    _ = writeln!(page, "| {words} | {default} | {} | {by_environment} |\n", examples.join(", "));
    if let ConfigShape::Sections(inner) = &key.shape {
        let section = format!("{section}.{}", key.name);
        _ = writeln!(page, "Keys of each `[[{section}]]`:\n");
        inner.iter().for_each(|key| push_key(page, &section, key, false));
    }
}

fn toml_text(value: &Json) -> String {
    match value {
        Json::Object(table) => {
            let pairs: Vec<String> = table.iter().map(|(k, v)| format!("\"{k}\" = {}", toml_text(v))).collect();
            if pairs.is_empty() { "{}".into() } else { format!("{{ {} }}", pairs.join(", ")) }
        }
        Json::Array(items) => format!("[{}]", items.iter().map(toml_text).collect::<Vec<_>>().join(", ")),
        other => other.to_string(),
    }
}
