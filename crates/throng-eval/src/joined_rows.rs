//! Assignment of joined rows to groups.
//!
//! A row belongs to the group with all its shown attributes. If several match, the lineage decides.

use std::collections::BTreeMap;

/// Row content at one attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowCellState {
    /// No key, or an empty cell.
    AbsentKey,
    /// Null.
    Missing,
    /// A value.
    Shown,
}

/// Reason for rejecting a joined row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JoinedRowError {
    /// A missing attribute.
    Incomplete,
    /// No group with all shown attributes.
    SeveralGroups,
    /// Lineage group without the shown attributes.
    WrongGroup,
    /// Row missing in the lineage, with an ambiguous group.
    NotInLineage,
}

impl JoinedRowError {
    /// Returns the violated rule.
    pub fn violated_rule(self) -> &'static str {
        match self {
            Self::Incomplete => "a joined row has every attribute, null where it has no value",
            Self::SeveralGroups => "a joined row shows attributes of one group only",
            Self::WrongGroup => "a joined row shows attributes of the group that the lineage names",
            Self::NotInLineage => "a joined row is named by the lineage",
        }
    }
}

/// Candidate groups of joined rows.
pub struct RowGroupIndex {
    /// By attribute, ascending.
    groups: Vec<Vec<usize>>,
    lineage_groups: Option<BTreeMap<u64, usize>>,
}

impl RowGroupIndex {
    /// Builds the index from row `attributes`, group attributes, and the lineage.
    pub fn new<'g>(
        attributes: &[usize],
        groups: &(impl Iterator<Item = &'g [usize]> + Clone),
        told: Option<BTreeMap<u64, usize>>,
    ) -> Self {
        let having = |a: &usize| {
            let numbered = groups.clone().enumerate();
            numbered.filter(|(_, group)| group.contains(a)).map(|(number, _)| number).collect()
        };
        Self { groups: attributes.iter().map(having).collect(), lineage_groups: told }
    }

    /// Returns the group of `row`; none if ambiguous without a lineage.
    ///
    /// # Errors
    ///
    /// When no group fits.
    pub fn group_of_row(
        &self,
        row: u64,
        at: impl Iterator<Item = RowCellState>,
    ) -> Result<Option<usize>, JoinedRowError> {
        // Matching groups; `None` while no attribute is shown.
        let mut having: Option<Vec<usize>> = None;
        for (at, groups) in at.zip(&self.groups) {
            match (at, &mut having) {
                (RowCellState::AbsentKey, _) => return Err(JoinedRowError::Incomplete),
                (RowCellState::Missing, _) => {}
                (RowCellState::Shown, None) => having = Some(groups.clone()),
                (RowCellState::Shown, Some(having)) => having.retain(|group| groups.contains(group)),
            }
        }
        if having.as_ref().is_some_and(Vec::is_empty) {
            return Err(JoinedRowError::SeveralGroups);
        }
        let told = self.lineage_groups.as_ref().and_then(|told| told.get(&row).copied());
        match (having.as_deref(), told) {
            (Some(having), Some(told)) if !having.contains(&told) => Err(JoinedRowError::WrongGroup),
            (_, Some(told)) => Ok(Some(told)),
            (Some([only]), None) => Ok(Some(*only)),
            (_, None) if self.lineage_groups.is_some() => Err(JoinedRowError::NotInLineage),
            (_, None) => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joined_row_with_attributes_of_one_group_is_assigned() {
        use RowCellState::{AbsentKey, Missing, Shown};
        let groups: [&[usize]; 2] = [&[4, 6], &[5]];
        let owners = |told: &[(u64, usize)]| {
            RowGroupIndex::new(&[4, 5, 6], &groups.into_iter(), Some(told.iter().copied().collect()))
        };
        let of = |told: &[(u64, usize)], at: [RowCellState; 3]| owners(told).group_of_row(7, at.into_iter());
        assert_eq!(of(&[], [Shown, Missing, Missing]), Ok(Some(0)));
        assert_eq!(of(&[], [Shown, Missing, Shown]), Ok(Some(0)));
        assert_eq!(of(&[(7, 1)], [Missing, Shown, Missing]), Ok(Some(1)));
        assert_eq!(of(&[(6, 1)], [Missing; 3]), Err(JoinedRowError::NotInLineage));
        assert_eq!(of(&[(7, 1)], [Missing; 3]), Ok(Some(1)));
        assert_eq!(of(&[], [Shown, Shown, Missing]), Err(JoinedRowError::SeveralGroups));
        assert_eq!(of(&[], [Missing, AbsentKey, Missing]), Err(JoinedRowError::Incomplete));
        assert_eq!(of(&[(7, 1)], [Shown, Missing, Missing]), Err(JoinedRowError::WrongGroup));
        let untold = RowGroupIndex::new(&[4, 5], &groups.into_iter(), None);
        assert_eq!(untold.group_of_row(0, [Missing; 2].into_iter()), Ok(None));
    }

    #[test]
    fn joined_row_with_shared_attributes_needs_lineage() {
        use RowCellState::{Missing, Shown};
        let groups: [&[usize]; 3] = [&[0, 1], &[0, 2], &[3]];
        let of = |told: Option<usize>, at: [RowCellState; 4]| {
            let told = told.map(|group| BTreeMap::from([(7, group)]));
            RowGroupIndex::new(&[0, 1, 2, 3], &groups.into_iter(), told).group_of_row(7, at.into_iter())
        };
        assert_eq!(of(None, [Shown, Shown, Missing, Missing]), Ok(Some(0)));
        assert_eq!(of(None, [Shown, Missing, Shown, Missing]), Ok(Some(1)));
        assert_eq!(of(None, [Shown, Missing, Missing, Missing]), Ok(None));
        assert_eq!(of(Some(1), [Shown, Missing, Missing, Missing]), Ok(Some(1)));
        assert_eq!(of(Some(2), [Shown, Missing, Missing, Missing]), Err(JoinedRowError::WrongGroup));
        assert_eq!(of(None, [Shown, Shown, Shown, Missing]), Err(JoinedRowError::SeveralGroups));
        assert_eq!(of(None, [Shown, Missing, Missing, Shown]), Err(JoinedRowError::SeveralGroups));
    }
}
