//! The counting guard over the groups of one batch: what it would join is withdrawn, and what that changes is settled again.

use super::{Cells, Scene};
use crate::anonymity::treatment::forced_pairs::{Above, GroupCells, Steps, withdraw_forced_pairs_among};
use crate::anonymity::treatment::recode::Assignment;
use crate::records::codebook::{ABSENT, CellId, NULL, SUPPRESSED};

impl Scene<'_> {
    /// Withdraws what counting would join. A withdrawn row no longer supports the sensitive values of its group, nor hides
    /// those of its class, so they are settled again, until nothing moves; every turn withdraws at least one fragment, so
    /// it ends.
    pub(super) fn guard(&self, cells: &mut Cells, assignments: &[Assignment]) -> u64 {
        let (mut withdrawn, mut steps) = (0, Steps::default());
        loop {
            let now = self.withdraw_forced_pairs(cells, &mut steps);
            withdrawn += now;
            if now == 0 {
                return withdrawn;
            }
            for ((group, &base), assignment) in self.plan.groups.iter().zip(&self.names.bases).zip(assignments) {
                // Where there is no class to be in, a row leaves as long as anything of it does.
                let telling = if group.quasi.is_empty() { &group.sensitive } else { &group.quasi };
                let leaves = |row: &u32| telling.iter().any(|&a| cells[a][*row as usize] != SUPPRESSED);
                let leaving: Vec<u32> = (0..u32::try_from(self.rows()).expect("bounded")).filter(leaves).collect();
                let quasi: Vec<&[CellId]> = group.quasi.iter().map(|&a| cells[a].as_slice()).collect();
                let class = self.classes(group, base, &quasi);
                let hidden = self.hide(group, &class, leaving, &assignment.silent);
                for (&a, column) in group.sensitive.iter().zip(hidden.columns) {
                    cells[a] = column;
                }
                for a in group.attributes() {
                    hidden.failing.iter().for_each(|&row| cells[a][row as usize] = SUPPRESSED);
                }
            }
        }
    }

    fn withdraw_forced_pairs(&self, cells: &mut Cells, steps: &mut Steps) -> u64 {
        if self.plan.groups.len() < 2 {
            return 0;
        }
        let mut groups: Vec<GroupCells> = self
            .plan
            .groups
            .iter()
            .map(|g| {
                let guarded: Vec<usize> = g.quasi.iter().chain(&g.sensitive).copied().collect();
                let columns: Vec<Vec<CellId>> = guarded.iter().map(|&a| std::mem::take(&mut cells[a])).collect();
                let above = guarded.iter().zip(&columns).map(|(&a, column)| self.above(a, column)).collect();
                let worth = self.worth(&guarded, &columns);
                GroupCells { attributes: guarded, columns, above, quasi: g.quasi.len(), worth }
            })
            .collect();
        let Some(slots) = self.mask.slots(self.owners) else {
            let (subjects, k) = (&self.batch.subjects, self.policy.k);
            let withdrawn = withdraw_forced_pairs_among(&mut groups, subjects, k, false, steps);
            for group in groups {
                for (a, column) in group.attributes.into_iter().zip(group.columns) {
                    cells[a] = column;
                }
            }
            return withdrawn;
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
        let counting = slots.counting(&self.batch.subjects);
        let withdrawn = withdraw_forced_pairs_among(&mut by_slot, &counting, self.policy.k, true, steps);
        for (mut group, left) in groups.into_iter().zip(by_slot) {
            for ((a, column), left) in group.attributes.into_iter().zip(&mut group.columns).zip(&left.columns) {
                slots.withdraw(column, left);
                cells[a] = std::mem::take(column);
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
