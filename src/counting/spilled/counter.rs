//! The answers of a backend about a table in files.

use super::cells::{Cell, ClassSize, ClassSizes, Few, Persons, Records, summary};
use super::classes::{Asked, Found, Smallest, classes, values};
use super::keys::Packing;
use super::table::SpilledTable;
use super::together::{Below, Dense, batches, counted};
use crate::counting::cpu::in_threads;
use crate::counting::{AttributeSet, ComputeError, GroupCount, GroupCounter};
use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What a look at one set has found.
#[derive(Clone, Debug)]
pub enum Look {
    /// Some class is below k.
    Qid,
    /// None is; one of the smallest, where it can be told.
    Fine(Option<Smallest>),
    /// Time was up.
    Stopped,
}

/// How sets of few combinations are counted.
#[derive(Clone, Copy)]
enum Arrays {
    /// As the others are, one by one.
    None,
    /// Many at once, all rows.
    Whole,
    /// Many at once, each until all its classes have reached this support.
    UpTo(u32),
}

/// The rows of a class: codes by column, and the people behind them, ascending, where the table has people.
pub type ClassRows = (Vec<Vec<u32>>, Vec<u32>);

/// Counts over [`SpilledTable`] with some threads, each of which counts sets of its own.
///
/// Memory: what it is given, shared out among the threads, and a bit for each person.
pub struct SpilledCounter<'a> {
    table: &'a SpilledTable,
    threads: usize,
    memory: u64,
    fault: Mutex<Option<ComputeError>>,
}

impl<'a> SpilledCounter<'a> {
    /// A counter with `threads` threads, at least one, that holds about `memory` bytes.
    #[must_use]
    pub fn new(table: &'a SpilledTable, threads: usize, memory: u64) -> Self {
        Self { table, threads: threads.max(1), memory, fault: Mutex::new(None) }
    }

