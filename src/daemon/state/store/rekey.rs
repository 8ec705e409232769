//! The secret of a state is exchanged for another.
//!
//! What is sealed is sealed anew, in a new database that takes the place of the old one as with an erasure: who has the old secret opens
//! nothing of it. The keys of digests stay, sealed under the new secret: nobody can compute the digest of a person again who does not
//! come again, and a ledger that knew her under two would count her twice.

use super::{CHECK, KEPT_KEYS, Store};
use crate::daemon::state::databases;
use crate::daemon::state::directory::{self, StateError};
use crate::daemon::state::keeper::Keeper;
use crate::daemon::state::seal::{Keys, Sealer};
use crate::faults::crash_point;

/// Values sealed at a time.
const PART: usize = 512;

impl Store {
    /// Seals all of the state for the secret of `to`; `keys` are those that it works with, and goes on working with. `passed` is told the
    /// bytes of what was sealed. A batch that was about to leave goes on being about to leave. Gives the number of values.
    ///
    /// # Errors
    /// When a value is damaged, or the database fails: the state is as it was then. Whatever ends the process in between, the state opens
    /// with one of the two secrets, and with that one alone.
    pub fn rekey(self, keys: &Keys, to: &Keys, mut passed: impl FnMut(u64)) -> Result<u64, StateError> {
        self.stands_alone("secrets are not exchanged there yet")?;
        databases::clear_databases(&self.path, &self.database)?;
        let name = databases::next_database(&self.database);
        let new = Keeper::open(&self.path, &name)?;
        crash_point("rekey-begun");
        let sealer = to.sealer();
        let values = self.seal_anew(&new, &sealer, &mut passed)?;
        let check = [to.check.as_slice(), self.id.as_bytes()].concat();
        let plain = postcard::to_stdvec(&keys.lasting()).expect("plain values always serialize");
        let kept = sealer.seal(KEPT_KEYS, &plain);
        new.write(check.len() + kept.len(), move |d| {
            d.tree.insert(CHECK, check)?;
            d.tree.insert(KEPT_KEYS, kept)?;
            d.tree.flush()
        })?;
        databases::onto_disk(&self.path, &name)?;
        crash_point("rekey-copied");
        directory::expect_secrets(&self.path, &[keys.check, to.check])?;
        crash_point("rekey-expected");
        databases::name_database(&self.path, &name)?;
        crash_point("rekey-named");
        let Self { path, keeper, lock, .. } = self;
        // Their threads have let go of the files when these return.
        drop((keeper, new));
        databases::clear_databases(&path, &name)?;
        crash_point("rekey-cleared");
        directory::settle_secret(&path, to, true)?;
        drop(lock);
        Ok(values)
    }

    fn seal_anew(&self, new: &Keeper, sealer: &Sealer, passed: &mut impl FnMut(u64)) -> Result<u64, StateError> {
        let (mut from, mut values): (Vec<u8>, u64) = (Vec::new(), 0);
        let anew = |key: &[u8], sealed: &[u8]| {
            let plain = self.sealer.open(key, sealed).ok_or_else(|| self.damaged("a value does not open"))?;
            Ok::<_, StateError>(sealer.seal(key, &plain))
        };
        loop {
            let start = from.clone();
            let part =
                self.keeper.read(move |d| d.tree.range(start..).take(PART).collect::<Result<Vec<_>, sled::Error>>())?;
            let Some((last, _)) = part.last() else { break };
            from = [last.as_ref(), &[0]].concat();
            let (mut batch, mut bytes) = (sled::Batch::default(), 0);
            for (key, value) in part.into_iter().filter(|(key, _)| *key != *CHECK && *key != *KEPT_KEYS) {
                let sealed = anew(&key, &value)?;
                bytes += key.len() + sealed.len();
                values += 1;
                batch.insert(key, sealed);
            }
            new.write(bytes, move |d| d.tree.apply_batch(batch))?;
            passed(bytes as u64);
        }
        for key in self.row_keys()? {
            let Some(value) = self.rows_of(&key)? else { continue };
            let sealed = anew(&key, &value)?;
            let bytes = key.len() + sealed.len();
            new.write(bytes, move |d| d.window.insert(key, sealed).map(drop))?;
            values += 1;
            passed(bytes as u64);
        }
        Ok(values)
    }
}
