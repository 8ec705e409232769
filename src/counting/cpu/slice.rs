//! One slice, many sets: which of them have a class below k in it?
//!
//! A set of small domain is counted only until each cell has reached k. Where cells are missing, sets are refined column
//! by column, and neighbours share what they have in common.

use super::clusters::{CELLS, Cluster, Remainder};
use super::keys::Mixed;
use super::matrix::Matrix;
use hashbrown::HashMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

/// Rows between two looks at the narrow counters, at most: they then stay below 2^16.
const STRIDE: usize = 1 << 15;

/// Rows whose keys are packed at once.
const CHUNK: usize = 512;

/// Cells a row of the slice, at most, before a refinement renumbers through a hash table.
const ROOM: usize = 8;

/// Classes of a slice by some columns: a number for each row.
struct Refinement {
    column: usize,
    numbers: Vec<u32>,
    classes: usize,
}

/// A column inside a slice: codes as far as they were fetched, and the slice's own codes once they are asked for.
#[derive(Default)]
struct Local {
    fetched: Vec<u16>,
    own: Vec<u32>,
    /// 0 while there are none.
    cardinality: usize,
}

/// Where one thread works. Memory: for each column six bytes a row of the slice, and four for each of the columns that
/// are refined together.
pub(super) struct Bench<'a> {
    matrix: &'a Matrix,
    k: u32,
    locals: Vec<Local>,
    subjects: Vec<u32>,
    narrow: Box<[u16; CELLS]>,
    rolled: Box<[u16; CELLS]>,
    last: Vec<u32>,
    cells: Vec<u32>,
    refined: Vec<Refinement>,
    spare: Vec<Vec<u32>>,
    numbers: Vec<u32>,
    /// Rows that each cluster took to fill in the slice before.
    took: Vec<usize>,
}

impl<'a> Bench<'a> {
    pub(super) fn new(matrix: &'a Matrix, k: u32) -> Self {
        Self {
            matrix,
            k,
            locals: matrix.fields.iter().map(|_| Local::default()).collect(),
            subjects: Vec::new(),
            narrow: vec![0; CELLS].try_into().expect("as many as said"),
            rolled: vec![0; CELLS].try_into().expect("as many as said"),
            last: Vec::new(),
            cells: Vec::new(),
            refined: Vec::new(),
            spare: Vec::new(),
            numbers: Vec::new(),
            took: Vec::new(),
        }
    }

    /// Before the first slice of a family.
    pub(super) fn forget(&mut self) {
        self.took.clear();
    }

    /// Marks the sets of which some class inside the slice is below k, and gives the number of those that are left.
    pub(super) fn slice(&mut self, slice: &[u8], clusters: &[Cluster], failed: &[AtomicBool]) -> usize {
        let rows = slice.len() / self.matrix.stride;
        for local in &mut self.locals {
            local.fetched.clear();
            local.cardinality = 0;
        }
        self.refine_to(0);
        self.subjects.clear();
        if let Some(field) = self.matrix.subject {
            field.each(slice, self.matrix.stride, 0..rows, |subject| self.subjects.push(subject));
        }
        let support = if self.matrix.subject.is_some() { self.subjects.chunk_by(|a, b| a == b).count() } else { rows };
        let too_few = support < self.k as usize;
        let fail = |set: &Remainder| failed[set.at].store(true, Ordering::Relaxed);
        let mut left = 0;
        let mut filling = Vec::new();
        self.took.resize(clusters.len(), 0);
        for (number, cluster) in clusters.iter().enumerate() {
            filling.clear();
            for (at, set) in cluster.sets.iter().enumerate() {
                if failed[set.at].load(Ordering::Relaxed) {
                    continue;
                }
                left += 1;
                let fills = set.domain <= CELLS as u64 && set.domain.saturating_mul(u64::from(self.k)) <= rows as u64;
                if too_few {
                    fail(set);
                } else if fills && !set.rest.is_empty() {
                    filling.push(at);
                } else if !set.rest.is_empty() && !self.refines(slice, &set.rest) {
                    fail(set);
                }
            }
            match filling[..] {
                [] => {}
                [at] => {
                    let set = &cluster.sets[at];
                    if !self.fills(slice, &set.rest, set.domain as usize, number) {
                        fail(set);
                    }
                }
                _ => {
                    self.fill_together(slice, cluster, &mut filling, number);
                    filling.iter().for_each(|at| fail(&cluster.sets[*at]));
                }
            }
        }
        left
    }

