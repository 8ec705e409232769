//! Which bytes of an object are fetched before they are asked for, and how long they are held.
//!
//! An object is cut into pieces. Pieces lie on *strands*, each of which is read from its beginning to its end: the text of a file, the row
//! groups of a Parquet file, or, where these are large, each of its columns. Whoever reads in a piece has it and the next one of its strand
//! fetched, and those behind him dropped.
//!
//! At most [`AT_MOST`] bytes of an object are held by it, whatever its length and however many columns are read.

use std::collections::BTreeMap;
use std::ops::Range;

/// Bytes of one object that are held at a time: 64 MiB.
pub const AT_MOST: u64 = 64 << 20;
/// Bytes of a text that are asked for at a time, and of columns at most: 8 MiB.
const PIECE: u64 = 8 << 20;
/// Bytes of a text that are asked for first: 256 KiB.
const FIRST: u64 = 256 << 10;
/// Bytes of a column that are asked for at a time, at least. 1,024 columns, as many as an audit judges, hold [`AT_MOST`] with it.
const LEAST: u64 = 32 << 10;
/// Row groups are fetched whole where three of them can be held.
const GROUP: u64 = AT_MOST / 3;
/// Between two columns that are fetched with one request lie at most so many bytes that nobody wants.
const GAP: u64 = 256 << 10;

/// A part of an object that is fetched with one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Its bytes.
    pub bytes: Range<u64>,
    strand: u32,
    step: u32,
}

/// The pieces of an object.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// By their first byte; no two overlap.
    pieces: Vec<Piece>,
    on: BTreeMap<(u32, u32), Vec<usize>>,
    /// Steps that are held behind the one that is read.
    behind: u32,
}

impl Plan {
    /// A text of `length` bytes, read from its beginning to its end.
    #[must_use]
    pub fn of_text(length: u64) -> Self {
        // Whoever only looks at the first line wants no more.
        let starts = std::iter::once(0).chain((FIRST..length).step_by(PIECE as usize));
        let end = |start: u64| length.min(if start == 0 { FIRST } else { start + PIECE });
        let piece = |(step, start)| Piece { bytes: start..end(start), strand: 0, step };
        Self::of((0..).zip(starts.filter(|start| *start < length)).map(piece).collect(), 0)
    }

    /// A Parquet file: of each row group the bytes of the columns that are read. Where these are no ranges in an object of `length` bytes
    /// that lie side by side, nothing is fetched ahead.
    #[must_use]
    pub fn of_groups(groups: &[Vec<Range<u64>>], length: u64) -> Self {
        let columns = groups.iter().map(Vec::len).max().unwrap_or(0) as u64;
        if groups.iter().flatten().any(|bytes| bytes.start > bytes.end || bytes.end > length) || columns == 0 {
            return Self::default();
        }
        let whole: Vec<Vec<Range<u64>>> = groups.iter().map(|group| joined(group)).collect();
        let size = |group: &Vec<Range<u64>>| group.iter().map(|bytes| bytes.end - bytes.start).sum::<u64>();
        let mut pieces = Vec::new();
        let is_small = whole.iter().all(|group| size(group) <= GROUP);
        if is_small {
            for (step, group) in (0..).zip(whole) {
                pieces.extend(group.into_iter().map(|bytes| Piece { bytes, strand: 0, step }));
            }
        } else {
            let width = (AT_MOST / (2 * columns)).clamp(LEAST, PIECE);
            let mut steps: BTreeMap<u32, u32> = BTreeMap::new();
            for group in groups {
                for (strand, column) in (0..).zip(group) {
                    let step = steps.entry(strand).or_default();
                    for start in (column.start..column.end).step_by(width as usize) {
                        pieces.push(Piece { bytes: start..column.end.min(start + width), strand, step: *step });
                        *step += 1;
                    }
                }
            }
        }
        Self::of(pieces, u32::from(is_small))
    }

    /// Pieces whose strands are walked with `behind` steps held behind the one that is read.
    fn of(mut pieces: Vec<Piece>, behind: u32) -> Self {
        pieces.sort_unstable_by_key(|piece| piece.bytes.start);
        if pieces.windows(2).any(|pair| pair[0].bytes.end > pair[1].bytes.start) {
            return Self::default();
        }
        let mut on: BTreeMap<(u32, u32), Vec<usize>> = BTreeMap::new();
        for (index, piece) in pieces.iter().enumerate() {
            on.entry((piece.strand, piece.step)).or_default().push(index);
        }
        Self { pieces, on, behind }
    }

    /// The piece that has the byte.
    #[must_use]
    pub fn at(&self, byte: u64) -> Option<usize> {
        let after = self.pieces.partition_point(|piece| piece.bytes.start <= byte);
        after.checked_sub(1).filter(|index| byte < self.pieces[*index].bytes.end)
    }

    /// A piece by its number.
    #[must_use]
    pub fn piece(&self, index: usize) -> &Piece {
        &self.pieces[index]
    }

    /// What is to be there or on its way while a piece is read: itself, what goes with it, and the next step.
    #[must_use]
    pub fn wanted(&self, read: usize) -> Vec<usize> {
        let Piece { strand, step, .. } = self.pieces[read];
        let of = |step: u32| self.on.get(&(strand, step)).into_iter().flatten().copied();
        let mut wanted = vec![read];
        wanted.extend(of(step).chain(of(step + 1)).filter(|index| *index != read));
        wanted
    }

    /// Whether a piece that is held is held on while another one is read.
    #[must_use]
    pub fn is_kept(&self, held: usize, read: usize) -> bool {
        let (held, read) = (&self.pieces[held], &self.pieces[read]);
        held.strand != read.strand || (read.step.saturating_sub(self.behind)..=read.step + 1).contains(&held.step)
    }
}

/// The ranges of a row group as few requests: neighbours together, up to [`PIECE`].
fn joined(group: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut ranges: Vec<Range<u64>> = group.iter().filter(|bytes| !bytes.is_empty()).cloned().collect();
    ranges.sort_unstable_by_key(|bytes| bytes.start);
    let mut joined: Vec<Range<u64>> = Vec::new();
    for next in ranges {
        match joined.last_mut() {
            Some(last) if next.start >= last.end && next.start - last.end <= GAP && next.end - last.start <= PIECE => {
                last.end = next.end;
            }
            _ => joined.push(next),
        }
    }
    joined
}
