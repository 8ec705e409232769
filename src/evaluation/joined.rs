//! Joined rows, taken apart: which group each of them is of.
//!
//! A row is of the group that has all attributes that it shows. Where several have them, because only what they share is shown, or nothing at
//! all since every cell of the fragment is missing, only a lineage tells which; without one it is of none.

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
    /// No group has all that is shown.
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
    /// By attribute of a row, the groups that have it, ascending; more than one where it is shared.
    groups: Vec<Vec<usize>>,
    /// By row its group, as the lineage says.
    told: Option<BTreeMap<u64, usize>>,
}

impl Owners {
    /// Of a row with these `attributes`, and `groups` that have these; `told` by row, where there is a lineage.
    pub(super) fn new<'g>(
        attributes: &[usize],
        groups: &(impl Iterator<Item = &'g [usize]> + Clone),
        told: Option<BTreeMap<u64, usize>>,
    ) -> Self {
        let having = |a: &usize| {
            let numbered = groups.clone().enumerate();
            numbered.filter(|(_, group)| group.contains(a)).map(|(number, _)| number).collect()
        };
        Self { groups: attributes.iter().map(having).collect(), told }
    }

    /// The group of row number `row`, which has this at its attributes; none where several may be it and there is no lineage.
    ///
    /// # Errors
    /// When it is no row of one group.
    pub(super) fn of(&self, row: u64, at: impl Iterator<Item = At>) -> Result<Option<usize>, Unjoined> {
        // The groups that have all that is shown; all of them where nothing is.
        let mut having: Option<Vec<usize>> = None;
        for (at, groups) in at.zip(&self.groups) {
            match (at, &mut having) {
                (At::Left, _) => return Err(Unjoined::Incomplete),
                (At::Missing, _) => {}
                (At::Shown, None) => having = Some(groups.clone()),
                (At::Shown, Some(having)) => having.retain(|group| groups.contains(group)),
            }
        }
        if having.as_ref().is_some_and(Vec::is_empty) {
            return Err(Unjoined::OfTwo);
        }
        let told = self.told.as_ref().and_then(|told| told.get(&row).copied());
        match (having.as_deref(), told) {
            (Some(having), Some(told)) if !having.contains(&told) => Err(Unjoined::Misnamed),
            (_, Some(told)) => Ok(Some(told)),
            (Some([only]), None) => Ok(Some(*only)),
            (_, None) if self.told.is_some() => Err(Unjoined::Untold),
            (_, None) => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_of_the_group_that_it_shows() {
        use At::{Left, Missing, Shown};
        let groups: [&[usize]; 2] = [&[4, 6], &[5]];
        let owners =
            |told: &[(u64, usize)]| Owners::new(&[4, 5, 6], &groups.into_iter(), Some(told.iter().copied().collect()));
        let of = |told: &[(u64, usize)], at: [At; 3]| owners(told).of(7, at.into_iter());
        assert_eq!(of(&[], [Shown, Missing, Missing]), Ok(Some(0)));
        assert_eq!(of(&[], [Shown, Missing, Shown]), Ok(Some(0)));
        assert_eq!(of(&[(7, 1)], [Missing, Shown, Missing]), Ok(Some(1)));
        assert_eq!(of(&[(6, 1)], [Missing; 3]), Err(Unjoined::Untold));
        assert_eq!(of(&[(7, 1)], [Missing; 3]), Ok(Some(1)));
        assert_eq!(of(&[], [Shown, Shown, Missing]), Err(Unjoined::OfTwo));
        assert_eq!(of(&[], [Missing, Left, Missing]), Err(Unjoined::Incomplete));
        assert_eq!(of(&[(7, 1)], [Shown, Missing, Missing]), Err(Unjoined::Misnamed));
        let untold = Owners::new(&[4, 5], &groups.into_iter(), None);
        assert_eq!(untold.of(0, [Missing; 2].into_iter()), Ok(None));
    }

    #[test]
    fn what_groups_share_does_not_tell_them_apart() {
        use At::{Missing, Shown};
        let groups: [&[usize]; 3] = [&[0, 1], &[0, 2], &[3]];
        let of = |told: Option<usize>, at: [At; 4]| {
            let told = told.map(|group| BTreeMap::from([(7, group)]));
            Owners::new(&[0, 1, 2, 3], &groups.into_iter(), told).of(7, at.into_iter())
        };
        assert_eq!(of(None, [Shown, Shown, Missing, Missing]), Ok(Some(0)));
        assert_eq!(of(None, [Shown, Missing, Shown, Missing]), Ok(Some(1)));
        assert_eq!(of(None, [Shown, Missing, Missing, Missing]), Ok(None));
        assert_eq!(of(Some(1), [Shown, Missing, Missing, Missing]), Ok(Some(1)));
        assert_eq!(of(Some(2), [Shown, Missing, Missing, Missing]), Err(Unjoined::Misnamed));
        assert_eq!(of(None, [Shown, Shown, Shown, Missing]), Err(Unjoined::OfTwo));
        assert_eq!(of(None, [Shown, Missing, Missing, Shown]), Err(Unjoined::OfTwo));
    }
}
