//! Packed codes of a column.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

#[derive(Clone, Copy, Debug)]
pub(super) struct CodeRun {
    pub first: usize,
    pub rows: usize,
    /// 1, 2 or 4.
    pub width: usize,
    /// Byte offset in the file, or piece number in memory.
    pub start: u64,
}

#[derive(Debug)]
pub(super) enum CodeStorage {
    /// One piece per run.
    Memory(Vec<Box<[u8]>>),
    File(File),
}

impl CodeStorage {
    fn read<'b>(&'b self, run: &CodeRun, rows: Range<usize>, buffer: &'b mut Vec<u8>) -> io::Result<&'b [u8]> {
        let (from, to) = (rows.start * run.width, rows.end * run.width);
        match self {
            Self::Memory(pieces) => Ok(&pieces[run.start as usize][from..to]),
            Self::File(file) => {
                buffer.resize(to - from, 0);
                file.read_exact_at(buffer, run.start + from as u64)?;
                Ok(buffer)
            }
        }
    }
}

pub(super) fn code_width(largest: u32) -> usize {
    match largest {
        0..=0xff => 1,
        0x100..=0xffff => 2,
        _ => 4,
    }
}

pub(super) fn append_packed_codes(codes: &[u32], width: usize, bytes: &mut Vec<u8>) {
    match width {
        1 => bytes.extend(codes.iter().map(|code| *code as u8)),
        2 => codes.iter().for_each(|code| bytes.extend_from_slice(&(*code as u16).to_le_bytes())),
        _ => codes.iter().for_each(|code| bytes.extend_from_slice(&code.to_le_bytes())),
    }
}

/// Returns the rank of each code in use, and their number.
fn rank_codes(counts: &[u64]) -> (Vec<u32>, usize) {
    let mut ranks = Vec::with_capacity(counts.len());
    let mut next = 0;
    for count in counts {
        ranks.push(next);
        next += u32::from(*count > 0);
    }
    (ranks, next as usize)
}

/// Codes of a column, below [`cardinality`](Self::cardinality).
#[derive(Clone, Debug)]
pub struct CodeColumn {
    bytes: Arc<CodeStorage>,
    runs: Arc<[CodeRun]>,
    /// Dense code per written code; `None` if `shift` is sufficient.
    dense: Option<Arc<[u32]>>,
    shift: u32,
    cardinality: usize,
}

impl CodeColumn {
    /// Numbers the codes in use densely.
    pub(super) fn new(bytes: &Arc<CodeStorage>, runs: Vec<CodeRun>, counts: &[u64]) -> Self {
        let (dense, cardinality) = rank_codes(counts);
        let shift = counts.iter().take_while(|count| **count == 0).count();
        let dense = (cardinality + shift < counts.len()).then(|| dense.into());
        Self { bytes: Arc::clone(bytes), runs: runs.into(), dense, shift: shift as u32, cardinality }
    }

    pub(super) fn with_written_codes(self) -> Self {
        Self { dense: None, shift: 0, ..self }
    }

    pub(super) fn is_in_memory(&self) -> bool {
        matches!(*self.bytes, CodeStorage::Memory(_))
    }

    /// Number of distinct codes.
    #[must_use]
    pub fn cardinality(&self) -> usize {
        self.cardinality
    }

    /// Returns the cells as `other[code]`, dense.
    pub(super) fn recoded(&self, other: &[u32]) -> Self {
        let largest = other.iter().copied().max().map_or(0, |code| code as usize + 1);
        let mut used = vec![0_u64; largest];
        other.iter().for_each(|code| used[*code as usize] = 1);
        let (numbers, cardinality) = rank_codes(&used);
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

    /// Reads the codes of some rows.
    ///
    /// # Errors
    /// If the file cannot be read.
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
