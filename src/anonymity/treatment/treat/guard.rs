//! The counting guard over the groups of one batch: what it would join is withdrawn, and what that changes is settled again.

use super::{Cells, Scene};
use crate::anonymity::plan::Group;
use crate::anonymity::treatment::forced_pairs::{Above, GroupCells, Records, Steps, withdraw_forced_pairs};
use std::collections::BTreeSet;
use throng_core::values::codebook::{ABSENT, CellId, NULL, SUPPRESSED};

/// Rows that show the same of the shared attributes.
struct Part {
    /// By group, ascending.
    rows: Vec<Vec<u32>>,
    /// Not all of that is `*`.
    is_shown: bool,
}

/// How many records everybody can count: of each shared value that is shown the most fragments that one group has, and never fewer than
/// the largest group has. What shows `*` may be of the same records.
fn known_records(groups: &[GroupCells], parts: &[Part]) -> usize {
    let most = |part: &Part| part.rows.iter().map(Vec::len).max().unwrap_or(0);
    let fragments = |group: &GroupCells| {
        let says = |row: &usize| group.columns.iter().any(|column| column[*row] != SUPPRESSED);
        (0..group.worth.len()).filter(says).count()
    };
    let largest = groups.iter().map(fragments).max().unwrap_or(0);
    parts.iter().filter(|part| part.is_shown).map(most).sum::<usize>().max(largest)
}

