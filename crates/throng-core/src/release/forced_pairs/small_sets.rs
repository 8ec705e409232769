//! Search for a set of cells in t or more rows with fewer than k subjects on the joint rows.
//!
//! Depth first by column: a step has *chosen* cells Y and the tuples (*items*) that contain Y. A *thick* item has k
//! joint subjects, and so has any part of its tuple with Y. Therefore only thin items count towards t.
//!
//! At most J joint rows are of fewer than k subjects: those of the k − 1 most frequent ones, and rows without a
//! subject. An answer has at least t − J other rows. Closed sets suffice, because a closure has the same rows.

use super::runs::{KeyNumbers, RowBitSet, TupleRuns};

/// Also `true` if the `budget` of steps runs out. A step visits a cell, row or subject.
pub(super) struct SmallSetQuery<'a> {
    pub(super) k: usize,
    /// Minimum rows t of an answer.
    pub(super) least: usize,
    pub(super) budget: usize,
    pub(super) subjects: &'a mut SubjectCounter,
}

impl SmallSetQuery<'_> {
    pub(super) fn has_small_set(mut self, runs: &TupleRuns, joint: &RowBitSet) -> (bool, usize) {
        let budget = self.budget;
        self.spend(runs.cells.len() + runs.rows.len() + runs.carried.len());
        let all = self.read(runs, joint);
        let mut load = vec![CellLoad::default(); runs.carried.len()];
        let found = self.descend(&all, all.every(), 0, &mut vec![false; runs.width], &mut load);
        (found, budget - self.budget)
    }

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

    /// Returns none if `items` cannot contain an answer.
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

    /// Keeps the columns from `from` on and cells that can be in an answer; joins equal remainders.
    fn cut(
        &mut self,
        node: &ItemTable,
        items: &[u32],
        from: usize,
        count: ThinItemCount,
        load: &mut [CellLoad],
    ) -> ItemTable {
        let width = node.width;
        // Four passes over the cells; each item adds its subjects.
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
        // Last member by class, previous one by member.
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
                // Decided columns keep the cells that all members share.
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

    /// Further cells are only of the columns from `from` on.
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
            // Joining is worth it if there are few remainders per item.
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

    /// Splits `items` by their cell of `column`, without cells of too few rows.
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
    portable: usize,
    /// Fewer than k subjects and no thick item.
    few: bool,
}

/// Thin rows of a cell. Zero between uses; `part` is from 1.
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
    /// End in `carriers`, which has none of a thick item.
    end: usize,
}

#[derive(Default)]
struct ItemTable {
    width: usize,
    cells: Vec<u32>,
    /// Possible remainders from each column on.
    remainders: Vec<usize>,
    items: Vec<TupleItem>,
    /// Subjects of joint rows with row counts, by item; 0 is no subject.
    carriers: Vec<(u32, u32)>,
}

impl ItemTable {
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

    /// Length of the prefix that shares a cell of the column; 0 without a cell.
    fn alike(&self, items: &[u32], column: usize) -> usize {
        let mut cells = items.iter().map(|&item| self.cell(item, column));
        let Some(first) = cells.next().filter(|first| *first != 0) else { return 0 };
        1 + cells.take_while(|cell| *cell == first).count()
    }
}

/// Subjects from 1 (0 is no subject), and resettable row counts.
pub(super) struct SubjectCounter {
    of_row: Vec<u32>,
    rows: Vec<u32>,
    /// Counted subjects, 0 included.
    met: Vec<u32>,
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

    /// Words of a row set.
    pub(super) fn words(&self) -> usize {
        self.of_row.len().div_ceil(64)
    }

    fn restart(&mut self) {
        for subject in self.met.drain(..) {
            self.rows[subject as usize] = 0;
        }
        self.distinct = 0;
    }

    /// Distinct subjects so far.
    fn add(&mut self, subject: u32, rows: u32) -> usize {
        let count = &mut self.rows[subject as usize];
        if *count == 0 {
            self.met.push(subject);
            self.distinct += usize::from(subject != 0);
        }
        *count += rows;
        self.distinct
    }

    /// J.
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
