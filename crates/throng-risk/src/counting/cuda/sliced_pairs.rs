//! Assignment of the value pairs of small columns to blocks.

use super::counting_route::{CandidateQuery, MAX_SLICED_CELLS, PlannedCandidate};
use super::kernel_tables::{KernelTableEntry, impl_table_entries};

const MAX_SLICES_PER_BLOCK: u32 = 32;

/// Nearby pairs share columns.
const COLUMNS_PER_BLOCK: u32 = 8;

/// Kernel structure Sliced of `kernels/slices.cu`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SlicedColumn {
    column: u32,
    slice: u32,
    values: u32,
}

/// Kernel structure Cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SlicePairCell {
    first: u32,
    second: u32,
    count: u64,
}

/// Kernel structure Meeting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SliceTile {
    cell: u32,
    cells: u32,
    slice: u32,
    slices: u32,
}

impl_table_entries! {
    SlicedColumn: column slice values, 0;
    SlicePairCell: first second count;
    SliceTile: cell cells slice slices;
}

#[derive(Debug, Default)]
pub(super) struct SlicedPairPlan {
    pub(super) columns: Vec<SlicedColumn>,
    pub(super) slices: u64,
    pub(super) tiles: Vec<SliceTile>,
    pub(super) cells: Vec<SlicePairCell>,
    /// Slice numbers of each tile.
    pub(super) numbers: Vec<u32>,
    pub(super) shared_bytes: u32,
}

/// Odd, as in the kernel.
fn padded_row_words(slices: u32) -> u32 {
    slices | 1
}

impl SlicedPairPlan {
    /// A pair of `MAX_SLICED_CELLS` cells needs at most ten.
    fn max_block_slices(ask: &CandidateQuery) -> u32 {
        (ask.shared_bytes / 4 / ask.threads).saturating_sub(1).min(MAX_SLICES_PER_BLOCK)
    }

    pub(super) fn fits(ask: &CandidateQuery) -> bool {
        u64::from(ask.threads) >= MAX_SLICED_CELLS && Self::max_block_slices(ask) >= 10
    }

    pub(super) fn new(
        planned: &[PlannedCandidate],
        counts: impl Iterator<Item = u64>,
        radices: &[u64],
        ask: &CandidateQuery,
    ) -> Self {
        let mut slicing = Self::default();
        let mut pairs: Vec<([u32; 2], u64)> =
            planned.iter().zip(counts).map(|(p, counts)| ([p.columns()[0], p.columns()[1]], counts)).collect();
        pairs.sort_unstable_by_key(|([a, b], _)| (a / COLUMNS_PER_BLOCK, b / COLUMNS_PER_BLOCK, *a, *b));
        let mut columns: Vec<u32> = pairs.iter().flat_map(|(pair, _)| *pair).collect();
        columns.sort_unstable();
        columns.dedup();
        for column in columns {
            let values = radices[column as usize] as u32;
            slicing.columns.push(SlicedColumn { column, slice: slicing.slices as u32, values });
            slicing.slices += u64::from(values);
        }
        let mut group = SliceTile { cell: 0, cells: 0, slice: 0, slices: 0 };
        let mut held: Vec<(u32, u32)> = Vec::new(); // columns and first slots
        for (pair, counts) in pairs {
            let [first, second] = pair.map(|column| radices[column as usize] as u32);
            let is_new = |column: &u32| !held.iter().any(|(own, _)| own == column);
            let more: u32 = pair.iter().filter(|c| is_new(c)).map(|c| radices[*c as usize] as u32).sum();
            if group.cells > 0
                && (group.cells + first * second > ask.threads || group.slices + more > Self::max_block_slices(ask))
            {
                slicing.tiles.push(group);
                let (cell, slice) = (group.cell + group.cells, group.slice + group.slices);
                group = SliceTile { cell, cells: 0, slice, slices: 0 };
                held.clear();
            }
            let slots = pair.map(|column| slicing.slot_of_column(column, &mut group, &mut held));
            for a in 0..first {
                for b in 0..second {
                    let count = counts + u64::from(a * second + b);
                    slicing.cells.push(SlicePairCell { first: slots[0] + a, second: slots[1] + b, count });
                }
            }
            group.cells += first * second;
        }
        if group.cells > 0 {
            slicing.tiles.push(group);
        }
        let most = slicing.tiles.iter().map(|meeting| meeting.slices).max().unwrap_or(0);
        slicing.shared_bytes = 4 * padded_row_words(most) * ask.threads;
        slicing
    }