    /// Counts until every cell of the domain has reached k. Where some never does, all rows are counted, and the set is
    /// fine if those cells are empty.
    fn fills(&mut self, slice: &[u8], rest: &[usize], domain: usize, number: usize) -> bool {
        let k = self.k as u16;
        self.start(domain);
        let rows = slice.len() / self.matrix.stride;
        let mut done = 0;
        let mut step = self.first_step(number, 2 * domain * usize::from(k));
        while done < rows {
            let end = rows.min(done + step);
            self.count(slice, rest, done..end);
            done = end;
            let mut smallest = u16::MAX;
            for cell in &mut self.narrow[..domain] {
                smallest = smallest.min(*cell);
                *cell = (*cell).min(STRIDE as u16 - 1);
            }
            if smallest >= k {
                self.took[number] = done;
                return true;
            }
            step = (done / 4).clamp(CHUNK, STRIDE);
        }
        self.narrow[..domain].iter().all(|cell| *cell == 0 || *cell >= k)
    }

    /// The same for several sets of a cluster. Leaves those that are not fine.
    fn fill_together(&mut self, slice: &[u8], cluster: &Cluster, open: &mut Vec<usize>, number: usize) {
        let (k, domain) = (self.k as u16, cluster.domain as usize);
        self.start(domain);
        let rows = slice.len() / self.matrix.stride;
        let largest = open.iter().map(|at| cluster.sets[*at].domain as usize).max().unwrap_or(0);
        let mut done = 0;
        let mut step = self.first_step(number, 4 * largest * usize::from(k));
        while done < rows && !open.is_empty() {
            let end = rows.min(done + step);
            self.count(slice, &cluster.columns, done..end);
            done = end;
            self.narrow[..domain].iter_mut().for_each(|cell| *cell = (*cell).min(STRIDE as u16 - 1));
            open.retain(|at| {
                let own = cluster.sets[*at].domain as usize;
                let rolled = &mut self.rolled;
                rolled[..own].fill(0);
                for (run, to) in self.narrow[..domain].chunks_exact(cluster.run).zip(&cluster.rolls[*at]) {
                    let to = &mut rolled[usize::from(*to)..][..cluster.run];
                    to.iter_mut().zip(run).for_each(|(sum, cell)| *sum = sum.saturating_add(*cell));
                }
                let fine = |n: u16| n >= k || n == 0 && done == rows;
                !rolled[..own].iter().all(|n| fine(*n))
            });
            step = (done / 4).clamp(CHUNK, STRIDE);
        }
        if open.is_empty() {
            self.took[number] = done;
        }
    }

    /// Where the columns of a family are nearly independent, a set takes about as many rows in every slice. A little
    /// less is tried each time, so that one long slice is not remembered for ever.
    fn first_step(&self, number: usize, without_memory: usize) -> usize {
        let memory = self.took[number] - self.took[number] / 16;
        if memory == 0 { without_memory } else { memory }.clamp(CHUNK, STRIDE)
    }

    fn start(&mut self, domain: usize) {
        self.narrow[..domain].fill(0);
        if self.matrix.subject.is_some() {
            self.last.clear();
            self.last.resize(CELLS, u32::MAX);
        }
    }

    /// Counts rows of the slice into the narrow cells.
    fn count(&mut self, slice: &[u8], columns: &[usize], range: Range<usize>) {
        for column in columns {
            let fetched = &mut self.locals[*column].fetched;
            if fetched.len() < range.end {
                let stride = self.matrix.stride;
                let bytes = &slice[fetched.len() * stride..range.end * stride];
                self.matrix.fields[*column].append(bytes, stride, fetched);
            }
        }
        let mut keys = [0_u16; CHUNK];
        for start in range.clone().step_by(CHUNK) {
            let end = range.end.min(start + CHUNK);
            let keys = &mut keys[..end - start];
            keys.copy_from_slice(&self.locals[columns[0]].fetched[start..end]);
            for column in &columns[1..] {
                let radix = self.matrix.fields[*column].cardinality as u16;
                let codes = &self.locals[*column].fetched[start..end];
                keys.iter_mut().zip(codes).for_each(|(key, code)| *key = key.wrapping_mul(radix).wrapping_add(*code));
            }
            if self.matrix.subject.is_none() {
                for key in keys {
                    self.narrow[usize::from(*key)] += 1;
                }
            } else {
                for (key, subject) in keys.iter().zip(&self.subjects[start..end]) {
                    let last = &mut self.last[usize::from(*key)];
                    self.narrow[usize::from(*key)] += u16::from(*last != *subject);
                    *last = *subject;
                }
            }
        }
    }

