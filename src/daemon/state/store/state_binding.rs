//! Binding of a state to one stream, one sink and one set of groups, and other facts that change independently of
//! batches.

use super::StateStore;
use crate::daemon::state::directory::StateError;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

pub(super) const STREAM: &[u8] = b"stream";
pub(super) const SINK: &[u8] = b"sink";
pub(super) const GROUPS: &[u8] = b"groups";
/// Digest of the policy under which batches are made.
pub(super) const POLICY: &[u8] = b"policy";
/// Digest of the input of the last job.
pub(super) const JOB_INPUT: &[u8] = b"job";
/// True if released or waiting records may have been altered.
pub(super) const UNTRUTHFUL: &[u8] = b"untruthful";
/// Position in the erasure topic.
pub const ERASURE_POSITION: &[u8] = b"erasure-position";

/// Position in the erasure topic up to which its messages have been processed.
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

    /// Binds the state to a text. If another text is stored, `other` returns the error, or `None` to replace it.
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

    /// Binds the state to one stream, described by `stream`: the schema, which defines positions and texts, and the
    /// source, which defines offsets.
    pub fn bind_stream(&mut self, stream: &str) -> Result<(), StateError> {
        self.bind_to(STREAM, stream, |store, _| Some(StateError::OtherStream(store.path.clone())))
    }

    /// Binds the state to the destination of its batches, described by `sink`. Records released to one audience are
    /// no anonymity set for another.
    pub fn bind_sink(&mut self, sink: &str) -> Result<(), StateError> {
        self.bind_to(SINK, sink, |store, _| Some(StateError::OtherSink(store.path.clone())))
    }

    /// Binds the state to the groups of its releases, written as in a configuration. A `fresh` state, which has
    /// released no batch, may be bound to other groups.
    pub fn bind_groups(&mut self, groups: &str, fresh: bool) -> Result<(), StateError> {
        self.bind_to(GROUPS, groups, |store, known| {
            (!fresh).then(|| StateError::OtherGroups { path: store.path.clone(), groups: known })
        })
    }

    /// Returns the digest of the policy of the last batches, released or attempted; `None` for a state without
    /// batches.
    pub fn stored_policy(&self) -> Result<Option<[u8; 32]>, StateError> {
        self.read(POLICY)
    }

    /// Records that batches from now on are made under another policy.
    pub fn write_policy(&mut self, digest: &[u8; 32]) -> Result<(), StateError> {
        self.write_value(POLICY, digest)
    }

    /// Records the input of this job. Returns true if it differs from that of the last job.
    pub fn record_input(&mut self, digest: &[u8; 32]) -> Result<bool, StateError> {
        let is_new = self.read::<[u8; 32]>(JOB_INPUT)?.as_ref() != Some(digest);
        if is_new {
            self.write_value(JOB_INPUT, digest)?;
        }
        Ok(is_new)
    }

    /// Records that this process may alter records. Returns true if any process of this state may have altered some:
    /// such records may wait for long, and the outputs keep them.
    pub fn record_untruthful(&mut self, alters: bool) -> Result<bool, StateError> {
        let noted = self.read(UNTRUTHFUL)?.unwrap_or(false);
        if alters && !noted {
            self.write_value(UNTRUTHFUL, &true)?;
        }
        Ok(noted || alters)
    }

    /// Returns the position in the erasure topic; without offsets if the state has none for `topic`.
    pub fn erasure_position(&self, topic: &str) -> Result<TopicPosition, StateError> {
        let known = self.read::<TopicPosition>(ERASURE_POSITION)?.filter(|known| known.topic == topic);
        Ok(known.unwrap_or_else(|| TopicPosition { topic: topic.to_owned(), next: BTreeMap::new() }))
    }

    /// Writes only the position in the erasure topic. No message before it names a subject that is not yet erased.
    pub fn write_erasure_position(&mut self, position: &TopicPosition) -> Result<(), StateError> {
        self.write_value(ERASURE_POSITION, position)
    }
}
