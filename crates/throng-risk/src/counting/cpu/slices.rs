//! Verdicts on sets of few combinations, slice by slice.
//!
//! A *slice* has the rows of one value of the column with the most values. A set is a QID if its other columns are one
//! in some slice.

use super::class_cells::{ClassCell, fits_dense_array};
use super::row_matrix::RowMatrix;
use crate::counting::AttributeSet;
use crate::counting::codes::CodeTable;
use hashbrown::HashMap;
use std::io;
use std::ops::Range;

const MIN_FIRST_CHECK_ROWS: usize = 512;

const MAX_ROWS_BETWEEN_CHECKS: usize = 1 << 15;

const MIN_ROWS_PER_SLICE: usize = 64;

/// Sorting takes as long as counting about this many sets.
const MIN_SETS_PER_SORT: usize = 8;

/// Combination numbers take two bytes.
const MAX_SLICE_CELLS: usize = 1 << 16;

pub(super) struct SlicedSet {
    pub at: usize,
    /// Sort columns; empty for one slice.
    first: Vec<usize>,
    slices: usize,
    rest: Vec<usize>,
    domain: usize,
}

impl SlicedSet {
    /// `None` if unsuitable for arrays.
    fn new<C>(table: &CodeTable, at: usize, set: &AttributeSet, memory: u64) -> Option<Self> {
        let values = |column: &usize| table.cardinality(*column).max(1);
        let product =
            |columns: &[usize]| columns.iter().try_fold(1_usize, |all, column| all.checked_mul(values(column)));
        let (mut first, mut rest) = (Vec::new(), set.iter().collect::<Vec<usize>>());
        let cells = product(&rest).filter(|cells| fits_dense_array::<C>(*cells as u64, table.rows() as u64, memory))?;
        while first.is_empty() || product(&rest)? > MAX_SLICE_CELLS {
            let suits = |place: &usize| {
                let values = values(&rest[*place]);
                if values <= table.rows() / MIN_ROWS_PER_SLICE { (1, values) } else { (0, usize::MAX - values) }
            };
            let next = (0..rest.len()).max_by_key(suits)?;
            first.push(rest.remove(next));
        }
        let slices = product(&first)?;
        Some(Self { at, first, slices, rest, domain: cells / slices })
    }

    /// Applies if combinations are few.
    fn join_slices(&mut self) {
        if self.slices * self.domain <= MAX_SLICE_CELLS {
            self.rest.append(&mut self.first);
            self.rest.sort_unstable();
            self.domain *= std::mem::replace(&mut self.slices, 1);
        }
    }
}

/// Returns batches within `memory`, and the indexes of other sets.
pub(super) fn slice_batches<C>(
    rows: &SliceSource<'_>,
    sets: &[AttributeSet],
    most: usize,
    memory: u64,
) -> (Vec<Vec<SlicedSet>>, Vec<usize>) {
    let (SliceSource::Whole(table, _) | SliceSource::Segments(table, _)) = rows;
    let (mut sliced, mut others) = (Vec::new(), Vec::new());
    for (at, set) in sets.iter().enumerate() {
        match SlicedSet::new::<C>(table, at, set, memory) {
            Some(set) => sliced.push(set),
            None => others.push(at),
        }
    }
    let mut alike: HashMap<Vec<usize>, usize> = HashMap::new();
    sliced.iter().for_each(|set: &SlicedSet| *alike.entry(set.first.clone()).or_default() += 1);
    for set in sliced.iter_mut().filter(|set| alike[&set.first] < MIN_SETS_PER_SORT) {
        set.join_slices();
    }
    sliced.sort_by(|a, b| (&a.first, &a.rest).cmp(&(&b.first, &b.rest)));
    let mut batches: Vec<Vec<SlicedSet>> = Vec::new();
    let mut held = 0;
    for set in sliced {
        // In memory, the next slice reuses the cells.
        let slices = if matches!(rows, SliceSource::Whole(..)) { 1 } else { set.slices };
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

pub(super) enum SliceSource<'a> {
    Whole(&'a CodeTable, &'a RowMatrix),
    Segments(&'a CodeTable, usize),
}

pub(super) fn read_all_rows(table: &CodeTable) -> io::Result<RowMatrix> {
    let mut matrix = matrix_without_rows(table);
    let columns: Vec<usize> = (0..table.width()).collect();
    table.for_each_block(&columns, false, |block| {
        matrix.append(&block.codes, &block.subjects);
        true
    })?;
    Ok(matrix)
}

pub(super) fn matrix_without_rows(table: &CodeTable) -> RowMatrix {
    let cardinalities: Vec<usize> = (0..table.width()).map(|column| table.cardinality(column)).collect();
    RowMatrix::with_row_layout(&cardinalities, table.subjects())
}

impl SliceSource<'_> {
    /// The second argument of `visit` marks the last segment.
    fn each_segment(&self, mut visit: impl FnMut(&RowMatrix, bool) -> bool) -> io::Result<()> {
        let (table, most) = match self {
            Self::Whole(_, matrix) => {
                visit(matrix, true);
                return Ok(());
            }
            Self::Segments(table, most) => (table, *most),
        };
        let (mut matrix, mut seen, mut goes_on) = (matrix_without_rows(table), 0, true);
        let columns: Vec<usize> = (0..table.width()).collect();
        table.for_each_block(&columns, false, |block| {
            matrix.append(&block.codes, &block.subjects);
            seen += block.rows();
            if matrix.rows >= most || seen == table.rows() {
                goes_on = visit(&matrix, seen == table.rows());
                matrix.clear();
            }
            goes_on
        })
    }
}

#[derive(Default)]
struct SliceJudgement<C> {
    cells: Vec<C>,
    /// Values of the first columns whose combinations have all reached k; empty for one segment.
    full: Vec<bool>,
    rows_needed: usize,
    verdict: Option<bool>,
}

/// `None` for sets not decided before `stop`.
pub(super) fn judge_batch<C: ClassCell>(
    rows: &SliceSource<'_>,
    batch: &[SlicedSet],
    k: u32,
    stop: &(dyn Fn() -> bool + Sync),
) -> io::Result<Vec<Option<bool>>> {
    let mut all: Vec<SliceJudgement<C>> = batch.iter().map(|_| SliceJudgement::default()).collect();
    let (mut sorted, mut slice) = (SortedMatrix::default(), DecodedSlice::default());
    rows.each_segment(|matrix, is_last| {
        let is_only = matches!(rows, SliceSource::Whole(..));
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
                    let full = slice.fill_until_k(rows, &set.rest, cells, k, &mut judging.rows_needed);
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
                // Checks values absent from the last segment.
                open.iter().for_each(|set| judging[*set].finish(k));
            }
        }
        true
    })?;
    Ok(all.into_iter().map(|judging| judging.verdict).collect())
}

