//! One column of codes, and the bytes that hold it.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// Rows of one column that lie together, in one width.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    /// The first of them.
    pub first: usize,
    /// How many.
    pub rows: usize,
    /// Bytes of a code: 1, 2 or 4.
    pub width: usize,
    /// Where they begin: a byte of the file, or the number of the piece in memory.
    pub at: u64,
}

/// Packed codes.
#[derive(Debug)]
pub(super) enum Bytes {
    /// A piece for each run.
    Memory(Vec<Box<[u8]>>),
    /// A file without a name.
    File(File),
}

impl Bytes {
    /// The bytes of some rows of a run; `buffer` takes those of a file.
    fn read<'b>(&'b self, run: &Run, rows: Range<usize>, buffer: &'b mut Vec<u8>) -> io::Result<&'b [u8]> {
        let (from, to) = (rows.start * run.width, rows.end * run.width);
        match self {
            Self::Memory(pieces) => Ok(&pieces[run.at as usize][from..to]),
            Self::File(file) => {
                buffer.resize(to - from, 0);
                file.read_exact_at(buffer, run.at + from as u64)?;
                Ok(buffer)
            }
        }
    }
}

/// Bytes that hold codes up to `largest`.
pub(super) fn width_of(largest: u32) -> usize {
    match largest {
        0..=0xff => 1,
        0x100..=0xffff => 2,
        _ => 4,
    }
}

/// Appends codes in so many bytes each.
pub(super) fn pack(codes: &[u32], width: usize, bytes: &mut Vec<u8>) {
    match width {
        1 => bytes.extend(codes.iter().map(|code| *code as u8)),
        2 => codes.iter().for_each(|code| bytes.extend_from_slice(&(*code as u16).to_le_bytes())),
        _ => codes.iter().for_each(|code| bytes.extend_from_slice(&code.to_le_bytes())),
    }
}

/// Of each code with a count how many smaller ones have one, and how many have one at all.
fn ranks(counts: &[u64]) -> (Vec<u32>, usize) {
    let mut ranks = Vec::with_capacity(counts.len());
    let mut next = 0;
    for count in counts {
        ranks.push(next);
        next += u32::from(*count > 0);
    }
    (ranks, next as usize)
}

/// The codes of a column, below [`cardinality`](Self::cardinality).
#[derive(Clone, Debug)]
pub struct CodeColumn {
    bytes: Arc<Bytes>,
    runs: Arc<[Run]>,
    /// The dense code of each code that was written; none where they only have to be moved.
    dense: Option<Arc<[u32]>>,
    /// By how much codes that were written are larger, where they only have to be moved: most columns have all codes from the first one on, and
    /// need no table then.
    shift: u32,
    cardinality: usize,
}

impl CodeColumn {
    /// Codes of which those with a count of 0 are in no row: the others get the numbers 0, 1, … in their order.
    pub(super) fn new(bytes: &Arc<Bytes>, runs: Vec<Run>, counts: &[u64]) -> Self {
        let (dense, cardinality) = ranks(counts);
        let shift = counts.iter().take_while(|count| **count == 0).count();
        let dense = (cardinality + shift < counts.len()).then(|| dense.into());
        Self { bytes: Arc::clone(bytes), runs: runs.into(), dense, shift: shift as u32, cardinality }
    }

    /// The numbers as they were written.
    pub(super) fn plain(self) -> Self {
        Self { dense: None, shift: 0, ..self }
    }

    /// Whether its codes lie in memory.
    pub(super) fn is_in_memory(&self) -> bool {
        matches!(*self.bytes, Bytes::Memory(_))
    }

    /// Different codes.
    #[must_use]
    pub fn cardinality(&self) -> usize {
        self.cardinality
    }

    /// The same cells by other codes: `other[code]`, numbered densely in their order.
    pub(super) fn recoded(&self, other: &[u32]) -> Self {
        let largest = other.iter().copied().max().map_or(0, |code| code as usize + 1);
        let mut used = vec![0_u64; largest];
        other.iter().for_each(|code| used[*code as usize] = 1);
        let (numbers, cardinality) = ranks(&used);
        let through = |code: &u32| other.get(*code as usize).map_or(0, |code| numbers[*code as usize]);
        let dense = match &self.dense {
            Some(dense) => dense.iter().map(through).collect(),
            None => {
                let moved = std::iter::repeat_n(0, self.shift as usize);
                moved.chain(other.iter().map(|code| numbers[*code as usize])).collect()
            }
        };
        Self { bytes: Arc::clone(&self.bytes), runs: Arc::clone(&self.runs), dense: Some(dense), shift: 0, cardinality }
    }

    /// The codes of some rows, in place of what `codes` held.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn read(&self, rows: Range<usize>, buffer: &mut Vec<u8>, codes: &mut Vec<u32>) -> io::Result<()> {
        codes.clear();
        let first = self.runs.partition_point(|run| run.first + run.rows <= rows.start);
        for run in self.runs[first..].iter().take_while(|run| run.first < rows.end) {
            let (from, to) = (rows.start.max(run.first) - run.first, rows.end.min(run.first + run.rows) - run.first);
            let bytes = self.bytes.read(run, from..to, buffer)?;
            let Some(dense) = &self.dense else {
                let moved = |code: u32| code.wrapping_sub(self.shift);
                match run.width {
                    1 => codes.extend(bytes.iter().map(|byte| moved(u32::from(*byte)))),
                    2 => codes.extend(bytes.as_chunks().0.iter().map(|two| moved(u32::from(u16::from_le_bytes(*two))))),
                    _ => codes.extend(bytes.as_chunks().0.iter().map(|four| moved(u32::from_le_bytes(*four)))),
                }
                continue;
            };
            match run.width {
                1 => codes.extend(bytes.iter().map(|byte| dense[usize::from(*byte)])),
                2 => codes.extend(bytes.as_chunks().0.iter().map(|two| dense[usize::from(u16::from_le_bytes(*two))])),
                _ => codes.extend(bytes.as_chunks().0.iter().map(|four| dense[u32::from_le_bytes(*four) as usize])),
            }
        }
        Ok(())
    }
}
