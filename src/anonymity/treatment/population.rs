//! The people whom an observer could look up, as the treatment counts them: k-map with a population.
//!
//! *Claim.* [`Population::accepts`] is true only if at least k distinct people of the list each have a record every
//! known cell of which generalizes, on some level of its hierarchy, to the cell asked for. It is monotone: a coarser
//! cell is carried by everybody who carries a finer one below it.
//!
//! Cells are compared by their coverage digests, so the codebooks of the list must be keyed as those of the stream are.
//! Verification counts by the texts that leave, in code of its own (`release::listed`).

use crate::records::codebook::{Code, Codebook};
use crate::records::digest::BuildClassKeyHash;
use hashbrown::{HashMap, HashSet};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// Answers that are remembered: at this many all are forgotten. Each takes 17 bytes in a table at most twice as large.
const MOST_ANSWERS: usize = 1 << 20;

/// A population, indexed by the cells that its people generalize to.
///
/// Memory: 4 bytes for each distinct tuple, attribute and level, and 4 for each person of a tuple; it never grows but
/// for the answers that are remembered.
#[derive(Debug)]
pub struct Population {
    k: usize,
    /// By attribute of the schema; none for those that the list does not have.
    known: Vec<Option<Known>>,
    /// The people of each distinct tuple, one tuple after the other, and where each ends.
    people: Vec<u32>,
    ends: Vec<u32>,
    /// Nobody has two tuples: people may be added up.
    once: bool,
    answers: Mutex<HashMap<u128, bool, BuildClassKeyHash>>,
}

/// One attribute of the list.
#[derive(Debug)]
struct Known {
    /// By tuple.
    codes: Vec<Code>,
    /// Coverage digests, by level and code.
    digests: Vec<Vec<u128>>,
    /// The tuples that generalize to a cell, ascending.
    carriers: HashMap<u128, Vec<u32>, BuildClassKeyHash>,
}

impl Known {
    fn new(codes: Vec<Code>, book: &Codebook) -> Self {
        let digests: Vec<Vec<u128>> = (0..book.levels()).map(|level| book.digests(level).to_vec()).collect();
        let mut cells: HashMap<u128, usize, BuildClassKeyHash> = HashMap::default();
        let mut tuples: Vec<Vec<u32>> = Vec::new();
        let of_code: Vec<Vec<usize>> = (0..book.codes())
            .map(|code| {
                let mut of_code = Vec::with_capacity(digests.len());
                for level in &digests {
                    let cell = *cells.entry(level[code]).or_insert(tuples.len());
                    if cell == tuples.len() {
                        tuples.push(Vec::new());
                    }
                    // Levels that cover the same are one cell.
                    if !of_code.contains(&cell) {
                        of_code.push(cell);
                    }
                }
                of_code
            })
            .collect();
        for (tuple, &code) in (0u32..).zip(&codes) {
            of_code[code as usize].iter().for_each(|&cell| tuples[cell].push(tuple));
        }
        let carriers = cells.into_iter().map(|(digest, cell)| (digest, std::mem::take(&mut tuples[cell])));
        Self { codes, digests, carriers: carriers.collect() }
    }

    fn carries(&self, tuple: u32, cell: u128) -> bool {
        let code = self.codes[tuple as usize] as usize;
        self.digests.iter().any(|level| level[code] == cell)
    }
}

impl Population {
    /// A population of which every class needs `k` people, for a schema of `width` attributes. `known` are the
    /// attributes that the list has, each with its codebook and a code a record; `people` says whom each record is of,
    /// by a number, and `None` for nobody.
    ///
    /// Time and memory: O(records × attributes × levels).
    ///
    /// # Panics
    /// When a column is not as long as `people`, or an attribute is not below `width`.
    #[must_use]
    pub fn new(k: usize, width: usize, known: &[(usize, &Codebook, &[Code])], people: &[Option<u32>]) -> Self {
        let mut tuples: BTreeMap<Vec<Code>, Vec<u32>> = BTreeMap::new();
        for (record, person) in people.iter().enumerate() {
            if let Some(person) = person {
                let tuple = known.iter().map(|(_, _, codes)| codes[record]).collect();
                tuples.entry(tuple).or_default().push(*person);
            }
        }
        let mut index = Self {
            k,
            known: (0..width).map(|_| None).collect(),
            people: Vec::with_capacity(people.len()),
            ends: Vec::with_capacity(tuples.len()),
            once: false,
            answers: Mutex::default(),
        };
        let mut columns: Vec<Vec<Code>> = known.iter().map(|_| Vec::with_capacity(tuples.len())).collect();
        for (tuple, mut of_tuple) in tuples {
            of_tuple.sort_unstable();
            of_tuple.dedup();
            index.people.extend(of_tuple);
            index.ends.push(u32::try_from(index.people.len()).expect("fewer records than 2^32"));
            columns.iter_mut().zip(tuple).for_each(|(column, code)| column.push(code));
        }
        let mut distinct = index.people.clone();
        distinct.sort_unstable();
        distinct.dedup();
        index.once = distinct.len() == index.people.len();
        for ((attribute, book, _), codes) in known.iter().zip(columns) {
            index.known[*attribute] = Some(Known::new(codes, book));
        }
        index
    }

