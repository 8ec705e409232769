//! What the rest of the daemon asks of an engine between batches, and tells it.

use super::fields::Engine;
use crate::daemon::state::directory::StateError;
use crate::daemon::state::records::{Intent, Progress};
use crate::daemon::state::store::binding::TopicPosition;
use crate::io::input::Origin;
use crate::start::findings::Finding;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

impl Engine {
    /// Where the stream stands after the last batch that left.
    #[must_use]
    pub fn progress(&self) -> &Progress {
        &self.durable.progress
    }

    /// What an operator must know of the records of this state, the worst first.
    #[must_use]
    pub fn findings(&self) -> Vec<Finding> {
        self.learning.met.findings(&self.schema)
    }

    /// How what leaves, or has left from this state before, may be untrue; none where all is true.
    #[must_use]
    pub fn untruthful(&self) -> Option<&str> {
        self.untruthful.as_deref()
    }

    /// Identity of the state.
    #[must_use]
    pub fn state_id(&self) -> String {
        self.durable.store.id().to_owned()
    }

    /// From here on a state that does not answer makes the daemon not ready, and `stop` shortens the wait for it.
    pub fn heed(&mut self, stop: &Arc<AtomicBool>) {
        self.durable.store.watch(&self.telemetry, stop);
    }

    /// Records come from `origin`; without it, from a file.
    pub fn come_from(&mut self, origin: Arc<dyn Origin>) {
        self.origin = origin;
    }

    /// Notes the input of a job. False where the state has taken it in already.
    ///
    /// # Errors
    /// When the state fails.
    pub fn begin_job(&mut self, digest: &[u8; 32]) -> Result<bool, StateError> {
        self.durable.store.note_input(digest)
    }

    /// Keeps the state as it is now, where the run works on a copy of it: the copy takes its place.
    ///
    /// # Errors
    /// When the state fails; the one before is in force then.
    pub fn keep_copy(&mut self) -> Result<(), StateError> {
        self.durable.store.keep_copy(self.durable.progress.sequence)
    }

    /// Position in the erasure topic.
    ///
    /// # Errors
    /// When the state cannot be read.
    pub fn erasure_position(&self, topic: &str) -> Result<TopicPosition, StateError> {
        self.durable.store.erasure_position(topic)
    }

    /// Whether a committed batch is not yet written to the state (its intent is, so nothing can be lost).
    #[must_use]
    pub fn is_behind(&self) -> bool {
        self.durable.store.is_behind()
    }

    /// Gives up a batch that was aborted and is not repeated here: its records are somebody else's now.
    ///
    /// # Errors
    /// When the state fails.
    pub fn give_up(&mut self, aborted: &Intent) -> Result<(), StateError> {
        self.durable.store.give_up(aborted.after.sequence)
    }

    /// Writes what only the memory knows. Call it when there is nothing else to do, and at the end.
    ///
    /// # Errors
    /// When the state fails.
    pub fn flush(&mut self) -> Result<(), StateError> {
        self.durable.store.flush(&self.ledger)
    }
}
