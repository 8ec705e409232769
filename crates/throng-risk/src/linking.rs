//! Tying records to people of whom something is known: a file that has been published, and a file of known attributes ([POD] §7.4).
//!
//! A record is tied by a set of columns when somebody's known values over the set are its own, and is tied *below k* when fewer than
//! k people of the file share them. What is not known of a person ties nothing.

use hashbrown::HashMap;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Columns of a combination at most, beside all of them together.
const LARGEST: usize = 3;
/// Combinations that are listed of each size.
const LISTED: usize = 5;
/// Record visits at most.
const VISITS: usize = 300_000_000;

/// A column that both files have.
#[derive(Clone, Debug)]
pub struct SharedColumn {
    /// Its name.
    pub name: String,
    /// By record of the file: the code of its value.
    pub own: Vec<u32>,
    /// By known person: the same code; none where the value is missing or no record has it.
    pub known: Vec<Option<u32>>,
}

/// What a set of columns ties.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Tied {
    /// The columns.
    pub attributes: Vec<String>,
    /// Records that are tied.
    pub records: u64,
    /// Of them, records whose values fewer than k people of the file share.
    pub below_k: u64,
    /// Of them, records whose values one person alone has.
    pub uniquely: u64,
    /// Of them, records whose values one known person alone has, too: nobody else comes into question.
    pub one_to_one: u64,
}

/// Which records of a file can be tied to known people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Linked {
    /// The file of known attributes, as it was named.
    pub file: String,
    /// People in it, a row each.
    pub known: u64,
    /// By all shared columns.
    pub all: Tied,
    /// The combinations of up to three columns that tie most below k, the smaller sizes first.
    pub combinations: Vec<Tied>,
    /// Combinations that were looked at, and all of those sizes.
    pub looked_at: u64,
    /// As said.
    pub of: u64,
}

/// Ties the records of a file to known people. `people` are by record, none for nobody; without it every record is somebody.
pub fn link(file: &str, columns: &[SharedColumn], people: Option<&[Option<u32>]>, k: u32) -> Linked {
    let rows = columns.first().map_or(0, |column| column.own.len());
    let known = columns.first().map_or(0, |column| column.known.len());
    let every: Vec<usize> = (0..columns.len()).collect();
    let tie = |set: &[usize]| tied(columns, set, people, k);
    let mut sets: Vec<Vec<usize>> = Vec::new();
    for size in 1..=LARGEST.min(columns.len().saturating_sub(1)) {
        sets.extend(combinations(&every, size));
    }
    let of = sets.len();
    sets.truncate(VISITS / (rows + known).max(1));
    let mut by_size: BTreeMap<usize, Vec<Tied>> = BTreeMap::new();
    for set in &sets {
        let found = tie(set);
        if found.below_k > 0 {
            by_size.entry(set.len()).or_default().push(found);
        }
    }
    let mut listed = Vec::new();
    for mut found in by_size.into_values() {
        found.sort_by(|a, b| {
            (b.below_k, b.uniquely).cmp(&(a.below_k, a.uniquely)).then_with(|| a.attributes.cmp(&b.attributes))
        });
        found.truncate(LISTED);
        listed.append(&mut found);
    }
    Linked {
        file: file.to_owned(),
        known: known as u64,
        all: tie(&every),
        combinations: listed,
        looked_at: sets.len() as u64,
        of: of as u64,
    }
}

/// All sets of `size` of the columns, in their order.
fn combinations(columns: &[usize], size: usize) -> Vec<Vec<usize>> {
    if size == 0 {
        return vec![Vec::new()];
    }
    let mut sets = Vec::new();
    for (at, &first) in columns.iter().enumerate() {
        for mut rest in combinations(&columns[at + 1..], size - 1) {
            rest.insert(0, first);
            sets.push(rest);
        }
    }
    sets
}

