//! What other instances have released, as it is written with whatever is written next.

use super::Store;
use crate::daemon::engine::clock::Anchor;
use crate::daemon::state::directory::StateError;
use crate::daemon::state::shared_journal::{HEARD, PREFIX};
use crate::daemon::state::writes::Writes;
use crate::io::shared_ledger::Places;
use crate::ledger::classes::Ledger;
use crate::ledger::delta::LedgerDelta;
use crate::ledger::shared::Present;

use super::HeardUpTo;

impl Store {
    /// How far other instances have been heard.
    #[must_use]
    pub fn heard(&self) -> &HeardUpTo {
        &self.shared.heard
    }

    /// Listens to `topic` from here on.
    pub fn listen_to(&mut self, topic: &str) {
        self.shared.listen_to(topic);
    }

    /// Notes what both clocks say, or have said; none of it is forgotten for `period_ms`.
    pub fn see_clocks(&mut self, moment: Present, period_ms: i64) {
        self.shared.see(moment, period_ms);
    }

    /// Keeps what the clocks have said. Durable as what is heard is; not while a batch is to be repeated.
    pub fn keep_clocks(&mut self) {
        self.shared.keep_clocks();
    }

    /// Notes what other instances have released, as the ledger in memory has it now, and up to where they have been heard; `anchor`
    /// tells the age that the times of the deltas are of. Durable with the next [`intend`](Self::intend) or
    /// [`flush`](Self::flush). Not while a batch is to be repeated: it was made without them.
    pub fn note_heard(&mut self, deltas: &[LedgerDelta], places: Places, anchor: Anchor) {
        self.shared.note(deltas, places, anchor);
    }

    /// What has been heard pays for shards that are rewritten with it, as deltas of our own do: an instance that releases nothing
    /// itself keeps no more of them.
    pub(super) fn write_heard(&mut self, batch: &mut Writes, ledger: &Ledger) {
        if !self.shared.is_behind() {
            return;
        }
        self.credit += 2 * self.shared.bytes();
        self.write_shards(batch, ledger, None);
        let written = self.shared.write(batch, &self.sealer);
        self.unwritten.set(self.unwritten.get() + written);
    }

    /// Reads what had been heard into `ledger`, and whether a topic has the state.
    pub(super) fn load_heard(&mut self, ledger: &mut Ledger) -> Result<(), StateError> {
        self.follows = self.followed()?.is_some();
        let found = self.scan(PREFIX)?;
        for (key, sealed) in &found {
            let bytes: Vec<u8> = self.open_value(key, sealed)?;
            let delta =
                LedgerDelta::from_bytes(&bytes).ok_or_else(|| self.damaged("a delta of others cannot be read"))?;
            ledger.learn(&delta);
        }
        let keys: Vec<Vec<u8>> = found.into_iter().map(|(key, _)| key).collect();
        let heard = self.read(HEARD)?;
        self.shared.resume(heard, &keys);
        Ok(())
    }
}
