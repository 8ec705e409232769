//! What a daemon needs of a cluster that it writes to: the topics, and a marker that agrees with the state.

use crate::config::{Config, SinkKind};
use crate::daemon::state::directory::StateError;
use crate::daemon::state::records::Intent;
use crate::io::kafka::connection::{Cluster, KafkaFailure};
use crate::io::kafka::marker::Marker;
use crate::io::kafka::topic::OutputTopic;
use crate::io::kafka::transaction::Outputs;
use std::time::Duration;

/// How long a start waits for a cluster before it says so and tries again.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

/// The transactional id of the state `id` in `group`. No id of a state has a `/` in it, so no two have one of these, whatever their groups
/// are called.
pub(super) fn transactional_id(group: &str, id: &str) -> String {
    format!("{group}/{id}")
}

/// The topics that a batch leaves to, which must all be there.
pub(super) fn outputs(
    config: &Config,
    cluster: &Cluster,
    attributes: Vec<String>,
    keeps_offsets: bool,
) -> Result<Outputs, KafkaFailure> {
    let topic = |name: &str| -> Result<OutputTopic, KafkaFailure> {
        Ok(OutputTopic { name: name.to_owned(), partitions: cluster.partitions(&[name], PATIENCE)?[0] })
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
    Ok(Outputs { sinks, dead_letters, audit, changelog, contributions, sources, group, keeps_offsets, attributes })
}

/// State and marker must agree once the pending intent has been decided. A marker ahead of the state means that the state
/// is an older copy; one behind it, that the markers were lost or belong to another group, and that nothing could be
/// decided by them. Nobody may accept either: files are taken back to where an older state ends, a topic is not, and what the
/// older state still holds has left.
pub(super) fn check_marker(config: &Config, sequence: u64, marker: Marker) -> Result<(), StateError> {
    let committed = marker.sequence;
    if sequence == committed {
        return Ok(());
    }
    Err(StateError::OtherMarker {
        path: config.state.path.clone(),
        what: format!(
            "it ends at batch {sequence}, but {:?} knows of {committed} as the last (was `source.group` changed, the topic emptied, or the directory restored?)",
            config.sink.changelog_topic
        ),
    })
}

/// Whether the batch of an intent left, by the marker. A marker of a later batch, or of another attempt at this one, is
/// none that this state has made: somebody has gone on with a copy of it.
pub(super) fn has_left(config: &Config, intent: &Intent, last: Marker) -> Result<bool, StateError> {
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
    fn no_two_states_have_one_transactional_id() {
        let pairs = [("a-b", "c"), ("a", "b-c"), ("a/b", "c"), ("a", "c"), ("b", "c")];
        let ids: BTreeSet<String> = pairs.iter().map(|(group, id)| transactional_id(group, id)).collect();
        assert_eq!(ids.len(), pairs.len(), "{ids:?}");
    }

    #[test]
    fn a_marker_that_is_not_the_states_is_refused_with_a_remedy_that_helps() {
        let config = Config::default();
        check_marker(&config, 7, Marker { sequence: 7, attempt: 1 }).expect("the last batch of the state");
        for sequence in [6, 8] {
            let refused = check_marker(&config, 7, Marker { sequence, attempt: 1 }).expect_err("another state's");
            let told = refused.to_string();
            assert!(
                told.contains(&format!("it ends at batch 7, but \"throng.changelog\" knows of {sequence} as the last")),
                "{told}"
            );
            assert!(told.contains("--accept-rewind does not accept this") && !told.contains("damaged"), "{told}");
        }
    }
}