impl<C: ClassCell> SliceJudgement<C> {
    fn finish(&mut self, k: u32) {
        let several = !self.full.is_empty();
        self.verdict = Some(several && self.cells.iter().any(|cell| (1..k).contains(&cell.size().support)));
    }
}

#[derive(Default)]
struct SortedMatrix {
    bytes: Vec<u8>,
    keys: Vec<u32>,
    /// Values with their rows, rare values first.
    slices: Vec<(u32, Range<usize>)>,
}

impl SortedMatrix {
    fn sort(&mut self, matrix: &RowMatrix, columns: &[usize], combinations: usize) {
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
            field.visit_codes(&matrix.bytes, stride, 0..matrix.rows, |code| {
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

#[derive(Clone, Copy)]
struct SliceRows<'a> {
    matrix: &'a RowMatrix,
    bytes: &'a [u8],
}

/// Decoded only as far as needed.
#[derive(Default)]
struct DecodedSlice {
    rows: usize,
    subjects: Vec<u32>,
    codes: Vec<Vec<u16>>,
    prefix: Vec<usize>,
    prefix_keys: Vec<Vec<u16>>,
    keys: Vec<u16>,
}

impl DecodedSlice {
    fn begin(&mut self, matrix: &RowMatrix, rows: usize) {
        self.codes.resize_with(matrix.fields.len(), Vec::new);
        self.codes.iter_mut().for_each(Vec::clear);
        self.subjects.clear();
        self.prefix.clear();
        self.rows = rows;
    }

    /// Returns true if all have reached k.
    fn fill_until_k<C: ClassCell>(
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
            self.prefix_keys.resize_with(self.prefix_keys.len().max(self.prefix.len() + 1), Vec::new);
            self.prefix_keys[self.prefix.len()].clear();
            self.prefix.push(*column);
        }
        let needed = cells.len().saturating_mul(k as usize);
        let mut done = 0;
        let mut step = if needed > self.rows { self.rows } else { (2 * needed).max(*took - *took / 16) };
        while done < self.rows {
            let end = self.rows.min(done + step.max(MIN_FIRST_CHECK_ROWS));
            self.count(of, columns, cells, done..end);
            done = end;
            // Rare values have high codes.
            if needed <= self.rows && cells.iter().rev().all(|cell| cell.size().support >= k) {
                *took = done;
                return true;
            }
            step = (done / 4).clamp(MIN_FIRST_CHECK_ROWS, MAX_ROWS_BETWEEN_CHECKS);
        }
        false
    }

    fn count<C: ClassCell>(&mut self, of: SliceRows<'_>, columns: &[usize], cells: &mut [C], rows: Range<usize>) {
        columns.iter().for_each(|column| self.fetch(of, *column, rows.end));
        for (depth, column) in self.prefix.iter().enumerate() {
            let (above, own) = self.prefix_keys.split_at_mut(depth);
            let own = &mut own[0];
            let codes = &self.codes[*column][own.len().min(rows.end)..rows.end];
            match above.last() {
                None => own.extend_from_slice(codes),
                Some(above) => {
                    append_combinations(own, &above[own.len().min(rows.end)..rows.end], codes, of.radix(*column));
                }
            }
        }
        self.keys.clear();
        match (columns.last(), self.prefix.len().checked_sub(1)) {
            (None, _) => self.keys.resize(rows.len(), 0),
            (Some(last), None) => self.keys.extend_from_slice(&self.codes[*last][rows.clone()]),
            (Some(last), Some(depth)) => {
                let (above, codes) = (&self.prefix_keys[depth][rows.clone()], &self.codes[*last][rows.clone()]);
                append_combinations(&mut self.keys, above, codes, of.radix(*last));
            }
        }
        if let Some(subject) = of.matrix.subject {
            let people = &mut self.subjects;
            let missing = people.len().min(rows.end)..rows.end;
            subject.visit_codes(of.bytes, of.matrix.stride, missing, |person| people.push(person));
            self.keys.iter().zip(&people[rows]).for_each(|(key, person)| cells[usize::from(*key)].add(person + 1));
        } else {
            // Record counters ignore the subject.
            self.keys.iter().for_each(|key| cells[usize::from(*key)].add(0));
        }
    }

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

fn append_combinations(keys: &mut Vec<u16>, above: &[u16], codes: &[u16], radix: u16) {
    keys.extend(above.iter().zip(codes).map(|(key, code)| key.wrapping_mul(radix).wrapping_add(*code)));
}
