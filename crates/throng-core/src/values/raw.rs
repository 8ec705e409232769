//! What a codec hands over: the cells of a batch as raw tokens, before any typing.
//!
//! One arena of bytes and one fixed-size descriptor a cell, row after row, so that a batch of ten thousand
//! records costs a handful of allocations. A token borrows nothing and may be kept while the next batch is read.

use crate::values::rejection::RejectionReason;
use serde::{Deserialize, Serialize};

/// Where a record came from. Sources without partitions use partition 0; offsets of files count their lines or rows from 0.
///
/// Unique in a source: the records that are elements of one message differ by `element`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Coordinate {
    /// Index into the source's list of topics (0 for a file).
    pub topic: u16,
    /// The partition, from 0; 0 for a file.
    pub partition: i32,
    /// The place in the partition; for a file the number of the line or row, from 0.
    pub offset: i64,
    /// 0 where the record is all of the message (or line); else the number of its element in the array, from 1.
    pub element: u32,
}

impl Coordinate {
    /// Topic and partition.
    pub fn place(self) -> (u16, i32) {
        (self.topic, self.partition)
    }

    /// The index of the element in its array, as JSON pointers count; none where the record is all of its message.
    pub fn index(self) -> Option<u32> {
        self.element.checked_sub(1)
    }
}

