//! A batch from raw tokens to a committed release.

use super::ahead::{Turn, Unseen, Upcoming};
use super::batch_error::BatchError;
use super::clock::Moment;
use super::fields::Engine;
use super::settling::{Settling, is_all};
use super::steps::Order;
use crate::daemon::state::records::Intent;
use crate::io::input::InputBatch;
use crate::records::raw::Coordinate;
use crate::release::sink::Sink;

impl Engine {
    /// Treats, verifies and delivers a batch, and remembers it.
    ///
    /// `retry` is the intent of the attempt before, when there was one: its clock and its ranges are kept, so that the
    /// attempt reproduces the same bytes; unless a crowd has lost support since, and the batch is treated anew. What is `upcoming` is encoded while the batch leaves.
    ///
    /// # Errors
    /// See [`BatchError`]; nothing has left and nothing is remembered then.
    pub fn process(
        &mut self,
        turn: &mut Turn,
        settling: Settling,
        retry: Option<&Intent>,
        sink: &mut dyn Sink,
        now: impl Into<Moment>,
        upcoming: &mut dyn Upcoming,
    ) -> Result<(), BatchError> {
        self.process_part(turn, |_| true, &Order { settling, retry, now: now.into() }, sink, upcoming)
    }

    /// Settles the held records of some partitions, and only those. What waits for a delay is settled where the
    /// records' time here is over (end, shutdown, revocation), and waits on where the stream is only quiet.
    ///
    /// # Errors
    /// As [`process`](Self::process).
    pub fn settle(
        &mut self,
        of: impl Fn(Coordinate) -> bool,
        settling: Settling,
        retry: Option<&Intent>,
        sink: &mut dyn Sink,
        now: impl Into<Moment>,
    ) -> Result<(), BatchError> {
        let now = now.into();
        let age_ms = retry.map_or(now.age_ms, |r| r.after.age_ms).max(self.durable.progress.age_ms);
        if self.held.joining(&of, age_ms, is_all(settling, retry)).is_empty() {
            return Ok(());
        }
        let input = InputBatch::new(self.schema.attributes.len(), 0);
        let order = Order { settling, retry, now };
        self.process_part(&mut Box::new(input).into(), of, &order, sink, &mut Unseen)
    }
}
