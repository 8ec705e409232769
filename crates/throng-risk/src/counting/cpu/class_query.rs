//! Counts the classes of one column set, in as many row partitions as memory requires. Partitions share no class.

use super::class_cells::{ClassCell, ClassSize, ClassSizes, RecordCell, SubjectCell, fits_dense_array};
use super::tuple_keys::{FoldBuildHasher, NumberedRows, TupleNumbers, TuplePacking, TuplePartition};
use crate::counting::RowSet;
use crate::counting::codes::{CodeBlock, CodeTable};
use hashbrown::HashMap;
use std::io;

/// Takes precedence over the memory bound.
const MAX_PARTITIONS: u64 = 1 << 14;

#[derive(Clone, Copy)]
pub(super) struct ClassQuery<'a> {
    /// Above 0 with `judge_only`.
    pub k: u32,
    /// Only decides if some class is below k.
    pub judge_only: bool,
    pub memory: u64,
    /// Only whole classes.
    pub excluded_rows: Option<&'a RowSet>,
    pub stop: &'a (dyn Fn() -> bool + Sync),
}

impl ClassQuery<'static> {
    pub fn all(k: u32, memory: u64) -> Self {
        Self { k, judge_only: false, memory, excluded_rows: None, stop: &|| false }
    }
}

/// Class with the fewest records.
#[derive(Clone, Debug)]
pub struct SmallestClass {
    /// Codes, in column order.
    pub codes: Vec<u32>,
    /// Records.
    pub records: u32,
}

pub(super) enum ClassQueryResult {
    /// All classes, and one of fewest records if decodable. With `judge_only`, none is below k.
    Sizes(ClassSizes, Option<SmallestClass>),
    Qid,
    Stopped,
}

/// The callback receives number and subject of records in classes below k, some repeatedly.
pub(super) fn count_classes(
    table: &CodeTable,
    columns: &[usize],
    asked: ClassQuery<'_>,
    below: Option<&mut dyn FnMut(u32, u32)>,
) -> io::Result<ClassQueryResult> {
    let cardinalities: Vec<usize> = columns.iter().map(|column| table.cardinality(*column)).collect();
    let counting = ClassQueryRun { table, columns, packing: TuplePacking::new(&cardinalities), query: asked };
    if table.subjects().is_some() { counting.run::<SubjectCell>(below) } else { counting.run::<RecordCell>(below) }
}

pub(super) fn count_column_values(table: &CodeTable, column: usize) -> io::Result<Vec<ClassSize>> {
    let mut cells = vec![SubjectCell::default(); table.cardinality(column)];
    let named = table.subjects().is_some();
    let mut row = 0_u32;
    table.for_each_block(&[column], false, |block| {
        for (at, code) in block.codes[0].iter().enumerate() {
            row = row.wrapping_add(1);
            cells[*code as usize].add(if named { block.subjects[at] + 1 } else { row });
        }
        true
    })?;
    Ok(cells.into_iter().map(ClassCell::size).collect())
}

struct ClassQueryRun<'a> {
    table: &'a CodeTable,
    columns: &'a [usize],
    packing: TuplePacking,
    query: ClassQuery<'a>,
}

enum ClassStore<C> {
    Cells(Vec<C>),
    Tuples(HashMap<u64, C, FoldBuildHasher>),
}

enum PartitionResult<C> {
    Counted(ClassStore<C>, Vec<TupleNumbers>),
    /// Number of rows read at the memory limit.
    Full(u64),
    Qid,
    Stopped,
}

