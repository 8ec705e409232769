//! Dictionary bytes of window values. Weights depend on text, so a restart drops the same records.

use throng_core::values::code_batch::CodeBatch;
use throng_core::values::codebook::{Code, Codebook};
use throng_core::values::record_window::RecordWindow;

pub(super) struct WindowWeight {
    most: u64,
    bytes: u64,
    /// Records per value, by attribute position, then code.
    holders: Vec<Vec<u32>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EvictedRecords {
    /// Oldest of the window.
    pub of_window: usize,
    /// Oldest of the batch; these never enter.
    pub of_batch: usize,
}

impl WindowWeight {
    /// Creates an empty count with a limit of `most` bytes.
    pub fn new(attributes: usize, most: u64) -> Self {
        Self { most, bytes: 0, holders: vec![Vec::new(); attributes] }
    }

    /// Adds `batch`, and drops the oldest records beyond the byte limit or `capacity`; one always remains. `attributes`
    /// are ascending.
    pub fn make_room_for(
        &mut self,
        window: &RecordWindow,
        batch: &CodeBatch,
        attributes: &[usize],
        books: &[Codebook],
        capacity: usize,
    ) -> EvictedRecords {
        let columns = || attributes.iter().enumerate().map(|(place, &attribute)| (place, attribute));
        for (place, attribute) in columns() {
            for &code in &batch.columns[attribute] {
                self.add_value(place, code, &books[attribute]);
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
                self.remove_value(place, code, &books[attribute]);
            }
            gone += 1;
        }
        EvictedRecords { of_window: gone.min(before), of_batch: gone.saturating_sub(before) }
    }

    fn add_value(&mut self, place: usize, code: Code, book: &Codebook) {
        let (holders, at) = (&mut self.holders[place], code as usize);
        if holders.len() <= at {
            holders.resize(at + 1, 0);
        }
        holders[at] += 1;
        if holders[at] == 1 {
            self.bytes += book.approximate_value_bytes(code);
        }
    }

    fn remove_value(&mut self, place: usize, code: Code, book: &Codebook) {
        let Some(holders) = self.holders[place].get_mut(code as usize).filter(|holders| **holders > 0) else { return };
        *holders -= 1;
        if *holders == 0 {
            self.bytes = self.bytes.saturating_sub(book.approximate_value_bytes(code));
        }
    }

    /// Renumbers codes; `map` is old → new, and contains every value of the window.
    pub fn remap(&mut self, place: usize, map: &[Code]) {
        let old = std::mem::take(&mut self.holders[place]);
        let held = |(code, holders): (usize, u32)| Some((*map.get(code)? as usize, holders));
        let held: Vec<(usize, u32)> = old.into_iter().enumerate().filter(|(_, n)| *n > 0).filter_map(held).collect();
        let mut holders = vec![0; held.iter().map(|(code, _)| code + 1).max().unwrap_or(0)];
        held.into_iter().for_each(|(code, n)| holders[code] = n);
        self.holders[place] = holders;
    }
}
