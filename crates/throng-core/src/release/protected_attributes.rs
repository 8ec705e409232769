//! Verification of privacy models in a stream, from the encoded bytes (docs/internals/methods.md §11.5).
//!
//! Claim. If `check_protected` returns `Ok`, then in every class the distinct pairs (value, subject) that this batch shows of
//! a protected attribute satisfy every claim. If diversity is required, ℓ values can be assigned ℓ different
//! subjects. Without a reference distribution, or with a value outside it, no value may be shown. A rounding
//! difference of 10⁻⁹ is accepted ([`super::models`]).

use super::models::ModelClaim;
use super::violation::Violation;
use std::collections::{BTreeMap, BTreeSet};

/// Terms of a protected attribute of a group.
#[derive(Clone, Debug)]
pub struct ProtectedTerms {
    /// Position in the schema.
    pub attribute: usize,
    /// Position in the line.
    pub column: usize,
    /// Models that the values of every class must satisfy.
    pub claims: Vec<ModelClaim>,
    /// Number of values that must belong to as many different subjects.
    pub representatives: usize,
    /// The reference distribution; none if it is unknown or no claim needs it.
    pub reference: Option<ReferenceShares>,
}

/// A distribution over numbered values, with shares in the order of an ordered ground distance.
#[derive(Clone, Debug)]
pub struct ReferenceShares {
    /// Position of each value in the order, by its number.
    pub positions: BTreeMap<u64, usize>,
    /// Share of each value, by its position.
    pub shares: Vec<f64>,
}

/// Judges the classes of one group. `shown` holds (class, value, subject) by protected attribute, as the lines show
/// them.
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
    /// Checks the `pairs` that a class shows, sorted and distinct.
    fn accepts(&self, pairs: &[(u64, u64)]) -> bool {
        let compares = self.claims.iter().any(|claim| matches!(claim, ModelClaim::Closeness { .. }));
        let (mut counts, shares) = match (&self.reference, compares) {
            (None, true) => return false,
            (Some(known), true) => (vec![0.0; known.shares.len()], known.shares.as_slice()),
            (_, false) => (Vec::new(), &[][..]),
        };
        // A value with many subjects always has one that no other value needs, so `representatives` subjects per
        // value are enough.
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

/// Checks that `needed` values can be assigned pairwise different subjects. Uses augmenting paths without recursion.
fn has_representatives(values: &BTreeMap<u64, BTreeSet<u64>>, needed: usize) -> bool {
    let mut value_of: BTreeMap<u64, u64> = BTreeMap::new();
    for &start in values.keys() {
        if value_of.len() >= needed {
            break;
        }
        // By visited subject: the value from which it was reached.
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
        // Walks back along the path: each value on it takes the subject through which the search continued.
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
