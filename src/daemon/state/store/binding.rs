//! What a state belongs to (one stream, one sink, one set of groups), and other facts that change apart from batches.

use super::Store;
use crate::daemon::state::directory::StateError;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

pub(super) const STREAM: &[u8] = b"stream";
pub(super) const SINK: &[u8] = b"sink";
pub(super) const GROUPS: &[u8] = b"groups";
/// Digest of the policy under which batches are made.
pub(super) const POLICY: &[u8] = b"policy";
/// Digest of the input that the last job took in.
pub(super) const JOB: &[u8] = b"job";
/// Ways in which what has left, or still waits, may be untrue.
pub(super) const UNTRUTHFUL: &[u8] = b"untruthful";
/// Position in the erasure topic.
pub const ERASURE_POSITION: &[u8] = b"erasure-position";

/// Position in the erasure topic up to which its messages have been acted on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TopicPosition {
    /// Name of the topic.
    pub topic: String,
    /// Next offset by partition.
    pub next: BTreeMap<i32, i64>,
}

impl Store {
    /// Writes one value.
    fn put<T: Serialize + ?Sized>(&mut self, key: &[u8], value: &T) -> Result<(), StateError> {
        let mut batch = sled::Batch::default();
        batch.insert(key, self.seal(key, value));
        self.commit(batch)
    }

    /// Writes a text that never changes; `other` is the error where the state has another one.
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
        self.put(key, text)
    }

    /// Binds the state to one stream: the schema that gives positions and texts their meaning, and the source that offsets
    /// belong to. `stream` describes both.
    pub fn bind(&mut self, stream: &str) -> Result<(), StateError> {
        self.bind_to(STREAM, stream, |store, _| Some(StateError::OtherStream(store.path.clone())))
    }

    /// Binds the state to where its batches leave to: what one audience has seen is no crowd for another. `sink` describes it.
    pub fn bind_sink(&mut self, sink: &str) -> Result<(), StateError> {
        self.bind_to(SINK, sink, |store, _| Some(StateError::OtherSink(store.path.clone())))
    }

    /// Binds the state to the groups in which its batches leave, spelled as a configuration does; a `fresh` one, which has released
    /// nothing yet, to whatever they are now.
    pub fn bind_groups(&mut self, groups: &str, fresh: bool) -> Result<(), StateError> {
        self.bind_to(GROUPS, groups, |store, known| {
            (!fresh).then(|| StateError::OtherGroups { path: store.path.clone(), groups: known })
        })
    }

    /// Digest of the policy under which the last batches were made or tried; none in a state without batches.
    pub fn policy(&self) -> Result<Option<[u8; 32]>, StateError> {
        self.read(POLICY)
    }

    /// Notes that batches are made under another policy from here on.
    pub fn note_policy(&mut self, digest: &[u8; 32]) -> Result<(), StateError> {
        self.put(POLICY, digest)
    }

    /// Notes the input that this job takes in; returns whether it differs from that of the last job.
    pub fn note_input(&mut self, digest: &[u8; 32]) -> Result<bool, StateError> {
        let is_new = self.read::<[u8; 32]>(JOB)?.as_ref() != Some(digest);
        if is_new {
            self.put(JOB, digest)?;
        }
        Ok(is_new)
    }

    /// Notes that this process may alter what it releases; returns whether any process of this state may have: altered records may
    /// wait long, and the outputs keep them.
    pub fn note_untruthful(&mut self, alters: bool) -> Result<bool, StateError> {
        let noted = self.read(UNTRUTHFUL)?.unwrap_or(false);
        if alters && !noted {
            self.put(UNTRUTHFUL, &true)?;
        }
        Ok(noted || alters)
    }

    /// Position in the erasure topic: no offsets where the state has none of `topic`.
    pub fn erasure_position(&self, topic: &str) -> Result<TopicPosition, StateError> {
        let known = self.read::<TopicPosition>(ERASURE_POSITION)?.filter(|known| known.topic == topic);
        Ok(known.unwrap_or_else(|| TopicPosition { topic: topic.to_owned(), next: BTreeMap::new() }))
    }

    /// Writes the position in the erasure topic by itself: no message before it names anybody.
    pub fn note_erasure_position(&mut self, position: &TopicPosition) -> Result<(), StateError> {
        self.put(ERASURE_POSITION, position)
    }
}
