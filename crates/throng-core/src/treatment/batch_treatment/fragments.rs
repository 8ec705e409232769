//! Fragments with shared attributes (docs/internals/methods.md §10.6).

use super::{ReleasedCells, TreatmentContext};
use crate::plan::PlanGroup;
use crate::treatment::local_recoding::{ClassAssignment, UNRELEASED_NODE};
use crate::values::codebook::{CellId, SUPPRESSED};
use std::borrow::Cow;

impl TreatmentContext<'_> {
    pub(super) fn fragment_rows(&self, group: &PlanGroup, cells: &ReleasedCells) -> Vec<bool> {
        let mut leaves = vec![false; self.rows()];
        for &a in group.quasi.iter().chain(&group.sensitive).filter(|a| !self.shared.has(**a)) {
            leaves.iter_mut().zip(&cells[a]).for_each(|(leaves, &cell)| *leaves |= cell != SUPPRESSED);
        }
        leaves
    }

    /// Returns the column of an attribute in group `number`; suppresses shared cells of rows outside `leave`.
    pub(super) fn shown_column<'c>(
        &self,
        number: usize,
        attribute: usize,
        cells: &'c ReleasedCells,
        leave: &[bool],
    ) -> Cow<'c, [CellId]> {
        if !self.shared.has(attribute) {
            return Cow::Borrowed(&cells[attribute]);
        }
        let shown = self.shared.is_shown(number, attribute);
        let cell = |(&cell, &leaves): (&CellId, &bool)| if shown && leaves { cell } else { SUPPRESSED };
        Cow::Owned(cells[attribute].iter().zip(leave).map(cell).collect())
    }

    /// Removes rows with only shared cells; their classes have no other rows.
    pub(super) fn remove_uninformative_rows(&self, group: &PlanGroup, assignment: &mut ClassAssignment) {
        if !group.quasi.iter().any(|a| self.shared.has(*a)) {
            return;
        }
        let own: Vec<(usize, usize)> =
            group.quasi.iter().copied().enumerate().filter(|(_, a)| !self.shared.has(*a)).collect();
        for (row, at) in assignment.node.iter_mut().enumerate().filter(|(_, at)| **at != UNRELEASED_NODE) {
            let levels = &group.ladder[*at as usize].levels;
            let says = |&(i, a): &(usize, usize)| {
                self.books[a].cell(self.batch.columns[a][row], usize::from(levels[i])) != SUPPRESSED
            };
            if !own.iter().any(says) {
                *at = UNRELEASED_NODE;
            }
        }
    }

    pub(super) fn suppress_unshown(&self, cells: &mut ReleasedCells) {
        for (attribute, _) in self.shared.levels() {
            let mut shows = vec![false; self.rows()];
            let groups = self.plan.groups.iter().enumerate();
            for (_, group) in groups.filter(|(number, _)| self.shared.is_shown(*number, attribute)) {
                shows.iter_mut().zip(self.fragment_rows(group, cells)).for_each(|(shows, leaves)| *shows |= leaves);
            }
            let unshown = cells[attribute].iter_mut().zip(shows).filter(|(_, shows)| !shows);
            unshown.for_each(|(cell, _)| *cell = SUPPRESSED);
        }
    }
}
