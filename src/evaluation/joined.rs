//! Joined rows, taken apart: which group each of them is of.
//!
//! A row is of the group whose attributes it shows. One that shows nothing, because every cell of its fragment is missing, may be of
//! any group; only a lineage tells of which, and without one it is of none.

use std::collections::BTreeMap;

/// What a row has at the place of an attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum At {
    /// It has no such attribute.
    Left,
    /// Null.
    Missing,
    /// Something.
    Shown,
}

/// Why something is no joined row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unjoined {
    /// An attribute is left out.
    Incomplete,
    /// Attributes of two groups are shown.
    OfTwo,
    /// The lineage says that it is of another group than it shows.
    Misnamed,
    /// It shows nothing, and the lineage does not name it.
    Untold,
}

impl Unjoined {
    /// What every row keeps, and this one does not.
    pub(super) fn promise(self) -> &'static str {
        match self {
            Self::Incomplete => "a joined row has every attribute, null where it says nothing",
            Self::OfTwo => "a joined row shows attributes of one group alone",
            Self::Misnamed => "a joined row shows attributes of the group that the lineage names",
            Self::Untold => "a joined row is named by the lineage",
        }
    }
}

/// Groups, as what belongs to which row.
pub(super) struct Owners {
    /// By attribute of a row its group.
    groups: Vec<usize>,
    /// By row its group, as the lineage says.
    told: Option<BTreeMap<u64, usize>>,
}

impl Owners {
    /// `groups` by attribute of a row; `told` by row, where there is a lineage.
    pub(super) fn new(groups: Vec<usize>, told: Option<BTreeMap<u64, usize>>) -> Self {
        Self { groups, told }
    }

    /// The group of row number `row`, which has this at its attributes; none where it shows nothing and there is no lineage.
    ///
    /// # Errors
    /// When it is no row of one group.
    pub(super) fn of(&self, row: u64, at: impl Iterator<Item = At>) -> Result<Option<usize>, Unjoined> {
        let mut shown = None;
        for (at, &group) in at.zip(&self.groups) {
            match at {
                At::Left => return Err(Unjoined::Incomplete),
                At::Missing => {}
                At::Shown if shown.is_some_and(|shown| shown != group) => return Err(Unjoined::OfTwo),
                At::Shown => shown = Some(group),
            }
        }
        let told = self.told.as_ref().and_then(|told| told.get(&row).copied());
        match (shown, told) {
            (Some(shown), Some(told)) if shown != told => Err(Unjoined::Misnamed),
            (None, None) if self.told.is_some() => Err(Unjoined::Untold),
            (shown, told) => Ok(shown.or(told)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_of_the_group_that_it_shows() {
        use At::{Left, Missing, Shown};
        let owners = |told: &[(u64, usize)]| Owners::new(vec![0, 1, 0], Some(told.iter().copied().collect()));
        let of = |told: &[(u64, usize)], at: [At; 3]| owners(told).of(7, at.into_iter());
        assert_eq!(of(&[], [Shown, Missing, Missing]), Ok(Some(0)));
        assert_eq!(of(&[], [Shown, Missing, Shown]), Ok(Some(0)));
        assert_eq!(of(&[(7, 1)], [Missing, Shown, Missing]), Ok(Some(1)));
        assert_eq!(of(&[(6, 1)], [Missing; 3]), Err(Unjoined::Untold));
        assert_eq!(of(&[(7, 1)], [Missing; 3]), Ok(Some(1)));
        assert_eq!(of(&[], [Shown, Shown, Missing]), Err(Unjoined::OfTwo));
        assert_eq!(of(&[], [Missing, Left, Missing]), Err(Unjoined::Incomplete));
        assert_eq!(of(&[(7, 1)], [Shown, Missing, Missing]), Err(Unjoined::Misnamed));
        assert_eq!(Owners::new(vec![0, 1], None).of(0, [Missing; 2].into_iter()), Ok(None));
    }
}
