//! Verification of k-map with a population in a stream, from the encoded bytes of what is about to leave.
//!
//! Claim. If [`ListedTerms::judge`] returns `Ok`, then for every tuple of quasi cells that leaves, as the lines print
//! it, at least k distinct people of the list each have a record every known cell of which generalizes to the cell
//! printed. `*` is everybody's; what the list does not know restricts nobody.
//!
//! Written from the definition, apart from the treatment: by the texts of the cells instead of digests, by records of
//! the list instead of its distinct tuples, and with no answer remembered from one batch to the next.

use crate::records::codebook::{Code, Codebook};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The people whom an observer could look up, by the texts that their cells generalize to.
///
/// Memory: at most 4 bytes for each record, attribute and level, and each text once.
#[derive(Debug)]
pub struct Listed {
    k: usize,
    /// By attribute of the schema that the list has, and text.
    records: BTreeMap<usize, BTreeMap<String, Records>>,
    /// Whom each record is of.
    people: Vec<Option<u32>>,
}

/// Some records of the list: by their numbers, ascending, or as a bit each where they are many.
#[derive(Debug)]
enum Records {
    Few(Vec<u32>),
    Many(Vec<u64>),
}

impl Records {
    /// `records` of a list of `all`, ascending: a bit each from where that takes no more room.
    fn new(records: Vec<u32>, all: usize) -> Self {
        if records.len() < all.div_ceil(32) {
            return Self::Few(records);
        }
        let mut bits = vec![0u64; all.div_ceil(64)];
        records.into_iter().for_each(|record| bits[record as usize / 64] |= 1 << (record % 64));
        Self::Many(bits)
    }
}

impl Listed {
    /// A list of which every class needs `k` people. `known` are the attributes that it has, each with its codebook and
    /// a code a record; `people` says whom each record is of, by a number, and `None` for nobody.
    #[must_use]
    pub fn new(k: usize, known: &[(usize, &Codebook, &[Code])], people: Vec<Option<u32>>) -> Self {
        let mut records = BTreeMap::new();
        for (attribute, book, codes) in known {
            let mut numbers: BTreeMap<&str, usize> = BTreeMap::new();
            let mut texts_of_code: Vec<BTreeSet<usize>> = Vec::with_capacity(book.codes());
            for code in (0u32..).take(book.codes()) {
                let mut texts = BTreeSet::new();
                for level in 0..book.levels() {
                    let next = numbers.len();
                    texts.insert(*numbers.entry(book.text(book.cell(code, level))).or_insert(next));
                }
                texts_of_code.push(texts);
            }
            let mut lists: Vec<Vec<u32>> = vec![Vec::new(); numbers.len()];
            for (record, &code) in (0u32..).zip(*codes) {
                texts_of_code[code as usize].iter().for_each(|&text| lists[text].push(record));
            }
            let by_text = |(text, number): (&str, usize)| {
                (text.to_owned(), Records::new(std::mem::take(&mut lists[number]), codes.len()))
            };
            let by_text = numbers.into_iter().map(by_text).collect();
            records.insert(*attribute, by_text);
        }
        Self { k, records, people }
    }

    /// Whether the list has an attribute of the schema.
    #[must_use]
    pub fn knows(&self, attribute: usize) -> bool {
        self.records.contains_key(&attribute)
    }

    /// Whether at least k people generalize to `cells`: attributes with the JSON text of their cell.
    ///
    /// Time: the words of the bits, or the records of the rarest cell, up to the k-th person.
    fn has_enough(&self, cells: &[(usize, &str)]) -> bool {
        let (mut few, mut many): (Vec<&[u32]>, Vec<&[u64]>) = (Vec::new(), Vec::new());
        for (attribute, text) in cells.iter().filter(|(_, text)| *text != r#""*""#) {
            match self.records.get(attribute).and_then(|by_text| by_text.get(*text)) {
                Some(Records::Few(records)) => few.push(records),
                Some(Records::Many(bits)) => many.push(bits),
                None => return false,
            }
        }
        if few.is_empty() && many.is_empty() {
            // Nothing is said of anybody: the list as a whole was found large enough when it was read.
            return true;
        }
        let mut people = BTreeSet::new();
        let mut is_enough = |record: u32| {
            people.extend(self.people[record as usize]);
            people.len() >= self.k
        };
        few.sort_by_key(|records| records.len());
        if let Some((rarest, others)) = few.split_first_mut() {
            return rarest.iter().any(|&record| {
                let has_bit = |bits: &&[u64]| bits[record as usize / 64] >> (record % 64) & 1 == 1;
                many.iter().all(has_bit) && others.iter_mut().all(|list| skip_to(list, record)) && is_enough(record)
            });
        }
        let words = many.iter().map(|bits| bits.len()).min().unwrap_or(0);
        (0..words).any(|at| {
            let mut word = many.iter().fold(u64::MAX, |word, bits| word & bits[at]);
            while word != 0 {
                if is_enough(u32::try_from(at).unwrap_or(u32::MAX) * 64 + word.trailing_zeros()) {
                    return true;
                }
                word &= word - 1;
            }
            false
        })
    }
}

