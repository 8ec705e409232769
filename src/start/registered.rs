//! What leaves under a schema: one for each group, and its number in the registry.

use super::avro_output::{avro_schema, kind_of};
use super::checked::Checked;
use super::field_numbers::Numbers;
use super::output_names::{Output, is_framed, namespace, outputs, written_under};
use super::output_schema::registered_json;
use super::parts::client;
use super::protobuf_output::protobuf_schema;
use crate::config::Problem;
use crate::io::registry::{FramedAs, RegistryError};
use crate::telemetry::{RegistryAnswered, RegistryLost, Telemetry};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use throng_core::values::schema::Attribute;
use throng_formats::TypedGroup;

/// Registers what leaves under its subjects and notes the numbers in `checked`; without a registry the lines have no frame. Waits
/// for a registry that does not answer, and gives false where it was told to `stop` meanwhile.
///
/// # Errors
/// What the registry refuses, with its own words.
pub fn register(checked: &mut Checked, telemetry: &Telemetry, stop: &AtomicBool) -> Result<bool, Vec<Problem>> {
    let Some(kind) = written_under(&checked.config) else { return Ok(true) };
    let client = if is_framed(&checked.config) {
        client(&checked.config, &checked.file).map_err(|problem| vec![problem])?
    } else {
        None
    };
    let mut groups = Vec::new();
    for output in outputs(&checked.config, &checked.schema, &checked.shapes) {
        let refused = |error: &dyn std::fmt::Display| {
            let remedy = "choose another topic, or another rule of compatibility in the registry";
            vec![Problem::new(checked.file.as_str(), "sink.format", error.to_string(), remedy)]
        };
        let unanswered = |error: &RegistryError| match error {
            RegistryError::Refused { status: 401 | 403, .. } => {
                let remedy = "give a user who may read and register schemas (registry.user, registry.password_file)";
                vec![Problem::new(checked.file.as_str(), "registry.user", error.to_string(), remedy)]
            }
            RegistryError::Refused { status: 300..=399, .. } => {
                let remedy = "name the address that answers by itself: no redirection is followed";
                vec![Problem::new(checked.file.as_str(), "registry.url", error.to_string(), remedy)]
            }
            _ => refused(error),
        };
        let before = match (&client, kind) {
            // Numbers stay with their names, whatever the order of the attributes.
            (Some(client), FramedAs::Protobuf) => match answer(telemetry, stop, || client.latest(&output.subject)) {
                Ok(None) => return Ok(false),
                Ok(Some(before)) => before,
                Err(error) => return Err(unanswered(&error)),
            },
            _ => None,
        };
        let numbers = Numbers::after(before.as_ref(), &output.record).map_err(|error| {
            refused(&format!("the latest schema under subject {:?} cannot be followed: {error}", output.subject))
        })?;
        let (mut group, text) = derived(checked, kind, &output, numbers);
        if let Some(client) = &client {
            match answer(telemetry, stop, || client.register(&output.subject, kind.kind(), &text)) {
                Ok(None) => return Ok(false),
                Ok(Some(id)) => {
                    tracing::info!(subject = output.subject, id, "registered the schema of what leaves");
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

/// How the lines of an output are written, without a number yet, and their schema.
fn derived(checked: &Checked, kind: FramedAs, output: &Output, numbers: Numbers) -> (TypedGroup, String) {
    let Checked { config, schema, .. } = checked;
    let attributes: Vec<&Attribute> = output.attributes.iter().map(|&a| schema.attributes[a].as_ref()).collect();
    let namespace = namespace(schema);
    let mut group = TypedGroup {
        names: attributes.iter().map(|a| a.name.clone()).collect(),
        kinds: attributes.iter().map(|a| kind_of(a)).collect(),
        numbers: Vec::new(),
        id: None,
    };
    let text = match kind {
        FramedAs::Avro => avro_schema(config, &attributes, &output.record, &namespace).to_string(),
        FramedAs::Json => registered_json(checked, &output.name, &format!("{namespace}.{}", output.record)).to_string(),
        FramedAs::Protobuf => {
            let (text, of_fields) = protobuf_schema(config, &attributes, &output.record, &namespace, numbers);
            group.numbers = of_fields;
            text
        }
    };
    (group, text)
}

/// The schemas of what leaves as they are without a registry, by output; none where lines have none.
#[must_use]
pub fn plain_schemas(checked: &Checked) -> Vec<(String, String)> {
    let Some(kind) = written_under(&checked.config) else { return Vec::new() };
    let each = |output: Output| {
        let (_, text) = derived(checked, kind, &output, Numbers::default());
        (output.name, text)
    };
    outputs(&checked.config, &checked.schema, &checked.shapes).into_iter().map(each).collect()
}

/// Asks until there is an answer; none where it is told to `stop` first.
fn answer<T>(
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

    /// What is wrong with two groups of these names on `topic`, where lines leave as `sink` says.
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
        let found = Checked::new(config, "two.toml").err().unwrap_or_default();
        found.into_iter().map(|problem| problem.to_string()).collect()
    }

    #[test]
    fn groups_that_readers_could_not_tell_apart_are_refused() {
        let framed = "format = \"json_schema\"\n[registry]\nurl = \"http://localhost\"";
        for sink in ["format = \"avro\"", "format = \"protobuf\"", framed] {
            let found = problems_of(["heart-rate", "heart_rate"], "out", sink);
            assert_eq!(found.len(), 1, "{sink}: {found:?}");
            assert!(found[0].contains("heart-rate") && found[0].contains("out-throng.s.heart_rate"), "{found:?}");
            // A topic each, or other names.
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
    fn frames_need_a_registry() {
        let found = problems_of(["one", "two"], "out", "format = \"json_schema\"");
        assert!(found.len() == 1 && found[0].contains("registry.url"), "{found:?}");
    }
}