    /// Refines the slice column by column; neighbours in the order of sets share the beginning.
    fn refines(&mut self, slice: &[u8], rest: &[usize]) -> bool {
        let (last, before) = rest.split_last().expect("asked with a rest");
        let shared = self.refined.iter().zip(before).take_while(|(done, column)| done.column == **column).count();
        self.refine_to(shared);
        for column in &before[shared..] {
            if !self.refine(slice, *column, true) {
                return false;
            }
        }
        self.refine(slice, *last, false)
    }

    fn refine_to(&mut self, depth: usize) {
        self.spare.extend(self.refined.drain(depth..).map(|refinement| refinement.numbers));
    }

    /// Refines once more; false if a class falls below k. The numbers are kept where more columns follow.
    fn refine(&mut self, slice: &[u8], column: usize, keep: bool) -> bool {
        self.localise(slice, column);
        let local = &self.locals[column];
        let radix = local.cardinality;
        let before = self.refined.last();
        let domain = before.map_or(1, |b| b.classes) as u64 * radix as u64;
        let mut numbers = self.spare.pop().unwrap_or_default();
        numbers.clear();
        let room = ROOM * local.own.len() + 1024;
        let cells = match before {
            None => {
                numbers.extend_from_slice(&local.own);
                radix
            }
            Some(before) if domain <= room as u64 => {
                numbers.extend(before.numbers.iter().zip(&local.own).map(|(b, o)| b * radix as u32 + o));
                domain as usize
            }
            Some(before) => number_by_hash(&before.numbers, &local.own, &mut numbers),
        };
        self.cells.clear();
        self.cells.resize(cells, 0);
        if self.matrix.subject.is_none() {
            numbers.iter().for_each(|n| self.cells[*n as usize] += 1);
        } else {
            self.last.clear();
            self.last.resize(cells, u32::MAX);
            for (n, subject) in numbers.iter().zip(&self.subjects) {
                let last = &mut self.last[*n as usize];
                self.cells[*n as usize] += u32::from(last != subject);
                *last = *subject;
            }
        }
        // Wraps 0 round to the largest number: an empty cell is no class.
        let fine = self.cells.iter().map(|n| n.wrapping_sub(1)).min().is_some_and(|n| n >= self.k - 1);
        if !(keep && fine) {
            self.spare.push(numbers);
            return fine;
        }
        let mut classes = 0;
        for cell in &mut self.cells {
            let used = u32::from(*cell > 0);
            *cell = classes;
            classes += used;
        }
        numbers.iter_mut().for_each(|n| *n = self.cells[*n as usize]);
        self.refined.push(Refinement { column, numbers, classes: classes as usize });
        true
    }

    /// The slice's own codes of a column: 0, 1, … in the order of their first rows.
    fn localise(&mut self, slice: &[u8], column: usize) {
        let local = &mut self.locals[column];
        if local.cardinality > 0 {
            return;
        }
        let field = self.matrix.fields[column];
        if self.numbers.len() < field.cardinality {
            self.numbers.resize(field.cardinality, u32::MAX);
        }
        let (numbers, rows) = (&mut self.numbers, slice.len() / self.matrix.stride);
        local.own.clear();
        let mut next = 0;
        field.each(slice, self.matrix.stride, 0..rows, |code| {
            let number = &mut numbers[code as usize];
            if *number == u32::MAX {
                *number = next;
                next += 1;
            }
            local.own.push(*number);
        });
        field.each(slice, self.matrix.stride, 0..rows, |code| numbers[code as usize] = u32::MAX);
        local.cardinality = next as usize;
    }
}

/// Numbers pairs 0, 1, … in the order of their first rows, and gives how many they are.
fn number_by_hash(before: &[u32], own: &[u32], numbers: &mut Vec<u32>) -> usize {
    let mut known: HashMap<u64, u32, Mixed> = HashMap::default();
    for (b, o) in before.iter().zip(own) {
        let next = known.len() as u32;
        numbers.push(*known.entry(u64::from(*b) << 32 | u64::from(*o)).or_insert(next));
    }
    known.len()
}
