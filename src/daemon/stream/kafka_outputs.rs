//! Common parts of sinks that write to a cluster: the output topics, and the check of the marker against the state.

use crate::config::{Config, SinkKind};
use crate::daemon::state::directory::StateError;
use crate::daemon::state::records::BatchIntent;
use std::time::Duration;
use throng_kafka::connection::{KafkaCluster, KafkaFailure};
use throng_kafka::marker::BatchMarker;
use throng_kafka::topic::OutputTopic;
use throng_kafka::transaction::TransactionOutputs;

/// Time limit of a start for a query to a cluster.
pub(super) const CLUSTER_TIMEOUT: Duration = Duration::from_secs(30);

/// Returns the transactional id of the state `id` in `group`. It is unique for any group name, because the id of a
/// state contains no `/`.
pub(super) fn transactional_id(group: &str, id: &str) -> String {
    format!("{group}/{id}")
}

/// Returns the output topics of a batch, which must all exist.
pub(super) fn transaction_outputs(
    config: &Config,
    cluster: &KafkaCluster,
    attributes: Vec<String>,
    keeps_offsets: bool,
) -> Result<TransactionOutputs, KafkaFailure> {
    let topic = |name: &str| -> Result<OutputTopic, KafkaFailure> {
        Ok(OutputTopic { name: name.to_owned(), partitions: cluster.partitions(&[name], CLUSTER_TIMEOUT)?[0] })
    };
    let sinks = match config.sink.kind {
        SinkKind::Kafka => {
            config.output_names().iter().map(|name| topic(&config.sink.topic_of(name))).collect::<Result<_, _>>()?
        }
        SinkKind::File | SinkKind::None => Vec::new(),
    };
    let dead_letters = match config.sink.dead_letter_topic.as_str() {
        "" => None,
        name => Some(topic(name)?),
    };
    let audit = config.sink.audit().map(topic).transpose()?;
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

/// Checks that the state and the marker agree after the pending intent has been decided. If the marker is ahead, the
/// state is an older copy. If it is behind, the markers were lost or belong to another group, and the intent cannot
/// be decided from them. The operator cannot accept either: unlike files, a topic cannot be truncated to the end of
/// an older state, and the records held by that state were already released.
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

/// Returns true if the batch of an intent was released, according to the marker. A marker of a later batch, or of
/// another attempt, is not from this state: an instance with a copy of the state has written it.
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
