//! What of a configuration can change while a daemon runs, between two batches, and what needs a new start.
//!
//! Everything that only the engine goes by can be replaced: its successor is made by the code of a start from the state on the
//! disk, and its batches are verified against the same ledger. What readers, sinks and pages hold open cannot, nor what a state is
//! bound to, nor what would rely on a past that nobody has kept. A key without a rule needs a start.

use super::checked::Checked;
use super::output_names::written_under;
use super::output_schema::output_schemas;
use crate::config::Config;
use serde_json::Value;
use std::collections::BTreeMap;

/// What a rule allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Any change between two batches.
    Free,
    /// A longer or the same time.
    Longer,
    /// None: a start is needed.
    Start,
}

/// A rule for the keys that begin with `key`; of several the longest holds.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// Key path, as the configuration spells it.
    pub key: &'static str,
    /// What it allows.
    pub change: Change,
    /// Why, in words for operators.
    pub why: &'static str,
}

const fn rule(key: &'static str, change: Change, why: &'static str) -> Rule {
    Rule { key, change, why }
}

/// Every rule, in the order of the configuration.
pub const RULES: &[Rule] = &[
    rule("source", Change::Start, "the reader is open since the start, and the state belongs to it"),
    rule("registry", Change::Start, "the reader asks it since the start"),
    rule("join", Change::Start, "the profiles are read since the start"),
    rule("batch", Change::Free, "the batch after the next one is closed by it"),
    rule("schema", Change::Free, "where the file is may change; what records are and how they generalize must stay"),
    rule("privacy", Change::Free, "what leaves from then on is judged by it"),
    rule("privacy.release_window", Change::Longer, "for what has left, the longer window was promised"),
    rule("privacy.max_delay", Change::Start, "which lines wait, and until when, is drawn when they come"),
    rule("privacy.max_classes_per_subject", Change::Start, "who supports what is remembered where it is asked for"),
    rule("privacy.min_tenure", Change::Start, "who has been seen is remembered where it is asked for"),
    rule("plan", Change::Free, "the next plan is made by it; the groups must come out the same"),
    rule("group", Change::Start, "the state has released in these groups, and their outputs are open"),
    rule("keep", Change::Free, "the groups must come out the same"),
    rule("treatment", Change::Free, "a treatment that makes what leaves untrue needs a start, which marks the output"),
    rule("anonymize", Change::Free, "a stream does not use it"),
    rule("sink", Change::Start, "the outputs are open since the start"),
    rule("erasure", Change::Start, "the topic is read since the start"),
    rule("output", Change::Start, "readers rely on what a line looks like"),
    rule("state", Change::Start, "the state is open since the start"),
    rule("compute", Change::Start, "the hardware is chosen at the start"),
    rule("telemetry", Change::Start, "the pages and the log are open since the start"),
    rule("process", Change::Start, "the end is timed from the start on"),
    rule("process.memory_limit", Change::Start, "the memory is divided at the start"),
    rule("test", Change::Free, "the next reload is tried by them"),
];

/// Why a configuration does not take the place of another while the daemon runs. Names of keys and reasons, never values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The key, as the configuration spells it.
    pub key: String,
    /// Why not, and what to do.
    pub why: String,
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.key, self.why)
    }
}

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
#[must_use]
pub fn changed(old: &Config, new: &Config) -> Vec<String> {
    let (mut old, new) = (keys(old), keys(new));
    let mut changed: Vec<String> =
        new.into_iter().filter(|(key, value)| old.remove(key).as_ref() != Some(value)).map(|(key, _)| key).collect();
    changed.extend(old.into_keys());
    changed.sort_unstable();
    changed
}

/// The rule for a key; none for a key that nobody has thought of.
fn rule_for(key: &str) -> Option<&'static Rule> {
    let covers = |rule: &&Rule| key == rule.key || key.strip_prefix(rule.key).is_some_and(|rest| rest.starts_with('.'));
    RULES.iter().filter(covers).max_by_key(|rule| rule.key.len())
}

