//! The topic through which records were handed on. Positions name topics by number, and it has the number behind those of the source,
//! whatever its name is.

use super::{PROGRESS, Store};
use crate::daemon::state::directory::StateError;
use crate::daemon::state::records::Progress;
use crate::daemon::state::writes::Writes;

pub(super) const RESIDUE: &[u8] = b"residue";

impl Store {
    /// The topic of which the positions of handed on records are; none where that was never said.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn residue(&self) -> Result<Option<String>, StateError> {
        self.read(RESIDUE)
    }

    /// Notes that positions of handed on records are of `topic` from here on, and where the stream stands: both or neither. Nothing may be
    /// only in memory.
    ///
    /// # Errors
    /// When the database fails.
    pub fn bind_residue(&mut self, topic: &str, progress: &Progress) -> Result<(), StateError> {
        debug_assert!(!self.is_behind(), "the effect of a batch comes before what follows it");
        let mut batch = Writes::default();
        batch.insert(RESIDUE, self.seal(RESIDUE, &topic));
        batch.insert(PROGRESS, self.seal(PROGRESS, progress));
        self.commit(batch)
    }
}
