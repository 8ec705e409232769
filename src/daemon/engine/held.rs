//! Records that wait: for a better class, or in groups that say things once a window, for their delay. Consumed, not
//! or not wholly released, and kept in the state until they are settled.

use crate::daemon::state::records::{KeptRow, Part};
use hashbrown::HashMap;
use std::collections::BTreeMap;
use throng_core::ledger::said::said_key;
use throng_core::values::codebook::{ABSENT, Codebook, NULL};
use throng_core::values::raw::Coordinate;
use throng_core::values::table::Batch;

/// What goes on waiting of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remaining {
    /// Batches that it was held for, `privacy.max_hold_batches` at most; a wait for a delay does not count.
    pub waited: u8,
    /// It counts as released: a fragment of it has left.
    pub released: bool,
    /// The groups that it waits for; `None`: all of them, from the next batch on.
    pub parts: Option<Vec<Part>>,
}

/// The rows that wait, oldest first.
#[derive(Clone, Debug)]
pub struct Held {
    /// Their codes. Cells that no group needs any more are absent.
    pub batch: Batch,
    /// By row of `batch`: its number in the stream.
    pub ordinals: Vec<u64>,
    /// By row of `batch`: what it waits for.
    pub waits: Vec<Remaining>,
    /// Lines that wait in groups of their own, by group and subject.
    waiting: HashMap<u128, u32>,
    lines: usize,
    /// Attributes that joins bring: a row gets them with every batch anew, and nothing of them is kept meanwhile.
    pub joined: Vec<usize>,
}

impl Held {
    /// Nothing waits yet; `width` is the number of attributes of the schema, of which joins bring those of `joined`.
    pub fn new(width: usize, joined: Vec<usize>) -> Self {
        let (batch, ordinals, waits) = (Batch::new(width), Vec::new(), Vec::new());
        Self { batch, ordinals, waits, waiting: HashMap::new(), lines: 0, joined }
    }

    /// Rows that wait, those of which a fragment has left included.
    pub fn rows(&self) -> usize {
        self.ordinals.len()
    }

    /// Records of which nothing has left.
    pub fn unreleased(&self) -> usize {
        self.waits.iter().filter(|wait| !wait.released).count()
    }

    /// Lines that wait in groups of their own.
    pub fn lines(&self) -> usize {
        self.lines
    }

    /// Whether a line waits in the group and of the subject that `key` names.
    pub fn waits_for(&self, key: u128) -> bool {
        self.waiting.contains_key(&key)
    }

    /// Adds a row of the state behind the others; each of its cells is encoded by the codebook of its attribute.
    pub fn push(&mut self, row: &KeptRow, books: &mut [Codebook]) {
        for ((column, book), cell) in self.batch.columns.iter_mut().zip(books).zip(&row.cells) {
            column.push(book.encode_canonical(cell));
        }
        self.batch.subjects.push(row.subject);
        self.batch.coordinates.push(row.coordinate);
        self.ordinals.push(row.ordinal);
        self.waits.push(Remaining { waited: row.waited, released: row.released, parts: row.parts.clone() });
        self.count(self.rows() - 1);
    }

    /// Positions of the rows from the places that `of` names that wait for nothing but a batch at `age_ms`, or for
    /// `all` of them, whatever they wait for.
    pub fn joining(&self, of: impl Fn(Coordinate) -> bool, age_ms: i64, all: bool) -> Vec<usize> {
        let joins = |at: &usize| (all || self.waits[*at].is_due(age_ms)) && of(self.batch.coordinates[*at]);
        let mut joining: Vec<usize> = (0..self.rows()).filter(joins).collect();
        // Rows of other instances lie behind earlier ones with greater numbers; after a restart they would not.
        joining.sort_unstable_by_key(|&at| (self.ordinals[at], self.batch.coordinates[at]));
        joining
    }

    /// Forgets the rows whose coordinate `is_gone` names.
    pub fn remove_where(&mut self, is_gone: impl Fn(Coordinate) -> bool) {
        let keep: Vec<bool> = self.batch.coordinates.iter().map(|at| !is_gone(*at)).collect();
        (0..self.rows()).filter(|&at| !keep[at]).for_each(|at| self.uncount(at));
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

    /// All rows as they are written to the state.
    pub fn export(&self, books: &[Codebook]) -> Vec<KeptRow> {
        let needed = vec![true; books.len()];
        let row = |at| kept_waiting(&self.batch, at, self.ordinals[at], &self.waits[at], &needed, books, &[]);
        (0..self.rows()).map(row).collect()
    }

    /// Copies of some rows, as a batch.
    pub fn copy(&self, rows: &[usize]) -> Batch {
        let mut batch = Batch::new(self.batch.columns.len());
        rows.iter().for_each(|&row| batch.append_row(&self.batch, row));
        batch
    }

    /// After a batch that began with the rows at `taken` and went on with new ones: what remains of them, by row of the
    /// batch. `needs` says which attributes what remains is made of; nothing else is kept of a row.
    pub fn advance(
        &mut self,
        taken: &[usize],
        batch: &Batch,
        ordinals: &[u64],
        remaining: BTreeMap<u32, Remaining>,
        needs: impl Fn(&Remaining) -> Vec<bool>,
    ) {
        let mut keep = vec![true; self.rows()];
        for &at in taken {
            self.uncount(at);
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
            self.count(at);
        }
        self.retain(&keep);
    }

    fn keys(&self, at: usize) -> Vec<u128> {
        let parts = self.waits[at].parts.iter().flatten();
        parts.map(|part| said_key(part.group, self.batch.subjects[at])).collect()
    }

    fn count(&mut self, at: usize) {
        for key in self.keys(at) {
            *self.waiting.entry(key).or_insert(0) += 1;
            self.lines += 1;
        }
    }

    fn uncount(&mut self, at: usize) {
        for key in self.keys(at) {
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

impl Remaining {
    /// Whether it joins a batch at `age_ms`.
    pub fn is_due(&self, age_ms: i64) -> bool {
        match &self.parts {
            None => true,
            Some(parts) => parts.is_empty() || parts.iter().any(|part| part.due_ms <= age_ms),
        }
    }
}

/// A row as it is written to the state.
pub fn kept(batch: &Batch, row: usize, ordinal: u64, books: &[Codebook]) -> KeptRow {
    let wait = Remaining { waited: 0, released: false, parts: None };
    kept_waiting(batch, row, ordinal, &wait, &vec![true; books.len()], books, &[])
}

/// What remains of a row, as it is written to the state: of its cells only those that are `needed`, and nothing of what is `joined`.
pub fn kept_waiting(
    batch: &Batch,
    row: usize,
    ordinal: u64,
    wait: &Remaining,
    needed: &[bool],
    books: &[Codebook],
    joined: &[usize],
) -> KeptRow {
    let cell = |(attribute, ((column, book), needed)): (usize, ((&Vec<u32>, &Codebook), &bool))| {
        let code = match *needed {
            true if joined.contains(&attribute) => NULL,
            true => column[row],
            false => ABSENT,
        };
        book.canonical(code).to_owned()
    };
    KeptRow {
        ordinal,
        subject: batch.subjects[row],
        coordinate: batch.coordinates[row],
        waited: wait.waited,
        released: wait.released,
        parts: wait.parts.clone(),
        cells: batch.columns.iter().zip(books).zip(needed).enumerate().map(cell).collect(),
    }
}