/// Everything for which `new` may not take the place of `old` while the daemon runs; empty where it may.
#[must_use]
pub fn refusals(old: &Checked, new: &Checked) -> Vec<Refusal> {
    let mut found = Vec::new();
    let mut refuse = |key: &str, why: String| found.push(Refusal { key: key.to_owned(), why });
    for key in changed(&old.config, &new.config) {
        match rule_for(&key) {
            Some(Rule { change: Change::Free, .. }) => {}
            Some(Rule { change: Change::Longer, .. })
                if new.config.privacy.release_window >= old.config.privacy.release_window => {}
            Some(Rule { change: Change::Longer, why, .. }) => {
                refuse(&key, format!("{why}: it may become longer, and a shorter one needs a new start"));
            }
            Some(Rule { why, .. }) => refuse(&key, format!("{why}: this needs a new start")),
            None => refuse(&key, "this needs a new start".to_owned()),
        }
    }
    if old.config.secret != new.config.secret {
        refuse("state.secret_file", "the state is sealed with the secret that the daemon started with".to_owned());
    }
    if old.schema.fingerprint() != new.schema.fingerprint() {
        let why = "the attributes, their types, roles or hierarchies are others: the state belongs to the record schema that the \
                   daemon started with";
        refuse("schema.file", why.to_owned());
    } else if old.shapes != new.shapes {
        let why = "the groups of attributes have come out as others, and the state has released in those that it has: name them \
                   in [[group]]s, with plan.groups = \"given\"";
        refuse("group", why.to_owned());
    } else if written_under(&old.config).is_some() && output_schemas(old) != output_schemas(new) {
        let why = "what leaves would have another schema than the one that is registered: this needs a new start";
        refuse("treatment", why.to_owned());
    }
    if new.config.treatment.may_be_untruthful() && !old.config.treatment.may_be_untruthful() {
        let why = "what leaves may be untrue under it, and readers are told at a start: this needs a new start";
        refuse("treatment", why.to_owned());
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Treat, TreatmentRule, ValueKind};
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
        refusals(&checked(|_| {}), &checked(change)).into_iter().map(|refusal| refusal.key).collect()
    }

    #[test]
    fn every_section_has_a_rule() {
        for key in keys(&Config::default()).keys() {
            assert!(rule_for(key).is_some(), "{key} has no rule in start/replaceable.rs");
        }
    }

    #[test]
    fn what_only_the_engine_goes_by_is_replaced() {
        let free: [fn(&mut Config); 6] = [
            |_| {},
            |c| c.privacy.k = 9,
            |c| c.privacy.k = 2,
            |c| c.privacy.release_window = Duration::from_hours(48),
            |c| c.batch.max_records = 7,
            |c| c.plan.interval = Duration::from_secs(1),
        ];
        for change in free {
            assert_eq!(refused(change), [""; 0]);
        }
    }

    #[test]
    fn everything_else_is_refused_by_name() {
        let cases: [(fn(&mut Config), &str); 10] = [
            (|c| c.source.group = "other".to_owned(), "source.group"),
            (|c| c.source.brokers = "other:9092".to_owned(), "source.brokers"),
            (|c| c.sink.topic = "other".to_owned(), "sink.topic"),
            (|c| c.state.path = "other".into(), "state.path"),
            (|c| c.telemetry.listen = "127.0.0.1:1".to_owned(), "telemetry.listen"),
            (|c| c.secret = crate::config::Secret::new(vec![7; 32]).ok(), "state.secret_file"),
            (|c| c.privacy.release_window = Duration::from_hours(1), "privacy.release_window"),
            (|c| c.privacy.min_tenure = 3, "privacy.min_tenure"),
            (
                |c| {
                    c.treatment.rule = vec![TreatmentRule {
                        kind: Some(ValueKind::Numeric),
                        treat: Treat::Perturb,
                        ..TreatmentRule::default()
                    }]
                },
                "treatment",
            ),
            (|c| c.schema.file = concat!(env!("CARGO_MANIFEST_DIR"), "/schemas/wearable.toml").into(), "schema.file"),
        ];
        for (change, key) in cases {
            assert_eq!(refused(change), [key]);
        }
    }

    #[test]
    fn refusals_show_no_values() {
        let refusals = refusals(&checked(|_| {}), &checked(|c| c.source.brokers = "canary:9092".to_owned()));
        assert!(refusals.iter().all(|r| !r.to_string().contains("canary")), "{refusals:?}");
    }

    /// The table of docs/policies.md is these rules.
    #[test]
    fn the_manual_has_every_rule() {
        let page = include_str!("../../docs/policies.md");
        for Rule { key, change, why } in RULES {
            let allowed = match change {
                Change::Free => "yes",
                Change::Longer => "longer only",
                Change::Start => "no",
            };
            let row = format!("| `{key}` | {allowed} | {why} |");
            assert!(page.contains(&row), "docs/policies.md lacks the row\n{row}");
        }
    }
}
