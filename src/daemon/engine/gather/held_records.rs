//! Consumed rows that wait for a better class or a delay.

use crate::daemon::state::records::{PendingGroup, StoredRow};
use hashbrown::HashMap;
use std::collections::BTreeMap;
use throng_core::ledger::release_log::release_log_key;
use throng_core::values::code_batch::CodeBatch;
use throng_core::values::codebook::{ABSENT, Codebook, NULL};
use throng_core::values::raw_batch::RecordPosition;

/// Unreleased part of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingRow {
    /// Batches held, at most `privacy.max_hold_batches`.
    pub waited: u8,
    /// A fragment is released already.
    pub released: bool,
    /// Pending groups; `None`: all, from the next batch on.
    pub parts: Option<Vec<PendingGroup>>,
}

/// Held rows, oldest first.
#[derive(Clone, Debug)]
pub struct HeldRows {
    /// Codes; cells without further use are absent.
    pub batch: CodeBatch,
    /// Row numbers in the stream.
    pub ordinals: Vec<u64>,
    /// Pending parts by row.
    pub waits: Vec<PendingRow>,
    waiting: HashMap<u128, u32>,
    lines: usize,
    /// Joined attributes, never stored.
    pub joined: Vec<usize>,
}

impl HeldRows {
    /// Creates an empty store for `width` attributes.
    pub fn new(width: usize, joined: Vec<usize>) -> Self {
        let (batch, ordinals, waits) = (CodeBatch::new(width), Vec::new(), Vec::new());
        Self { batch, ordinals, waits, waiting: HashMap::new(), lines: 0, joined }
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.ordinals.len()
    }

    /// Returns the number of records without a released fragment.
    pub fn unreleased(&self) -> usize {
        self.waits.iter().filter(|wait| !wait.released).count()
    }

    /// Returns the number of waiting lines.
    pub fn lines(&self) -> usize {
        self.lines
    }

    /// Returns whether a line of this group and subject waits.
    pub fn has_waiting_line(&self, key: u128) -> bool {
        self.waiting.contains_key(&key)
    }

    /// Appends a stored row.
    pub fn push(&mut self, row: &StoredRow, books: &mut [Codebook]) {
        for ((column, book), cell) in self.batch.columns.iter_mut().zip(books).zip(&row.cells) {
            column.push(book.encode_canonical(cell));
        }
        self.batch.subjects.push(row.subject);
        self.batch.coordinates.push(row.coordinate);
        self.ordinals.push(row.ordinal);
        self.waits.push(PendingRow { waited: row.waited, released: row.released, parts: row.parts.clone() });
        self.add_lines(self.rows() - 1);
    }

    /// Returns the due rows at places that match `of`, or with `all` every such row.
    pub fn due_rows(&self, of: impl Fn(RecordPosition) -> bool, age_ms: i64, all: bool) -> Vec<usize> {
        let joins = |at: &usize| (all || self.waits[*at].is_due(age_ms)) && of(self.batch.coordinates[*at]);
        let mut joining: Vec<usize> = (0..self.rows()).filter(joins).collect();
        // Other instances number rows differently.
        joining.sort_unstable_by_key(|&at| (self.ordinals[at], self.batch.coordinates[at]));
        joining
    }

    /// Removes rows by coordinate.
    pub fn remove_where(&mut self, is_gone: impl Fn(RecordPosition) -> bool) {
        let keep: Vec<bool> = self.batch.coordinates.iter().map(|at| !is_gone(*at)).collect();
        (0..self.rows()).filter(|&at| !keep[at]).for_each(|at| self.remove_lines(at));
        self.retain(&keep);
    }

    fn retain(&mut self, keep: &[bool]) {
        if keep.contains(&false) {
            self.batch.retain_rows(keep);
            let mut kept = keep.iter();
            self.ordinals.retain(|_| kept.next().is_some_and(|keep| *keep));
            let mut kept = keep.iter();
            self.waits.retain(|_| kept.next().is_some_and(|keep| *keep));
        }
    }

