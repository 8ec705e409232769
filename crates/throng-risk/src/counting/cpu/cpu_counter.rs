//! CPU implementation of [`GroupCounter`].

use super::class_cells::{
    ClassCell, ClassSize, ClassSizes, RecordCell, SaturatingRecordCell, SubjectCell, summarize_sizes,
};
use super::class_query::{ClassQuery, ClassQueryResult, SmallestClass, count_classes, count_column_values};
use super::dense_sets::{DenseSet, SmallClassQuery, count_batch, dense_batches};
use super::row_matrix::RowMatrix;
use super::slices::{self, SliceSource};
use super::threads::map_in_threads;
use super::tuple_keys::TuplePacking;
use crate::counting::codes::CodeTable;
use crate::counting::{AttributeSet, ClassSummary, ComputeError, CountedTable, GroupCounter, RowSet};
use std::borrow::Cow;
use std::io;
use std::sync::{Mutex, OnceLock};

/// Verdict on a set.
#[derive(Clone, Debug)]
pub enum SetVerdict {
    /// Some class is below k.
    Qid,
    /// No class is below k; holds a smallest class if decodable.
    NotQid(Option<SmallestClass>),
    /// Stopped.
    Stopped,
}

/// Rows of some classes.
#[derive(Clone, Debug, Default)]
pub struct ClassRows {
    /// Codes by column, in stored order, without duplicates.
    pub codes: Vec<Vec<u32>>,
    /// Subjects, ascending; empty without subjects.
    pub subjects: Vec<u32>,
    /// Row positions of each class, ascending.
    pub classes: Vec<Vec<u32>>,
}

const DEFAULT_MEMORY_BYTES: u64 = 256 << 20;

/// Multi-threaded counter over a [`CodeTable`].
///
/// Memory: the given limit, and one bit per subject and thread.
pub struct CpuCounter<'a> {
    table: Cow<'a, CodeTable>,
    threads: usize,
    memory: u64,
    fault: Mutex<Option<ComputeError>>,
    resident_rows: OnceLock<RowMatrix>,
}

impl CpuCounter<'static> {
    /// Creates a counter of a [`CountedTable`].
    pub fn new(table: &CountedTable, threads: usize) -> Self {
        let table = Cow::Owned(CodeTable::from_counted_table(table));
        Self {
            table,
            threads: threads.max(1),
            memory: DEFAULT_MEMORY_BYTES,
            fault: Mutex::new(None),
            resident_rows: OnceLock::new(),
        }
    }
}

impl<'a> CpuCounter<'a> {
    /// Creates a counter with about `memory` bytes and at least one thread.
    pub fn with_memory(table: &'a CodeTable, threads: usize, memory: u64) -> Self {
        Self {
            table: Cow::Borrowed(table),
            threads: threads.max(1),
            memory,
            fault: Mutex::new(None),
            resident_rows: OnceLock::new(),
        }
    }

    /// Counted table.
    pub fn table(&self) -> &CodeTable {
        &self.table
    }

    /// Number of threads.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Approximate memory limit in bytes.
    pub fn memory(&self) -> u64 {
        self.memory
    }

    /// Stores the first error of calls that cannot return it; their results are invalid.
    pub fn store_error(&self, asked: Result<(), ComputeError>) {
        if let Err(error) = asked {
            self.fault.lock().expect("no counter panics with the lock").get_or_insert(error);
        }
    }

    /// Returns the stored error.
    pub fn stored_error(&self) -> Result<(), ComputeError> {
        self.fault.lock().expect("no counter panicked").clone().map_or(Ok(()), Err)
    }

    /// Reports number and subject of each row, in subject order. Without subjects, each row is one subject.
    pub fn visit_row_subjects(&self, mut told: impl FnMut(u32, u32)) -> Result<(), ComputeError> {
        let read = self.table.for_each_block(&[], true, |block| {
            for (at, row) in block.order.iter().enumerate() {
                told(*row, block.subjects.get(at).copied().unwrap_or(*row));
            }
            true
        });
        read.map_err(|error| read_error(&error))
    }

    /// Reports two codes and the subject of each row, as [`Self::visit_row_subjects`].
    pub fn visit_column_pair(
        &self,
        a: usize,
        b: usize,
        mut told: impl FnMut(u32, u32, u32),
    ) -> Result<(), ComputeError> {
        let mut row = 0;
        let read = self.table.for_each_block(&[a, b], false, |block| {
            for (at, (a, b)) in block.codes[0].iter().zip(&block.codes[1]).enumerate() {
                told(*a, *b, block.subjects.get(at).copied().unwrap_or(row));
                row += 1;
            }
            true
        });
        read.map_err(|error| read_error(&error))
    }

