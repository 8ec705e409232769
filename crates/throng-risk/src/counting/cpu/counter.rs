//! The answers of the backend.

use super::cells::{Cell, ClassSize, ClassSizes, Few, Persons, Records, summary};
use super::classes::{Asked, Found, Smallest, classes, values};
use super::keys::Packing;
use super::matrix::Matrix;
use super::slices::{self, Rows};
use super::threads::map_in_threads;
use super::together::{Below, Dense, batches, counted};
use crate::counting::codes::CodeTable;
use crate::counting::{AttributeSet, ComputeError, CountedTable, GroupCount, GroupCounter, RowSet};
use std::borrow::Cow;
use std::io;
use std::sync::{Mutex, OnceLock};

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
    /// The rows in memory, once sets are judged by them.
    whole: OnceLock<Matrix>,
}

impl CpuCounter<'static> {
    /// A counter of a table that is held, with `threads` threads, at least one.
    pub fn new(table: &CountedTable, threads: usize) -> Self {
        let table = Cow::Owned(CodeTable::held(table));
        Self { table, threads: threads.max(1), memory: MEMORY, fault: Mutex::new(None), whole: OnceLock::new() }
    }
}

impl<'a> CpuCounter<'a> {
    /// A counter with `threads` threads, at least one, that holds about `memory` bytes beside the table.
    pub fn over(table: &'a CodeTable, threads: usize, memory: u64) -> Self {
        Self {
            table: Cow::Borrowed(table),
            threads: threads.max(1),
            memory,
            fault: Mutex::new(None),
            whole: OnceLock::new(),
        }
    }

    /// The table.
    pub fn table(&self) -> &CodeTable {
        &self.table
    }

    /// Threads that it counts with.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Bytes that it holds, about.
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
    pub fn sound(&self) -> Result<(), ComputeError> {
        self.fault.lock().expect("no counter panicked").clone().map_or(Ok(()), Err)
    }

    /// Tells the number and the person of each row, person after person; without people every row is one.
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
    pub fn sizes(&self, set: &AttributeSet, k: u32) -> Result<(ClassSizes, Option<u64>), ComputeError> {
        let (found, people) = self.with_people(set, k, self.memory)?;
        match found {
            Found::Sizes(sizes, _) => Ok((sizes, people)),
            Found::Qid | Found::Stopped => Ok((ClassSizes::new(), people)),
        }
    }

    /// Support and records of each value of a column.
    pub fn values(&self, column: usize) -> Result<Vec<ClassSize>, ComputeError> {
        values(&self.table, column).map_err(|error| lost(&error))
    }

