//! Verification of k-map with a population in a stream, from the encoded bytes of what is about to leave.
//!
//! Claim. If [`ListedTerms::judge`] returns `Ok`, then for every tuple of quasi cells that leaves, as the lines print it, at
//! least k distinct people of the list each have a record every known cell of which generalizes to the cell printed. `*`
//! is everybody's; what the list does not know restricts nobody.
//!
//! Written from the definition, apart from the treatment: by the texts of the cells instead of digests, by records of the
//! list instead of its distinct tuples, and with no answer remembered from one batch to the next.

use crate::records::codebook::{Code, Codebook};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The people whom an observer could look up, by the texts that their cells generalize to.
///
/// Memory: 4 bytes for each record, attribute and level, and each text once.
#[derive(Debug)]
pub struct Listed {
    k: usize,
    /// By attribute of the schema that the list has, and text: the records, ascending.
    records: BTreeMap<usize, BTreeMap<String, Vec<u32>>>,
    /// Whom each record is of.
    people: Vec<Option<u32>>,
}

impl Listed {
    /// A list of which every class needs `k` people. `known` are the attributes that it has, each with its codebook and a
    /// code a record; `people` says whom each record is of, by a number, and `None` for nobody.
    #[must_use]
    pub fn new(k: usize, known: &[(usize, &Codebook, &[Code])], people: Vec<Option<u32>>) -> Self {
        let mut records = BTreeMap::new();
        for (attribute, book, codes) in known {
            let mut by_text: BTreeMap<String, Vec<u32>> = BTreeMap::new();
            for code in 0..book.codes() {
                for level in 0..book.levels() {
                    let text = book.text(book.cell(u32::try_from(code).unwrap_or(u32::MAX), level));
                    by_text.entry(text.to_owned()).or_default();
                }
            }
            for (record, &code) in (0u32..).zip(*codes) {
                let texts: BTreeSet<&str> = (0..book.levels()).map(|level| book.text(book.cell(code, level))).collect();
                for text in texts {
                    if let Some(of_text) = by_text.get_mut(text) {
                        of_text.push(record);
                    }
                }
            }
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
    fn has_enough(&self, cells: &[(usize, &str)]) -> bool {
        let mut lists: Vec<&[u32]> = Vec::with_capacity(cells.len());
        for (attribute, text) in cells.iter().filter(|(_, text)| *text != r#""*""#) {
            match self.records.get(attribute).and_then(|by_text| by_text.get(*text)) {
                Some(records) => lists.push(records),
                None => return false,
            }
        }
        lists.sort_by_key(|records| records.len());
        // Nothing is said of anybody: the list as a whole was found large enough when it was read.
        let Some((first, others)) = lists.split_first_mut() else { return true };
        let mut people = BTreeSet::new();
        for record in *first {
            let in_all = others.iter_mut().all(|list| {
                let before = list.partition_point(|other| other < record);
                *list = &list[before..];
                list.first() == Some(record)
            });
            if in_all {
                people.extend(self.people[*record as usize]);
            }
            if people.len() >= self.k {
                return true;
            }
        }
        false
    }
}

/// What the verifier knows of a list, for the lines of one group.
#[derive(Clone, Debug)]
pub struct ListedTerms {
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

    /// Time: by tuple, the records of its rarest cell up to the k-th person, times the logarithm of the others'.
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
