//! Many sets in one pass over the rows, each in an array of its own: the rows are read and decoded once, and sets that begin alike share
//! their beginnings.

use super::cells::{Cell, are_dense};
use super::table::SpilledTable;
use crate::counting::AttributeSet;
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
pub(super) fn batches<C>(table: &SpilledTable, sets: &[AttributeSet], memory: u64) -> (Vec<Vec<Dense>>, Vec<usize>) {
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

/// Counts a batch; none where `stop` was true before the end.
pub(super) fn counted<C: Cell>(
    table: &SpilledTable,
    batch: &[Dense],
    stop: &(dyn Fn() -> bool + Sync),
) -> io::Result<Option<Vec<Vec<C>>>> {
    let mut columns: Vec<usize> = batch.iter().flat_map(|set| set.columns.iter().copied()).collect();
    columns.sort_unstable();
    columns.dedup();
    // Where each column of a set stands in a block.
    let places: Vec<Vec<usize>> = batch
        .iter()
        .map(|set| set.columns.iter().map(|column| columns.partition_point(|c| c < column)).collect())
        .collect();
    let mut cells: Vec<Vec<C>> = batch.iter().map(|set| vec![C::default(); set.domain as usize]).collect();
    // Keys by the first column, the first two, … of the set before.
    let mut keys: Vec<Vec<u32>> = Vec::new();
    let (mut first, mut goes_on) = (0_u32, true);
    table.each_block(&columns, false, |block| {
        goes_on = !stop();
        let mut before: &[usize] = &[];
        for (set, cells) in places.iter().zip(&mut cells) {
            let shared = set.iter().zip(before).take_while(|(own, theirs)| own == theirs).count();
            for depth in shared..set.len() {
                let codes = &block.codes[set[depth]];
                if keys.len() == depth {
                    keys.push(Vec::new());
                }
                let (above, own) = keys.split_at_mut(depth);
                let own = &mut own[0];
                own.clear();
                match above.last() {
                    None => own.extend_from_slice(codes),
                    Some(above) => {
                        let radix = table.cardinality(columns[set[depth]]).max(1) as u32;
                        own.extend(above.iter().zip(codes).map(|(key, code)| key * radix + code));
                    }
                }
            }
            let Some(keys) = set.len().checked_sub(1).and_then(|last| keys.get(last)) else { continue };
            if block.people.is_empty() {
                keys.iter().for_each(|key| cells[*key as usize].add(first));
            } else {
                keys.iter().zip(&block.people).for_each(|(key, person)| cells[*key as usize].add(person + 1));
            }
            before = set;
        }
        first = first.wrapping_add(1);
        goes_on
    })?;
    Ok(goes_on.then_some(cells))
}
