//! Search for a set of cells in at least t rows of a group that fewer than k subjects carry on given rows.
//!
//! The search is depth first, column by column. Every step has a set Y (its *chosen* cells) and the tuples that
//! contain it (*items*). An item with k subjects on the joint rows is *thick*: Y and any part of that tuple have k
//! subjects too. All rows of an answer are therefore in thin items, and only those count towards t. After skipped
//! columns, equal remainders may be joined to one item.
//!
//! Fewer than k subjects carry at most J joint rows: those of the k − 1 subjects with the most rows, and the rows
//! without a subject. An answer therefore has at least t − J rows outside the joint ones. Sets that are not closed
//! are skipped: their closure has the same rows and is reached by the search.

use super::runs::{KeyNumbers, RowBitSet, TupleRuns};

/// Query for such a set. The answer is also `true` if the `budget` of steps runs out before the answer is found. A
/// step is one visit of a cell, a row or a subject.
pub(super) struct SmallSetQuery<'a> {
    pub(super) k: usize,
    /// t: minimum rows of an answer.
    pub(super) least: usize,
    pub(super) budget: usize,
    pub(super) subjects: &'a mut SubjectCounter,
}

impl SmallSetQuery<'_> {
    /// Returns the answer and the number of steps taken.
    pub(super) fn has_small_set(mut self, runs: &TupleRuns, joint: &RowBitSet) -> (bool, usize) {
        let budget = self.budget;
        self.spend(runs.cells.len() + runs.rows.len() + runs.carried.len());
        let all = self.read(runs, joint);
        let mut load = vec![CellLoad::default(); runs.carried.len()];
        let found = self.descend(&all, all.every(), 0, &mut vec![false; runs.width], &mut load);
        (found, budget - self.budget)
    }

    /// Takes `steps`; returns false if none are left.
    fn spend(&mut self, steps: usize) -> bool {
        self.budget = self.budget.saturating_sub(steps);
        self.budget > 0
    }

    fn read(&mut self, runs: &TupleRuns, joint: &RowBitSet) -> ItemTable {
        let mut node = ItemTable {
            width: runs.width,
            cells: runs.cells.clone(),
            remainders: runs.remainders(),
            ..ItemTable::default()
        };
        for (_, rows) in runs.iter() {
            let mut item = TupleItem { rows: rows.len() as u32, ..TupleItem::default() };
            self.subjects.restart();
            for &row in rows {
                if !joint.contains(row) {
                    item.outside += 1;
                } else if self.subjects.add(self.subjects.of_row[row as usize], 1) >= self.k {
                    break;
                }
            }
            node.close(item, self.subjects, self.k);
        }
        node
    }

    /// Sums up the thin ones of `items`; none if they cannot contain an answer any more.
    fn count(&mut self, node: &ItemTable, items: &[u32]) -> Option<ThinItemCount> {
        self.subjects.restart();
        let (mut rows, mut outside, mut thick, mut carriers) = (0, 0, false, 0);
        for &i in items {
            let item = node.items[i as usize];
            thick |= item.thick;
            if !item.thick {
                rows += item.rows as usize;
                outside += item.outside as usize;
                carriers += node.carriers(i as usize).len();
                for &(subject, count) in node.carriers(i as usize) {
                    self.subjects.add(subject, count);
                }
            }
        }
        self.spend(items.len() + 2 * carriers);
        if rows < self.least {
            return None;
        }
        let portable = self.subjects.portable(self.k);
        let few = !thick && self.subjects.distinct < self.k;
        (outside + portable >= self.least).then_some(ThinItemCount { portable, few })
    }

    /// Cuts the named items to the columns from `from` on and to the cells that can still be part of an answer.
    fn cut(
        &mut self,
        node: &ItemTable,
        items: &[u32],
        from: usize,
        count: ThinItemCount,
        load: &mut [CellLoad],
    ) -> ItemTable {
        let width = node.width;
        // Each cell is visited when it is counted, kept, reset and compared; each item adds its subjects.
        self.spend(items.len() * (4 * (width - from) + from + self.k));
        for &i in items {
            for &cell in &node.tuple(i)[from..] {
                load[cell as usize].add(node.items[i as usize]);
            }
        }
        let mut kept: Vec<u32> = Vec::with_capacity(items.len() * (width - from));
        for &i in items {
            let remainder = node.tuple(i)[from..].iter();
            kept.extend(remainder.map(|&cell| if self.suffices(load[cell as usize], count) { cell } else { 0 }));
        }
        for &i in items {
            for &cell in &node.tuple(i)[from..] {
                load[cell as usize] = CellLoad::default();
            }
        }
        let mut classes: KeyNumbers<&[u32]> = KeyNumbers::default();
        // By class: its last member so far; by member: the one before it.
        let mut last: Vec<usize> = Vec::new();
        let mut before = vec![usize::MAX; items.len()];
        for (member, before) in before.iter_mut().enumerate() {
            let tuple = &kept[member * (width - from)..(member + 1) * (width - from)];
            let class = *classes.entry(tuple).or_insert(last.len() as u32) as usize;
            if class == last.len() {
                last.push(member);
            } else {
                *before = std::mem::replace(&mut last[class], member);
            }
        }
        let mut joined = ItemTable { width, remainders: node.remainders.clone(), ..ItemTable::default() };
        for first in last {
            let start = joined.cells.len();
            joined.cells.extend_from_slice(&node.tuple(items[first])[..from]);
            joined.cells.extend_from_slice(&kept[first * (width - from)..(first + 1) * (width - from)]);
            self.subjects.restart();
            let mut item = TupleItem::default();
            let mut member = first;
            while member != usize::MAX {
                let i = items[member];
                // In the decided columns, the cells that all members share.
                for (own, &cell) in joined.cells[start..start + from].iter_mut().zip(node.tuple(i)) {
                    *own = if *own == cell { cell } else { 0 };
                }
                let other = node.items[i as usize];
                item.rows += other.rows;
                item.outside += other.outside;
                item.thick |= other.thick;
                if !item.thick {
                    for &(subject, count) in node.carriers(i as usize) {
                        self.subjects.add(subject, count);
                    }
                }
                member = before[member];
            }
            joined.close(item, self.subjects, self.k);
        }
        joined
    }

    /// Searches for an answer with the chosen cells and otherwise only cells of the columns from `from` on.
    fn descend(
        &mut self,
        node: &ItemTable,
        mut items: Vec<u32>,
        from: usize,
        chosen: &mut [bool],
        load: &mut [CellLoad],
    ) -> bool {
        for column in (0..from).filter(|column| !chosen[*column]) {
            let alike = node.alike(&items, column);
            self.spend(alike + 1);
            if alike == items.len() {
                return false;
            }
        }
        let Some(mut count) = self.count(node, &items) else { return false };
        if count.few && chosen.contains(&true) {
            return true;
        }
        let mut joined = None;
        for column in from..node.width {
            let node = joined.as_ref().unwrap_or(node);
            if !self.spend(3 * items.len()) {
                return true;
            }
            for part in self.parts(node, &items, column, count, load) {
                let is_all = part.len() == items.len();
                chosen[column] = true;
                if self.descend(node, part, column + 1, chosen, load) {
                    return true;
                }
                chosen[column] = false;
                if is_all {
                    return false;
                }
            }
            // Without this column: joining is worth it if the possible remainders are not many more than the items.
            if node.remainders[column + 1] <= 8 * items.len() {
                let fewer = self.cut(node, &items, column + 1, count, load);
                items = fewer.every();
                match self.count(&fewer, &items) {
                    Some(fresh) => count = fresh,
                    None => return false,
                }
                joined = Some(fewer);
            }
        }
        false
    }

    /// Splits `items` by their cell of `column`; keeps cells with enough rows of thin items.
    fn parts(
        &self,
        node: &ItemTable,
        items: &[u32],
        column: usize,
        count: ThinItemCount,
        load: &mut [CellLoad],
    ) -> Vec<Vec<u32>> {
        for &i in items {
            load[node.cell(i, column) as usize].add(node.items[i as usize]);
        }
        let mut parts: Vec<Vec<u32>> = Vec::new();
        for &i in items {
            let cell = node.cell(i, column);
            let load = &mut load[cell as usize];
            if cell == 0 || !self.suffices(*load, count) {
                continue;
            }
            if load.part == 0 {
                parts.push(Vec::new());
                load.part = parts.len() as u32;
            }
            parts[load.part as usize - 1].push(i);
        }
        for &i in items {
            load[node.cell(i, column) as usize] = CellLoad::default();
        }
        parts
    }

    fn suffices(&self, load: CellLoad, count: ThinItemCount) -> bool {
        load.rows as usize >= self.least && load.outside as usize + count.portable >= self.least
    }
}

