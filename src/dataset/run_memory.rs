//! Memory budget of a run.

use super::error::AnonymizeError;
use crate::config::format_size;
use throng_core::lattice::policy_check::{PolicyChecker, PolicyTerms};
use throng_core::lattice::table::{LatticeTable, SearchMemoryLimits};

/// Program code, a batch being decoded, and file buffers.
const FIXED_PROGRAM_BYTES: u64 = 96 << 20;

/// Memory budget of a run.
#[derive(Clone, Copy, Debug)]
pub struct MemoryBudget {
    limit: u64,
    /// Distinct values and subjects.
    reserved_bytes: u64,
}

impl MemoryBudget {
    /// Creates a budget of `limit` bytes; `u64::MAX` is unlimited.
    pub fn new(limit: u64) -> Self {
        Self { limit, reserved_bytes: 0 }
    }

    /// Reserves bytes until the end.
    pub fn reserving(self, taken: u64) -> Self {
        Self { reserved_bytes: taken, ..self }
    }

    /// Returns the remaining bytes.
    pub fn bytes_left(&self) -> u64 {
        (self.limit - FIXED_PROGRAM_BYTES.min(self.limit / 2)).saturating_sub(self.reserved_bytes)
    }

    /// Fails if more than the remaining bytes is needed.
    pub fn ensure_fits(
        &self,
        what: impl FnOnce() -> String,
        needed: u64,
        remedy: &'static str,
    ) -> Result<(), AnonymizeError> {
        if needed <= self.bytes_left() { Ok(()) } else { Err(self.exceeded_error(what(), needed, remedy)) }
    }

    /// Returns the error for too large an allocation.
    pub fn exceeded_error(&self, what: String, needed: u64, remedy: &'static str) -> AnonymizeError {
        let (needed, left, limit) =
            (format_rounded_size(needed), format_rounded_size(self.bytes_left()), format_size(self.limit));
        AnonymizeError::NoRoom { what, needed, left, limit, remedy }
    }

    /// Returns the table with the allowance of its search, and the threads, at most `most`. The search copies the rows
    /// for the checks of `terms`; each thread holds its classes.
    pub fn allow_search(
        &self,
        table: LatticeTable,
        terms: &PolicyTerms,
        people: usize,
        most: usize,
    ) -> Result<(LatticeTable, usize), AnonymizeError> {
        if self.limit == u64::MAX {
            return Ok((table, most));
        }
        let rows = table.distinct_rows() as u64;
        let a_thread = rows * 36 + 16 * (2 * rows.max(8)).next_power_of_two() + 8 * people as u64 + (1 << 20);
        let tables = PolicyChecker::simultaneous_row_copies(&table, terms)? * table.bytes() as u64;
        let needed = tables + a_thread;
        self.ensure_fits(|| format!("{rows} distinct records and the search over them"), needed, FEWER_ROWS_REMEDY)?;
        let threads = ((self.bytes_left() - tables) / a_thread).clamp(1, most as u64);
        let left = self.bytes_left().saturating_sub(tables + threads * a_thread);
        let bytes = |of: u64| usize::try_from(of).unwrap_or(usize::MAX);
        let making = bytes(left / 2 / threads);
        let allowed = SearchMemoryLimits {
            anchor_bytes: bytes(left / 2).min(512 << 20),
            anchor_build_bytes: making,
            max_array_classes_per_row: 1,
        };
        Ok((table.with_search_memory(allowed), threads as usize))
    }
}

fn format_rounded_size(bytes: u64) -> String {
    let unit = if bytes < 16 << 20 { 1 << 10 } else { 1 << 20 };
    format_size(bytes.div_ceil(unit) * unit)
}

/// Remedies for too many distinct records.
pub const FEWER_ROWS_REMEDY: &str =
    "round attributes in the schema or remove some, raise --memory, or use the daemon (throng run)";
