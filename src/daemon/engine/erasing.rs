//! Somebody is forgotten while the daemon runs: between two batches, while none is to be repeated.
//!
//! The state on the disk is written anew without the person and put into force; then all that is remembered is read back from it, as
//! a start does. So the memory of a running daemon after an erasure is that of one that was started after it.

use super::fields::Engine;
use crate::daemon::erasure::{Asked, ErasureError, Receipt, digests, erased};
use crate::daemon::state::directory::StateError;
use crate::daemon::state::store::Pending;
use crate::telemetry::SubjectsErased;
use std::time::Instant;

/// What came of an erasure.
pub enum Erasure {
    /// It is done, or nothing of it is.
    Answered(Result<Receipt, ErasureError>),
    /// It is done on the disk, or half of what is behind it, and the memory could not follow: the process must end.
    Lost(StateError),
}

impl Engine {
    /// Forgets those who are named. Not while a batch is to be repeated: what it was made of would not be there.
    pub fn erase(&mut self, asked: &Asked) -> Erasure {
        let before = self.durable.store.database().to_owned();
        let done = self.erase_from_state(asked);
        if self.durable.store.database() == before {
            return Erasure::Answered(done);
        }
        // Whatever happened behind it: another database is in force.
        match self.remember_anew() {
            Ok(()) => Erasure::Answered(done),
            Err(error) => Erasure::Lost(error),
        }
    }

    fn erase_from_state(&mut self, asked: &Asked) -> Result<Receipt, ErasureError> {
        let start = Instant::now();
        let people = digests(asked, self.coding.subjects.as_mut(), &self.schema)?;
        let who = erased(people, &self.shapes, &self.schema, &self.digest)?;
        self.flush()?;
        let classes = self.ledger.losing(|subject| who.is(subject), self.durable.progress.age_ms);
        let window = self.learning.model.window().capacity() as u64;
        let gone = self.durable.store.erase(&who, window, Pending::GiveUp, asked.dry_run)?;
        if !asked.dry_run {
            self.joins.forget(|person| who.is(person));
            let (people, dropped) = (who.people() as u64, gone.dropped);
            SubjectsErased { people, dropped, seconds: start.elapsed().as_secs_f64() }.emit(&self.telemetry);
        }
        Ok(Receipt::new(who.people(), asked.dry_run, &gone, classes))
    }

    /// Reads back what the state remembers, in place of all that was remembered.
    fn remember_anew(&mut self) -> Result<(), StateError> {
        let mut ledger = (self.blank.ledger)();
        let recovered = self.durable.store.read_again(&mut ledger)?;
        self.ledger = ledger;
        let books = (self.blank.books)();
        self.coding.books = books.map_err(|error| self.durable.store.damaged(&error.to_string()))?;
        // What was encoded ahead has codes of the books before.
        self.coding.numbering += 1;
        self.go_on(recovered.into())
    }
}
