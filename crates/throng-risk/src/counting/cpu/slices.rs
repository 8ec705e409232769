//! Verdicts on many sets of few combinations each, slice by slice.
//!
//! The rows are sorted by one column, for all sets whose column of most values it is; the rows of one value are a *slice*. A set is a QID
//! when its other columns are one in some slice. Rare values come first, so a QID fails early; a slice is left as soon as every
//! combination in it has reached k, so frequent values cost little. Sets that begin alike share their beginnings.
//!
//! A table that is too large for memory is read segment by segment; the combinations of all segments then add up.

use super::cells::{Cell, are_dense};
use super::matrix::Matrix;
use crate::counting::AttributeSet;
use crate::counting::codes::CodeTable;
use hashbrown::HashMap;
use std::io;
use std::ops::Range;

/// Rows of a slice that are counted before the first look at the combinations, at least.
const FIRST_ROWS: usize = 512;

/// Rows between two looks, at most.
const MOST_ROWS: usize = 1 << 15;

/// Rows of a slice, on average at least: shorter ones cost more than they save.
const ROWS_A_SLICE: usize = 64;

/// Sets of one column, at least: sorting the rows takes as long as counting about as many sets.
const SETS_A_SORT: usize = 8;

/// Combinations that are counted in one slice, at most: their numbers take two bytes.
const MOST_CELLS: usize = 1 << 16;

/// A set that arrays can hold.
pub(super) struct SlicedSet {
    /// Its place among those that were asked.
    pub at: usize,
    /// The columns that the rows are sorted by: mostly one, none where all rows are one slice.
    first: Vec<usize>,
    /// Combinations of these.
    slices: usize,
    /// The other columns.
    rest: Vec<usize>,
    /// Combinations of the others.
    domain: usize,
}

impl SlicedSet {
    /// None where an array is no good for so many combinations.
    fn new<C>(table: &CodeTable, at: usize, set: &AttributeSet, memory: u64) -> Option<Self> {
        let values = |column: &usize| table.cardinality(*column).max(1);
        let product =
            |columns: &[usize]| columns.iter().try_fold(1_usize, |all, column| all.checked_mul(values(column)));
        let (mut first, mut rest) = (Vec::new(), set.iter().collect::<Vec<usize>>());
        let cells = product(&rest).filter(|cells| are_dense::<C>(*cells as u64, table.rows() as u64, memory))?;
        while first.is_empty() || product(&rest)? > MOST_CELLS {
            let suits = |place: &usize| {
                let values = values(&rest[*place]);
                if values <= table.rows() / ROWS_A_SLICE { (1, values) } else { (0, usize::MAX - values) }
            };
            let next = (0..rest.len()).max_by_key(suits)?;
            first.push(rest.remove(next));
        }
        let slices = product(&first)?;
        Some(Self { at, first, slices, rest, domain: cells / slices })
    }

    /// Takes all rows as one slice, where their combinations are few enough.
    fn join_slices(&mut self) {
        if self.slices * self.domain <= MOST_CELLS {
            self.rest.append(&mut self.first);
            self.rest.sort_unstable();
            self.domain *= std::mem::replace(&mut self.slices, 1);
        }
    }
}

/// Splits sets into batches of at most `most` sets that `memory` holds at once, sorted by their first columns, and the places of the
/// sets that arrays do not hold.
pub(super) fn batches<C>(
    rows: &Rows<'_>,
    sets: &[AttributeSet],
    most: usize,
    memory: u64,
) -> (Vec<Vec<SlicedSet>>, Vec<usize>) {
    let (Rows::Whole(table, _) | Rows::Segments(table, _)) = rows;
    let (mut sliced, mut others) = (Vec::new(), Vec::new());
    for (at, set) in sets.iter().enumerate() {
        match SlicedSet::new::<C>(table, at, set, memory) {
            Some(set) => sliced.push(set),
            None => others.push(at),
        }
    }
    let mut alike: HashMap<Vec<usize>, usize> = HashMap::new();
    sliced.iter().for_each(|set: &SlicedSet| *alike.entry(set.first.clone()).or_default() += 1);
    for set in sliced.iter_mut().filter(|set| alike[&set.first] < SETS_A_SORT) {
        set.join_slices();
    }
    sliced.sort_by(|a, b| (&a.first, &a.rest).cmp(&(&b.first, &b.rest)));
    let mut batches: Vec<Vec<SlicedSet>> = Vec::new();
    let mut held = 0;
    for set in sliced {
        // One slice after the other where each comes once.
        let slices = if matches!(rows, Rows::Whole(..)) { 1 } else { set.slices };
        let bytes = (set.domain * slices * size_of::<C>()) as u64;
        match batches.last_mut() {
            Some(batch) if held + bytes <= memory && batch.len() < most => {
                batch.push(set);
                held += bytes;
            }
            _ => {
                batches.push(vec![set]);
                held = bytes;
            }
        }
    }
    (batches, others)
}

