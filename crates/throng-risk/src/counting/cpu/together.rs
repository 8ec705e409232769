//! Many sets in one pass over the rows, each in an array of its own: the rows are read and decoded once, and sets that begin alike share
//! their beginnings.

use super::cells::{Cell, Few, Persons, Records, are_dense};
use crate::counting::AttributeSet;
use crate::counting::codes::{Block, CodeTable};
use std::io;

/// Sets of one pass, at most.
const MOST_SETS: usize = 128;

/// A set that an array can hold.
pub(super) struct Dense {
    /// Its place among those that were asked.
    pub at: usize,
    /// Its columns.
    pub columns: Vec<usize>,
    /// Cells of its array.
    pub domain: u64,
}

/// The sets that arrays hold, in batches of what `memory` allows at once; and the places of the others.
pub(super) fn batches<C>(table: &CodeTable, sets: &[AttributeSet], memory: u64) -> (Vec<Vec<Dense>>, Vec<usize>) {
    let rows = table.rows() as u64;
    let (mut dense, mut others) = (Vec::new(), Vec::new());
    for (at, set) in sets.iter().enumerate() {
        let columns: Vec<usize> = set.iter().collect();
        let cells = |domain: u64, c: &usize| domain.checked_mul(table.cardinality(*c).max(1) as u64);
        match columns.iter().try_fold(1, cells).filter(|domain| are_dense::<C>(*domain, rows, memory.min(1 << 32))) {
            Some(domain) if !columns.is_empty() => dense.push(Dense { at, columns, domain }),
            _ => others.push(at),
        }
    }
    dense.sort_by(|a, b| a.columns.cmp(&b.columns));
    let mut batches: Vec<Vec<Dense>> = Vec::new();
    let mut held = 0;
    for set in dense {
        let bytes = set.domain * size_of::<C>() as u64;
        match batches.last_mut() {
            Some(batch) if held + bytes <= memory && batch.len() < MOST_SETS => {
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

/// The tuples of a block as numbers, set after set; what a set has in common with the one before it is not made again.
struct Keys {
    /// The columns of all sets, ascending, and how many codes each has.
    columns: Vec<usize>,
    radixes: Vec<u32>,
    /// Where each column of a set stands among them.
    places: Vec<Vec<usize>>,
    /// The set before.
    before: usize,
    /// Numbers by its first column, its first two, …; `depth` of them are of this block.
    made: Vec<Vec<u32>>,
    depth: usize,
}

impl Keys {
    fn new(table: &CodeTable, batch: &[Dense]) -> Self {
        let mut columns: Vec<usize> = batch.iter().flat_map(|set| set.columns.iter().copied()).collect();
        columns.sort_unstable();
        columns.dedup();
        let place = |column: &usize| columns.partition_point(|c| c < column);
        let places = batch.iter().map(|set| set.columns.iter().map(place).collect()).collect();
        let radixes = columns.iter().map(|column| table.cardinality(*column).max(1) as u32).collect();
        Self { columns, radixes, places, before: 0, made: Vec::new(), depth: 0 }
    }

    /// Before the first set of a block.
    fn begin(&mut self) {
        self.depth = 0;
    }

    /// The numbers of the rows of a block by set `number`, which has a column.
    fn of(&mut self, number: usize, block: &Block) -> &[u32] {
        let set = &self.places[number];
        let before = self.places[self.before].iter().take(self.depth);
        let shared = set.iter().zip(before).take_while(|(own, theirs)| own == theirs).count();
        for depth in shared..set.len() {
            let codes = &block.codes[set[depth]];
            if self.made.len() == depth {
                self.made.push(Vec::new());
            }
            let (above, own) = self.made.split_at_mut(depth);
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
        (self.before, self.depth) = (number, set.len());
        &self.made[set.len() - 1]
    }
}

/// Counts a batch; none where `stop` was true before the end.
pub(super) fn counted<C: Cell>(
    table: &CodeTable,
    batch: &[Dense],
    stop: &(dyn Fn() -> bool + Sync),
) -> io::Result<Option<Vec<Vec<C>>>> {
    let mut keys = Keys::new(table, batch);
    let columns = keys.columns.clone();
    let mut cells: Vec<Vec<C>> = batch.iter().map(|set| vec![C::default(); set.domain as usize]).collect();
    let mut stopped = false;
    table.each_block(&columns, false, |block| {
        stopped = stop();
        keys.begin();
        for (number, cells) in cells.iter_mut().enumerate() {
            let keys = keys.of(number, block);
            if block.people.is_empty() {
                // No cell of records asks whose they are.
                keys.iter().for_each(|key| cells[*key as usize].add(0));
            } else {
                keys.iter().zip(&block.people).for_each(|(key, person)| cells[*key as usize].add(person + 1));
            }
        }
        !stopped
    })?;
    Ok((!stopped).then_some(cells))
}

/// What is asked for: the records in classes below k of some sets.
pub(super) struct Below<'a> {
    pub table: &'a CodeTable,
    pub sets: &'a [AttributeSet],
    pub k: u32,
    /// Bytes that arrays may take.
    pub memory: u64,
}

impl Below<'_> {
    /// Tells those records of the sets that arrays hold: the place of the set, the number of the record, and its person (its number where
    /// nobody is named). Gives the places of the other sets.
    pub fn each(&self, told: &mut dyn FnMut(usize, u32, u32)) -> io::Result<Vec<usize>> {
        if self.table.subjects().is_some() {
            self.by::<Persons>(told)
        } else if self.k <= Few::LARGEST_K {
            self.by::<Few>(told)
        } else {
            self.by::<Records>(told)
        }
    }

    fn by<C: Cell>(&self, told: &mut dyn FnMut(usize, u32, u32)) -> io::Result<Vec<usize>> {
        let &Self { table, sets, k, memory } = self;
        let (batches, others) = batches::<C>(table, sets, memory);
        let is_below = |cell: &C| (1..k).contains(&cell.size().support);
        for batch in batches {
            let cells = counted::<C>(table, &batch, &|| false)?.unwrap_or_default();
            let some: Vec<usize> = (0..cells.len()).filter(|number| cells[*number].iter().any(is_below)).collect();
            if some.is_empty() {
                continue;
            }
            let mut keys = Keys::new(table, &batch);
            let columns = keys.columns.clone();
            table.each_block(&columns, true, |block| {
                keys.begin();
                for number in &some {
                    let (cells, at) = (&cells[*number], batch[*number].at);
                    for (place, key) in keys.of(*number, block).iter().enumerate() {
                        if is_below(&cells[*key as usize]) {
                            let row = block.order[place];
                            told(at, row, block.people.get(place).copied().unwrap_or(row));
                        }
                    }
                }
                true
            })?;
        }
        Ok(others)
    }
}
