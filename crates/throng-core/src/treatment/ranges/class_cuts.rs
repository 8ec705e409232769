//! Finds the best cut of a class.

use super::axis::{AxisExtent, AxisParts, SUPPRESSED_PART};
use super::range_table::RangeTable;

/// Below are rounding errors of the summed losses.
const MIN_SAVING: f64 = 1e-9;

pub(super) struct CutNode {
    rows: Vec<u32>,
    extents: Vec<AxisExtent>,
    loss: f64,
}

/// By subject: the number of the last count that included it.
pub(super) struct SeenSubjects {
    last_count: Vec<u32>,
    count: u32,
}

impl SeenSubjects {
    pub fn new(people: usize) -> Self {
        Self { last_count: vec![0; people], count: 0 }
    }

    fn restart(&mut self) {
        self.count += 1;
    }

    fn is_new(&mut self, subject: Option<u32>) -> bool {
        let count = self.count;
        subject.is_some_and(|subject| std::mem::replace(&mut self.last_count[subject as usize], count) != count)
    }
}

struct ClassDivision {
    order: Vec<u32>,
    /// Start of the rows of each part, and the number of rows.
    starts: Vec<usize>,
    extents: Vec<AxisExtent>,
    has_suppressed: bool,
}

impl CutNode {
    pub fn new(rows: Vec<u32>, table: &RangeTable) -> Self {
        let width = table.axes.len();
        let mut extents = vec![AxisExtent::default(); width];
        for &row in &rows {
            let cells = &table.cells[row as usize * width..(row as usize + 1) * width];
            extents.iter_mut().zip(cells).for_each(|(extent, &cell)| extent.add(cell));
        }
        let loss = table.loss(&extents);
        Self { rows, extents, loss }
    }

    pub fn into_rows(self) -> Vec<u32> {
        self.rows
    }

    /// Returns the parts of the best cut, if any; on a tie, the first axis and the lowest cut win.
    pub fn best_cut(&self, table: &RangeTable, people: &mut SeenSubjects) -> Option<Vec<Vec<u32>>> {
        let (mut best, mut parts) = (self.loss - MIN_SAVING, None);
        if self.rows.len() < 2 * table.k {
            return None;
        }
        for axis in 0..table.axes.len() {
            let width = table.axes.len();
            let cells = self.rows.iter().map(|&row| table.cells[row as usize * width + axis]);
            let Some(of_rows) = table.axes[axis].possible_parts(&self.extents[axis], cells) else { continue };
            let found = match of_rows {
                AxisParts::Separate(numbers) => {
                    let divided = self.divide_by_part(&numbers, table);
                    divided.separate_parts(table, people).filter(|(loss, _)| *loss < best)
                }
                AxisParts::Consecutive(numbers) => {
                    self.divide_by_part(&numbers, table).best_consecutive_cut(table, people, best)
                }
            };
            if let Some((loss, found)) = found {
                (best, parts) = (loss, Some(found));
            }
        }
        parts
    }

    fn divide_by_part(&self, numbers: &[u32], table: &RangeTable) -> ClassDivision {
        let width = table.axes.len();
        let mut sorted: Vec<(u32, u32)> = numbers.iter().copied().zip(self.rows.iter().copied()).collect();
        sorted.sort_unstable();
        let (mut starts, mut extents) = (Vec::new(), Vec::new());
        let mut last = None;
        for (at, &(number, row)) in sorted.iter().enumerate() {
            if last != Some(number) {
                last = Some(number);
                starts.push(at);
                extents.resize(extents.len() + width, AxisExtent::default());
            }
            let of_part = extents.len() - width;
            let cells = &table.cells[row as usize * width..(row as usize + 1) * width];
            extents[of_part..].iter_mut().zip(cells).for_each(|(extent, &cell)| extent.add(cell));
        }
        starts.push(sorted.len());
        let has_suppressed = last == Some(SUPPRESSED_PART);
        ClassDivision { has_suppressed, order: sorted.into_iter().map(|(_, row)| row).collect(), starts, extents }
    }
}

impl ClassDivision {
    fn parts(&self) -> usize {
        self.starts.len() - 1
    }

    fn rows(&self, part: usize) -> &[u32] {
        &self.order[self.starts[part]..self.starts[part + 1]]
    }

