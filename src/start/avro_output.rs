//! What leaves as Avro: a schema for each group, derived from the record schema, and its number in the registry.

use super::avro_names::{avro_name, is_avro};
use super::checked::Checked;
use super::parts::client;
use crate::codec::{AvroGroup, AvroKind};
use crate::config::{Config, JOINED, Problem, Rows};
use crate::io::registry::RegistryError;
use crate::records::canonical::Type;
use crate::records::schema::{Attribute, Schema};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The Avro schema of one group's lines, and what they are registered under.
pub struct AvroOutput {
    /// How its lines are written; without a number yet.
    pub group: AvroGroup,
    /// The schema.
    pub schema: Value,
    /// The subject in the registry.
    pub subject: String,
}

/// The derived schema of every group, in the order in which groups leave; the one of all of them where rows are joined.
///
/// Every column is a union with null (what is missing) and string (a text that stands for several values, or `"*"`). A topic of
/// one group has the subject `TOPIC-value`; where several groups share a topic, each has `TOPIC-RECORD`.
#[must_use]
pub fn avro_outputs(checked: &Checked) -> Vec<AvroOutput> {
    let Checked { config, schema, shapes, .. } = checked;
    if config.sink.rows == Rows::Joined {
        let all: BTreeSet<usize> = shapes.iter().flat_map(|shape| shape.without_ladder().attributes()).collect();
        let all: Vec<usize> = all.into_iter().collect();
        let namespace = format!("throng.{}", avro_name(&schema.name));
        return vec![output(
            config,
            schema,
            &all,
            JOINED,
            &namespace,
            format!("{}-value", config.sink.topic_of(JOINED)),
        )];
    }
    let topics: Vec<String> = shapes.iter().map(|shape| config.sink.topic_of(&shape.name)).collect();
    let alone = |topic: &String| topics.iter().filter(|other| *other == topic).count() == 1;
    let namespace = format!("throng.{}", avro_name(&schema.name));
    shapes
        .iter()
        .zip(&topics)
        .map(|(shape, topic)| {
            let record = avro_name(&shape.name);
            let subject = if alone(topic) { format!("{topic}-value") } else { format!("{topic}-{namespace}.{record}") };
            output(config, schema, &shape.without_ladder().attributes(), &record, &namespace, subject)
        })
        .collect()
}

fn output(
    config: &Config,
    schema: &Schema,
    attributes: &[usize],
    record: &str,
    namespace: &str,
    subject: String,
) -> AvroOutput {
    let attributes: Vec<&Attribute> = attributes.iter().map(|&a| schema.attributes[a].as_ref()).collect();
    let field = |attribute: &&Attribute| {
        let mut field = json!({
            "name": avro_name(&attribute.name),
            "type": kind_of(attribute).branches(),
            "default": null,
        });
        if avro_name(&attribute.name) != attribute.name {
            field["doc"] = json!(attribute.name);
        }
        field
    };
    let truth =
        if config.treatment.may_be_untruthful() { "values may be exchanged between people" } else { "truthful" };
    AvroOutput {
        schema: json!({
            "type": "record",
            "name": record,
            "namespace": namespace,
            "doc": format!("Fragments released by throng, k = {}; {truth}; \"*\" is suppressed", config.privacy.k),
            "fields": attributes.iter().map(field).collect::<Vec<_>>(),
        }),
        group: AvroGroup {
            names: attributes.iter().map(|a| a.name.clone()).collect(),
            kinds: attributes.iter().map(|a| kind_of(a)).collect(),
            id: None,
        },
        subject,
    }
}

fn kind_of(attribute: &Attribute) -> AvroKind {
    match attribute.kind() {
        Type::Integer => AvroKind::Integer,
        Type::Float => AvroKind::Float,
        Type::Boolean => AvroKind::Boolean,
        Type::String | Type::Date | Type::Timestamp | Type::Coordinates => AvroKind::Text,
    }
}

/// Registers what leaves under its subjects and notes the numbers in `checked`; without a registry the lines have no frame. Waits
/// for a registry that does not answer, and gives false where it was told to `stop` meanwhile.
///
/// # Errors
/// What the registry refuses, with its own words.
pub fn register(checked: &mut Checked, stop: &AtomicBool) -> Result<bool, Vec<Problem>> {
    if !is_avro(&checked.config) {
        return Ok(true);
    }
    let outputs = avro_outputs(checked);
    let client = client(&checked.config, &checked.file).map_err(|problem| vec![problem])?;
    let mut groups = Vec::with_capacity(outputs.len());
    for AvroOutput { mut group, schema, subject } in outputs {
        if let Some(client) = &client {
            let register = || client.register(&subject, &schema.to_string());
            let id = patiently(register, stop).map_err(|error| {
                let remedy = "choose another topic, or another rule of compatibility in the registry";
                vec![Problem::new(checked.file.as_str(), "sink.format", error.to_string(), remedy)]
            })?;
            let Some(id) = id else { return Ok(false) };
            tracing::info!(subject, id, "registered the schema of what leaves");
            group.id = Some(id);
        }
        groups.push(group);
    }
    checked.avro = groups.into();
    Ok(true)
}

/// Asks until there is an answer; none where it is told to stop first.
fn patiently(ask: impl Fn() -> Result<u32, RegistryError>, stop: &AtomicBool) -> Result<Option<u32>, RegistryError> {
    let mut wait = Duration::from_millis(500);
    loop {
        match ask() {
            Err(error @ RegistryError::Unreachable { .. }) => {
                tracing::warn!(error = %error, "waiting for the schema registry");
                let until = Instant::now() + wait;
                while Instant::now() < until && !stop.load(Ordering::Acquire) {
                    std::thread::sleep(Duration::from_millis(50));
                }
                if stop.load(Ordering::Acquire) {
                    return Ok(None);
                }
                wait = (wait * 2).min(Duration::from_secs(30));
            }
            answer => return answer.map(Some),
        }
    }
}
