//! Erasure in a running daemon, between two batches while none is to be repeated.
//!
//! The erasure rewrites the state on the disk; then the engine reads everything that it remembers back from it, as a start does. So its
//! memory is that of a daemon that was started after the erasure.

use super::core::Engine;
use crate::daemon::erasure::{Answer, Context, ErasureError, ErasureRequest, Order, Receipt, erase};
use crate::daemon::state::directory::StateError;
use crate::faults::crash_point;

impl Engine {
    /// Erases people. To be called while no batch is to be repeated: it would find other records.
    ///
    /// # Errors
    /// When the state was rewritten and cannot be read back: the process must end.
    pub fn erase(&mut self, request: ErasureRequest) -> Result<Answer, StateError> {
        let before = self.durable.store.database().to_owned();
        let answer = self.erase_from_state(request);
        if self.durable.store.database() != before {
            self.read_back()?;
            crash_point("erasure-unanswered");
        }
        Ok(answer)
    }

    fn erase_from_state(&mut self, request: ErasureRequest) -> Answer {
        if !self.durable.store.is_in_force() {
            return Err(ErasureError::NoState);
        }
        let order = match request {
            ErasureRequest::Named(named) => Order::new(&named, "page", self.coding.subjects.as_ref(), &self.schema)?,
            ErasureRequest::Digests(order) => order,
        };
        self.flush()?;
        let context = Context {
            schema: &self.schema,
            shapes: &self.shapes,
            digest: &self.digest,
            window_records: self.learning.model.window().capacity() as u64,
            telemetry: &self.telemetry,
        };
        let receipt: Receipt = erase(&mut self.durable.store, &context, &order)?;
        if !order.dry_run {
            self.joins.forget(|person| order.people.contains(&person));
        }
        Ok(receipt)
    }

    /// Reads back what the state remembers, in place of all that was remembered.
    fn read_back(&mut self) -> Result<(), StateError> {
        let mut ledger = self.blank.ledger();
        let recovered = self.durable.store.load(&mut ledger)?;
        self.ledger = ledger;
        let books = self.blank.books();
        self.coding.books = books.map_err(|error| self.durable.store.damaged(&error.to_string()))?;
        // What was encoded ahead has codes of the books before.
        self.coding.numbering += 1;
        self.go_on(recovered)
    }
}