    /// Whether at least k people generalize to `cells`: attributes of the schema, each once, with the coverage digest
    /// of their cell. Suppressed cells are left out; attributes that the list does not have ask for nothing.
    ///
    /// Time: constant where the same was asked before, else at most the records of the rarest cell × attributes.
    pub fn accepts(&self, cells: impl Iterator<Item = (usize, u128)>) -> bool {
        let asked: Vec<(&Known, u128)> =
            cells.filter_map(|(attribute, cell)| Some((self.known.get(attribute)?.as_ref()?, cell))).collect();
        if asked.is_empty() {
            return true;
        }
        let key = asked.iter().fold(0u128, |key, (_, cell)| key.wrapping_add(*cell));
        let answers = || self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(&known) = answers().get(&key) {
            return known;
        }
        let enough = self.has_enough(&asked);
        let mut answers = answers();
        if answers.len() >= MOST_ANSWERS {
            answers.clear();
        }
        answers.insert(key, enough);
        enough
    }

    fn has_enough(&self, asked: &[(&Known, u128)]) -> bool {
        let carriers: Option<Vec<&Vec<u32>>> = asked.iter().map(|(known, cell)| known.carriers.get(cell)).collect();
        let Some(rarest) = carriers.iter().flatten().min_by_key(|tuples| tuples.len()) else { return false };
        let mut found = 0;
        let mut people: HashSet<u32> = HashSet::new();
        for &tuple in *rarest {
            if !asked.iter().all(|(known, cell)| known.carries(tuple, *cell)) {
                continue;
            }
            let of_tuple = self.people_of(tuple);
            if self.once {
                found += of_tuple.len();
            } else {
                people.extend(of_tuple);
                found = people.len();
            }
            if found >= self.k {
                return true;
            }
        }
        false
    }

    fn people_of(&self, tuple: u32) -> &[u32] {
        let start = tuple.checked_sub(1).map_or(0, |before| self.ends[before as usize]);
        &self.people[start as usize..self.ends[tuple as usize] as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::codebook::SUPPRESSED;
    use crate::records::digest::DigestKey;
    use crate::records::schema::Schema;
    use proptest::prelude::*;
    use std::collections::BTreeSet;
    use std::path::Path;
    use std::sync::Arc;

    /// One label of the tree stands on two levels.
    const SCHEMA: &str = r#"
        name = "twice"
        [[attribute]]
        name = "age"
        type = "integer"
        hierarchy = { kind = "intervals", min = 0, max = 59, origin = 0, widths = [3, 15] }
        [[attribute]]
        name = "city"
        type = "string"
        [attribute.hierarchy]
        kind = "tree"
        [attribute.hierarchy.tree."CH"]
        "CH" = ["Zug", "Bern"]
        [attribute.hierarchy.tree."FR"]
        "Sud" = ["Lyon", "Nice"]
    "#;
    const CITIES: [&str; 6] = ["\"Zug\"", "\"Bern\"", "\"Lyon\"", "\"Nice\"", "null", "\"nowhere\""];

    fn books() -> Vec<Codebook> {
        let schema = Schema::parse(SCHEMA, "t.toml", Path::new("")).unwrap();
        schema.attributes.iter().map(|a| Codebook::new(Arc::clone(a), &DigestKey([3; 32]), 1000).unwrap()).collect()
    }

    proptest! {
        #[test]
        fn counts_people_as_sets_do(
            k in 1usize..6,
            list in prop::collection::vec((0u32..20, 0usize..6, prop::option::weighted(0.9, 0u32..8)), 0..40),
            knows in prop::sample::select(vec![vec![0], vec![1], vec![0, 1]]),
            asked in prop::collection::vec((0u32..20, 0usize..6, 0usize..4, 0usize..4), 1..12),
        ) {
            let (mut books, mut stream) = (books(), books());
            let mut columns = [Vec::new(), Vec::new()];
            for (age, city, _) in &list {
                columns[0].push(books[0].encode_canonical(&age.to_string()));
                columns[1].push(books[1].encode_canonical(CITIES[*city]));
            }
            let people: Vec<Option<u32>> = list.iter().map(|(_, _, person)| *person).collect();
            let known: Vec<(usize, &Codebook, &[Code])> =
                knows.iter().map(|&a| (a, &books[a], columns[a].as_slice())).collect();
            let population = Population::new(k, 2, &known, &people);
            for _ in 0..2 {
                for &(age, city, of_age, of_city) in &asked {
                    let codes = [stream[0].encode_canonical(&age.to_string()), stream[1].encode_canonical(CITIES[city])];
                    let cell = |a: usize, level: usize| stream[a].cell(codes[a], level.min(stream[a].levels() - 1));
                    let cells = [cell(0, of_age), cell(1, of_city)];
                    let generalizes = |a: usize, record: usize| {
                        let texts = (0..books[a].levels()).map(|l| books[a].text(books[a].cell(columns[a][record], l)));
                        cells[a] == SUPPRESSED || texts.into_iter().any(|text| text == stream[a].text(cells[a]))
                    };
                    let matching = (0..list.len()).filter(|&record| knows.iter().all(|&a| generalizes(a, record)));
                    let matching: BTreeSet<u32> = matching.filter_map(|record| people[record]).collect();
                    let said = (0..2).filter(|&a| cells[a] != SUPPRESSED);
                    let accepted = population.accepts(said.clone().map(|a| (a, stream[a].digest(cells[a]))));
                    let unrestricted = knows.iter().all(|&a| cells[a] == SUPPRESSED);
                    prop_assert_eq!(accepted, unrestricted || matching.len() >= k);
                }
            }
        }
    }
}
