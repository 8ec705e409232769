//! What a state belongs to: one stream, one place and its groups.

use super::Store;
use crate::daemon::state::directory::StateError;
use crate::daemon::state::writes::Writes;

pub(super) const STREAM: &[u8] = b"stream";
pub(super) const SINK: &[u8] = b"sink";
pub(super) const GROUPS: &[u8] = b"groups";
/// Digest of the policy under which batches are made.
pub(super) const POLICY: &[u8] = b"policy";
/// Digest of the input that the last job took in.
pub(super) const JOB: &[u8] = b"job";
/// Ways in which what has left, or still waits, may be untrue.
pub(super) const UNTRUTHFUL: &[u8] = b"untruthful";

impl Store {
    /// Binds the state to one stream: the schema that gives positions and texts their meaning, and the source that offsets
    /// belong to. `stream` describes both.
    ///
    /// # Errors
    /// [`StateError::OtherStream`] when the state belongs to another.
    pub fn bind(&mut self, stream: &str) -> Result<(), StateError> {
        match self.read::<String>(STREAM)? {
            Some(known) if known == stream => Ok(()),
            Some(_) => Err(StateError::OtherStream(self.path.clone())),
            None => {
                let mut batch = Writes::default();
                batch.insert(STREAM, self.seal(STREAM, &stream));
                self.commit(batch)
            }
        }
    }

    /// Digest of the policy under which the last batches were made or tried; none in a state of an older version.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn policy(&self) -> Result<Option<[u8; 32]>, StateError> {
        self.read(POLICY)
    }

    /// Notes that batches are made under another policy from here on.
    ///
    /// # Errors
    /// When the database fails.
    pub fn note_policy(&mut self, digest: &[u8; 32]) -> Result<(), StateError> {
        let mut batch = Writes::default();
        batch.insert(POLICY, self.seal(POLICY, digest));
        self.commit(batch)
    }

    /// Digest of the input that the last job over files took in; none where there was no such job.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn last_input(&self) -> Result<Option<[u8; 32]>, StateError> {
        self.read(JOB)
    }

    /// Notes the input that this job takes in.
    ///
    /// # Errors
    /// When the database fails.
    pub fn note_input(&mut self, digest: &[u8; 32]) -> Result<(), StateError> {
        let mut batch = Writes::default();
        batch.insert(JOB, self.seal(JOB, digest));
        self.commit(batch)
    }

    /// Notes that this process may alter what it releases; returns whether any process of this state may have: altered records may
    /// wait long, and the outputs keep them.
    ///
    /// # Errors
    /// When it cannot be read or written.
    pub fn note_untruthful(&mut self, alters: bool) -> Result<bool, StateError> {
        let noted = self.read(UNTRUTHFUL)?.unwrap_or(false);
        if noted || !alters {
            return Ok(noted);
        }
        let mut batch = Writes::default();
        batch.insert(UNTRUTHFUL, self.seal(UNTRUTHFUL, &true));
        self.commit(batch)?;
        Ok(true)
    }

    /// Binds the state to where its batches leave to: what one audience has seen is no crowd for another. `sink` describes it.
    ///
    /// # Errors
    /// [`StateError::OtherSink`] when the state has released to another.
    pub fn bind_sink(&mut self, sink: &str) -> Result<(), StateError> {
        match self.read::<String>(SINK)? {
            Some(known) if known == sink => Ok(()),
            Some(_) => Err(StateError::OtherSink(self.path.clone())),
            None => {
                let mut batch = Writes::default();
                batch.insert(SINK, self.seal(SINK, &sink));
                self.commit(batch)
            }
        }
    }

    /// Binds the state to the groups in which its batches leave, spelled as a configuration does; a `fresh` one, which has released
    /// nothing yet, to whatever they are now.
    ///
    /// # Errors
    /// [`StateError::OtherGroups`] when the state has released in others.
    pub fn bind_groups(&mut self, groups: &str, fresh: bool) -> Result<(), StateError> {
        match self.read::<String>(GROUPS)? {
            Some(known) if known == groups => Ok(()),
            Some(known) if !fresh => Err(StateError::OtherGroups { path: self.path.clone(), groups: known }),
            _ => {
                let mut batch = Writes::default();
                batch.insert(GROUPS, self.seal(GROUPS, &groups));
                self.commit(batch)
            }
        }
    }
}