#[derive(Clone, Copy)]
struct ThinItemCount {
    /// J of these items.
    portable: usize,
    /// No item is thick, and together they have fewer than k subjects.
    few: bool,
}

/// Thin rows of a cell, those of them outside the joint rows, and the part of a column that it is, from 1. Scratch
/// space by cell, zero between uses.
#[derive(Clone, Copy, Default)]
struct CellLoad {
    rows: u32,
    outside: u32,
    part: u32,
}

impl CellLoad {
    fn add(&mut self, item: TupleItem) {
        if !item.thick {
            self.rows += item.rows;
            self.outside += item.outside;
        }
    }
}

#[derive(Clone, Copy, Default)]
struct TupleItem {
    rows: u32,
    outside: u32,
    thick: bool,
    /// End of its subjects in `carriers`; a thick item has none there.
    end: usize,
}

#[derive(Default)]
struct ItemTable {
    width: usize,
    cells: Vec<u32>,
    /// By column: the number of possible remainders from there on.
    remainders: Vec<usize>,
    items: Vec<TupleItem>,
    /// Subjects of the joint rows with their number of rows, item after item; 0 means no subject.
    carriers: Vec<(u32, u32)>,
}

impl ItemTable {
    /// Completes an item after its cells are added and its subjects counted.
    fn close(&mut self, mut item: TupleItem, subjects: &SubjectCounter, k: usize) {
        item.thick |= subjects.distinct >= k;
        if !item.thick {
            self.carriers.extend(subjects.met.iter().map(|&subject| (subject, subjects.rows[subject as usize])));
        }
        item.end = self.carriers.len();
        self.items.push(item);
    }

