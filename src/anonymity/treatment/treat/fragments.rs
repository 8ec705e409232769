//! What of a batch leaves in which group, where attributes stand in several: a row shows one cell of each, in every group that shows it
//! at all (docs/methods.md §10.6).

use super::{Cells, Scene};
use crate::anonymity::plan::{Group, Plan};
use crate::anonymity::treatment::recode::{Assignment, UNRELEASED};
use crate::records::codebook::{CellId, SUPPRESSED};
use std::borrow::Cow;

/// The shared attributes of a plan.
pub(super) struct Shared {
    /// Positions in the schema, ascending, each with its level: the finest that any group shows.
    levels: Vec<(usize, u8)>,
    /// By group: those that it shows.
    shown: Vec<Vec<usize>>,
}

impl Shared {
    /// Those of `plan`.
    pub fn of(plan: &Plan) -> Self {
        let levels = plan.shared_levels();
        let shown = |group: usize| {
            let has = |a: &usize| plan.groups[group].quasi.contains(a) && plan.shows(group, *a);
            levels.iter().map(|(a, _)| *a).filter(has).collect()
        };
        Self { shown: (0..plan.groups.len()).map(shown).collect(), levels }
    }

    /// The shared attributes and their levels.
    pub fn levels(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        self.levels.iter().map(|&(a, level)| (a, usize::from(level)))
    }

    /// Whether an attribute is shared.
    pub fn has(&self, attribute: usize) -> bool {
        self.levels.iter().any(|(a, _)| *a == attribute)
    }

    /// Whether a group shows anything of an attribute that is.
    pub fn is_shown(&self, group: usize, attribute: usize) -> bool {
        self.shown[group].contains(&attribute)
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.levels.is_empty()
    }
}

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
