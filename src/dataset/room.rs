//! What may be held, and who is told that something does not fit.

use super::error::AnonymizeError;
use crate::anonymity::lattice::check::{Checker, Terms};
use crate::anonymity::lattice::table::{Allowance, Table};
use crate::config::format_size;

/// What the program itself takes beside what grows with the data: its code, a batch being decoded, buffers of files.
const PROGRAM: u64 = 96 << 20;

/// The memory of a run.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    limit: u64,
    /// What is taken until the end: different values, people.
    taken: u64,
}

impl Room {
    /// All of `limit`, as asked for; `u64::MAX`: whatever it takes.
    pub fn new(limit: u64) -> Self {
        Self { limit, taken: 0 }
    }

    /// With so many bytes taken for good.
    pub fn with(self, taken: u64) -> Self {
        Self { taken, ..self }
    }

    /// Bytes that are left.
    pub fn left(&self) -> u64 {
        (self.limit - PROGRAM.min(self.limit / 2)).saturating_sub(self.taken)
    }

    /// Refuses what needs more than is left.
    pub fn holds(
        &self,
        what: impl FnOnce() -> String,
        needed: u64,
        remedy: &'static str,
    ) -> Result<(), AnonymizeError> {
        if needed <= self.left() { Ok(()) } else { Err(self.refusal(what(), needed, remedy)) }
    }

    /// `what` need more than is left.
    pub fn refusal(&self, what: String, needed: u64, remedy: &'static str) -> AnonymizeError {
        let (needed, left, limit) = (told(needed), told(self.left()), format_size(self.limit));
        AnonymizeError::NoRoom { what, needed, left, limit, remedy }
    }

    /// The table with what its search may hold, and the threads that the search may have of `most`: a search holds the rows so many times as
    /// the checks of `terms` do, and each thread classes of its own.
    pub fn search(
        &self,
        table: Table,
        terms: &Terms,
        people: usize,
        most: usize,
    ) -> Result<(Table, usize), AnonymizeError> {
        if self.limit == u64::MAX {
            return Ok((table, most));
        }
        let rows = table.distinct_rows() as u64;
        let a_thread = rows * 36 + 16 * (2 * rows.max(8)).next_power_of_two() + 8 * people as u64 + (1 << 20);
        let tables = Checker::copies(&table, terms)? * table.bytes() as u64;
        let needed = tables + a_thread;
        self.holds(|| format!("{rows} distinct records and the search over them"), needed, FEWER_ROWS)?;
        let threads = ((self.left() - tables) / a_thread).clamp(1, most as u64);
        let left = self.left().saturating_sub(tables + threads * a_thread);
        let bytes = |of: u64| usize::try_from(of).unwrap_or(usize::MAX);
        let making = bytes(left / 2 / threads);
        let allowed = Allowance { anchors: bytes(left / 2).min(512 << 20), making, cells_a_row: 1 };
        Ok((table.allowing(allowed), threads as usize))
    }
}

/// A size in whole KiB, or MiB where it is large.
fn told(bytes: u64) -> String {
    let unit = if bytes < 16 << 20 { 1 << 10 } else { 1 << 20 };
    format_size(bytes.div_ceil(unit) * unit)
}

/// What makes distinct records fewer.
pub const FEWER_ROWS: &str = "round attributes in the schema or leave some out, allow more (--memory), or run it through the daemon (throng run)";