    /// Returns all rows in stored form.
    pub fn export(&self, books: &[Codebook]) -> Vec<StoredRow> {
        let needed = vec![true; books.len()];
        let row = |at| stored_pending_row(&self.batch, at, self.ordinals[at], &self.waits[at], &needed, books, &[]);
        (0..self.rows()).map(row).collect()
    }

    /// Copies rows into a batch.
    pub fn copy_rows(&self, rows: &[usize]) -> CodeBatch {
        let mut batch = CodeBatch::new(self.batch.columns.len());
        rows.iter().for_each(|&row| batch.append_row(&self.batch, row));
        batch
    }

    /// Keeps the `remaining` parts and new rows. Cells that no part `needs` become absent.
    pub fn advance(
        &mut self,
        taken: &[usize],
        batch: &CodeBatch,
        ordinals: &[u64],
        remaining: BTreeMap<u32, PendingRow>,
        needs: impl Fn(&PendingRow) -> Vec<bool>,
    ) {
        let mut keep = vec![true; self.rows()];
        for &at in taken {
            self.remove_lines(at);
            keep[at] = false;
        }
        for (row, wait) in remaining {
            let row = row as usize;
            let needed = needs(&wait);
            let at = if let Some(&at) = taken.get(row) {
                self.waits[at] = wait;
                keep[at] = true;
                at
            } else {
                self.batch.append_row(batch, row);
                self.ordinals.push(ordinals[row]);
                self.waits.push(wait);
                keep.push(true);
                self.rows() - 1
            };
            for (column, _) in self.batch.columns.iter_mut().zip(needed).filter(|(_, needed)| !needed) {
                column[at] = ABSENT;
            }
            for &attribute in &self.joined {
                let cell = &mut self.batch.columns[attribute][at];
                *cell = if *cell == ABSENT { ABSENT } else { NULL };
            }
            self.add_lines(at);
        }
        self.retain(&keep);
    }

    fn line_keys(&self, at: usize) -> Vec<u128> {
        let parts = self.waits[at].parts.iter().flatten();
        parts.map(|part| release_log_key(part.group, self.batch.subjects[at])).collect()
    }

    fn add_lines(&mut self, at: usize) {
        for key in self.line_keys(at) {
            *self.waiting.entry(key).or_insert(0) += 1;
            self.lines += 1;
        }
    }

    fn remove_lines(&mut self, at: usize) {
        for key in self.line_keys(at) {
            self.lines -= 1;
            if let Some(count) = self.waiting.get_mut(&key) {
                *count -= 1;
                if *count == 0 {
                    self.waiting.remove(&key);
                }
            }
        }
    }
}

impl PendingRow {
    /// Returns whether a batch at `age_ms` includes it.
    pub fn is_due(&self, age_ms: i64) -> bool {
        match &self.parts {
            None => true,
            Some(parts) => parts.is_empty() || parts.iter().any(|part| part.due_ms <= age_ms),
        }
    }
}

/// Converts a row to its stored form.
pub fn stored_row(batch: &CodeBatch, row: usize, ordinal: u64, books: &[Codebook]) -> StoredRow {
    let wait = PendingRow { waited: 0, released: false, parts: None };
    stored_pending_row(batch, row, ordinal, &wait, &vec![true; books.len()], books, &[])
}

/// Converts a remaining part to its stored form: only `needed` cells, without `joined` values.
pub fn stored_pending_row(
    batch: &CodeBatch,
    row: usize,
    ordinal: u64,
    wait: &PendingRow,
    needed: &[bool],
    books: &[Codebook],
    joined: &[usize],
) -> StoredRow {
    let cell = |(attribute, ((column, book), needed)): (usize, ((&Vec<u32>, &Codebook), &bool))| {
        let code = match *needed {
            true if joined.contains(&attribute) => NULL,
            true => column[row],
            false => ABSENT,
        };
        book.canonical(code).to_owned()
    };
    StoredRow {
        ordinal,
        subject: batch.subjects[row],
        coordinate: batch.coordinates[row],
        waited: wait.waited,
        released: wait.released,
        parts: wait.parts.clone(),
        cells: batch.columns.iter().zip(books).zip(needed).enumerate().map(cell).collect(),
    }
}
