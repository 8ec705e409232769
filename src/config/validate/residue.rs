//! What handing on records that find no crowd goes with: which records those are tells of their values, and whatever might say more by that
//! is refused.

use super::ledger::holds_on_the_union;
use crate::config::complaint::Complaints;
use crate::config::{Config, Recoding, SinkKind, SourceKind};
use std::time::Duration;

const KEY: &str = "sink.residue_topic";

/// Complaints about a topic for records that find no crowd.
pub(super) fn residue(config: &Config, found: &mut Complaints) {
    if config.sink.residue().is_none() {
        return;
    }
    let (privacy, sink) = (&config.privacy, &config.sink);
    let topics = sink.kind == SinkKind::Kafka && config.source.kind == SourceKind::Kafka;
    let message = "instances of one consumer group hand records on, which read topics and write topics";
    found.unless(topics, KEY, message, "remove the key");
    let message = "no record would be young enough when it is taken up";
    found.unless(sink.residue_age >= Duration::from_secs(1), "sink.residue_age", message, "give at least 1s");
    let message = "who knows that a line was handed on can strike out of its class what had a crowd where it came from";
    let remedy = "set recoding = \"ladder\", or remove the key";
    found.unless(privacy.recoding != Recoding::Strict, KEY, message, remedy);
    let bounded = privacy.max_classes_per_subject > 0 || privacy.min_tenure > 0;
    let message = "who has spent a budget, or has been seen, is known where the record came from alone";
    let remedy = "remove privacy.max_classes_per_subject and privacy.min_tenure, or the key";
    found.unless(!bounded, KEY, message, remedy);
    let message = "the cells that a join brings are not handed on";
    found.unless(config.join.is_empty(), KEY, message, "remove [[join]], or the key");
    for (index, model) in privacy.model.iter().enumerate() {
        let message = "a person whom two instances release may break this model on the lines of both together";
        let remedy = "ask for distinct l_diversity, or remove sink.residue_topic";
        found.unless(holds_on_the_union(model), &format!("privacy.model[{index}].kind"), message, remedy);
    }
}
