//! Counts many sets in one pass; sets with common first columns share prefixes.

use super::class_cells::{ClassCell, RecordCell, SaturatingRecordCell, SubjectCell, fits_dense_array};
use crate::counting::AttributeSet;
use crate::counting::codes::{CodeBlock, CodeTable};
use std::io;

const MAX_SETS_PER_PASS: usize = 128;

pub(super) struct DenseSet {
    pub index: usize,
    pub columns: Vec<usize>,
    pub domain: u64,
}

/// Returns batches of sets that fit into arrays, and the indexes of the others.
pub(super) fn dense_batches<C>(
    table: &CodeTable,
    sets: &[AttributeSet],
    memory: u64,
) -> (Vec<Vec<DenseSet>>, Vec<usize>) {
    let rows = table.rows() as u64;
    let (mut dense, mut others) = (Vec::new(), Vec::new());
    for (at, set) in sets.iter().enumerate() {
        let columns: Vec<usize> = set.iter().collect();
        let cells = |domain: u64, c: &usize| domain.checked_mul(table.cardinality(*c).max(1) as u64);
        match columns
            .iter()
            .try_fold(1, cells)
            .filter(|domain| fits_dense_array::<C>(*domain, rows, memory.min(1 << 32)))
        {
            Some(domain) if !columns.is_empty() => dense.push(DenseSet { index: at, columns, domain }),
            _ => others.push(at),
        }
    }
    dense.sort_by(|a, b| a.columns.cmp(&b.columns));
    let mut batches: Vec<Vec<DenseSet>> = Vec::new();
    let mut held = 0;
    for set in dense {
        let bytes = set.domain * size_of::<C>() as u64;
        match batches.last_mut() {
            Some(batch) if held + bytes <= memory && batch.len() < MAX_SETS_PER_PASS => {
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

/// Prefixes are shared between sets.
struct BatchTupleKeys {
    /// Columns of all sets, ascending.
    columns: Vec<usize>,
    radixes: Vec<u32>,
    places: Vec<Vec<usize>>,
    previous_set: usize,
    /// Valid up to `depth`.
    prefix_keys: Vec<Vec<u32>>,
    depth: usize,
}

impl BatchTupleKeys {
    fn new(table: &CodeTable, batch: &[DenseSet]) -> Self {
        let mut columns: Vec<usize> = batch.iter().flat_map(|set| set.columns.iter().copied()).collect();
        columns.sort_unstable();
        columns.dedup();
        let place = |column: &usize| columns.partition_point(|c| c < column);
        let places = batch.iter().map(|set| set.columns.iter().map(place).collect()).collect();
        let radixes = columns.iter().map(|column| table.cardinality(*column).max(1) as u32).collect();
        Self { columns, radixes, places, previous_set: 0, prefix_keys: Vec::new(), depth: 0 }
    }

    fn start_block(&mut self) {
        self.depth = 0;
    }

    fn row_keys(&mut self, number: usize, block: &CodeBlock) -> &[u32] {
        let set = &self.places[number];
        let before = self.places[self.previous_set].iter().take(self.depth);
        let shared = set.iter().zip(before).take_while(|(own, theirs)| own == theirs).count();
        for depth in shared..set.len() {
            let codes = &block.codes[set[depth]];
            if self.prefix_keys.len() == depth {
                self.prefix_keys.push(Vec::new());
            }
            let (above, own) = self.prefix_keys.split_at_mut(depth);
            let own = &mut own[0];
            own.clear();
            match above.last() {
                None => own.extend_from_slice(codes),
                Some(above) => {
                    let radix = self.radixes[set[depth]];
                    own.extend(above.iter().zip(codes).map(|(key, code)| key * radix + code));
                }
            }
        }
        (self.previous_set, self.depth) = (number, set.len());
        &self.prefix_keys[set.len() - 1]
    }
}

/// `None` if stopped.
pub(super) fn count_batch<C: ClassCell>(
    table: &CodeTable,
    batch: &[DenseSet],
    stop: &(dyn Fn() -> bool + Sync),
) -> io::Result<Option<Vec<Vec<C>>>> {
    let mut keys = BatchTupleKeys::new(table, batch);
    let columns = keys.columns.clone();
    let mut cells: Vec<Vec<C>> = batch.iter().map(|set| vec![C::default(); set.domain as usize]).collect();
    let mut stopped = false;
    table.for_each_block(&columns, false, |block| {
        stopped = stop();
        keys.start_block();
        for (number, cells) in cells.iter_mut().enumerate() {
            let keys = keys.row_keys(number, block);
            if block.subjects.is_empty() {
                // Record counters ignore the subject.
                keys.iter().for_each(|key| cells[*key as usize].add(0));
            } else {
                keys.iter().zip(&block.subjects).for_each(|(key, person)| cells[*key as usize].add(person + 1));
            }
        }
        !stopped
    })?;
    Ok((!stopped).then_some(cells))
}

pub(super) struct SmallClassQuery<'a> {
    pub table: &'a CodeTable,
    pub sets: &'a [AttributeSet],
    pub k: u32,
    pub memory: u64,
}

impl SmallClassQuery<'_> {
    /// Reports set index, row number and subject (or row number) of records of sets that fit into arrays. Returns the
    /// indexes of the other sets.
    pub fn report_records(&self, told: &mut dyn FnMut(usize, u32, u32)) -> io::Result<Vec<usize>> {
        if self.table.subjects().is_some() {
            self.report_with_cells::<SubjectCell>(told)
        } else if self.k <= SaturatingRecordCell::LARGEST_K {
            self.report_with_cells::<SaturatingRecordCell>(told)
        } else {
            self.report_with_cells::<RecordCell>(told)
        }
    }

    fn report_with_cells<C: ClassCell>(&self, told: &mut dyn FnMut(usize, u32, u32)) -> io::Result<Vec<usize>> {
        let &Self { table, sets, k, memory } = self;
        let (batches, others) = dense_batches::<C>(table, sets, memory);
        let is_below = |cell: &C| (1..k).contains(&cell.size().support);
        for batch in batches {
            let cells = count_batch::<C>(table, &batch, &|| false)?.unwrap_or_default();
            let some: Vec<usize> = (0..cells.len()).filter(|number| cells[*number].iter().any(is_below)).collect();
            if some.is_empty() {
                continue;
            }
            let mut keys = BatchTupleKeys::new(table, &batch);
            let columns = keys.columns.clone();
            table.for_each_block(&columns, true, |block| {
                keys.start_block();
                for number in &some {
                    let (cells, at) = (&cells[*number], batch[*number].index);
                    for (place, key) in keys.row_keys(*number, block).iter().enumerate() {
                        if is_below(&cells[*key as usize]) {
                            let row = block.order[place];
                            told(at, row, block.subjects.get(place).copied().unwrap_or(row));
                        }
                    }
                }
                true
            })?;
        }
        Ok(others)
    }
}