/// The rows of a table: at once where memory holds them, or segment by segment.
pub(super) enum Rows<'a> {
    /// All of them.
    Whole(&'a CodeTable, &'a Matrix),
    /// So many at a time.
    Segments(&'a CodeTable, usize),
}

/// Reads the rows of a table into memory.
pub(super) fn whole(table: &CodeTable) -> io::Result<Matrix> {
    let mut matrix = empty(table);
    let columns: Vec<usize> = (0..table.width()).collect();
    table.each_block(&columns, false, |block| {
        matrix.append(&block.codes, &block.people);
        true
    })?;
    Ok(matrix)
}

/// No row of a table.
pub(super) fn empty(table: &CodeTable) -> Matrix {
    let cardinalities: Vec<usize> = (0..table.width()).map(|column| table.cardinality(column)).collect();
    Matrix::none(&cardinalities, table.subjects())
}

impl Rows<'_> {
    /// Visits segment after segment until `visit` returns false; the second argument is true for the last one.
    fn each_segment(&self, mut visit: impl FnMut(&Matrix, bool) -> bool) -> io::Result<()> {
        let (table, most) = match self {
            Self::Whole(_, matrix) => {
                visit(matrix, true);
                return Ok(());
            }
            Self::Segments(table, most) => (table, *most),
        };
        let (mut matrix, mut seen, mut goes_on) = (empty(table), 0, true);
        let columns: Vec<usize> = (0..table.width()).collect();
        table.each_block(&columns, false, |block| {
            matrix.append(&block.codes, &block.people);
            seen += block.rows();
            if matrix.rows >= most || seen == table.rows() {
                goes_on = visit(&matrix, seen == table.rows());
                matrix.clear();
            }
            goes_on
        })
    }
}

/// What is known of a set while its rows come.
#[derive(Default)]
struct Judging<C> {
    cells: Vec<C>,
    /// Of each value of the first column: have all combinations reached k? Empty where there is one segment only.
    full: Vec<bool>,
    /// Rows of the slice before that were needed.
    took: usize,
    verdict: Option<bool>,
}

/// Judges a batch of sets: is each a QID at k? None for those that `stop` came before.
pub(super) fn judge<C: Cell>(
    rows: &Rows<'_>,
    batch: &[SlicedSet],
    k: u32,
    stop: &(dyn Fn() -> bool + Sync),
) -> io::Result<Vec<Option<bool>>> {
    let mut all: Vec<Judging<C>> = batch.iter().map(|_| Judging::default()).collect();
    let (mut sorted, mut slice) = (Sorted::default(), Slice::default());
    rows.each_segment(|matrix, is_last| {
        let is_only = matches!(rows, Rows::Whole(..));
        let mut from = 0;
        for family in batch.chunk_by(|a, b| a.first == b.first) {
            let judging = &mut all[from..from + family.len()];
            from += family.len();
            let mut open: Vec<usize> = (0..family.len()).filter(|set| judging[*set].verdict.is_none()).collect();
            sorted.sort(matrix, &family[0].first, family[0].slices);
            for (value, range) in &sorted.slices {
                if open.is_empty() {
                    break;
                }
                slice.begin(matrix, range.len());
                let bytes = if family[0].first.is_empty() { &matrix.bytes } else { &sorted.bytes };
                let rows = SliceRows { matrix, bytes: &bytes[range.start * matrix.stride..range.end * matrix.stride] };
                let mut stopped = false;
                open.retain(|set| {
                    stopped = stopped || stop();
                    if stopped {
                        return true;
                    }
                    let (set, judging) = (&family[*set], &mut judging[*set]);
                    let at = if is_only { 0 } else { *value as usize };
                    if !is_only && judging.full.is_empty() {
                        judging.full.resize(set.slices, false);
                    }
                    if judging.full.get(at).is_some_and(|full| *full) {
                        return true;
                    }
                    judging.cells.resize(if is_only { set.domain } else { set.domain * set.slices }, C::default());
                    let cells = &mut judging.cells[at * set.domain..(at + 1) * set.domain];
                    if is_only {
                        cells.fill(C::default());
                    }
                    let full = slice.fills(rows, &set.rest, cells, k, &mut judging.took);
                    if let Some(known) = judging.full.get_mut(at) {
                        *known = full;
                    }
                    let below = |cell: &C| (1..k).contains(&cell.size().support);
                    if is_last && !full && cells.iter().any(below) {
                        judging.verdict = Some(true);
                    }
                    judging.verdict.is_none()
                });
                if stopped {
                    return false;
                }
            }
            if is_last {
                // Values that are not in the last segment.
                open.iter().for_each(|set| judging[*set].end(k));
            }
        }
        true
    })?;
    Ok(all.into_iter().map(|judging| judging.verdict).collect())
}

