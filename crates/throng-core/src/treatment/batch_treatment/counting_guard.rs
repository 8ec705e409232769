//! Counting guard over the groups of one batch.

use super::{ReleasedCells, TreatmentContext};
use crate::plan::PlanGroup;
use crate::treatment::forced_pairs::{GroupCells, GuardRecordBound, LabelsAbove, StepBudget, withdraw_forced_pairs};
use crate::values::codebook::{ABSENT, CellId, NULL, SUPPRESSED};
use std::collections::BTreeSet;

struct SharedPart {
    rows: Vec<Vec<u32>>,
    is_shown: bool,
}

/// Returns the records that any observer can count: Σ over shared values of the largest group's fragments there, and
/// at least the fragments of the largest group.
///
/// Fragments that show `*` can belong to the same records and do not add.
fn countable_records(groups: &[GroupCells], parts: &[SharedPart]) -> usize {
    let most = |part: &SharedPart| part.rows.iter().map(Vec::len).max().unwrap_or(0);
    let fragments = |group: &GroupCells| {
        let says = |row: &usize| group.columns.iter().any(|column| column[*row] != SUPPRESSED);
        (0..group.worth.len()).filter(says).count()
    };
    let largest = groups.iter().map(fragments).max().unwrap_or(0);
    parts.iter().filter(|part| part.is_shown).map(most).sum::<usize>().max(largest)
}