    /// The table.
    #[must_use]
    pub fn table(&self) -> &'a SpilledTable {
        self.table
    }

    /// Bytes that it holds, about.
    #[must_use]
    pub fn memory(&self) -> u64 {
        self.memory
    }

    /// Keeps the first fault of questions that have no room for one in their answers: what they answered is then void.
    pub fn remember(&self, asked: Result<(), ComputeError>) {
        if let Err(error) = asked {
            self.fault.lock().expect("no counter panics with the lock").get_or_insert(error);
        }
    }

    /// The fault that was remembered, if there was one.
    ///
    /// # Errors
    /// That fault.
    pub fn sound(&self) -> Result<(), ComputeError> {
        self.fault.lock().expect("no counter panicked").clone().map_or(Ok(()), Err)
    }

    /// Tells the number and the person of each row, person after person; without people every row is one.
    ///
    /// # Errors
    /// When the files cannot be read.
    pub fn each_person(&self, mut told: impl FnMut(u32, u32)) -> Result<(), ComputeError> {
        let read = self.table.each_block(&[], true, |block| {
            for (at, row) in block.order.iter().enumerate() {
                told(*row, block.people.get(at).copied().unwrap_or(*row));
            }
            true
        });
        read.map_err(|error| lost(&error))
    }

    /// Tells the codes of two columns and the person of each row, person after person; without people every row is one.
    ///
    /// # Errors
    /// When the files cannot be read.
    pub fn each_pair(&self, a: usize, b: usize, mut told: impl FnMut(u32, u32, u32)) -> Result<(), ComputeError> {
        let mut row = 0;
        let read = self.table.each_block(&[a, b], false, |block| {
            for (at, (a, b)) in block.codes[0].iter().zip(&block.codes[1]).enumerate() {
                told(*a, *b, block.people.get(at).copied().unwrap_or(row));
                row += 1;
            }
            true
        });
        read.map_err(|error| lost(&error))
    }

    /// How many classes of each size a set has, and the people in those below k where the table has people.
    ///
    /// # Errors
    /// When the files cannot be read.
    pub fn sizes(&self, set: &AttributeSet, k: u32) -> Result<(ClassSizes, Option<u64>), ComputeError> {
        let (found, people) = self.with_people(set, k, self.memory)?;
        match found {
            Found::Sizes(sizes, _) => Ok((sizes, people)),
            Found::Qid | Found::Stopped => Ok((ClassSizes::new(), people)),
        }
    }

    /// Support and records of each value of a column.
    ///
    /// # Errors
    /// When the files cannot be read.
    pub fn values(&self, column: usize) -> Result<Vec<ClassSize>, ComputeError> {
        values(self.table, column).map_err(|error| lost(&error))
    }

    /// Judges each set, and gives a class of fewest records of those that are no QID.
    ///
    /// # Errors
    /// When the files cannot be read.
    pub fn look(
        &self,
        sets: &[AttributeSet],
        k: u32,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<Vec<Look>, ComputeError> {
        let alone = |set: &AttributeSet, memory| {
            Ok(match self.classes(set, k, true, memory, stop, None)? {
                Found::Qid => Look::Qid,
                Found::Sizes(_, smallest) => Look::Fine(smallest),
                Found::Stopped => Look::Stopped,
            })
        };
        if self.table.subjects().is_some() {
            self.each(
                sets,
                Arrays::Whole,
                &|set, cells: &[Persons]| self.seen(set, cells, k),
                &Look::Stopped,
                stop,
                &alone,
            )
        } else {
            self.each(
                sets,
                Arrays::Whole,
                &|set, cells: &[Records]| self.seen(set, cells, k),
                &Look::Stopped,
                stop,
                &alone,
            )
        }
    }

    /// What the cells of a set say.
    fn seen<C: Cell>(&self, set: &Dense, cells: &[C], k: u32) -> Look {
        let sizes = (0_u64..).zip(cells).map(|(key, cell)| (cell.size(), key)).filter(|(size, _)| size.records > 0);
        if sizes.clone().any(|(size, _)| size.support < k) {
            return Look::Qid;
        }
        let cardinalities: Vec<usize> = set.columns.iter().map(|c| self.table.cardinality(*c)).collect();
        let smallest = sizes.map(|(size, key)| (size.records, key)).min();
        Look::Fine(
            smallest
                .and_then(|(records, key)| Some(Smallest { codes: Packing::new(&cardinalities).codes(key)?, records })),
        )
    }

    /// The rows of some classes, each given by its columns and their codes: of each the codes of all columns, and the people.
    ///
    /// # Errors
    /// When the files cannot be read.
    pub fn rows_of(&self, classes: &[(Vec<usize>, Vec<u32>)]) -> Result<Vec<ClassRows>, ComputeError> {
        let all: Vec<usize> = (0..self.table.width()).collect();
        let mut found = vec![(vec![Vec::new(); all.len()], Vec::new()); classes.len()];
        let mut rows: Vec<u32> = Vec::new();
        let read = self.table.each_block(&all, false, |block| {
            for ((columns, tuple), (codes, people)) in classes.iter().zip(&mut found) {
                let Some((first, rest)) = columns.split_first() else { continue };
                rows.clear();
                let firsts = (0_u32..).zip(&block.codes[*first]);
                rows.extend(firsts.filter(|(_, code)| **code == tuple[0]).map(|(row, _)| row));
                for (column, wanted) in rest.iter().zip(&tuple[1..]) {
                    rows.retain(|row| block.codes[*column][*row as usize] == *wanted);
                }
                for (codes, here) in codes.iter_mut().zip(&block.codes) {
                    codes.extend(rows.iter().map(|row| here[*row as usize]));
                }
                if !block.people.is_empty() {
                    people.extend(rows.iter().map(|row| block.people[*row as usize]));
                }
            }
            true
        });
        read.map_err(|error| lost(&error))?;
        Ok(found)
    }

    /// Does every value of `a` go with one value of `b`?
    ///
    /// # Errors
    /// When the files cannot be read.
    pub fn implies(&self, a: usize, b: usize) -> Result<bool, ComputeError> {
        let table = self.table;
        if table.cardinality(b) <= 1 {
            return Ok(true);
        }
        if table.cardinality(a) < table.cardinality(b) {
            return Ok(false);
        }
        let mut with = vec![u32::MAX; table.cardinality(a)];
        let mut holds = true;
        let read = table.each_block(&[a, b], false, |block| {
            holds = block.codes[0].iter().zip(&block.codes[1]).all(|(a, b)| {
                let known = &mut with[*a as usize];
                let fits = *known == *b || *known == u32::MAX;
                *known = *b;
                fits
            });
            holds
        });
        read.map_err(|error| lost(&error))?;
        Ok(holds)
    }

    /// Tells the number and the person of each record in a class of `set` below k; of some perhaps more than once.
    ///
    /// # Errors
    /// When the files cannot be read.
    pub fn below(&self, set: &AttributeSet, k: u32, told: &mut dyn FnMut(u32, u32)) -> Result<(), ComputeError> {
        self.classes(set, k, false, self.memory / self.threads as u64, &|| false, Some(told)).map(drop)
    }

    /// The same for many sets, in few passes: also tells the place of each set among `sets`. What fails, fails for them all.
    ///
    /// # Errors
    /// When the files cannot be read.
    pub fn below_each(
        &self,
        sets: &[AttributeSet],
        k: u32,
        told: &mut dyn FnMut(usize, u32, u32),
    ) -> Result<(), ComputeError> {
        let below = Below { table: self.table, sets, k, memory: self.memory / self.threads as u64 };
        let others = below.each(told).map_err(|e| lost(&e))?;
        others.into_iter().try_for_each(|at| self.below(&sets[at], k, &mut |row, person| told(at, row, person)))
    }

    fn classes(
        &self,
        set: &AttributeSet,
        k: u32,
        judging: bool,
        memory: u64,
        stop: &(dyn Fn() -> bool + Sync),
        below: Option<&mut dyn FnMut(u32, u32)>,
    ) -> Result<Found, ComputeError> {
        let width = self.table.width();
        if let Some(attribute) = set.last().filter(|attribute| *attribute >= width) {
            return Err(ComputeError::UnknownAttribute { attribute, width });
        }
        let columns: Vec<usize> = set.iter().collect();
        classes(self.table, &columns, Asked { k, judging, memory, stop }, below).map_err(|error| lost(&error))
    }

    /// The classes of a set, and the people in those below k.
    fn with_people(&self, set: &AttributeSet, k: u32, memory: u64) -> Result<(Found, Option<u64>), ComputeError> {
        let Some(people) = self.table.subjects() else {
            return Ok((self.classes(set, k, false, memory, &|| false, None)?, None));
        };
        let mut seen = vec![0_u64; people.div_ceil(64)];
        let mut tell = |_: u32, person: u32| seen[person as usize / 64] |= 1 << (person % 64);
        let found = self.classes(set, k, false, memory, &|| false, Some(&mut tell))?;
        Ok((found, Some(seen.iter().map(|word| u64::from(word.count_ones())).sum())))
    }

    fn counted(&self, set: &AttributeSet, k: u32, memory: u64) -> Result<GroupCount, ComputeError> {
        let (found, people) = self.with_people(set, k, memory)?;
        let count = of(found, k);
        Ok(GroupCount { subjects_below: people.unwrap_or(count.subjects_below), ..count })
    }

    /// One answer a set, in their order: from the cells of those that arrays hold , many at once, and one by one for the others. Sets
    /// that `stop` came before get `stopped`.
    fn each<C: Cell, T: Clone + Send + Sync>(
        &self,
        sets: &[AttributeSet],
        arrays: Arrays,
        told: &(dyn Fn(&Dense, &[C]) -> T + Sync),
        stopped: &T,
        stop: &(dyn Fn() -> bool + Sync),
        alone: &(dyn Fn(&AttributeSet, u64) -> Result<T, ComputeError> + Sync),
    ) -> Result<Vec<T>, ComputeError> {
        let threads = self.threads.min(sets.len()).max(1);
        let memory = self.memory / threads as u64;
        let (of_arrays, enough) = match arrays {
            Arrays::None => (0, None),
            Arrays::Whole => (memory, None),
            Arrays::UpTo(k) => (memory, Some(k)),
        };
        let (batches, others) = batches::<C>(self.table, sets, of_arrays);
        let next = AtomicUsize::new(0);
        let answers: Mutex<Vec<(usize, Result<T, ComputeError>)>> = Mutex::new(Vec::with_capacity(sets.len()));
        let put = |at: usize, answer| answers.lock().expect("no counter panics with the lock").push((at, answer));
        let work = || {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if let Some(batch) = batches.get(number) {
                    match counted::<C>(self.table, batch, enough, stop) {
                        Ok(Some(cells)) => {
                            batch.iter().zip(&cells).for_each(|(set, cells)| put(set.at, Ok(told(set, cells))));
                        }
                        Ok(None) => batch.iter().for_each(|set| put(set.at, Ok(stopped.clone()))),
                        Err(error) => batch.iter().for_each(|set| put(set.at, Err(lost(&error)))),
                    }
                } else if let Some(at) = others.get(number - batches.len()) {
                    put(*at, alone(&sets[*at], memory));
                } else {
                    break;
                }
            }
        };
        in_threads(threads, &work);
        let mut answers = answers.into_inner().expect("no counter panicked");
        answers.sort_unstable_by_key(|(at, _)| *at);
        answers.into_iter().map(|(_, answer)| answer).collect()
    }
}