impl<C: Cell> Judging<C> {
    /// After the last row.
    fn end(&mut self, k: u32) {
        let several = !self.full.is_empty();
        self.verdict = Some(several && self.cells.iter().any(|cell| (1..k).contains(&cell.size().support)));
    }
}

/// Rows in the order of their values of one column.
#[derive(Default)]
struct Sorted {
    bytes: Vec<u8>,
    keys: Vec<u32>,
    /// Each value and its rows, rare values first.
    slices: Vec<(u32, Range<usize>)>,
}

impl Sorted {
    /// Sorts the rows of a matrix by some columns of so many combinations; those of a combination keep their order.
    fn sort(&mut self, matrix: &Matrix, columns: &[usize], combinations: usize) {
        let stride = matrix.stride;
        if columns.is_empty() {
            self.slices = vec![(0, 0..matrix.rows)];
            return;
        }
        self.keys.clear();
        self.keys.resize(matrix.rows, 0);
        for column in columns {
            let field = matrix.fields[*column];
            let mut keys = self.keys.iter_mut();
            field.each(&matrix.bytes, stride, 0..matrix.rows, |code| {
                keys.next().into_iter().for_each(|key| *key = *key * field.cardinality as u32 + code);
            });
        }
        let mut places = vec![0_usize; combinations];
        self.keys.iter().for_each(|key| places[*key as usize] += 1);
        let mut values: Vec<(usize, u32)> = places.iter().copied().zip(0..).filter(|(rows, _)| *rows > 0).collect();
        values.sort_unstable();
        self.slices.clear();
        let mut end = 0;
        for (rows, value) in values {
            self.slices.push((value, end..end + rows));
            places[value as usize] = end;
            end += rows;
        }
        self.bytes.resize(matrix.bytes.len(), 0);
        for (key, row) in self.keys.iter().zip(matrix.bytes.chunks_exact(stride)) {
            let place = &mut places[*key as usize];
            self.bytes[*place * stride..][..stride].copy_from_slice(row);
            *place += 1;
        }
    }
}

/// The rows of one slice.
#[derive(Clone, Copy)]
struct SliceRows<'a> {
    matrix: &'a Matrix,
    bytes: &'a [u8],
}

/// What was read of a slice: its rows are decoded as far as they are looked at.
#[derive(Default)]
struct Slice {
    rows: usize,
    people: Vec<u32>,
    /// By column: its codes.
    codes: Vec<Vec<u16>>,
    /// Columns of the last set but its last one.
    prefix: Vec<usize>,
    /// Numbers of the combinations of the first of these, the first two, …
    made: Vec<Vec<u16>>,
    keys: Vec<u16>,
}

impl Slice {
    /// Begins with a slice of so many rows.
    fn begin(&mut self, matrix: &Matrix, rows: usize) {
        self.codes.resize_with(matrix.fields.len(), Vec::new);
        self.codes.iter_mut().for_each(Vec::clear);
        self.people.clear();
        self.prefix.clear();
        self.rows = rows;
    }

