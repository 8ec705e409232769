//! Cells of a group, with cached label counts.

use crate::numbering::KeyNumbering;
use crate::values::codebook::{CellId, SUPPRESSED};
use crate::values::digest::mix;
use std::collections::BTreeSet;

/// Labels above each cell of a column, fine to coarse, without the root.
pub type LabelsAbove = hashbrown::HashMap<CellId, Vec<CellId>>;

/// Released cells of one group: `columns[i][row]` belongs to `attributes[i]`.
#[derive(Clone, Debug)]
pub struct GroupCells {
    /// Position in the schema, by column.
    pub attributes: Vec<usize>,
    /// Cells by column and row.
    pub columns: Vec<Vec<CellId>>,
    /// Labels above the cells, by column.
    pub labels_by_cell: Vec<LabelsAbove>,
    /// Number of leading columns that form the class.
    pub quasi: usize,
    /// Worth of each row's fragment: Σ (1 − loss) over its present cells.
    pub worth: Vec<f32>,
}

impl GroupCells {
    /// Suppresses a row.
    pub fn suppress_row(&mut self, row: u32) {
        for column in &mut self.columns {
            column[row as usize] = SUPPRESSED;
        }
    }

    /// Adds all rows of the same classes, so that other classes keep their subjects.
    pub(super) fn complete_classes(&self, rows: BTreeSet<u32>) -> BTreeSet<u32> {
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

#[derive(Clone, PartialEq)]
pub(super) struct BatchRowSet(Vec<u64>);

impl BatchRowSet {
    pub(super) fn without_rows(rows: usize) -> Self {
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

pub(super) struct GroupView {
    pub(super) present: BatchRowSet,
    pub(super) present_count: usize,
    printed: Vec<Vec<CellId>>,
    /// Includes the label with the name of the cell if other cells are below it.
    above: Vec<LabelsAbove>,
    /// By column and cell.
    counts: Vec<Vec<u32>>,
    pub(super) max_label_rows: usize,
    classes: Option<(usize, LabelClasses)>,
}

/// Rows grouped by the labels above enough rows.
#[derive(Default)]
pub(super) struct LabelClasses {
    pub(super) labels: usize,
    /// By class, ascending; of labels above the same rows, only the finest.
    pub(super) below: Vec<Vec<u32>>,
    pub(super) rows: Vec<Vec<u32>>,
}

impl GroupView {
    pub(super) fn of(group: &GroupCells) -> Self {
        let all = group.columns.first().map_or(0, Vec::len);
        let mut present = BatchRowSet::without_rows(all);
        let mut printed = Vec::with_capacity(group.columns.len());
        let mut counts = Vec::with_capacity(group.columns.len());
        let mut labels = Vec::with_capacity(group.columns.len());
        for (column, above) in group.columns.iter().zip(&group.labels_by_cell) {
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
            let above = unique_labels(&cells, above);
            // Each printed cell adds its rows to the labels above it.
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
        Self {
            present_count: present.count(),
            present,
            printed,
            above: labels,
            counts,
            max_label_rows: reach,
            classes: None,
        }
    }

    /// Returns distinct row sets below labels with `enough` rows, heaviest first.
    pub(super) fn heavy_labels(&self, group: &GroupCells, enough: impl Fn(usize) -> bool) -> Vec<BatchRowSet> {
        let mut heavy: Vec<(usize, BatchRowSet)> = Vec::new();
        let columns = group.columns.iter().zip(&self.above).zip(self.printed.iter().zip(&self.counts));
        for ((column, above), (printed, counts)) in columns {
            for (label, &count) in (0..).zip(counts).filter(|(_, count)| enough(**count as usize)) {
                let mut below = vec![false; counts.len()];
                for &cell in printed {
                    below[cell as usize] =
                        cell == label || above.get(&cell).is_some_and(|above| above.contains(&label));
                }
                let mut rows = BatchRowSet::without_rows(column.len());
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

    /// May include labels above fewer than `least` rows.
    pub(super) fn cached_classes(&mut self, group: &GroupCells, least: usize) -> &LabelClasses {
        // Classes for a higher threshold lack labels; for a much lower one, they have too many.
        let keep = self.classes.take().filter(|(floor, _)| *floor <= least && least <= 8 * floor);
        let classes = keep.unwrap_or_else(|| (least, self.compute_classes(group, least)));
        &self.classes.insert(classes).1
    }

    fn compute_classes(&self, group: &GroupCells, least: usize) -> LabelClasses {
        let rows: Vec<u32> = self.present.iter().collect();
        let mut class = vec![0u32; rows.len()];
        let mut split_into = usize::from(!rows.is_empty());
        let mut labels = 0;
        // By column: the finest frequent label of each cell (0: none), and its listed labels.
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
            split_into = split_classes(&mut class, split_into, &rows, column, &of_cell, named.len());
            finest.push((of_cell, named));
        }
        let mut found = LabelClasses { labels: labels as usize, ..LabelClasses::default() };
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

/// Returns the labels above each cell, with numbers that no cell has.
///
/// A label with the name of a printed cell also covers finer cells.
fn unique_labels(cells: &[CellId], above: &LabelsAbove) -> LabelsAbove {
    let labels_of = |cell: &CellId| above.get(cell).into_iter().flatten().copied();
    let labels: hashbrown::HashSet<CellId> = cells.iter().flat_map(labels_of).collect();
    let beyond = cells.iter().copied().chain(cells.iter().flat_map(labels_of)).max().map_or(0, |most| most + 1);
    let of = |cell: &CellId| {
        let own = labels.contains(cell).then_some(*cell);
        (*cell, own.into_iter().chain(labels_of(cell)).map(|label| label + beyond).collect())
    };
    cells.iter().map(of).collect()
}

/// Splits classes by one more column, numbered by first row; returns their number.
///
/// `encode_cell` returns a value below `values`; 0 for suppressed cells.
fn split_classes(
    class: &mut [u32],
    classes: usize,
    rows: &[u32],
    column: &[CellId],
    of_cell: &[u32],
    values: usize,
) -> usize {
    if values == 1 {
        return classes;
    }
    let mut numbers = KeyNumbering::default();
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
