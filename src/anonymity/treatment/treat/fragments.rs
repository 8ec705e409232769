//! What of a batch leaves in which group, where attributes stand in several: a row shows one cell of each, in every group that shows it
//! at all (docs/methods.md §10.6).

use super::{Cells, Scene};
use crate::anonymity::plan::Group;
use crate::anonymity::treatment::recode::{Assignment, UNRELEASED};
use std::borrow::Cow;
use throng_core::values::codebook::{CellId, SUPPRESSED};

impl Scene<'_> {
    /// Which rows have a fragment in the group: those of which it shows any quasi or sensitive cell that is not shared.
    pub(super) fn fragments(&self, group: &Group, cells: &Cells) -> Vec<bool> {
        let mut leaves = vec![false; self.rows()];
        for &a in group.quasi.iter().chain(&group.sensitive).filter(|a| !self.shared.has(**a)) {
            leaves.iter_mut().zip(&cells[a]).for_each(|(leaves, &cell)| *leaves |= cell != SUPPRESSED);
        }
        leaves
    }

    /// What the rows that `leave` in group `number` show of an attribute.
    pub(super) fn column<'c>(
        &self,
        number: usize,
        attribute: usize,
        cells: &'c Cells,
        leave: &[bool],
    ) -> Cow<'c, [CellId]> {
        if !self.shared.has(attribute) {
            return Cow::Borrowed(&cells[attribute]);
        }
        let shown = self.shared.is_shown(number, attribute);
        let cell = |(&cell, &leaves): (&CellId, &bool)| if shown && leaves { cell } else { SUPPRESSED };
        Cow::Owned(cells[attribute].iter().zip(leave).map(cell).collect())
    }

    /// Rows of which nothing but shared cells would be shown do not leave: each of the others shares its class with none of them.
    pub(super) fn leave_out_silent(&self, group: &Group, assignment: &mut Assignment) {
        if !group.quasi.iter().any(|a| self.shared.has(*a)) {
            return;
        }
        let own: Vec<(usize, usize)> =
            group.quasi.iter().copied().enumerate().filter(|(_, a)| !self.shared.has(*a)).collect();
        for (row, at) in assignment.node.iter_mut().enumerate().filter(|(_, at)| **at != UNRELEASED) {
            let levels = &group.ladder[*at as usize].levels;
            let says = |&(i, a): &(usize, usize)| {
                self.books[a].cell(self.batch.columns[a][row], usize::from(levels[i])) != SUPPRESSED
            };
            if !own.iter().any(says) {
                *at = UNRELEASED;
            }
        }
    }

    /// Of the shared attributes only what leaves stays, at the end.
    pub(super) fn withdraw_unshown(&self, cells: &mut Cells) {
        for (attribute, _) in self.shared.levels() {
            let mut shows = vec![false; self.rows()];
            let groups = self.plan.groups.iter().enumerate();
            for (_, group) in groups.filter(|(number, _)| self.shared.is_shown(*number, attribute)) {
                shows.iter_mut().zip(self.fragments(group, cells)).for_each(|(shows, leaves)| *shows |= leaves);
            }
            let unshown = cells[attribute].iter_mut().zip(shows).filter(|(_, shows)| !shows);
            unshown.for_each(|(cell, _)| *cell = SUPPRESSED);
        }
    }
}
