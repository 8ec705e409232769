//! Links records of a published file to subjects with known attributes (\[POD] §7.4).
//!
//! A set of columns links a record if a known subject has the same, non-missing values. The link is *below k* if fewer
//! than k subjects of the published file share them.

use hashbrown::HashMap;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Largest checked combination, apart from the set of all columns.
const MAX_COMBINATION_SIZE: usize = 3;
const MAX_LISTED_COMBINATIONS: usize = 5;
const MAX_LINK_VISITS: usize = 300_000_000;

/// Column of both files.
#[derive(Clone, Debug)]
pub struct SharedColumn {
    /// Column name.
    pub name: String,
    /// Value code per published record.
    pub record_codes: Vec<u32>,
    /// Same code per known subject; `None` if missing or in no record.
    pub known_codes: Vec<Option<u32>>,
}

/// Records linked by a set of columns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ColumnSetLinks {
    /// Column names.
    pub attributes: Vec<String>,
    /// Linked records.
    pub records: u64,
    /// Linked records below k.
    pub below_k: u64,
    /// Linked records whose values one published subject has.
    pub uniquely: u64,
    /// Linked records whose values one published and one known subject have.
    pub one_to_one: u64,
}

/// Links of a file to known subjects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SubjectLinkReport {
    /// Name of the file of known attributes.
    pub file: String,
    /// Known subjects, one per row.
    pub known: u64,
    /// Links by all shared columns.
    pub all: ColumnSetLinks,
    /// Combinations of up to three columns with the most records below k.
    pub combinations: Vec<ColumnSetLinks>,
    /// Checked combinations.
    pub looked_at: u64,
    /// All combinations of these sizes.
    pub of: u64,
}

/// Links the records of a file to known subjects. `people` holds the subject of each record, if any.
pub fn link(file: &str, columns: &[SharedColumn], people: Option<&[Option<u32>]>, k: u32) -> SubjectLinkReport {
    let rows = columns.first().map_or(0, |column| column.record_codes.len());
    let known = columns.first().map_or(0, |column| column.known_codes.len());
    let every: Vec<usize> = (0..columns.len()).collect();
    let tie = |set: &[usize]| links_of_set(columns, set, people, k);
    let mut sets: Vec<Vec<usize>> = Vec::new();
    for size in 1..=MAX_COMBINATION_SIZE.min(columns.len().saturating_sub(1)) {
        sets.extend(combinations(&every, size));
    }
    let of = sets.len();
    sets.truncate(MAX_LINK_VISITS / (rows + known).max(1));
    let mut by_size: BTreeMap<usize, Vec<ColumnSetLinks>> = BTreeMap::new();
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
        found.truncate(MAX_LISTED_COMBINATIONS);
        listed.append(&mut found);
    }
    SubjectLinkReport {
        file: file.to_owned(),
        known: known as u64,
        all: tie(&every),
        combinations: listed,
        looked_at: sets.len() as u64,
        of: of as u64,
    }
}

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

/// Time: O((records + known subjects) · columns).
fn links_of_set(columns: &[SharedColumn], set: &[usize], people: Option<&[Option<u32>]>, k: u32) -> ColumnSetLinks {
    let rows = columns.first().map_or(0, |column| column.record_codes.len());
    let known = columns.first().map_or(0, |column| column.known_codes.len());
    let (mut own, mut theirs) = (vec![0_u32; rows], vec![Some(0_u32); known]);
    for column in set.iter().map(|&at| &columns[at]) {
        let mut numbers: HashMap<(u32, u32), u32> = HashMap::new();
        for (number, &code) in own.iter_mut().zip(&column.record_codes) {
            let next = numbers.len() as u32;
            *number = *numbers.entry((*number, code)).or_insert(next);
        }
        for (number, code) in theirs.iter_mut().zip(&column.known_codes) {
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
    let mut tied = ColumnSetLinks { attributes, records: 0, below_k: 0, uniquely: 0, one_to_one: 0 };
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
        SharedColumn { name: name.to_owned(), record_codes: own.to_vec(), known_codes: known.to_vec() }
    }

    #[test]
    fn column_combination_links_more_records_than_single_columns() {
        // One record is linked by both values, one only by the first.
        let columns =
            [column("age", &[1, 1, 2, 2], &[Some(1), Some(2)]), column("city", &[5, 6, 5, 5], &[Some(6), None])];
        let found = link("known.csv", &columns, None, 2);
        assert_eq!((found.known, found.looked_at, found.of), (2, 2, 2));
        assert_eq!((found.all.records, found.all.uniquely, found.all.one_to_one), (1, 1, 1));
        // Age singles out no record below k; city singles out the second.
        assert_eq!(found.combinations.len(), 1);
        assert_eq!((found.combinations[0].attributes[0].as_str(), found.combinations[0].below_k), ("city", 1));
        let one_person = link("known.csv", &columns, Some(&[Some(1), Some(1), Some(2), None]), 2);
        assert_eq!(one_person.combinations[0].attributes, ["age"], "two records of one person are one");
        assert_eq!(one_person.combinations[0].records, 3, "the record of nobody is nobody's");
    }

    proptest! {
        #[test]
        fn links_equal_comparison_of_all_pairs(
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