    /// Returns the number of classes by size, and any subjects in classes below k.
    pub fn class_sizes(&self, set: &AttributeSet, k: u32) -> Result<(ClassSizes, Option<u64>), ComputeError> {
        let (found, people) = self.classes_and_subjects(set, k, self.memory)?;
        match found {
            ClassQueryResult::Sizes(sizes, _) => Ok((sizes, people)),
            ClassQueryResult::Qid | ClassQueryResult::Stopped => Ok((ClassSizes::new(), people)),
        }
    }

    /// Returns support and records per value.
    pub fn column_value_sizes(&self, column: usize) -> Result<Vec<ClassSize>, ComputeError> {
        count_column_values(&self.table, column).map_err(|error| read_error(&error))
    }

    /// Judges sets; non-QIDs come with a smallest class.
    pub fn judge_with_smallest_class(
        &self,
        sets: &[AttributeSet],
        k: u32,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<Vec<SetVerdict>, ComputeError> {
        let alone = |set: &AttributeSet, memory| {
            Ok(
                match self.query_classes(
                    set,
                    ClassQuery { judge_only: true, stop, ..ClassQuery::all(k, memory) },
                    None,
                )? {
                    ClassQueryResult::Qid => SetVerdict::Qid,
                    ClassQueryResult::Sizes(_, smallest) => SetVerdict::NotQid(smallest),
                    ClassQueryResult::Stopped => SetVerdict::Stopped,
                },
            )
        };
        if self.table.subjects().is_some() {
            let told = |set: &DenseSet, cells: Option<&[SubjectCell]>| self.verdict_from_cells(set, cells, k);
            self.answer_sets(sets, true, &told, stop, &alone)
        } else {
            let told = |set: &DenseSet, cells: Option<&[RecordCell]>| self.verdict_from_cells(set, cells, k);
            self.answer_sets(sets, true, &told, stop, &alone)
        }
    }

    fn verdict_from_cells<C: ClassCell>(&self, set: &DenseSet, cells: Option<&[C]>, k: u32) -> SetVerdict {
        let Some(cells) = cells else { return SetVerdict::Stopped };
        let sizes = (0_u64..).zip(cells).map(|(key, cell)| (cell.size(), key)).filter(|(size, _)| size.records > 0);
        if sizes.clone().any(|(size, _)| size.support < k) {
            return SetVerdict::Qid;
        }
        let cardinalities: Vec<usize> = set.columns.iter().map(|c| self.table.cardinality(*c)).collect();
        let smallest = sizes.map(|(size, key)| (size.records, key)).min();
        SetVerdict::NotQid(smallest.and_then(|(records, key)| {
            Some(SmallestClass { codes: TuplePacking::new(&cardinalities).codes(key)?, records })
        }))
    }

    /// Returns the rows of classes, given by columns and codes.
    pub fn class_rows(&self, classes: &[(Vec<usize>, Vec<u32>)]) -> Result<ClassRows, ComputeError> {
        let table = self.table();
        let all: Vec<usize> = (0..table.width()).collect();
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
        let read = table.for_each_block(&all, false, |block| {
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
                found.subjects.extend(block.subjects.get(row));
                of_row.iter().for_each(|(_, number)| found.classes[*number as usize].push(rows));
                rows += 1;
            }
            true
        });
        read.map_err(|error| read_error(&error))?;
        Ok(found)
    }