/// Is a class of these below k?
fn is_qid<C: Cell>(cells: &[C], k: u32) -> bool {
    cells.iter().map(|cell| cell.size()).any(|size| size.records > 0 && size.support < k)
}

/// The sizes of the classes in cells.
fn sizes_of<C: Cell>(cells: &[C]) -> ClassSizes {
    let mut sizes = ClassSizes::new();
    for size in cells.iter().map(|cell| cell.size()).filter(|size| size.records > 0) {
        *sizes.entry(size).or_default() += 1;
    }
    sizes
}

fn of(found: Found, k: u32) -> GroupCount {
    match found {
        Found::Sizes(sizes, _) => summary(&sizes, k),
        Found::Qid | Found::Stopped => GroupCount::default(),
    }
}

fn lost(error: &io::Error) -> ComputeError {
    ComputeError::Spilled { reason: error.to_string() }
}

impl GroupCounter for SpilledCounter<'_> {
    fn count(&self, sets: &[AttributeSet], k: u32) -> Result<Vec<GroupCount>, ComputeError> {
        let alone = |set: &AttributeSet, memory| self.counted(set, k, memory);
        // With people, who is below k is known only once the classes are: a second pass for each set.
        let arrays = if self.table.subjects().is_none() { Arrays::Whole } else { Arrays::None };
        let told = |_: &Dense, cells: &[Records]| summary(&sizes_of(cells), k);
        self.each(sets, arrays, &told, &GroupCount::default(), &|| false, &alone)
    }

    fn judge(
        &self,
        sets: &[AttributeSet],
        k: u32,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<Vec<Option<bool>>, ComputeError> {
        if k < 2 {
            return Ok(vec![Some(false); sets.len()]);
        }
        let alone = |set: &AttributeSet, memory| {
            Ok(match self.classes(set, k, true, memory, stop, None)? {
                Found::Sizes(..) => Some(false),
                Found::Qid => Some(true),
                Found::Stopped => None,
            })
        };
        if self.table.subjects().is_some() {
            self.each(sets, Arrays::UpTo(k), &|_, cells: &[Persons]| Some(is_qid(cells, k)), &None, stop, &alone)
        } else if k <= Few::LARGEST_K {
            self.each(sets, Arrays::UpTo(k), &|_, cells: &[Few]| Some(is_qid(cells, k)), &None, stop, &alone)
        } else {
            self.each(sets, Arrays::UpTo(k), &|_, cells: &[Records]| Some(is_qid(cells, k)), &None, stop, &alone)
        }
    }

    fn records_below(&self, set: &AttributeSet, k: u32) -> Result<Vec<u32>, ComputeError> {
        let mut rows = Vec::new();
        self.below(set, k, &mut |row, _| rows.push(row))?;
        rows.sort_unstable();
        rows.dedup();
        Ok(rows)
    }

    fn first_below(&self, set: &AttributeSet, k: u32) -> Result<Option<u32>, ComputeError> {
        let mut first: Option<u32> = None;
        self.below(set, k, &mut |row, _| first = Some(first.map_or(row, |first| first.min(row))))?;
        Ok(first)
    }
}
