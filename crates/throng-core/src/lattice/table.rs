//! Distinct rows of codes, with attributes packed into a few composite columns that fit into the cache.

use super::policy::Lattice;
use crate::domain::Domain;
use crate::privacy::SensitiveDomain;
use rayon::slice::ParallelSliceMut;
use std::cmp::Ordering;

/// Subject of a record that counts for no subject.
pub const UNCOUNTED_SUBJECT: u32 = u32::MAX;

/// Records by column: the input of [`LatticeTable::new`].
#[derive(Clone, Debug, Default)]
pub struct TableRecords {
    /// Value codes by quasi attribute.
    pub quasi: Vec<Vec<u32>>,
    /// Value codes and number of values, by sensitive attribute.
    pub sensitive: Vec<(Vec<u32>, usize)>,
    /// Values of too few subjects, released as `*`. Empty: none.
    pub rare: Vec<Vec<bool>>,
    /// Dense subject number or [`UNCOUNTED_SUBJECT`]. None: each record counts for itself.
    pub subjects: Option<Vec<u32>>,
    /// Records to be released. None: all.
    pub released: Option<Vec<bool>>,
}

impl TableRecords {
    /// Number of records, with the population.
    #[must_use]
    pub fn len(&self) -> usize {
        self.quasi.first().map_or(0, Vec::len)
    }

    /// Returns true if there are no records.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns true if the record at `row` is to be released.
    #[must_use]
    pub fn is_released(&self, row: usize) -> bool {
        self.released.as_ref().is_none_or(|marks| marks[row])
    }
}

/// Reasons why records do not form a table.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages document the variants and their fields")]
pub enum LatticeTableError {
    #[error("the table has no quasi attributes; give at least one attribute the role quasi")]
    NoAttributes,
    #[error("column {column} has {found} of {rows} rows, or a code outside its domain")]
    Column { column: usize, found: usize, rows: usize },
    #[error("the table has {rows} rows; the maximum is {limit}")]
    Rows { rows: usize, limit: usize },
}

/// Rows of codes with their counts, or classes with one raw row each.
#[derive(Clone, Debug, Default)]
pub(crate) struct CodedRows {
    /// By composite.
    pub codes: Vec<Vec<u32>>,
    /// Released records.
    pub count: Vec<u32>,
    /// Empty: equal to `count`.
    pub population: Vec<u32>,
    /// By sensitive attribute. Empty if unused.
    pub sensitive: Vec<Vec<u32>>,
    /// Empty if each record counts for itself.
    pub subject: Vec<u32>,
}

impl CodedRows {
    pub fn len(&self) -> usize {
        self.count.len()
    }

    pub fn distinguishing_columns(&mut self) -> impl Iterator<Item = &mut Vec<u32>> {
        let all = self.codes.iter_mut().chain(&mut self.sensitive).chain([&mut self.subject]);
        all.filter(|column| !column.is_empty())
    }

    pub fn bytes(&self) -> usize {
        let columns = self.codes.len() + self.sensitive.len() + 1;
        columns * self.len() * size_of::<u32>() + (self.population.len() + self.subject.len()) * size_of::<u32>()
    }
}

#[derive(Clone, Debug)]
pub(crate) struct CompositeColumn {
    /// Position and weight: `code = Σ value · weight`.
    attributes: Vec<(usize, u32)>,
    heights: Vec<usize>,
    /// Cells by code and their number, by combination of levels.
    maps: Vec<(Vec<u32>, u64)>,
}

impl CompositeColumn {
    pub fn level_map(&self, policy: &[u8]) -> &(Vec<u32>, u64) {
        let levels = self.attributes.iter().map(|&(a, _)| policy[a] as usize);
        &self.maps[levels.zip(&self.heights).fold(0, |index, (level, &height)| index * height + level)]
    }

    pub fn values(&self, code: u32, values: &mut [u32]) {
        let mut rest = code;
        for &(attribute, weight) in &self.attributes {
            values[attribute] = rest / weight;
            rest %= weight;
        }
    }

    /// Adds counts of cells at `policy` to those of each attribute.
    pub fn add_attribute_counts(&self, policy: &[u8], domains: &[Domain], counts: &[u64], into: &mut [Vec<u64>]) {
        for (cell, &count) in counts.iter().enumerate().filter(|&(_, &count)| count > 0) {
            let mut rest = cell;
            // The first attribute is the most significant.
            for &(attribute, _) in self.attributes.iter().rev() {
                let cells = domains[attribute].levels()[policy[attribute] as usize].cells();
                into[attribute][rest % cells] += count;
                rest /= cells;
            }
        }
    }

