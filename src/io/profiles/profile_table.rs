//! Bounded table of profiles by subject digest.

use hashbrown::HashMap;

/// Canonical JSON cells, joined by line breaks; `null` if missing.
pub type ProfileCells = Box<str>;

/// Result of setting a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProfileSetOutcome {
    /// The table changed.
    Changed,
    /// The profile was equal.
    AlreadyEqual,
    /// The table is full, and the subject new.
    Full,
}

/// Profiles by subject.
#[derive(Clone, Debug, Default)]
pub struct ProfileTable {
    people: HashMap<u64, ProfileCells>,
    max_subjects: usize,
}

impl ProfileTable {
    /// Creates an empty table for at most `most` subjects.
    pub fn new(most: usize) -> Self {
        Self { people: HashMap::new(), max_subjects: most }
    }

    /// Returns the number of subjects.
    pub fn len(&self) -> usize {
        self.people.len()
    }

    /// Returns true if there are no profiles.
    pub fn is_empty(&self) -> bool {
        self.people.is_empty()
    }

    /// Returns the profile of a subject.
    pub fn get(&self, person: u64) -> Option<&str> {
        self.people.get(&person).map(AsRef::as_ref)
    }

    /// Sets or removes a profile. Known subjects can always be updated.
    pub fn set(&mut self, person: u64, cells: Option<ProfileCells>) -> ProfileSetOutcome {
        let Some(cells) = cells else {
            return if self.people.remove(&person).is_some() {
                ProfileSetOutcome::Changed
            } else {
                ProfileSetOutcome::AlreadyEqual
            };
        };
        let full = self.people.len() >= self.max_subjects;
        match self.people.get_mut(&person) {
            Some(known) if *known == cells => return ProfileSetOutcome::AlreadyEqual,
            Some(known) => *known = cells,
            None if full => return ProfileSetOutcome::Full,
            None => drop(self.people.insert(person, cells)),
        }
        ProfileSetOutcome::Changed
    }

    /// Restores an earlier profile, even over the limit.
    pub fn restore(&mut self, person: u64, cells: ProfileCells) {
        self.people.insert(person, cells);
    }

    /// Removes all subjects selected by `is_gone`.
    pub fn remove_subjects(&mut self, is_gone: impl Fn(u64) -> bool) {
        self.people.retain(|person, _| !is_gone(*person));
        self.people.shrink_to_fit();
    }

    /// Returns the subjects with different profiles, each once.
    pub fn differing<'a>(&'a self, other: &'a Self) -> impl Iterator<Item = u64> + 'a {
        let gone = self.people.keys().filter(|person| !other.people.contains_key(*person));
        let new = other.people.iter().filter(|(person, cells)| self.people.get(*person) != Some(*cells));
        gone.chain(new.map(|(person, _)| person)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn reference_set(
        twin: &mut BTreeMap<u64, String>,
        most: usize,
        person: u64,
        cells: Option<&str>,
    ) -> ProfileSetOutcome {
        let before = twin.clone();
        match cells {
            None => drop(twin.remove(&person)),
            Some(_) if !twin.contains_key(&person) && twin.len() == most => return ProfileSetOutcome::Full,
            Some(cells) => drop(twin.insert(person, cells.to_owned())),
        }
        if *twin == before { ProfileSetOutcome::AlreadyEqual } else { ProfileSetOutcome::Changed }
    }

    fn cells(number: u8) -> Option<String> {
        (number > 0).then(|| format!("{number}\n\"v{number}\"\nnull"))
    }

    proptest! {
        #[test]
        fn profile_table_behaves_like_bounded_map(
            updates in proptest::collection::vec((0_u64..9, 0_u8..4), 0..80),
            most in 1_usize..7,
        ) {
            let (mut table, mut twin) = (ProfileTable::new(most), BTreeMap::new());
            for (person, number) in updates {
                let cells = cells(number);
                let expected = reference_set(&mut twin, most, person, cells.as_deref());
                prop_assert_eq!(table.set(person, cells.map(Into::into)), expected);
                prop_assert!(table.len() == twin.len() && table.len() <= most);
                for person in 0..9 {
                    prop_assert_eq!(table.get(person), twin.get(&person).map(String::as_str));
                }
            }
        }

        #[test]
        fn differing_subjects_transform_one_table_into_the_other(
            one in proptest::collection::btree_map(0_u64..12, 1_u8..4, 0..10),
            other in proptest::collection::btree_map(0_u64..12, 1_u8..4, 0..10),
        ) {
            let table = |of: &BTreeMap<u64, u8>| {
                let mut table = ProfileTable::new(12);
                for (person, number) in of {
                    table.set(*person, cells(*number).map(Into::into));
                }
                table
            };
            let (mut from, to) = (table(&one), table(&other));
            let found: Vec<u64> = from.differing(&to).collect();
            let differ = (0..12).filter(|person| from.get(*person) != to.get(*person)).count();
            prop_assert_eq!(found.len(), differ, "nothing twice, and nothing for nothing");
            for person in found {
                prop_assert_eq!(from.set(person, to.get(person).map(Into::into)), ProfileSetOutcome::Changed);
            }
            prop_assert!((0..12).all(|person| from.get(person) == to.get(person)));
        }
    }

    #[test]
    fn full_table_accepts_known_subjects_and_reuses_freed_capacity() {
        let mut table = ProfileTable::new(1);
        assert_eq!(table.set(1, Some("1".into())), ProfileSetOutcome::Changed);
        assert_eq!(table.set(2, Some("2".into())), ProfileSetOutcome::Full);
        assert_eq!(table.set(1, Some("3".into())), ProfileSetOutcome::Changed);
        assert_eq!(table.set(1, None), ProfileSetOutcome::Changed);
        assert_eq!(table.set(2, Some("2".into())), ProfileSetOutcome::Changed);
        table.restore(3, "3".into());
        assert_eq!(
            (table.len(), table.set(4, Some("4".into()))),
            (2, ProfileSetOutcome::Full),
            "a limit that was lowered"
        );
    }
}
