//! The room that the values of a codebook take, and forgetting those that nobody uses any more.

use super::{Code, Codebook, FIRST_VALUE, FORGOTTEN, UNCOVERED};
use crate::records::cells::{CellId, SUPPRESSED};

/// Bytes of a value beside its text and its levels: the cell, two tables that lead to it, and the allocator's own.
const A_VALUE: usize = 200;

impl Codebook {
    /// What a value takes here, about, in bytes: by its text and the number of levels, not by its code. Labels, which values mostly share,
    /// are not counted.
    ///
    /// # Panics
    /// When the code is not of this codebook.
    #[must_use]
    pub fn weight(&self, code: Code) -> u64 {
        if code < FIRST_VALUE {
            return 0;
        }
        // Arrays and tables are up to half empty.
        let a_level = 2 * (size_of::<CellId>() + size_of::<u128>() + size_of::<f32>());
        (self.canonical(code).len() + A_VALUE + self.levels.len() * a_level) as u64
    }

    /// Memory held, roughly.
    #[must_use]
    pub fn approximate_bytes(&self) -> usize {
        let a_code = size_of::<CellId>() + size_of::<u128>() + size_of::<f32>();
        let levels: usize = self.levels.iter().map(|level| level.cells.capacity() * a_code).sum();
        levels
            + self.cells.bytes()
            + self.cache.bytes()
            + (self.codes.capacity() + self.above.capacity()) * size_of::<Code>()
    }

    /// Forgets the values whose code is not marked in `used` (missing marks count as false), their cells and every
    /// remembered spelling. Returns the new code of every old one, [`FORGOTTEN`] for those that are gone.
    pub fn retain(&mut self, used: &[bool]) -> Vec<Code> {
        let keep = |code: usize| code < FIRST_VALUE as usize || used.get(code).copied().unwrap_or(false);
        let mut map = vec![FORGOTTEN; self.codes()];
        let mut used_cells = vec![false; self.cells.len()];
        let mut next: Code = 0;
        for (code, new) in map.iter_mut().enumerate() {
            if keep(code) {
                *new = next;
                next += 1;
                for level in &self.levels {
                    used_cells[level.cells[code] as usize] = true;
                }
            }
        }
        let cell_map = self.cells.retain(&used_cells);
        let old = std::mem::replace(&mut self.above, vec![SUPPRESSED; self.cells.len()]);
        for (&cell, &above) in cell_map.iter().zip(&old).filter(|(cell, _)| **cell != CellId::MAX) {
            // What leads to a cell that stays leads through those above it, so they stay too.
            self.above[cell as usize] = cell_map[above as usize];
        }
        for level in &mut self.levels {
            let old = std::mem::take(level);
            for (code, (cell, loss)) in old.cells.into_iter().zip(old.losses).enumerate() {
                if keep(code) {
                    level.push(&self.cells, cell_map[cell as usize], loss);
                }
            }
        }
        self.codes = vec![FORGOTTEN; self.cells.len()];
        self.codes[SUPPRESSED as usize] = UNCOVERED;
        for (code, &cell) in (0..).zip(&self.levels[0].cells) {
            self.codes[cell as usize] = code;
        }
        self.cache.clear();
        map
    }
}