impl TreatmentContext<'_> {
    /// Withdraws the fragments that counting could join, and returns their number.
    ///
    /// Recomputes sensitive values without the support of withdrawn rows.
    pub(super) fn withdraw_joinable(&self, cells: &mut ReleasedCells) -> u64 {
        let (mut withdrawn, mut steps) = (0, StepBudget::default());
        loop {
            let now = self.withdraw_all_forced(cells, &mut steps);
            withdrawn += now;
            if now == 0 {
                return withdrawn;
            }
            let groups = self.plan.groups.iter().zip(&self.names.bases).enumerate();
            for (number, (group, &base)) in groups {
                let leaves = self.fragment_rows(group, cells);
                let leaving: Vec<u32> = (0u32..).zip(&leaves).filter(|(_, leaves)| **leaves).map(|(r, _)| r).collect();
                let quasi: Vec<_> = group.quasi.iter().map(|&a| self.shown_column(number, a, cells, &leaves)).collect();
                let quasi: Vec<&[CellId]> = quasi.iter().map(AsRef::as_ref).collect();
                let class = self.class_keys(group, base, &quasi);
                let hidden = self.hide_sensitive(group, &class, leaving);
                for (&a, column) in group.sensitive.iter().zip(hidden.columns) {
                    cells[a] = column;
                }
                for a in group.attributes().into_iter().filter(|a| !self.shared.has(*a)) {
                    hidden.failing.iter().for_each(|&row| cells[a][row as usize] = SUPPRESSED);
                }
            }
        }
    }

    fn withdraw_all_forced(&self, cells: &mut ReleasedCells, steps: &mut StepBudget) -> u64 {
        if self.plan.groups.len() < 2 {
            return 0;
        }
        let groups = self.plan.groups.iter().enumerate();
        let mut groups: Vec<GroupCells> = groups.map(|(at, group)| self.guarded_cells(at, group, cells)).collect();
        let parts = self.shared_parts(&groups);
        let records = parts.as_ref().map_or(GuardRecordBound::LargestGroup, |parts| {
            GuardRecordBound::KnownAtLeast(countable_records(&groups, parts))
        });
        let mut withdrawn = self.withdraw_in_groups(&mut groups, self.owners, &self.batch.subjects, records, steps);
        for part in parts.iter().flatten() {
            let mut steps = StepBudget::for_part(parts.as_ref().map_or(0, Vec::len));
            withdrawn += self.withdraw_in_part(&mut groups, part, &mut steps);
        }
        for group in groups {
            for (a, column) in group.attributes.into_iter().zip(group.columns).filter(|(a, _)| !self.shared.has(*a)) {
                cells[a] = column;
            }
        }
        withdrawn
    }

    fn guarded_cells(&self, number: usize, group: &PlanGroup, cells: &ReleasedCells) -> GroupCells {
        let guarded: Vec<usize> = group.quasi.iter().chain(&group.sensitive).copied().collect();
        let leaves = if self.shared.is_empty() { Vec::new() } else { self.fragment_rows(group, cells) };
        let columns: Vec<Vec<CellId>> =
            guarded.iter().map(|&a| self.shown_column(number, a, cells, &leaves).into_owned()).collect();
        let above = guarded.iter().zip(&columns).map(|(&a, column)| self.labels_above_cells(a, column)).collect();
        let worth = self.fragment_worth(&guarded, &columns);
        GroupCells { attributes: guarded, columns, labels_by_cell: above, quasi: group.quasi.len(), worth }
    }

    fn withdraw_in_groups(
        &self,
        groups: &mut [GroupCells],
        owners: &[u64],
        subjects: &[u64],
        records: GuardRecordBound,
        steps: &mut StepBudget,
    ) -> u64 {
        let Some(slots) = self.mask.join_by_subject(owners) else {
            return withdraw_forced_pairs(groups, subjects, self.policy.k, records, steps);
        };
        // The lines of one subject belong to different rows.
        let joined = |group: &GroupCells| GroupCells {
            attributes: group.attributes.clone(),
            columns: group.columns.iter().map(|column| slots.gather_column(column)).collect(),
            labels_by_cell: group.labels_by_cell.clone(),
            worth: slots.max_worth(&group.worth),
            quasi: group.quasi,
        };
        let mut by_slot: Vec<GroupCells> = groups.iter().map(joined).collect();
        let counting = slots.counting_subjects(subjects);
        let withdrawn =
            withdraw_forced_pairs(&mut by_slot, &counting, self.policy.k, GuardRecordBound::UnionOfBoth, steps);
        for (group, left) in groups.iter_mut().zip(by_slot) {
            for (column, left) in group.columns.iter_mut().zip(&left.columns) {
                slots.suppress_lost(column, left);
            }
        }
        withdrawn
    }

    /// By shared cells and group.
    fn shared_parts(&self, groups: &[GroupCells]) -> Option<Vec<SharedPart>> {
        if self.shared.is_empty() {
            return None;
        }
        let (mut parts, mut number_of) = (Vec::<SharedPart>::new(), hashbrown::HashMap::<Vec<CellId>, usize>::new());
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
                    parts.push(SharedPart { rows: vec![Vec::new(); groups.len()], is_shown });
                }
                parts[at].rows[number].push(u32::try_from(row).expect("a batch is bounded"));
            }
        }
        Some(parts)
    }

    fn withdraw_in_part(&self, groups: &mut [GroupCells], part: &SharedPart, steps: &mut StepBudget) -> u64 {
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
                labels_by_cell: places.iter().map(|&at| group.labels_by_cell[at].clone()).collect(),
                quasi: places.iter().filter(|at| **at < group.quasi).count(),
                worth: all.iter().map(|&row| group.worth[row as usize]).collect(),
            }
        };
        let mut inside: Vec<GroupCells> = numbers.iter().map(|&number| within(number)).collect();
        let of = |subjects: &[u64]| all.iter().map(|&row| subjects[row as usize]).collect::<Vec<u64>>();
        let (owners, subjects) = (of(self.owners), of(&self.batch.subjects));
        let withdrawn = self.withdraw_in_groups(&mut inside, &owners, &subjects, GuardRecordBound::LargestGroup, steps);
        if withdrawn == 0 {
            return 0;
        }
        for (number, left) in numbers.into_iter().zip(inside) {
            for (at, &row) in all.iter().enumerate() {
                let gone = left.columns.iter().all(|column| column[at] == SUPPRESSED);
                if gone && part.rows[number].binary_search(&row).is_ok() {
                    groups[number].suppress_row(row);
                }
            }
        }
        withdrawn
    }

    /// Returns the coarser labels of each cell, except the root.
    fn labels_above_cells(&self, attribute: usize, column: &[CellId]) -> LabelsAbove {
        let book = &self.books[attribute];
        let mut above = LabelsAbove::default();
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

    fn fragment_worth(&self, attributes: &[usize], columns: &[Vec<CellId>]) -> Vec<f32> {
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
