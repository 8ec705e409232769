//! The answers of the backend.

use super::cells::{Cell, ClassSize, ClassSizes, Few, Persons, Records, summary};
use super::classes::{Asked, Found, Smallest, classes, values};
use super::keys::Packing;
use super::threads::in_threads;
use super::together::{Below, Dense, batches, counted};
use crate::counting::codes::CodeTable;
use crate::counting::{AttributeSet, ComputeError, CountedTable, GroupCount, GroupCounter};
use std::borrow::Cow;
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

/// Rows of some classes.
#[derive(Clone, Debug, Default)]
pub struct ClassRows {
    /// By column: their codes, in the order in which the rows lie. A row of several classes is there once.
    pub codes: Vec<Vec<u32>>,
    /// The people behind them, ascending; empty where the table names none.
    pub people: Vec<u32>,
    /// By class: its rows, as places in these columns, ascending.
    pub classes: Vec<Vec<u32>>,
}

/// Bytes that counting may hold where nobody sets a limit.
const MEMORY: u64 = 256 << 20;

/// Counts over a [`CodeTable`] with some threads, each of which counts sets of its own.
///
/// Memory: what it is given, shared out among the threads, and a bit for each person.
pub struct CpuCounter<'a> {
    table: Cow<'a, CodeTable>,
    threads: usize,
    memory: u64,
    fault: Mutex<Option<ComputeError>>,
}

impl CpuCounter<'static> {
    /// A counter of a table that is held, with `threads` threads, at least one.
    #[must_use]
    pub fn new(table: &CountedTable, threads: usize) -> Self {
        let table = Cow::Owned(CodeTable::held(table));
        Self { table, threads: threads.max(1), memory: MEMORY, fault: Mutex::new(None) }
    }
}

impl<'a> CpuCounter<'a> {
    /// A counter with `threads` threads, at least one, that holds about `memory` bytes beside the table.
    #[must_use]
    pub fn over(table: &'a CodeTable, threads: usize, memory: u64) -> Self {
        Self { table: Cow::Borrowed(table), threads: threads.max(1), memory, fault: Mutex::new(None) }
    }

    /// The table.
    #[must_use]
    pub fn table(&self) -> &CodeTable {
        &self.table
    }

    /// Threads that it counts with.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.threads
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
    /// When the file cannot be read.
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
    /// When the file cannot be read.
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
    /// When the file cannot be read.
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
    /// When the file cannot be read.
    pub fn values(&self, column: usize) -> Result<Vec<ClassSize>, ComputeError> {
        values(&self.table, column).map_err(|error| lost(&error))
    }

    /// Judges each set, and gives a class of fewest records of those that are no QID.
    ///
    /// # Errors
    /// When the file cannot be read.
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

    /// The rows of some classes, each given by its columns and their codes.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn rows_of(&self, classes: &[(Vec<usize>, Vec<u32>)]) -> Result<ClassRows, ComputeError> {
        let table = self.table();
        let all: Vec<usize> = (0..table.width()).collect();
        // By column and code: the classes that begin with them.
        let mut beginning: Vec<(usize, Vec<Vec<u32>>)> = Vec::new();
        for (number, (columns, codes)) in (0_u32..).zip(classes) {
            let (Some(column), Some(code)) = (columns.first(), codes.first()) else { continue };
            let at = beginning.iter().position(|(of, _)| of == column).unwrap_or(beginning.len());
            if at == beginning.len() {
                beginning.push((*column, vec![Vec::new(); table.cardinality(*column)]));
            }
            beginning[at].1[*code as usize].push(number);
        }
        let mut found = ClassRows { classes: vec![Vec::new(); classes.len()], ..ClassRows::default() };
        found.codes.resize(all.len(), Vec::new());
        let mut members: Vec<(u32, u32)> = Vec::new();
        let mut rows = 0;
        let read = table.each_block(&all, false, |block| {
            members.clear();
            for (column, by_code) in &beginning {
                for (row, code) in (0_u32..).zip(&block.codes[*column]) {
                    for number in &by_code[*code as usize] {
                        let (columns, codes) = &classes[*number as usize];
                        let mut rest = columns.iter().zip(codes).skip(1);
                        if rest.all(|(column, code)| block.codes[*column][row as usize] == *code) {
                            members.push((row, *number));
                        }
                    }
                }
            }
            members.sort_unstable();
            for of_row in members.chunk_by(|a, b| a.0 == b.0) {
                let row = of_row[0].0 as usize;
                found.codes.iter_mut().zip(&block.codes).for_each(|(codes, here)| codes.push(here[row]));
                found.people.extend(block.people.get(row));
                of_row.iter().for_each(|(_, number)| found.classes[*number as usize].push(rows));
                rows += 1;
            }
            true
        });
        read.map_err(|error| lost(&error))?;
        Ok(found)
    }

    /// Does every value of `a` go with one value of `b`?
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn implies(&self, a: usize, b: usize) -> Result<bool, ComputeError> {
        let table = self.table();
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
    /// When the file cannot be read.
    pub fn below(&self, set: &AttributeSet, k: u32, told: &mut dyn FnMut(u32, u32)) -> Result<(), ComputeError> {
        self.classes(set, k, false, self.memory / self.threads as u64, &|| false, Some(told)).map(drop)
    }

    /// The same for many sets, in few passes: also tells the place of each set among `sets`. What fails, fails for them all.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn below_each(
        &self,
        sets: &[AttributeSet],
        k: u32,
        told: &mut dyn FnMut(usize, u32, u32),
    ) -> Result<(), ComputeError> {
        let below = Below { table: &self.table, sets, k, memory: self.memory / self.threads as u64 };
        let others = below.each(told).map_err(|e| lost(&e))?;
        others.into_iter().try_for_each(|at| self.below(&sets[at], k, &mut |row, person| told(at, row, person)))
    }

    /// Refuses a set with a column that the table does not have.
    fn check(&self, set: &AttributeSet) -> Result<(), ComputeError> {
        let width = self.table.width();
        match set.last() {
            Some(attribute) if attribute >= width => Err(ComputeError::UnknownAttribute { attribute, width }),
            _ => Ok(()),
        }
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
        self.check(set)?;
        let columns: Vec<usize> = set.iter().collect();
        classes(&self.table, &columns, Asked { k, judging, memory, stop }, below).map_err(|error| lost(&error))
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
        sets.iter().try_for_each(|set| self.check(set))?;
        let threads = self.threads.min(sets.len()).max(1);
        let memory = self.memory / threads as u64;
        let (of_arrays, enough) = match arrays {
            Arrays::None => (0, None),
            Arrays::Whole => (memory, None),
            Arrays::UpTo(k) => (memory, Some(k)),
        };
        let (batches, others) = batches::<C>(&self.table, sets, of_arrays);
        let next = AtomicUsize::new(0);
        let answers: Mutex<Vec<(usize, Result<T, ComputeError>)>> = Mutex::new(Vec::with_capacity(sets.len()));
        let put = |at: usize, answer| answers.lock().expect("no counter panics with the lock").push((at, answer));
        let work = || {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if let Some(batch) = batches.get(number) {
                    match counted::<C>(&self.table, batch, enough, stop) {
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
    ComputeError::Codes { reason: error.to_string() }
}

impl GroupCounter for CpuCounter<'_> {
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
