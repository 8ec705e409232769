//! Lists the changes that a reload refuses in advance: those that the state certainly excludes, and settings fixed for
//! the process. The start itself decides the others.

use super::checked_config::CheckedConfig;
use crate::config::{Config, SinkKind};
use serde_json::Value;
use std::collections::BTreeMap;

/// Keys (with all keys below) and reasons.
const FIXED_KEYS: [(&str, &str); 6] = [
    ("source.kind", "the state belongs to its source"),
    ("source.topics", "the state belongs to its topics"),
    ("source.group", "the offsets of the state are those of its consumer group"),
    ("state.path", "a reload keeps the state"),
    ("telemetry.log_format", "the log is opened once for the process"),
    ("telemetry.log_level", "the log is opened once for the process"),
];

/// Fixed if the daemon has a sink.
const KEYS_OF_THE_SINK: [&str; 4] = ["sink.kind", "sink.topic", "sink.rows", "output.shape"];

/// A list of tables is one value.
fn collect_leaf_values(value: &Value, path: &str, found: &mut BTreeMap<String, Value>) {
    match value {
        Value::Object(table) => {
            for (name, value) in table {
                let here = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                collect_leaf_values(value, &here, found);
            }
        }
        leaf => drop(found.insert(path.to_owned(), leaf.clone())),
    }
}

fn keys_with_values(config: &Config) -> BTreeMap<String, Value> {
    let mut found = BTreeMap::new();
    // Plain data with string keys always serializes.
    collect_leaf_values(&serde_json::to_value(config).unwrap_or_default(), "", &mut found);
    found
}

/// Returns the keys with different values, ascending, without secrets.
pub fn changed_keys(old: &Config, new: &Config) -> Vec<String> {
    let (mut old, new) = (keys_with_values(old), keys_with_values(new));
    let mut changed: Vec<String> =
        new.into_iter().filter(|(key, value)| old.remove(key).as_ref() != Some(value)).map(|(key, _)| key).collect();
    changed.extend(old.into_keys());
    changed.sort_unstable();
    changed
}

/// Returns the keys that prevent a restart from `old` to `new` on the same state, each with reason and remedy, never a
/// value.
pub fn reload_refusals(old: &CheckedConfig, new: &CheckedConfig) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut refuse =
        |key: &str, why: &str| found.push((key.to_owned(), format!("{why}: stop the daemon and start it again")));
    for key in changed_keys(&old.config, &new.config) {
        if let Some((_, why)) = FIXED_KEYS.iter().find(|(refused, _)| *refused == key) {
            refuse(&key, why);
        }
        if old.config.sink.kind != SinkKind::None && KEYS_OF_THE_SINK.contains(&key.as_str()) {
            refuse(&key, "the state belongs to the sink of its released records");
        }
    }
    if old.config.secret != new.config.secret {
        refuse("state.secret_file", "the state is encrypted with the secret that the daemon started with");
    }
    if old.schema.fingerprint() != new.schema.fingerprint() {
        refuse(
            "schema.file",
            "attributes, types, roles or hierarchies have changed, but the state belongs to its record schema",
        );
    } else if old.shapes != new.shapes {
        refuse("group", "the groups of attributes have changed, but the state has released records in the old ones");
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn checked(change: impl FnOnce(&mut Config)) -> CheckedConfig {
        let mut config = Config::default();
        config.schema.file = concat!(env!("CARGO_MANIFEST_DIR"), "/schemas/adult.toml").into();
        config.source.topics = vec!["raw".to_owned()];
        config.sink.topic = "out".to_owned();
        change(&mut config);
        CheckedConfig::new(config, "throng.toml").unwrap_or_else(|problems| panic!("{problems:?}"))
    }

    fn refused(change: impl FnOnce(&mut Config)) -> Vec<String> {
        reload_refusals(&checked(|_| {}), &checked(change)).into_iter().map(|(key, _)| key).collect()
    }

    #[test]
    fn reload_accepts_changes_of_free_keys() {
        let free: [fn(&mut Config); 8] = [
            |_| {},
            |c| c.privacy.k = 9,
            |c| c.privacy.k = 2,
            |c| c.privacy.min_tenure = 3,
            |c| c.batch.max_records = 7,
            |c| c.plan.interval = Duration::from_secs(1),
            |c| c.source.brokers = "other:9092".to_owned(),
            |c| c.telemetry.listen = "127.0.0.1:1".to_owned(),
        ];
        for change in free {
            assert_eq!(refused(change), [""; 0]);
        }
    }

    #[test]
    fn reload_refuses_changes_of_fixed_keys_by_name() {
        let cases: [(fn(&mut Config), &str); 7] = [
            (|c| c.source.group = "other".to_owned(), "source.group"),
            (|c| c.source.topics = vec!["other".to_owned()], "source.topics"),
            (|c| c.sink.topic = "other".to_owned(), "sink.topic"),
            (|c| c.state.path = "other".into(), "state.path"),
            (|c| c.telemetry.log_format = crate::config::LogFormat::Json, "telemetry.log_format"),
            (|c| c.secret = crate::config::Secret::new((0..32).collect()).ok(), "state.secret_file"),
            (|c| c.schema.file = concat!(env!("CARGO_MANIFEST_DIR"), "/schemas/wearable.toml").into(), "schema.file"),
        ];
        for (change, key) in cases {
            assert_eq!(refused(change), [key]);
        }
    }

    #[test]
    fn reload_refusals_contain_no_values() {
        let refusals = reload_refusals(&checked(|_| {}), &checked(|c| c.source.topics = vec!["canary".to_owned()]));
        assert!(
            !refusals.is_empty() && refusals.iter().all(|(key, why)| !format!("{key} {why}").contains("canary")),
            "{refusals:?}"
        );
    }

    #[test]
    fn manual_lists_every_refused_key() {
        let page = include_str!("../../docs/policies.md");
        for key in FIXED_KEYS.iter().map(|(key, _)| *key).chain(KEYS_OF_THE_SINK) {
            assert!(page.contains(&format!("`{key}`")), "docs/policies.md lacks `{key}`");
        }
    }
}