impl Scene<'_> {
    /// Withdraws what counting would join. A withdrawn row no longer supports the sensitive values of its group, nor hides
    /// those of its class, so they are settled again, until nothing moves; every turn withdraws at least one fragment, so
    /// it ends.
    pub(super) fn guard(&self, cells: &mut Cells) -> u64 {
        let (mut withdrawn, mut steps) = (0, Steps::default());
        loop {
            let now = self.withdraw_forced_pairs(cells, &mut steps);
            withdrawn += now;
            if now == 0 {
                return withdrawn;
            }
            let groups = self.plan.groups.iter().zip(&self.names.bases).enumerate();
            for (number, (group, &base)) in groups {
                let leaves = self.fragments(group, cells);
                let leaving: Vec<u32> = (0u32..).zip(&leaves).filter(|(_, leaves)| **leaves).map(|(r, _)| r).collect();
                let quasi: Vec<_> = group.quasi.iter().map(|&a| self.column(number, a, cells, &leaves)).collect();
                let quasi: Vec<&[CellId]> = quasi.iter().map(AsRef::as_ref).collect();
                let class = self.classes(group, base, &quasi);
                let hidden = self.hide(group, &class, leaving);
                for (&a, column) in group.sensitive.iter().zip(hidden.columns) {
                    cells[a] = column;
                }
                for a in group.attributes().into_iter().filter(|a| !self.shared.has(*a)) {
                    hidden.failing.iter().for_each(|&row| cells[a][row as usize] = SUPPRESSED);
                }
            }
        }
    }

    /// Over the whole batch, and within each shared value as in a batch of its own.
    fn withdraw_forced_pairs(&self, cells: &mut Cells, steps: &mut Steps) -> u64 {
        if self.plan.groups.len() < 2 {
            return 0;
        }
        let groups = self.plan.groups.iter().enumerate();
        let mut groups: Vec<GroupCells> = groups.map(|(at, group)| self.group_cells_of(at, group, cells)).collect();
        let parts = self.parts(&groups);
        let records = parts.as_ref().map_or(Records::OfLargest, |parts| Records::Known(known_records(&groups, parts)));
        let mut withdrawn = self.withdraw_among(&mut groups, self.owners, &self.batch.subjects, records, steps);
        for part in parts.iter().flatten() {
            let mut steps = Steps::of_part(parts.as_ref().map_or(0, Vec::len));
            withdrawn += self.withdraw_within(&mut groups, part, &mut steps);
        }
        for group in groups {
            for (a, column) in group.attributes.into_iter().zip(group.columns).filter(|(a, _)| !self.shared.has(*a)) {
                cells[a] = column;
            }
        }
        withdrawn
    }

    fn group_cells_of(&self, number: usize, group: &Group, cells: &Cells) -> GroupCells {
        let guarded: Vec<usize> = group.quasi.iter().chain(&group.sensitive).copied().collect();
        let leaves = if self.shared.is_empty() { Vec::new() } else { self.fragments(group, cells) };
        let columns: Vec<Vec<CellId>> =
            guarded.iter().map(|&a| self.column(number, a, cells, &leaves).into_owned()).collect();
        let above = guarded.iter().zip(&columns).map(|(&a, column)| self.above(a, column)).collect();
        let worth = self.worth(&guarded, &columns);
        GroupCells { attributes: guarded, columns, above, quasi: group.quasi.len(), worth }
    }

    /// Withdraws among `groups` of rows that are of `owners` and count for `subjects`.
    fn withdraw_among(
        &self,
        groups: &mut [GroupCells],
        owners: &[u64],
        subjects: &[u64],
        records: Records,
        steps: &mut Steps,
    ) -> u64 {
        let Some(slots) = self.mask.slots(owners) else {
            return withdraw_forced_pairs(groups, subjects, self.policy.k, records, steps);
        };
        // The lines of one subject are of different rows: they are joined by subject.
        let joined = |group: &GroupCells| GroupCells {
            attributes: group.attributes.clone(),
            columns: group.columns.iter().map(|column| slots.gather(column)).collect(),
            above: group.above.clone(),
            worth: slots.worth(&group.worth),
            quasi: group.quasi,
        };
        let mut by_slot: Vec<GroupCells> = groups.iter().map(joined).collect();
        let counting = slots.counting(subjects);
        let withdrawn = withdraw_forced_pairs(&mut by_slot, &counting, self.policy.k, Records::OfBoth, steps);
        for (group, left) in groups.iter_mut().zip(by_slot) {
            for (column, left) in group.columns.iter_mut().zip(&left.columns) {
                slots.withdraw(column, left);
            }
        }
        withdrawn
    }

    /// The parts of the batch: its rows by what they show of the shared attributes, of every group that has them. `None` where there are
    /// none.
    fn parts(&self, groups: &[GroupCells]) -> Option<Vec<Part>> {
        if self.shared.is_empty() {
            return None;
        }
        let (mut parts, mut number_of) = (Vec::<Part>::new(), hashbrown::HashMap::<Vec<CellId>, usize>::new());
        for (number, group) in groups.iter().enumerate() {
            let columns = group.attributes.iter().zip(&group.columns);
            let (shared, own): (Vec<_>, Vec<_>) = columns.partition(|(a, _)| self.shared.has(**a));
            if shared.is_empty() {
                continue;
            }
            for row in 0..self.rows() {
                if own.iter().all(|(_, column)| column[row] == SUPPRESSED) {
                    continue;
                }
                let shows: Vec<CellId> = shared.iter().map(|(_, column)| column[row]).collect();
                let is_shown = shows.iter().any(|cell| *cell != SUPPRESSED);
                let at = *number_of.entry(shows).or_insert(parts.len());
                if at == parts.len() {
                    parts.push(Part { rows: vec![Vec::new(); groups.len()], is_shown });
                }
                parts[at].rows[number].push(u32::try_from(row).expect("a batch is bounded"));
            }
        }
        Some(parts)
    }

    /// Withdraws within one part what counting would join there, as if it were a batch.
    fn withdraw_within(&self, groups: &mut [GroupCells], part: &Part, steps: &mut Steps) -> u64 {
        let all: BTreeSet<u32> = part.rows.iter().flatten().copied().collect();
        let all: Vec<u32> = all.into_iter().collect();
        let taking = |number: &usize| !part.rows[*number].is_empty();
        let numbers: Vec<usize> = (0..groups.len()).filter(taking).collect();
        let within = |number: usize| {
            let group = &groups[number];
            let places: Vec<usize> =
                (0..group.attributes.len()).filter(|at| !self.shared.has(group.attributes[*at])).collect();
            let mine: Vec<bool> = all.iter().map(|row| part.rows[number].binary_search(row).is_ok()).collect();
            let cell = |column: &[CellId], row: u32, mine: bool| if mine { column[row as usize] } else { SUPPRESSED };
            let column =
                |&at: &usize| all.iter().zip(&mine).map(|(&row, &mine)| cell(&group.columns[at], row, mine)).collect();
            GroupCells {
                attributes: places.iter().map(|&at| group.attributes[at]).collect(),
                columns: places.iter().map(column).collect(),
                above: places.iter().map(|&at| group.above[at].clone()).collect(),
                quasi: places.iter().filter(|at| **at < group.quasi).count(),
                worth: all.iter().map(|&row| group.worth[row as usize]).collect(),
            }
        };
        let mut inside: Vec<GroupCells> = numbers.iter().map(|&number| within(number)).collect();
        let of = |subjects: &[u64]| all.iter().map(|&row| subjects[row as usize]).collect::<Vec<u64>>();
        let (owners, subjects) = (of(self.owners), of(&self.batch.subjects));
        let withdrawn = self.withdraw_among(&mut inside, &owners, &subjects, Records::OfLargest, steps);
        if withdrawn == 0 {
            return 0;
        }
        for (number, left) in numbers.into_iter().zip(inside) {
            for (at, &row) in all.iter().enumerate() {
                let gone = left.columns.iter().all(|column| column[at] == SUPPRESSED);
                if gone && part.rows[number].binary_search(&row).is_ok() {
                    groups[number].withdraw(row);
                }
            }
        }
        withdrawn
    }

    /// The labels above the cells of a column: the coarser ones that the same values have, short of the root.
    fn above(&self, attribute: usize, column: &[CellId]) -> Above {
        let book = &self.books[attribute];
        let mut above = Above::default();
        for (&cell, &code) in column.iter().zip(&self.batch.columns[attribute]) {
            if cell == SUPPRESSED || above.contains_key(&cell) {
                continue;
            }
            let mut path = (0..book.levels()).map(|level| book.cell(code, level));
            if path.any(|level| level == cell) {
                let mut labels: Vec<CellId> = path.filter(|&label| label != cell && label != SUPPRESSED).collect();
                labels.dedup();
                above.insert(cell, labels);
            }
        }
        above
    }

    /// What each row's fragment is worth: the sum of one minus the loss of its present cells.
    fn worth(&self, attributes: &[usize], columns: &[Vec<CellId>]) -> Vec<f32> {
        let mut worth = vec![0.0; self.rows()];
        for (&a, column) in attributes.iter().zip(columns) {
            for ((worth, &cell), &code) in worth.iter_mut().zip(column).zip(&self.batch.columns[a]) {
                if !matches!(code, ABSENT | NULL) {
                    *worth += 1.0 - self.books[a].loss(cell);
                }
            }
        }
        worth
    }
}
