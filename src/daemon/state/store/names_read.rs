//! How far the topic of erasures has been acted on. It moves together with what it asks for: with the new database of an erasure, or by
//! itself where what was read names nobody.

use super::Store;
use crate::daemon::state::directory::StateError;
use crate::daemon::state::writes::Writes;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

pub(super) const NAMES_READ: &[u8] = b"names-read";

/// How far a topic that names people has been acted on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamesRead {
    /// The topic.
    pub topic: String,
    /// The next offset of each partition.
    pub next: BTreeMap<i32, i64>,
}

impl Store {
    /// How far `topic` has been acted on: nowhere where the state knows of another topic, or of none.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn names_read(&self, topic: &str) -> Result<NamesRead, StateError> {
        let known = self.read::<NamesRead>(NAMES_READ)?.filter(|known| known.topic == topic);
        Ok(known.unwrap_or_else(|| NamesRead { topic: topic.to_owned(), next: BTreeMap::new() }))
    }

    /// Notes that messages which name nobody have been read.
    ///
    /// # Errors
    /// When the database fails.
    pub fn note_names_read(&mut self, names: &NamesRead) -> Result<(), StateError> {
        let mut batch = Writes::default();
        batch.insert(NAMES_READ, self.seal(NAMES_READ, names));
        self.commit(batch)
    }
}
