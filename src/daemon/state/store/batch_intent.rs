//! Intent and outcome of a batch. Its rows and its intent are on disk before any output is produced.

use super::{INTENT, StateStore};
use crate::daemon::state::directory::StateError;
use crate::daemon::state::numbered_keys::numbered_key;
use crate::daemon::state::records::BatchIntent;
use crate::daemon::state::rows::RowBlock;
use throng_core::faults::crash_point;
use throng_core::ledger::subject_ledger::SubjectLedger;

impl StateStore {
    /// Writes the rows that batch `sequence` adds to the window; replaces those of an earlier attempt. Must be called
    /// before [`write_intent`](Self::write_intent): its flush makes the rows durable, since the database has one log. Until then
    /// a start discards them.
    ///
    /// # Errors
    /// If the database fails. The batch must not be released then.
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

    /// Removes the rows of batch `sequence` from the window.
    pub(super) fn remove_rows(&self, sequence: u64) -> Result<(), StateError> {
        self.database_handle.write(0, move |d| d.window.remove(numbered_key("rows", sequence)).map(drop))
    }

    /// Makes `intent` durable, together with its rows and the effect of the previous batch. No part of the batch may
    /// be released before this has returned.
    ///
    /// # Errors
    /// If the database fails. The batch must not be released then.
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

    /// Records that the intended batch `sequence` was not released and will not be repeated: other instances now own
    /// its records. The next [`write_intent`](Self::write_intent) or [`flush`](Self::flush) removes its intent.
    pub fn mark_given_up(&mut self, sequence: u64) -> Result<(), StateError> {
        self.bookkeeping.given_up = true;
        self.discard_unreleased_rows(sequence)
    }

    /// Records that the intended batch was released. Durable with the next [`write_intent`](Self::write_intent) or
    /// [`flush`](Self::flush).
    pub fn mark_released(&mut self, intent: BatchIntent) {
        let kept = if self.uses_changelog {
            BatchIntent { ledger: None, held: Vec::new(), series: None, ..intent }
        } else {
            intent
        };
        self.bookkeeping.applied = Some(kept).filter(|_| self.temporary.is_none());
    }

    /// Makes the changelog store the release log, tenure, budgets, waiting rows and series from now on.
    pub fn use_changelog(&mut self) {
        self.uses_changelog = true;
    }

    /// Decides the intent found at a start: the batch `was_batch_released` (was released) or not.
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
        // The intent stays until another replaces it: its output may have been seen, and this start may end before
        // the batch is repeated.
        self.discard_unreleased_rows(intent.after.sequence)
    }
}