    /// Σ cell of the value · cells of the attributes after it, by code.
    fn new(attributes: &[usize], domains: &[Domain]) -> Self {
        let mut weighted: Vec<(usize, u32)> = Vec::new();
        let mut weight = 1;
        for &attribute in attributes.iter().rev() {
            weighted.push((attribute, weight));
            weight *= domains[attribute].values().max(1) as u32;
        }
        weighted.reverse();
        let heights: Vec<usize> = attributes.iter().map(|&a| domains[a].levels().len()).collect();
        let combinations: usize = heights.iter().product();
        let maps = (0..combinations).map(|index| Self::map(attributes, &heights, domains, index)).collect();
        Self { attributes: weighted, heights, maps }
    }

    fn map(attributes: &[usize], heights: &[usize], domains: &[Domain], index: usize) -> (Vec<u32>, u64) {
        let mut rest = index;
        let mut levels = vec![0; heights.len()];
        for (level, &height) in levels.iter_mut().zip(heights).rev() {
            *level = rest % height;
            rest /= height;
        }
        let mut map = vec![0u32];
        let mut cells = 1u64;
        for (&attribute, &level) in attributes.iter().zip(&levels) {
            let level = &domains[attribute].levels()[level];
            let width = level.cells() as u32;
            map = map.iter().flat_map(|&before| level.cell_of.iter().map(move |&c| before * width + c)).collect();
            cells *= u64::from(width.max(1));
        }
        (map, cells)
    }
}

const COMPOSITE_CODES: usize = 1 << 11;
const COMPOSITE_ENTRIES: usize = 1 << 16;

/// Most values first, to the first composite that stays small.
fn assign_composites(domains: &[Domain]) -> Vec<Vec<usize>> {
    let mut order: Vec<usize> = (0..domains.len()).collect();
    order.sort_by_key(|&a| (std::cmp::Reverse(domains[a].values()), a));
    let mut columns: Vec<(Vec<usize>, usize, usize)> = Vec::new();
    for attribute in order {
        let (values, height) = (domains[attribute].values().max(1), domains[attribute].levels().len());
        let fits = |codes: usize, maps: usize| {
            codes * values <= COMPOSITE_CODES && codes * values * maps * height <= COMPOSITE_ENTRIES
        };
        match columns.iter_mut().find(|(_, codes, maps)| fits(*codes, *maps)) {
            Some((column, codes, maps)) => {
                column.push(attribute);
                *codes *= values;
                *maps *= height;
            }
            None => columns.push((vec![attribute], values, height)),
        }
    }
    columns.into_iter().map(|(column, ..)| column).collect()
}

/// Packed table.
#[derive(Clone, Debug)]
pub struct LatticeTable {
    domains: Vec<Domain>,
    pub(super) composites: Vec<CompositeColumn>,
    pub(super) rows: CodedRows,
    sensitive: Vec<SensitiveDomain>,
    counts: Vec<Vec<u64>>,
    records: u64,
    pub(super) search_memory: SearchMemoryLimits,
}

/// Memory of a search, without the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SearchMemoryLimits {
    /// Bytes of kept anchors; exceeded by at most `anchor_build_bytes`.
    pub anchor_bytes: usize,
    /// Bytes per thread to build an anchor.
    pub anchor_build_bytes: usize,
    /// Array classes per row; more need a hash table.
    pub max_array_classes_per_row: u64,
}

impl Default for SearchMemoryLimits {
    fn default() -> Self {
        Self { anchor_bytes: 512 << 20, anchor_build_bytes: usize::MAX, max_array_classes_per_row: 8 }
    }
}

