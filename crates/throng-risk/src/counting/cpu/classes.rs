//! The classes of one set of columns, by as many partitions of the rows as memory asks for.
//!
//! A partition takes the rows whose tuples have a hash of its own, so no class is in two of them, and what is known of partitions
//! adds up. Rows come in the order of people, so that a class meets each person in one run.
//!
//! A set of more than rows / k classes has one below k: it is a QID before its classes are counted.

use super::cells::{Cell, ClassSize, ClassSizes, Persons, Records, are_dense};
use super::keys::{Interned, Mixed, Numbered, Packing, Partition};
use crate::counting::RowSet;
use crate::counting::codes::{Block, CodeTable};
use hashbrown::HashMap;
use std::io;

/// Partitions at most: with more, their passes would take longer than anything is worth.
const MOST_PARTITIONS: u64 = 1 << 14;

/// What is asked of the classes of a set.
#[derive(Clone, Copy)]
pub(super) struct Asked<'a> {
    /// At least 2.
    pub k: u32,
    /// Only whether some class is below k.
    pub judging: bool,
    /// Bytes that may be held.
    pub memory: u64,
    /// Rows that are left out, by their numbers in the input: whole classes.
    pub without: Option<&'a RowSet>,
    /// Asked now and then whether to give up.
    pub stop: &'a (dyn Fn() -> bool + Sync),
}

impl Asked<'static> {
    /// Asks for all classes.
    pub fn all(k: u32, memory: u64) -> Self {
        Self { k, judging: false, memory, without: None, stop: &|| false }
    }
}

/// A class of fewest records.
#[derive(Clone, Debug)]
pub struct Smallest {
    /// Its codes, in the order of the columns.
    pub codes: Vec<u32>,
    /// Its records.
    pub records: u32,
}

/// What was found.
pub(super) enum Found {
    /// All classes, and one of fewest records where its codes can be told; where it was only judged, none is below k.
    Sizes(ClassSizes, Option<Smallest>),
    /// Some class is below k.
    Qid,
    /// `stop` was true.
    Stopped,
}

/// Counts the classes of a set. `below` is told the number and the person of each record in a class below k; of some it may be told
/// more than once.
pub(super) fn classes(
    table: &CodeTable,
    columns: &[usize],
    asked: Asked<'_>,
    below: Option<&mut dyn FnMut(u32, u32)>,
) -> io::Result<Found> {
    let cardinalities: Vec<usize> = columns.iter().map(|column| table.cardinality(*column)).collect();
    let counting = Counting { table, columns, packing: Packing::new(&cardinalities), asked };
    if table.subjects().is_some() { counting.all::<Persons>(below) } else { counting.all::<Records>(below) }
}

/// Records and support of each value of a column.
pub(super) fn values(table: &CodeTable, column: usize) -> io::Result<Vec<ClassSize>> {
    let mut cells = vec![Persons::default(); table.cardinality(column)];
    let named = table.subjects().is_some();
    let mut row = 0_u32;
    table.each_block(&[column], false, |block| {
        for (at, code) in block.codes[0].iter().enumerate() {
            row = row.wrapping_add(1);
            cells[*code as usize].add(if named { block.people[at] + 1 } else { row });
        }
        true
    })?;
    Ok(cells.into_iter().map(Cell::size).collect())
}

struct Counting<'a> {
    table: &'a CodeTable,
    columns: &'a [usize],
    packing: Packing,
    asked: Asked<'a>,
}

/// The classes of one partition.
enum Store<C> {
    Cells(Vec<C>),
    Tuples(HashMap<u64, C, Mixed>),
}

enum Part<C> {
    Counted(Store<C>, Vec<Interned>),
    /// There was no room after so many rows.
    Full(u64),
    Qid,
    Stopped,
}

