//! Properties that are passed through: which are throng's own, and which are the brokers'.

use crate::config::complaint::Complaints;
use crate::config::properties::{DECIDED_BY_BROKERS, GROUP_PROTOCOL, GROUP_PROTOCOLS, OWNED, Properties};

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
