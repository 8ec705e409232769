//! What a state belongs to: one stream, one place, its groups, and what its batches were made with.

use super::{MADE_WITH, Store};
use crate::daemon::state::directory::StateError;

pub(super) const STREAM: &[u8] = b"stream";
pub(super) const SINK: &[u8] = b"sink";
pub(super) const GROUPS: &[u8] = b"groups";
/// Fingerprints of the populations that the last start read.
pub(super) const POPULATIONS: &[u8] = b"populations";
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
                let mut batch = sled::Batch::default();
                batch.insert(STREAM, self.seal(STREAM, &stream));
                self.commit(batch)
            }
        }
    }

    /// Fingerprints of the populations that the start before has read.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn populations(&self) -> Result<Vec<[u8; 32]>, StateError> {
        Ok(self.read(POPULATIONS)?.unwrap_or_default())
    }

    /// Notes the populations that this start has read, in place of those of the start before.
    ///
    /// # Errors
    /// When the database fails.
    pub fn note_populations(&mut self, fingerprints: &[[u8; 32]]) -> Result<(), StateError> {
        let mut batch = sled::Batch::default();
        batch.insert(POPULATIONS, self.seal(POPULATIONS, &fingerprints));
        self.commit(batch)
    }

    /// Notes the ways in which what this process lets out may be untrue; answers with all that were ever noted. What was altered
    /// once may wait long, and the outputs keep it.
    ///
    /// # Errors
    /// When it cannot be read or written.
    pub fn note_untruthful(&mut self, ways: &[&str]) -> Result<Vec<String>, StateError> {
        let mut noted: Vec<String> = self.read(UNTRUTHFUL)?.unwrap_or_default();
        let new: Vec<String> = ways.iter().map(|way| (*way).to_owned()).filter(|way| !noted.contains(way)).collect();
        if !new.is_empty() {
            noted.extend(new);
            let mut batch = sled::Batch::default();
            batch.insert(UNTRUTHFUL, self.seal(UNTRUTHFUL, &noted));
            self.commit(batch)?;
        }
        Ok(noted)
    }

    /// Notes that the batches of this process are made with `k`; answers with the k of what has left before, where it is
    /// known.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn make_with(&mut self, k: usize) -> Result<Option<u64>, StateError> {
        self.k = k as u64;
        self.read(MADE_WITH)
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
                let mut batch = sled::Batch::default();
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
                let mut batch = sled::Batch::default();
                batch.insert(GROUPS, self.seal(GROUPS, &groups));
                self.commit(batch)
            }
        }
    }
}