impl Counting<'_> {
    /// Tuples that a map may hold: it doubles when it is full, and both halves are held meanwhile.
    fn most<C>(&self) -> usize {
        usize::try_from(self.asked.memory / (4 * (size_of::<(u64, C)>() as u64 + 1))).unwrap_or(usize::MAX).max(16)
    }

    fn all<C: Cell>(&self, mut below: Option<&mut dyn FnMut(u32, u32)>) -> io::Result<Found> {
        let mut partitions = 1;
        'anew: loop {
            let of = partitions;
            let mut sizes: HashMap<ClassSize, u64> = HashMap::new();
            let (mut classes, mut smallest) = (0, None);
            for number in 0..of {
                let partition = Partition { number, of, without: self.asked.without };
                let (store, mut interned) = match self.part::<C>(partition, classes)? {
                    Part::Counted(store, interned) => (store, interned),
                    Part::Qid => return Ok(Found::Qid),
                    Part::Stopped => return Ok(Found::Stopped),
                    Part::Full(seen) => {
                        // As if the other rows brought as many new tuples.
                        let times = (self.table.rows() as u64 + seen / 4) / seen.max(1) + 1;
                        partitions = (of * times.clamp(2, 64)).min(MOST_PARTITIONS);
                        continue 'anew;
                    }
                };
                classes += store.each(|key, size| {
                    *sizes.entry(size).or_default() += 1;
                    // By the tuple where they are alike: the order of a map decides nothing.
                    smallest = Some((size.records, key)).into_iter().chain(smallest).min();
                });
                if self.asked.judging && sizes.keys().any(|size| size.support < self.asked.k) {
                    return Ok(Found::Qid);
                }
                if let Some(below) = &mut below
                    && !self.tell(&store, partition, &mut interned, *below)?
                {
                    return Ok(Found::Stopped);
                }
            }
            let told = |(records, key)| Some(Smallest { codes: self.packing.codes(key)?, records });
            return Ok(Found::Sizes(sizes.into_iter().collect(), smallest.and_then(told)));
        }
    }

    fn part<C: Cell>(&self, partition: Partition<'_>, classes: u64) -> io::Result<Part<C>> {
        let Asked { k, judging, stop, memory, without } = self.asked;
        let rows = self.table.rows() as u64;
        let most = if partition.of >= MOST_PARTITIONS { usize::MAX } else { self.most::<C>() };
        // So many classes, and one of them is below k.
        let enough = if judging { (rows / u64::from(k)).saturating_sub(classes) } else { u64::MAX };
        let cells = self.packing.domain().filter(|domain| partition.of == 1 && are_dense::<C>(*domain, rows, memory));
        let mut store = match cells {
            Some(domain) => Store::Cells(vec![C::default(); domain as usize]),
            None => Store::Tuples(HashMap::default()),
        };
        let (mut numbered, mut interned) = (Numbered::default(), self.packing.interned());
        let (mut ended, mut row) = (None, 0_u32);
        self.table.each_block(self.columns, without.is_some(), |block| {
            if stop() {
                ended = Some(Part::Stopped);
                return false;
            }
            if self.packing.number(block, partition, &mut interned, most, &mut numbered).is_err() {
                ended = Some(Part::Full(u64::from(row) + block.rows() as u64));
                return false;
            }
            let person = |at: &u32| block.people.get(*at as usize).map_or(row.wrapping_add(*at), |person| *person + 1);
            let each = numbered.keys.iter().zip(&numbered.rows);
            match &mut store {
                Store::Cells(cells) => each.for_each(|(key, at)| cells[*key as usize].add(person(at))),
                Store::Tuples(tuples) => {
                    each.for_each(|(key, at)| tuples.entry(*key).or_default().add(person(at)));
                    if tuples.len() as u64 > enough {
                        ended = Some(Part::Qid);
                    } else if tuples.len() > most {
                        ended = Some(Part::Full(u64::from(row) + block.rows() as u64));
                    }
                }
            }
            row = row.wrapping_add(block.rows() as u32);
            ended.is_none()
        })?;
        Ok(ended.unwrap_or(Part::Counted(store, interned)))
    }

    /// Tells the records in classes below k; false where it was stopped.
    fn tell<C: Cell>(
        &self,
        store: &Store<C>,
        partition: Partition<'_>,
        interned: &mut [Interned],
        below: &mut dyn FnMut(u32, u32),
    ) -> io::Result<bool> {
        let mut numbered = Numbered::default();
        let mut goes_on = true;
        self.table.each_block(self.columns, true, |block: &Block| {
            goes_on = !(self.asked.stop)();
            // Every tuple is known by now.
            if self.packing.number(block, partition, interned, usize::MAX, &mut numbered).is_ok() {
                for (key, at) in numbered.keys.iter().zip(&numbered.rows) {
                    if store.size(*key).support < self.asked.k {
                        let row = block.order[*at as usize];
                        below(row, block.people.get(*at as usize).copied().unwrap_or(row));
                    }
                }
            }
            goes_on
        })?;
        Ok(goes_on)
    }
}

impl<C: Cell> Store<C> {
    /// Visits every class; gives their number.
    fn each(&self, mut visit: impl FnMut(u64, ClassSize)) -> u64 {
        let mut classes = 0;
        let mut told = |key: u64, cell: &C| {
            let size = cell.size();
            if size.records > 0 {
                classes += 1;
                visit(key, size);
            }
        };
        match self {
            Self::Cells(cells) => (0..).zip(cells).for_each(|(key, cell)| told(key, cell)),
            Self::Tuples(tuples) => tuples.iter().for_each(|(key, cell)| told(*key, cell)),
        }
        classes
    }

    fn size(&self, key: u64) -> ClassSize {
        match self {
            Self::Cells(cells) => cells[key as usize].size(),
            Self::Tuples(tuples) => tuples.get(&key).copied().unwrap_or_default().size(),
        }
    }
}
