//! Verification of models that speak of a population, from the encoded bytes of what is about to leave.
//!
//! Claim. If [`verify_population`] returns `Ok`, then for every tuple of quasi cells that leaves, read back from the lines:
//! at least k people of the population have values that its cells cover (k-map), and the lines are a share of the
//! records covered between min and max (δ-presence). What a cell covers is asked of the codebook by the cell's text. A cell of an
//! attribute that is `ignored` (an aggregate) covers every value.

use super::verified::Verified;
use super::violation::DataSetRefusal;
use std::collections::{BTreeMap, BTreeSet};
use throng_core::values::codebook::Codebook;
use throng_formats::LineLayout;

/// What every class must satisfy.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs, reason = "fields are the symbols of the claim")]
pub enum Claim {
    /// At least k people are covered.
    Map { k: u64 },
    /// min ≤ lines / records covered ≤ max.
    Presence { min: f64, max: f64 },
}

/// The population, and how the cells of a line speak of it.
pub struct Population<'a> {
    /// By quasi cell of the line, in its order: position in the line, codebook, the codes of all members; none in the
    /// place of the last two where the cell is ignored.
    pub attributes: Vec<(usize, Option<(&'a Codebook, &'a [u32])>)>,
    /// Whom each member counts for; nobody is none.
    pub people: Vec<Option<u64>>,
}

const SLACK: f64 = 1e-9;

/// The classes that leave, as a tree: a level of it is a quasi attribute, a branch the text of a cell.
#[derive(Default)]
struct ClassTree {
    branches: BTreeMap<String, ClassTree>,
    lines: u64,
    records: u64,
    people: BTreeSet<u64>,
}

/// Verifies the lines of `group`.
///
/// Time: members × classes that cover one, and the length of a line.
///
/// # Errors
/// The first class and claim that do not agree.
pub fn verify_population(
    verified: &Verified,
    group: usize,
    layout: &LineLayout,
    population: &Population<'_>,
    claims: &[Claim],
) -> Result<(), DataSetRefusal> {
    if claims.is_empty() {
        return Ok(());
    }
    let mut root = ClassTree::default();
    let mut cells = Vec::new();
    for line in verified.lines(group) {
        layout.read(line.bytes, &mut cells).ok_or(DataSetRefusal::Population("the layout"))?;
        let mut node = &mut root;
        for &(column, _) in &population.attributes {
            node = node.branches.entry(cells[column].clone()).or_default();
        }
        node.lines += 1;
    }
    for (member, &person) in population.people.iter().enumerate() {
        root.cover(population, 0, member, person);
    }
    root.hold(claims)
}

impl ClassTree {
    /// Counts a member in every class below that covers it.
    fn cover(&mut self, population: &Population<'_>, depth: usize, member: usize, person: Option<u64>) {
        let Some((_, attribute)) = population.attributes.get(depth) else {
            self.records += 1;
            self.people.extend(person);
            return;
        };
        let Some((book, codes)) = attribute else {
            for node in self.branches.values_mut() {
                node.cover(population, depth + 1, member, person);
            }
            return;
        };
        let mut before: Option<&str> = None;
        for level in 0..book.levels() {
            let text = book.text(book.cell(codes[member], level));
            // Levels that cover the same print the same.
            if before.replace(text) == Some(text) {
                continue;
            }
            if let Some(node) = self.branches.get_mut(text) {
                node.cover(population, depth + 1, member, person);
            }
        }
    }

    fn hold(&self, claims: &[Claim]) -> Result<(), DataSetRefusal> {
        for node in self.branches.values() {
            node.hold(claims)?;
        }
        if self.lines == 0 {
            return Ok(());
        }
        for claim in claims {
            let (holds, model) = match *claim {
                Claim::Map { k } => (self.people.len() as u64 >= k, "k-map"),
                Claim::Presence { min, max } => {
                    let share = self.lines as f64 / self.records as f64;
                    (min - SLACK <= share && share <= max + SLACK, "delta-presence")
                }
            };
            if !holds {
                return Err(DataSetRefusal::Population(model));
            }
        }
        Ok(())
    }
}
