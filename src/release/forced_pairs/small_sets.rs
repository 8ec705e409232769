//! One question: is there a set of cells in at least t rows of a group that fewer than k subjects carry on given rows?
//!
//! The search is depth first, column by column. At every step there is a set Y (its *chosen* cells) and the tuples that
//! contain it (*items*). An item with k subjects on the joint rows is *thick*: Y and any part of that tuple have k
//! subjects too. So all rows of an answer are in thin items at every step on its way, and only those are counted against
//! t. Where columns have been passed over, equal remainders may be joined to one item, and most of them get thick.
//!
//! Fewer than k subjects carry at most J joint rows (the k − 1 busiest of the thin items, and the rows of nobody), so an
//! answer has at least t − J rows outside the joint ones. Sets that are not closed are passed over: their closure has the
//! same rows, so it is an answer where they are, and the cells chosen first on its way to it are closed among the columns
//! decided, so it is reached.

use super::runs::{Numbers, Rows, Runs};

/// Whether there is such a set; `true` as well once the `budget` of steps is spent, when the answer is not known. A step is a
/// cell, a row or a subject that is looked at.
pub(super) struct Question<'a> {
    pub(super) k: usize,
    /// t: rows that an answer has at least.
    pub(super) least: usize,
    pub(super) budget: usize,
    pub(super) subjects: &'a mut Subjects,
}

impl Question<'_> {
    /// The answer, and how many steps were taken for it.
    pub(super) fn has_small_set(mut self, runs: &Runs, joint: &Rows) -> (bool, usize) {
        let budget = self.budget;
        self.spend(runs.cells.len() + runs.rows.len() + runs.carried.len());
        let all = self.read(runs, joint);
        let mut load = vec![Load::default(); runs.carried.len()];
        let found = self.descend(&all, all.every(), 0, &mut vec![false; runs.width], &mut load);
        (found, budget - self.budget)
    }

    /// Takes `steps`; false once there are none left.
    fn spend(&mut self, steps: usize) -> bool {
        self.budget = self.budget.saturating_sub(steps);
        self.budget > 0
    }

    fn read(&mut self, runs: &Runs, joint: &Rows) -> Node {
        let mut node =
            Node { width: runs.width, cells: runs.cells.clone(), remainders: runs.remainders(), ..Node::default() };
        for (_, rows) in runs.iter() {
            let mut item = Item { rows: rows.len() as u32, ..Item::default() };
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

    /// What the thin ones of `items` amount to; none if they cannot hold an answer any more.
    fn count(&mut self, node: &Node, items: &[u32]) -> Option<Count> {
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
        (outside + portable >= self.least).then_some(Count { portable, few })
    }

    /// The items named, cut to the columns at and after `from` and to the cells that can still be part of an answer.
    fn cut(&mut self, node: &Node, items: &[u32], from: usize, count: Count, load: &mut [Load]) -> Node {
        let width = node.width;
        // Each cell is met when it is weighed, kept, forgotten and compared; each item brings its subjects.
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
                load[cell as usize] = Load::default();
            }
        }
        let mut classes: Numbers<&[u32]> = Numbers::default();
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
        let mut joined = Node { width, remainders: node.remainders.clone(), ..Node::default() };
        for first in last {
            let start = joined.cells.len();
            joined.cells.extend_from_slice(&node.tuple(items[first])[..from]);
            joined.cells.extend_from_slice(&kept[first * (width - from)..(first + 1) * (width - from)]);
            self.subjects.restart();
            let mut item = Item::default();
            let mut member = first;
            while member != usize::MAX {
                let i = items[member];
                // Of the columns decided, the cells that all members share.
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

    /// Is there an answer with the chosen cells and otherwise only cells of the columns at and after `from`?
    fn descend(
        &mut self,
        node: &Node,
        mut items: Vec<u32>,
        from: usize,
        chosen: &mut [bool],
        load: &mut [Load],
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
            // Without this column: worth joining where fewer remainders are possible than there are items, or nearly.
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

    /// `items` by their cell of `column`, where enough rows of thin ones have it.
    fn parts(&self, node: &Node, items: &[u32], column: usize, count: Count, load: &mut [Load]) -> Vec<Vec<u32>> {
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
            load[node.cell(i, column) as usize] = Load::default();
        }
        parts
    }

    fn suffices(&self, load: Load, count: Count) -> bool {
        load.rows as usize >= self.least && load.outside as usize + count.portable >= self.least
    }
}

#[derive(Clone, Copy)]
struct Count {
    /// J of these items.
    portable: usize,
    /// No item is thick, and together they have fewer than k subjects.
    few: bool,
}

/// Thin rows of a cell, those of them outside the joint rows, and which part of a column it is, from 1. Scratch by cell,
/// zero between uses.
#[derive(Clone, Copy, Default)]
struct Load {
    rows: u32,
    outside: u32,
    part: u32,
}

impl Load {
    fn add(&mut self, item: Item) {
        if !item.thick {
            self.rows += item.rows;
            self.outside += item.outside;
        }
    }
}

#[derive(Clone, Copy, Default)]
struct Item {
    rows: u32,
    outside: u32,
    thick: bool,
    /// Where its subjects end in `carriers`; a thick item has none there.
    end: usize,
}

#[derive(Default)]
struct Node {
    width: usize,
    cells: Vec<u32>,
    /// By column: how many remainders are possible from there on.
    remainders: Vec<usize>,
    items: Vec<Item>,
    /// Subjects of the joint rows and how many of these each has, item after item; 0 is nobody.
    carriers: Vec<(u32, u32)>,
}

impl Node {
    /// Ends an item whose cells are there and whose subjects have been counted.
    fn close(&mut self, mut item: Item, subjects: &Subjects, k: usize) {
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

    /// How many of the items, from the first, have its cell of a column, if it has one there.
    fn alike(&self, items: &[u32], column: usize) -> usize {
        let mut cells = items.iter().map(|&item| self.cell(item, column));
        let Some(first) = cells.next().filter(|first| *first != 0) else { return 0 };
        1 + cells.take_while(|cell| *cell == first).count()
    }
}

/// The subjects of a batch, numbered from 1 (0 is nobody), and a count of rows by subject that is cheap to restart.
pub(super) struct Subjects {
    of_row: Vec<u32>,
    rows: Vec<u32>,
    /// Whose count is not zero, nobody included.
    met: Vec<u32>,
    /// Of these, how many are somebody.
    distinct: usize,
}

impl Subjects {
    pub(super) fn new(subjects: &[u64]) -> Self {
        let mut numbers: Numbers<u64> = Numbers::default();
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

    /// Words of a set of all rows.
    pub(super) fn words(&self) -> usize {
        self.of_row.len().div_ceil(64)
    }

    fn restart(&mut self) {
        for subject in self.met.drain(..) {
            self.rows[subject as usize] = 0;
        }
        self.distinct = 0;
    }

    /// Counts rows of a subject; gives the distinct subjects so far.
    fn add(&mut self, subject: u32, rows: u32) -> usize {
        let count = &mut self.rows[subject as usize];
        if *count == 0 {
            self.met.push(subject);
            self.distinct += usize::from(subject != 0);
        }
        *count += rows;
        self.distinct
    }

    /// The most rows that fewer than k of the subjects counted have, with the rows of nobody.
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
