//! The digest of a policy: what decides which cells of a record leave, as one number that everybody can name.

use crate::config::Config;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::fmt;
use throng_core::values::schema::{Changes, Schema};

/// SHA-256 of a policy, in lower-case hex where it is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub struct PolicyDigest([u8; 32]);

impl PolicyDigest {
    /// As bytes.
    pub fn bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Its first twelve digits, for people.
    pub fn short(&self) -> String {
        let mut text = self.to_string();
        text.truncate(12);
        text
    }
}

impl fmt::Display for PolicyDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Sections that say where records come from and go to, what is kept of them and who may look: none of them is policy.
const SURROUNDINGS: [&str; 10] =
    ["source", "registry", "state", "compute", "telemetry", "process", "schema", "test", "keep", "erasure"];

/// Keys of any section that name places.
const PLACES: [&str; 15] = [
    "path",
    "file",
    "topic",
    "prime",
    "brokers",
    "librdkafka",
    "dead_letter_topic",
    "dead_letter_path",
    "audit_file",
    "audit_topic",
    "changelog_topic",
    "compression",
    "separator",
    "rotate",
    "kind",
];

/// A value without places, its keys in order: equal policies give equal text, however they were written.
fn canonical(value: &Value) -> Value {
    match value {
        Value::Object(table) => {
            let mut keys: Vec<&String> = table.keys().filter(|key| !is_place(key, table)).collect();
            keys.sort();
            keys.into_iter().map(|key| (key.clone(), canonical(&table[key]))).collect::<serde_json::Map<_, _>>().into()
        }
        Value::Array(items) => items.iter().map(canonical).collect(),
        plain => plain.clone(),
    }
}

/// The kind of a privacy model is policy, that of a sink is not: a sink has a path.
fn is_place(key: &str, table: &serde_json::Map<String, Value>) -> bool {
    PLACES.contains(&key) && (key != "kind" || table.contains_key("path"))
}

/// The part of a configuration that is policy: no secret, address or path is in it.
fn policy(config: &Config) -> Value {
    // A configuration is plain data with names for keys: it can always be written as JSON.
    let mut value = serde_json::to_value(config).unwrap_or_default();
    if let Some(sections) = value.as_object_mut() {
        sections.retain(|section, _| !SURROUNDINGS.contains(&section.as_str()));
    }
    canonical(&value)
}

fn changes(changes: Option<Changes>) -> &'static str {
    match changes {
        None => "unsaid",
        Some(Changes::Never) => "never",
        Some(Changes::Slowly) => "slowly",
        Some(Changes::Always) => "always",
    }
}

/// The digest of a policy: of the configuration as it is written, of the record schema and its hierarchies by their content. Not of
/// groups and treatments that the planner is left to choose, of the people of a k-map, of records that a plan is primed with, nor of secrets,
/// addresses and paths: the same policy on another machine has the same digest.
pub fn policy_digest(config: &Config, schema: &Schema) -> PolicyDigest {
    let mut hash = Sha256::new();
    let mut add = |text: &str| {
        hash.update((text.len() as u64).to_be_bytes());
        hash.update(text.as_bytes());
    };
    add("throng policy 1");
    add(&policy(config).to_string());
    if let Some(bytes) = config.process.memory_limit {
        // Which records the window has decides what plans are made of.
        add(&format!("memory {bytes}"));
    }
    add(&schema.fingerprint());
    for attribute in &schema.attributes {
        // What the fingerprint of a stream leaves out, since a state goes on with other ones.
        add(changes(attribute.changes));
        add(&format!("{:?}", attribute.treatment));
    }
    PolicyDigest(hash.finalize().into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::start::schema::load_schema;
    use std::sync::Arc;

    fn digest(change: impl FnOnce(&mut Config)) -> PolicyDigest {
        let mut config = Config::default();
        config.schema.file = concat!(env!("CARGO_MANIFEST_DIR"), "/schemas/adult.toml").into();
        config.source.topics = vec!["raw".to_owned()];
        config.sink.topic = "out".to_owned();
        change(&mut config);
        let schema = load_schema(&config).unwrap_or_else(|problems| panic!("{problems:?}"));
        policy_digest(&config, &schema)
    }

    #[test]
    fn a_digest_follows_the_policy_and_nothing_else() {
        let plain = digest(|_| {});
        assert_eq!(plain.to_string().len(), 64);
        assert_eq!(plain.short(), plain.to_string()[..12]);
        let same: [fn(&mut Config); 6] = [
            |c| c.source.brokers = "elsewhere:9092".to_owned(),
            |c| c.sink.topic = "other".to_owned(),
            |c| c.state.path = "elsewhere".into(),
            |c| c.telemetry.listen = "127.0.0.1:1".to_owned(),
            |c| c.secret = crate::config::Secret::new((0..32).collect()).ok(),
            |c| c.test = vec![crate::config::PolicyTest::default()],
        ];
        for change in same {
            assert_eq!(plain, digest(change));
        }
        let other: [fn(&mut Config); 7] = [
            |c| c.process.memory_limit = Some(2 << 30),
            |c| c.privacy.k = 6,
            |c| c.privacy.max_lines_per_subject = 2,
            |c| c.plan.window_records = 7,
            |c| c.batch.max_records = 77,
            |c| c.treatment.preset = crate::config::Preset::A,
            |c| c.sink.rows = crate::config::Rows::Joined,
        ];
        for change in other {
            assert_ne!(plain, digest(change));
        }
    }

    #[test]
    fn no_place_and_no_address_is_part_of_it() {
        let mut config = Config::default();
        config.sink.path = "canary".into();
        config.sink.topic = "canary".to_owned();
        config.source.brokers = "canary".to_owned();
        config.plan.prime = Some("canary".into());
        config.state.path = "canary".into();
        config.schema.file = "canary".into();
        config.telemetry.token_file = Some("canary".into());
        let text = policy(&config).to_string();
        assert!(!text.contains("canary") && text.contains("\"k\":5"), "{text}");
    }

    #[test]
    fn what_changes_is_part_of_it() {
        let mut config = Config::default();
        config.schema.file = concat!(env!("CARGO_MANIFEST_DIR"), "/schemas/adult.toml").into();
        let mut schema = load_schema(&config).unwrap_or_else(|problems| panic!("{problems:?}"));
        let plain = policy_digest(&config, &schema);
        Arc::make_mut(&mut Arc::make_mut(&mut schema).attributes[0]).changes = Some(Changes::Never);
        assert_ne!(plain, policy_digest(&config, &schema));
    }
}