impl LatticeTable {
    /// Packs `records` with these quasi `domains`, in the same order.
    ///
    /// Memory per distinct row: 4 bytes for each composite, each sensitive attribute and the count.
    ///
    /// # Errors
    /// When there are no quasi attributes or too many rows, or a column has a wrong length or an unknown code.
    pub fn new(domains: Vec<Domain>, records: &TableRecords) -> Result<Self, LatticeTableError> {
        let rows = records.quasi.first().ok_or(LatticeTableError::NoAttributes)?.len();
        if rows >= u32::MAX as usize {
            return Err(LatticeTableError::Rows { rows, limit: u32::MAX as usize - 1 });
        }
        let known = (records.quasi.iter().zip(&domains).map(|(column, domain)| (column, domain.values())))
            .chain(records.sensitive.iter().map(|(column, values)| (column, *values)));
        for (column, (codes, values)) in known.enumerate() {
            if codes.len() != rows || codes.iter().any(|&code| code as usize >= values) {
                return Err(LatticeTableError::Column { column, found: codes.len(), rows });
            }
        }
        let lengths = [records.subjects.as_ref().map(Vec::len), records.released.as_ref().map(Vec::len)];
        if let Some(found) = lengths.into_iter().flatten().find(|&found| found != rows) {
            return Err(LatticeTableError::Column { column: domains.len() + records.sensitive.len(), found, rows });
        }
        if records.quasi.len() != domains.len() {
            return Err(LatticeTableError::Column { column: domains.len(), found: 0, rows });
        }
        let released = |row: usize| records.is_released(row);
        let count = |column: &[u32], values: usize| {
            let mut counts = vec![0u64; values];
            for (row, &code) in column.iter().enumerate() {
                counts[code as usize] += u64::from(released(row));
            }
            counts
        };
        let composites = build_composites(&domains);
        let counts =
            records.quasi.iter().zip(&domains).map(|(column, domain)| count(column, domain.values())).collect();
        let sensitive = records.sensitive.iter().enumerate().map(|(at, (column, values))| SensitiveDomain {
            counts: count(column, *values),
            rare: records.rare.get(at).cloned().unwrap_or_default(),
        });
        let sensitive = sensitive.collect();
        let total = (0..rows).filter(|&row| released(row)).count() as u64;
        let mut rows = rows_from_records(records, &composites);
        merge_equal_rows(&mut rows, 0);
        Ok(Self {
            domains,
            composites,
            rows,
            sensitive,
            counts,
            records: total,
            search_memory: SearchMemoryLimits::default(),
        })
    }

    pub(super) fn from_packed_rows(
        (domains, composites): (Vec<Domain>, Vec<CompositeColumn>),
        rows: CodedRows,
        sensitive: Vec<SensitiveDomain>,
        counts: Vec<Vec<u64>>,
        records: u64,
    ) -> Self {
        Self { domains, composites, rows, sensitive, counts, records, search_memory: SearchMemoryLimits::default() }
    }

    /// Sets the search memory.
    #[must_use]
    pub fn with_search_memory(self, allowed: SearchMemoryLimits) -> Self {
        Self { search_memory: allowed, ..self }
    }

    /// Sets the values released as `*`.
    pub fn set_rare(&mut self, rare: &[Vec<bool>]) {
        for (domain, rare) in self.sensitive.iter_mut().zip(rare) {
            domain.rare.clone_from(rare);
        }
    }

    /// Keeps the order; t-closeness still compares with all rows.
    #[must_use]
    pub(super) fn select_distinct_rows(&self, rows: &[u32]) -> Self {
        let taken = |column: &Vec<u32>| -> Vec<u32> {
            if column.is_empty() { Vec::new() } else { rows.iter().map(|&row| column[row as usize]).collect() }
        };
        let all = &self.rows;
        let rows = CodedRows {
            codes: all.codes.iter().map(taken).collect(),
            count: taken(&all.count),
            population: taken(&all.population),
            sensitive: all.sensitive.iter().map(taken).collect(),
            subject: taken(&all.subject),
        };
        let mut counts: Vec<Vec<u64>> = self.domains.iter().map(|domain| vec![0; domain.values()]).collect();
        let mut values = vec![0; self.domains.len()];
        for (row, &records) in rows.count.iter().enumerate() {
            row_attribute_values(&self.composites, &rows.codes, row, &mut values);
            counts.iter_mut().zip(&values).for_each(|(counts, &value)| counts[value as usize] += u64::from(records));
        }
        Self {
            domains: self.domains.clone(),
            composites: self.composites.clone(),
            records: rows.count.iter().map(|&count| u64::from(count)).sum(),
            rows,
            sensitive: self.sensitive.clone(),
            counts,
            search_memory: self.search_memory,
        }
    }

    /// Writes the attribute values of a distinct row.
    pub fn values(&self, row: u32, values: &mut [u32]) {
        row_attribute_values(&self.composites, &self.rows.codes, row as usize, values);
    }

    /// Domains of the quasi attributes.
    #[must_use]
    pub fn domains(&self) -> &[Domain] {
        &self.domains
    }

    /// Sensitive attributes.
    #[must_use]
    pub fn sensitive(&self) -> &[SensitiveDomain] {
        &self.sensitive
    }

    /// Number of records to be released.
    #[must_use]
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Number of distinct rows.
    #[must_use]
    pub fn distinct_rows(&self) -> usize {
        self.rows.len()
    }

