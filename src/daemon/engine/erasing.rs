//! Somebody is forgotten while the daemon runs: between two batches, while none is to be repeated.
//!
//! The state on the disk is written anew without the person and put into force; then all that is remembered is read back from it, as
//! a start does. So the memory of a running daemon after an erasure is that of one that was started after it.

use super::fields::Engine;
use crate::daemon::erasure::{Asked, ErasureError, Receipt, digests, erased};
use crate::daemon::state::directory::StateError;
use crate::daemon::state::store::{NamesRead, Pending};
use crate::telemetry::SubjectsErased;
use std::collections::BTreeSet;
use std::time::Instant;

/// What came of an erasure.
pub enum Erasure {
    /// It is done, or nothing of it is.
    Answered(Result<Receipt, ErasureError>),
    /// It is done on the disk, or half of what is behind it, and the memory could not follow: the process must end.
    Lost(StateError),
}

/// Who is to be erased.
struct Order<'a> {
    people: BTreeSet<u64>,
    dry_run: bool,
    /// How far the topic was read that names them.
    names: Option<&'a NamesRead>,
}

impl Engine {
    /// Forgets those who are named. Not while a batch is to be repeated: what it was made of would not be there.
    pub fn erase(&mut self, asked: &Asked) -> Erasure {
        if !self.durable.store.is_in_force() {
            return Erasure::Answered(Err(ErasureError::NoState));
        }
        match digests(asked, self.coding.subjects.as_ref(), &self.schema) {
            Ok(people) => self.carry_out(Order { people, dry_run: asked.dry_run, names: None }),
            Err(error) => Erasure::Answered(Err(error)),
        }
    }

    /// Forgets `people`, whom a topic names that was read as far as `names`: that it was is durable together with the erasure. Not while a
    /// batch is to be repeated.
    pub fn erase_named(&mut self, people: BTreeSet<u64>, names: &NamesRead) -> Erasure {
        self.carry_out(Order { people, dry_run: false, names: Some(names) })
    }

    /// How far `topic`, which names people, has been acted on.
    ///
    /// # Errors
    /// When the state cannot be read.
    pub fn names_read(&self, topic: &str) -> Result<NamesRead, StateError> {
        self.durable.store.names_read(topic)
    }

    /// Notes that a topic was read as far as `names`, and that nobody is to be erased by it.
    ///
    /// # Errors
    /// When the state fails.
    pub fn note_names_read(&mut self, names: &NamesRead) -> Result<(), StateError> {
        self.flush()?;
        self.durable.store.note_names_read(names)
    }

    fn carry_out(&mut self, order: Order<'_>) -> Erasure {
        let before = self.durable.store.database().to_owned();
        let done = self.erase_from_state(order);
        if self.durable.store.database() == before {
            return Erasure::Answered(done);
        }
        // Whatever happened behind it: another database is in force.
        match self.remember_anew() {
            Ok(()) => Erasure::Answered(done),
            Err(error) => Erasure::Lost(error),
        }
    }

    fn erase_from_state(&mut self, order: Order<'_>) -> Result<Receipt, ErasureError> {
        let start = Instant::now();
        let Order { people, dry_run, names } = order;
        let who = erased(people, &self.shapes, &self.schema, &self.digest);
        self.flush()?;
        let window = self.learning.model.window().capacity() as u64;
        let gone = self.durable.store.erase(&who, window, Pending::GiveUp, dry_run, names)?;
        if !dry_run {
            self.joins.forget(|person| who.is(person));
            let by = if names.is_some() { "topic" } else { "page" };
            let (people, dropped) = (who.people() as u64, gone.dropped);
            SubjectsErased { people, by, dropped, seconds: start.elapsed().as_secs_f64() }.emit(&self.telemetry);
        }
        Ok(Receipt::new(who.people(), dry_run, &gone))
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
