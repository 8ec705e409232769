//! The profiles of at most so many people, by the keyed digest of the person.

use hashbrown::HashMap;

/// Canonical texts of the cells of one profile, in the order of its attributes, `null` where there is none. A text is JSON without
/// line breaks; they are kept as one, with a line break between two.
pub type Cells = Box<str>;

/// What became of a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// The table is another now.
    Changed,
    /// It said so already.
    Same,
    /// It has no room for another person.
    Full,
}

/// Profiles by person.
#[derive(Clone, Debug, Default)]
pub struct Table {
    people: HashMap<u64, Cells>,
    most: usize,
}

impl Table {
    /// A table without profiles, of at most `most` people.
    pub fn new(most: usize) -> Self {
        Self { people: HashMap::new(), most }
    }

    /// People with a profile.
    pub fn len(&self) -> usize {
        self.people.len()
    }

    /// Whether nobody has a profile.
    pub fn is_empty(&self) -> bool {
        self.people.is_empty()
    }

    /// The profile of `person`.
    pub fn get(&self, person: u64) -> Option<&str> {
        self.people.get(&person).map(AsRef::as_ref)
    }

    /// Sets the profile of `person`, or removes it. Of whom the table knows a profile always finds room.
    pub fn set(&mut self, person: u64, cells: Option<Cells>) -> Taken {
        let Some(cells) = cells else {
            return if self.people.remove(&person).is_some() { Taken::Changed } else { Taken::Same };
        };
        let full = self.people.len() >= self.most;
        match self.people.get_mut(&person) {
            Some(known) if *known == cells => return Taken::Same,
            Some(known) => *known = cells,
            None if full => return Taken::Full,
            None => drop(self.people.insert(person, cells)),
        }
        Taken::Changed
    }

    /// Puts back a profile that an earlier process has kept, whatever the limit was then.
    pub fn restore(&mut self, person: u64, cells: Cells) {
        self.people.insert(person, cells);
    }

    /// Forgets people.
    pub fn forget(&mut self, is_gone: impl Fn(u64) -> bool) {
        self.people.retain(|person, _| !is_gone(*person));
        self.people.shrink_to_fit();
    }

    /// People of whom `other` says something else, or nothing, or who are in `other` alone; each once.
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

    /// The table without its bound, beside the number of people that it may hold.
    fn twin_set(twin: &mut BTreeMap<u64, String>, most: usize, person: u64, cells: Option<&str>) -> Taken {
        let before = twin.clone();
        match cells {
            None => drop(twin.remove(&person)),
            Some(_) if !twin.contains_key(&person) && twin.len() == most => return Taken::Full,
            Some(cells) => drop(twin.insert(person, cells.to_owned())),
        }
        if *twin == before { Taken::Same } else { Taken::Changed }
    }

    fn cells(number: u8) -> Option<String> {
        (number > 0).then(|| format!("{number}\n\"v{number}\"\nnull"))
    }

    proptest! {
        #[test]
        fn a_table_is_a_map_with_a_bound(
            updates in proptest::collection::vec((0_u64..9, 0_u8..4), 0..80),
            most in 1_usize..7,
        ) {
            let (mut table, mut twin) = (Table::new(most), BTreeMap::new());
            for (person, number) in updates {
                let cells = cells(number);
                let expected = twin_set(&mut twin, most, person, cells.as_deref());
                prop_assert_eq!(table.set(person, cells.map(Into::into)), expected);
                prop_assert!(table.len() == twin.len() && table.len() <= most);
                for person in 0..9 {
                    prop_assert_eq!(table.get(person), twin.get(&person).map(String::as_str));
                }
            }
        }

        #[test]
        fn what_differs_leads_from_one_table_to_another(
            one in proptest::collection::btree_map(0_u64..12, 1_u8..4, 0..10),
            other in proptest::collection::btree_map(0_u64..12, 1_u8..4, 0..10),
        ) {
            let table = |of: &BTreeMap<u64, u8>| {
                let mut table = Table::new(12);
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
                prop_assert_eq!(from.set(person, to.get(person).map(Into::into)), Taken::Changed);
            }
            prop_assert!((0..12).all(|person| from.get(person) == to.get(person)));
        }
    }

    #[test]
    fn who_is_known_finds_room_and_a_removal_makes_some() {
        let mut table = Table::new(1);
        assert_eq!(table.set(1, Some("1".into())), Taken::Changed);
        assert_eq!(table.set(2, Some("2".into())), Taken::Full);
        assert_eq!(table.set(1, Some("3".into())), Taken::Changed);
        assert_eq!(table.set(1, None), Taken::Changed);
        assert_eq!(table.set(2, Some("2".into())), Taken::Changed);
        table.restore(3, "3".into());
        assert_eq!((table.len(), table.set(4, Some("4".into()))), (2, Taken::Full), "a limit that was lowered");
    }
}
