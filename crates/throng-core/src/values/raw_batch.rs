//! Cells of a batch as raw tokens in one arena, before typing.

use crate::values::rejection::RejectionReason;
use serde::{Deserialize, Serialize};

/// Position of a record, unique within a source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RecordPosition {
    /// Index of the topic; 0 for a file.
    pub topic: u16,
    /// Partition; 0 for a file.
    pub partition: i32,
    /// Offset; for a file the line or row, from 0.
    pub offset: i64,
    /// Element of an exploded array, from 1; 0 for a complete message.
    pub element: u32,
}

impl RecordPosition {
    /// Returns topic and partition.
    pub fn topic_partition(self) -> (u16, i32) {
        (self.topic, self.partition)
    }

    /// Returns the array index, from 0; none for a complete message.
    pub fn element_index(self) -> Option<u32> {
        self.element.checked_sub(1)
    }
}

/// Raw cell as read by the codec.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RawToken<'a> {
    /// Missing key.
    Absent,
    /// JSON `null` or Parquet null.
    Null,
    /// Unescaped JSON string.
    Text(&'a str),
    /// JSON number as spelled.
    Number(&'a str),
    /// Boolean.
    Bool(bool),
    /// JSON array or object as spelled.
    Structure(&'a str),
    /// CSV field, typed by the schema.
    Untyped(&'a str),
}

impl<'a> RawToken<'a> {
    /// Returns kind and text; kinds 0 and 1 have none.
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

/// Cells of records, `width` per record, in schema order.
#[derive(Clone, Debug, Default)]
pub struct RawBatch {
    width: usize,
    arena: String,
    cells: Vec<CellDescriptor>,
    coordinates: Vec<RecordPosition>,
    repeated: u64,
    /// Arena position of the last row.
    row_start: usize,
    /// Number of cells outside the schema.
    pub unknown_cells: u64,
    refused: Vec<(RecordPosition, RejectionReason)>,
}

/// State of a batch for [`RawBatch::truncate_to`].
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
    /// Creates an empty batch with `width` cells per row.
    pub fn new(width: usize) -> Self {
        Self { width, ..Self::default() }
    }

    /// Returns the number of records.
    pub fn rows(&self) -> usize {
        self.coordinates.len()
    }

    /// Adds absent cells to every row up to `width`.
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

    /// Returns the arena size in bytes.
    pub fn arena_bytes(&self) -> usize {
        self.arena.len()
    }

    /// Returns the bytes of cells shared by elements, if copied.
    pub fn repeated_bytes(&self) -> u64 {
        self.repeated
    }

    /// Returns the positions of the records.
    pub fn coordinates(&self) -> &[RecordPosition] {
        &self.coordinates
    }

    /// Returns the current state.
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

    /// Removes the rows after `mark` with false `keep`, and their values.
    pub fn retain_since(&mut self, mark: BatchMark, keep: &[bool]) {
        let tail = self.arena.split_off(mark.arena);
        let coordinates = self.coordinates.split_off(mark.rows);
        let cells = self.cells.split_off(mark.rows * self.width);
        self.repeated = mark.repeated;
        // Cells shared with the previous kept row are stored once.
        let mut before: Option<&[CellDescriptor]> = None;
        let rows = coordinates.into_iter().zip(cells.chunks(self.width.max(1))).zip(keep);
        for ((coordinate, row), _) in rows.filter(|(_, keep)| **keep) {
            let above = self.cells.len().wrapping_sub(self.width);
            self.row_start = self.arena.len();
            self.coordinates.push(coordinate);
            for (at, cell) in row.iter().enumerate() {
                let repeats = cell.kind != 0 && before.is_some_and(|before| before[at] == *cell);
                let moved = if cell.kind == 0 {
                    ABSENT
                } else if repeats {
                    self.repeated += u64::from(cell.len);
                    self.cells[above + at]
                } else {
                    let start = u32::try_from(self.arena.len()).expect("a batch is bounded far below 4 GiB");
                    let from = cell.start as usize - mark.arena;
                    self.arena.push_str(&tail[from..from + cell.len as usize]);
                    CellDescriptor { start, ..*cell }
                };
                self.cells.push(moved);
            }
            before = Some(row);
        }
    }

    /// Takes the refused array elements with their reasons.
    pub fn take_refused(&mut self) -> Vec<(RecordPosition, RejectionReason)> {
        std::mem::take(&mut self.refused)
    }

    /// Replaces the last row by copies for `elements`, completed by `fill`.
    ///
    /// Refused elements go to [`take_refused`](Self::take_refused).
    ///
    /// # Errors
    /// Fails if the copies exceed `most_repeated` bytes.
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

    /// Appends a row of absent cells.
    pub fn push_row(&mut self, coordinate: RecordPosition) {
        self.row_start = self.arena.len();
        self.coordinates.push(coordinate);
        self.cells.resize(self.cells.len() + self.width, ABSENT);
    }

    /// Removes the last row and its values.
    pub fn pop_row(&mut self) {
        self.arena.truncate(self.row_start);
        self.coordinates.pop();
        self.cells.truncate(self.coordinates.len() * self.width);
    }

    /// Sets a cell of the last row. Returns false for a duplicate key.
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

    /// Checks that a cell is shared with the previous row.
    #[inline]
    pub fn repeats_previous(&self, row: usize, attribute: usize) -> bool {
        row > 0 && self.cells[row * self.width + attribute] == self.cells[(row - 1) * self.width + attribute]
    }

    /// Removes the rows with false `keep`, but not their values.
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
