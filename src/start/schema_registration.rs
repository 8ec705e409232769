//! Registers output schemas in the registry.

use super::avro_output::{avro_schema, cell_kind_of};
use super::checked_config::CheckedConfig;
use super::field_numbers::FieldNumbers;
use super::message_parts::registry_client;
use super::output_names::{OutputRecord, is_framed, namespace, output_schema_kind, outputs};
use super::output_schema::registered_json;
use super::protobuf_output::protobuf_schema;
use crate::config::ConfigProblem;
use crate::io::registry::{FrameEncoding, RegistryError};
use crate::telemetry::{RegistryAnswered, RegistryLost, Telemetry};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use throng_core::values::schema::Attribute;
use throng_formats::TypedGroup;

/// Registers the output schemas and stores their numbers in `checked`; without a registry, lines have no frame. Waits
/// for the registry; returns false if `stop` is set.
///
/// # Errors
/// Returns refusals of the registry.
pub fn register(
    checked: &mut CheckedConfig,
    telemetry: &Telemetry,
    stop: &AtomicBool,
) -> Result<bool, Vec<ConfigProblem>> {
    let Some(kind) = output_schema_kind(&checked.config) else { return Ok(true) };
    let client = if is_framed(&checked.config) {
        registry_client(&checked.config, &checked.file).map_err(|problem| vec![problem])?
    } else {
        None
    };
    let mut groups = Vec::new();
    for output in outputs(&checked.config, &checked.schema, &checked.shapes) {
        let refused = |error: &dyn std::fmt::Display| {
            let remedy = "choose another topic, or another compatibility rule in the registry";
            vec![ConfigProblem::new(checked.file.as_str(), "sink.format", error.to_string(), remedy)]
        };
        let unanswered = |error: &RegistryError| match error {
            RegistryError::Refused { status: 401 | 403, .. } => {
                let remedy = "give a user who may read and register schemas (registry.user, registry.password_file)";
                vec![ConfigProblem::new(checked.file.as_str(), "registry.user", error.to_string(), remedy)]
            }
            RegistryError::Refused { status: 300..=399, .. } => {
                let remedy = "give the final address: redirects are not followed";
                vec![ConfigProblem::new(checked.file.as_str(), "registry.url", error.to_string(), remedy)]
            }
            _ => refused(error),
        };
        let before = match (&client, kind) {
            // Field numbers stay with their names.
            (Some(client), FrameEncoding::Protobuf) => {
                match retry_until_answer(telemetry, stop, || client.latest(&output.subject)) {
                    Ok(None) => return Ok(false),
                    Ok(Some(before)) => before,
                    Err(error) => return Err(unanswered(&error)),
                }
            }
            _ => None,
        };
        let numbers = FieldNumbers::from_registered(before.as_ref(), &output.record).map_err(|error| {
            refused(&format!("the latest schema under subject {:?} cannot be extended: {error}", output.subject))
        })?;
        let (mut group, text) = derive_schema(checked, kind, &output, numbers);
        if let Some(client) = &client {
            match retry_until_answer(telemetry, stop, || client.register(&output.subject, kind.kind(), &text)) {
                Ok(None) => return Ok(false),
                Ok(Some(id)) => {
                    tracing::info!(subject = output.subject, id, "output schema registered");
                    group.id = Some(id);
                }
                Err(error) => return Err(unanswered(&error)),
            }
        }
        groups.push(group);
    }
    checked.registered = groups.into();
    Ok(true)
}

/// Returns layout and schema of an output, without a number.
fn derive_schema(
    checked: &CheckedConfig,
    kind: FrameEncoding,
    output: &OutputRecord,
    numbers: FieldNumbers,
) -> (TypedGroup, String) {
    let CheckedConfig { config, schema, .. } = checked;
    let attributes: Vec<&Attribute> = output.attributes.iter().map(|&a| schema.attributes[a].as_ref()).collect();
    let namespace = namespace(schema);
    let mut group = TypedGroup {
        names: attributes.iter().map(|a| a.name.clone()).collect(),
        kinds: attributes.iter().map(|a| cell_kind_of(a)).collect(),
        numbers: Vec::new(),
        id: None,
    };
    let text = match kind {
        FrameEncoding::Avro => avro_schema(config, &attributes, &output.record, &namespace).to_string(),
        FrameEncoding::Json => {
            registered_json(checked, &output.name, &format!("{namespace}.{}", output.record)).to_string()
        }
        FrameEncoding::Protobuf => {
            let (text, of_fields) = protobuf_schema(config, &attributes, &output.record, &namespace, numbers);
            group.numbers = of_fields;
            text
        }
    };
    (group, text)
}