    /// Visits every distinct quasi tuple to be released, with its records and possibly repeated subjects.
    pub fn visit_raw_tuples(&self, visit: &mut dyn FnMut(u64, &mut dyn Iterator<Item = u32>)) {
        let rows = &self.rows;
        let mut start = 0;
        for at in 1..=rows.len() {
            // Rows are in code order.
            if at < rows.len() && rows.codes.iter().all(|codes| codes[at] == codes[at - 1]) {
                continue;
            }
            let counts = &rows.count[start..at];
            let records = counts.iter().map(|&count| u64::from(count)).sum();
            let subjects = rows.subject.iter().take(at).skip(start);
            if records > 0 {
                visit(records, &mut subjects.zip(counts).filter(|(_, count)| **count > 0).map(|(&subject, _)| subject));
            }
            start = at;
        }
    }

    /// Returns true if records count for subjects.
    #[must_use]
    pub fn has_subjects(&self) -> bool {
        !self.rows.subject.is_empty()
    }

    /// Bytes of the distinct rows.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.rows.bytes()
    }

    /// Released records, by attribute and value.
    #[must_use]
    pub fn counts(&self) -> &[Vec<u64>] {
        &self.counts
    }

    /// Lattice of all policies.
    #[must_use]
    pub fn lattice(&self) -> Lattice {
        Lattice::new(self.domains.iter().map(Domain::top).collect::<Vec<u8>>())
    }
}

pub(super) fn row_attribute_values(composites: &[CompositeColumn], codes: &[Vec<u32>], row: usize, values: &mut [u32]) {
    for (composite, codes) in composites.iter().zip(codes) {
        composite.values(codes[row], values);
    }
}

pub(super) fn build_composites(domains: &[Domain]) -> Vec<CompositeColumn> {
    assign_composites(domains).iter().map(|attributes| CompositeColumn::new(attributes, domains)).collect()
}

pub(crate) fn rows_from_records(records: &TableRecords, composites: &[CompositeColumn]) -> CodedRows {
    let rows = records.quasi.first().map_or(0, Vec::len);
    let codes = |composite: &CompositeColumn| {
        let mut codes = vec![0u32; rows];
        for &(attribute, weight) in &composite.attributes {
            for (code, &value) in codes.iter_mut().zip(&records.quasi[attribute]) {
                *code += value * weight;
            }
        }
        codes
    };
    let released = |marks: &Vec<bool>| marks.iter().map(|&mark| u32::from(mark)).collect();
    CodedRows {
        codes: composites.iter().map(codes).collect(),
        count: records.released.as_ref().map_or_else(|| vec![1; rows], released),
        population: if records.released.is_some() { vec![1; rows] } else { Vec::new() },
        sensitive: records.sensitive.iter().map(|(column, _)| column.clone()).collect(),
        subject: records.subjects.clone().unwrap_or_default(),
    }
}

/// Sorts and merges rows of which the first `known` are ready; returns the number of distinct rows.
pub(super) fn merge_equal_rows(rows: &mut CodedRows, known: usize) -> usize {
    let compared: Vec<&[u32]> = {
        let others = rows.sensitive.iter().chain([&rows.subject]).filter(|column| !column.is_empty());
        rows.codes.iter().chain(others).map(Vec::as_slice).collect()
    };
    let compare = |a: u32, b: u32| -> Ordering {
        let differing = compared.iter().map(|column| column[a as usize].cmp(&column[b as usize]));
        differing.fold(Ordering::Equal, Ordering::then)
    };
    let known = known as u32;
    let mut new: Vec<u32> = (known..rows.len() as u32).collect();
    new.par_sort_unstable_by(|&a, &b| compare(a, b));
    let order = merge_sorted_rows(known, &new, compare);
    drop(new);
    let is_first = |at: usize| at == 0 || compare(order[at - 1], order[at]).is_ne();
    let first: Vec<bool> = (0..order.len()).map(is_first).collect();
    drop(compared);
    let distinct = first.iter().filter(|first| **first).count();
    for column in rows.distinguishing_columns() {
        let mut taken = Vec::with_capacity(distinct);
        taken.extend(order.iter().zip(&first).filter(|(_, first)| **first).map(|(&row, _)| column[row as usize]));
        *column = taken;
    }
    for column in [&mut rows.count, &mut rows.population].into_iter().filter(|column| !column.is_empty()) {
        let mut sums: Vec<u32> = Vec::with_capacity(distinct);
        for (&row, first) in order.iter().zip(&first) {
            let number = column[row as usize];
            match sums.last_mut() {
                Some(last) if !first => *last += number,
                _ => sums.push(number),
            }
        }
        *column = sums;
    }
    distinct
}

fn merge_sorted_rows(known: u32, new: &[u32], compare: impl Fn(u32, u32) -> Ordering) -> Vec<u32> {
    let mut order = Vec::with_capacity(known as usize + new.len());
    let mut old = 0;
    for &row in new {
        while old < known && compare(old, row).is_le() {
            order.push(old);
            old += 1;
        }
        order.push(row);
    }
    order.extend(old..known);
    order
}
