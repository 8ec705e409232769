//! The cells of a group, and what is counted of them for as long as they do not change: labels, and records by what they are below.

use crate::anonymity::numbering::Numbering;
use std::collections::BTreeSet;
use throng_core::values::codebook::{CellId, SUPPRESSED};
use throng_core::values::digest::mix;

/// The labels above the cells of one column, fine to coarse, without the root. Cells without an entry have none.
pub type Above = hashbrown::HashMap<CellId, Vec<CellId>>;

/// The cells of one group that leave: `columns[i][row]` belongs to `attributes[i]`.
#[derive(Clone, Debug)]
pub struct GroupCells {
    /// The attribute of each column, by its number in the schema.
    pub attributes: Vec<usize>,
    /// A cell a row, by column.
    pub columns: Vec<Vec<CellId>>,
    /// By column.
    pub above: Vec<Above>,
    /// How many of the columns, from the first, form the class; the others stand beside it.
    pub quasi: usize,
    /// What a row's fragment is worth to a reader: the sum over its present cells of one minus their loss.
    pub worth: Vec<f32>,
}

impl GroupCells {
    /// Suppresses a row.
    pub fn withdraw(&mut self, row: u32) {
        for column in &mut self.columns {
            column[row as usize] = SUPPRESSED;
        }
    }

    /// `rows` with everyone who shares a class with one of them: a class goes whole or not at all, so that those who stay
    /// keep their crowd.
    pub(super) fn with_classes(&self, rows: BTreeSet<u32>) -> BTreeSet<u32> {
        if self.quasi == self.columns.len() || self.quasi == 0 {
            return rows;
        }
        let class = |row: u32| -> Vec<CellId> { self.columns[..self.quasi].iter().map(|c| c[row as usize]).collect() };
        let classes: BTreeSet<Vec<CellId>> = rows.iter().map(|&row| class(row)).collect();
        let all = u32::try_from(self.worth.len()).expect("a batch is bounded");
        let present = |row: &u32| self.columns[..self.quasi].iter().any(|c| c[*row as usize] != SUPPRESSED);
        (0..all).filter(|row| rows.contains(row) || (present(row) && classes.contains(&class(*row)))).collect()
    }

    pub(super) fn worth_of(&self, rows: impl Iterator<Item = u32>) -> f64 {
        rows.map(|row| f64::from(self.worth[row as usize])).sum()
    }
}

/// A set of rows of the batch.
#[derive(Clone, PartialEq)]
pub(super) struct Rows(Vec<u64>);

impl Rows {
    pub(super) fn none(rows: usize) -> Self {
        Self(vec![0; rows.div_ceil(64)])
    }

    fn insert(&mut self, row: usize) {
        self.0[row / 64] |= 1 << (row % 64);
    }

    pub(super) fn has(&self, row: u32) -> bool {
        self.0[row as usize / 64] >> (row % 64) & 1 == 1
    }

