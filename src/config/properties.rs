//! Properties passed through to librdkafka, and which of them may not be.

use super::problem::Complaints;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};
use std::collections::BTreeMap;
use std::fmt;

/// Properties that the exactly-once protocol depends on, and how to get what they would change.
const OWNED: [(&str, &str); 10] = [
    ("enable.auto.commit", "offsets are committed in the transaction of their batch"),
    ("enable.auto.offset.store", "offsets are committed in the transaction of their batch"),
    ("isolation.level", "only committed records are read"),
    ("enable.idempotence", "the producer is transactional"),
    ("transactional.id", "it is the group's name and the state directory's own id"),
    ("group.id", "use source.group"),
    ("bootstrap.servers", "use source.brokers"),
    ("metadata.broker.list", "use source.brokers"),
    ("partition.assignment.strategy", "partitions are revoked cooperatively"),
    ("plugin.library.paths", "no foreign code is loaded"),
];

/// The property that says how members of the group are kept apart, and its values.
const GROUP_PROTOCOL: &str = "group.protocol";
const GROUP_PROTOCOLS: [&str; 2] = ["classic", "consumer"];

/// Properties that the brokers decide where the group's protocol is `consumer`, and what decides them there.
const DECIDED_BY_BROKERS: [(&str, &str); 3] = [
    ("session.timeout.ms", "group.consumer.session.timeout.ms"),
    ("heartbeat.interval.ms", "group.consumer.heartbeat.interval.ms"),
    ("group.protocol.type", "group.coordinator.rebalance.protocols"),
];

/// Properties that hold a secret, accepted from the environment only.
const SECRET: [&str; 6] = [
    "sasl.password",
    "ssl.key.password",
    "ssl.key.pem",
    "ssl.keystore.password",
    "sasl.oauthbearer.client.secret",
    "sasl.oauthbearer.config",
];

/// Whether a property of this name holds a secret.
pub(super) fn is_secret(name: &str) -> bool {
    SECRET.contains(&name)
}

/// librdkafka properties by name. Debug and serialization print a placeholder for passwords and keys.
#[derive(Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Properties(pub BTreeMap<String, String>);

impl Properties {
    /// Whether members of the group are kept apart by the brokers (KIP-848).
    pub fn has_consumer_protocol(&self) -> bool {
        self.0.get(GROUP_PROTOCOL).is_some_and(|protocol| protocol == "consumer")
    }

    /// Name and value of each, in the order of names; for handing them to librdkafka.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    pub(super) fn example() -> Self {
        Self(BTreeMap::from([("security.protocol".into(), "ssl".into())]))
    }

    fn printable(&self) -> impl Iterator<Item = (&str, &str)> {
        self.iter().map(|(name, value)| (name, if is_secret(name) { "(secret)" } else { value }))
    }
}

impl fmt::Debug for Properties {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.printable()).finish()
    }
}

impl Serialize for Properties {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(self.printable())
    }
}

/// What stands in the table of the source.
pub(super) fn source(properties: &Properties, found: &mut Complaints) {
    owned("source", properties, found);
    let Some(protocol) = properties.0.get(GROUP_PROTOCOL) else { return };
    let known = GROUP_PROTOCOLS.contains(&protocol.as_str());
    let remedy = "give \"classic\", or \"consumer\" for brokers of Kafka 4.0 and later";
    found.unless(known, &key("source", GROUP_PROTOCOL), "there is no such protocol", remedy);
    if properties.has_consumer_protocol() {
        for (name, setting) in DECIDED_BY_BROKERS {
            let message = format!("with {GROUP_PROTOCOL} = \"consumer\" the brokers decide this, by {setting}");
            found.unless(!properties.0.contains_key(name), &key("source", name), &message, "remove it");
        }
    }
}

/// What stands in the table of the sink.
pub(super) fn sink(properties: &Properties, found: &mut Complaints) {
    owned("sink", properties, found);
    let has_none = !properties.0.contains_key(GROUP_PROTOCOL);
    found.unless(has_none, &key("sink", GROUP_PROTOCOL), "only the source has a group", "set it in source.librdkafka");
}

fn owned(section: &str, properties: &Properties, found: &mut Complaints) {
    for (name, _) in properties.iter() {
        if let Some((_, reason)) = OWNED.iter().find(|(owned, _)| *owned == name) {
            found.unless(false, &key(section, name), &format!("this property is throng's own: {reason}"), "remove it");
        }
    }
}

fn key(section: &str, name: &str) -> String {
    format!("{section}.librdkafka.{name}")
}

#[cfg(test)]
mod tests {
    use super::Properties;

    #[test]
    fn passwords_are_never_printed() {
        let properties = Properties(
            [("sasl.password", "canary-5271"), ("client.id", "shown")].map(|(n, v)| (n.into(), v.into())).into(),
        );
        let printed = format!("{properties:?} {}", serde_json::to_string(&properties).expect("a map of text"));
        assert!(printed.contains("shown") && !printed.contains("canary-5271"), "{printed}");
        assert_eq!(properties.iter().find(|(n, _)| *n == "sasl.password").map(|(_, v)| v), Some("canary-5271"));
    }
}
