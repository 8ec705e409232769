//! librdkafka properties, with checks for the reserved ones.

use super::problem::ProblemCollector;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};
use std::collections::BTreeMap;
use std::fmt;

/// Properties of the exactly-once protocol, with reason or alternative.
const RESERVED_PROPERTIES: [(&str, &str); 10] = [
    ("enable.auto.commit", "offsets are committed in the transaction of their batch"),
    ("enable.auto.offset.store", "offsets are committed in the transaction of their batch"),
    ("isolation.level", "only committed records are read"),
    ("enable.idempotence", "the producer is transactional"),
    ("transactional.id", "it is derived from the group's name and the id of the state directory"),
    ("group.id", "use source.group"),
    ("bootstrap.servers", "use source.brokers"),
    ("metadata.broker.list", "use source.brokers"),
    ("partition.assignment.strategy", "partitions are revoked cooperatively"),
    ("plugin.library.paths", "librdkafka plugins are not loaded"),
];

const GROUP_PROTOCOL: &str = "group.protocol";
const GROUP_PROTOCOLS: [&str; 2] = ["classic", "consumer"];

/// Properties that the brokers set under the protocol `consumer`, each with the broker setting.
const BROKER_SETTINGS: [(&str, &str); 3] = [
    ("session.timeout.ms", "group.consumer.session.timeout.ms"),
    ("heartbeat.interval.ms", "group.consumer.heartbeat.interval.ms"),
    ("group.protocol.type", "group.coordinator.rebalance.protocols"),
];

/// Secrets, accepted from the environment only.
const SECRET_PROPERTIES: [&str; 6] = [
    "sasl.password",
    "ssl.key.password",
    "ssl.key.pem",
    "ssl.keystore.password",
    "sasl.oauthbearer.client.secret",
    "sasl.oauthbearer.config",
];

pub(super) fn is_secret(name: &str) -> bool {
    SECRET_PROPERTIES.contains(&name)
}

/// librdkafka properties by name. Debug and serialization hide secrets.
#[derive(Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct KafkaProperties(pub BTreeMap<String, String>);

impl KafkaProperties {
    /// Returns true if the brokers assign partitions to the group's members (KIP-848).
    pub fn has_consumer_protocol(&self) -> bool {
        self.0.get(GROUP_PROTOCOL).is_some_and(|protocol| protocol == "consumer")
    }

    /// Returns names and values, sorted by name.
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

impl fmt::Debug for KafkaProperties {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.printable()).finish()
    }
}

impl Serialize for KafkaProperties {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(self.printable())
    }
}

pub(super) fn check_source_properties(properties: &KafkaProperties, found: &mut ProblemCollector) {
    refuse_reserved("source", properties, found);
    let Some(protocol) = properties.0.get(GROUP_PROTOCOL) else { return };
    let known = GROUP_PROTOCOLS.contains(&protocol.as_str());
    let remedy = "give \"classic\", or \"consumer\" for brokers of Kafka 4.0 and later";
    found.require(known, &key("source", GROUP_PROTOCOL), "unknown protocol", remedy);
    if properties.has_consumer_protocol() {
        for (name, setting) in BROKER_SETTINGS {
            let message = format!("with {GROUP_PROTOCOL} = \"consumer\" the brokers set this, with {setting}");
            found.require(!properties.0.contains_key(name), &key("source", name), &message, "remove it");
        }
    }
}

pub(super) fn check_sink_properties(properties: &KafkaProperties, found: &mut ProblemCollector) {
    refuse_reserved("sink", properties, found);
    let has_none = !properties.0.contains_key(GROUP_PROTOCOL);
    found.require(has_none, &key("sink", GROUP_PROTOCOL), "only the source has a group", "set it in source.librdkafka");
}

fn refuse_reserved(section: &str, properties: &KafkaProperties, found: &mut ProblemCollector) {
    for (name, _) in properties.iter() {
        if let Some((_, reason)) = RESERVED_PROPERTIES.iter().find(|(owned, _)| *owned == name) {
            found.require(false, &key(section, name), &format!("this property is reserved: {reason}"), "remove it");
        }
    }
}

fn key(section: &str, name: &str) -> String {
    format!("{section}.librdkafka.{name}")
}

#[cfg(test)]
mod tests {
    use super::KafkaProperties;

    #[test]
    fn property_passwords_are_never_printed() {
        let properties = KafkaProperties(
            [("sasl.password", "canary-5271"), ("client.id", "shown")].map(|(n, v)| (n.into(), v.into())).into(),
        );
        let printed = format!("{properties:?} {}", serde_json::to_string(&properties).expect("a map of text"));
        assert!(printed.contains("shown") && !printed.contains("canary-5271"), "{printed}");
        assert_eq!(properties.iter().find(|(n, _)| *n == "sasl.password").map(|(_, v)| v), Some("canary-5271"));
    }
}