/// Returns the schemas by output without a registry.
#[must_use]
pub fn plain_schemas(checked: &CheckedConfig) -> Vec<(String, String)> {
    let Some(kind) = output_schema_kind(&checked.config) else { return Vec::new() };
    let each = |output: OutputRecord| {
        let (_, text) = derive_schema(checked, kind, &output, FieldNumbers::default());
        (output.name, text)
    };
    outputs(&checked.config, &checked.schema, &checked.shapes).into_iter().map(each).collect()
}

/// None if `stop` is set first.
fn retry_until_answer<T>(
    telemetry: &Telemetry,
    stop: &AtomicBool,
    ask: impl Fn() -> Result<T, RegistryError>,
) -> Result<Option<T>, RegistryError> {
    let mut wait = Duration::from_millis(500);
    loop {
        match ask() {
            Err(error @ RegistryError::Unreachable { .. }) => {
                RegistryLost { error: &error }.emit(telemetry);
                let until = Instant::now() + wait;
                while Instant::now() < until && !stop.load(Ordering::Acquire) {
                    std::thread::sleep(Duration::from_millis(50));
                }
                if stop.load(Ordering::Acquire) {
                    return Ok(None);
                }
                wait = (wait * 2).min(Duration::from_secs(30));
            }
            answer => {
                RegistryAnswered.emit(telemetry);
                return answer.map(Some);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::parse;

    fn problems_of(groups: [&str; 2], topic: &str, sink: &str) -> Vec<String> {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let place = folder.path().display();
        let attributes = ["a", "b"].map(|name| format!("[[attribute]]\nname = \"{name}\"\ntype = \"string\"\n"));
        std::fs::write(folder.path().join("s.toml"), format!("name = \"s\"\n{}", attributes.concat()))
            .expect("a schema");
        crate::config::Secret::create(&folder.path().join("key")).expect("the secret");
        let [one, two] = groups;
        let config = format!(
            "[source]\ntopics = [\"raw\"]\n[sink]\ntopic = \"{topic}\"\n{sink}\n[schema]\nfile = \"{place}/s.toml\"\n\
             [[group]]\nname = \"{one}\"\nattributes = [\"a\"]\n[[group]]\nname = \"{two}\"\nattributes = [\"b\"]\n\
             [state]\npath = \"{place}/state\"\nsecret_file = \"{place}/key\"\n"
        );
        let config = parse(&config, "two.toml", std::iter::empty()).expect("a configuration");
        let found = CheckedConfig::new(config, "two.toml").err().unwrap_or_default();
        found.into_iter().map(|problem| problem.to_string()).collect()
    }

    #[test]
    fn groups_with_equal_schema_names_are_refused() {
        let framed = "format = \"json_schema\"\n[registry]\nurl = \"http://localhost\"";
        for sink in ["format = \"avro\"", "format = \"protobuf\"", framed] {
            let found = problems_of(["heart-rate", "heart_rate"], "out", sink);
            assert_eq!(found.len(), 1, "{sink}: {found:?}");
            assert!(found[0].contains("heart-rate") && found[0].contains("out-throng.s.heart_rate"), "{found:?}");
            assert_eq!(problems_of(["heart-rate", "heart_rate"], "out.{group}", sink), Vec::<String>::new(), "{sink}");
            assert_eq!(problems_of(["heart", "rate"], "out", sink), Vec::<String>::new(), "{sink}");
        }
        assert_eq!(
            problems_of(["heart-rate", "heart_rate"], "out", ""),
            Vec::<String>::new(),
            "plain JSON has no schema"
        );
    }

    #[test]
    fn framed_output_requires_registry() {
        let found = problems_of(["one", "two"], "out", "format = \"json_schema\"");
        assert!(found.len() == 1 && found[0].contains("registry.url"), "{found:?}");
    }
}
