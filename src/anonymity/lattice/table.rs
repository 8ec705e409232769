//! A table as the search sees it: distinct rows of codes, their attributes packed into a few composite columns.
//!
//! A policy maps every composite code to a cell of its own by one look-up, so that grouping costs as many look-ups a
//! row as there are composites, not attributes. The look-up tables of every combination of levels inside a composite
//! are made once; composites are kept small enough for that to be little memory and for a table to stay in the cache.

use super::policy::Lattice;
use crate::anonymity::domain::Domain;
use crate::anonymity::privacy::SensitiveDomain;
use rayon::slice::ParallelSliceMut;
use std::cmp::Ordering;

/// The subject of a record that counts for nobody.
pub const NOBODY: u32 = u32::MAX;

/// Records of a data set, by column; what [`Table::new`] packs.
#[derive(Clone, Debug, Default)]
pub struct Records {
    /// One column of value codes for each quasi attribute.
    pub quasi: Vec<Vec<u32>>,
    /// One column of value codes for each sensitive attribute, and the number of its values.
    pub sensitive: Vec<(Vec<u32>, usize)>,
    /// By sensitive attribute and value: leaves as `*` for want of people who have it. Empty: none does.
    pub rare: Vec<Vec<bool>>,
    /// Whom each record counts for, as dense numbers, [`NOBODY`] for nobody; none where every record counts for itself.
    pub subjects: Option<Vec<u32>>,
    /// Which records are to be released; the others only make up the population. None: all.
    pub released: Option<Vec<bool>>,
}

impl Records {
    /// Number of records, those that only make up the population counted.
    #[must_use]
    pub fn len(&self) -> usize {
        self.quasi.first().map_or(0, Vec::len)
    }

    /// Whether there are no records.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the record at `row` is to be released.
    #[must_use]
    pub fn is_released(&self, row: usize) -> bool {
        self.released.as_ref().is_none_or(|marks| marks[row])
    }
}

/// Records that are no table.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the message of a variant says what it is and names its fields")]
pub enum TableError {
    #[error("the table has no quasi attributes; give at least one attribute the role quasi")]
    NoAttributes,
    #[error("column {column} has {found} of {rows} rows, or a code that its domain does not know")]
    Column { column: usize, found: usize, rows: usize },
    #[error("the table has {rows} rows; at most {limit} are counted")]
    Rows { rows: usize, limit: usize },
}

/// Rows of codes with what they count for. A snapshot of classes is the same, with one raw row standing for a class.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rows {
    /// By composite: its code.
    pub codes: Vec<Vec<u32>>,
    /// Released records.
    pub count: Vec<u32>,
    /// All members of the population; empty where that is `count`.
    pub population: Vec<u32>,
    /// By sensitive attribute; empty where no model looks at them.
    pub sensitive: Vec<Vec<u32>>,
    /// Empty where every record counts for itself.
    pub subject: Vec<u32>,
}

impl Rows {
    pub fn len(&self) -> usize {
        self.count.len()
    }

    /// The columns that tell rows apart.
    pub fn columns(&mut self) -> impl Iterator<Item = &mut Vec<u32>> {
        let all = self.codes.iter_mut().chain(&mut self.sensitive).chain([&mut self.subject]);
        all.filter(|column| !column.is_empty())
    }

    pub fn bytes(&self) -> usize {
        let columns = self.codes.len() + self.sensitive.len() + 1;
        columns * self.len() * size_of::<u32>() + (self.population.len() + self.subject.len()) * size_of::<u32>()
    }
}

/// Some attributes as one column.
#[derive(Clone, Debug)]
pub(crate) struct Composite {
    /// Positions of the attributes, and how a code counts them: `code = Σ value · weight`.
    attributes: Vec<(usize, u32)>,
    /// Levels of each.
    heights: Vec<usize>,
    /// By combination of levels: the cell of every code, and the number of cells.
    maps: Vec<(Vec<u32>, u64)>,
}

impl Composite {
    /// Which of `maps` belongs to a policy.
    pub fn at(&self, policy: &[u8]) -> &(Vec<u32>, u64) {
        let levels = self.attributes.iter().map(|&(a, _)| policy[a] as usize);
        &self.maps[levels.zip(&self.heights).fold(0, |index, (level, &height)| index * height + level)]
    }

    /// Writes the value of each of its attributes behind a code to `values`, by attribute of the table.
    pub fn values(&self, code: u32, values: &mut [u32]) {
        let mut rest = code;
        for &(attribute, weight) in &self.attributes {
            values[attribute] = rest / weight;
            rest %= weight;
        }
    }

    /// Adds, for each attribute, the `counts` of this composite's cells at `policy` to the attribute's cells.
    pub fn spread(&self, policy: &[u8], domains: &[Domain], counts: &[u64], into: &mut [Vec<u64>]) {
        for (cell, &count) in counts.iter().enumerate().filter(|&(_, &count)| count > 0) {
            let mut rest = cell;
            // The first attribute counts highest.
            for &(attribute, _) in self.attributes.iter().rev() {
                let cells = domains[attribute].levels()[policy[attribute] as usize].cells();
                into[attribute][rest % cells] += count;
                rest /= cells;
            }
        }
    }

