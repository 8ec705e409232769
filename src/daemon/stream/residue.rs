//! The topic through which instances hand each other records, at the start of a daemon: whether it is the one that this state has read.
//!
//! Positions name it by its number. Another topic, or one of the same name that has been made anew, has the same number and other offsets.
//! Neither can hold what was taken up before, unless somebody who may write there has copied it, so both are read from where the group
//! stands. What is shown again is refused by sender and number, not by offset.

use crate::config::Config;
use crate::daemon::engine::Engine;
use crate::daemon::run_error::RunError;
use crate::daemon::state::directory::StateError;
use crate::daemon::state::records::Intent;
use crate::daemon::stream::run::StreamError;
use crate::io::kafka::connection::Cluster;
use crate::io::kafka::offsets;
use crate::telemetry::{InputLost, ResidueAnew};

/// Binds the state to the topic. Gives the batch that is to be repeated, where it still can be.
pub(super) fn begin(
    engine: &mut Engine,
    intent: Option<Intent>,
    (config, number): (&Config, u16),
    cluster: &Cluster,
) -> Result<Option<Intent>, RunError> {
    let Some(topic) = config.sink.residue() else { return Ok(intent) };
    let failed = |error: StateError| RunError::from(StreamError::from(error));
    let bound = engine.residue_topic().map_err(failed)?;
    let before = bound.as_deref().filter(|before| *before != topic);
    let read = engine.progress().positions.iter().filter(|((topic, _), _)| *topic == number);
    let read: Vec<(i32, i64)> = read.map(|((_, partition), position)| (*partition, *position)).collect();
    let is_anew = before.is_some() || offsets::end_before(cluster, &config.source.group, topic, &read);
    if is_anew {
        ResidueAnew { topic, before }.emit();
    }
    // The partitions of another topic have nothing of what such a batch took up; of one that was made anew, the reader finds that out.
    let of_before = |intent: &Intent| before.is_some() && intent.ranges.iter().any(|range| range.topic == number);
    let (gone, intent) = if intent.as_ref().is_some_and(of_before) { (intent, None) } else { (None, intent) };
    if let (Some(gone), Some(topic)) = (gone, before) {
        for range in gone.ranges.iter().filter(|range| range.topic == number) {
            InputLost { topic, partition: range.partition, from: range.from, to: range.to }.emit();
        }
        engine.give_up(&gone).map_err(failed)?;
    }
    if is_anew || bound.is_none() {
        engine.begin_residue(topic, is_anew.then_some(number)).map_err(failed)?;
    }
    Ok(intent)
}
