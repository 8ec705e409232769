//! Intent and outcome of a batch. Its intent is on disk before any output.

use super::{INTENT, StateStore};
use crate::daemon::state::directory::StateError;
use crate::daemon::state::numbered_keys::numbered_key;
use crate::daemon::state::records::BatchIntent;
use crate::daemon::state::rows::RowBlock;
use throng_core::faults::crash_point;
use throng_core::ledger::subject_ledger::SubjectLedger;

impl StateStore {
    /// Writes the rows that batch `sequence` adds to the window. Must precede [`write_intent`](Self::write_intent),
    /// whose flush makes them durable: the database has one log.
    ///
    /// # Errors
    /// If the database fails: the batch must not be released.
    pub fn write_rows(&mut self, sequence: u64, rows: Option<&RowBlock>) -> Result<(), StateError> {
        if self.temporary.is_some() {
            return Ok(());
        }
        let Some(rows) = rows else { return self.discard_unreleased_rows(sequence) };
        let key = numbered_key("rows", sequence);
        let sealed = self.seal_for_write(&key, rows);
        self.database_handle.write(self.unwritten.take(), move |d| d.window.insert(key, sealed).map(drop))?;
        while self.bookkeeping.row_parts.pop_back_if(|(of, _)| *of == sequence).is_some() {}
        self.bookkeeping.row_parts.push_back((sequence, rows.last));
        crash_point("rows-laid");
        Ok(())
    }

    fn discard_unreleased_rows(&mut self, sequence: u64) -> Result<(), StateError> {
        while self.bookkeeping.row_parts.pop_back_if(|(of, _)| *of == sequence).is_some() {
            self.remove_rows(sequence)?;
        }
        Ok(())
    }

    pub(super) fn remove_rows(&self, sequence: u64) -> Result<(), StateError> {
        self.database_handle.write(0, move |d| d.window.remove(numbered_key("rows", sequence)).map(drop))
    }

    /// Makes `intent`, its rows and the previous effect durable. Nothing of the batch may be released before the
    /// return.
    ///
    /// # Errors
    /// If the database fails: the batch must not be released.
    pub fn write_intent(&mut self, intent: &BatchIntent, ledger: &SubjectLedger) -> Result<(), StateError> {
        if self.temporary.is_some() {
            return Ok(());
        }
        let mut batch = sled::Batch::default();
        self.write_batch_effect(&mut batch, ledger);
        let kept = self.uses_changelog.then(|| intent.without_changelog_entries());
        batch.insert(INTENT, self.seal_for_write(INTENT, kept.as_ref().unwrap_or(intent)));
        self.commit(batch)?;
        self.bookkeeping.given_up = false;
        Ok(())
    }

    /// Gives up the intended batch `sequence`: other instances own its records. The next write removes its intent.
    pub fn mark_given_up(&mut self, sequence: u64) -> Result<(), StateError> {
        self.bookkeeping.given_up = true;
        self.discard_unreleased_rows(sequence)
    }

    /// Marks the intended batch as released, durable with the next [`write_intent`](Self::write_intent) or
    /// [`flush`](Self::flush).
    pub fn mark_released(&mut self, intent: BatchIntent) {
        let kept = if self.uses_changelog {
            BatchIntent { ledger: None, held: Vec::new(), series: None, ..intent }
        } else {
            intent
        };
        self.bookkeeping.applied = Some(kept).filter(|_| self.temporary.is_none());
    }

    /// Leaves the data about subjects to the changelog.
    pub fn use_changelog(&mut self) {
        self.uses_changelog = true;
    }

    /// Decides the recovered intent.
    pub fn resolve_recovered_intent(
        &mut self,
        intent: BatchIntent,
        has_left: bool,
        ledger: &mut SubjectLedger,
    ) -> Result<(), StateError> {
        if has_left {
            if let Some(delta) = &intent.ledger {
                ledger.apply(delta);
            }
            self.mark_released(intent);
            return self.flush(ledger);
        }
        // Its output may have been seen: the intent stays until it is replaced.
        self.discard_unreleased_rows(intent.after.sequence)
    }
}