    /// The cell of composite code `code` is `Σ cell_of(value) · cells of the attributes after it`.
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

/// Codes of a composite of several attributes at most, and entries of its maps.
const COMPOSITE_CODES: usize = 1 << 11;
const COMPOSITE_ENTRIES: usize = 1 << 16;

/// Which attributes share a column: the smallest first, as long as a column stays small.
fn packed(domains: &[Domain]) -> Vec<Vec<usize>> {
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

/// A table, packed.
#[derive(Clone, Debug)]
pub struct Table {
    domains: Vec<Domain>,
    pub(super) composites: Vec<Composite>,
    pub(super) rows: Rows,
    sensitive: Vec<SensitiveDomain>,
    /// By attribute: released records by value.
    counts: Vec<Vec<u64>>,
    records: u64,
    pub(super) allowed: Allowance,
}

/// What a search may hold beside the rows of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowance {
    /// Bytes of classes that are kept to roll others up from. The last of them may pass that by `making`.
    pub anchors: usize,
    /// Bytes that a thread may take to make such classes: those from which more would be made stand in for them.
    pub making: usize,
    /// Classes of an array, for each row; where there are more, a table numbers them.
    pub cells_a_row: u64,
}

impl Default for Allowance {
    fn default() -> Self {
        Self { anchors: 512 << 20, making: usize::MAX, cells_a_row: 8 }
    }
}

impl Table {
    /// Packs `records` whose quasi attributes have these `domains`, in the same order.
    ///
    /// Memory: 4 bytes a distinct row for each composite and each sensitive attribute, and 4 for the count.
    ///
    /// # Errors
    /// When there is no attribute, a column has another length or unknown codes, or there are 2³² rows or more.
    pub fn new(domains: Vec<Domain>, records: &Records) -> Result<Self, TableError> {
        let rows = records.quasi.first().ok_or(TableError::NoAttributes)?.len();
        if rows >= u32::MAX as usize {
            return Err(TableError::Rows { rows, limit: u32::MAX as usize - 1 });
        }
        let known = (records.quasi.iter().zip(&domains).map(|(column, domain)| (column, domain.values())))
            .chain(records.sensitive.iter().map(|(column, values)| (column, *values)));
        for (column, (codes, values)) in known.enumerate() {
            if codes.len() != rows || codes.iter().any(|&code| code as usize >= values) {
                return Err(TableError::Column { column, found: codes.len(), rows });
            }
        }
        let lengths = [records.subjects.as_ref().map(Vec::len), records.released.as_ref().map(Vec::len)];
        if let Some(found) = lengths.into_iter().flatten().find(|&found| found != rows) {
            return Err(TableError::Column { column: domains.len() + records.sensitive.len(), found, rows });
        }
        if records.quasi.len() != domains.len() {
            return Err(TableError::Column { column: domains.len(), found: 0, rows });
        }
        let released = |row: usize| records.is_released(row);
        let count = |column: &[u32], values: usize| {
            let mut counts = vec![0u64; values];
            for (row, &code) in column.iter().enumerate() {
                counts[code as usize] += u64::from(released(row));
            }
            counts
        };
        let composites = composites_of(&domains);
        let counts =
            records.quasi.iter().zip(&domains).map(|(column, domain)| count(column, domain.values())).collect();
        let sensitive = records.sensitive.iter().enumerate().map(|(at, (column, values))| SensitiveDomain {
            counts: count(column, *values),
            rare: records.rare.get(at).cloned().unwrap_or_default(),
        });
        let sensitive = sensitive.collect();
        let total = (0..rows).filter(|&row| released(row)).count() as u64;
        let mut rows = undivided(records, &composites);
        compact(&mut rows, 0);
        Ok(Self { domains, composites, rows, sensitive, counts, records: total, allowed: Allowance::default() })
    }

    /// A table of rows that have been packed by `composites` of these `domains`, distinct and in their order.
    pub(super) fn of_rows(
        (domains, composites): (Vec<Domain>, Vec<Composite>),
        rows: Rows,
        sensitive: Vec<SensitiveDomain>,
        counts: Vec<Vec<u64>>,
        records: u64,
    ) -> Self {
        Self { domains, composites, rows, sensitive, counts, records, allowed: Allowance::default() }
    }

    /// The same table, whose searches may hold so much.
    #[must_use]
    pub fn allowing(self, allowed: Allowance) -> Self {
        Self { allowed, ..self }
    }

    /// Says which values leave as `*`, by sensitive attribute and value.
    pub fn set_rare(&mut self, rare: &[Vec<bool>]) {
        for (domain, rare) in self.sensitive.iter_mut().zip(rare) {
            domain.rare.clone_from(rare);
        }
    }

