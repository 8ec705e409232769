//! The digest of a policy: equal wherever the same is promised, whatever its files are called and wherever it runs.

use crate::config::Config;
use crate::records::schema::Schema;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

/// Sections that promise nothing of what leaves: where it comes from and goes to, on what machine, and who may look.
const SURROUNDINGS: [&str; 8] =
    ["source", "registry", "sink", "state", "process", "compute", "telemetry", "certificates"];

/// Keys that name a file or a topic.
const PLACES: [&str; 7] = ["file", "path", "population", "prime", "topic", "writer_schema", "key_writer_schema"];

/// SHA-256, in lower-case hex, of a checked configuration and its schema in canonical form: keys sorted, hierarchies by their content; without
/// secrets, addresses and paths. Of the sink, what a line carries. Groups and treatments that the planner is left to choose are not part of it, nor is what the
/// files of populations and of a primed plan say.
#[must_use]
pub fn policy_digest(config: &Config, schema: &Schema) -> String {
    let mut policy = Map::new();
    if let Ok(Value::Object(sections)) = serde_json::to_value(config) {
        policy.extend(sections.into_iter().filter(|(name, _)| !SURROUNDINGS.contains(&name.as_str())));
    }
    policy.insert("rows".into(), serde_json::json!(config.sink.rows));
    policy.insert("records".into(), schema.fingerprint().into());
    let changes = schema.attributes.iter().map(|a| format!("{:?} {:?}", a.changes, a.treatment));
    policy.insert("attributes".into(), changes.collect::<Vec<_>>().into());
    let mut text = String::new();
    spell(&Value::Object(policy), &mut text);
    let digest = Sha256::digest(text.as_bytes());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// JSON with sorted keys, without white space and without keys that name places.
fn spell(value: &Value, text: &mut String) {
    match value {
        Value::Object(map) => {
            let mut keys: Vec<&String> = map.keys().filter(|key| !PLACES.contains(&key.as_str())).collect();
            keys.sort();
            text.push('{');
            for (at, key) in keys.into_iter().enumerate() {
                text.push_str(if at > 0 { "," } else { "" });
                *text += &Value::from(key.as_str()).to_string();
                text.push(':');
                spell(&map[key], text);
            }
            text.push('}');
        }
        Value::Array(items) => {
            text.push('[');
            for (at, item) in items.iter().enumerate() {
                text.push_str(if at > 0 { "," } else { "" });
                spell(item, text);
            }
            text.push(']');
        }
        plain => *text += &plain.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn schema(name: &str) -> Schema {
        let text = format!("name = \"t\"\n[[attribute]]\nname = \"{name}\"\ntype = \"string\"\n");
        Schema::parse(&text, "s.toml", Path::new("")).expect("a sound schema")
    }

    #[test]
    fn it_follows_what_is_promised_and_not_where_it_runs() {
        let digest = |change: &dyn Fn(&mut Config)| {
            let mut config = Config::default();
            change(&mut config);
            policy_digest(&config, &schema("a"))
        };
        let plain = digest(&|_| {});
        assert_eq!(plain.len(), 64);
        assert_eq!(digest(&|c| c.source.brokers = "elsewhere:9092".into()), plain);
        assert_eq!(digest(&|c| c.sink.path = "elsewhere".into()), plain);
        assert_eq!(digest(&|c| c.schema.file = "elsewhere.toml".into()), plain);
        assert_eq!(digest(&|c| c.plan.prime = Some("elsewhere".into())), plain);
        assert_eq!(digest(&|c| c.certificates.key_file = Some("elsewhere".into())), plain);
        assert_ne!(digest(&|c| c.privacy.k += 1), plain);
        assert_ne!(digest(&|c| c.sink.rows = crate::config::Rows::Joined), plain);
        assert_ne!(policy_digest(&Config::default(), &schema("b")), plain);
    }
}
