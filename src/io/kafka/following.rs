//! What a sink knows of a state that goes with its batches.

use super::marker::Marker;
use crate::io::state_topic::StateTopic;
use crate::io::state_topic::spelling::Record;
use crate::release::kept_sum::StateChange;
use crate::release::sink::DeliveryError;
use crate::telemetry::{StateKept, Telemetry};

/// A state that goes with the batches of a sink.
pub struct Following {
    /// Where to.
    pub topic: StateTopic,
    /// The last marker that was committed: it names the copy in force.
    pub last: Marker,
    /// Is told of bytes.
    pub telemetry: Telemetry,
}

/// The error of a sink that was told of no topic.
pub(super) fn nowhere() -> DeliveryError {
    DeliveryError::Fatal("no topic was named for the state".to_owned())
}

impl Following {
    /// `changes` as records.
    #[must_use]
    pub fn spell(&self, generation: u64, changes: &[StateChange]) -> Vec<Record> {
        changes.iter().flat_map(|change| self.topic.spelling.spell(generation, change)).collect()
    }

    /// `records` were committed, and `marker` with them or before.
    pub fn has_kept(&mut self, marker: Marker, records: &[Record]) {
        self.last = marker;
        let bytes = records.iter().map(|(key, body)| key.len() + body.as_ref().map_or(0, Vec::len)).sum::<usize>();
        StateKept { bytes: bytes as u64 }.emit(&self.telemetry);
    }
}
