//! Reference by definition: every subset and every tuple. Shares no code with the search.

use std::collections::{BTreeMap, BTreeSet};

/// `cells[row][column]`, and subjects.
#[derive(Clone, Debug)]
pub struct BruteForceTable {
    pub cells: Vec<Vec<u32>>,
    pub subjects: Option<Vec<u32>>,
}

impl BruteForceTable {
    fn width(&self) -> usize {
        self.cells.first().map_or(0, Vec::len)
    }

    /// Tuples of a mask, with their rows.
    pub fn classes(&self, mask: u32) -> BTreeMap<Vec<u32>, Vec<usize>> {
        let mut classes: BTreeMap<Vec<u32>, Vec<usize>> = BTreeMap::new();
        for (row, cells) in self.cells.iter().enumerate() {
            let tuple = cells.iter().enumerate().filter(|(c, _)| mask >> c & 1 == 1).map(|(_, v)| *v).collect();
            classes.entry(tuple).or_default().push(row);
        }
        classes
    }

    pub fn support(&self, rows: &[usize]) -> usize {
        match &self.subjects {
            None => rows.len(),
            Some(subjects) => rows.iter().map(|r| subjects[*r]).collect::<BTreeSet<_>>().len(),
        }
    }

    pub fn is_qid(&self, mask: u32, k: u32) -> bool {
        self.classes(mask).values().any(|rows| self.support(rows) < k as usize)
    }

    /// Both borders as column numbers, in canonical order.
    pub fn borders(&self, k: u32) -> (Vec<Vec<usize>>, Vec<Vec<usize>>) {
        let width = self.width();
        let qid: Vec<bool> = (0..1_u32 << width).map(|mask| self.is_qid(mask, k)).collect();
        let minimal = (0..1_u32 << width)
            .filter(|&m| qid[m as usize] && (0..width).all(|c| m >> c & 1 == 0 || !qid[(m & !(1 << c)) as usize]));
        let maximal = (0..1_u32 << width)
            .filter(|&m| !qid[m as usize] && (0..width).all(|c| m >> c & 1 == 1 || qid[(m | 1 << c) as usize]));
        (canonical(minimal), canonical(maximal))
    }
}

fn canonical(masks: impl Iterator<Item = u32>) -> Vec<Vec<usize>> {
    let mut sets: Vec<Vec<usize>> = masks.map(|m| (0..32).filter(|c| m >> c & 1 == 1).collect()).collect();
    sets.sort_by_key(|set| (set.len(), set.clone()));
    sets
}