    fn slot_of_column(&mut self, column: u32, group: &mut SliceTile, held: &mut Vec<(u32, u32)>) -> u32 {
        if let Some((_, slot)) = held.iter().find(|(own, _)| *own == column) {
            return *slot;
        }
        let place = self.columns.binary_search_by_key(&column, |sliced| sliced.column);
        let sliced = self.columns[place.expect("every column of a pair is sliced")];
        let slot = group.slices;
        self.numbers.extend(sliced.slice..sliced.slice + sliced.values);
        group.slices += sliced.values;
        held.push((column, slot));
        slot
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counting::AttributeSet;
    use crate::counting::cuda::counting_route::CountingRoute;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn sliced_pairs_count_every_cell_once(
            radices in proptest::collection::vec(2_u64..9, 2..40),
            (threads, shared_bytes) in prop_oneof![Just((32, 4800)), Just((32, 48 << 10)), Just((256, 48 << 10))],
        ) {
            let ask = CandidateQuery { k: 0, judge_only: false, rows: 1000, subjects: None, shared_bytes, tile: 128, threads };
            prop_assert!(SlicedPairPlan::fits(&ask));
            let pairs: Vec<(usize, usize)> =
                (0..radices.len()).flat_map(|a| (a + 1..radices.len()).map(move |b| (a, b))).collect();
            let plan = |(at, (a, b)): (usize, &(usize, usize))| {
                let set = AttributeSet::from_iter([*a, *b]);
                let planned = PlannedCandidate::dense(at, &set, &radices, &ask).expect("a small domain").sliced();
                let tiny = radices[*a] * radices[*b] <= MAX_SLICED_CELLS;
                assert_eq!(planned.sort_key().0 == CountingRoute::Sliced, tiny, "{a} {b}");
                tiny.then_some(planned)
            };
            let planned: Vec<PlannedCandidate> = pairs.iter().enumerate().filter_map(plan).collect();
            let begin = |p: &PlannedCandidate| u64::from(p.columns()[0]) * 100_000 + u64::from(p.columns()[1]) * 1000;
            let slicing = SlicedPairPlan::new(&planned, planned.iter().map(begin), &radices, &ask);
            let mut values: BTreeMap<u32, (u32, u32)> = BTreeMap::new();
            for sliced in &slicing.columns {
                prop_assert_eq!(u64::from(sliced.values), radices[sliced.column as usize]);
                for value in 0..sliced.values {
                    prop_assert!(values.insert(sliced.slice + value, (sliced.column, value)).is_none(), "two values a slice");
                }
            }
            prop_assert_eq!(values.len() as u64, slicing.slices);
            let mut found: Vec<u64> = Vec::new();
            for meeting in &slicing.tiles {
                prop_assert!(meeting.cells <= threads && meeting.slices <= MAX_SLICES_PER_BLOCK);
                prop_assert!(4 * padded_row_words(meeting.slices) * threads <= slicing.shared_bytes.min(shared_bytes));
                for cell in &slicing.cells[meeting.cell as usize..(meeting.cell + meeting.cells) as usize] {
                    let of = |slot: u32| values[&slicing.numbers[(meeting.slice + slot) as usize]];
                    prop_assert!(cell.first < meeting.slices && cell.second < meeting.slices);
                    let ((a, x), (b, y)) = (of(cell.first), of(cell.second));
                    let place = u64::from(x) * radices[b as usize] + u64::from(y);
                    prop_assert_eq!(cell.count, u64::from(a) * 100_000 + u64::from(b) * 1000 + place);
                    found.push(cell.count);
                }
            }
            found.sort_unstable();
            found.dedup();
            let cells: u64 = planned.iter().map(|p| radices[p.columns()[0] as usize] * radices[p.columns()[1] as usize]).sum();
            prop_assert_eq!((found.len() as u64, slicing.cells.len() as u64), (cells, cells));
        }
    }
}
