//! Pairs of columns of very few values: which bitmaps there are, and which block counts which of their meetings.

use super::route::{Ask, Planned, SLICED_CELLS};
use super::tables::{Entry, entries};

/// Slices of a block at most: a bank of shared memory each.
const MOST_SLICES: u32 = 32;

/// Columns that neighbouring pairs share: blocks of pairs read fewer slices than rows of them.
const BLOCK: u32 = 8;

/// `Sliced` of `kernels/slices.cu`: a column, and its first slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sliced {
    column: u32,
    slice: u32,
    values: u32,
}

/// `Cell`: two slots of a tile, and where the count goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cell {
    first: u32,
    second: u32,
    count: u64,
}

/// `Meeting`: the cells of a block, and the slices of its tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Meeting {
    cell: u32,
    cells: u32,
    slice: u32,
    slices: u32,
}

entries! {
    Sliced: column slice values, 0;
    Cell: first second count;
    Meeting: cell cells slice slices;
}

/// The work of a batch of sliced pairs.
#[derive(Debug, Default)]
pub(super) struct Slicing {
    pub(super) columns: Vec<Sliced>,
    /// Slices of all columns.
    pub(super) slices: u64,
    pub(super) meetings: Vec<Meeting>,
    pub(super) cells: Vec<Cell>,
    /// The slices of each meeting's tile, by their numbers.
    pub(super) numbers: Vec<u32>,
    pub(super) shared_bytes: u32,
}

/// Words of shared memory for a word of so many slices: an odd number, as the kernel has it.
fn row(slices: u32) -> u32 {
    slices | 1
}

impl Slicing {
    /// Slices that a block has room for. A pair of `SLICED_CELLS` needs ten at most.
    fn most(ask: &Ask) -> u32 {
        (ask.shared_bytes / 4 / ask.threads).saturating_sub(1).min(MOST_SLICES)
    }

    /// Do the threads and the shared memory of a block hold any pair?
    pub(super) fn fits(ask: &Ask) -> bool {
        u64::from(ask.threads) >= SLICED_CELLS && Self::most(ask) >= 10
    }

    /// Groups pairs whose counts begin at `counts`, each as many as a block has threads and slices for.
    pub(super) fn new(planned: &[Planned], counts: impl Iterator<Item = u64>, radices: &[u64], ask: &Ask) -> Self {
        let mut slicing = Self::default();
        let mut pairs: Vec<([u32; 2], u64)> =
            planned.iter().zip(counts).map(|(p, counts)| ([p.columns()[0], p.columns()[1]], counts)).collect();
        pairs.sort_unstable_by_key(|([a, b], _)| (a / BLOCK, b / BLOCK, *a, *b));
        let mut columns: Vec<u32> = pairs.iter().flat_map(|(pair, _)| *pair).collect();
        columns.sort_unstable();
        columns.dedup();
        for column in columns {
            let values = radices[column as usize] as u32;
            slicing.columns.push(Sliced { column, slice: slicing.slices as u32, values });
            slicing.slices += u64::from(values);
        }
        let mut group = Meeting { cell: 0, cells: 0, slice: 0, slices: 0 };
        let mut held: Vec<(u32, u32)> = Vec::new(); // columns, and their first slots
        for (pair, counts) in pairs {
            let [first, second] = pair.map(|column| radices[column as usize] as u32);
            let is_new = |column: &u32| !held.iter().any(|(own, _)| own == column);
            let more: u32 = pair.iter().filter(|c| is_new(c)).map(|c| radices[*c as usize] as u32).sum();
            if group.cells > 0 && (group.cells + first * second > ask.threads || group.slices + more > Self::most(ask))
            {
                slicing.meetings.push(group);
                let (cell, slice) = (group.cell + group.cells, group.slice + group.slices);
                group = Meeting { cell, cells: 0, slice, slices: 0 };
                held.clear();
            }
            let slots = pair.map(|column| slicing.hold(column, &mut group, &mut held));
            for a in 0..first {
                for b in 0..second {
                    let count = counts + u64::from(a * second + b);
                    slicing.cells.push(Cell { first: slots[0] + a, second: slots[1] + b, count });
                }
            }
            group.cells += first * second;
        }
        if group.cells > 0 {
            slicing.meetings.push(group);
        }
        let most = slicing.meetings.iter().map(|meeting| meeting.slices).max().unwrap_or(0);
        slicing.shared_bytes = 4 * row(most) * ask.threads;
        slicing
    }

    /// The first slot of a column in the tile of a group; new slots where it has none.
    fn hold(&mut self, column: u32, group: &mut Meeting, held: &mut Vec<(u32, u32)>) -> u32 {
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
    use crate::counting::cuda::route::Route;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        /// Every cell of every pair is counted once, in its place, from the slices of its two values, within the limits.
        #[test]
        fn every_cell_is_counted_once(
            radices in proptest::collection::vec(2_u64..9, 2..40),
            (threads, shared_bytes) in prop_oneof![Just((32, 4800)), Just((32, 48 << 10)), Just((256, 48 << 10))],
        ) {
            let ask = Ask { k: 0, judging: false, rows: 1000, people: None, shared_bytes, tile: 128, threads };
            prop_assert!(Slicing::fits(&ask));
            let pairs: Vec<(usize, usize)> =
                (0..radices.len()).flat_map(|a| (a + 1..radices.len()).map(move |b| (a, b))).collect();
            let plan = |(at, (a, b)): (usize, &(usize, usize))| {
                let set = AttributeSet::from_iter([*a, *b]);
                let planned = Planned::dense(at, &set, &radices, &ask).expect("a small domain").sliced();
                let tiny = radices[*a] * radices[*b] <= SLICED_CELLS;
                assert_eq!(planned.order().0 == Route::Sliced, tiny, "{a} {b}");
                tiny.then_some(planned)
            };
            let planned: Vec<Planned> = pairs.iter().enumerate().filter_map(plan).collect();
            // Counts of a pair begin at a place that only it has.
            let begin = |p: &Planned| u64::from(p.columns()[0]) * 100_000 + u64::from(p.columns()[1]) * 1000;
            let slicing = Slicing::new(&planned, planned.iter().map(begin), &radices, &ask);
            let mut values: BTreeMap<u32, (u32, u32)> = BTreeMap::new();
            for sliced in &slicing.columns {
                prop_assert_eq!(u64::from(sliced.values), radices[sliced.column as usize]);
                for value in 0..sliced.values {
                    prop_assert!(values.insert(sliced.slice + value, (sliced.column, value)).is_none(), "two values a slice");
                }
            }
            prop_assert_eq!(values.len() as u64, slicing.slices);
            let mut found: Vec<u64> = Vec::new();
            for meeting in &slicing.meetings {
                prop_assert!(meeting.cells <= threads && meeting.slices <= MOST_SLICES);
                prop_assert!(4 * row(meeting.slices) * threads <= slicing.shared_bytes.min(shared_bytes));
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
