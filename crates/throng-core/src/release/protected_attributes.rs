//! Verification of privacy models in a stream (docs/internals/methods.md §11.5).
//!
//! Claim. If `check_protected` returns `Ok`, the distinct (value, subject) pairs of a protected attribute in every
//! class satisfy every claim, up to 10⁻⁹. For diversity, ℓ values can be assigned ℓ subjects. For closeness, all shown
//! values are in a known reference.

use super::models::ModelClaim;
use super::violation::Violation;
use std::collections::{BTreeMap, BTreeSet};

/// Terms of a protected attribute.
#[derive(Clone, Debug)]
pub struct ProtectedTerms {
    /// Position in the schema.
    pub attribute: usize,
    /// Position in the line.
    pub column: usize,
    /// Models of every class.
    pub claims: Vec<ModelClaim>,
    /// Required values of different subjects.
    pub representatives: usize,
    /// Reference distribution, if known and needed.
    pub reference: Option<ReferenceShares>,
}

/// Distribution over numbered values.
#[derive(Clone, Debug)]
pub struct ReferenceShares {
    /// Order positions for the ground distance, by value number.
    pub positions: BTreeMap<u64, usize>,
    /// Shares by order position.
    pub shares: Vec<f64>,
}

/// `shown` has (class, value, subject) by protected attribute.
pub(super) fn check_protected(terms: &[ProtectedTerms], shown: Vec<Vec<(u128, u64, u64)>>) -> Result<(), Violation> {
    for (term, mut shown) in terms.iter().zip(shown) {
        shown.sort_unstable();
        shown.dedup();
        for of_class in shown.chunk_by(|a, b| a.0 == b.0) {
            let pairs: Vec<(u64, u64)> = of_class.iter().map(|(_, value, subject)| (*value, *subject)).collect();
            if !term.accepts(&pairs) {
                return Err(Violation::Model);
            }
        }
    }
    Ok(())
}

impl ProtectedTerms {
    /// `pairs` are those of a class, sorted and distinct.
    fn accepts(&self, pairs: &[(u64, u64)]) -> bool {
        let compares = self.claims.iter().any(|claim| matches!(claim, ModelClaim::Closeness { .. }));
        let (mut counts, shares) = match (&self.reference, compares) {
            (None, true) => return false,
            (Some(known), true) => (vec![0.0; known.shares.len()], known.shares.as_slice()),
            (_, false) => (Vec::new(), &[][..]),
        };
        // More than `representatives` subjects per value change nothing.
        let mut some: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
        for of_value in pairs.chunk_by(|a, b| a.0 == b.0) {
            let value = of_value[0].0;
            match &self.reference {
                Some(known) if compares => match known.positions.get(&value) {
                    Some(&at) => counts[at] = of_value.len() as f64,
                    None => return false,
                },
                _ => counts.push(of_value.len() as f64),
            }
            some.insert(value, of_value.iter().take(self.representatives).map(|pair| pair.1).collect());
        }
        self.claims.iter().all(|claim| claim.holds(&counts, shares).is_ok())
            && has_representatives(&some, self.representatives)
    }
}

/// Augmenting paths.
fn has_representatives(values: &BTreeMap<u64, BTreeSet<u64>>, needed: usize) -> bool {
    let mut value_of: BTreeMap<u64, u64> = BTreeMap::new();
    for &start in values.keys() {
        if value_of.len() >= needed {
            break;
        }
        // Visited subjects with their values.
        let mut met: BTreeMap<u64, u64> = BTreeMap::new();
        let mut queue = vec![start];
        let mut free = None;
        while let Some(value) = queue.pop().filter(|_| free.is_none()) {
            for &subject in values.get(&value).into_iter().flatten() {
                if met.contains_key(&subject) {
                    continue;
                }
                met.insert(subject, value);
                match value_of.get(&subject) {
                    None => {
                        free = Some(subject);
                        break;
                    }
                    Some(&holder) => queue.push(holder),
                }
            }
        }
        while let Some(subject) = free {
            let value = met[&subject];
            let before = value_of.iter().find(|(_, v)| **v == value).map(|(s, _)| *s);
            value_of.insert(subject, value);
            free = before.filter(|_| value != start);
            if let Some(given_up) = free {
                value_of.remove(&given_up);
            }
        }
    }
    value_of.len() >= needed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::privacy::representatives;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(3000))]
        #[test]
        fn representatives_match_treatment(
            pairs in prop::collection::btree_set((0u64..8, 0u64..8), 0..30),
            needed in 0usize..8,
        ) {
            let mut values: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
            for &(value, subject) in &pairs {
                values.entry(value).or_default().insert(subject);
            }
            let pairs: Vec<(u64, u64)> = pairs.into_iter().collect();
            prop_assert_eq!(has_representatives(&values, needed), representatives::has_distinct_representatives(&pairs, needed));
        }
    }
}