    /// Returns true if `a` determines `b`.
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
        let read = table.for_each_block(&[a, b], false, |block| {
            holds = block.codes[0].iter().zip(&block.codes[1]).all(|(a, b)| {
                let known = &mut with[*a as usize];
                let fits = *known == *b || *known == u32::MAX;
                *known = *b;
                fits
            });
            holds
        });
        read.map_err(|error| read_error(&error))?;
        Ok(holds)
    }

    /// Reports records in classes below k, some repeatedly.
    fn visit_small_classes(
        &self,
        set: &AttributeSet,
        k: u32,
        without: Option<&RowSet>,
        told: &mut dyn FnMut(u32, u32),
    ) -> Result<(), ComputeError> {
        let asked = ClassQuery { excluded_rows: without, ..ClassQuery::all(k, self.memory / self.threads as u64) };
        self.query_classes(set, asked, Some(told)).map(drop)
    }

    /// Reports set index, number and subject of records in classes below k, some repeatedly.
    ///
    /// `known` are complete classes below k that may be left out. An error applies to all sets.
    pub fn visit_records_below(
        &self,
        sets: &[AttributeSet],
        known: &[RowSet],
        k: u32,
        told: &mut dyn FnMut(usize, u32, u32),
    ) -> Result<(), ComputeError> {
        sets.iter().try_for_each(|set| self.check_columns(set))?;
        let rows = self.table.rows() as u64;
        let known = |at: usize| known.get(at).filter(|known| !known.is_empty());
        let (few, many): (Vec<usize>, Vec<usize>) =
            (0..sets.len()).partition(|at| known(*at).is_some_and(|known| 2 * known.len() > rows));
        let asked: Vec<AttributeSet> = many.iter().map(|at| sets[*at].clone()).collect();
        let below = SmallClassQuery { table: &self.table, sets: &asked, k, memory: self.memory / self.threads as u64 };
        let others =
            below.report_records(&mut |at, row, person| told(many[at], row, person)).map_err(|e| read_error(&e))?;
        for at in others.into_iter().map(|at| many[at]).chain(few) {
            if known(at).is_none_or(|known| known.len() < rows) {
                self.visit_small_classes(&sets[at], k, known(at), &mut |row, person| told(at, row, person))?;
            }
        }
        Ok(())
    }

    fn check_columns(&self, set: &AttributeSet) -> Result<(), ComputeError> {
        let width = self.table.width();
        match set.last() {
            Some(attribute) if attribute >= width => Err(ComputeError::UnknownAttribute { attribute, width }),
            _ => Ok(()),
        }
    }

    fn query_classes(
        &self,
        set: &AttributeSet,
        asked: ClassQuery<'_>,
        below: Option<&mut dyn FnMut(u32, u32)>,
    ) -> Result<ClassQueryResult, ComputeError> {
        self.check_columns(set)?;
        let columns: Vec<usize> = set.iter().collect();
        count_classes(&self.table, &columns, asked, below).map_err(|error| read_error(&error))
    }

    fn classes_and_subjects(
        &self,
        set: &AttributeSet,
        k: u32,
        memory: u64,
    ) -> Result<(ClassQueryResult, Option<u64>), ComputeError> {
        let Some(people) = self.table.subjects() else {
            return Ok((self.query_classes(set, ClassQuery::all(k, memory), None)?, None));
        };
        let mut seen = vec![0_u64; people.div_ceil(64)];
        let mut tell = |_: u32, person: u32| seen[person as usize / 64] |= 1 << (person % 64);
        let found = self.query_classes(set, ClassQuery::all(k, memory), Some(&mut tell))?;
        Ok((found, Some(seen.iter().map(|word| u64::from(word.count_ones())).sum())))
    }

    fn count_one_set(&self, set: &AttributeSet, k: u32, memory: u64) -> Result<ClassSummary, ComputeError> {
        let (found, people) = self.classes_and_subjects(set, k, memory)?;
        let count = summarize_result(found, k);
        Ok(ClassSummary { subjects_below: people.unwrap_or(count.subjects_below), ..count })
    }

    /// Returns one answer per set, in order; sets not counted before `stop` have no cells. With `in_arrays`, sets that
    /// fit into arrays are counted together.
    fn answer_sets<C: ClassCell, T: Send>(
        &self,
        sets: &[AttributeSet],
        in_arrays: bool,
        told: &(dyn Fn(&DenseSet, Option<&[C]>) -> T + Sync),
        stop: &(dyn Fn() -> bool + Sync),
        alone: &(dyn Fn(&AttributeSet, u64) -> Result<T, ComputeError> + Sync),
    ) -> Result<Vec<T>, ComputeError> {
        sets.iter().try_for_each(|set| self.check_columns(set))?;
        let memory = self.memory / self.threads_for(sets) as u64;
        let (batches, others) = dense_batches::<C>(&self.table, sets, if in_arrays { memory } else { 0 });
        let of_batch = |number: usize| {
            let batch: &Vec<DenseSet> = &batches[number];
            let cells = count_batch::<C>(&self.table, batch, stop)?;
            let of = |at: usize| cells.as_ref().map(|cells| cells[at].as_slice());
            Ok(batch.iter().enumerate().map(|(at, set)| (set.index, told(set, of(at)))).collect())
        };
        self.run_tasks(sets, batches.len(), &of_batch, &others, &|set| alone(set, memory))
    }

    fn threads_for(&self, sets: &[AttributeSet]) -> usize {
        self.threads.min(sets.len()).max(1)
    }

    fn run_tasks<T: Send>(
        &self,
        sets: &[AttributeSet],
        batches: usize,
        of_batch: &(dyn Fn(usize) -> io::Result<Vec<(usize, T)>> + Sync),
        others: &[usize],
        alone: &(dyn Fn(&AttributeSet) -> Result<T, ComputeError> + Sync),
    ) -> Result<Vec<T>, ComputeError> {
        let task = |number: usize| match number.checked_sub(batches) {
            None => of_batch(number).map_err(|error| read_error(&error)),
            Some(other) => Ok(vec![(others[other], alone(&sets[others[other]])?)]),
        };
        let found = map_in_threads(self.threads, batches + others.len(), &task);
        let mut answers: Vec<(usize, T)> = Vec::with_capacity(sets.len());
        found.into_iter().try_for_each(|some| some.map(|some| answers.extend(some)))?;
        answers.sort_unstable_by_key(|(at, _)| *at);
        Ok(answers.into_iter().map(|(_, answer)| answer).collect())
    }

    fn slice_source(&self, threads: usize) -> Result<SliceSource<'_>, ComputeError> {
        let room = usize::try_from(self.memory / 2).unwrap_or(usize::MAX);
        let stride = slices::matrix_without_rows(&self.table).stride;
        if self.table.rows().saturating_mul(stride * (threads + 1)) > room {
            return Ok(SliceSource::Segments(&self.table, room / (2 * threads * stride)));
        }
        if self.resident_rows.get().is_none() {
            let read = slices::read_all_rows(&self.table).map_err(|error| read_error(&error))?;
            self.resident_rows.get_or_init(|| read);
        }
        let whole = self.resident_rows.get().map(|matrix| SliceSource::Whole(&self.table, matrix));
        Ok(whole.unwrap_or(SliceSource::Segments(&self.table, usize::MAX)))
    }

    fn judge_in_slices<C: ClassCell>(
        &self,
        rows: &SliceSource<'_>,
        sets: &[AttributeSet],
        k: u32,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<Vec<Option<bool>>, ComputeError> {
        let threads = self.threads_for(sets);
        let memory = self.memory / 2 / threads as u64;
        let (batches, others) = slices::slice_batches::<C>(rows, sets, sets.len().div_ceil(threads), memory);
        let of_batch = |number: usize| {
            let found = slices::judge_batch::<C>(rows, &batches[number], k, stop)?;
            Ok(batches[number].iter().zip(found).map(|(set, verdict)| (set.at, verdict)).collect())
        };
        let alone = |set: &AttributeSet| {
            Ok(
                match self.query_classes(
                    set,
                    ClassQuery { judge_only: true, stop, ..ClassQuery::all(k, memory) },
                    None,
                )? {
                    ClassQueryResult::Sizes(..) => Some(false),
                    ClassQueryResult::Qid => Some(true),
                    ClassQueryResult::Stopped => None,
                },
            )
        };
        self.run_tasks(sets, batches.len(), &of_batch, &others, &alone)
    }
}