    pub(super) fn count(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    pub(super) fn or_count(&self, other: &Self) -> usize {
        self.0.iter().zip(&other.0).map(|(a, b)| (a | b).count_ones() as usize).sum()
    }

    pub(super) fn and(&self, other: &Self) -> Self {
        Self(self.0.iter().zip(&other.0).map(|(a, b)| a & b).collect())
    }

    pub(super) fn is_within(&self, other: &Self) -> bool {
        self.0.iter().zip(&other.0).all(|(a, b)| a & !b == 0)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.0.iter().zip(0u32..).flat_map(|(&word, at)| {
            std::iter::successors(Some(word), |w| Some(w & w.wrapping_sub(1)))
                .take_while(|w| *w != 0)
                .map(move |w| at * 64 + w.trailing_zeros())
        })
    }
}

/// What is counted of a group for as long as it does not change.
pub(super) struct View {
    /// Rows that have a fragment.
    pub(super) present: Rows,
    /// Number of them.
    pub(super) rows: usize,
    /// The cells that are printed, by column.
    printed: Vec<Vec<CellId>>,
    /// By column, the labels above each printed cell: itself, where it stands above others, and those of the hierarchy.
    above: Vec<Above>,
    /// Rows below each label, by column and cell.
    counts: Vec<Vec<u32>>,
    /// Rows below the most frequent label.
    pub(super) reach: usize,
    /// Made when first asked for, with the threshold that they are made for.
    classes: Option<(usize, Classes)>,
}

/// Rows by the labels that they are below, as far as at least so many rows are below a label.
#[derive(Default)]
pub(super) struct Classes {
    /// Number of labels.
    pub(super) labels: usize,
    /// By class: its labels, rising. Of labels that the same rows are below only the finest of a column is named.
    pub(super) below: Vec<Vec<u32>>,
    /// By class.
    pub(super) rows: Vec<Vec<u32>>,
}

impl View {
    pub(super) fn of(group: &GroupCells) -> Self {
        let all = group.columns.first().map_or(0, Vec::len);
        let mut present = Rows::none(all);
        let mut printed = Vec::with_capacity(group.columns.len());
        let mut counts = Vec::with_capacity(group.columns.len());
        let mut labels = Vec::with_capacity(group.columns.len());
        for (column, above) in group.columns.iter().zip(&group.above) {
            let mut count = vec![0u32; column.iter().max().map_or(0, |c| *c as usize + 1)];
            let mut cells: Vec<CellId> = Vec::new();
            for (row, &cell) in column.iter().enumerate() {
                if cell != SUPPRESSED {
                    present.insert(row);
                    if count[cell as usize] == 0 {
                        cells.push(cell);
                    }
                    count[cell as usize] += 1;
                }
            }
            let above = told_apart(&cells, above);
            // Bottom up: each printed cell adds its own rows to the labels above it.
            let own: Vec<u32> = cells.iter().map(|&cell| count[cell as usize]).collect();
            for (cell, rows) in cells.iter().zip(own) {
                for &label in above.get(cell).into_iter().flatten() {
                    let label = label as usize;
                    if count.len() <= label {
                        count.resize(label + 1, 0);
                    }
                    count[label] += rows;
                }
            }
            printed.push(cells);
            counts.push(count);
            labels.push(above);
        }
        let reach = counts.iter().flatten().copied().max().unwrap_or(0) as usize;
        Self { rows: present.count(), present, printed, above: labels, counts, reach, classes: None }
    }

    /// The rows below each label for whose number `enough` is true, heaviest first; of labels with the same rows, one.
    pub(super) fn heavy(&self, group: &GroupCells, enough: impl Fn(usize) -> bool) -> Vec<Rows> {
        let mut heavy: Vec<(usize, Rows)> = Vec::new();
        let columns = group.columns.iter().zip(&self.above).zip(self.printed.iter().zip(&self.counts));
        for ((column, above), (printed, counts)) in columns {
            for (label, &count) in (0..).zip(counts).filter(|(_, count)| enough(**count as usize)) {
                let mut below = vec![false; counts.len()];
                for &cell in printed {
                    below[cell as usize] =
                        cell == label || above.get(&cell).is_some_and(|above| above.contains(&label));
                }
                let mut rows = Rows::none(column.len());
                for (row, _) in column.iter().enumerate().filter(|(_, cell)| below[**cell as usize]) {
                    rows.insert(row);
                }
                if !heavy.iter().any(|known| known.0 == count as usize && known.1 == rows) {
                    heavy.push((count as usize, rows));
                }
            }
        }
        heavy.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
        heavy.into_iter().map(|(_, rows)| rows).collect()
    }

    /// The classes by the labels that at least `least` rows are below, and maybe by some that fewer are.
    pub(super) fn classes(&mut self, group: &GroupCells, least: usize) -> &Classes {
        // Made for a threshold that is too high, they lack labels; for one much too low, they are needlessly many.
        let keep = self.classes.take().filter(|(floor, _)| *floor <= least && least <= 8 * floor);
        let classes = keep.unwrap_or_else(|| (least, self.classes_from(group, least)));
        &self.classes.insert(classes).1
    }

