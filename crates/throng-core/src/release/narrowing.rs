//! Verification that exclusion narrows no class (docs/internals/methods.md §12.3).
//!
//! Claim. If `check_narrowing` returns `Ok`, every released class has k distinct subjects in this batch with raw tuples
//! that are not excluded. A raw tuple is excluded if its class at an earlier ladder node is released in this batch.
//! Earlier batches complete no class and exclude nothing.
//!
//! The node of a line is the first that prints its cells; a line without a node refuses the batch. The ladder of
//! `treatment/local_recoding.rs` satisfies the claim.

use super::verifier_input::{NarrowingTerms, RecountContext, VerifierInput};
use super::violation::Violation::{self, Narrowed};
use crate::values::codebook::{Code, Codebook};
use crate::values::digest::BuildClassKeyHash;
use crate::values::subject_digest::NO_SUBJECT;
use hashbrown::HashMap;

/// `printed` has the class and row of every line; `base` is the group digest.
pub(super) fn check_narrowing(
    terms: &NarrowingTerms,
    base: u128,
    mut printed: Vec<(u128, u32)>,
    basis: RecountContext<'_>,
) -> Result<(), Violation> {
    let RecountContext { given, books, k, .. } = basis;
    printed.sort_unstable();
    let mut observer = LadderObserver { terms, base, books, leaving: HashMap::default() };
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
            if !observer.excludes_tuple(&codes, at) {
                crowd.push(subject);
            }
        }
        if crowd.len() < k {
            return Err(Narrowed);
        }
    }
    Ok(())
}

fn codes_of(
    terms: &NarrowingTerms,
    given: &VerifierInput<'_>,
    row: u32,
    codes: &mut Vec<Code>,
) -> Result<(), Violation> {
    codes.clear();
    for &attribute in &terms.attributes {
        codes.push(*given.columns.get(attribute).and_then(|column| column.get(row as usize)).ok_or(Narrowed)?);
    }
    Ok(())
}

/// Exclusions by ladder and lines.
struct LadderObserver<'a> {
    terms: &'a NarrowingTerms,
    base: u128,
    books: &'a [Codebook],
    /// Node of all lines of a released class. None if nodes differ: a raw value can equal a label, which conceals the
    /// node.
    leaving: HashMap<u128, Option<usize>, BuildClassKeyHash>,
}

impl LadderObserver<'_> {
    fn key(&self, codes: &[Code], node: usize) -> u128 {
        let cells = self.terms.attributes.iter().zip(codes).zip(&self.terms.nodes[node]);
        cells.fold(self.base, |key, ((&a, &code), &level)| {
            key.wrapping_add(self.books[a].digests(usize::from(level))[code as usize])
        })
    }

    fn node_of(&self, class: u128, codes: &[Code]) -> Option<usize> {
        (0..self.terms.nodes.len()).find(|&node| self.key(codes, node) == class)
    }

    fn excludes_tuple(&self, codes: &[Code], node: usize) -> bool {
        (0..node).any(|at| self.leaving.get(&self.key(codes, at)) == Some(&Some(at)))
    }
}

#[cfg(test)]
mod tests;