fn tally_sizes<C: ClassCell>(cells: &[C]) -> ClassSizes {
    let mut sizes = ClassSizes::new();
    for size in cells.iter().map(|cell| cell.size()).filter(|size| size.records > 0) {
        *sizes.entry(size).or_default() += 1;
    }
    sizes
}

fn summarize_result(found: ClassQueryResult, k: u32) -> ClassSummary {
    match found {
        ClassQueryResult::Sizes(sizes, _) => summarize_sizes(&sizes, k),
        ClassQueryResult::Qid | ClassQueryResult::Stopped => ClassSummary::default(),
    }
}

fn read_error(error: &io::Error) -> ComputeError {
    ComputeError::Codes { reason: error.to_string() }
}

impl GroupCounter for CpuCounter<'_> {
    fn count(&self, sets: &[AttributeSet], k: u32) -> Result<Vec<ClassSummary>, ComputeError> {
        let alone = |set: &AttributeSet, memory| self.count_one_set(set, k, memory);
        let told =
            |_: &DenseSet, cells: Option<&[RecordCell]>| summarize_sizes(&tally_sizes(cells.unwrap_or_default()), k);
        // Subjects below k need a second pass per set.
        self.answer_sets(sets, self.table.subjects().is_none(), &told, &|| false, &alone)
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
        sets.iter().try_for_each(|set| self.check_columns(set))?;
        let rows = self.slice_source(self.threads_for(sets))?;
        if self.table.subjects().is_some() {
            self.judge_in_slices::<SubjectCell>(&rows, sets, k, stop)
        } else if matches!(rows, SliceSource::Segments(..)) && k <= SaturatingRecordCell::LARGEST_K {
            self.judge_in_slices::<SaturatingRecordCell>(&rows, sets, k, stop)
        } else {
            self.judge_in_slices::<RecordCell>(&rows, sets, k, stop)
        }
    }

    fn records_below(&self, set: &AttributeSet, k: u32) -> Result<Vec<u32>, ComputeError> {
        let mut rows = Vec::new();
        self.visit_small_classes(set, k, None, &mut |row, _| rows.push(row))?;
        rows.sort_unstable();
        rows.dedup();
        Ok(rows)
    }

    fn first_below(&self, set: &AttributeSet, k: u32) -> Result<Option<u32>, ComputeError> {
        let mut first: Option<u32> = None;
        self.visit_small_classes(set, k, None, &mut |row, _| first = Some(first.map_or(row, |first| first.min(row))))?;
        Ok(first)
    }
}
