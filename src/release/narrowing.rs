//! Verification that no class is narrowed by exclusion, from the encoded bytes and the rows' own codes (docs/methods.md §12.3).
//!
//! Claim. If [`judge`] returns `Ok`, then every class of quasi cells that leaves has at least k distinct subjects over lines of
//! this batch, each of a raw tuple that no observer of the ladder strikes out. Struck out is a raw tuple that would have left
//! finer under the plan in force: its class at a node of the ladder before that of its line leaves in this batch. Earlier
//! batches complete no class, so they strike out nothing.
//!
//! It finds the node of a line by itself: the first at which the row's own cells are those printed; a line that is at no node of
//! its row refuses the batch. A class leaves at a node where that is the node of all of its lines. Written apart from the
//! treatment, which keeps this promise by the order in which it walks the ladder (`treatment/recode.rs`).

use super::given::{Basis, Given, NarrowingTerms};
use super::violation::Violation::{self, Narrowed};
use hashbrown::HashMap;
use throng_core::values::codebook::{Code, Codebook};
use throng_core::values::digest::BuildClassKeyHash;
use throng_core::values::subject::NO_SUBJECT;

/// Judges the classes of one group. `printed` are the class of every line and its row; `base` names the group's classes.
pub(super) fn judge(
    terms: &NarrowingTerms,
    base: u128,
    mut printed: Vec<(u128, u32)>,
    basis: Basis<'_>,
) -> Result<(), Violation> {
    let Basis { given, books, k, .. } = basis;
    printed.sort_unstable();
    let mut observer = Observer { terms, base, books, leaving: HashMap::default() };
    let mut codes = Vec::with_capacity(terms.attributes.len());
    for &(class, row) in &printed {
        codes_of(terms, given, row, &mut codes)?;
        let node = observer.node_of(class, &codes).ok_or(Narrowed)?;
        let common = observer.leaving.entry(class).or_insert(Some(node));
        *common = common.filter(|common| *common == node);
    }
    for lines in printed.chunk_by(|a, b| a.0 == b.0) {
        let class = lines[0].0;
        let mut crowd = Vec::with_capacity(k);
        for &(_, row) in lines {
            if crowd.len() >= k {
                break;
            }
            let subject = *given.subjects.get(row as usize).ok_or(Narrowed)?;
            if subject == NO_SUBJECT || crowd.contains(&subject) {
                continue;
            }
            codes_of(terms, given, row, &mut codes)?;
            let Some(at) = observer.node_of(class, &codes) else { continue };
            if !observer.strikes(&codes, at) {
                crowd.push(subject);
            }
        }
        if crowd.len() < k {
            return Err(Narrowed);
        }
    }
    Ok(())
}

/// Writes a row's own codes of the quasi attributes to `codes`.
fn codes_of(terms: &NarrowingTerms, given: &Given<'_>, row: u32, codes: &mut Vec<Code>) -> Result<(), Violation> {
    codes.clear();
    for &attribute in &terms.attributes {
        codes.push(*given.columns.get(attribute).and_then(|column| column.get(row as usize)).ok_or(Narrowed)?);
    }
    Ok(())
}

/// What somebody can strike out who knows the ladder and what this batch prints.
struct Observer<'a> {
    terms: &'a NarrowingTerms,
    base: u128,
    books: &'a [Codebook],
    /// Classes that leave in this batch, each with the first node at which all of its lines are in it. None where they are not at
    /// one and the same: a raw value can be spelled as a label of others, and then nobody can tell at which node it left.
    leaving: HashMap<u128, Option<usize>, BuildClassKeyHash>,
}

impl Observer<'_> {
    fn key(&self, codes: &[Code], node: usize) -> u128 {
        let cells = self.terms.attributes.iter().zip(codes).zip(&self.terms.nodes[node]);
        cells.fold(self.base, |key, ((&a, &code), &level)| {
            key.wrapping_add(self.books[a].digests(usize::from(level))[code as usize])
        })
    }

    /// The first node at which a raw tuple is in `class`.
    fn node_of(&self, class: u128, codes: &[Code]) -> Option<usize> {
        (0..self.terms.nodes.len()).find(|&node| self.key(codes, node) == class)
    }

    /// Whether a raw tuple would have left before `node`.
    fn strikes(&self, codes: &[Code], node: usize) -> bool {
        (0..node).any(|at| self.leaving.get(&self.key(codes, at)) == Some(&Some(at)))
    }
}

#[cfg(test)]
mod tests;