/// One cell as the codec saw it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Token<'a> {
    /// The key is not there at all.
    Absent,
    /// JSON `null`, or a Parquet null.
    Null,
    /// A JSON string, unescaped.
    Text(&'a str),
    /// A JSON number, as it was spelled.
    Number(&'a str),
    /// A truth value.
    Bool(bool),
    /// A JSON array or object, as it was spelled.
    Structure(&'a str),
    /// A CSV field: its type is the schema's business.
    Untyped(&'a str),
}

impl<'a> Token<'a> {
    /// A number of its kind, 0 and 1 where it has no value, and its text.
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
struct Descriptor {
    kind: u8,
    start: u32,
    len: u32,
}

const ABSENT: Descriptor = Descriptor { kind: 0, start: 0, len: 0 };

/// The cells of some records, `width` a record, in the order of the schema's attributes.
#[derive(Clone, Debug, Default)]
pub struct RawBatch {
    width: usize,
    arena: String,
    cells: Vec<Descriptor>,
    coordinates: Vec<Coordinate>,
    /// Bytes of cells that rows have in common with the row before.
    repeated: u64,
    /// Where the values of the row begin that was opened last.
    row_start: usize,
    /// Cells of attributes that the schema does not know.
    pub unknown_cells: u64,
    /// Elements of arrays that are no records.
    refused: Vec<(Coordinate, RejectionReason)>,
}

/// What a batch held at some time, to go back to.
#[derive(Clone, Copy, Debug)]
pub struct Mark {
    rows: usize,
    arena: usize,
    repeated: u64,
    refused: usize,
    unknown_cells: u64,
}

impl Mark {
    /// Rows that the batch had.
    pub fn rows(self) -> usize {
        self.rows
    }
}

impl RawBatch {
    /// An empty batch of records of so many attributes.
    pub fn new(width: usize) -> Self {
        Self { width, ..Self::default() }
    }

    /// Records.
    pub fn rows(&self) -> usize {
        self.coordinates.len()
    }

    /// Makes room for more attributes: every row gets absent cells up to `width`. Nothing where it is that wide already.
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

    /// Cells a row.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Bytes held by the arena: the part of a batch's memory that grows with its values.
    pub fn arena_bytes(&self) -> usize {
        self.arena.len()
    }

    /// Bytes that the cells which all elements of a message have come to beside those of the arena: they are stored once, and are
    /// a cell of each element in everything that is made of them.
    pub fn repeated_bytes(&self) -> u64 {
        self.repeated
    }

    /// The place of each record.
    pub fn coordinates(&self) -> &[Coordinate] {
        &self.coordinates
    }

    /// What the batch holds now.
    pub fn mark(&self) -> Mark {
        let Self { arena, repeated, unknown_cells, .. } = self;
        let (rows, refused) = (self.coordinates.len(), self.refused.len());
        Mark { rows, arena: arena.len(), repeated: *repeated, refused, unknown_cells: *unknown_cells }
    }

    /// Takes back everything that came after `mark`.
    pub fn return_to(&mut self, mark: Mark) {
        self.arena.truncate(mark.arena);
        self.coordinates.truncate(mark.rows);
        self.cells.truncate(mark.rows * self.width);
        self.repeated = mark.repeated;
        self.refused.truncate(mark.refused);
        self.unknown_cells = mark.unknown_cells;
    }

    /// Takes back the rows after `mark` for which `keep` is false, and their values.
    pub fn retain_since(&mut self, mark: Mark, keep: &[bool]) {
        let tail = self.arena.split_off(mark.arena);
        let coordinates = self.coordinates.split_off(mark.rows);
        let cells = self.cells.split_off(mark.rows * self.width);
        self.repeated = mark.repeated;
        // The last row kept, as it was: the cells that it shares with the next one are stored once.
        let mut before: Option<&[Descriptor]> = None;
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
                    Descriptor { start: if cell.kind == 0 { 0 } else { start }, ..*cell }
                };
                self.cells.push(moved);
            }
            before = Some(row);
        }
    }

    /// Elements of arrays that are no records, since the last call: where each is, and why.
    pub fn take_refused(&mut self) -> Vec<(Coordinate, RejectionReason)> {
        std::mem::take(&mut self.refused)
    }

    /// Makes a row for each of `elements` of the row opened last, which goes: each begins with its cells, and `fill` sets those
    /// of the element. An element that `fill` refuses leaves no row; its place and the reason are [kept](Self::take_refused).
    ///
    /// The cells that all of them have are stored once.
    ///
    /// # Errors
    /// When those cells would come to more than `most_repeated` bytes in all of the rows: a message must not grow without bound.
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
            let coordinate = Coordinate { element: number, ..self.coordinates[whole] };
            let mark = self.mark();
            self.row_start = self.arena.len();
            self.coordinates.push(coordinate);
            self.cells.extend_from_within(cells.clone());
            if let Err(reason) = fill(self, element) {
                self.return_to(mark);
                self.refused.push((coordinate, reason));
            }
        }
        self.cells.drain(cells);
        self.coordinates.remove(whole);
        Ok(())
    }

    /// Opens a row in which every cell is absent; fill it with [`set`](Self::set), then keep it or
    /// take it back with [`pop_row`](Self::pop_row).
    pub fn push_row(&mut self, coordinate: Coordinate) {
        self.row_start = self.arena.len();
        self.coordinates.push(coordinate);
        self.cells.resize(self.cells.len() + self.width, ABSENT);
    }

    /// Takes back the row opened last (a record that turned out to be malformed half way), and its values.
    pub fn pop_row(&mut self) {
        self.arena.truncate(self.row_start);
        self.coordinates.pop();
        self.cells.truncate(self.coordinates.len() * self.width);
    }

    /// Sets a cell of the row opened last. False if it had been set before: a duplicate key.
    pub fn set(&mut self, attribute: usize, token: Token<'_>) -> bool {
        assert!(attribute < self.width, "attribute {attribute} of {}", self.width);
        let (kind, text) = token.parts();
        let index = (self.coordinates.len() - 1) * self.width + attribute;
        let fresh = self.cells[index].kind == 0;
        let start = u32::try_from(self.arena.len()).expect("a batch is bounded far below 4 GiB");
        self.arena.push_str(text);
        let len = u32::try_from(text.len()).expect("a record is bounded far below 4 GiB");
        self.cells[index] = Descriptor { kind, start, len };
        fresh
    }

    /// Makes the cells of `attribute` absent.
    pub fn clear(&mut self, attribute: usize) {
        self.cells.iter_mut().skip(attribute).step_by(self.width.max(1)).for_each(|cell| *cell = ABSENT);
    }

    /// The cell of `attribute` in `row`.
    #[inline]
    pub fn token(&self, row: usize, attribute: usize) -> Token<'_> {
        let d = self.cells[row * self.width + attribute];
        let text = || &self.arena[d.start as usize..(d.start + d.len) as usize];
        match d.kind {
            0 => Token::Absent,
            1 => Token::Null,
            2 => Token::Text(text()),
            3 => Token::Number(text()),
            4 => Token::Bool(false),
            5 => Token::Bool(true),
            6 => Token::Structure(text()),
            _ => Token::Untyped(text()),
        }
    }

    /// Whether the cell of `attribute` in `row` is the very one of the row before: one that all elements of a message have.
    #[inline]
    pub fn repeats(&self, row: usize, attribute: usize) -> bool {
        row > 0 && self.cells[row * self.width + attribute] == self.cells[(row - 1) * self.width + attribute]
    }

    /// Keeps the rows for which `keep` says so; their values stay in the arena until the batch goes.
    pub fn retain_rows(&mut self, keep: impl Fn(Coordinate) -> bool) {
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
