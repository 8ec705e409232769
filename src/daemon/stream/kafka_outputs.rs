//! Output topics, and the check of the marker against the state.

use crate::config::{Config, SinkKind};
use crate::daemon::state::directory::StateError;
use crate::daemon::state::records::BatchIntent;
use std::time::Duration;
use throng_kafka::connection::{KafkaCluster, KafkaFailure};
use throng_kafka::marker::BatchMarker;
use throng_kafka::topic::OutputTopic;
use throng_kafka::transaction::TransactionOutputs;

pub(super) const CLUSTER_TIMEOUT: Duration = Duration::from_secs(30);

/// Unique for any group: a state's id contains no `/`.
pub(super) fn transactional_id(group: &str, id: &str) -> String {
    format!("{group}/{id}")
}

pub(super) fn transaction_outputs(
    config: &Config,
    cluster: &KafkaCluster,
    attributes: Vec<String>,
    keeps_offsets: bool,
) -> Result<TransactionOutputs, KafkaFailure> {
    let sinks = sink_topics(config);
    let (dead_letters, audit) = (config.sink.dead_letters(), config.sink.audit());
    let names: Vec<&str> = sinks.iter().map(String::as_str).chain(dead_letters).chain(audit).collect();
    let partitions = cluster.partitions(&names, CLUSTER_TIMEOUT)?;
    let mut topics =
        names.iter().zip(partitions).map(|(name, partitions)| OutputTopic { name: (*name).to_owned(), partitions });
    let sinks = topics.by_ref().take(sinks.len()).collect();
    let dead_letters = dead_letters.and_then(|_| topics.next());
    let audit = audit.and_then(|_| topics.next());
    let (group, sources, contributions) =
        (config.source.group.clone(), config.consumed_topics(), config.contributions_topic());
    let changelog = config.sink.changelog_topic.clone();
    Ok(TransactionOutputs {
        sinks,
        dead_letters,
        audit,
        changelog,
        contributions,
        sources,
        group,
        keeps_offsets,
        attributes,
    })
}

fn sink_topics(config: &Config) -> Vec<String> {
    match config.sink.kind {
        SinkKind::Kafka => config.output_names().iter().map(|name| config.sink.topic_of(name)).collect(),
        SinkKind::File | SinkKind::None => Vec::new(),
    }
}

/// Adds the missing topics of the sink, which its own user describes, to a failure about missing topics: one start names
/// them all.
pub(super) fn with_missing_outputs(config: &Config, sink: &KafkaCluster, failure: KafkaFailure) -> KafkaFailure {
    let KafkaFailure::MissingTopics { brokers, mut topics } = failure else { return failure };
    let mut names = vec![config.sink.changelog_topic.clone()];
    names.extend(sink_topics(config));
    names.extend(config.sink.dead_letters().into_iter().chain(config.sink.audit()).map(str::to_owned));
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    if let Err(KafkaFailure::MissingTopics { topics: outputs, .. }) = sink.partitions(&names, CLUSTER_TIMEOUT) {
        topics.extend(outputs);
        let mut named = std::collections::BTreeSet::new();
        topics.retain(|topic| named.insert(topic.clone()));
    }
    KafkaFailure::MissingTopics { brokers, topics }
}

/// Checks the marker of the last batch. A marker ahead means an older copy of the state; one behind means lost markers.
/// Neither can be accepted: the state's held records were already released.
pub(super) fn check_marker(config: &Config, sequence: u64, marker: BatchMarker) -> Result<(), StateError> {
    let committed = marker.sequence;
    if sequence == committed {
        return Ok(());
    }
    Err(StateError::OtherMarker {
        path: config.state.path.clone(),
        what: format!(
            "it ends at batch {sequence}, but the last batch in {:?} is {committed} (was `source.group` changed, the topic emptied, or the directory restored?)",
            config.sink.changelog_topic
        ),
    })
}

/// Compares the marker with the intent. A later batch, or another attempt, comes from a copy of the state.
pub(super) fn was_batch_released(config: &Config, intent: &BatchIntent, last: BatchMarker) -> Result<bool, StateError> {
    let sequence = intent.after.sequence;
    if sequence > last.sequence + 1 {
        let what =
            format!("the changelog has no marker of batch {} (was it deleted, or is it another topic?)", sequence - 1);
        return Err(StateError::Marker { path: config.state.path.clone(), what });
    }
    if sequence > last.sequence {
        return Ok(false);
    }
    if (sequence, intent.attempt) == (last.sequence, last.attempt) {
        return Ok(true);
    }
    let what = format!("it ends at batch {}, but batch {} was committed by a copy of it", sequence - 1, last.sequence);
    Err(StateError::OtherMarker { path: config.state.path.clone(), what })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn transactional_ids_of_states_are_unique() {
        let pairs = [("a-b", "c"), ("a", "b-c"), ("a/b", "c"), ("a", "c"), ("b", "c")];
        let ids: BTreeSet<String> = pairs.iter().map(|(group, id)| transactional_id(group, id)).collect();
        assert_eq!(ids.len(), pairs.len(), "{ids:?}");
    }

    #[test]
    fn marker_mismatch_is_refused_with_a_remedy() {
        let config = Config::default();
        check_marker(&config, 7, BatchMarker { sequence: 7, attempt: 1 }).expect("the last batch of the state");
        for sequence in [6, 8] {
            let refused = check_marker(&config, 7, BatchMarker { sequence, attempt: 1 }).expect_err("another state's");
            let told = refused.to_string();
            assert!(
                told.contains(&format!("it ends at batch 7, but the last batch in \"throng.changelog\" is {sequence}")),
                "{told}"
            );
            assert!(told.contains("--accept-rewind does not accept this") && !told.contains("damaged"), "{told}");
        }
    }
}
