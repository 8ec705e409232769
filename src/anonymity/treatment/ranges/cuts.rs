//! The best cut of a class.

use super::axis::{Extent, Parts, SUPPRESSED_PART};
use super::table::Table;

/// Savings below this are none: sums of losses are rounded.
const LEAST_SAVING: f64 = 1e-9;

/// A class that may be cut.
pub(super) struct Node {
    rows: Vec<u32>,
    /// By axis.
    extents: Vec<Extent>,
    loss: f64,
}

/// Counts distinct people: each is remembered with the number of the count that met them last.
pub(super) struct People {
    met: Vec<u32>,
    count: u32,
}

impl People {
    pub fn new(people: usize) -> Self {
        Self { met: vec![0; people], count: 0 }
    }

    fn restart(&mut self) {
        self.count += 1;
    }

    /// Whether somebody is met for the first time since the restart.
    fn is_new(&mut self, subject: Option<u32>) -> bool {
        let count = self.count;
        subject.is_some_and(|subject| std::mem::replace(&mut self.met[subject as usize], count) != count)
    }
}

/// The parts of a class along one axis, in their order.
struct Divided {
    /// The rows, part after part.
    order: Vec<u32>,
    /// By part, where its rows begin; the last is the number of rows.
    starts: Vec<usize>,
    /// By part and axis.
    extents: Vec<Extent>,
    /// The last part is of rows whose cells are suppressed by themselves.
    has_suppressed: bool,
}

impl Node {
    pub fn new(rows: Vec<u32>, table: &Table) -> Self {
        let width = table.axes.len();
        let mut extents = vec![Extent::default(); width];
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

    /// The parts of the cut that saves most; of equal ones that along the first axis, and the lowest there. None where no cut leaves
    /// every part its crowd and saves anything.
    pub fn best_cut(&self, table: &Table, people: &mut People) -> Option<Vec<Vec<u32>>> {
        let (mut best, mut parts) = (self.loss - LEAST_SAVING, None);
        if self.rows.len() < 2 * table.k {
            return None;
        }
        for axis in 0..table.axes.len() {
            let width = table.axes.len();
            let cells = self.rows.iter().map(|&row| table.cells[row as usize * width + axis]);
            let Some(of_rows) = table.axes[axis].parts(&self.extents[axis], cells) else { continue };
            let found = match of_rows {
                Parts::Apart(numbers) => {
                    let divided = self.divided(&numbers, table);
                    divided.apart(table, people).filter(|(loss, _)| *loss < best)
                }
                Parts::Between(numbers) => self.divided(&numbers, table).best_between(table, people, best),
            };
            if let Some((loss, found)) = found {
                (best, parts) = (loss, Some(found));
            }
        }
        parts
    }

    /// The rows by the number of their part.
    fn divided(&self, numbers: &[u32], table: &Table) -> Divided {
        let width = table.axes.len();
        let mut sorted: Vec<(u32, u32)> = numbers.iter().copied().zip(self.rows.iter().copied()).collect();
        sorted.sort_unstable();
        let (mut starts, mut extents) = (Vec::new(), Vec::new());
        let mut last = None;
        for (at, &(number, row)) in sorted.iter().enumerate() {
            if last != Some(number) {
                last = Some(number);
                starts.push(at);
                extents.resize(extents.len() + width, Extent::default());
            }
            let of_part = extents.len() - width;
            let cells = &table.cells[row as usize * width..(row as usize + 1) * width];
            extents[of_part..].iter_mut().zip(cells).for_each(|(extent, &cell)| extent.add(cell));
        }
        starts.push(sorted.len());
        let has_suppressed = last == Some(SUPPRESSED_PART);
        Divided { has_suppressed, order: sorted.into_iter().map(|(_, row)| row).collect(), starts, extents }
    }
}

impl Divided {
    fn parts(&self) -> usize {
        self.starts.len() - 1
    }

    fn rows(&self, part: usize) -> &[u32] {
        &self.order[self.starts[part]..self.starts[part + 1]]
    }

    fn extents(&self, part: usize, width: usize) -> &[Extent] {
        &self.extents[part * width..(part + 1) * width]
    }

    /// The people of some parts.
    fn people(&self, parts: &[usize], table: &Table, people: &mut People) -> usize {
        people.restart();
        let rows = parts.iter().flat_map(|&part| self.rows(part));
        rows.filter(|&&row| people.is_new(table.subjects[row as usize])).count()
    }

    /// Each part with a crowd by itself, and the others together: the loss, and the rows of the parts. Where the others have no crowd,
    /// the smallest parts that have one join them. None where that leaves fewer than two parts.
    fn apart(&self, table: &Table, people: &mut People) -> Option<(f64, Vec<Vec<u32>>)> {
        let mut alone: Vec<(usize, usize)> = Vec::new();
        let mut rest: Vec<usize> = Vec::new();
        for part in 0..self.parts() {
            let count = self.people(&[part], table, people);
            let suppressed = self.has_suppressed && part + 1 == self.parts();
            if count >= table.k && !suppressed { alone.push((count, part)) } else { rest.push(part) }
        }
        while !rest.is_empty() && self.people(&rest, table, people) < table.k {
            // All of the same size: the numbers of parts decide nothing.
            let least = alone.iter().map(|(count, _)| *count).min()?;
            rest.extend(alone.iter().filter(|(count, _)| *count == least).map(|(_, part)| *part));
            alone.retain(|(count, _)| *count > least);
        }
        if alone.is_empty() || alone.len() == 1 && rest.is_empty() {
            return None;
        }
        let width = table.axes.len();
        let mut of_rest = vec![Extent::default(); width];
        for &part in &rest {
            of_rest.iter_mut().zip(self.extents(part, width)).for_each(|(extent, other)| extent.merge(other));
        }
        // Ascending, so that the numbers of parts do not decide how the sum is rounded.
        let mut losses: Vec<f64> = alone.iter().map(|(_, part)| table.loss(self.extents(*part, width))).collect();
        losses.push(table.loss(&of_rest));
        losses.sort_unstable_by(f64::total_cmp);
        let mut parts: Vec<Vec<u32>> = alone.iter().map(|(_, part)| self.rows(*part).to_vec()).collect();
        if !rest.is_empty() {
            parts.push(rest.iter().flat_map(|&part| self.rows(part)).copied().collect());
        }
        Some((losses.iter().sum(), parts))
    }

    /// The cut between two neighbouring parts with a loss below `limit` and least: the loss, and the rows on both sides.
    fn best_between(&self, table: &Table, people: &mut People, limit: f64) -> Option<(f64, Vec<Vec<u32>>)> {
        let from_above = self.losses((0..self.parts()).rev(), table, people);
        let from_below = self.losses(0..self.parts(), table, people);
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

    /// The loss of the first parts together, of the first two and so on; none where they have no crowd.
    fn losses(&self, parts: impl Iterator<Item = usize>, table: &Table, people: &mut People) -> Vec<Option<f64>> {
        let width = table.axes.len();
        let (mut extents, mut count) = (vec![Extent::default(); width], 0);
        people.restart();
        let mut after = |part: usize| {
            self.rows(part).iter().for_each(|&row| count += usize::from(people.is_new(table.subjects[row as usize])));
            extents.iter_mut().zip(self.extents(part, width)).for_each(|(extent, other)| extent.merge(other));
            (count >= table.k).then(|| table.loss(&extents))
        };
        parts.map(&mut after).collect()
    }
}