    /// The table of some of its rows, in their order: t-closeness compares with the sensitive values of all of them.
    #[must_use]
    pub(super) fn only(&self, rows: &[u32]) -> Self {
        let taken = |column: &Vec<u32>| -> Vec<u32> {
            if column.is_empty() { Vec::new() } else { rows.iter().map(|&row| column[row as usize]).collect() }
        };
        let all = &self.rows;
        let rows = Rows {
            codes: all.codes.iter().map(taken).collect(),
            count: taken(&all.count),
            population: taken(&all.population),
            sensitive: all.sensitive.iter().map(taken).collect(),
            subject: taken(&all.subject),
        };
        let mut counts: Vec<Vec<u64>> = self.domains.iter().map(|domain| vec![0; domain.values()]).collect();
        let mut values = vec![0; self.domains.len()];
        for (row, &records) in rows.count.iter().enumerate() {
            values_of(&self.composites, &rows.codes, row, &mut values);
            counts.iter_mut().zip(&values).for_each(|(counts, &value)| counts[value as usize] += u64::from(records));
        }
        Self {
            domains: self.domains.clone(),
            composites: self.composites.clone(),
            records: rows.count.iter().map(|&count| u64::from(count)).sum(),
            rows,
            sensitive: self.sensitive.clone(),
            counts,
            allowed: self.allowed,
        }
    }

    /// Writes the value of each attribute in a distinct row to `values`.
    pub fn values(&self, row: u32, values: &mut [u32]) {
        values_of(&self.composites, &self.rows.codes, row as usize, values);
    }

    /// The domains of the quasi attributes, in the order of a policy.
    #[must_use]
    pub fn domains(&self) -> &[Domain] {
        &self.domains
    }

    /// The sensitive attributes, with their values in the released records.
    #[must_use]
    pub fn sensitive(&self) -> &[SensitiveDomain] {
        &self.sensitive
    }

    /// Records to be released.
    #[must_use]
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Distinct rows.
    #[must_use]
    pub fn distinct_rows(&self) -> usize {
        self.rows.len()
    }

    /// Hands over every distinct tuple of quasi values that is to be released: its records, and whom they count for, one or more times each,
    /// where the rows know it.
    pub fn each_raw_tuple(&self, visit: &mut dyn FnMut(u64, &mut dyn Iterator<Item = u32>)) {
        let rows = &self.rows;
        let mut start = 0;
        for at in 1..=rows.len() {
            // They are in the order of their codes.
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

    /// Whether records count for people, and not each for itself.
    #[must_use]
    pub fn has_subjects(&self) -> bool {
        !self.rows.subject.is_empty()
    }

    /// Bytes of the distinct rows.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.rows.bytes()
    }

    /// By attribute: released records by value.
    #[must_use]
    pub fn counts(&self) -> &[Vec<u64>] {
        &self.counts
    }

    /// All policies of the table.
    #[must_use]
    pub fn lattice(&self) -> Lattice {
        Lattice::new(self.domains.iter().map(Domain::top).collect::<Vec<u8>>())
    }
}

/// Writes the value of each attribute in a row of composite `codes` to `values`.
pub(super) fn values_of(composites: &[Composite], codes: &[Vec<u32>], row: usize, values: &mut [u32]) {
    for (composite, codes) in composites.iter().zip(codes) {
        composite.values(codes[row], values);
    }
}

/// The composites of attributes with these domains.
pub(super) fn composites_of(domains: &[Domain]) -> Vec<Composite> {
    packed(domains).iter().map(|attributes| Composite::new(attributes, domains)).collect()
}

/// Every record as a row of its own, in order.
pub(crate) fn undivided(records: &Records, composites: &[Composite]) -> Rows {
    let rows = records.quasi.first().map_or(0, Vec::len);
    let codes = |composite: &Composite| {
        let mut codes = vec![0u32; rows];
        for &(attribute, weight) in &composite.attributes {
            for (code, &value) in codes.iter_mut().zip(&records.quasi[attribute]) {
                *code += value * weight;
            }
        }
        codes
    };
    let released = |marks: &Vec<bool>| marks.iter().map(|&mark| u32::from(mark)).collect();
    Rows {
        codes: composites.iter().map(codes).collect(),
        count: records.released.as_ref().map_or_else(|| vec![1; rows], released),
        population: if records.released.is_some() { vec![1; rows] } else { Vec::new() },
        sensitive: records.sensitive.iter().map(|(column, _)| column.clone()).collect(),
        subject: records.subjects.clone().unwrap_or_default(),
    }
}

/// Makes rows distinct, in the order of their codes: the first `known` of them are already. Gives how many there are then.
pub(super) fn compact(rows: &mut Rows, known: usize) -> usize {
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
    let order = merged(known, &new, compare);
    drop(new);
    let is_first = |at: usize| at == 0 || compare(order[at - 1], order[at]).is_ne();
    let first: Vec<bool> = (0..order.len()).map(is_first).collect();
    drop(compared);
    let distinct = first.iter().filter(|first| **first).count();
    for column in rows.columns() {
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

/// The first `known` rows, which are in order, and `new` ones, which name theirs.
fn merged(known: u32, new: &[u32], compare: impl Fn(u32, u32) -> Ordering) -> Vec<u32> {
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
