//! A batch that is about to leave: its rows and its intent are on the disk before anything is produced. And what becomes of it.

use super::{INTENT, Store};
use crate::daemon::state::directory::StateError;
use crate::daemon::state::numbered::numbered;
use crate::daemon::state::records::Intent;
use crate::daemon::state::rows::RowBlock;
use crate::faults::crash_point;
use throng_core::ledger::per_subject::Ledger;

impl Store {
    /// Writes the rows that batch `sequence` adds to the window, in place of those of an earlier attempt. To be called before
    /// [`intend`](Self::intend), whose flush makes them durable: the database has one log. Until then a start discards them.
    ///
    /// # Errors
    /// When the database fails; the batch must not leave then.
    pub fn lay_rows(&mut self, sequence: u64, rows: Option<&RowBlock>) -> Result<(), StateError> {
        if self.temporary.is_some() {
            return Ok(());
        }
        let Some(rows) = rows else { return self.discard_rows(sequence) };
        let key = numbered("rows", sequence);
        let sealed = self.seal(&key, rows);
        self.keeper.write(self.unwritten.take(), move |d| d.window.insert(key, sealed).map(drop))?;
        while self.known.row_parts.pop_back_if(|(of, _)| *of == sequence).is_some() {}
        self.known.row_parts.push_back((sequence, rows.last));
        crash_point("rows-laid");
        Ok(())
    }

    /// Removes the rows of a batch that has not left.
    fn discard_rows(&mut self, sequence: u64) -> Result<(), StateError> {
        while self.known.row_parts.pop_back_if(|(of, _)| *of == sequence).is_some() {
            self.remove_rows(sequence)?;
        }
        Ok(())
    }

    /// Removes the rows of batch `sequence` from the window.
    pub(super) fn remove_rows(&self, sequence: u64) -> Result<(), StateError> {
        self.keeper.write(0, move |d| d.window.remove(numbered("rows", sequence)).map(drop))
    }

    /// Makes `intent` durable, with its rows and together with the effect of the batch before it.
    /// Nothing of the batch may leave before this has returned.
    ///
    /// # Errors
    /// When the database fails; the batch must not leave then.
    pub fn intend(&mut self, intent: &Intent, ledger: &Ledger) -> Result<(), StateError> {
        if self.temporary.is_some() {
            return Ok(());
        }
        let mut batch = sled::Batch::default();
        self.write_applied(&mut batch, ledger);
        let kept = self.in_log.then(|| intent.without_entries());
        batch.insert(INTENT, self.seal(INTENT, kept.as_ref().unwrap_or(intent)));
        self.commit(batch)?;
        self.known.given_up = false;
        Ok(())
    }

    /// Notes that batch `sequence`, which was intended, has not left and is not repeated: others have its records now. Its intent goes
    /// with the next [`intend`](Self::intend) or [`flush`](Self::flush).
    pub fn give_up(&mut self, sequence: u64) -> Result<(), StateError> {
        self.known.given_up = true;
        self.discard_rows(sequence)
    }

    /// Notes that the intended batch has left. Durable with the next [`intend`](Self::intend) or [`flush`](Self::flush).
    pub fn left(&mut self, intent: Intent) {
        let kept = if self.in_log { Intent { ledger: None, held: Vec::new(), series: None, ..intent } } else { intent };
        self.known.applied = Some(kept).filter(|_| self.temporary.is_none());
    }

    /// The changelog keeps the release log, tenure, budgets, waiting rows and series from here on.
    pub fn keep_in_log(&mut self) {
        self.in_log = true;
    }

    /// Settles the intent found at start: the batch `has_left` or not.
    pub fn settle_recovered(&mut self, intent: Intent, has_left: bool, ledger: &mut Ledger) -> Result<(), StateError> {
        if has_left {
            if let Some(delta) = &intent.ledger {
                ledger.apply(delta);
            }
            self.left(intent);
            return self.flush(ledger);
        }
        // The intent stays until another takes its place: its bytes may have been seen, and this start may end before it has
        // repeated them.
        self.discard_rows(intent.after.sequence)
    }
}
