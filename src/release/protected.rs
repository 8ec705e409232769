//! Verification of privacy models in a stream, from the encoded bytes (docs/methods.md §11.5).
//!
//! Claim. If [`judge`] returns `Ok`, then for every class in which this batch shows a value of a protected attribute, the
//! distinct pairs (value, subject) that it shows there satisfy every claim, and ℓ of the values can be given ℓ different
//! subjects where diversity is asked for. It fails closed: where there is no distribution to compare with, or a value is not
//! in it, nothing may be shown.
//!
//! Written from the definitions in plain numbers and apart from the treatment, whose integers it must agree with; what is
//! equal may differ by rounding, so 10⁻⁹ is let pass ([`super::models`]).

use super::models::Claim;
use super::violation::Violation;
use std::collections::{BTreeMap, BTreeSet};

/// What the verifier knows of a protected attribute of a group.
#[derive(Clone, Debug)]
pub struct ProtectedTerms {
    /// Position in the schema.
    pub attribute: usize,
    /// Position in the line.
    pub column: usize,
    /// What the values of every class must satisfy.
    pub claims: Vec<Claim>,
    /// Values that must belong to as many different subjects.
    pub representatives: usize,
    /// The distribution to compare with: none is known, or nothing is compared.
    pub reference: Option<Shares>,
}

/// A distribution over numbered values; shares are in the order of an ordered ground distance.
#[derive(Clone, Debug)]
pub struct Shares {
    /// Place of each value, by its number.
    pub positions: BTreeMap<u64, usize>,
    /// Share of each value, by its place.
    pub shares: Vec<f64>,
}

/// Judges the classes of one group. `shown` are (class, value, subject) by protected attribute, as the lines show them.
pub(super) fn judge(terms: &[ProtectedTerms], shown: Vec<Vec<(u128, u64, u64)>>) -> Result<(), Violation> {
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
    /// `pairs` are what a class shows, in order and each once.
    fn accepts(&self, pairs: &[(u64, u64)]) -> bool {
        let compares = self.claims.iter().any(|claim| matches!(claim, Claim::Closeness { .. }));
        let (mut counts, shares) = match (&self.reference, compares) {
            (None, true) => return false,
            (Some(known), true) => (vec![0.0; known.shares.len()], known.shares.as_slice()),
            (_, false) => (Vec::new(), &[][..]),
        };
        // A value of many subjects can always be given one that no other has: no more of them are needed.
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
        self.claims.iter().all(|claim| claim.holds(&counts, shares).is_ok()) && represented(&some, self.representatives)
    }
}

/// Whether `needed` values can be given a subject each, no two the same one: augmenting paths, without recursion.
fn represented(values: &BTreeMap<u64, BTreeSet<u64>>, needed: usize) -> bool {
    let mut value_of: BTreeMap<u64, u64> = BTreeMap::new();
    for &start in values.keys() {
        if value_of.len() >= needed {
            break;
        }
        // By subject met on the way: the value from which it was met.
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
        // Back along the path: each value on it takes the subject through which it was left.
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
    use crate::anonymity::privacy::representatives;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(3000))]
        #[test]
        fn two_ways_to_find_representatives_agree(
            pairs in prop::collection::btree_set((0u64..8, 0u64..8), 0..30),
            needed in 0usize..8,
        ) {
            let mut values: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
            for &(value, subject) in &pairs {
                values.entry(value).or_default().insert(subject);
            }
            let pairs: Vec<(u64, u64)> = pairs.into_iter().collect();
            prop_assert_eq!(represented(&values, needed), representatives::represented(&pairs, needed));
        }
    }
}