/// Drops what comes before `record` from an ascending list, in steps that double; whether it is there then.
fn skip_to(list: &mut &[u32], record: u32) -> bool {
    let mut reach = 1;
    while list.get(reach).is_some_and(|other| *other < record) {
        reach *= 2;
    }
    let near = &list[..list.len().min(reach + 1)];
    *list = &list[near.partition_point(|other| *other < record)..];
    list.first() == Some(&record)
}

/// What the verifier knows of a list, for the lines of one group.
#[derive(Clone, Debug)]
pub struct ListedTerms {
    /// The people.
    pub list: Arc<Listed>,
    /// The quasi attributes of the group that the list has: position in the line and in the schema.
    pub columns: Vec<(usize, usize)>,
}

/// The distinct tuples that the lines of a group print, of the attributes of one list.
#[derive(Default)]
pub(super) struct Printed(BTreeSet<Vec<String>>);

/// A class has fewer people than its list must have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooFewListed;

impl ListedTerms {
    /// Notes the cells of a line.
    pub(super) fn note(&self, cells: &[String], printed: &mut Printed) {
        printed.0.insert(self.columns.iter().map(|(column, _)| cells[*column].clone()).collect());
    }

    /// Whether the list has the people that a class needs; `text` is the cell of an attribute, where the class has it.
    pub(super) fn has_enough_at<'t>(&self, text: &impl Fn(usize) -> Option<&'t str>) -> bool {
        let cells = self.columns.iter().map(|(_, attribute)| Some((*attribute, text(*attribute)?)));
        cells.collect::<Option<Vec<(usize, &str)>>>().is_some_and(|cells| self.list.has_enough(&cells))
    }

    /// Judges all that was noted.
    pub(super) fn judge(&self, printed: &Printed) -> Result<(), TooFewListed> {
        for tuple in &printed.0 {
            let cells: Vec<(usize, &str)> =
                self.columns.iter().zip(tuple).map(|((_, attribute), text)| (*attribute, text.as_str())).collect();
            if !self.list.has_enough(&cells) {
                return Err(TooFewListed);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::anonymity::treatment::population::Population;
    use crate::records::codebook::SUPPRESSED;
    use crate::records::digest::DigestKey;
    use crate::records::schema::Schema;
    use proptest::prelude::*;
    use std::path::Path;

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

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]
        /// Texts and records count as sets do, and as the treatment's digests and tuples.
        #[test]
        fn three_ways_to_count_people_agree(
            k in 1usize..6,
            list in prop::collection::vec((0u32..60, 0usize..6, prop::option::weighted(0.9, 0u32..8)), 0..150),
            asked in prop::collection::vec((0u32..60, 0usize..6, 0usize..4, 0usize..4), 1..12),
        ) {
            let schema = Schema::parse(SCHEMA, "t.toml", Path::new("")).unwrap();
            let book = |a: &Arc<_>| Codebook::new(Arc::clone(a), &DigestKey([3; 32]), 1000).unwrap();
            let mut books: Vec<Codebook> = schema.attributes.iter().map(book).collect();
            let mut columns = [Vec::new(), Vec::new()];
            for (age, city, _) in &list {
                columns[0].push(books[0].encode_canonical(&age.to_string()));
                columns[1].push(books[1].encode_canonical(CITIES[*city]));
            }
            let people: Vec<Option<u32>> = list.iter().map(|(_, _, person)| *person).collect();
            let known: Vec<(usize, &Codebook, &[Code])> =
                (0..2).map(|a| (a, &books[a], columns[a].as_slice())).collect();
            let (listed, treated) = (Listed::new(k, &known, people.clone()), Population::new(k, 2, &known, &people));
            let mut stream = books.clone();
            for (age, city, of_age, of_city) in asked {
                let codes = [stream[0].encode_canonical(&age.to_string()), stream[1].encode_canonical(CITIES[city])];
                let cell = |a: usize, level: usize| stream[a].cell(codes[a], level.min(stream[a].levels() - 1));
                let cells = [cell(0, of_age), cell(1, of_city)];
                let texts = [(0, stream[0].text(cells[0])), (1, stream[1].text(cells[1]))];
                let is_covered = |record: usize| (0..2).all(|a| {
                    cells[a] == SUPPRESSED
                        || (0..books[a].levels()).any(|l| books[a].text(books[a].cell(columns[a][record], l)) == texts[a].1)
                });
                let covered = (0..list.len()).filter(|&record| is_covered(record));
                let covered: BTreeSet<u32> = covered.filter_map(|record| people[record]).collect();
                let expected = cells == [SUPPRESSED; 2] || covered.len() >= k;
                prop_assert_eq!(listed.has_enough(&texts), expected);
                let said = (0..2).filter(|&a| cells[a] != SUPPRESSED);
                prop_assert_eq!(treated.accepts(said.map(|a| (a, stream[a].digest(cells[a])))), expected);
            }
        }

        #[test]
        fn skipping_finds_what_is_there(
            list in prop::collection::btree_set(0u32..400, 0..200),
            asked in prop::collection::btree_set(0u32..400, 0..200),
        ) {
            let sorted: Vec<u32> = list.iter().copied().collect();
            let mut rest = sorted.as_slice();
            for record in asked {
                prop_assert_eq!(skip_to(&mut rest, record), list.contains(&record));
            }
        }
    }
}
