//! Digest of all settings that decide which cells are released.

use crate::config::Config;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::fmt;
use throng_core::values::schema::{ChangeFrequency, Schema};

/// SHA-256 of a policy, displayed in hexadecimal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub struct PolicyDigest([u8; 32]);

impl PolicyDigest {
    /// Returns the digest as bytes.
    pub fn bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Returns the first twelve digits.
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

/// Sources, destinations, state and access are not policy.
const EXCLUDED_SECTIONS: [&str; 10] =
    ["source", "registry", "state", "compute", "telemetry", "process", "schema", "test", "keep", "erasure"];

const LOCATION_KEYS: [&str; 15] = [
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

/// Removes locations and sorts keys: equal policies give equal text.
fn canonical(value: &Value) -> Value {
    match value {
        Value::Object(table) => {
            let mut keys: Vec<&String> = table.keys().filter(|key| !is_location_key(key, table)).collect();
            keys.sort();
            keys.into_iter().map(|key| (key.clone(), canonical(&table[key]))).collect::<serde_json::Map<_, _>>().into()
        }
        Value::Array(items) => items.iter().map(canonical).collect(),
        plain => plain.clone(),
    }
}

/// The `kind` of a privacy model is policy, that of a sink is not.
fn is_location_key(key: &str, table: &serde_json::Map<String, Value>) -> bool {
    LOCATION_KEYS.contains(&key) && (key != "kind" || table.contains_key("path"))
}

/// Excludes secrets, addresses and paths.
fn policy(config: &Config) -> Value {
    // Plain data with string keys always serializes.
    let mut value = serde_json::to_value(config).unwrap_or_default();
    if let Some(sections) = value.as_object_mut() {
        sections.retain(|section, _| !EXCLUDED_SECTIONS.contains(&section.as_str()));
    }
    canonical(&value)
}

fn pace_label(changes: Option<ChangeFrequency>) -> &'static str {
    match changes {
        None => "unsaid",
        Some(ChangeFrequency::Never) => "never",
        Some(ChangeFrequency::Slowly) => "slowly",
        Some(ChangeFrequency::Always) => "always",
    }
}

/// Returns the digest of the configuration as written, and of the content of its schema and hierarchies.
///
/// It excludes choices of the planner, a k-map's population, priming records, secrets, addresses and paths, so it is
/// equal on all machines.
pub fn policy_digest(config: &Config, schema: &Schema) -> PolicyDigest {
    let mut hash = Sha256::new();
    let mut add = |text: &str| {
        hash.update((text.len() as u64).to_be_bytes());
        hash.update(text.as_bytes());
    };
    add("throng policy 1");
    add(&policy(config).to_string());
    if let Some(bytes) = config.process.memory_limit {
        // The limit decides the records of the window, and so the plans.
        add(&format!("memory {bytes}"));
    }
    add(&schema.fingerprint());
    for attribute in &schema.attributes {
        // Not in the schema fingerprint: a state can continue with other values.
        add(pace_label(attribute.changes));
        add(&format!("{:?}", attribute.treatment));
    }
    PolicyDigest(hash.finalize().into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::start::schema_loading::load_schema;
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
    fn digest_depends_on_policy_only() {
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
            |c| c.treatment.preset = crate::config::TreatmentPreset::A,
            |c| c.sink.rows = crate::config::RowContent::Joined,
        ];
        for change in other {
            assert_ne!(plain, digest(change));
        }
    }

    #[test]
    fn digest_excludes_paths_and_addresses() {
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
    fn digest_includes_attribute_changes() {
        let mut config = Config::default();
        config.schema.file = concat!(env!("CARGO_MANIFEST_DIR"), "/schemas/adult.toml").into();
        let mut schema = load_schema(&config).unwrap_or_else(|problems| panic!("{problems:?}"));
        let plain = policy_digest(&config, &schema);
        Arc::make_mut(&mut Arc::make_mut(&mut schema).attributes[0]).changes = Some(ChangeFrequency::Never);
        assert_ne!(plain, policy_digest(&config, &schema));
    }
}
