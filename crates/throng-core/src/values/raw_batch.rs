//! Codec output: the cells of a batch as raw tokens, before typing.
//!
//! A batch is one byte arena and one fixed-size descriptor per cell, row after row, so it needs few allocations. It
//! owns its data, so the codec can read the next batch in the meantime.

use crate::values::rejection::RejectionReason;
use serde::{Deserialize, Serialize};

/// Position of a record in the source. Sources without partitions use partition 0.
///
/// Unique within a source: records from one message differ by `element`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RecordPosition {
    /// Index in the source's list of topics (0 for a file).
    pub topic: u16,
    /// Partition, from 0; 0 for a file.
    pub partition: i32,
    /// Offset in the partition; for a file the line or row number, from 0.
    pub offset: i64,
    /// Element number in the array, from 1; 0 if the record is the complete message or line.
    pub element: u32,
}

impl RecordPosition {
    /// Returns topic and partition.
    pub fn topic_partition(self) -> (u16, i32) {
        (self.topic, self.partition)
    }

    /// Returns the array index of the element, from 0; none if the record is the complete message.
    pub fn element_index(self) -> Option<u32> {
        self.element.checked_sub(1)
    }
}

/// Raw cell as read by the codec.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RawToken<'a> {
    /// The key is missing.
    Absent,
    /// JSON `null` or Parquet null.
    Null,
    /// JSON string, unescaped.
    Text(&'a str),
    /// JSON number, as spelled.
    Number(&'a str),
    /// Boolean.
    Bool(bool),
    /// JSON array or object, as spelled.
    Structure(&'a str),
    /// CSV field; the schema determines its type.
    Untyped(&'a str),
}

impl<'a> RawToken<'a> {
    /// Returns the number of the token kind (0 or 1 without a value) and the text.
    pub fn parts(self) -> (u8, &'a str) {
        match self {
            Self::Absent => (0, ""),
            Self::Null => (1, ""),
            Self::Text(text) => (2, text),
            Self::Number(text) => (3, text),
            Self::Bool(truth) => (4 + u8::from(truth), ""),
            Self::Structure(text) => (6, text),
            Self::Untyped(text) => (7, text),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct CellDescriptor {
    kind: u8,
    start: u32,
    len: u32,
}

const ABSENT: CellDescriptor = CellDescriptor { kind: 0, start: 0, len: 0 };

/// Cells of a batch of records, `width` per record, in the order of the schema's attributes.
#[derive(Clone, Debug, Default)]
pub struct RawBatch {
    width: usize,
    arena: String,
    cells: Vec<CellDescriptor>,
    coordinates: Vec<RecordPosition>,
    /// Bytes of cells that rows share with the previous row.
    repeated: u64,
    /// Arena position at which the values of the last row start.
    row_start: usize,
    /// Number of cells with attributes that the schema does not contain.
    pub unknown_cells: u64,
    /// Array elements that are not records.
    refused: Vec<(RecordPosition, RejectionReason)>,
}

/// Saved state of a batch, to which it can be truncated.
#[derive(Clone, Copy, Debug)]
pub struct BatchMark {
    rows: usize,
    arena: usize,
    repeated: u64,
    refused: usize,
    unknown_cells: u64,
}

impl BatchMark {
    /// Returns the number of rows at the mark.
    pub fn rows(self) -> usize {
        self.rows
    }
}

impl RawBatch {
    /// Creates an empty batch of `width` attributes.
    pub fn new(width: usize) -> Self {
        Self { width, ..Self::default() }
    }

    /// Returns the number of records.
    pub fn rows(&self) -> usize {
        self.coordinates.len()
    }

    /// Adds absent cells to every row up to `width`; no effect if the batch is already that wide.
    pub fn widen(&mut self, width: usize) {
        if width <= self.width {
            return;
        }
        let mut cells = Vec::with_capacity(self.rows() * width);
        for row in 0..self.rows() {
            cells.extend_from_slice(&self.cells[row * self.width..(row + 1) * self.width]);
            cells.resize((row + 1) * width, ABSENT);
        }
        (self.width, self.cells) = (width, cells);
    }

    /// Returns the number of cells per row.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Returns the arena size in bytes: the part of the memory that grows with the values.
    pub fn arena_bytes(&self) -> usize {
        self.arena.len()
    }

    /// Returns the additional bytes if cells shared by all elements of a message were copied to each element. The
    /// arena stores them once, but data derived from the batch has them per element.
    pub fn repeated_bytes(&self) -> u64 {
        self.repeated
    }

    /// Returns the position of each record.
    pub fn coordinates(&self) -> &[RecordPosition] {
        &self.coordinates
    }

    /// Returns a mark of the current state.
    pub fn mark(&self) -> BatchMark {
        let Self { arena, repeated, unknown_cells, .. } = self;
        let (rows, refused) = (self.coordinates.len(), self.refused.len());
        BatchMark { rows, arena: arena.len(), repeated: *repeated, refused, unknown_cells: *unknown_cells }
    }

    /// Removes everything added after `mark`.
    pub fn truncate_to(&mut self, mark: BatchMark) {
        self.arena.truncate(mark.arena);
        self.coordinates.truncate(mark.rows);
        self.cells.truncate(mark.rows * self.width);
        self.repeated = mark.repeated;
        self.refused.truncate(mark.refused);
        self.unknown_cells = mark.unknown_cells;
    }

    /// Removes the rows after `mark` for which `keep` is false, with their values.
    pub fn retain_since(&mut self, mark: BatchMark, keep: &[bool]) {
        let tail = self.arena.split_off(mark.arena);
        let coordinates = self.coordinates.split_off(mark.rows);
        let cells = self.cells.split_off(mark.rows * self.width);
        self.repeated = mark.repeated;
        // Previous kept row before the move: cells that it shares with the next row are stored once.
        let mut before: Option<&[CellDescriptor]> = None;
        let rows = coordinates.into_iter().zip(cells.chunks(self.width.max(1))).zip(keep);
        for ((coordinate, row), _) in rows.filter(|(_, keep)| **keep) {
            let above = self.cells.len().wrapping_sub(self.width);
            self.row_start = self.arena.len();
            self.coordinates.push(coordinate);
            for (at, cell) in row.iter().enumerate() {
                let repeats = cell.kind != 0 && before.is_some_and(|before| before[at] == *cell);
                let moved = if repeats {
                    self.repeated += u64::from(cell.len);
                    self.cells[above + at]
                } else {
                    let start = u32::try_from(self.arena.len()).expect("a batch is bounded far below 4 GiB");
                    let from = cell.start as usize - if cell.kind == 0 { 0 } else { mark.arena };
                    self.arena.push_str(&tail[from..from + cell.len as usize]);
                    CellDescriptor { start: if cell.kind == 0 { 0 } else { start }, ..*cell }
                };
                self.cells.push(moved);
            }
            before = Some(row);
        }
    }

    /// Returns the array elements refused since the last call, each with position and reason.
    pub fn take_refused(&mut self) -> Vec<(RecordPosition, RejectionReason)> {
        std::mem::take(&mut self.refused)
    }

    /// Replaces the last row by one row per element of `elements`.
    ///
    /// Each new row starts with the cells of the replaced row, stored once, and `fill` sets those of the element. An
    /// element that `fill` refuses gives no row; its position and the reason are [kept](Self::take_refused).
    ///
    /// # Errors
    /// Fails if copies of the shared cells would exceed `most_repeated` bytes: a message must not grow without bound.
    pub fn explode<T>(
        &mut self,
        elements: Vec<T>,
        most_repeated: u64,
        mut fill: impl FnMut(&mut Self, T) -> Result<(), RejectionReason>,
    ) -> Result<(), RejectionReason> {
        let whole = self.coordinates.len() - 1;
        let cells = whole * self.width..(whole + 1) * self.width;
        let enclosing: u64 = self.cells[cells.clone()].iter().map(|cell| u64::from(cell.len)).sum();
        let again = enclosing.saturating_mul(elements.len().saturating_sub(1) as u64);
        if again > most_repeated {
            return Err(RejectionReason::TooManyElements);
        }
        self.repeated += again;
        for (element, number) in elements.into_iter().zip(1_u32..) {
            let coordinate = RecordPosition { element: number, ..self.coordinates[whole] };
            let mark = self.mark();
            self.row_start = self.arena.len();
            self.coordinates.push(coordinate);
            self.cells.extend_from_within(cells.clone());
            if let Err(reason) = fill(self, element) {
                self.truncate_to(mark);
                self.refused.push((coordinate, reason));
            }
        }
        self.cells.drain(cells);
        self.coordinates.remove(whole);
        Ok(())
    }

    /// Appends a row of absent cells. Fill it with [`set`](Self::set); remove it with [`pop_row`](Self::pop_row).
    pub fn push_row(&mut self, coordinate: RecordPosition) {
        self.row_start = self.arena.len();
        self.coordinates.push(coordinate);
        self.cells.resize(self.cells.len() + self.width, ABSENT);
    }

    /// Removes the last row (of a record that proves malformed) and its values.
    pub fn pop_row(&mut self) {
        self.arena.truncate(self.row_start);
        self.coordinates.pop();
        self.cells.truncate(self.coordinates.len() * self.width);
    }

    /// Sets a cell of the last row. Returns false if it has been set before (duplicate key).
    pub fn set(&mut self, attribute: usize, token: RawToken<'_>) -> bool {
        assert!(attribute < self.width, "attribute {attribute} of {}", self.width);
        let (kind, text) = token.parts();
        let index = (self.coordinates.len() - 1) * self.width + attribute;
        let fresh = self.cells[index].kind == 0;
        let start = u32::try_from(self.arena.len()).expect("a batch is bounded far below 4 GiB");
        self.arena.push_str(text);
        let len = u32::try_from(text.len()).expect("a record is bounded far below 4 GiB");
        self.cells[index] = CellDescriptor { kind, start, len };
        fresh
    }

    /// Makes all cells of `attribute` absent.
    pub fn clear(&mut self, attribute: usize) {
        self.cells.iter_mut().skip(attribute).step_by(self.width.max(1)).for_each(|cell| *cell = ABSENT);
    }

    /// Returns the cell of `attribute` in `row`.
    #[inline]
    pub fn token(&self, row: usize, attribute: usize) -> RawToken<'_> {
        let d = self.cells[row * self.width + attribute];
        let text = || &self.arena[d.start as usize..(d.start + d.len) as usize];
        match d.kind {
            0 => RawToken::Absent,
            1 => RawToken::Null,
            2 => RawToken::Text(text()),
            3 => RawToken::Number(text()),
            4 => RawToken::Bool(false),
            5 => RawToken::Bool(true),
            6 => RawToken::Structure(text()),
            _ => RawToken::Untyped(text()),
        }
    }

    /// Checks that the cell of `attribute` in `row` is shared with the previous row, as in elements of one message.
    #[inline]
    pub fn repeats_previous(&self, row: usize, attribute: usize) -> bool {
        row > 0 && self.cells[row * self.width + attribute] == self.cells[(row - 1) * self.width + attribute]
    }

    /// Removes the rows for which `keep` is false; their values stay in the arena until the batch is dropped.
    pub fn retain_rows(&mut self, keep: impl Fn(RecordPosition) -> bool) {
        let mut at = 0;
        for row in 0..self.coordinates.len() {
            if keep(self.coordinates[row]) {
                self.coordinates[at] = self.coordinates[row];
                self.cells.copy_within(row * self.width..(row + 1) * self.width, at * self.width);
                at += 1;
            }
        }
        self.coordinates.truncate(at);
        self.cells.truncate(at * self.width);
    }
}
