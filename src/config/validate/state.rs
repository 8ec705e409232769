//! What a state in a topic goes with.

use crate::config::complaint::Complaints;
use crate::config::{Config, SinkKind, SourceKind};

/// Complaints about a state that is to be kept in a topic.
pub(super) fn state(config: &Config, found: &mut Complaints) {
    let Some(instance) = config.state.follows() else { return };
    let topics = config.sink.kind == SinkKind::Kafka && config.source.kind == SourceKind::Kafka;
    let message = "the state goes with the transaction of each batch, which is one of topics";
    found.unless(topics, "state.kind", message, "set \"local\", or read topics and write topics");
    let legal = (1..101).contains(&instance.len())
        && instance.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b));
    let remedy = "name the instance with letters, digits, '.', '_' and '-', at most 100: THRONG__STATE__INSTANCE, such as the name of its pod";
    found.unless(legal, "state.instance", "a state in a topic is found by the name of its instance", remedy);
}
