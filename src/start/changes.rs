//! Differences between two configurations, and those for which a reload is refused without being tried.
//!
//! A reload is a start from the state of the running daemon: the start decides what this state allows. Refused beforehand, so that
//! nothing is interrupted in vain, is what the state certainly does not allow, and what is set once for the whole process.

use super::checked::Checked;
use crate::config::{Config, SinkKind};
use serde_json::Value;
use std::collections::BTreeMap;

/// Keys (and all below them) for which a reload is refused, and why.
const REFUSED: [(&str, &str); 6] = [
    ("source.kind", "the state belongs to its source"),
    ("source.topics", "the state belongs to its topics"),
    ("source.group", "the offsets of the state are those of its consumer group"),
    ("state.path", "a reload keeps the state"),
    ("telemetry.log_format", "the log is opened once for the process"),
    ("telemetry.log_level", "the log is opened once for the process"),
];

/// Keys for which a reload is refused once something was released.
const OF_THE_SINK: [&str; 4] = ["sink.kind", "sink.topic", "sink.rows", "output.shape"];

/// Keys with their values; tables of lists as one value.
fn leaves(value: &Value, path: &str, found: &mut BTreeMap<String, Value>) {
    match value {
        Value::Object(table) => {
            for (name, value) in table {
                let here = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                leaves(value, &here, found);
            }
        }
        leaf => drop(found.insert(path.to_owned(), leaf.clone())),
    }
}

fn keys(config: &Config) -> BTreeMap<String, Value> {
    let mut found = BTreeMap::new();
    // A configuration is plain data with names for keys: it can always be written as JSON.
    leaves(&serde_json::to_value(config).unwrap_or_default(), "", &mut found);
    found
}

/// The keys in which two configurations differ, ascending. Secrets are no keys.
pub fn changed(old: &Config, new: &Config) -> Vec<String> {
    let (mut old, new) = (keys(old), keys(new));
    let mut changed: Vec<String> =
        new.into_iter().filter(|(key, value)| old.remove(key).as_ref() != Some(value)).map(|(key, _)| key).collect();
    changed.extend(old.into_keys());
    changed.sort_unstable();
    changed
}

/// Everything for which a daemon that runs with `old` refuses to start again with `new` on the same state; empty where it tries. By key, the reason
/// and the remedy, never a value.
pub fn refusals(old: &Checked, new: &Checked) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut refuse =
        |key: &str, why: &str| found.push((key.to_owned(), format!("{why}: stop the daemon and start it anew")));
    for key in changed(&old.config, &new.config) {
        if let Some((_, why)) = REFUSED.iter().find(|(refused, _)| *refused == key) {
            refuse(&key, why);
        }
        if old.config.sink.kind != SinkKind::None && OF_THE_SINK.contains(&key.as_str()) {
            refuse(&key, "the state belongs to the place where its records have been released");
        }
    }
    if old.config.secret != new.config.secret {
        refuse("state.secret_file", "the state is sealed with the secret that the daemon started with");
    }
    if old.schema.fingerprint() != new.schema.fingerprint() {
        refuse(
            "schema.file",
            "attributes, types, roles or hierarchies have changed, and the state belongs to its record schema",
        );
    } else if old.shapes != new.shapes {
        refuse("group", "the groups of attributes have changed, and the state has released in those that it has");
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn checked(change: impl FnOnce(&mut Config)) -> Checked {
        let mut config = Config::default();
        config.schema.file = concat!(env!("CARGO_MANIFEST_DIR"), "/schemas/adult.toml").into();
        config.source.topics = vec!["raw".to_owned()];
        config.sink.topic = "out".to_owned();
        change(&mut config);
        Checked::new(config, "throng.toml").unwrap_or_else(|problems| panic!("{problems:?}"))
    }

    fn refused(change: impl FnOnce(&mut Config)) -> Vec<String> {
        refusals(&checked(|_| {}), &checked(change)).into_iter().map(|(key, _)| key).collect()
    }

    #[test]
    fn keys_that_a_start_may_change_are_not_refused() {
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
    fn keys_that_the_state_or_the_process_is_bound_to_are_refused_by_name() {
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
    fn refusals_show_no_values() {
        let refusals = refusals(&checked(|_| {}), &checked(|c| c.source.topics = vec!["canary".to_owned()]));
        assert!(
            !refusals.is_empty() && refusals.iter().all(|(key, why)| !format!("{key} {why}").contains("canary")),
            "{refusals:?}"
        );
    }

    #[test]
    fn manual_lists_every_refused_key() {
        let page = include_str!("../../docs/policies.md");
        for key in REFUSED.iter().map(|(key, _)| *key).chain(OF_THE_SINK) {
            assert!(page.contains(&format!("`{key}`")), "docs/policies.md lacks `{key}`");
        }
    }
}