    fn extents(&self, part: usize, width: usize) -> &[AxisExtent] {
        &self.extents[part * width..(part + 1) * width]
    }

    fn count_part_subjects(&self, parts: &[usize], table: &RangeTable, people: &mut SeenSubjects) -> usize {
        people.restart();
        let rows = parts.iter().flat_map(|&part| self.rows(part));
        rows.filter(|&&row| people.is_new(table.subjects[row as usize])).count()
    }

    /// Separates parts with enough subjects and merges the others into a rest, joined by the smallest separate parts if
    /// necessary.
    ///
    /// Returns the loss and the rows of at least two parts.
    fn separate_parts(&self, table: &RangeTable, people: &mut SeenSubjects) -> Option<(f64, Vec<Vec<u32>>)> {
        let mut alone: Vec<(usize, usize)> = Vec::new();
        let mut rest: Vec<usize> = Vec::new();
        for part in 0..self.parts() {
            let count = self.count_part_subjects(&[part], table, people);
            let suppressed = self.has_suppressed && part + 1 == self.parts();
            if count >= table.k && !suppressed { alone.push((count, part)) } else { rest.push(part) }
        }
        while !rest.is_empty() && self.count_part_subjects(&rest, table, people) < table.k {
            // All parts of the same size join, so that the numbers of parts have no effect.
            let least = alone.iter().map(|(count, _)| *count).min()?;
            rest.extend(alone.iter().filter(|(count, _)| *count == least).map(|(_, part)| *part));
            alone.retain(|(count, _)| *count > least);
        }
        if alone.is_empty() || alone.len() == 1 && rest.is_empty() {
            return None;
        }
        let width = table.axes.len();
        let mut of_rest = vec![AxisExtent::default(); width];
        for &part in &rest {
            of_rest.iter_mut().zip(self.extents(part, width)).for_each(|(extent, other)| extent.merge(other));
        }
        // In ascending order, the rounding does not depend on the numbers of parts.
        let mut losses: Vec<f64> = alone.iter().map(|(_, part)| table.loss(self.extents(*part, width))).collect();
        losses.push(table.loss(&of_rest));
        losses.sort_unstable_by(f64::total_cmp);
        let mut parts: Vec<Vec<u32>> = alone.iter().map(|(_, part)| self.rows(*part).to_vec()).collect();
        if !rest.is_empty() {
            parts.push(rest.iter().flat_map(|&part| self.rows(part)).copied().collect());
        }
        Some((losses.iter().sum(), parts))
    }

    /// Returns the best cut below `limit` between consecutive parts: the loss, and the rows on both sides.
    fn best_consecutive_cut(
        &self,
        table: &RangeTable,
        people: &mut SeenSubjects,
        limit: f64,
    ) -> Option<(f64, Vec<Vec<u32>>)> {
        let from_above = self.prefix_losses((0..self.parts()).rev(), table, people);
        let from_below = self.prefix_losses(0..self.parts(), table, people);
        let (mut best, mut at) = (limit, None);
        for part in 1..self.parts() {
            let (Some(below), Some(above)) = (from_below[part - 1], from_above[self.parts() - 1 - part]) else {
                continue;
            };
            if below + above < best {
                best = below + above;
                at = Some(part);
            }
        }
        at.map(|part| {
            let (below, above) = self.order.split_at(self.starts[part]);
            (best, vec![below.to_vec(), above.to_vec()])
        })
    }

    /// Returns the losses of the first 1, 2, … parts; `None` for too few subjects.
    fn prefix_losses(
        &self,
        parts: impl Iterator<Item = usize>,
        table: &RangeTable,
        people: &mut SeenSubjects,
    ) -> Vec<Option<f64>> {
        let width = table.axes.len();
        let (mut extents, mut count) = (vec![AxisExtent::default(); width], 0);
        people.restart();
        let mut after = |part: usize| {
            self.rows(part).iter().for_each(|&row| count += usize::from(people.is_new(table.subjects[row as usize])));
            extents.iter_mut().zip(self.extents(part, width)).for_each(|(extent, other)| extent.merge(other));
            (count >= table.k).then(|| table.loss(&extents))
        };
        parts.map(&mut after).collect()
    }
}