/// What the columns of `set` tie. Time: O((records + known people) · columns).
fn tied(columns: &[SharedColumn], set: &[usize], people: Option<&[Option<u32>]>, k: u32) -> Tied {
    let rows = columns.first().map_or(0, |column| column.own.len());
    let known = columns.first().map_or(0, |column| column.known.len());
    // Numbers of value combinations, a column at a time.
    let (mut own, mut theirs) = (vec![0_u32; rows], vec![Some(0_u32); known]);
    for column in set.iter().map(|&at| &columns[at]) {
        let mut numbers: HashMap<(u32, u32), u32> = HashMap::new();
        for (number, &code) in own.iter_mut().zip(&column.own) {
            let next = numbers.len() as u32;
            *number = *numbers.entry((*number, code)).or_insert(next);
        }
        for (number, code) in theirs.iter_mut().zip(&column.known) {
            *number = number.zip(*code).and_then(|key| numbers.get(&key).copied());
        }
    }
    let mut crowds: BTreeMap<u32, (u64, BTreeSet<u32>, u64)> = BTreeMap::new();
    for number in theirs.into_iter().flatten() {
        crowds.entry(number).or_default().2 += 1;
    }
    for (row, number) in own.iter().enumerate() {
        let who = people.map_or(Some(row as u32), |people| people[row]);
        if let (Some((records, crowd, _)), Some(who)) = (crowds.get_mut(number), who) {
            *records += 1;
            crowd.insert(who);
        }
    }
    let attributes = set.iter().map(|&at| columns[at].name.clone()).collect();
    let mut tied = Tied { attributes, records: 0, below_k: 0, uniquely: 0, one_to_one: 0 };
    for (records, crowd, known) in crowds.into_values() {
        let when = |yes: bool| if yes { records } else { 0 };
        tied.records += records;
        tied.below_k += when((crowd.len() as u64) < u64::from(k));
        tied.uniquely += when(crowd.len() == 1);
        tied.one_to_one += when(crowd.len() == 1 && known == 1);
    }
    tied
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn column(name: &str, own: &[u32], known: &[Option<u32>]) -> SharedColumn {
        SharedColumn { name: name.to_owned(), own: own.to_vec(), known: known.to_vec() }
    }

    #[test]
    fn two_columns_tie_where_one_does_not() {
        // Four records, two people known: one by both values, one by the first alone.
        let columns =
            [column("age", &[1, 1, 2, 2], &[Some(1), Some(2)]), column("city", &[5, 6, 5, 5], &[Some(6), None])];
        let found = link("known.csv", &columns, None, 2);
        assert_eq!((found.known, found.looked_at, found.of), (2, 2, 2));
        assert_eq!((found.all.records, found.all.uniquely, found.all.one_to_one), (1, 1, 1));
        // Nobody is alone by age; by city the second record is.
        assert_eq!(found.combinations.len(), 1);
        assert_eq!((found.combinations[0].attributes[0].as_str(), found.combinations[0].below_k), ("city", 1));
        let one_person = link("known.csv", &columns, Some(&[Some(1), Some(1), Some(2), None]), 2);
        assert_eq!(one_person.combinations[0].attributes, ["age"], "two records of one person are one");
        assert_eq!(one_person.combinations[0].records, 3, "the record of nobody is nobody's");
    }

    proptest! {
        /// By looking at every record beside every known person.
        #[test]
        fn ties_as_by_looking_at_all(
            rows in prop::collection::vec((0_u32..4, 0_u32..3, 0_u32..5), 1..40),
            known in prop::collection::vec((prop::option::of(0_u32..4), prop::option::of(0_u32..3)), 0..10),
            k in 2_u32..5,
        ) {
            let columns = [
                column("a", &rows.iter().map(|r| r.0).collect::<Vec<_>>(), &known.iter().map(|r| r.0).collect::<Vec<_>>()),
                column("b", &rows.iter().map(|r| r.1).collect::<Vec<_>>(), &known.iter().map(|r| r.1).collect::<Vec<_>>()),
            ];
            let people: Vec<Option<u32>> = rows.iter().map(|r| (r.2 > 0).then_some(r.2)).collect();
            let found = link("known", &columns, Some(&people), k).all;
            let (mut records, mut below, mut one_to_one) = (0, 0, 0);
            for row in rows.iter().filter(|row| row.2 > 0) {
                let who = known.iter().filter(|known| **known == (Some(row.0), Some(row.1))).count();
                let same = rows.iter().filter(|other| other.2 > 0 && (other.0, other.1) == (row.0, row.1));
                let crowd = same.map(|other| other.2).collect::<BTreeSet<_>>().len();
                records += u64::from(who > 0);
                below += u64::from(who > 0 && crowd < k as usize);
                one_to_one += u64::from(who == 1 && crowd == 1);
            }
            prop_assert_eq!((found.records, found.below_k, found.one_to_one), (records, below, one_to_one));
        }
    }
}
