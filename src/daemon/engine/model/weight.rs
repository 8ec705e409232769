//! What the values of the window take in the dictionaries, and how many records fit below a limit.
//!
//! The window keeps the most of its last records whose different values weigh no more than the limit: a function of the stream alone. A
//! value weighs by its text and not by its code, so that a start which counts the rows of the state again forgets the very same records.

use throng_core::values::codebook::{Code, Codebook};
use throng_core::values::table::Batch;
use throng_core::values::window::Window;

/// Weighs the values that the window holds.
pub(super) struct Weight {
    /// Bytes that they may weigh.
    most: u64,
    bytes: u64,
    /// Records of the window that hold a value, by place of the attribute, by code.
    holders: Vec<Vec<u32>>,
}

/// Records that make room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Leaving {
    /// The oldest of the window.
    pub of_window: usize,
    /// The oldest of the batch itself: they never enter.
    pub of_batch: usize,
}

impl Weight {
    /// Of an empty window; its values may weigh `most` bytes.
    pub fn new(attributes: usize, most: u64) -> Self {
        Self { most, bytes: 0, holders: vec![Vec::new(); attributes] }
    }

    /// Adds the records of `batch`, and takes away the oldest of all until what remains weighs no more than the limit and is at most
    /// `capacity`. One record always remains. `attributes` are those that are weighed, ascending.
    pub fn admit(
        &mut self,
        window: &Window,
        batch: &Batch,
        attributes: &[usize],
        books: &[Codebook],
        capacity: usize,
    ) -> Leaving {
        let columns = || attributes.iter().enumerate().map(|(place, &attribute)| (place, attribute));
        for (place, attribute) in columns() {
            for &code in &batch.columns[attribute] {
                self.enter(place, code, &books[attribute]);
            }
        }
        let held: Vec<(&[Code], &[Code])> = attributes.iter().map(|&attribute| window.column(attribute)).collect();
        let (before, all) = (window.rows(), window.rows() + batch.rows());
        let mut gone = 0;
        while all - gone > capacity || self.bytes > self.most && all - gone > 1 {
            for (place, attribute) in columns() {
                let (older, newer) = held[place];
                let code = match gone.checked_sub(before) {
                    Some(row) => batch.columns[attribute][row],
                    None => older.get(gone).copied().unwrap_or_else(|| newer[gone - older.len()]),
                };
                self.leave(place, code, &books[attribute]);
            }
            gone += 1;
        }
        Leaving { of_window: gone.min(before), of_batch: gone.saturating_sub(before) }
    }

    fn enter(&mut self, place: usize, code: Code, book: &Codebook) {
        let (holders, at) = (&mut self.holders[place], code as usize);
        if holders.len() <= at {
            holders.resize(at + 1, 0);
        }
        holders[at] += 1;
        if holders[at] == 1 {
            self.bytes += book.weight(code);
        }
    }

    fn leave(&mut self, place: usize, code: Code, book: &Codebook) {
        let Some(holders) = self.holders[place].get_mut(code as usize).filter(|holders| **holders > 0) else { return };
        *holders -= 1;
        if *holders == 0 {
            self.bytes = self.bytes.saturating_sub(book.weight(code));
        }
    }

    /// Renumbers the codes of the attribute at `place`; `map` is old → new. No value of the window is forgotten.
    pub fn remap(&mut self, place: usize, map: &[Code]) {
        let old = std::mem::take(&mut self.holders[place]);
        let held = |(code, holders): (usize, u32)| Some((*map.get(code)? as usize, holders));
        let held: Vec<(usize, u32)> = old.into_iter().enumerate().filter(|(_, n)| *n > 0).filter_map(held).collect();
        let mut holders = vec![0; held.iter().map(|(code, _)| code + 1).max().unwrap_or(0)];
        held.into_iter().for_each(|(code, n)| holders[code] = n);
        self.holders[place] = holders;
    }
}
