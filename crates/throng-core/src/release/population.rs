//! Verification of population models.
//!
//! Claim. If [`verify_population`] returns `Ok`, for every released tuple of quasi cells: k subjects of the population
//! have covered values (k-map), and lines / covered records is between min and max (δ-presence).

use super::verified_batch::ReleasableBatch;
use super::violation::DataSetRefusal;
use crate::line_encoder::LineLayout;
use crate::values::codebook::Codebook;
use std::collections::{BTreeMap, BTreeSet};

/// Condition on every class.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs, reason = "fields are the symbols of the claim")]
pub enum PopulationClaim {
    /// k-map.
    Map { k: u64 },
    /// δ-presence.
    Presence { min: f64, max: f64 },
}

/// Population and its mapping to line cells.
pub struct PopulationTerms<'a> {
    /// Position of each quasi cell, codebook and codes of all members; none for an aggregate, which covers every value.
    pub attributes: Vec<(usize, Option<(&'a Codebook, &'a [u32])>)>,
    /// Subject of each member, if known.
    pub people: Vec<Option<u64>>,
}

const SHARE_TOLERANCE: f64 = 1e-9;

/// One level per quasi attribute, one branch per cell text.
#[derive(Default)]
struct ClassTree {
    branches: BTreeMap<String, ClassTree>,
    lines: u64,
    records: u64,
    people: BTreeSet<u64>,
}

/// Verifies `group` in O(members × covering classes × line length).
///
/// # Errors
/// The first violated claim.
pub fn verify_population(
    verified: &ReleasableBatch,
    group: usize,
    layout: &LineLayout,
    population: &PopulationTerms<'_>,
    claims: &[PopulationClaim],
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
    root.check_claims(claims)
}

impl ClassTree {
    fn cover(&mut self, population: &PopulationTerms<'_>, depth: usize, member: usize, person: Option<u64>) {
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
            // Levels with equal coverage print the same text.
            if before.replace(text) == Some(text) {
                continue;
            }
            if let Some(node) = self.branches.get_mut(text) {
                node.cover(population, depth + 1, member, person);
            }
        }
    }

    fn check_claims(&self, claims: &[PopulationClaim]) -> Result<(), DataSetRefusal> {
        for node in self.branches.values() {
            node.check_claims(claims)?;
        }
        if self.lines == 0 {
            return Ok(());
        }
        for claim in claims {
            let (holds, model) = match *claim {
                PopulationClaim::Map { k } => (self.people.len() as u64 >= k, "k-map"),
                PopulationClaim::Presence { min, max } => {
                    let share = self.lines as f64 / self.records as f64;
                    (min - SHARE_TOLERANCE <= share && share <= max + SHARE_TOLERANCE, "delta-presence")
                }
            };
            if !holds {
                return Err(DataSetRefusal::Population(model));
            }
        }
        Ok(())
    }
}