    fn carriers(&self, item: usize) -> &[(u32, u32)] {
        let start = if item == 0 { 0 } else { self.items[item - 1].end };
        &self.carriers[start..self.items[item].end]
    }

    fn tuple(&self, item: u32) -> &[u32] {
        &self.cells[item as usize * self.width..(item as usize + 1) * self.width]
    }

    fn cell(&self, item: u32, column: usize) -> u32 {
        self.cells[item as usize * self.width + column]
    }

    fn every(&self) -> Vec<u32> {
        (0..self.items.len() as u32).collect()
    }

    /// Returns the number of items, from the first, that share its cell of a column; 0 if it has none there.
    fn alike(&self, items: &[u32], column: usize) -> usize {
        let mut cells = items.iter().map(|&item| self.cell(item, column));
        let Some(first) = cells.next().filter(|first| *first != 0) else { return 0 };
        1 + cells.take_while(|cell| *cell == first).count()
    }
}

/// The subjects of a batch, numbered from 1 (0 means no subject), and a count of rows by subject that is cheap to
/// reset.
pub(super) struct SubjectCounter {
    of_row: Vec<u32>,
    rows: Vec<u32>,
    /// Subjects with a count above zero, 0 included.
    met: Vec<u32>,
    /// Number of these that are real subjects.
    distinct: usize,
}

impl SubjectCounter {
    pub(super) fn new(subjects: &[u64]) -> Self {
        let mut numbers: KeyNumbers<u64> = KeyNumbers::default();
        let mut next = 1;
        let mut number_of = |&subject: &u64| {
            if subject == 0 {
                return 0;
            }
            let number = *numbers.entry(subject).or_insert(next);
            next = next.max(number + 1);
            number
        };
        let of_row = subjects.iter().map(&mut number_of).collect();
        Self { of_row, rows: vec![0; next as usize], met: Vec::new(), distinct: 0 }
    }

    /// Words of a bit set of all rows.
    pub(super) fn words(&self) -> usize {
        self.of_row.len().div_ceil(64)
    }

    fn restart(&mut self) {
        for subject in self.met.drain(..) {
            self.rows[subject as usize] = 0;
        }
        self.distinct = 0;
    }

    /// Counts rows of a subject; returns the distinct subjects so far.
    fn add(&mut self, subject: u32, rows: u32) -> usize {
        let count = &mut self.rows[subject as usize];
        if *count == 0 {
            self.met.push(subject);
            self.distinct += usize::from(subject != 0);
        }
        *count += rows;
        self.distinct
    }

    /// Returns the most rows that fewer than k of the counted subjects have, plus the rows without a subject.
    fn portable(&self, k: usize) -> usize {
        let mut rows: Vec<u32> =
            self.met.iter().filter(|&&subject| subject != 0).map(|&subject| self.rows[subject as usize]).collect();
        let busiest = k.saturating_sub(1).min(rows.len());
        if busiest > 0 && busiest < rows.len() {
            rows.select_nth_unstable_by(busiest - 1, |a, b| b.cmp(a));
        }
        rows[..busiest].iter().chain(&self.rows[..1]).map(|&count| count as usize).sum()
    }
}
