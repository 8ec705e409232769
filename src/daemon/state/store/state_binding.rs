//! Binding of a state to its stream, sink and groups.

use super::StateStore;
use crate::daemon::state::directory::StateError;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

pub(super) const STREAM: &[u8] = b"stream";
pub(super) const SINK: &[u8] = b"sink";
pub(super) const GROUPS: &[u8] = b"groups";
pub(super) const POLICY: &[u8] = b"policy";
pub(super) const JOB_INPUT: &[u8] = b"job";
pub(super) const UNTRUTHFUL: &[u8] = b"untruthful";
/// Key of the position in the erasure topic.
pub const ERASURE_POSITION: &[u8] = b"erasure-position";

/// Processed position in the erasure topic.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TopicPosition {
    /// Name of the topic.
    pub topic: String,
    /// Next offset by partition.
    pub next: BTreeMap<i32, i64>,
}

impl StateStore {
    fn write_value<T: Serialize + ?Sized>(&mut self, key: &[u8], value: &T) -> Result<(), StateError> {
        let mut batch = sled::Batch::default();
        batch.insert(key, self.seal_for_write(key, value));
        self.commit(batch)
    }

    /// For another text, `other` returns the error, or `None` to replace it.
    fn bind_to(
        &mut self,
        key: &[u8],
        text: &str,
        other: impl FnOnce(&Self, String) -> Option<StateError>,
    ) -> Result<(), StateError> {
        match self.read::<String>(key)? {
            Some(known) if known == text => return Ok(()),
            Some(known) => other(self, known).map_or(Ok(()), Err)?,
            None => {}
        }
        self.write_value(key, text)
    }

    /// Binds the state to one schema and source.
    pub fn bind_stream(&mut self, stream: &str) -> Result<(), StateError> {
        self.bind_to(STREAM, stream, |store, _| Some(StateError::OtherStream(store.path.clone())))
    }

    /// Binds the state to one destination: records released to one audience are no anonymity set for another.
    pub fn bind_sink(&mut self, sink: &str) -> Result<(), StateError> {
        self.bind_to(SINK, sink, |store, _| Some(StateError::OtherSink(store.path.clone())))
    }

    /// Binds the state to its groups; a `fresh` state accepts others.
    pub fn bind_groups(&mut self, groups: &str, fresh: bool) -> Result<(), StateError> {
        self.bind_to(GROUPS, groups, |store, known| {
            (!fresh).then(|| StateError::OtherGroups { path: store.path.clone(), groups: known })
        })
    }

    /// Returns the policy digest of the last batches, released or attempted.
    pub fn stored_policy(&self) -> Result<Option<[u8; 32]>, StateError> {
        self.read(POLICY)
    }

    /// Records that later batches have another policy.
    pub fn write_policy(&mut self, digest: &[u8; 32]) -> Result<(), StateError> {
        self.write_value(POLICY, digest)
    }

    /// Records the input of this job; true if it is new.
    pub fn record_input(&mut self, digest: &[u8; 32]) -> Result<bool, StateError> {
        let is_new = self.read::<[u8; 32]>(JOB_INPUT)?.as_ref() != Some(digest);
        if is_new {
            self.write_value(JOB_INPUT, digest)?;
        }
        Ok(is_new)
    }

    /// Records possible alterations of records; true if any process of this state may have altered some.
    pub fn record_untruthful(&mut self, alters: bool) -> Result<bool, StateError> {
        let noted = self.read(UNTRUTHFUL)?.unwrap_or(false);
        if alters && !noted {
            self.write_value(UNTRUTHFUL, &true)?;
        }
        Ok(noted || alters)
    }

    /// Returns the position in the erasure topic; empty for another `topic`.
    pub fn erasure_position(&self, topic: &str) -> Result<TopicPosition, StateError> {
        let known = self.read::<TopicPosition>(ERASURE_POSITION)?.filter(|known| known.topic == topic);
        Ok(known.unwrap_or_else(|| TopicPosition { topic: topic.to_owned(), next: BTreeMap::new() }))
    }

    /// Writes only the position: all subjects before it must be erased.
    pub fn write_erasure_position(&mut self, position: &TopicPosition) -> Result<(), StateError> {
        self.write_value(ERASURE_POSITION, position)
    }
}