    /// Counts the combinations of some columns until each has reached k, or to the last row; returns whether each has.
    fn fills<C: Cell>(
        &mut self,
        of: SliceRows<'_>,
        columns: &[usize],
        cells: &mut [C],
        k: u32,
        took: &mut usize,
    ) -> bool {
        let before = &columns[..columns.len().saturating_sub(1)];
        let shared = self.prefix.iter().zip(before).take_while(|(a, b)| a == b).count();
        self.prefix.truncate(shared);
        for column in &before[shared..] {
            self.made.resize_with(self.made.len().max(self.prefix.len() + 1), Vec::new);
            self.made[self.prefix.len()].clear();
            self.prefix.push(*column);
        }
        let needed = cells.len().saturating_mul(k as usize);
        let mut done = 0;
        let mut step = if needed > self.rows { self.rows } else { (2 * needed).max(*took - *took / 16) };
        while done < self.rows {
            let end = self.rows.min(done + step.max(FIRST_ROWS));
            self.count(of, columns, cells, done..end);
            done = end;
            // Rare values have high codes: the last cells fill last.
            if needed <= self.rows && cells.iter().rev().all(|cell| cell.size().support >= k) {
                *took = done;
                return true;
            }
            step = (done / 4).clamp(FIRST_ROWS, MOST_ROWS);
        }
        false
    }

    fn count<C: Cell>(&mut self, of: SliceRows<'_>, columns: &[usize], cells: &mut [C], rows: Range<usize>) {
        columns.iter().for_each(|column| self.fetch(of, *column, rows.end));
        for (depth, column) in self.prefix.iter().enumerate() {
            let (above, own) = self.made.split_at_mut(depth);
            let own = &mut own[0];
            let codes = &self.codes[*column][own.len().min(rows.end)..rows.end];
            match above.last() {
                None => own.extend_from_slice(codes),
                Some(above) => extend(own, &above[own.len().min(rows.end)..rows.end], codes, of.radix(*column)),
            }
        }
        self.keys.clear();
        match (columns.last(), self.prefix.len().checked_sub(1)) {
            (None, _) => self.keys.resize(rows.len(), 0),
            (Some(last), None) => self.keys.extend_from_slice(&self.codes[*last][rows.clone()]),
            (Some(last), Some(depth)) => {
                let (above, codes) = (&self.made[depth][rows.clone()], &self.codes[*last][rows.clone()]);
                extend(&mut self.keys, above, codes, of.radix(*last));
            }
        }
        if let Some(subject) = of.matrix.subject {
            let people = &mut self.people;
            let missing = people.len().min(rows.end)..rows.end;
            subject.each(of.bytes, of.matrix.stride, missing, |person| people.push(person));
            self.keys.iter().zip(&people[rows]).for_each(|(key, person)| cells[usize::from(*key)].add(person + 1));
        } else {
            // No cell of records asks whose they are.
            self.keys.iter().for_each(|key| cells[usize::from(*key)].add(0));
        }
    }

    /// Fetches the codes of a column up to some row.
    fn fetch(&mut self, of: SliceRows<'_>, column: usize, end: usize) {
        let codes = &mut self.codes[column];
        let (field, stride) = (of.matrix.fields[column], of.matrix.stride);
        let (at, missing) = (field.offset, codes.len().min(end) * stride..end * stride);
        let rows = of.bytes[missing].chunks_exact(stride);
        match field.width {
            1 => codes.extend(rows.map(|row| u16::from(row[at]))),
            _ => codes.extend(rows.map(|row| u16::from_le_bytes([row[at], row[at + 1]]))),
        }
    }
}

impl SliceRows<'_> {
    fn radix(&self, column: usize) -> u16 {
        self.matrix.fields[column].cardinality as u16
    }
}

/// Appends the numbers of combinations that have one more column.
fn extend(keys: &mut Vec<u16>, above: &[u16], codes: &[u16], radix: u16) {
    keys.extend(above.iter().zip(codes).map(|(key, code)| key.wrapping_mul(radix).wrapping_add(*code)));
}