    fn classes_from(&self, group: &GroupCells, least: usize) -> Classes {
        let rows: Vec<u32> = self.present.iter().collect();
        let mut class = vec![0u32; rows.len()];
        let mut split_into = usize::from(!rows.is_empty());
        let mut labels = 0;
        // By column: the finest frequent label of each cell (0 for none), and what is named for it.
        let mut finest: Vec<(Vec<u32>, Vec<Vec<u32>>)> = Vec::new();
        let columns = group.columns.iter().zip(&self.above).zip(self.printed.iter().zip(&self.counts));
        for ((column, above), (printed, counts)) in columns {
            let frequent = |label: &CellId| counts[*label as usize] as usize >= least;
            let mut number = vec![0u32; counts.len()];
            let mut of_cell = vec![0u32; counts.len()];
            let mut named: Vec<Vec<u32>> = vec![Vec::new()];
            let mut numbers: hashbrown::HashMap<CellId, u32> = hashbrown::HashMap::new();
            for &cell in printed {
                let chain = std::iter::once(cell).chain(above.get(&cell).into_iter().flatten().copied());
                let chain: Vec<CellId> = chain.filter(frequent).collect();
                let Some(&first) = chain.first() else { continue };
                of_cell[cell as usize] = *numbers.entry(first).or_insert_with(|| {
                    let mut below = Vec::with_capacity(chain.len());
                    let mut rows = 0;
                    for &label in &chain {
                        if counts[label as usize] > rows {
                            rows = counts[label as usize];
                            if number[label as usize] == 0 {
                                labels += 1;
                                number[label as usize] = labels;
                            }
                            below.push(number[label as usize] - 1);
                        }
                    }
                    named.push(below);
                    u32::try_from(named.len() - 1).expect("a batch is bounded")
                });
            }
            split_into = split(&mut class, split_into, &rows, column, &of_cell, named.len());
            finest.push((of_cell, named));
        }
        let mut found = Classes { labels: labels as usize, ..Classes::default() };
        found.rows.resize(split_into, Vec::new());
        for (class, row) in class.into_iter().zip(rows) {
            found.rows[class as usize].push(row);
        }
        for rows in &found.rows {
            let row = rows[0] as usize;
            let mut below: Vec<u32> = Vec::new();
            for (column, (of_cell, named)) in group.columns.iter().zip(&finest) {
                let cell = column[row];
                if cell != SUPPRESSED {
                    below.extend(&named[of_cell[cell as usize] as usize]);
                }
            }
            below.sort_unstable();
            found.below.push(below);
        }
        found
    }
}

/// The labels above each of the printed `cells`, under numbers that no cell has: a cell that is printed says more than the
/// label of the same name, which finer cells lie below as well.
fn told_apart(cells: &[CellId], above: &Above) -> Above {
    let labels_of = |cell: &CellId| above.get(cell).into_iter().flatten().copied();
    let labels: hashbrown::HashSet<CellId> = cells.iter().flat_map(labels_of).collect();
    let beyond = cells.iter().copied().chain(cells.iter().flat_map(labels_of)).max().map_or(0, |most| most + 1);
    let of = |cell: &CellId| {
        let own = labels.contains(cell).then_some(*cell);
        (*cell, own.into_iter().chain(labels_of(cell)).map(|label| label + beyond).collect())
    };
    cells.iter().map(of).collect()
}

/// Splits classes by what the cells of one more column stand for (`of_cell`, below `values`; suppressed cells for 0);
/// returns how many there are then. Numbers are given in the order of the first row.
fn split(class: &mut [u32], classes: usize, rows: &[u32], column: &[CellId], of_cell: &[u32], values: usize) -> usize {
    if values == 1 {
        return classes;
    }
    let mut numbers = Numbering::default();
    numbers.restart(rows.len());
    let mut next = 0;
    for (class, &row) in class.iter_mut().zip(rows) {
        let value = match column[row as usize] {
            SUPPRESSED => 0,
            cell => of_cell[cell as usize],
        };
        let key = u64::from(*class) << 32 | u64::from(value);
        let (number, is_new) = numbers.number(key, mix(key) as usize);
        next += usize::from(is_new);
        *class = number;
    }
    next
}