impl ClassQueryRun<'_> {
    /// A growing map exists twice.
    fn max_tuples<C>(&self) -> usize {
        usize::try_from(self.query.memory / (4 * (size_of::<(u64, C)>() as u64 + 1))).unwrap_or(usize::MAX).max(16)
    }

    fn run<C: ClassCell>(&self, mut below: Option<&mut dyn FnMut(u32, u32)>) -> io::Result<ClassQueryResult> {
        let mut partitions = 1;
        'anew: loop {
            let of = partitions;
            let mut sizes: HashMap<ClassSize, u64> = HashMap::new();
            let (mut classes, mut smallest) = (0, None);
            for number in 0..of {
                let partition = TuplePartition { number, of, excluded_rows: self.query.excluded_rows };
                let (store, mut interned) = match self.count_partition::<C>(partition, classes)? {
                    PartitionResult::Counted(store, interned) => (store, interned),
                    PartitionResult::Qid => return Ok(ClassQueryResult::Qid),
                    PartitionResult::Stopped => return Ok(ClassQueryResult::Stopped),
                    PartitionResult::Full(seen) => {
                        // Assumes a constant rate of new tuples.
                        let times = (self.table.rows() as u64 + seen / 4) / seen.max(1) + 1;
                        partitions = (of * times.clamp(2, 64)).min(MAX_PARTITIONS);
                        continue 'anew;
                    }
                };
                classes += store.visit_classes(|key, size| {
                    *sizes.entry(size).or_default() += 1;
                    // Makes map order irrelevant.
                    smallest = Some((size.records, key)).into_iter().chain(smallest).min();
                });
                if self.query.judge_only && sizes.keys().any(|size| size.support < self.query.k) {
                    return Ok(ClassQueryResult::Qid);
                }
                if let Some(below) = &mut below
                    && !self.report_small_classes(&store, partition, &mut interned, *below)?
                {
                    return Ok(ClassQueryResult::Stopped);
                }
            }
            let told = |(records, key)| Some(SmallestClass { codes: self.packing.codes(key)?, records });
            return Ok(ClassQueryResult::Sizes(sizes.into_iter().collect(), smallest.and_then(told)));
        }
    }

    fn count_partition<C: ClassCell>(
        &self,
        partition: TuplePartition<'_>,
        classes: u64,
    ) -> io::Result<PartitionResult<C>> {
        let ClassQuery { k, judge_only: judging, stop, memory, excluded_rows: without } = self.query;
        let rows = self.table.rows() as u64;
        let most = if partition.of >= MAX_PARTITIONS { usize::MAX } else { self.max_tuples::<C>() };
        // With more classes, one of them is below k.
        let classes_of_k = rows.checked_div(u64::from(k)).unwrap_or(u64::MAX);
        let enough = if judging { classes_of_k.saturating_sub(classes) } else { u64::MAX };
        let cells =
            self.packing.domain().filter(|domain| partition.of == 1 && fits_dense_array::<C>(*domain, rows, memory));
        let mut store = match cells {
            Some(domain) => ClassStore::Cells(vec![C::default(); domain as usize]),
            None => ClassStore::Tuples(HashMap::default()),
        };
        let (mut numbered, mut interned) = (NumberedRows::default(), self.packing.empty_tuple_numbers());
        let (mut ended, mut row) = (None, 0_u32);
        self.table.for_each_block(self.columns, without.is_some(), |block| {
            if stop() {
                ended = Some(PartitionResult::Stopped);
                return false;
            }
            if self.packing.number_rows(block, partition, &mut interned, most, &mut numbered).is_err() {
                ended = Some(PartitionResult::Full(u64::from(row) + block.rows() as u64));
                return false;
            }
            let person =
                |at: &u32| block.subjects.get(*at as usize).map_or(row.wrapping_add(*at), |person| *person + 1);
            let each = numbered.keys.iter().zip(&numbered.rows);
            match &mut store {
                ClassStore::Cells(cells) => each.for_each(|(key, at)| cells[*key as usize].add(person(at))),
                ClassStore::Tuples(tuples) => {
                    each.for_each(|(key, at)| tuples.entry(*key).or_default().add(person(at)));
                    if tuples.len() as u64 > enough {
                        ended = Some(PartitionResult::Qid);
                    } else if tuples.len() > most {
                        ended = Some(PartitionResult::Full(u64::from(row) + block.rows() as u64));
                    }
                }
            }
            row = row.wrapping_add(block.rows() as u32);
            ended.is_none()
        })?;
        Ok(ended.unwrap_or(PartitionResult::Counted(store, interned)))
    }

    fn report_small_classes<C: ClassCell>(
        &self,
        store: &ClassStore<C>,
        partition: TuplePartition<'_>,
        interned: &mut [TupleNumbers],
        below: &mut dyn FnMut(u32, u32),
    ) -> io::Result<bool> {
        let mut numbered = NumberedRows::default();
        let mut goes_on = true;
        self.table.for_each_block(self.columns, true, |block: &CodeBlock| {
            goes_on = !(self.query.stop)();
            if self.packing.number_rows(block, partition, interned, usize::MAX, &mut numbered).is_ok() {
                for (key, at) in numbered.keys.iter().zip(&numbered.rows) {
                    if store.size(*key).support < self.query.k {
                        let row = block.order[*at as usize];
                        below(row, block.subjects.get(*at as usize).copied().unwrap_or(row));
                    }
                }
            }
            goes_on
        })?;
        Ok(goes_on)
    }
}

impl<C: ClassCell> ClassStore<C> {
    fn visit_classes(&self, mut visit: impl FnMut(u64, ClassSize)) -> u64 {
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