    /// Judges each set, and gives a class of fewest records of those that are no QID.
    pub fn look(
        &self,
        sets: &[AttributeSet],
        k: u32,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<Vec<Look>, ComputeError> {
        let alone = |set: &AttributeSet, memory| {
            Ok(match self.classes(set, Asked { judging: true, stop, ..Asked::all(k, memory) }, None)? {
                Found::Qid => Look::Qid,
                Found::Sizes(_, smallest) => Look::Fine(smallest),
                Found::Stopped => Look::Stopped,
            })
        };
        if self.table.subjects().is_some() {
            let told = |set: &Dense, cells: Option<&[Persons]>| self.seen(set, cells, k);
            self.each(sets, true, &told, stop, &alone)
        } else {
            let told = |set: &Dense, cells: Option<&[Records]>| self.seen(set, cells, k);
            self.each(sets, true, &told, stop, &alone)
        }
    }

    /// What the cells of a set say.
    fn seen<C: Cell>(&self, set: &Dense, cells: Option<&[C]>, k: u32) -> Look {
        let Some(cells) = cells else { return Look::Stopped };
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
    fn below(
        &self,
        set: &AttributeSet,
        k: u32,
        without: Option<&RowSet>,
        told: &mut dyn FnMut(u32, u32),
    ) -> Result<(), ComputeError> {
        let asked = Asked { without, ..Asked::all(k, self.memory / self.threads as u64) };
        self.classes(set, asked, Some(told)).map(drop)
    }

    /// The same for many sets, in few passes: also tells the place of each set among `sets`. `known` are records of each set that are
    /// known to be in such classes, all of a class, and need not be told. What fails, fails for them all.
    pub fn below_each(
        &self,
        sets: &[AttributeSet],
        known: &[RowSet],
        k: u32,
        told: &mut dyn FnMut(usize, u32, u32),
    ) -> Result<(), ComputeError> {
        sets.iter().try_for_each(|set| self.check(set))?;
        let rows = self.table.rows() as u64;
        let known = |at: usize| known.get(at).filter(|known| !known.is_empty());
        // Where most rows are known, the others alone are looked at.
        let (few, many): (Vec<usize>, Vec<usize>) =
            (0..sets.len()).partition(|at| known(*at).is_some_and(|known| 2 * known.len() > rows));
        let asked: Vec<AttributeSet> = many.iter().map(|at| sets[*at].clone()).collect();
        let below = Below { table: &self.table, sets: &asked, k, memory: self.memory / self.threads as u64 };
        let others = below.each(&mut |at, row, person| told(many[at], row, person)).map_err(|e| lost(&e))?;
        for at in others.into_iter().map(|at| many[at]).chain(few) {
            if known(at).is_none_or(|known| known.len() < rows) {
                self.below(&sets[at], k, known(at), &mut |row, person| told(at, row, person))?;
            }
        }
        Ok(())
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
        asked: Asked<'_>,
        below: Option<&mut dyn FnMut(u32, u32)>,
    ) -> Result<Found, ComputeError> {
        self.check(set)?;
        let columns: Vec<usize> = set.iter().collect();
        classes(&self.table, &columns, asked, below).map_err(|error| lost(&error))
    }

    /// The classes of a set, and the people in those below k.
    fn with_people(&self, set: &AttributeSet, k: u32, memory: u64) -> Result<(Found, Option<u64>), ComputeError> {
        let Some(people) = self.table.subjects() else {
            return Ok((self.classes(set, Asked::all(k, memory), None)?, None));
        };
        let mut seen = vec![0_u64; people.div_ceil(64)];
        let mut tell = |_: u32, person: u32| seen[person as usize / 64] |= 1 << (person % 64);
        let found = self.classes(set, Asked::all(k, memory), Some(&mut tell))?;
        Ok((found, Some(seen.iter().map(|word| u64::from(word.count_ones())).sum())))
    }

    fn counted(&self, set: &AttributeSet, k: u32, memory: u64) -> Result<GroupCount, ComputeError> {
        let (found, people) = self.with_people(set, k, memory)?;
        let count = of(found, k);
        Ok(GroupCount { subjects_below: people.unwrap_or(count.subjects_below), ..count })
    }

    /// One answer a set, in their order: from the cells of those that arrays hold, many at once, where `in_arrays`, and one by one for the
    /// others. Sets that `stop` came before have no cells.
    fn each<C: Cell, T: Send>(
        &self,
        sets: &[AttributeSet],
        in_arrays: bool,
        told: &(dyn Fn(&Dense, Option<&[C]>) -> T + Sync),
        stop: &(dyn Fn() -> bool + Sync),
        alone: &(dyn Fn(&AttributeSet, u64) -> Result<T, ComputeError> + Sync),
    ) -> Result<Vec<T>, ComputeError> {
        sets.iter().try_for_each(|set| self.check(set))?;
        let memory = self.memory / self.threads_for(sets) as u64;
        let (batches, others) = batches::<C>(&self.table, sets, if in_arrays { memory } else { 0 });
        let of_batch = |number: usize| {
            let batch: &Vec<Dense> = &batches[number];
            let cells = counted::<C>(&self.table, batch, stop)?;
            let of = |at: usize| cells.as_ref().map(|cells| cells[at].as_slice());
            Ok(batch.iter().enumerate().map(|(at, set)| (set.at, told(set, of(at)))).collect())
        };
        self.share(sets, batches.len(), &of_batch, &others, &|set| alone(set, memory))
    }

    /// Threads that share so many sets.
    fn threads_for(&self, sets: &[AttributeSet]) -> usize {
        self.threads.min(sets.len()).max(1)
    }

    /// One answer a set, in their order: some batches of sets, each with the places of its sets, and the other sets one by one.
    fn share<T: Send>(
        &self,
        sets: &[AttributeSet],
        batches: usize,
        of_batch: &(dyn Fn(usize) -> io::Result<Vec<(usize, T)>> + Sync),
        others: &[usize],
        alone: &(dyn Fn(&AttributeSet) -> Result<T, ComputeError> + Sync),
    ) -> Result<Vec<T>, ComputeError> {
        let task = |number: usize| match number.checked_sub(batches) {
            None => of_batch(number).map_err(|error| lost(&error)),
            Some(other) => Ok(vec![(others[other], alone(&sets[others[other]])?)]),
        };
        let found = map_in_threads(self.threads, batches + others.len(), &task);
        let mut answers: Vec<(usize, T)> = Vec::with_capacity(sets.len());
        found.into_iter().try_for_each(|some| some.map(|some| answers.extend(some)))?;
        answers.sort_unstable_by_key(|(at, _)| *at);
        Ok(answers.into_iter().map(|(_, answer)| answer).collect())
    }

    /// The rows in memory, where they fit there together with a sorted copy for each thread.
    fn rows(&self, threads: usize) -> Result<Rows<'_>, ComputeError> {
        let room = usize::try_from(self.memory / 2).unwrap_or(usize::MAX);
        let stride = slices::empty(&self.table).stride;
        if self.table.rows().saturating_mul(stride * (threads + 1)) > room {
            return Ok(Rows::Segments(&self.table, room / (2 * threads * stride)));
        }
        if self.whole.get().is_none() {
            let read = slices::whole(&self.table).map_err(|error| lost(&error))?;
            self.whole.get_or_init(|| read);
        }
        let whole = self.whole.get().map(|matrix| Rows::Whole(&self.table, matrix));
        Ok(whole.unwrap_or(Rows::Segments(&self.table, usize::MAX)))
    }

    fn judge_by<C: Cell>(
        &self,
        rows: &Rows<'_>,
        sets: &[AttributeSet],
        k: u32,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<Vec<Option<bool>>, ComputeError> {
        let threads = self.threads_for(sets);
        let memory = self.memory / 2 / threads as u64;
        let (batches, others) = slices::batches::<C>(rows, sets, sets.len().div_ceil(threads), memory);
        let of_batch = |number: usize| {
            let found = slices::judge::<C>(rows, &batches[number], k, stop)?;
            Ok(batches[number].iter().zip(found).map(|(set, verdict)| (set.at, verdict)).collect())
        };
        let alone = |set: &AttributeSet| {
            Ok(match self.classes(set, Asked { judging: true, stop, ..Asked::all(k, memory) }, None)? {
                Found::Sizes(..) => Some(false),
                Found::Qid => Some(true),
                Found::Stopped => None,
            })
        };
        self.share(sets, batches.len(), &of_batch, &others, &alone)
    }
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
        let told = |_: &Dense, cells: Option<&[Records]>| summary(&sizes_of(cells.unwrap_or_default()), k);
        // With people, who is below k is known only once the classes are: a second pass for each set.
        self.each(sets, self.table.subjects().is_none(), &told, &|| false, &alone)
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
        sets.iter().try_for_each(|set| self.check(set))?;
        let rows = self.rows(self.threads_for(sets))?;
        if self.table.subjects().is_some() {
            self.judge_by::<Persons>(&rows, sets, k, stop)
        } else if matches!(rows, Rows::Segments(..)) && k <= Few::LARGEST_K {
            self.judge_by::<Few>(&rows, sets, k, stop)
        } else {
            self.judge_by::<Records>(&rows, sets, k, stop)
        }
    }

    fn records_below(&self, set: &AttributeSet, k: u32) -> Result<Vec<u32>, ComputeError> {
        let mut rows = Vec::new();
        self.below(set, k, None, &mut |row, _| rows.push(row))?;
        rows.sort_unstable();
        rows.dedup();
        Ok(rows)
    }

    fn first_below(&self, set: &AttributeSet, k: u32) -> Result<Option<u32>, ComputeError> {
        let mut first: Option<u32> = None;
        self.below(set, k, None, &mut |row, _| first = Some(first.map_or(row, |first| first.min(row))))?;
        Ok(first)
    }
}
